// What @supabase/auth-js does on the bad days of a back end. The hub speaks Supabase's API; auth-js is unmodified.
//
//   npm ci && npm test          with the hub built beforehand: (cd ../.. && go build), or AUTHHUB=/path/to/authhub

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { GoTrueClient } from '@supabase/auth-js';
import { namespaceFor } from '../node/authhub.js';

/** A namespace that speaks Supabase's API, and an auth-js client for it that has signed in. */
async function signedIn(t) {
  mock.timers.enable({ apis: ['Date'], now: performance.timeOrigin + performance.now() });
  t.after(() => mock.timers.reset());
  const ns = namespaceFor(t);
  await ns.lab.setDialect('supabase');
  const kept = new Map();
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: (key) => kept.delete(key) };
  const auth = client(ns, storage);
  const { error } = await auth.signInWithPassword({ email: 'demo@example.test', password: 'demo-password' });
  assert.equal(error, null);
  return { ns, auth, storage };
}

function client(ns, storage) {
  return new GoTrueClient({ url: `${ns.url}/auth/v1`, headers: { apikey: 'any key' }, storage, storageKey: ns.name, autoRefreshToken: false });
}

/** Lets time pass for the hub and for the client. */
async function pass(ns, seconds) {
  await ns.lab.advance(`${seconds}s`);
  mock.timers.setTime(Date.now() + seconds * 1000);
}

const rules = (findings) => findings.map((finding) => finding.split(':')[0]);

test('five calls after the access token has expired share one refresh', async (t) => {
  const { ns, auth } = await signedIn(t);
  await pass(ns, 16 * 60);
  const users = await Promise.all(Array.from({ length: 5 }, () => auth.getUser()));
  assert.ok(users.every(({ data }) => data.user.email === 'demo@example.test'));
  assert.equal((await ns.lab.requests({ operation: 'refresh' })).length, 1);
  assert.deepEqual(await ns.lab.findings(), []);
});

test('refreshSession() in the last 90 seconds of a token refreshes twice, which the report notes', async (t) => {
  const { ns, auth } = await signedIn(t);
  await pass(ns, 14 * 60);
  assert.equal((await auth.refreshSession()).error, null);
  assert.equal((await ns.lab.requests({ operation: 'refresh' })).length, 2);
  const { findings, notes } = await ns.lab.report();
  assert.deepEqual(findings, []);
  assert.deepEqual(notes.map(({ rule }) => rule), ['early_refresh']); // the first pair that it got was never used
});

test('two clients over one storage, such as two server processes, refresh with one token', async (t) => {
  const { ns, auth, storage } = await signedIn(t);
  const other = client(ns, storage);
  await other.initialize();
  await pass(ns, 16 * 60);
  await ns.lab.fault({ operation: 'refresh', hold: 2 }); // lets both go together
  await Promise.all([auth.getUser(), other.getUser()]); // one of them may be served before the other's refresh arrives
  assert.deepEqual(rules(await ns.lab.findings()), ['two_refreshes']);
  for (const either of [auth, other]) {
    assert.equal((await either.getUser()).data.user, null); // the second use of the token has ended the session for both
  }
});

test('a lost answer signs the user out, unless the hub is as lenient as Supabase', async (t) => {
  for (const [policy, survives] of [[{ reuse: 'strict' }, false], [{ reuse: 'grace', grace: '10s' }, true]]) {
    const { ns, auth } = await signedIn(t);
    await ns.lab.refreshPolicy(policy);
    await pass(ns, 16 * 60);
    await ns.lab.fault({ operation: 'refresh', drop: 'after' });
    const { data } = await auth.getUser();
    assert.equal(data.user !== null, survives, policy.reuse);
    assert.deepEqual(await ns.lab.findings(), []);
    mock.timers.reset();
  }
});

test('a session that is revoked ends here too', async (t) => {
  const { ns, auth } = await signedIn(t);
  const [session] = await ns.lab.sessions();
  await ns.lab.revoke(session.id);
  const { data, error } = await auth.getUser();
  assert.equal(data.user, null);
  assert.equal(error.name, 'AuthSessionMissingError');
  assert.deepEqual(await ns.lab.findings(), []);
});
