// Playwright's test with two fixtures: authhub, a hub for each worker, and ns, a namespace of it for each test.
'use strict';

const { randomUUID } = require('node:crypto');
const { createRequire } = require('node:module');
const { join } = require('node:path');
const { connectHub, startHub } = require('./index.js');

const { test: base, expect } = playwright();

/** Returns the project's Playwright: there must be only one. Where this package is a link, it is not beside it. */
function playwright() {
  try {
    return require('@playwright/test');
  } catch {
    return createRequire(join(process.cwd(), 'package.json'))('@playwright/test');
  }
}

const test = base.extend({
  // AUTHHUB_URL names a hub that runs already; its namespaces of failed tests stay, to be looked at.
  authhub: [async ({}, use) => {
    const hub = process.env.AUTHHUB_URL ? connectHub(process.env.AUTHHUB_URL) : await startHub();
    await use(hub);
    await hub.close();
  }, { scope: 'worker' }],

  ns: async ({ authhub }, use, testInfo) => {
    const ns = authhub.namespace(nameAfter(testInfo.title));
    await use(ns);
    if (testInfo.status === testInfo.expectedStatus) return ns.delete();
    const page = process.env.AUTHHUB_URL ? `See ${ns.page}\n` : '';
    await testInfo.attach('authhub', { body: `${page}What authhub received:\n${await ns.lab.summary()}`, contentType: 'text/plain' });
  },
});

/** Returns a name for a namespace that people recognise and that no other test has. */
function nameAfter(title) {
  return `${title.replace(/[^A-Za-z0-9]+/g, '-').slice(0, 40)}-${randomUUID().slice(0, 8)}`;
}

exports.test = test;
exports.expect = expect;
