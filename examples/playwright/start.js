// Starts, once for all workers, the hub and the server of the page. Both end with the test run, even a killed one: the
// hub because its standard input closes, the server because it lives in the same process.

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { startHub } from '../node/authhub.js';

const files = {
  '/': ['text/html; charset=utf-8', './app/index.html'],
  '/app.js': ['text/javascript', './app/app.js'],
  '/store.js': ['text/javascript', './app/store.js'],
  '/client.js': ['text/javascript', '../node/client.js'], // what the Node example tests is what the page runs
};

export default async function start() {
  const hub = await startHub();
  const server = createServer(async ({ url }, answer) => {
    const [type, file] = files[new URL(url, 'http://localhost').pathname] ?? [];
    if (!file) return answer.writeHead(404).end();
    answer.writeHead(200, { 'Content-Type': type }).end(await readFile(new URL(file, import.meta.url)));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');

  process.env.HUB_URL = hub.url; // the workers inherit it
  process.env.APP_URL = `http://127.0.0.1:${server.address().port}`;
  return () => {
    server.close();
    server.closeAllConnections();
    hub.stop();
  };
}
