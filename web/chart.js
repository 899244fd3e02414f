// The chart: one lane per station on a shared time axis, drawn on a canvas.
// A lane holds the spread and the mean of pH per bucket, the permitted band, the alerts, and under it the worst φ.
import { h, say, utcMinute } from './dom.js';
import { readStation, columns, search, timeTicks, seconds } from './series.js';

const lanesAtOnce = 8;
const gutter = 40; // pixels left of the plot, for the scale
const strip = 20; // height of a lane's φ strip
const gap = 18; // between lanes
const axis = 22;
const head = 8; // above the first lane

export class Chart {
  constructor(box, barrier, alerts, source) {
    this.source = source;
    this.low = barrier.parameters.low;
    this.high = barrier.parameters.high;
    this.stations = barrier.stations.map(readStation);
    this.alerts = alerts.map(a => ({ ...a, from: Date.parse(a.start) / 1000, to: Date.parse(a.end) / 1000 }));
    this.step = seconds(barrier.parameters.interval) || 3600;
    // A line is broken where more than this lies between two buckets' starts.
    this.breakAfter = Math.max(this.step, seconds(barrier.parameters.max_gap)) + this.step * 0.01;
    this.first = this.stations.reduce((t, st) => Math.min(t, st.t[0]), Infinity);
    this.last = this.stations.reduce((t, st) => Math.max(t, st.t.at(-1)), -Infinity) + this.step;
    this.alertsOf = Map.groupBy(this.alerts, a => a.station);
    const width = this.high - this.low;
    this.phiTop = Math.max(0.01, -Math.log(4 * 0.01 * (width - 0.01) / (width * width))); // φ at a limit
    this.page = 0;
    this.from = this.first;
    this.to = this.last;
    this.cursor = this.first;
    this.pointed = false; // whether the cursor was moved yet
    this.jumped = null;
    this.build(box);
  }

  build(box) {
    const button = (label, text, act) => h('button', { type: 'button', class: 'small', 'aria-label': label, onclick: act }, text);
    this.canvas = h('canvas', { 'aria-hidden': 'true' });
    this.map = h('canvas', { class: 'map', 'aria-hidden': 'true' });
    this.frame = h('div', {
      class: 'chart', id: 'chart', tabindex: 0, role: 'slider', 'aria-label': 'Time on the chart of pH by station', 'aria-describedby': 'chart-keys',
      'aria-valuemin': Math.round(this.first), 'aria-valuemax': Math.round(this.last), 'aria-valuenow': Math.round(this.cursor),
    }, this.canvas);
    this.readout = h('div', { class: 'readout', id: 'readout' });
    this.range = h('span', { class: 'dim', id: 'range' }); // which part of the time is in view
    this.pager = h('div', { class: 'filters' });
    box.append(
      h('div', { class: 'chart-bar' }, this.readout,
        h('div', { class: 'filters' }, this.pager, this.range,
          button('Earlier', '←', () => this.pan(-0.25)), button('Later', '→', () => this.pan(0.25)),
          button('Zoom in', '+', () => this.scale(0.5)), button('Zoom out', '−', () => this.scale(2)), button('Show all of the time', 'All', () => this.view(this.first, this.last)))),
      this.frame, this.map,
      h('div', { class: 'legend', 'aria-hidden': 'true' },
        [['in', 'inside the band'], ['high', 'above it'], ['low', 'below it'], ['gap', 'no readings'], ['phi', 'worst φ (root scale)']].map(([key, text]) => h('span', null, h('i', { class: `key-${key}` }), text))),
      h('p', { class: 'dim keys', id: 'chart-keys' }, 'Drag to zoom, double-click for all. Keys: ← → move along, with Shift the view; + − zoom; 0 all; N and P the next and previous alert.'));
    this.listen();
    this.drawPager();
  }

