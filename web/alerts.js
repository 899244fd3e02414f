// The table of alerts: filtered, a page at a time, each row jumping to its place on the chart.
import { h, number, span, utcMinute } from './dom.js';

const page = 12;
const kindWords = { low: 'below the band', high: 'above the band', gap: 'no readings' };

// alertTable makes the card; jump(alert) shows one on the chart.
export function alertTable(alerts, jump) {
  let shown = page;
  const chosen = { kind: '', station: '', severity: '' };
  const box = h('div', { class: 'card alerts' });

  const choice = (name, all) => {
    const values = [...new Set(alerts.map(a => a[name]))].sort();
    return h('select', { 'aria-label': `Which ${name}`, onchange: e => { chosen[name] = e.target.value; shown = page; draw(); } },
      h('option', { value: '' }, all), values.map(v => h('option', { value: v }, v)));
  };
  const list = h('div');
  const counted = h('p', { class: 'dim' });
  box.append(
    h('div', { class: 'card-h' }, h('h3', null, 'Alerts'), h('code', { class: 'dim' }, 'alertesph.json'), counted,
      alerts.length > 0 && h('div', { class: 'filters' }, choice('kind', 'every kind'), choice('station', 'every station'), choice('severity', 'every severity'))),
    list);

  function draw() {
    const some = alerts.filter(a => Object.entries(chosen).every(([name, v]) => !v || a[name] === v));
    counted.textContent = alerts.length === 0 ? 'None: every reading is inside the band, without a gap.'
      : some.length === alerts.length ? `${number(some.length)}, ${number(some.filter(a => a.severity === 'critical').length)} critical`
      : `${number(some.length)} of ${number(alerts.length)}`;
    list.replaceChildren(some.length ? table(some) : '', some.length > shown
      ? h('button', { type: 'button', class: 'more', onclick: () => { shown += page * 4; draw(); } }, `Show more (${number(some.length - shown)} left)`) : '');
  }

  const table = some => h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Alerts' },
    h('table', { class: 'rows folds' },
      h('thead', null, h('tr', null, ['Alert', 'Station', 'Start (UTC)', 'Lasted', 'Worst', ''].map(t => h('th', { scope: 'col' }, t || h('span', { class: 'sr' }, 'On the chart'))))),
      h('tbody', null, some.slice(0, shown).map(a => h('tr', { 'data-alert': a.id },
        h('td', { class: 'what' }, h('span', { class: 'mark', 'data-kind': a.kind, 'data-severity': a.severity }), kindWords[a.kind] ?? a.kind,
          a.severity === 'critical' && h('span', { class: 'tag', 'data-tone': 'bad' }, 'critical')),
        h('th', { scope: 'row' }, a.station),
        h('td', { class: 'num' }, utcMinute(Date.parse(a.start) / 1000)),
        h('td', { class: 'num' }, a.duration_s ? span(a.duration_s) : 'one reading', a.open && ', open'),
        h('td', { class: 'num' }, a.worst_ph === null ? '—' : `pH ${a.worst_ph}`),
        h('td', null, h('button', { type: 'button', class: 'small', 'aria-label': `Show on the chart: ${a.station}, ${a.kind}, ${a.start}`, onclick: () => jump(a) }, 'Show')))))));

  draw();
  return box;
}
