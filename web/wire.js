// Every request of the page goes through send, which keeps the latest exchanges and shows one of them:
// what was asked, what came back, and the same request as a curl line.
import { h, $, say, copyButton, size } from './dom.js';

const kept = 12;
const bodyShown = 6000; // characters of an answer drawn in the panel
const exchanges = [];
let shown = null;
let reachable = null;
const watchers = [];

// onReach calls f(true) when the hub begins to answer and f(false) when it no longer does.
export const onReach = f => watchers.push(f);

// address is absolute, for a path relative to the page ("api/…"), which may be served under /ns/NAME/.
export const address = path => new URL(path, document.baseURI).href;

// send asks the hub and never throws: the result has ok, status, code, data (parsed JSON or null), text, headers, ms.
// status is 0 when no answer came. quiet leaves the exchange out of the panel (for polling). cookies sends those that
// the browser has for the hub.
export async function send(method, path, { token, json, form, body, type, headers = {}, fileName, quiet, cookies } = {}) {
  const sent = { ...headers };
  if (token) sent.Authorization = `Bearer ${token}`;
  if (json !== undefined) sent['Content-Type'] = 'application/json';
  if (form !== undefined) sent['Content-Type'] = 'application/x-www-form-urlencoded';
  if (type) sent['Content-Type'] = type;
  const x = { method, path, url: address(path), sent, asked: form ?? (json && JSON.stringify(json)), fileName: body ? fileName : null, at: new Date() };
  const began = performance.now();
  try {
    const res = await fetch(x.url, { method, headers: sent, body: x.asked ?? body, credentials: cookies ? 'same-origin' : 'omit' });
    x.text = await res.text();
    Object.assign(x, { ok: res.ok, status: res.status, title: res.statusText, headers: [...res.headers] });
  } catch (err) {
    Object.assign(x, { ok: false, status: 0, title: 'no answer', headers: [], text: '', cut: String(err.message ?? err) });
  }
  x.ms = performance.now() - began;
  x.data = parse(x.text);
  x.code = x.ok ? null : x.data?.code ?? null;
  if (!quiet) record(x);
  reach(x);
  return x;
}

// problem puts an unsuccessful exchange in words.
export function problem(x) {
  if (x.status === 0) return 'The hub gave no answer: the connection was refused or cut.';
  const detail = x.data?.detail ?? sentence(x.data) ?? `The hub answered ${x.status}${x.ok ? ' with a body that is not JSON' : ''}.`;
  const more = (x.data?.errors ?? []).filter(e => !detail.includes(e.detail)).map(e => `${e.field}: ${e.detail}`);
  return [detail, ...more].join('; ');
}