  listen() {
    this.theme = () => { this.ink = null; this.draw(); };
    document.addEventListener('theme', this.theme);
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(this.frame);
    this.frame.addEventListener('keydown', e => this.key(e));
    this.frame.addEventListener('dblclick', () => this.view(this.first, this.last));
    this.frame.addEventListener('focus', () => this.tell());
    const at = e => this.time(e.clientX - this.frame.getBoundingClientRect().left);
    this.frame.addEventListener('pointerdown', e => {
      if (e.button !== 0) return;
      this.drag = { from: at(e), to: at(e) };
      this.frame.setPointerCapture(e.pointerId);
    });
    this.frame.addEventListener('pointermove', e => {
      this.cursor = at(e);
      this.pointed = true;
      if (this.drag) this.drag.to = at(e);
      this.draw();
    });
    const drop = e => {
      const d = this.drag;
      this.drag = null;
      if (!d || e.type === 'pointercancel') return this.draw();
      const [a, b] = [Math.min(d.from, d.to), Math.max(d.from, d.to)];
      if (this.pixels(b) - this.pixels(a) > 6) this.view(a, b);
      else this.draw();
    };
    this.frame.addEventListener('pointerup', drop);
    this.frame.addEventListener('pointercancel', drop);
    this.frame.addEventListener('wheel', e => {
      if (!e.ctrlKey && !e.metaKey) return;
      e.preventDefault();
      this.cursor = at(e);
      this.scale(e.deltaY < 0 ? 0.8 : 1.25);
    }, { passive: false });
    const slide = e => {
      if (e.buttons !== 1) return;
      const rect = this.map.getBoundingClientRect();
      const mid = this.first + (e.clientX - rect.left - gutter) / (rect.width - gutter) * (this.last - this.first);
      const half = (this.to - this.from) / 2;
      this.view(mid - half, mid + half);
    };
    this.map.addEventListener('pointerdown', e => { this.map.setPointerCapture(e.pointerId); slide(e); });
    this.map.addEventListener('pointermove', slide);
  }

  close() {
    this.watcher.disconnect();
    document.removeEventListener('theme', this.theme);
  }

  key(e) {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const moves = {
      ArrowRight: () => (e.shiftKey ? this.pan(0.1) : this.move(this.step)), ArrowLeft: () => (e.shiftKey ? this.pan(-0.1) : this.move(-this.step)),
      ArrowUp: () => this.move(this.step), ArrowDown: () => this.move(-this.step),
      PageUp: () => this.move(24 * this.step), PageDown: () => this.move(-24 * this.step),
      Home: () => this.move(-Infinity), End: () => this.move(Infinity),
      '+': () => this.scale(0.5), '=': () => this.scale(0.5), '-': () => this.scale(2), '0': () => this.view(this.first, this.last),
      n: () => this.next(1), p: () => this.next(-1),
    };
    const act = moves[e.key] ?? moves[e.key.toLowerCase()];
    if (!act) return;
    e.preventDefault();
    this.pointed = true;
    act();
    this.tell();
  }

  move(by) {
    this.cursor = clamp(this.cursor + by, this.first, this.last - this.step);
    if (this.cursor < this.from || this.cursor > this.to) {
      const half = (this.to - this.from) / 2;
      this.view(this.cursor - half, this.cursor + half);
    } else this.draw();
  }

  pan(share) {
    const by = (this.to - this.from) * share;
    this.view(this.from + by, this.to + by);
    this.cursor = clamp(this.cursor, this.from, this.to);
  }

  scale(by) {
    const anchor = this.cursor >= this.from && this.cursor <= this.to ? this.cursor : (this.from + this.to) / 2;
    this.view(anchor - (anchor - this.from) * by, anchor + (this.to - anchor) * by);
  }

  next(direction) {
    const sorted = direction > 0 ? this.alerts : [...this.alerts].reverse();
    const here = sorted.indexOf(this.jumped);
    const a = here >= 0 ? sorted[here + 1] : sorted.find(x => direction * (x.from - this.cursor) > 0);
    if (a) this.jump(a);
  }

  // jump shows an alert with some time around it, and takes the focus there.
  jump(alert) {
    const a = this.alerts.find(x => x.id === alert.id && x.from === Date.parse(alert.start) / 1000) ?? alert;
    const room = Math.max((a.to - a.from) * 0.6, 12 * this.step);
    this.jumped = a;
    this.pointed = true;
    this.cursor = a.worst_at ? Date.parse(a.worst_at) / 1000 : a.from;
    const lane = this.stations.findIndex(st => st.name === a.station);
    this.page = Math.max(0, Math.floor(lane / lanesAtOnce));
    this.drawPager();
    this.view(a.from - room, a.to + room);
    this.frame.focus({ preventScroll: true });
    const still = matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.frame.closest('.card').scrollIntoView({ block: 'start', behavior: still ? 'auto' : 'smooth' });
    say(`${a.station}: ${a.severity} ${a.kind} alert from ${utcMinute(a.from)} to ${utcMinute(a.to)} UTC.`);
  }

  // view shows the time from a to b, kept within the data and no closer than six buckets.
  view(a, b) {
    const whole = this.last - this.first;
    const width = clamp(b - a, Math.min(whole, 6 * this.step), whole);
    this.from = clamp((a + b - width) / 2, this.first, this.last - width);
    this.to = this.from + width;
    this.draw();
  }

