// The page's users' bad days. playwright.config.js says how to run it.

import { test as base, expect } from '../../npm/playwright.js'; // in your project: from 'authhub/playwright'

const test = base.extend({
  // open() opens the page in a tab; parameters go into its address.
  open: async ({ ns, context }, use) => {
    await use(async (parameters = {}) => {
      const tab = await context.newPage();
      await tab.goto(`${process.env.APP_URL}/?${new URLSearchParams({ hub: ns.url, ...parameters })}`);
      return tab;
    });
  },
});

async function logIn(tab, password = 'demo-password') {
  await tab.getByLabel('User name').fill('demo');
  await tab.getByLabel('Password').fill(password);
  await tab.getByRole('button', { name: 'Log in' }).click();
}

const ask = (tab) => tab.getByRole('button', { name: 'Who am I?' }).click();
const says = (tab, text) => expect(tab.getByRole('status')).toHaveText(text);

test('logs in and out, leaving nothing behind', async ({ ns, open }) => {
  const tab = await open();
  await logIn(tab);
  await says(tab, 'You are Demo User.');
  await tab.getByRole('button', { name: 'Log out' }).click();
  await says(tab, 'Goodbye.');
  await tab.reload();
  await says(tab, 'Please log in.');
  expect(await ns.lab.findings()).toEqual([]);
});

test('says so when the password is wrong', async ({ open }) => {
  const tab = await open();
  await logIn(tab, 'not the password');
  await says(tab, 'Wrong user name or password.');
});

test('does not bother anyone when the access token expires over lunch', async ({ ns, open }) => {
  const tab = await open();
  await logIn(tab);
  await says(tab, 'You are Demo User.');
  await ns.lab.advance('1h');
  await ask(tab);
  await says(tab, 'You are Demo User.');
  expect(await ns.lab.findings()).toEqual([]);
});

test('asks for a login after the holidays', async ({ ns, open }) => {
  const tab = await open();
  await logIn(tab);
  await says(tab, 'You are Demo User.');
  await ns.lab.advance('200h'); // a refresh token lives a week
  await ask(tab);
  await says(tab, 'Please log in.');
});

test('keeps both tabs logged in when they wake up together', async ({ ns, open }) => {
  const first = await open();
  await logIn(first);
  await says(first, 'You are Demo User.');
  const second = await open();
  await says(second, 'You are Demo User.');

  await ns.lab.advance('1h');
  await ns.lab.fault({ operation: 'me', hold: 2, within: '20s' }); // both learn at the same moment that the token has expired
  await Promise.all([ask(first), ask(second)]);

  await says(first, 'You are Demo User.');
  await says(second, 'You are Demo User.');
  await ns.lab.expect({ operation: 'refresh', count: { exactly: 1 }, within: '200ms' });
  expect(await ns.lab.findings()).toEqual([]);
});

test('would lose the session if its tabs refreshed without regard to each other', async ({ ns, open }) => {
  const first = await open({ tabs: 'alone' });
  await logIn(first);
  await says(first, 'You are Demo User.');
  const second = await open({ tabs: 'alone' });
  await says(second, 'You are Demo User.');

  await ns.lab.advance('1h');
  await ns.lab.fault({ operation: 'refresh', hold: 2, within: '20s' });
  await Promise.all([ask(first), ask(second)]);

  await ns.lab.expect({ operation: 'refresh', count: { at_least: 2 } });
  expect((await ns.lab.findings()).map((finding) => finding.split(':')[0])).toEqual(['two_refreshes']);
  expect(await ns.lab.sessions()).toEqual([]);
});

test('admits a failure and works again after it', async ({ ns, open }) => {
  const tab = await open();
  await logIn(tab);
  await says(tab, 'You are Demo User.');
  await ns.lab.fault({ operation: 'me', status: 502, headers: { 'Content-Type': 'text/html' }, body: '<h1>Bad Gateway</h1>' });
  await ask(tab);
  await says(tab, 'That did not work. Please try again.');
  await ask(tab);
  await says(tab, 'You are Demo User.');
});

// A browser repeats a request when a connection that it had kept open closes without an answer: Chromium even a POST,
// within a millisecond, and neither the page nor its developer tools hear of it. Only the hub's record shows both.
for (const [reuse, outcome] of [['strict', 'Please log in.'], ['grace', 'You are Demo User.']]) {
  test(`meets Chromium's own repetition of a lost refresh: ${reuse} reuse`, async ({ ns, open }) => {
    const tab = await open();
    const sent = [];
    tab.on('request', (request) => request.url().endsWith('/refresh') && sent.push(request.method()));
    await logIn(tab);
    await says(tab, 'You are Demo User.');
    await ns.lab.refreshPolicy(reuse === 'grace' ? { reuse, grace: '10s' } : { reuse });

    await ns.lab.advance('1h');
    await ns.lab.fault({ operation: 'refresh', drop: 'after' });
    await ask(tab);

    await says(tab, outcome);
    expect(sent).toEqual(['POST']);
    expect(await ns.lab.requests({ operation: 'refresh' })).toHaveLength(2);
  });
}
