// The lab: clock, faults, refresh policy, sessions, the record of requests and the report on them.
import { h, $, say, redraw, copyButton, ago, span, utc } from './dom.js';
import { send, problem, tone } from './wire.js';
import { hubClock } from './session.js';

const poll = 1000;
const kept = 200; // latest requests shown

const operations = ['refresh', 'login', 'me', 'register', 'logout', 'listing', 'file', 'run', '*'];
const defects = ['none', 'expired', 'not_yet_valid', 'wrong_key', 'alg_none', 'wrong_type', 'truncated', 'tampered', 'revoked'];
const presets = [
  ['Refresh answers 503 once', { operation: 'refresh', status: 503, headers: { 'Retry-After': '1' } }],
  ['Refresh’s answer gets lost', { operation: 'refresh', drop: 'after' }],
  ['Two refreshes race', { operation: 'refresh', hold: 2 }],
  ['Me is 2 s late', { operation: 'me', delay: '2s' }],
  ['Me answers broken JSON', { operation: 'me', malformed: true }],
  ['Everything is cut, 3 times', { operation: '*', drop: 'before', times: 3 }],
];
const effects = {
  delay: ['is late by', '2s', v => v],
  status: ['answers the status', '503', Number],
  drop: ['is cut (before or after the work)', 'before', v => v],
  truncate: ['breaks off after so many bytes', '20', Number],
  hold: ['waits until so many have come', '2', Number],
  malformed: ['answers broken JSON', '', () => true],
};

// hasLab: the hub marks the page when it has a lab, so that the page need not ask for it through the faults.
export const hasLab = 'lab' in document.documentElement.dataset;

// spaceName is the namespace that this page belongs to, by its path or by its host; '' for the root hub.
export const spaceName = !hasLab ? '' : (/\/ns\/([A-Za-z0-9_-]{1,64})\/$/.exec(location.pathname) ?? /^([a-z0-9_-]{1,64})\.localhost$/.exec(location.hostname))?.[1] ?? '';
const byHost = spaceName && !location.pathname.endsWith(`/ns/${spaceName}/`);

let key = ''; // AUTHHUB_LAB_KEY, asked for when the hub wants one
let timer = null;
let paused = false;
const rows = new Map(); // requests shown, by seq
let last = 0; // all requests up to this seq are here, and answered
let snapshot = null;
let findings = []; // and notes, of the latest report
let opened = null; // seq of the request whose details are shown
const wanted = { operation: '', user: '', status: '' }; // filters of the requests shown
let parts = null;
const shown = new Map(); // what each part shows, as JSON

export const lab = {
  build() {},
  seen(visible) {
    clearInterval(timer);
    timer = null;
    if (!visible) return;
    parts ?? build();
    look();
    timer = setInterval(() => { if (!document.hidden && !paused) look(); }, poll);
  },
};

const ask = (method, path, options) => send(method, `lab${path}`, { token: key || undefined, ...options });

// act sends a change, tells how it went, and looks again.
async function act(done, method, path, json) {
  const x = await ask(method, path, { json });
  parts.note.textContent = x.ok ? done : problem(x);
  parts.note.dataset.tone = x.ok ? 'good' : 'bad';
  parts.note.hidden = false;
  say(parts.note.textContent);
  await look();
  return x;
}

async function look() {
  const [state, faults, sessions, requests, report, spaces] = await Promise.all([
    ask('GET', '', { quiet: true }), ask('GET', '/faults', { quiet: true }), ask('GET', '/sessions', { quiet: true }),
    ask('GET', `/requests?after=${last}`, { quiet: true }), ask('GET', '/report?within=1ms', { quiet: true }),
    spaceName ? null : send('GET', 'ns', { token: key || undefined, quiet: true })]);
  parts.key.hidden = state.status !== 401;
  if (!state.ok) return;
  if (state.data.counts.requests < rows.size) forget(); // somebody else has cleared the record
  update(parts.where, [state.data.namespace], () => whereabouts(state.data));
  inPlace(() => {
    if (spaces?.ok) update(parts.spaces, spaces.data.namespaces, drawSpaces);
    drawClock(state.data);
    drawPolicy(state.data);
    update(parts.faults, faults.data?.faults ?? [], drawFaults);
    update(parts.sessions, sessions.data?.sessions ?? [], drawSessions);
    if (report.ok) findings = [...report.data.findings, ...report.data.notes.map(n => ({ ...n, note: true }))];
    drawRequests(requests.data?.requests ?? []);
    update(parts.report, findings, drawReport);
  });
}

