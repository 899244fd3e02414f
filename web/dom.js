// Building blocks of the page. Text from the hub or the user goes in as text nodes only.

// h makes an element: h('p', {class: 'note', onclick: f}, 'text', child).
// A property that is null, undefined or false is left out; true is an empty attribute.
export function h(tag, props, ...children) {
  return fill(put(document.createElement(tag), props), children);
}

// s is h for SVG.
export function s(tag, props, ...children) {
  return fill(put(document.createElementNS('http://www.w3.org/2000/svg', tag), props), children);
}

function put(el, props) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value == null || value === false) continue;
    if (name.startsWith('on')) el.addEventListener(name.slice(2), value);
    else if (name === 'value') el.value = value;
    else el.setAttribute(name, value === true ? '' : value);
  }
  return el;
}

function fill(el, children) {
  for (const child of children.flat(3)) {
    if (child != null && child !== false) el.append(child);
  }
  return el;
}

export const $ = id => document.getElementById(id);

// redraw puts nodes in the place of what el holds. A control that has the focus keeps it, by its place among the others.
export function redraw(el, ...nodes) {
  const controls = () => [...el.querySelectorAll('a, button, input, select, [tabindex]')];
  const focused = controls().indexOf(document.activeElement);
  el.replaceChildren(...nodes);
  if (focused >= 0) controls()[focused]?.focus({ preventScroll: true });
}

// say speaks a sentence to screen readers.
export function say(sentence) {
  $('say').textContent = sentence;
}

// copyButton copies what text() gives at the time of the click.
export function copyButton(label, text) {
  const b = h('button', { type: 'button', class: 'small', 'aria-label': `Copy ${label}` }, 'Copy');
  b.addEventListener('click', async () => {
    let done = 'Copied';
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      done = 'Select and copy by hand';
    }
    b.textContent = done;
    say(done);
    setTimeout(() => { b.textContent = 'Copy'; }, 1600);
  });
  return b;
}

const bytesFormat = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const count = new Intl.NumberFormat('en');
export const number = n => count.format(n);

export function size(n) {
  if (n < 1024) return `${n} B`;
  if (n < 1 << 20) return `${bytesFormat.format(n / 1024)} KiB`;
  return `${bytesFormat.format(n / (1 << 20))} MiB`;
}

// span puts a length of time, in seconds, in words with its two largest units.
export function span(seconds) {
  const left = Math.max(0, seconds);
  if (left < 10 && left % 1) return `${left.toFixed(1)} s`;
  const units = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
  const first = units.findIndex(([, n]) => left >= n);
  if (first < 0) return '0 s';
  let rest = Math.floor(left);
  return units.slice(first, first + 2).map(([unit, n]) => {
    const whole = Math.floor(rest / n);
    rest -= whole * n;
    return whole ? `${whole} ${unit}` : '';
  }).filter(Boolean).join(' ');
}

// ago says how far a time (seconds) lies from now (seconds).
export function ago(time, now) {
  const away = now - time;
  if (Math.abs(away) < 2) return 'just now';
  return away > 0 ? `${span(away)} ago` : `in ${span(-away)}`;
}

const dateTime = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'UTC', year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit',
});
const minuteTime = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'UTC', year: 'numeric', month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit',
});
const dayOnly = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', year: 'numeric', month: 'short', day: 'numeric' });
export const utcDay = seconds => dayOnly.format(seconds * 1000);
export const utc = seconds => `${dateTime.format(seconds * 1000)} UTC`;
export const utcMinute = seconds => minuteTime.format(seconds * 1000);
