#!/usr/bin/env node
// npx authhub: runs the binary of this platform with the same arguments, standard streams and exit status.
'use strict';

const { spawn } = require('node:child_process');
const { binary } = require('../index.js');

let hub;
try {
  hub = spawn(binary(), process.argv.slice(2), { stdio: 'inherit' });
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
hub.on('error', (error) => { console.error(`authhub: ${error.message}`); process.exitCode = 1; });
hub.on('exit', (status, signal) => { process.exitCode = status ?? (signal ? 1 : 0); });
// A terminal sends an interrupt to both processes; other signals reach this one alone.
process.on('SIGINT', () => {});
for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => hub.kill(signal));