// inPlace makes a change and keeps the table of requests where it is in the window while somebody points at it.
function inPlace(change) {
  const view = parts.requests.closest('.tall');
  const pointed = view.matches(':hover, :focus-within');
  const top = view.getBoundingClientRect().top;
  change();
  if (pointed) scrollBy({ top: view.getBoundingClientRect().top - top, behavior: 'instant' });
}

// update redraws a part only where what it shows has changed: it is looked at every second.
function update(part, data, draw) {
  const key = JSON.stringify(data);
  if (shown.get(part) === key) return;
  shown.set(part, key);
  redraw(part, ...[draw(data)].flat());
}

const button = (label, onclick, cls = 'small') => h('button', { type: 'button', class: cls, onclick }, label);

function build() {
  const box = (title, ...rest) => h('div', { class: 'card' }, h('h3', null, title), rest);
  parts = {
    note: h('p', { class: 'note', hidden: true }),
    key: keyForm(), where: h('p', { class: 'dim' }), spaces: h('div'), detail: h('div', { class: 'detail', hidden: true }), clock: h('div'), policy: h('div'), faults: h('div', { id: 'queue' }), sessions: h('div'), requests: h('tbody'), report: h('div'),
  };
  $('bench').append(parts.key, parts.where, parts.note,
    h('div', { class: 'card' }, h('h3', null, 'Report'), parts.report),
    h('div', { class: 'card' }, h('div', { class: 'card-h' }, h('h3', null, 'Requests'), requestControls()), requestFilters(), parts.detail,
      h('div', { class: 'scroll tall', tabindex: 0, role: 'region', 'aria-label': 'Requests' }, h('table', { class: 'rows requests' },
        h('thead', null, h('tr', null, ['No.', 'Operation', 'Answer', 'User', 'Token', 'Took', 'Fault'].map(t => h('th', { scope: 'col' }, t)))), parts.requests))),
    ...(spaceName ? [] : [h('div', { class: 'card' }, h('h3', null, 'Namespaces'), parts.spaces)]),
    h('div', { class: 'pair' },
      box('Clock', parts.clock, clockControls()),
      box('Refresh policy', parts.policy, policyControls(), h('h3', { class: 'sub' }, 'Whole hub'), stateControls())),
    h('div', { class: 'card' }, h('h3', null, 'Faults'),
      h('p', { class: 'dim' }, 'A queue. Each fault waits for its operation, hits as many requests as you say, and is spent after that.'),
      h('div', { class: 'chips' }, presets.map(([label, fault]) => button(label, () => act(`Queued: ${label}.`, 'POST', '/faults', fault), 'chip'))),
      faultForm(), parts.faults),
    h('div', { class: 'card' }, h('h3', null, 'Sessions'), parts.sessions),
    h('div', { class: 'card' }, h('h3', null, 'Mint a token'),
      h('p', { class: 'dim' }, 'Sound, or with exactly one thing wrong. Minting a token starts a session.'), tokenForm()));
}

// whereabouts says which hub this is, and leads to another one.
function whereabouts(state) {
  if (!state.namespace) return ['This is the root hub. ', h('a', { href: `ns/page-${Math.random().toString(36).slice(2, 8)}/#lab` }, 'Open the page of a new namespace')];
  return ['This is the namespace ', h('b', null, state.namespace), '. ', byHost ? null : h('a', { href: '../../#lab' }, 'All namespaces')];
}

