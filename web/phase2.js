// Phase 2: the three files, the run that makes them, and their results drawn.
import { h, s, $, say, redraw, size, ago, number, span, utcMinute } from './dom.js';
import { send, problem, record as keep } from './wire.js';
import { hubClock, bearer, onSession } from './session.js';
import { Chart } from './chart.js';
import { alertTable } from './alerts.js';

const runPath = 'api/run-ph-barrier-phase2';
const listPath = 'api/files/phase2';
const poll = 250; // milliseconds between looks at a run's record
const listEvery = 10000;
const drawnUnasked = 48 << 20; // bytes of the files that are drawn without asking
const stationsAtOnce = 50; // rows of the table of impact

let listing = null;
let refused = ''; // why the listing or a file can't be read, in words
let csv = null; // the File to run on instead of the hub's own readings
let running = false;
let shownSet = ''; // which set of files is drawn
let shownInput = ''; // and what it was made from: the same input gives the same bytes
let asked = ''; // the set that the page has asked about, being large
let wanted = ''; // and the one that is to be drawn all the same
const sent = new Map(); // names of the files that this page has sent, by the digest of their content
let failed = false; // whether the latest run that this page has started failed
let listTimer = null;
let chart = null;
const typed = { low: '6.5', high: '8.5', interval: '1h', max_gap: '1h' };

export const phase2 = {
  build() {
    drawRun();
    drawFiles();
    acceptDrops();
    onSession(() => { if (refused && bearer()) look(); });
  },
  seen(visible) {
    clearInterval(listTimer);
    listTimer = null;
    if (!visible) return;
    look();
    if ('lab' in document.documentElement.dataset) return; // there the page asks only when it is told to: each request is recorded, and may meet a fault
    listTimer = setInterval(() => { if (!running && !document.hidden) look(); }, listEvery);
  },
};

// look reads the listing, and the files when another set stands than the one drawn.
async function look() {
  const x = await send('GET', listPath, { token: bearer(), quiet: true });
  refused = x.ok ? '' : x.status === 401 ? 'This hub shows its files only to users who are logged in (-protect). Log in under Accounts first.' : problem(x);
  if (x.ok) listing = x.data.phase2_files;
  drawFiles();
  if (!listing) return;
  const set = listing.map(f => f.last_modified + f.size_bytes).join();
  if (listing.every(f => f.available)) {
    if (set !== shownSet && (!tooLarge(set) || set === wanted) && await readResults()) shownSet = set;
  } else {
    shownSet = shownInput = '';
    drawNoResults();
  }
}

// tooLarge reports whether the set is one to ask for first, and asks.
function tooLarge(set) {
  const bytes = listing.reduce((sum, f) => sum + f.size_bytes, 0);
  if (bytes <= drawnUnasked) return false;
  if (set !== wanted && set !== asked) {
    asked = set;
    chart?.close();
    chart = null;
    $('results').replaceChildren(h('div', { class: 'card blank' },
      h('h3', null, `The files have ${size(bytes)}`),
      h('p', { class: 'hollow' }, 'Drawing that much takes the browser a while.'),
      h('button', { type: 'button', onclick: () => { wanted = set; shownInput = ''; look(); } }, 'Draw it')));
  }
  return true;
}

async function readResults() {
  const answers = await Promise.all(['barrier', 'impact', 'alertesph'].map(f => send('GET', `${listPath}/${f}`, { token: bearer(), quiet: true })));
  const bad = answers.find(x => !x.ok || !x.data);
  if (bad) {
    refused = problem(bad);
    drawFiles();
    return false;
  }
  const [barrier, impact, alerts] = answers.map(x => x.data);
  // A run may have published between two of the three; the next look reads them again.
  if (new Set([barrier, impact, alerts].map(f => JSON.stringify([f.parameters, f.source]))).size > 1) return false;
  const input = JSON.stringify([barrier.parameters, barrier.source]);
  if (input !== shownInput) drawResults(barrier, impact, alerts.alerts);
  shownInput = input;
  return true;
}

