// What becomes of a session in a cookie. playwright.config.js says how to run it.

import { test as base, expect } from '../../npm/playwright.js'; // in your project: from 'authhub/playwright'

const test = base.extend({
  // open() opens the page in a tab; parameters go into its address.
  open: async ({ ns, context }, use) => {
    await ns.lab.setDialect('cookie');
    await use(async (parameters = {}) => {
      const tab = await context.newPage();
      await tab.goto(`${process.env.APP_URL}/?${new URLSearchParams({ hub: ns.url, ...parameters })}`);
      return tab;
    });
  },
});

const logIn = (tab) => tab.getByRole('button', { name: 'Log in' }).click();
const says = (tab, text) => expect(tab.getByRole('status')).toHaveText(text);
const rules = (findings) => findings.map((finding) => finding.split(':')[0]);

test('a reload finds the session again, and no script finds the token', async ({ ns, open, context }) => {
  const tab = await open();
  await says(tab, 'Please log in.');
  await logIn(tab);
  await says(tab, 'You are Demo User.');
  await tab.reload();
  await says(tab, 'You are Demo User.');

  expect(await tab.evaluate(() => document.cookie)).toBe('');
  const [cookie] = await context.cookies();
  expect(cookie).toMatchObject({ name: 'refresh_token', httpOnly: true, sameSite: 'Lax', path: `/ns/${ns.name}/api/authentication` });

  await tab.getByRole('button', { name: 'Log out' }).click();
  await says(tab, 'Please log in.');
  expect(await context.cookies()).toEqual([]);
  await tab.reload();
  await says(tab, 'Please log in.');
  expect(await ns.lab.findings()).toEqual([]);
});

/** Opens two tabs of one session that refresh at once, and resolves to what they say. */
async function twoTabs(ns, open, parameters) {
  const first = await open(parameters);
  await logIn(first);
  await says(first, 'You are Demo User.');
  await ns.lab.advance('16m');
  await ns.lab.fault({ operation: 'refresh', hold: 2, within: parameters?.lock ? '1s' : '20s' }); // lets both go together
  const tabs = await Promise.all([open(parameters), open(parameters)]);
  for (const tab of tabs) await expect(tab.getByRole('status')).not.toHaveText('…');
  return Promise.all(tabs.map((tab) => tab.getByRole('status').textContent()));
}

test('two tabs that wake up together send the same cookie, which ends the session', async ({ ns, open }) => {
  const said = await twoTabs(ns, open);
  expect(said).toContain('Please log in.');
  expect(rules(await ns.lab.findings())).toEqual(['two_refreshes']);
});

test('with a lock they refresh one after the other', async ({ ns, open }) => {
  expect(await twoTabs(ns, open, { lock: 'yes' })).toEqual(['You are Demo User.', 'You are Demo User.']);
  expect(await ns.lab.findings()).toEqual([]);
});