function drawSpaces(spaces) {
  const when = t => h('time', { datetime: t }, ago(Date.parse(t) / 1000, Date.now() / 1000));
  return spaces.length === 0 ? h('p', { class: 'hollow' }, 'There is no namespace. One exists from the first request to it.')
    : h('div', { class: 'scroll tall', tabindex: 0, role: 'region', 'aria-label': 'Namespaces' }, h('table', { class: 'rows' },
      h('thead', null, h('tr', null, ['Namespace', 'Latest request', 'Requests', 'Findings'].map(t => h('th', { scope: 'col' }, t)))),
      h('tbody', null, spaces.map(sp => h('tr', null,
        h('th', { scope: 'row' }, h('a', { href: `ns/${sp.name}/#lab` }, sp.name)),
        h('td', null, sp.last_request_at ? when(sp.last_request_at) : '—'), h('td', { class: 'num' }, sp.requests),
        h('td', { class: 'num' }, sp.findings === 0 ? '0' : h('span', { class: 'badge', 'data-tone': 'bad' }, sp.findings)))))));
}

function tokenForm() {
  const pick = (name, values) => h('select', { name, 'aria-label': name }, values.map(v => h('option', { value: v }, v.replaceAll('_', ' '))));
  const made = h('div', { class: 'raw', hidden: true });
  const form = h('form', { class: 'line', onsubmit: async e => {
    e.preventDefault();
    const x = await act('The token is minted.', 'POST', '/tokens', Object.fromEntries(new FormData(form)));
    made.hidden = !x.ok;
    if (x.ok) made.replaceChildren(h('p', { class: 'jws', tabindex: 0, role: 'group', 'aria-label': 'The token' }, x.data.token), copyButton('the token', () => x.data.token));
  } }, h('input', { name: 'user', value: 'demo', 'aria-label': 'user', spellcheck: 'false', autocapitalize: 'none' }), pick('kind', ['access', 'refresh']), pick('defect', defects), h('button', { class: 'small' }, 'Mint'));
  return [form, made];
}

function keyForm() {
  const input = h('input', { type: 'password', name: 'lab-key', autocomplete: 'off' });
  return h('form', { class: 'card', hidden: true, onsubmit: e => { e.preventDefault(); key = input.value; look(); } },
    h('h3', null, 'Lab key'), h('p', { class: 'dim' }, 'This hub has a lab key (AUTHHUB_LAB_KEY). Requests to the lab need it.'),
    h('label', { class: 'field' }, 'Key', input), h('button', { class: 'primary' }, 'Open the lab'));
}

function drawClock({ time }) {
  const now = Date.parse(time.now);
  hubClock.set(now, time.frozen);
  const away = time.offset_ms / 1000;
  parts.clock.replaceChildren(
    h('p', { class: 'big' }, utc(now / 1000)),
    h('p', { class: 'dim' }, time.frozen ? 'Frozen: it moves only when you move it.' : Math.abs(away) < 2 ? 'Real time.' : `Real time ${away > 0 ? 'plus' : 'minus'} ${span(Math.abs(away))}.`));
}

function clockControls() {
  const put = (done, json) => act(done, 'PUT', '/clock', json);
  const at = h('input', { name: 'at', value: '2030-01-01T00:00:00Z', 'aria-label': 'A time to set the clock to', spellcheck: 'false' });
  return [
    h('div', { class: 'chips' },
      ['1m', '16m', '1h', '24h', '169h'].map(d => button(`+ ${d}`, () => put(`The clock went ${d} ahead.`, { advance: d }), 'chip')),
      button('Freeze', () => put('The clock stands still.', { frozen: true }), 'chip'),
      button('Let it run', () => put('The clock runs.', { frozen: false }), 'chip'),
      button('Real time', () => put('Real time again.', { at: new Date().toISOString(), frozen: false }), 'chip')),
    h('form', { class: 'line', onsubmit: e => { e.preventDefault(); put('The clock is set.', { at: at.value.trim() }); } }, at, h('button', { class: 'small' }, 'Set')),
  ];
}

// inForce is which of the choices of policyControls is in force.
const inForce = p => (p.rotation === false ? 'fixed' : p.reuse);

