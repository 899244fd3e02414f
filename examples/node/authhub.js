// Starts authhub for a test run and speaks to its lab. Copy this file into your project: it needs Node 18 or newer and
// nothing else.

import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const fromRepository = fileURLToPath(new URL('../../authhub', import.meta.url));

/**
 * Starts the hub on a free port and resolves to { url, stop } once it answers. It ends with stop, and also when this
 * process ends, however that comes about: then its standard input is closed.
 */
export function startHub(binary = process.env.AUTHHUB ?? fromRepository) {
  const flags = ['-addr', '127.0.0.1:0', '-ephemeral', '-lab', '-log', 'off', '-exit-with-stdin'];
  const hub = spawn(binary, flags, { stdio: ['pipe', 'pipe', 'inherit'] });
  return new Promise((resolve, reject) => {
    hub.once('error', () => reject(new Error(`there is no hub at ${binary}: go build makes it, AUTHHUB names another`)));
    hub.once('exit', (status) => reject(new Error(`${binary} ended with status ${status} instead of starting`)));
    createInterface({ input: hub.stdout }).once('line', (url) => {
      for (const handle of [hub, hub.stdin, hub.stdout]) handle.unref(); // it keeps nobody waiting
      resolve({ url, stop: () => hub.stdin.end() });
    });
  });
}

/** A hub within the hub: users, sessions, clock, faults and records of its own. One for each test. */
export class Namespace {
  constructor(hub, name = randomUUID()) {
    this.url = `${hub.url}/ns/${name}`; // what a client takes for the address of its hub
  }

  /** The clock goes on by a duration such as '16m'. */
  advance(duration) {
    return this.lab('PUT', '/clock', { advance: duration });
  }

  /** The next request of an operation fails, waits or gets lost, as fault says. */
  fault(fault) {
    return this.lab('POST', '/faults', fault);
  }

  /** Rejects unless the requests are as expected, within the time given there. */
  expect(expectation) {
    return this.lab('POST', '/expect', expectation);
  }

  /** What came in, oldest first. */
  async requests(operation) {
    return (await this.lab('GET', `/requests${operation ? `?operation=${operation}` : ''}`)).requests;
  }

  /** What the client did wrong: one line a finding, 'rule: sentence'. Empty for a clean one. */
  async findings() {
    return (await this.lab('GET', '/report')).findings.map(({ rule, sentence }) => `${rule}: ${sentence}`);
  }

  delete() {
    return this.lab('DELETE', '', undefined, this.url);
  }

  async lab(method, path, body, base = `${this.url}/lab`) {
    const headers = body && { 'Content-Type': 'application/json' };
    const answer = await fetch(base + path, { method, headers, body: JSON.stringify(body) });
    const text = await answer.text();
    const content = text && JSON.parse(text);
    if (!answer.ok) throw Object.assign(new Error(`${method} ${path}: ${content.detail}`), content);
    return content;
  }
}
