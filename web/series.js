// What the chart draws, worked out of what the hub sends: series by station, columns of pixels, round times.

// readStation turns the points of a station into arrays; t is the buckets' starts in seconds.
export function readStation({ station, points }) {
  const of = f => Float64Array.from(points, f);
  const min = of(p => p.ph_min);
  const max = of(p => p.ph_max);
  return {
    name: station, t: of(p => Date.parse(p.start) / 1000), min, max, mean: of(p => p.ph_mean),
    phi: of(p => p.phi ?? NaN), outside: of(p => p.outside), readings: of(p => p.readings),
  };
}

// columns folds the buckets in view into at most one entry per pixel: what is drawn does not grow with the data.
export function columns(st, from, to, width, step) {
  const out = [];
  const end = search(st.t, to);
  let col = null;
  let n = 0;
  for (let i = Math.max(0, search(st.t, from - step)); i < end; i++) {
    const x = Math.max(0, (st.t[i] - from) / (to - from) * width);
    const phi = st.phi[i] || 0;
    if (col && Math.floor(col.x) === Math.floor(x)) {
      n++;
      col.min = Math.min(col.min, st.min[i]);
      col.max = Math.max(col.max, st.max[i]);
      col.mean += (st.mean[i] - col.mean) / n;
      col.phi = Math.max(col.phi, phi);
      col.outside += st.outside[i];
      col.until = st.t[i];
    } else {
      n = 1;
      col = { x, min: st.min[i], max: st.max[i], mean: st.mean[i], phi, outside: st.outside[i], from: st.t[i], until: st.t[i] };
      out.push(col);
    }
  }
  return out;
}

// search is the index of the first time not before t.
export function search(times, t) {
  let [a, b] = [0, times.length];
  while (a < b) {
    const mid = (a + b) >> 1;
    if (times[mid] < t) a = mid + 1;
    else b = mid;
  }
  return a;
}

// timeTicks gives about n round times between from and to, each with its label.
export function timeTicks(from, to, n) {
  const out = [];
  const steps = [60, 300, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600];
  const step = steps.find(x => (to - from) / x <= n);
  const label = (t, options) => new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', ...options }).format(t * 1000);
  if (!step) {
    const months = Math.max(1, Math.ceil((to - from) / 2629800 / n));
    const d = new Date(from * 1000);
    for (let m = d.getUTCMonth() + 1; ; m += months) {
      const t = Date.UTC(d.getUTCFullYear(), m) / 1000;
      if (t > to) return out;
      out.push([t, label(t, { month: 'short', year: 'numeric' })]);
    }
  }
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    out.push([t, label(t, t % 86400 ? { hour: '2-digit', minute: '2-digit' } : { day: 'numeric', month: 'short' })]);
  }
  return out;
}

// seconds reads a Go duration such as 1h30m.
export function seconds(duration) {
  let sum = 0;
  for (const [, n, unit] of duration.matchAll(/([\d.]+)(h|m(?!s)|s)/g)) sum += n * { h: 3600, m: 60, s: 1 }[unit];
  return sum;
}
