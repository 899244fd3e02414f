// A page that keeps its session in an HttpOnly cookie, in Chromium, against a hub that speaks the dialect "cookie".
//
//   npm ci && npm test          with the hub built beforehand: (cd ../.. && go build), or AUTHHUB=/path/to/authhub
//
// It uses the system's Chromium; CHROMIUM names another one. No browser is downloaded.

import { fileURLToPath } from 'node:url';
import { defineConfig } from '@playwright/test';

process.env.AUTHHUB ??= fileURLToPath(new URL('../../authhub', import.meta.url)); // the workers inherit it

export default defineConfig({
  testDir: '.',
  outputDir: 'node_modules/.results',
  globalSetup: './start.js',
  fullyParallel: true,
  workers: 2,
  timeout: 30_000,
  expect: { timeout: 10_000 },
  reporter: 'list',
  use: {
    launchOptions: {
      executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
    },
  },
});