// sentence returns the first text of several words in an answer: what a dialect says for people.
function sentence(data) {
  if (typeof data === 'string') return data.includes(' ') ? data : undefined;
  if (data === null || typeof data !== 'object') return undefined;
  return Object.values(data).map(sentence).find(text => text !== undefined);
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// One cut connection may be a fault made on purpose, so the hub counts as gone only when /healthz is out of reach too.
async function reach(x) {
  let here = x.status > 0;
  if (!here && x.path !== 'healthz') here = (await send('GET', 'healthz', { quiet: true })).status > 0;
  if (here === reachable) return;
  reachable = here;
  watchers.forEach(f => f(here));
}

// record puts an exchange into the panel, as send does unless told to be quiet.
export function record(x) {
  exchanges.unshift(x);
  exchanges.length = Math.min(exchanges.length, kept);
  show(x);
  const outcome = x.status ? `${x.status} ${x.code ?? x.title}` : 'no answer';
  say(`${x.method} ${x.path}: ${outcome}`);
}

// curl is the exchange's request as a line for a POSIX shell.
function curl(x) {
  const quote = text => `'${text.replaceAll("'", "'\\''")}'`;
  const parts = ['curl -i'];
  if (x.method !== 'GET') parts.push(`-X ${x.method}`);
  for (const [name, value] of Object.entries(x.sent)) parts.push(`-H ${quote(`${name}: ${value}`)}`);
  if (x.asked !== undefined) parts.push(`-d ${quote(x.asked)}`);
  if (x.fileName) parts.push(`--data-binary ${quote(`@${x.fileName}`)}`);
  return [...parts, quote(x.url)].join(' ');
}

export const tone = status => (status === 0 || status >= 500 ? 'bad' : status >= 400 ? 'warn' : 'good');

function show(x) {
  shown = x;
  const path = x.path.split('?')[0];
  $('exchange').replaceChildren(...[
    h('div', { class: 'sum' },
      h('p', { class: 'ask' }, h('b', null, x.method), ' ', h('span', null, `/${x.path}`)),
      h('p', { class: 'got' },
        h('span', { class: 'badge', 'data-tone': tone(x.status) }, x.status ? `${x.status} ${x.title}`.trim() : 'no answer'),
        x.code && h('code', { class: 'code' }, x.code),
        h('span', { class: 'dim' }, `${x.ms < 10 ? x.ms.toFixed(1) : Math.round(x.ms)} ms`),
        h('span', { class: 'dim' }, size(new Blob([x.text]).size)))),
    block('The same with curl', h('pre', { class: 'curl', tabindex: 0, 'aria-label': 'curl command' }, curl(x)), copyButton('the curl command', () => curl(x))),
    block('Body', x.text ? h('pre', { class: 'json', tabindex: 0, 'aria-label': 'Answer body' }, ...paint(x)) : h('p', { class: 'dim' }, x.cut ?? 'empty'),
      x.text && copyButton('the answer body', () => x.text)),
    x.headers.length > 0 && block('Headers', h('dl', { class: 'headers' }, x.headers.map(([k, v]) => [h('dt', null, k), h('dd', null, v)]))),
    h('h3', null, 'Earlier'),
    h('ol', { class: 'past' }, exchanges.map(e => h('li', null,
      h('button', { type: 'button', 'aria-current': e === shown && 'true', onclick: () => show(e) },
        h('span', { class: 'badge', 'data-tone': tone(e.status) }, e.status || '—'),
        h('span', { class: 'past-path' }, `${e.method} ${e.path.split('?')[0].split('/').pop()}`),
        h('time', { class: 'dim' }, e.at.toLocaleTimeString('en-GB')))))),
  ].filter(Boolean));
  $('latest').replaceChildren(h('span', { class: 'badge', 'data-tone': tone(x.status) }, x.status || 'no answer'),
    h('span', { class: 'past-path' }, `${x.method} /${path}`), h('span', { class: 'dim' }, x.code ?? `${Math.round(x.ms)} ms`), '↓');
  $('latest').hidden = false;
}

function block(title, content, button) {
  return h('div', { class: 'block' }, h('div', { class: 'block-h' }, h('h3', null, title), button), content);
}

// paint colours pretty-printed JSON: an array of text and spans.
function paint(x) {
  let text = x.data === null ? x.text : JSON.stringify(x.data, null, 2);
  const more = text.length - bodyShown;
  if (more > 0) text = text.slice(0, bodyShown);
  const out = [];
  let end = 0;
  for (const m of x.data === null ? [] : text.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g)) {
    const kind = m[1] ? (m[2] ? 'k' : 's') : 'n';
    const word = m[1] ?? m[0];
    out.push(text.slice(end, m.index), h('span', { class: kind }, word));
    end = m.index + word.length;
  }
  out.push(text.slice(end));
  if (more > 0) out.push(h('span', { class: 'dim' }, `\n… ${size(more)} more`));
  return out;
}

export function showNothingYet() {
  $('exchange').replaceChildren(h('p', { class: 'hollow' },
    'Each request this page makes for you shows here: what was sent, what came back, and the same as a curl line to paste in a terminal.'));
}
