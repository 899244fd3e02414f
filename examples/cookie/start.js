// Starts the server of the page, once for all workers. Its host is that of the hub: browsers send cookies within a site.

import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';

const files = {
  '/': ['text/html; charset=utf-8', './app/index.html'],
  '/app.js': ['text/javascript', './app/app.js'],
};

export default async function start() {
  const server = createServer(async ({ url }, answer) => {
    const [type, file] = files[new URL(url, 'http://localhost').pathname] ?? [];
    if (!file) return answer.writeHead(404).end();
    answer.writeHead(200, { 'Content-Type': type }).end(await readFile(new URL(file, import.meta.url)));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');

  process.env.APP_URL = `http://127.0.0.1:${server.address().port}`; // the workers inherit it
  return () => {
    server.close();
    server.closeAllConnections();
  };
}
