// Starts authhub for tests and speaks to its lab. It needs Node 18 and no other package.
'use strict';

const { spawn } = require('node:child_process');
const { randomUUID } = require('node:crypto');
const { createInterface } = require('node:readline');

/** Returns the path of the binary: the one that AUTHHUB names, or that of the package of this platform. */
function binary() {
  if (process.env.AUTHHUB) return process.env.AUTHHUB;
  const platform = `${process.platform}-${process.arch}`;
  try {
    return require.resolve(`@authhub/${platform}/authhub${process.platform === 'win32' ? '.exe' : ''}`);
  } catch {
    throw new Error(`authhub: the package @authhub/${platform} is not installed. Install it beside authhub, `
      + 'without --omit=optional, or set AUTHHUB to the path of a binary.');
  }
}

/** Starts a hub on a free port and resolves once it answers. */
async function startHub({ binary: path = binary(), args = [], log = 'off', startTimeout = 10_000 } = {}) {
  const flags = ['-addr', '127.0.0.1:0', '-ephemeral', '-lab', '-exit-with-stdin', '-log', log, ...args];
  const child = spawn(path, flags, { stdio: ['pipe', 'pipe', 'pipe'], windowsHide: true });
  const exited = new Promise((resolve) => child.once('close', resolve));
  child.stdin.on('error', () => {}); // the hub may be gone before its standard input is closed

  const url = await firstLine(child, path, startTimeout);
  child.stdout.resume();
  child.stderr.pipe(process.stderr, { end: false });
  for (const handle of [child, ...child.stdio]) handle.unref(); // a hub keeps no test run from ending
  return new Hub(url, async () => {
    for (const handle of [child, ...child.stdio]) handle.ref();
    child.stdin.end(); // -exit-with-stdin
    await exited;
  });
}

/** Resolves to the base URL, which is the hub's first line on stdout; rejects with what it says on stderr instead. */
function firstLine(child, path, startTimeout) {
  return new Promise((resolve, reject) => {
    let said = '';
    const listen = (text) => { said += text; };
    const fail = (reason) => {
      clearTimeout(timer);
      child.kill();
      reject(new Error(`authhub does not start: ${said.trim() || reason}`));
    };
    const timer = setTimeout(() => fail(`no answer within ${startTimeout} ms`), startTimeout);
    child.stderr.on('data', listen);
    child.once('error', (error) => fail(`${path}: ${error.message}`));
    child.once('close', (status, signal) => fail(`${path} ended with ${signal ?? `status ${status}`}`));
    createInterface({ input: child.stdout }).once('line', (url) => {
      clearTimeout(timer);
      child.stderr.off('data', listen);
      if (said) process.stderr.write(said);
      resolve(url);
    });
  });
}

/** Returns a hub that runs already, for example in a container. */
function connectHub(url, { key } = {}) {
  return new Hub(url, async () => {}, key);
}

class Hub {
  #close;
  #key;

  constructor(url, close, key = process.env.AUTHHUB_LAB_KEY) {
    this.url = url.replace(/\/+$/, '');
    this.lab = new Lab(this.url, key);
    this.#close = close;
    this.#key = key;
  }

  namespace(name = randomUUID()) {
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(name)) {
      throw new TypeError(`${JSON.stringify(name)} is not the name of a namespace: 1 to 64 of A-Z a-z 0-9 _ and -`);
    }
    return new Namespace(this.url, name, this.#key);
  }

  /** Lists the namespaces, the one with the latest request first. */
  async namespaces() {
    const answer = await this.lab.send('GET', `${this.url}/ns`);
    if (!answer.ok) throw await problem(answer, 'GET /ns');
    return (await answer.json()).namespaces;
  }

  close() {
    return this.#close();
  }

  async [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]() {
    await this.close();
  }
}

class Namespace {
  constructor(hub, name, key) {
    this.name = name;
    this.url = `${hub}/ns/${name}`;
    this.page = `${this.url}/`;
    this.lab = new Lab(this.url, key);
  }

  /** Removes the namespace; succeeds too when no request has made it. */
  async delete() {
    const answer = await this.lab.send('DELETE', this.url);
    if (!answer.ok && answer.status !== 404) throw await problem(answer, `DELETE ${this.url}`);
  }

