// Real clients in their plain life and in the refresh race, and the true verdict on each. AUTHHUB names the binary.

import { test, before, after } from 'node:test';
import assert from 'node:assert/strict';
import hubs from '../../../../npm/index.js';
import * as clients from './clients.js';

const repeats = Number(process.env.REPEATS ?? 10);
let hub;
before(async () => { hub = await hubs.startHub(); });
after(() => hub.close());

// Of the callers in the race: the rule with the operations of its evidence. None: a clean client.
const clean = { findings: [], notes: [] };
const everyCaller = { findings: ['two_refreshes refresh*5'], notes: [] };
const fourLeft = { findings: [], notes: ['not_repeated me*4 refresh*1'] };

const expected = {
  axiosAuthRefresh: fourLeft,
  failedQueue: clean,
  naiveAxios: everyCaller,
  kyNaive: everyCaller,
  kyShared: clean,
  gotNaive: everyCaller,
  gotShared: clean,
  ofetchShared: clean,
  wretchNaive: everyCaller,
  wretchShared: clean,
  rtkQuery: everyCaller,
  rtkQueryMutex: clean,
  alova: clean,
  simpleOauth2: clean,
};

for (const [name, verdict] of Object.entries(expected)) {
  test(`${name}: a plain life`, () => repeatedly(async (ns, tokens) => {
    const ask = clients[name](ns.url, tokens);
    for (let i = 0; i < 3; i++) {
      assert.equal(await ask(), 200);
      await ns.lab.advance('16m');
      assert.equal(await ask(), 200);
    }
    assert.deepEqual(await told(ns), clean);
  }));

  test(`${name}: the race`, () => repeatedly(async (ns, tokens) => {
    const ask = clients[name](ns.url, tokens);
    await race(ns, ask);
    assert.deepEqual(await told(ns), verdict);
  }));
}

test('axiosAuthRefresh with deduplicateRefresh: false: the race', () => repeatedly(async (ns, tokens) => {
  await race(ns, clients.axiosAuthRefresh(ns.url, tokens, { deduplicateRefresh: false }));
  assert.deepEqual(await told(ns), clean);
}));

test('simpleOauth2, every caller for itself: the race', () => repeatedly(async (ns, tokens) => {
  await race(ns, clients.simpleOauth2(ns.url, tokens, { together: false }));
  assert.deepEqual(await told(ns), everyCaller);
}));

test('wretchHammer repeats a 401 without a refresh', () => repeatedly(async (ns, tokens) => {
  await ns.lab.advance('16m');
  await clients.wretchHammer(ns.url, tokens)();
  assert.deepEqual((await told(ns)).findings, ['no_refresh_after_expiry me*9', 'repeated_failure me*9']);
}));

// axios-jwt goes by the expiry in the token and by the machine's clock, so its token is given a short life. It keeps its
// tokens in a variable of the module, so one story follows the other.
test('axiosJwt: a token that is about to run out, and five callers', () => repeatedly(async (ns) => {
  const ask = clients.axiosJwt(ns.url, await logIn(ns, { expires_in: 3 }));
  assert.deepEqual(await Promise.all([ask(), ask(), ask(), ask(), ask()]), [200, 200, 200, 200, 200]);
  assert.deepEqual((await told(ns)).findings, []);
}, 1));

for (const [policy, name] of [[{ reuse: 'allow' }, 'allowed'], [{ reuse: 'grace', grace: '10s' }, 'forgiven for a while']]) {
  test(`every caller refreshes, where reuse is ${name}`, () => repeatedly(async (ns, tokens) => {
    await ns.lab.refreshPolicy(policy);
    await race(ns, clients.naiveAxios(ns.url, tokens));
    assert.deepEqual((await told(ns)).findings, []);
  }));
}

// repeatedly runs a story in namespaces of their own, several at a time.
async function repeatedly(story, atATime = 3) {
  const left = Array.from({ length: repeats });
  await Promise.all(Array.from({ length: atATime }, async () => {
    while (left.length > 0) {
      left.pop();
      const ns = hub.namespace();
      try {
        await story(ns, await logIn(ns));
      } catch (error) {
        throw new Error(`${error.message}\n${await ns.lab.summary()}`, { cause: error });
      } finally {
        await ns.delete();
      }
    }
  }));
}

async function logIn(ns, members = {}) {
  const answer = await fetch(`${ns.url}/api/authentication/login`, {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ username: 'demo', password: 'demo-password', ...members }),
  });
  assert.equal(answer.status, 200);
  return answer.json();
}

// race is the README's: five callers meet the end of the access token together. The refresh takes its time: a client that
// lets callers share a refresh under way would rightly be told of a second one if its last 401 came after the first.
async function race(ns, ask) {
  await ns.lab.advance('16m');
  await ns.lab.fault({ operation: 'refresh', delay: '100ms', times: 0 });
  await ns.lab.fault({ operation: 'me', hold: 5 });
  await Promise.all([ask(), ask(), ask(), ask(), ask()]);
}

// told spells the report: each rule with the operations that show it.
async function told(ns) {
  await ns.lab.advance('3s'); // nothing is open any more
  const operations = new Map((await ns.lab.requests()).map((r) => [r.seq, r.operation]));
  const { findings, notes } = await ns.lab.report();
  const spell = ({ rule, seqs }) => {
    const counts = new Map();
    for (const seq of seqs) counts.set(operations.get(seq), (counts.get(operations.get(seq)) ?? 0) + 1);
    return [rule, ...[...counts].map(([name, n]) => `${name}*${n}`)].join(' ');
  };
  return { findings: findings.map(spell), notes: notes.map(spell) };
}
