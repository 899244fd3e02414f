// A client made from openapi.json: what it may send and what it gets are types that tsc checks. .ci/openapi compiles
// it and runs it against a hub.
import createClient from 'openapi-fetch';
import type { components, paths } from './openapi.js';

declare const process: { argv: string[] };
const base = process.argv[2];
const hub = createClient<paths>({ baseUrl: base });

function must<T>(answer: { data?: T; error?: components['schemas']['Problem'] | string; response: Response }): T {
  if (answer.data === undefined) throw new Error(`${answer.response.status} ${JSON.stringify(answer.error)}`);
  return answer.data;
}

const session = must(await hub.POST('/api/authentication/login', { body: { username: 'demo', password: 'demo-password' } }));
const user: components['schemas']['User'] = must(await hub.GET('/api/authentication/me', {
  headers: { Authorization: `Bearer ${session.access_token}` },
}));
if (user.username !== 'demo' || user.role !== 'user') throw new Error(`me is ${JSON.stringify(user)}`);

const next = must(await hub.POST('/api/authentication/refresh', { body: { refresh_token: session.refresh_token } }));
const spent = await hub.POST('/api/authentication/refresh', { body: { refresh_token: session.refresh_token } });
if (spent.error?.code !== 'token_reused') throw new Error(`a spent token was answered ${JSON.stringify(spent)}`);
if (next.access_token === session.access_token) throw new Error('refresh gave the same token');

const run = must(await hub.POST('/api/run-ph-barrier-phase2', { params: { query: { interval: '6h' } } }));
const impact = must(await hub.GET('/api/files/phase2/impact'));
if (run.status !== 'succeeded' || impact.stations.length === 0) throw new Error('the run gave nothing');
console.log(`the generated client logged in as ${user.username} and read the impact on ${impact.stations.length} stations`);
