// A client with automatic refresh, held to everything that makes such clients flaky: expiry, the refresh race, lost
// answers, an overloaded hub. Each test has a hub of its own (a namespace), so all of them run at once and none waits
// for a token to expire.
//
//   node --test          with the hub built beforehand: (cd ../.. && go build), or AUTHHUB=/path/to/authhub
//
// Node 20.12 or newer, and nothing else.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { namespaceFor } from './authhub.js';
import { Client, NaiveClient, SessionEnded } from './client.js';

/** Returns a namespace for one test and clients that are logged in there as demo. */
async function arrange(t, ...clients) {
  const ns = namespaceFor(t);
  const made = clients.map((Kind) => new Kind(ns.url));
  for (const client of made) await client.login('demo', 'demo-password');
  return [ns, ...made];
}

describe('a client with automatic refresh', { concurrency: true }, () => {
  test('goes on when the access token has expired', async (t) => {
    const [ns, client] = await arrange(t, Client);
    await ns.lab.advance('16m'); // an access token lives 15 minutes

    assert.equal((await client.me()).username, 'demo');

    const sent = await ns.lab.requests();
    assert.deepEqual(sent.map((r) => [r.operation, r.status, r.code]), [
      ['login', 200, null],
      ['me', 401, 'token_expired'],
      ['refresh', 200, null],
      ['me', 200, null],
    ]);
    assert.deepEqual(await ns.lab.findings(), []);
  });

  test('refreshes once, however many requests find the token expired', async (t) => {
    const [ns, client] = await arrange(t, Client);
    await ns.lab.advance('16m');
    await ns.lab.fault({ operation: 'me', hold: 5 }); // all five get their 401 at the same moment

    const users = await Promise.all(Array.from({ length: 5 }, () => client.me()));

    assert.equal(users.length, 5);
    await ns.lab.expect({ operation: 'refresh', count: { exactly: 1 }, within: '200ms' });
    assert.deepEqual(await ns.lab.findings(), []);
  });

  test('does not refresh again for a 401 that comes late', async (t) => {
    const [ns, client] = await arrange(t, Client);
    await ns.lab.advance('16m');
    await ns.lab.fault({ operation: 'me', delay: '300ms' }); // the first one; the second is long through its refresh by then

    await Promise.all([client.me(), client.me()]);

    await ns.lab.expect({ operation: 'refresh', count: { exactly: 1 }, within: '100ms' });
    assert.deepEqual(await ns.lab.findings(), []);
  });

  test('has to log in again when the answer to a refresh is lost and reuse is strict', async (t) => {
    const [ns, client] = await arrange(t, Client);
    await ns.lab.advance('16m');
    await ns.lab.fault({ operation: 'refresh', drop: 'after' }); // done and committed, but nobody hears of it

    await assert.rejects(client.me(), SessionEnded);

    const [lost, again] = await ns.lab.requests({ operation: 'refresh' });
    assert.deepEqual([lost.status, lost.fault, again.code], [null, 'f1', 'token_reused']);
  });

  test('survives a lost answer where the hub has a grace period for reuse', async (t) => {
    const [ns, client] = await arrange(t, Client);
    await ns.lab.refreshPolicy({ reuse: 'grace', grace: '10s' });
    await ns.lab.advance('16m');
    await ns.lab.fault({ operation: 'refresh', drop: 'after' });

    assert.equal((await client.me()).username, 'demo');

    const [, again] = await ns.lab.requests({ operation: 'refresh' });
    assert.equal(again.status, 200); // the same successors as in the answer that got lost
    assert.deepEqual(await ns.lab.findings(), []);
  });

  test('waits as long as Retry-After says', async (t) => {
    const [ns, client] = await arrange(t, Client);
    await ns.lab.fault({ operation: 'me', status: 503, headers: { 'Retry-After': '1' } });

    assert.equal((await client.me()).username, 'demo');

    assert.deepEqual(await ns.lab.findings(), []);
  });

  test('reports a broken answer instead of taking it for a user', async (t) => {
    const [ns, client] = await arrange(t, Client);
    await ns.lab.fault({ operation: 'me', malformed: true });

    await assert.rejects(client.me(), SyntaxError);
  });

  test('sends nothing with a token of a session that it has ended', async (t) => {
    const [ns, client] = await arrange(t, Client);
    await client.logout();

    await assert.rejects(client.me(), SessionEnded);

    assert.deepEqual(await ns.lab.findings(), []);
  });

  test('asks for a login when the session has been revoked elsewhere', async (t) => {
    const [ns, client] = await arrange(t, Client);
    const [session] = await ns.lab.sessions();
    await ns.lab.revoke(session.id);

    await assert.rejects(client.me(), SessionEnded);

    await assert.rejects(client.me(), SessionEnded); // this one without asking the hub
    assert.equal((await ns.lab.requests({ operation: 'me' })).length, 1);
  });
});

test('a naive client loses its session in the refresh race, and the report says why', async (t) => {
  const [ns, client] = await arrange(t, NaiveClient);
  await ns.lab.advance('16m');
  await ns.lab.fault({ operation: 'refresh', hold: 2 }); // without it the race is won on most days, and lost in production

  const results = await Promise.allSettled([client.me(), client.me()]);

  assert.ok(results.some((r) => r.status === 'rejected' && r.reason.code === 'token_reused'));
  const findings = await ns.lab.findings();
  assert.equal(findings.length, 1);
  assert.match(findings[0], /^two_refreshes: Requests \d+ and \d+ refreshed for the same expiry/);
});
