// A client that orval has made from openapi.json logs in, refreshes, and reads the impact.
import { impactFile, login, me, refresh, startRun } from './out/orval.js';

declare const process: { argv: string[] };

// Orval's functions ask for paths; fetch in Node wants addresses.
const fetchPath = globalThis.fetch;
globalThis.fetch = (path, init) => fetchPath(process.argv[2] + String(path), init);

const session = await login({ username: 'demo', password: 'demo-password' });
if (session.status !== 200) throw new Error(`login: ${session.status}`);
const user = await me({ headers: { Authorization: `Bearer ${session.data.access_token}` } });
if (user.status !== 200 || user.data.username !== 'demo') throw new Error(`me is ${JSON.stringify(user)}`);

const next = await refresh({ refresh_token: session.data.refresh_token });
const spent = await refresh({ refresh_token: session.data.refresh_token });
if (next.status !== 200) throw new Error(`refresh: ${next.status}`);
if (spent.status !== 401 || spent.data.code !== 'token_reused') throw new Error(`a spent token was answered ${JSON.stringify(spent)}`);

// Orval 7 would write readings as JSON, so it sends none: the run takes the hub's own.
const run = await startRun(undefined, { interval: '6h' }, { headers: { 'Content-Type': 'application/json' } });
const impact = await impactFile();
if (run.status !== 200 || impact.status !== 200 || impact.data.stations.length === 0) throw new Error('the run gave nothing');
console.log(`orval: logged in as ${user.data.username}, ${impact.data.stations.length} stations`);
