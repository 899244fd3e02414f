// What axios-auth-refresh really does when the access token has expired: alone, in a race, with a 401 that comes
// late, and in two instances that share their tokens. It passes as long as the library behaves as README.md says.
//
//   npm ci && npm test          with the hub built beforehand: (cd ../.. && go build), or AUTHHUB=/path/to/authhub

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import axios from 'axios';
import { createAuthRefresh } from 'axios-auth-refresh';
import { namespaceFor } from '../node/authhub.js';

/** An axios instance with the interceptors that the library's README shows: tokens in, refresh on 401. */
function makeApi(base, tokens, options = {}) {
  const api = axios.create({ baseURL: `${base}/api/authentication` });
  api.interceptors.request.use((request) => {
    request.headers.Authorization = `Bearer ${tokens.access_token}`;
    return request;
  });
  createAuthRefresh(api, options.refresh ?? (() => exchange(base, tokens)), options);
  return api;
}

async function exchange(base, tokens) {
  const { data } = await axios.post(`${base}/api/authentication/refresh`, { refresh_token: tokens.refresh_token });
  Object.assign(tokens, data);
}

/** A refresh function for all instances: it looks whether there is a new token already, and runs once at a time. */
function carefulRefresh(base, tokens) {
  let running = null;
  return async ({ config }) => {
    if (config.headers.Authorization !== `Bearer ${tokens.access_token}`) return;
    running ??= exchange(base, tokens).finally(() => { running = null; });
    await running;
  };
}

/** A namespace where demo has logged in and the access token has expired since. */
async function expired(t) {
  const ns = namespaceFor(t);
  const { data } = await axios.post(`${ns.url}/api/authentication/login`, { username: 'demo', password: 'demo-password' });
  await ns.lab.advance('16m');
  return [ns, data];
}

/** What came of requests: their statuses, sorted. */
async function statuses(...requests) {
  const results = await Promise.allSettled(requests);
  return results.map(({ value, reason }) => (value ?? reason.response).status).sort();
}

const rules = (findings) => findings.map((finding) => finding.split(':')[0]);

describe('axios-auth-refresh', { concurrency: true }, () => {
  test('refreshes and repeats a request that comes alone', async (t) => {
    const [ns, tokens] = await expired(t);
    const api = makeApi(ns.url, tokens);

    assert.deepEqual(await statuses(api.get('/me')), [200]);
    assert.deepEqual(await ns.lab.findings(), []);
  });

  test('as it comes, it repeats only the first of three requests that fail together', async (t) => {
    const [ns, tokens] = await expired(t);
    const api = makeApi(ns.url, tokens);
    await ns.lab.fault({ operation: 'me', hold: 3 });
    await ns.lab.fault({ operation: 'refresh', delay: '300ms' }); // all three have their 401 before it is over

    assert.deepEqual(await statuses(api.get('/me'), api.get('/me'), api.get('/me')), [200, 401, 401]);
    await ns.lab.expect({ operation: 'refresh', count: { exactly: 1 }, within: '200ms' });
  });

  test('with deduplicateRefresh: false it repeats all three after one refresh', async (t) => {
    const [ns, tokens] = await expired(t);
    const api = makeApi(ns.url, tokens, { deduplicateRefresh: false });
    await ns.lab.fault({ operation: 'me', hold: 3 });
    await ns.lab.fault({ operation: 'refresh', delay: '300ms' }); // all three have their 401 before it is over

    assert.deepEqual(await statuses(api.get('/me'), api.get('/me'), api.get('/me')), [200, 200, 200]);
    await ns.lab.expect({ operation: 'refresh', count: { exactly: 1 }, within: '200ms' });
    assert.deepEqual(await ns.lab.findings(), []);
  });

  for (const deduplicateRefresh of [true, false]) {
    test(`refreshes twice when a 401 comes late (deduplicateRefresh: ${deduplicateRefresh})`, async (t) => {
      const [ns, tokens] = await expired(t);
      const api = makeApi(ns.url, tokens, { deduplicateRefresh });
      await ns.lab.fault({ operation: 'me', delay: '1s' });

      assert.deepEqual(await statuses(api.get('/me'), api.get('/me')), [200, 200]);
      await ns.lab.expect({ operation: 'refresh', count: { exactly: 2 }, within: '200ms' });
      assert.deepEqual(rules(await ns.lab.findings()), ['two_refreshes']);
    });
  }

  test('in two instances that share their tokens it loses the session', async (t) => {
    const [ns, tokens] = await expired(t);
    const [orders, profile] = [makeApi(ns.url, tokens), makeApi(ns.url, tokens)];
    await ns.lab.fault({ operation: 'refresh', hold: 2 });

    await statuses(orders.get('/me'), profile.get('/me')); // one of them may be served before the other's refresh arrives
    assert.deepEqual(rules(await ns.lab.findings()), ['two_refreshes']);
    assert.deepEqual(await statuses(orders.get('/me'), profile.get('/me')), [401, 401]);
  });

  test('is clean in two instances and all these races with a refresh function that takes care', async (t) => {
    const [ns, tokens] = await expired(t);
    const options = { deduplicateRefresh: false, refresh: carefulRefresh(ns.url, tokens) };
    const [orders, profile] = [makeApi(ns.url, tokens, options), makeApi(ns.url, tokens, options)];
    await ns.lab.fault({ operation: 'me', delay: '1s' });
    await ns.lab.fault({ operation: 'me', hold: 3 });

    const requests = [orders, orders, profile, profile].map((api) => api.get('/me')); // one late, three together
    assert.deepEqual(await statuses(...requests), [200, 200, 200, 200]);
    await ns.lab.expect({ operation: 'refresh', count: { exactly: 1 }, within: '200ms' });
    assert.deepEqual(await ns.lab.findings(), []);
  });
});