function drawPolicy(state) {
  const p = state.policy;
  const words = { strict: 'A spent refresh token ends its session.', grace: `For ${p.grace}, a spent refresh token gets the same new pair again.`,
    allow: 'Spent refresh tokens keep working.', fixed: 'No rotation: the refresh token stays.' };
  parts.policy.replaceChildren(h('p', { class: 'dim' }, words[inForce(p)] ?? ''));
  for (const chip of document.querySelectorAll('#bench [data-policy]')) chip.setAttribute('aria-pressed', String(chip.dataset.policy === inForce(p)));
}

function policyControls() {
  const grace = h('input', { name: 'grace', value: '10s', 'aria-label': 'Grace period', spellcheck: 'false' });
  const choice = (name, label, json) => h('button', { type: 'button', class: 'chip', 'data-policy': name, 'aria-pressed': 'false',
    onclick: () => act(`Refresh policy: ${label.toLowerCase()}.`, 'PUT', '/refresh-policy', json()) }, label);
  return h('div', { class: 'line' }, choice('strict', 'Strict', () => ({ reuse: 'strict' })), choice('grace', 'Grace of', () => ({ reuse: 'grace', grace: grace.value.trim() })), grace,
    choice('allow', 'Allow', () => ({ reuse: 'allow' })), choice('fixed', 'No rotation', () => ({ rotation: false })));
}

function stateControls() {
  return h('div', { class: 'chips' },
    button('Take a snapshot', async () => {
      const x = await ask('GET', '/snapshot');
      if (x.ok) snapshot = x.data;
      parts.note.hidden = false;
      parts.note.dataset.tone = x.ok ? 'good' : 'bad';
      parts.note.textContent = x.ok ? 'The page holds a snapshot of the whole state.' : problem(x);
    }, 'chip'),
    button('Put it back', () => (snapshot ? act('The snapshot is back.', 'PUT', '/snapshot', snapshot) : say('There is no snapshot yet.')), 'chip'),
    button('Reset', () => { forget(); act('Reset: the accounts of the start, no sessions, no faults, real time.', 'POST', '/reset'); }, 'chip danger'));
}

function faultForm() {
  const chosen = { operation: 'refresh', effect: 'delay', value: '2s', times: '1', skip: '0' };
  const value = h('input', { name: 'value', value: chosen.value, 'aria-label': 'How much', spellcheck: 'false', oninput: e => { chosen.value = e.target.value.trim(); } });
  const pick = (name, options) => h('select', { name, 'aria-label': name, onchange: e => {
    chosen[name] = e.target.value;
    if (name === 'effect') {
      chosen.value = value.value = effects[chosen.effect][1];
      value.hidden = !effects[chosen.effect][1];
    }
  } }, options.map(([v, label]) => h('option', { value: v }, label)));
  const count = (name, label) => h('label', { class: 'inline' }, label, h('input', { name, class: 'short', inputmode: 'numeric', value: chosen[name], oninput: e => { chosen[name] = e.target.value; } }));
  return h('form', { class: 'line', onsubmit: e => {
    e.preventDefault();
    const fault = { operation: chosen.operation, [chosen.effect]: effects[chosen.effect][2](chosen.value), times: Number(chosen.times), skip: Number(chosen.skip) };
    act('The fault is queued.', 'POST', '/faults', fault);
  } }, pick('operation', operations.map(o => [o, o === '*' ? 'anything' : o])), pick('effect', Object.entries(effects).map(([k, [label]]) => [k, label])), value,
  count('times', 'times'), count('skip', 'after'), h('button', { class: 'small' }, 'Queue'));
}

function drawFaults(faults) {
  const known = new Set(['id', 'operation', 'skip', 'times', 'session', 'hits', 'left', 'waiting']);
  return faults.length === 0 ? h('p', { class: 'hollow' }, 'No fault is waiting.') : h('ul', { class: 'list' }, faults.map(f => h('li', null,
    h('b', null, f.operation === '*' ? 'anything' : f.operation), ' ',
    h('code', null, Object.entries(f).filter(([k, v]) => !known.has(k) && v !== null && v !== '').map(([k, v]) => `${k} ${typeof v === 'object' ? JSON.stringify(v) : v}`).join(', ')),
    h('span', { class: 'dim' }, [f.left === null ? 'until deleted' : f.left === 0 ? 'spent' : `${f.left} to go`, f.hits > 0 && `hit ${f.hits}`, f.skip > 0 && `after ${f.skip}`, f.waiting > 0 && `holds ${f.waiting}`].filter(Boolean).join(', ')),
    h('button', { type: 'button', class: 'small', 'aria-label': `Delete the fault on ${f.operation}`, onclick: () => act('The fault is gone.', 'DELETE', `/faults/${encodeURIComponent(f.id)}`) }, 'Delete'))));
}