  drawPager() {
    const pages = Math.ceil(this.stations.length / lanesAtOnce);
    if (pages < 2) return;
    const turn = by => () => { this.page = clamp(this.page + by, 0, pages - 1); this.drawPager(); this.resize(); };
    this.pager.replaceChildren(
      h('span', { class: 'dim' }, `stations ${this.page * lanesAtOnce + 1}–${Math.min(this.stations.length, (this.page + 1) * lanesAtOnce)} of ${this.stations.length}`),
      h('button', { type: 'button', class: 'small', 'aria-label': 'Stations before', onclick: turn(-1) }, '↑'),
      h('button', { type: 'button', class: 'small', 'aria-label': 'Stations after', onclick: turn(1) }, '↓'));
  }

  lanes() {
    return this.stations.slice(this.page * lanesAtOnce, (this.page + 1) * lanesAtOnce);
  }

  pixels(t) {
    return gutter + (t - this.from) / (this.to - this.from) * (this.width - gutter);
  }

  time(x) {
    return clamp(this.from + (x - gutter) / (this.width - gutter) * (this.to - this.from), this.first, this.last - 1);
  }

  resize() {
    this.tallest = 0;
    this.readout.style.minHeight = '';
    this.width = this.frame.clientWidth;
    if (!this.width) return;
    this.lane = this.width < 500 ? 104 : this.stations.length > 4 ? 104 : 148;
    this.height = head + this.lanes().length * (this.lane + strip + gap) + axis;
    fit(this.canvas, this.width, this.height);
    fit(this.map, this.width, 30);
    this.draw();
  }

