// Compiles, so the types of the fixtures fit how they are used.

import { expect, test as base } from 'authhub/playwright';

const test = base.extend<{ path: string }>({
  path: async ({ ns }, use) => use(new URL(ns.url).pathname),
});

test('types', async ({ page, ns, authhub, path }) => {
  await page.goto(ns.page);
  await ns.lab.advance('16m');
  expect(await ns.lab.findings()).toEqual([]);
  expect(authhub.namespace('other').url + path).toContain('/ns/');
  // @ts-expect-error there is no such fixture's member
  await ns.advance('16m');
});