function drawSessions(sessions) {
  const when = t => (t ? h('time', { datetime: t }, ago(Date.parse(t) / 1000, hubClock.now())) : '—');
  return sessions.length === 0 ? h('p', { class: 'hollow' }, 'Nobody is logged in.') : h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Sessions' }, h('table', { class: 'rows' },
    h('thead', null, h('tr', null, ['Session', 'User', 'Generation', 'Created', 'Access expires', ''].map(t => h('th', { scope: 'col' }, t || h('span', { class: 'sr' }, 'Actions'))))),
    h('tbody', null, sessions.map(se => h('tr', null,
      h('th', { scope: 'row' }, h('code', null, se.id)), h('td', null, se.user), h('td', { class: 'num' }, se.generation),
      h('td', null, when(se.created)), h('td', null, se.access.expired ? 'expired' : when(se.access.expiry)),
      h('td', null, h('div', { class: 'filters' }, ['expire', 'revoke'].map(verb => h('button', {
        type: 'button', class: 'small', 'aria-label': `${verb} the session ${se.id}`, onclick: () => act(`Done: ${verb}.`, 'POST', `/sessions/${encodeURIComponent(se.id)}/${verb}`, {}),
      }, verb)))))))));
}

function requestControls() {
  const pause = button('Pause', () => {
    paused = !paused;
    pause.textContent = paused ? 'Go on' : 'Pause';
  });
  return h('div', { class: 'filters' }, pause, button('Clear', () => { forget(); act('The record is empty.', 'DELETE', '/requests'); }));
}

// requestFilters narrows the requests that are shown; it asks the hub for nothing.
function requestFilters() {
  const look = name => e => { wanted[name] = e.target.value.trim(); showRequests(); };
  return h('form', { class: 'line', 'aria-label': 'Filters', onsubmit: e => e.preventDefault() },
    h('label', { class: 'inline' }, 'Operation', h('select', { name: 'wanted-operation', onchange: look('operation') },
      [['', 'any'], ...[...operations.filter(o => o !== '*'), 'introspect', 'other'].map(o => [o, o])].map(([v, label]) => h('option', { value: v }, label)))),
    h('label', { class: 'inline' }, 'User', h('input', { name: 'wanted-user', size: 10, spellcheck: 'false', autocapitalize: 'none', oninput: look('user') })),
    h('label', { class: 'inline' }, 'Status', h('input', { name: 'wanted-status', class: 'short', inputmode: 'numeric', oninput: look('status') })));
}

const isWanted = r => (!wanted.operation || r.operation === wanted.operation)
  && (!wanted.user || (r.user ?? '').toLowerCase().includes(wanted.user.toLowerCase()))
  && (!wanted.status || String(r.status ?? '').startsWith(wanted.status));

function forget() {
  rows.clear();
  last = 0;
  opened = null;
  showRequests();
}

function drawRequests(fresh) {
  if (fresh.length === 0) return;
  const before = new Set(rows.keys());
  for (const r of fresh) rows.set(r.seq, r);
  const seqs = [...rows.keys()].sort((a, b) => b - a);
  for (const seq of seqs.splice(kept)) rows.delete(seq);
  const open = seqs.filter(seq => rows.get(seq).duration_ms === null);
  last = Math.min(seqs[0], ...open.map(seq => seq - 1));
  showRequests(before);
}

