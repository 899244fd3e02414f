// Two OAuth 2.0 libraries, unmodified, against a hub that speaks OAuth 2.0: what they leave to their caller, and the cure.
//
//   npm ci && npm test          with the hub built beforehand: (cd ../.. && go build), or AUTHHUB=/path/to/authhub

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as openid from 'openid-client';
import { ResourceOwnerPassword } from 'simple-oauth2';
import { namespaceFor } from '../node/authhub.js';

const rules = (findings) => findings.map((finding) => finding.split(':')[0]);

async function oauth2(t) {
  const ns = namespaceFor(t);
  await ns.lab.setDialect('oauth2');
  return ns;
}

/** A token of simple-oauth2 that its client takes for expired at once, as after the whole lifetime. */
async function expired(ns) {
  const { origin, pathname } = new URL(ns.url);
  const client = new ResourceOwnerPassword({
    client: { id: 'app', secret: 'any secret' },
    auth: { tokenHost: origin, tokenPath: `${pathname}/oauth/token`, revokePath: `${pathname}/oauth/revoke` },
  });
  const token = await client.getToken({ username: 'demo', password: 'demo-password' });
  await ns.lab.advance('16m');
  return token;
}

test('simple-oauth2: callers that each refresh end the session', async (t) => {
  const ns = await oauth2(t);
  const token = await expired(ns);
  await ns.lab.fault({ operation: 'refresh', hold: 5 }); // lets five go together
  const results = await Promise.allSettled(Array.from({ length: 5 }, () => token.refresh()));
  assert.equal(results.filter(({ status }) => status === 'fulfilled').length, 1);
  assert.deepEqual(rules(await ns.lab.findings()), ['two_refreshes']);
});

test('simple-oauth2: callers that share one refresh', async (t) => {
  const ns = await oauth2(t);
  const token = await expired(ns);
  let running = null;
  const refresh = () => (running ??= token.refresh().finally(() => { running = null; }));
  const tokens = await Promise.all(Array.from({ length: 5 }, refresh));
  assert.equal(new Set(tokens.map(({ token: { access_token } }) => access_token)).size, 1);
  assert.deepEqual(await ns.lab.findings(), []);
});

test('openid-client: discovery, a wrong password, introspection, revocation', async (t) => {
  const ns = await oauth2(t);
  const config = await openid.discovery(new URL(ns.url), 'app', undefined, openid.None(),
    { algorithm: 'oauth2', execute: [openid.allowInsecureRequests] });
  await assert.rejects(openid.genericGrantRequest(config, 'password', { username: 'demo', password: 'wrong' }), { error: 'invalid_grant' });
  const tokens = await openid.genericGrantRequest(config, 'password', { username: 'demo', password: 'demo-password' });
  assert.equal((await openid.fetchUserInfo(config, tokens.access_token, 'user-demo')).email, 'demo@example.test');
  await openid.tokenRevocation(config, tokens.refresh_token);
  assert.equal((await openid.tokenIntrospection(config, tokens.access_token)).active, false);
  assert.deepEqual(await ns.lab.findings(), []);
});
