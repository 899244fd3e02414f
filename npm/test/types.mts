// Compiles, so the types fit how the package is used.

import { connectHub, startHub, type Hub, type Namespace } from 'authhub';

const hub: Hub = await startHub({ args: ['-access-ttl', '1m'], log: 'text' });
const ns: Namespace = hub.namespace();
const { offset_ms } = await ns.lab.advance('16m');
const fault = await ns.lab.fault({ operation: 'refresh', drop: 'after' });
const statuses: (number | null)[] = (await ns.lab.requests({ operation: 'me' })).map((request) => request.status);
await ns.lab.expect({ operation: 'logout', count: { exactly: 1 }, within: '2s' });
console.log(offset_ms + fault.hits, statuses, (await ns.lab.report()).findings[0]?.rule);

// @ts-expect-error there is no such outcome
await ns.lab.fault({ operation: 'refresh', drop: 'sometimes' });
// @ts-expect-error a statement has one count
await ns.lab.expect({ operation: 'logout' });

await connectHub('http://127.0.0.1:8080').close();
await hub.close();