function drawFiles() {
  redraw($('files'),
    h('h3', null, 'Files'),
    h('p', { class: 'note', 'data-tone': 'bad', hidden: !refused }, refused),
    !listing ? h('p', { class: 'hollow' }, refused ? '' : 'Asking for the listing…') : h('table', { class: 'rows files', 'aria-label': 'The three result files' },
      h('thead', null, h('tr', null, ['File', 'State', 'Size', 'Made'].map(t => h('th', { scope: 'col' }, t)))),
      h('tbody', null, listing.map(f => h('tr', null,
        h('th', { scope: 'row' }, f.available ? h('a', { href: f.endpoint.replace(/^\//, '') }, f.name) : f.name),
        h('td', null, h('span', { class: 'tag', 'data-tone': f.available ? 'good' : 'idle' }, f.available ? 'available' : 'not yet')),
        h('td', { class: 'num' }, f.available ? size(f.size_bytes) : '—'),
        h('td', { class: 'num' }, f.last_modified ? h('time', { datetime: f.last_modified, title: f.last_modified }, ago(Date.parse(f.last_modified) / 1000, hubClock.now())) : '—'))))));
}

function drawRun(record) {
  const was = $('run').contains(document.activeElement) ? document.activeElement.name || document.activeElement.id : '';
  const input = (name, label, hint) => h('label', { class: 'field' }, label, h('input', {
    name, value: typed[name], spellcheck: 'false', autocapitalize: 'none', title: hint, disabled: running, oninput: e => { typed[name] = e.target.value.trim(); },
  }));
  $('run').replaceChildren(
    h('h3', null, 'Run'),
    h('form', { onsubmit: e => { e.preventDefault(); run(); } },
      h('div', { class: 'four' },
        input('low', 'Low pH', 'lower limit of the permitted band'), input('high', 'High pH', 'upper limit of the permitted band'),
        input('interval', 'Interval', 'length of a bucket, such as 15m or 1h'), input('max_gap', 'Largest gap', 'longest time that a reading stands for, such as 1h')),
      h('div', { class: 'source' },
        h('label', { class: 'pick', for: 'csv' }, csv ? 'Another CSV' : 'Choose a CSV',
          h('input', { type: 'file', id: 'csv', accept: '.csv,text/csv', disabled: running, onchange: e => { choose(e.target.files[0]); } })),
        h('p', { class: 'dim' }, csv ? `${csv.name}, ${size(csv.size)}` : 'or drop one here. Without one: the hub’s own readings.'),
        csv && h('button', { type: 'button', class: 'small', disabled: running, onclick: () => choose(null) }, 'Use the hub’s own')),
      h('button', { class: 'primary wide', id: 'run-now', disabled: running }, running ? 'Running…' : csv ? `Run on ${csv.name}` : 'Run')),
    progress(record) ?? '');
  if (was) ($('run').querySelector(`[name="${was}"]`) ?? document.getElementById(was))?.focus();
}

function progress(record) {
  if (!record) return null;
  const percent = Math.round((record.progress ?? 0) * 100);
  const tone = { running: 'busy', succeeded: 'good', ended: '', failed: 'bad' }[record.status];
  const sentence = {
    running: `Running: ${percent} %`,
    succeeded: `Done in ${record.duration_ms < 1000 ? `${Math.round(record.duration_ms)} ms` : `${(record.duration_ms / 1000).toFixed(1)} s`}.`,
  }[record.status] ?? record.words ?? `Failed: ${record.error?.detail ?? 'no reason given'}`;
  return h('div', { class: 'progress', 'data-tone': tone },
    record.status === 'running' && h('progress', { max: 100, value: percent, 'aria-label': 'Progress of the run' }),
    h('p', { class: record.status === 'running' ? 'dim' : 'note', 'data-tone': tone }, sentence),
    record.screening && screened(record.screening));
}

function screened(sc) {
  const rejected = Object.entries(sc.rejected).filter(([, n]) => n > 0);
  return h('p', { class: 'dim' },
    `${number(sc.accepted)} of ${number(sc.rows)} readings accepted`,
    rejected.length > 0 && `; rejected: ${rejected.map(([why, n]) => `${number(n)} ${why.replaceAll('_', ' ')}`).join(', ')}`,
    sc.first_rejected?.length > 0 && ` (first in line ${sc.first_rejected[0].line})`, '.');
}

async function run() {
  running = true;
  drawRun({ status: 'running', progress: 0 });
  const query = new URLSearchParams(Object.entries(typed).filter(([, v]) => v !== ''));
  let x = await send('POST', `${runPath}?${query}`, {
    token: bearer(), headers: { Prefer: 'respond-async' },
    ...(csv && { body: csv, type: 'text/csv', fileName: csv.name }),
  });
  const id = x.data?.id;
  while (x.ok && x.data?.status === 'running') {
    drawRun(x.data);
    await new Promise(done => { setTimeout(done, poll); });
    x = await send('GET', runPath, { token: bearer(), quiet: true });
    if (x.data?.status !== 'running') keep(x);
  }
  running = false;
  const record = x.ok && x.data ? x.data : { status: 'failed', words: problem(x) };
  if (id && record.id && record.id !== id) Object.assign(record, { status: 'ended', words: 'This run has ended, and another run after it. The record and the files are those of the later run.' });
  failed = record.status === 'failed';
  if (csv && record.status === 'succeeded') sent.set(record.source.sha256, csv.name);
  drawRun(record);
  say({ succeeded: 'The run is done.' }[record.status] ?? record.words ?? `The run failed. ${record.error?.detail ?? ''}`);
  await look();
  markEarlier();
}

// markEarlier says of results on the page that they are older than a run that failed.
function markEarlier() {
  $('results').querySelector('.earlier')?.remove();
  if (!failed || !chart) return;
  $('results').prepend(h('p', { class: 'note earlier', 'data-tone': 'bad' }, `The last run failed and changed nothing. The files and charts below are of an earlier run, on ${chart.source}.`));
}

function choose(file) {
  csv = file;
  drawRun();
  $('run-now').focus();
}

function acceptDrops() {
  const hasFile = e => [...e.dataTransfer?.types ?? []].includes('Files');
  let depth = 0;
  const veil = on => { $('drop').hidden = !on; };
  addEventListener('dragenter', e => { if (hasFile(e)) veil(++depth > 0); });
  addEventListener('dragleave', e => { if (hasFile(e)) veil(--depth > 0); });
  addEventListener('dragover', e => { if (hasFile(e)) e.preventDefault(); });
  addEventListener('drop', e => {
    if (!hasFile(e)) return;
    e.preventDefault();
    depth = 0;
    veil(false);
    if (running) return;
    location.hash = 'phase2';
    choose(e.dataTransfer.files[0]);
    run();
  });
}

function drawNoResults() {
  chart?.close();
  chart = null;
  asked = '';
  $('results').replaceChildren(h('div', { class: 'card blank' },
    h('h3', null, 'Nothing to draw yet'),
    h('p', { class: 'hollow' }, 'Press Run. The hub screens its readings and computes the barrier function, the impact and the alerts, and the page draws them here.')));
}

function drawResults(barrier, impact, alerts) {
  const first = impact.stations.reduce((t, st) => Math.min(t, Date.parse(st.first) / 1000), Infinity);
  const last = impact.stations.reduce((t, st) => Math.max(t, Date.parse(st.last) / 1000), -Infinity);
  const p = barrier.parameters;
  const source = sent.get(barrier.source.sha256) ?? (barrier.source.name === 'request' ? 'readings sent to the hub' : barrier.source.name);
  const chartBox = h('div', { class: 'card chart-card' },
    h('div', { class: 'card-h' },
      h('h3', null, 'pH by station'), h('code', { class: 'dim' }, 'barrier_phi_phase2.json'),
      h('p', { class: 'dim' }, `${source}, ${utcMinute(first)} to ${utcMinute(last)} UTC, band ${p.low}–${p.high}, buckets of ${p.interval}`)));
  chart?.close();
  chart = new Chart(chartBox, barrier, alerts, source);
  $('results').replaceChildren(chartBox,
    h('div', { class: 'card' }, h('div', { class: 'card-h' }, h('h3', null, 'Impact'), h('code', { class: 'dim' }, 'impact_phi.json'), screened(impact.screening)), impactTable(impact)),
    alertTable(alerts, a => chart.jump(a)));
  chart.resize();
  markEarlier();
}

// impactTable draws per station the share of time below, inside and above the band, the spread of pH against the band, and the doses.
function impactTable(impact) {
  const { low, high } = impact.parameters;
  const stations = impact.stations;
  const top = stations.reduce((dose, st) => Math.max(dose, st.below.dose_ph_h, st.above.dose_ph_h), 0.001);
  const min = stations.reduce((ph, st) => Math.min(ph, st.ph.min), low) - 0.2;
  const max = stations.reduce((ph, st) => Math.max(ph, st.ph.max), high) + 0.2;
  const body = h('tbody');
  const more = h('button', { type: 'button', class: 'more', onclick: () => addRows() });
  function addRows() {
    const from = body.children.length;
    body.append(...stations.slice(from, from + stationsAtOnce).map(st => impactRow(st, low, high, min, max, top)));
    const left = stations.length - body.children.length;
    more.textContent = `Show more (${number(left)} left)`;
    more.hidden = left === 0;
  }
  addRows();
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Impact by station' },
    h('table', { class: 'rows impact' },
      h('thead', null, h('tr', null, ['Station', 'Level', 'Time outside the band', 'pH, 5th to 95th percentile', 'Dose, pH·h', 'Mean φ', 'Monitored'].map(t => h('th', { scope: 'col' }, t)))),
      body), more);
}

function impactRow(st, low, high, min, max, top) {
  return h('tr', null,
    h('th', { scope: 'row' }, st.station),
    h('td', null, h('span', { class: 'tag', 'data-level': st.level }, st.level)),
    h('td', { class: 'bar-cell' }, shareBar(st), h('span', { class: 'dim' }, shareWords(st))),
    h('td', { class: 'bar-cell' }, whisker(st.ph, low, high, min, max), h('span', { class: 'dim' }, `${st.ph.p05}–${st.ph.p95}, median ${st.ph.median}`)),
    h('td', { class: 'bar-cell' }, doseBar(st, top), h('span', { class: 'dim' }, doseWords(st))),
    h('td', { class: 'num' }, st.phi_mean === null ? '—' : st.phi_mean.toFixed(3)),
    h('td', { class: 'num' }, `${number(Math.round(st.monitored_h))} h`));
}

const percent = share => `${(share * 100).toFixed(share > 0 && share < 0.001 ? 2 : 1)} %`;

function shareWords(st) {
  const sides = [['below', st.below], ['above', st.above]].filter(([, side]) => side.share > 0);
  return sides.length ? sides.map(([name, side]) => `${percent(side.share)} ${name}, ${span(side.hours * 3600)}`).join('; ') : 'none';
}

function doseWords(st) {
  const sides = [['below', st.below], ['above', st.above]].filter(([, side]) => side.dose_ph_h > 0);
  return sides.length ? sides.map(([name, side]) => `${side.dose_ph_h.toFixed(1)} ${name}`).join('; ') : 'none';
}

// The figures repeat what the words beside them say, so they are hidden from screen readers.
const figure = (...shapes) => s('svg', { class: 'fig', viewBox: '0 0 200 14', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, ...shapes);
const bar = (name, x, width, y = 3, height = 8) => s('rect', { class: name, x, y, width: Math.max(0, width), height });

function shareBar(st) {
  const below = st.below.share * 200;
  const above = st.above.share * 200;
  return figure(bar('f-low', 0, below), bar('f-in', below, 200 - below - above), bar('f-high', 200 - above, above));
}

function doseBar(st, top) {
  const below = st.below.dose_ph_h / top * 99;
  const above = st.above.dose_ph_h / top * 99;
  return figure(bar('f-track', 0, 200), bar('f-low', 100 - below, below), bar('f-high', 100, above), bar('f-tick', 99.5, 1, 0, 14));
}

function whisker(ph, low, high, min, max) {
  const x = v => (v - min) / (max - min) * 200;
  return figure(bar('f-band', x(low), x(high) - x(low), 0, 14), bar('f-line', x(ph.min), x(ph.max) - x(ph.min), 6.5, 1),
    bar('f-in', x(ph.p05), x(ph.p95) - x(ph.p05), 4, 6), bar('f-tick', x(ph.median) - 1, 2, 1, 12));
}