  async [Symbol.asyncDispose ?? Symbol.for('nodejs.asyncDispose')]() {
    await this.delete();
  }
}

/** The test controls of a hub or of a namespace. docs/lab.md describes each operation. */
class Lab {
  #key;

  constructor(base, key) {
    this.url = `${base}/lab`;
    this.#key = key;
  }

  state() { return this.request('GET', ''); }
  reset() { return this.request('POST', '/reset'); }
  snapshot() { return this.request('GET', '/snapshot'); }
  restore(snapshot) { return this.request('PUT', '/snapshot', snapshot); }

  clock(change) { return this.request('PUT', '/clock', change); }
  advance(duration) { return this.clock({ advance: duration }); }

  lifetimes(lifetimes) { return this.request('PUT', '/lifetimes', lifetimes); }
  async users() { return (await this.request('GET', '/users')).users; }
  putUser(username, changes) { return this.request('PUT', `/users/${encodeURIComponent(username)}`, changes); }
  deleteUser(username) { return this.request('DELETE', `/users/${encodeURIComponent(username)}`); }

  refreshPolicy(policy) { return this.request('PUT', '/refresh-policy', policy); }
  dialect() { return this.request('GET', '/dialect'); }
  setDialect(dialect) { return this.request('PUT', '/dialect', typeof dialect === 'string' ? { name: dialect } : dialect); }
  deleteDialect() { return this.request('DELETE', '/dialect'); }
  async sessions() { return (await this.request('GET', '/sessions')).sessions; }
  expire(session, token = 'access') { return this.request('POST', `/sessions/${encodeURIComponent(session)}/expire`, { token }); }
  revoke(session) { return this.request('POST', `/sessions/${encodeURIComponent(session)}/revoke`); }
  mintToken(order) { return this.request('POST', '/tokens', order); }

  fault(fault) { return this.request('POST', '/faults', fault); }
  async faults() { return (await this.request('GET', '/faults')).faults; }
  deleteFaults(id) { return this.request('DELETE', id === undefined ? '/faults' : `/faults/${encodeURIComponent(id)}`); }

  async requests(filter = {}) { return (await this.request('GET', `/requests?${new URLSearchParams(filter)}`)).requests; }
  async expect(expectation) { return (await this.request('POST', '/expect', expectation)).requests; }
  report() { return this.request('GET', '/report'); }
  async findings() { return (await this.report()).findings.map(({ rule, sentence }) => `${rule}: ${sentence}`); }

  /** Returns the requests and the findings as text, a line each: what to print when a test fails. */
  async summary() {
    const [requests, findings] = await Promise.all([this.requests(), this.findings()]);
    const lines = requests.map((r) => [
      `#${r.seq}`, r.method, r.path, r.status ?? 'no answer', r.code, r.token && `${r.token.state} ${r.token.kind} token`, r.fault && `fault ${r.fault}`,
    ].filter(Boolean).join(' '));
    return [...lines, ...findings].join('\n') || 'no request';
  }

  /** Sends a request to the lab, for example request('PUT', '/clock', { advance: '16m' }). */
  async request(method, path, body) {
    const answer = await this.send(method, this.url + path, body);
    if (!answer.ok) throw await problem(answer, `${method} /lab${path}`);
    const text = await answer.text();
    return text ? JSON.parse(text) : undefined;
  }

  send(method, url, body) {
    const headers = { ...(body !== undefined && { 'Content-Type': 'application/json' }), ...(this.#key && { Authorization: `Bearer ${this.#key}` }) };
    return fetch(url, { method, headers, body: JSON.stringify(body) });
  }
}

/** Returns the error for an answer of the hub, with the members of its body (status, code, detail, expected, found). */
async function problem(answer, asked) {
  const content = await answer.json().catch(() => ({ detail: `status ${answer.status}` }));
  return Object.assign(new Error(`${asked}: ${content.detail}`), { status: answer.status }, content);
}

exports.startHub = startHub;
exports.connectHub = connectHub;
exports.binary = binary;