  // draw asks for one drawing in the next frame, however often it is called before.
  draw() {
    if (this.asked || !this.width) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.ink ??= inks(this.frame);
      this.paint();
      this.paintMap();
      this.read();
    });
  }

  paint() {
    const c = this.canvas.getContext('2d');
    c.clearRect(0, 0, this.width, this.height);
    c.font = this.ink.font;
    const ticks = timeTicks(this.from, this.to, this.width < 500 ? 4 : 9);
    c.fillStyle = this.ink.line;
    for (const [t] of ticks) c.fillRect(Math.round(this.pixels(t)), 0, 1, this.height - axis);
    const lanes = this.lanes().map(st => ({ st, cols: columns(st, this.from, this.to, this.width - gutter, this.step) }));
    lanes.forEach(({ st, cols }, i) => this.paintLane(c, st, cols, head + i * (this.lane + strip + gap)));
    c.fillStyle = this.ink.dim;
    c.textAlign = 'center';
    for (const [t, label] of ticks) {
      const x = this.pixels(t);
      if (x > gutter + 16 && x < this.width - 16) c.fillText(label, x, this.height - 6);
    }
    this.paintCursor(c);
  }

  paintLane(c, st, cols, y0) {
    // The band and everything in view fit, in steps of half a pH.
    const bottom = Math.max(0, Math.floor(cols.reduce((ph, col) => Math.min(ph, col.min), this.low) * 2 - 0.2) / 2);
    const top = Math.min(14, Math.ceil(cols.reduce((ph, col) => Math.max(ph, col.max), this.high) * 2 + 0.2) / 2);
    const y = ph => y0 + (top - ph) / (top - bottom) * this.lane;
    const [yHigh, yLow, right] = [y(this.high), y(this.low), this.width - gutter];
    c.fillStyle = this.ink.band;
    c.fillRect(gutter, yHigh, right, yLow - yHigh);
    c.fillStyle = this.ink.limit;
    c.fillRect(gutter, Math.round(yHigh), right, 1);
    c.fillRect(gutter, Math.round(yLow), right, 1);
    c.fillStyle = this.ink.dim;
    c.textAlign = 'right';
    c.fillText(this.high, gutter - 8, yHigh + 4);
    c.fillText(this.low, gutter - 8, yLow + 4);
    if (yHigh - y0 > 24) c.fillText(top, gutter - 8, y0 + 8);
    if (y0 + this.lane - yLow > 24) c.fillText(bottom, gutter - 8, y0 + this.lane);
    c.fillText('φ', gutter - 8, y0 + this.lane + strip);

    this.paintGaps(c, st, y0);
    for (const [ink, top, bottom] of [[this.ink.in, yHigh, yLow], [this.ink.high, y0 - 4, yHigh], [this.ink.low_, yLow, y0 + this.lane + 4]]) {
      c.save();
      c.beginPath();
      c.rect(gutter, top, right, bottom - top);
      c.clip();
      this.paintCurve(c, cols, y, ink);
      c.restore();
    }
    this.paintAlerts(c, st, y0);
    this.paintPhi(c, cols, y0 + this.lane + 5);
    c.fillStyle = this.ink.text;
    c.textAlign = 'left';
    c.font = this.ink.bold;
    c.strokeStyle = this.ink.card;
    c.lineWidth = 4;
    const name = shorten(c, st.name, right - 12);
    c.strokeText(name, gutter + 6, y0 + 13);
    c.fillText(name, gutter + 6, y0 + 13);
    c.font = this.ink.font;
  }

  // paintCurve draws the spread as bars or an area and the mean as a line, broken where readings are missing.
  paintCurve(c, cols, y, ink) {
    c.fillStyle = ink;
    c.strokeStyle = ink;
    c.globalAlpha = 0.3;
    const wide = Math.max(1, this.step / (this.to - this.from) * (this.width - gutter));
    for (const col of cols) c.fillRect(gutter + col.x, y(col.max) - 0.5, wide, y(col.min) - y(col.max) + 1);
    c.globalAlpha = 1;
    c.lineWidth = 1.5;
    c.lineJoin = 'round';
    c.beginPath();
    let before = null;
    for (const col of cols) {
      const x = gutter + col.x + (wide > 1 ? wide / 2 : 0);
      if (before === null || col.from - before > this.breakAfter) {
        c.moveTo(x - 0.5, y(col.mean));
        c.lineTo(x + 0.5, y(col.mean));
      } else c.lineTo(x, y(col.mean));
      before = col.until;
    }
    c.stroke();
  }

  paintGaps(c, st, y0) {
    c.strokeStyle = this.ink.gap;
    c.lineWidth = 1;
    for (const a of this.alertsOf.get(st.name) ?? []) {
      if (a.kind !== 'gap' || a.to < this.from || a.from > this.to) continue;
      const x = Math.max(gutter, this.pixels(a.from));
      const width = Math.max(2, Math.min(this.width, this.pixels(a.to)) - x);
      c.save();
      c.beginPath();
      c.rect(x, y0, width, this.lane);
      c.clip();
      c.beginPath();
      for (let d = -this.lane; d < width; d += 5) {
        c.moveTo(x + d, y0 + this.lane);
        c.lineTo(x + d + this.lane, y0);
      }
      c.stroke();
      c.restore();
    }
  }

  // paintAlerts marks excursions at the lane's edge: above the band at the top, below it at the bottom; critical ones thicker.
  paintAlerts(c, st, y0) {
    for (const a of this.alertsOf.get(st.name) ?? []) {
      if (a.to < this.from || a.from > this.to) continue;
      const x = Math.max(gutter, this.pixels(a.from));
      const width = Math.max(2, Math.min(this.width, this.pixels(a.to)) - x);
      const thick = a.severity === 'critical' ? 5 : 3;
      c.fillStyle = { high: this.ink.high, low: this.ink.low_ }[a.kind] ?? this.ink.gap;
      if (a.kind !== 'gap') c.fillRect(x, a.kind === 'high' ? y0 - 3 : y0 + this.lane + 3 - thick, width, thick);
      if (a === this.jumped) {
        c.globalAlpha = 0.12;
        c.fillRect(x, y0, width, this.lane);
        c.globalAlpha = 1;
        c.strokeStyle = c.fillStyle;
        c.strokeRect(Math.round(x) - 1.5, y0 - 2.5, width + 3, this.lane + 4);
      }
    }
  }

  // paintPhi draws the worst φ as columns, on a root scale since it is small nearly everywhere; a bucket outside the band has none and fills the strip in the colour of its side.
  paintPhi(c, cols, y0) {
    const tall = strip - 6;
    c.fillStyle = this.ink.track;
    c.fillRect(gutter, y0, this.width - gutter, tall);
    const wide = Math.max(1, this.step / (this.to - this.from) * (this.width - gutter)) + 0.4; // no seams between neighbours
    for (const col of cols) {
      const share = col.outside ? 1 : clamp(Math.sqrt(Math.max(0, col.phi) / this.phiTop), 0.03, 1);
      c.fillStyle = col.outside ? (col.max > this.high ? this.ink.high : this.ink.low_) : this.ink.phi;
      c.fillRect(gutter + col.x, y0 + tall * (1 - share), wide, tall * share);
    }
  }

  paintCursor(c) {
    if (this.pointed && this.cursor >= this.from && this.cursor <= this.to) {
      c.fillStyle = this.ink.cursor;
      c.fillRect(Math.round(this.pixels(this.cursor)), 0, 1, this.height - axis);
    }
    if (!this.drag) return;
    const [a, b] = [this.drag.from, this.drag.to].map(t => this.pixels(t));
    c.fillStyle = this.ink.select;
    c.fillRect(Math.min(a, b), 0, Math.abs(b - a), this.height - axis);
  }

  // paintMap draws all of the time: alerts of every station, and the part in view.
  paintMap() {
    const c = this.map.getContext('2d');
    const x = t => gutter + (t - this.first) / (this.last - this.first) * (this.width - gutter);
    c.clearRect(0, 0, this.width, 30);
    c.fillStyle = this.ink.track;
    c.fillRect(gutter, 6, this.width - gutter, 18);
    for (const a of this.alerts) {
      c.fillStyle = { high: this.ink.high, low: this.ink.low_ }[a.kind] ?? this.ink.dim;
      c.fillRect(x(a.from), { high: 8, gap: 13, low: 18 }[a.kind] ?? 13, Math.max(1, x(a.to) - x(a.from)), 4);
    }
    c.fillStyle = this.ink.select;
    c.fillRect(x(this.from), 2, x(this.to) - x(this.from), 26);
    c.strokeStyle = this.ink.in;
    c.lineWidth = 1.5;
    c.strokeRect(x(this.from) + 0.75, 2.75, Math.max(3, x(this.to) - x(this.from) - 1.5), 24.5);
  }

  values() {
    return this.lanes().map(st => {
      const i = search(st.t, this.cursor + 1) - 1;
      return { st, i: i >= 0 && this.cursor - st.t[i] < this.step ? i : -1 };
    });
  }

  read() {
    this.readout.replaceChildren(h('em', { class: 'dim' }, this.source), h('b', null, `${utcMinute(Math.floor(this.cursor / this.step) * this.step)} UTC`),
      ...this.values().map(({ st, i }) => h('span', null, `${st.name} `, i < 0 ? h('em', null, 'no reading')
        : [h('b', { class: st.outside[i] ? (st.max[i] > this.high ? 'v-high' : 'v-low') : '' }, st.mean[i].toFixed(2)), h('em', null, st.outside[i] ? ' outside' : ` φ ${st.phi[i].toFixed(2)}`)])));
    this.tallest = Math.max(this.tallest, this.readout.offsetHeight); // a line less would move the chart under the pointer
    this.readout.style.minHeight = `${this.tallest}px`;
    this.frame.setAttribute('aria-valuenow', Math.round(this.cursor));
    const whole = this.to - this.from >= this.last - this.first;
    this.range.textContent = whole ? 'all of the time' : `${utcMinute(this.from)} – ${utcMinute(this.to)}`;
  }

  // tell words the place of the cursor for screen readers.
  tell() {
    const words = this.values().map(({ st, i }) => (i < 0 ? `${st.name} no reading`
      : `${st.name} pH ${st.mean[i].toFixed(2)}${st.outside[i] ? `, ${st.outside[i]} of ${st.readings[i]} readings outside` : ''}`));
    this.frame.setAttribute('aria-valuetext', `${utcMinute(Math.floor(this.cursor / this.step) * this.step)} UTC: ${words.join('; ')}`);
  }
}

// shorten returns the text, or as much of its beginning as fits into the width.
function shorten(c, text, width) {
  if (c.measureText(text).width <= width) return text;
  const letters = [...text];
  while (letters.length > 1 && c.measureText(`${letters.join('')}…`).width > width) letters.pop();
  return `${letters.join('')}…`;
}

function fit(canvas, width, height) {
  const dense = devicePixelRatio || 1;
  canvas.width = Math.round(width * dense);
  canvas.height = Math.round(height * dense);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  canvas.getContext('2d').scale(dense, dense);
}

function inks(el) {
  const style = getComputedStyle(el);
  const of = name => style.getPropertyValue(`--${name}`).trim();
  return {
    text: of('ink'), card: of('card'), dim: of('dim'), line: of('grid'), band: of('band'), limit: of('limit'), in: of('sea'), high: of('high'), low_: of('low'),
    gap: of('gap'), phi: of('phi'), track: of('track'), cursor: of('ink'), select: of('select'),
    font: `11px ${style.fontFamily}`, bold: `600 12px ${style.fontFamily}`,
  };
}

const clamp = (v, a, b) => Math.min(Math.max(v, a), b);