// showRequests draws the rows that are wanted, the latest last. Those not among before are marked as new. A row in view
// stays where it is; the view follows the end if it shows the end and nobody points at it.
function showRequests(before = new Set(rows.keys())) {
  const list = [...rows.values()].filter(isWanted).sort((a, b) => a.seq - b.seq);
  const view = parts.requests.closest('.tall');
  const follow = view.scrollTop + view.clientHeight >= view.scrollHeight - 4 && !view.matches(':hover, :focus-within');
  const mark = [...parts.requests.children].find(row => row.offsetTop >= view.scrollTop && rows.has(Number(row.id.slice(4))));
  const was = mark?.offsetTop;
  redraw(parts.requests, ...list.map(r => requestRow(r, !before.has(r.seq))));
  if (follow) view.scrollTop = view.scrollHeight;
  else if (mark) view.scrollTop += (document.getElementById(mark.id)?.offsetTop ?? was) - was;
  showDetail();
}

const tokenWords = t => t && [t.kind, t.generation === null ? null : `generation ${t.generation}`, t.state?.replaceAll('_', ' ')].filter(part => part !== null).join(', ');

function requestRow(r, fresh) {
  return h('tr', { id: `seq-${r.seq}`, class: fresh && 'fresh', onclick: () => openRequest(r.seq), 'data-open': r.seq === opened },
    h('td', { class: 'num' }, r.seq),
    h('th', { scope: 'row' }, h('button', { type: 'button', class: 'plain', 'aria-expanded': String(r.seq === opened), 'aria-label': `Details of request ${r.seq}, ${r.operation}` }, r.operation)),
    h('td', null, r.status === null ? h('span', { class: 'badge' }, r.duration_ms === null ? 'waiting' : 'cut') : h('span', { class: 'badge', 'data-tone': tone(r.status) }, r.status), r.code && h('code', { class: 'code' }, r.code)),
    h('td', null, r.user ?? '—'),
    h('td', null, tokenWords(r.token) ?? '—'),
    h('td', { class: 'num' }, r.duration_ms === null ? '—' : `${r.duration_ms.toFixed(1)} ms`),
    h('td', null, r.fault && h('code', null, r.fault)));
}

function openRequest(seq) {
  opened = opened === seq ? null : seq;
  inPlace(() => showRequests());
}

// showDetail shows all that the record has of the request that is open, and what the report says of it.
function showDetail() {
  const r = rows.get(opened);
  parts.detail.hidden = !r;
  if (!r) return;
  const about = findings.filter(f => f.seqs.includes(r.seq));
  const lines = [
    ['Request', `${r.seq}: ${r.method} ${r.path}`], ['Came at', `${r.at} (the hub’s clock)`],
    ['Answered', r.status === null ? (r.duration_ms === null ? 'not yet' : 'nothing: the connection was cut') : `${r.status}${r.code ? ` ${r.code}` : ''}, after ${r.duration_ms?.toFixed(1)} ms`],
    ['Token', tokenWords(r.token) ?? 'none'], ['User', r.user ?? 'unknown'], ['Session', r.session ?? 'none'], ['Fault', r.fault ?? 'none'],
    ['In the report', about.length === 0 ? 'nothing' : about.map(f => h('p', null, h('b', null, f.rule.replaceAll('_', ' ')), ' ', f.sentence))],
  ];
  parts.detail.replaceChildren(h('dl', { class: 'headers' }, lines.map(([name, value]) => [h('dt', null, name), h('dd', null, value)])),
    button('Close', () => openRequest(r.seq)));
}

function drawReport(list) {
  showDetail();
  return list.length === 0 ? h('p', { class: 'hollow' }, 'No findings: the client has behaved correctly so far.')
    : h('ul', { class: 'list' }, list.map(f => h('li', { class: f.note ? 'finding advice' : 'finding' }, h('b', null, f.note ? 'Note: ' : '', f.rule.replaceAll('_', ' ')), h('span', null, f.sentence),
      h('span', { class: 'dim' }, 'requests ', f.seqs.map((n, i) => [i ? ', ' : '', h('a', { href: `#seq-${n}`, onclick: e => { e.preventDefault(); point(n); } }, n)])))));
}

// point opens a request, whatever the filters, and scrolls to it.
function point(seq) {
  if (!rows.has(seq)) return say('That request is no longer among the latest shown here.');
  opened = seq;
  showRequests();
  (document.getElementById(`seq-${seq}`) ?? parts.detail).scrollIntoView({ block: 'center' });
}
