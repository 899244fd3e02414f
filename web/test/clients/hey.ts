// A client that @hey-api/openapi-ts has made from openapi.json logs in, refreshes, and reads the impact.
import { client } from './out/hey/client.gen.js';
import { impactFile, login, me, refresh, startRun } from './out/hey/sdk.gen.js';
import type { Impact } from './out/hey/types.gen.js';

declare const process: { argv: string[] };
client.setConfig({ baseUrl: process.argv[2] });

const { data: session } = await login({ body: { username: 'demo', password: 'demo-password' }, throwOnError: true });
const { data: user } = await me({ auth: session.access_token, throwOnError: true });
if (user.username !== 'demo' || user.role !== 'user') throw new Error(`me is ${JSON.stringify(user)}`);

await refresh({ body: { refresh_token: session.refresh_token }, throwOnError: true });
const { error } = await refresh({ body: { refresh_token: session.refresh_token } });
if (error?.code !== 'token_reused') throw new Error(`a spent token was answered ${JSON.stringify(error)}`);

await startRun({ query: { interval: '6h' }, throwOnError: true });
const impact = (await impactFile({ throwOnError: true })).data as Impact; // a part of it (206) has no type
if (impact.stations.length === 0) throw new Error('the run gave nothing');
console.log(`hey-api: logged in as ${user.username}, ${impact.stations.length} stations`);
