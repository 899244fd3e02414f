// What the installed package does. .ci/npm runs it in an empty folder with nothing but the packed files.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'node:test';
import { binary, connectHub, startHub } from 'authhub';

const answers = (url) => fetch(`${url}/healthz`).then((answer) => answer.ok, () => false);

async function logIn(ns) {
  const body = new URLSearchParams({ username: 'demo', password: 'demo-password' });
  const answer = await fetch(`${ns.url}/api/authentication/login`, { method: 'POST', body });
  assert.equal(answer.status, 200);
  return answer.json();
}

const me = (ns, { access_token }) => fetch(`${ns.url}/api/authentication/me`, { headers: { Authorization: `Bearer ${access_token}` } });

async function hubFor(t, options) {
  const hub = await startHub(options);
  t.after(() => hub.close());
  return hub;
}

test('a hub answers until it is closed', async () => {
  const hub = await startHub();
  assert.ok(await answers(hub.url));
  await hub.close();
  assert.ok(!await answers(hub.url));
  await hub.close(); // a second time does nothing
});

test('it is the same module for require', async (t) => {
  const hub = await createRequire(import.meta.url)('authhub').startHub();
  t.after(() => hub.close());
  assert.ok(await answers(hub.url));
});

test('namespaces do not meet', async (t) => {
  const hub = await hubFor(t);
  const [one, other] = [hub.namespace(), hub.namespace('other')];
  const session = await logIn(one);
  assert.equal((await me(one, session)).status, 200);
  assert.equal((await me(other, session)).status, 401);
  assert.deepEqual((await hub.namespaces()).map(({ name }) => name).sort(), [one.name, 'other'].sort());
  await one.delete();
  await one.delete(); // a second time does nothing
  assert.throws(() => hub.namespace('no/slash'), TypeError);
});

test('the lab helpers do what they say', async (t) => {
  const ns = (await hubFor(t)).namespace();
  const { lab } = ns;
  const session = await logIn(ns);
  const saved = await lab.snapshot();
  await lab.advance('16m');
  assert.equal((await me(ns, session)).status, 401);
  assert.match(await lab.summary(), /#2 GET \/api\/authentication\/me 401 token_expired expired access token/);
  assert.match((await lab.findings())[0], /^no_refresh_after_expiry: /);

  await lab.restore(saved);
  assert.equal((await me(ns, session)).status, 200);
  assert.deepEqual(await lab.findings(), []);

  const fault = await lab.fault({ operation: 'me', status: 503 });
  assert.equal((await me(ns, session)).status, 503);
  assert.equal((await lab.faults()).find(({ id }) => id === fault.id).hits, 1);
  await lab.deleteFaults();

  const [live] = await lab.sessions();
  await lab.expire(live.id);
  assert.equal((await me(ns, session)).status, 401);
  await lab.revoke(live.id);
  assert.deepEqual(await lab.sessions(), []);

  const minted = await lab.mintToken({ user: 'demo' });
  assert.equal((await me(ns, { access_token: minted.token })).status, 200);
  assert.equal((await lab.refreshPolicy({ reuse: 'allow' })).reuse, 'allow');
  assert.equal((await lab.expect({ operation: 'me', status: 200, count: { at_least: 2 } })).length, 2);
  assert.equal((await lab.requests({ operation: 'me', status: 503 })).length, 1);

  await lab.lifetimes({ access: '2s' });
  assert.equal((await logIn(ns)).expires_in, 2);
  assert.equal((await lab.putUser('kim', { password: 'a good password', role: 'admin' })).role, 'admin');
  await lab.putUser('demo', { disabled: true });
  assert.deepEqual((await lab.users()).filter((user) => user.disabled).map((user) => user.username).sort(), ['demo', 'disabled']);
  await lab.deleteUser('kim');
  await lab.setDialect('oauth2');
  const wrong = await fetch(`${ns.url}/oauth/token`, { method: 'POST', body: new URLSearchParams({ grant_type: 'none' }) });
  assert.equal((await wrong.json()).error, 'unsupported_grant_type');

  await lab.reset();
  assert.equal((await lab.state()).policy.reuse, 'strict');
});

test('a refused request of the lab says why', async (t) => {
  const { lab } = (await hubFor(t)).namespace();
  await assert.rejects(lab.fault({ operation: 'me', dleay: '1s' }), { status: 422, message: /dleay/ });
  await assert.rejects(lab.expect({ count: { at_least: 1 }, within: '10ms' }), { code: 'expectation_failed', found: 0 });
});

test('flags reach the hub', async (t) => {
  const ns = (await hubFor(t, { args: ['-access-ttl', '1m'] })).namespace();
  assert.equal((await logIn(ns)).expires_in, 60);
});

test('a hub that does not start says why', async () => {
  await assert.rejects(startHub({ args: ['-addr', 'nowhere'] }), /does not start: .*-addr/);
  await assert.rejects(startHub({ binary: './no-such-file' }), /no-such-file/);
});

test('connectHub uses a hub that runs already, and leaves it running', async (t) => {
  const hub = await hubFor(t);
  const connected = connectHub(`${hub.url}/`);
  await logIn(connected.namespace());
  await connected.close();
  assert.ok(await answers(hub.url));
});

test('the hub ends with its parent, however that ends, and keeps no parent from ending', async () => {
  const script = `import('authhub').then(async ({ startHub }) => { console.log((await startHub()).url); WAIT });`;
  const parent = (wait) => spawn(process.execPath, ['-e', script.replace('WAIT', wait)], { stdio: ['ignore', 'pipe', 'inherit'] });
  for (const [wait, end] of [['', () => {}], ['setInterval(() => {}, 1000)', (child) => child.kill('SIGKILL')]]) {
    const child = parent(wait);
    const [url] = await once(createInterface({ input: child.stdout }), 'line');
    end(child);
    await once(child, 'exit');
    for (let left = 100; await answers(url); left--) {
      assert.ok(left > 0, 'the hub outlives its parent');
      await sleep(50);
    }
  }
});

test('npx authhub passes arguments, exit status and signals on', async () => {
  const run = (...args) => spawn(process.execPath, ['node_modules/authhub/bin/authhub.js', ...args], { stdio: ['ignore', 'pipe', 'ignore'] });
  assert.deepEqual(await once(run('-no-such-flag'), 'exit'), [2, null]);
  const hub = run('-addr', '127.0.0.1:0', '-ephemeral');
  const [url] = await once(createInterface({ input: hub.stdout }), 'line');
  assert.ok(await answers(url));
  hub.kill('SIGTERM');
  assert.deepEqual(await once(hub, 'exit'), [0, null]);
  assert.ok(!await answers(url));
});

test('the binary is the package of this platform', () => {
  assert.match(binary(), new RegExp(`node_modules.@authhub.${process.platform}-${process.arch}.authhub`));
});
