// A hub for the test run and a namespace for each test, with node:test. Copy this file into your project.
//
// It uses the binary that go build makes in the repository's root, or the one that AUTHHUB names, or, with
// AUTHHUB_URL=http://127.0.0.1:8080, a hub that runs already. Node 20.12 or newer.

import { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connectHub, startHub } from '../../npm/index.js'; // in your project: from 'authhub'

process.env.AUTHHUB ??= fileURLToPath(new URL('../../authhub', import.meta.url)); // not needed in your project

let hub;
before(async () => { hub = process.env.AUTHHUB_URL ? connectHub(process.env.AUTHHUB_URL) : await startHub(); });
after(() => hub.close());

/** Returns a namespace for the test t. It is deleted when the test passes; else what it received is printed. */
export function namespaceFor(t) {
  const ns = hub.namespace();
  t.after(async () => {
    if (!t.error) return ns.delete();
    console.error(`${t.name}: the hub received, as ${ns.page} shows while it runs:\n${await ns.lab.summary()}`);
  });
  return ns;
}
