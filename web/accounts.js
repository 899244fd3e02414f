// Accounts: the five authentication operations and both tokens, decoded and counting down.
import { h, $, say, copyButton, span, ago, utc, utcDay } from './dom.js';
import { problem } from './wire.js';
import { ask, learn, spoken } from './dialect.js';
import { session, hubClock, onSession, begin, rotate, end, live } from './session.js';

const demos = [
  { username: 'demo', role: 'user', note: 'an ordinary user' },
  { username: 'admin', role: 'admin', note: 'with the role admin' },
  { username: 'disabled', role: 'user', note: 'is refused: 403 account_disabled' },
];
const lifetimes = [['', 'as the hub sets it'], ['15', '15 seconds'], ['60', '1 minute'], ['300', '5 minutes']];
const endings = {
  token_reused: 'A spent refresh token came back, so the hub ended the whole session.',
  token_revoked: 'The hub says this session has ended.',
};

let note = { text: '', tone: '' };
let form = 'login';
let lifetime = '';
let ticking = null;

// The form fields a person has begun to fill in outlive a redraw.
const typed = { username: '', email: '', name: '', password: '' };

export const accounts = {
  build() {
    onSession(draw);
    draw();
  },
  seen(visible) {
    if (visible) learn().then(changed => changed && draw());
    clearInterval(ticking);
    ticking = visible ? setInterval(tick, 200) : null;
  },
};

function tell(text, tone = '') {
  note = { text, tone };
  draw();
  if (text) say(text);
}

async function enter(operation, body, hint = '') {
  if (lifetime) body = { ...body, expires_in: Number(lifetime) };
  const x = await ask(operation, body);
  if (!x.ok) return tell(problem(x) + (x.code === 'invalid_credentials' ? hint : ''), 'bad');
  typed.password = '';
  if (!x.session) return tell('The hub has let you in. No token is in the answer: scripts can’t read the cookies it is in.', 'good');
  note = { text: '', tone: '' };
  begin(x.session);
  $('account').querySelector('h3')?.focus();
}

async function me() {
  const x = await ask('me', { token: session.access?.token });
  if (x.ok) return tell(`The hub knows you: ${x.data?.username ?? session.user?.username}, id ${x.data?.id ?? session.user?.id}.`, 'good');
  endIfDead(x);
  tell(problem(x), 'bad');
}

async function refresh() {
  const x = await ask('refresh', { refresh_token: session.refresh?.token });
  if (!x.ok || !x.session) {
    endIfDead(x);
    return tell(problem(x), 'bad');
  }
  const kept = session.refresh !== null && (x.session.refresh_token ?? session.refresh.token) === session.refresh.token;
  note = { text: kept ? 'A new access token. The refresh token stays.' : 'A new pair. The refresh token before it is spent now.', tone: 'good' };
  rotate(kept ? { ...x.session, refresh_token: undefined } : x.session);
}

async function replay() {
  const x = await ask('refresh', { refresh_token: session.spent.at(-1).token });
  if (x.ok && x.session) {
    note = { text: 'The hub’s refresh policy let the spent token through.', tone: 'good' };
    return rotate(x.session);
  }
  endIfDead(x);
  tell(problem(x), 'bad');
}

async function logOut(all) {
  const x = await ask(all ? 'logout_all' : 'logout', { token: session.access?.token });
  if (!x.ok) return tell(problem(x), 'bad');
  note = { text: '', tone: '' };
  end(all ? 'You logged out everywhere: every session of this user has ended.' : 'You logged out: both tokens ended at once.');
}

function endIfDead(x) {
  if (x.code in endings) end(endings[x.code]);
}

function draw() {
  const box = $('account');
  const focused = box.contains(document.activeElement) ? document.activeElement.dataset.key : null;
  // The operations stay where they are when a session ends, so that nothing else comes under the pointer.
  box.replaceChildren(...[
    session.access ? whoIsIn() : wayIn(),
    h('div', { class: 'actions', role: 'group', 'aria-label': 'Operations' }, operations()),
    h('p', { class: 'dim', id: 'spoken', hidden: !spoken.name }, 'These buttons speak the dialect ', h('b', null, spoken.name), '.'),
    h('p', { class: 'note', 'data-tone': note.tone, hidden: !note.text }, note.text),
    session.access && !live() && wayIn(),
  ].filter(Boolean));
  if (focused) box.querySelector(`[data-key="${focused}"]`)?.focus();
  $('tokens').replaceChildren(tokenCard('Access token', session.access), tokenCard('Refresh token', session.refresh));
  tick();
}

function operations() {
  const has = session.access !== null;
  const action = (key, label, act, on, hint) => h('button', {
    type: 'button', 'data-key': key, onclick: act, disabled: !on, title: hint, class: key === 'refresh' && live() ? 'primary' : null,
  }, label);
  return [
    action('me', 'Who am I', me, true, 'GET me with the access token'),
    action('refresh', 'Refresh', refresh, has, 'POST refresh with the refresh token'),
    action('replay', 'Replay a spent token', replay, session.spent.length > 0, 'POST refresh with the one before'),
    action('logout', 'Log out', () => logOut(false), has, 'POST logout'),
    action('logout-all', 'Log out everywhere', () => logOut(true), has, 'POST logout?all=true'),
  ];
}

function whoIsIn() {
  const u = session.user ?? {};
  return h('div', { class: 'who' },
    h('div', { class: 'face', 'aria-hidden': 'true' }, [...(u.name || u.username || '?')][0].toUpperCase()),
    h('div', null,
      h('h3', { tabindex: -1, 'data-key': 'who' }, u.name || u.username),
      h('p', { class: 'dim' }, [u.username, u.email].filter(Boolean).join(' · '))),
    h('dl', { class: 'facts' },
      fact('Role', h('span', { class: 'tag', 'data-role': u.role }, u.role)),
      fact('Since', u.created_at ? h('time', { datetime: u.created_at, title: ago(Date.parse(u.created_at) / 1000, hubClock.now()) }, utcDay(Date.parse(u.created_at) / 1000)) : '—'),
      fact('User', h('code', null, u.id)),
      fact(live() ? 'Session' : 'Session, ended', h('code', { class: live() ? null : 'over' }, session.access.claims.sid))));
}

const fact = (name, value) => h('div', null, h('dt', null, name), h('dd', null, value));

function wayIn() {
  return h('div', { class: 'way-in' },
    h('div', null,
      h('h3', { tabindex: -1 }, session.access ? 'Log in again' : 'One click'),
      h('div', { class: 'demos' }, demos.map(d => h('button', {
        type: 'button', class: 'demo', 'data-key': `demo-${d.username}`,
        onclick: () => enter('login', { username: d.username, password: `${d.username}-password` }, ' This hub may have accounts of its own (-users).'),
      }, h('b', null, d.username), h('span', null, d.note)))),
      h('label', { class: 'inline' }, 'The access token lives ',
        h('select', { 'data-key': 'lifetime', onchange: e => { lifetime = e.target.value; } },
          lifetimes.map(([value, label]) => h('option', { value, selected: value === lifetime }, label))))),
    h('div', null,
      h('div', { class: 'switch', role: 'group', 'aria-label': 'Log in or register' },
        [['login', 'Log in'], ['register', 'Register']].map(([key, label]) => h('button', {
          type: 'button', 'data-key': `form-${key}`, 'aria-pressed': String(form === key), onclick: () => { form = key; draw(); },
        }, label))),
      form === 'login' ? loginForm() : registerForm()));
}

function field(name, label, props = {}) {
  return h('label', { class: 'field' }, label, h('input', {
    name, 'data-key': `field-${name}`, value: typed[name], autocapitalize: 'none', spellcheck: 'false',
    oninput: e => { typed[name] = e.target.value; }, ...props,
  }));
}

function sender(operation, names) {
  return e => {
    e.preventDefault();
    enter(operation, Object.fromEntries(names.filter(n => typed[n] !== '').map(n => [n, typed[n]])));
  };
}

function loginForm() {
  return h('form', { onsubmit: sender('login', ['username', 'password']) },
    field('username', 'User name or e-mail', { autocomplete: 'username' }),
    field('password', 'Password', { type: 'password', autocomplete: 'current-password' }),
    h('button', { class: 'primary', 'data-key': 'submit' }, 'Log in'));
}

function registerForm() {
  return h('form', { onsubmit: sender('register', ['username', 'email', 'name', 'password']) },
    h('div', { class: 'two' },
      field('username', 'User name', { autocomplete: 'username' }),
      field('name', 'Name (optional)', { autocomplete: 'name', autocapitalize: 'words' })),
    field('email', 'E-mail (optional)', { type: 'text', inputmode: 'email', autocomplete: 'email' }),
    field('password', 'Password, 8 characters or more', { type: 'password', autocomplete: 'new-password' }),
    h('button', { class: 'primary', 'data-key': 'submit' }, 'Register'));
}

const claimWords = {
  iss: () => 'who issued it',
  sub: () => 'the user',
  sid: () => 'the session',
  jti: () => 'this one token',
  username: () => 'the user’s name',
  role: () => 'what the user may do',
  gen: n => `generation: ${n === 0 ? 'straight from log-in' : `refreshed ${n} ${n === 1 ? 'time' : 'times'}`}`,
  iat: n => `issued ${utc(n)}`,
  exp: n => `expires ${utc(n)}`,
  nbf: n => `not before ${utc(n)}`,
};

function tokenCard(title, t) {
  const kind = title.startsWith('Access') ? 'access' : 'refresh';
  if (!t) {
    return h('article', { class: 'card token empty', 'aria-label': title },
      h('h3', null, title),
      h('p', { class: 'hollow' }, kind === 'access'
        ? 'None yet. It says who you are on every request, and lives for minutes.'
        : 'None yet. It is exchanged for the next pair, and is spent after that.'));
  }
  const generation = session.refresh?.claims.gen ?? 0;
  const dots = Array.from({ length: Math.min(generation + 1, 6) || 0 });
  return h('article', { class: 'card token', 'data-kind': kind, 'aria-label': title },
    h('div', { class: 'token-h' },
      h('h3', null, title),
      kind === 'refresh' && h('p', { class: 'gens', title: 'Each refresh makes the next generation; the ones before are spent.' },
        dots.map((_, i) => h('i', { class: i === dots.length - 1 ? 'now' : 'spent', 'aria-hidden': 'true' })),
        `generation ${generation}`)),
    h('p', { class: 'count', 'data-exp': t.claims.exp, 'data-iat': t.claims.iat }, h('b'), ' ', h('span')),
    h('div', { class: 'drain', 'aria-hidden': 'true' }, h('i')),
    h('table', { class: 'claims', 'aria-label': `${title}: header and claims` },
      h('tbody', null,
        h('tr', null, h('th', { scope: 'row' }, 'header'), h('td', null, h('code', null, JSON.stringify(t.header)))),
        Object.entries(t.claims).map(([name, value]) => h('tr', null,
          h('th', { scope: 'row' }, name),
          h('td', null, h('code', null, typeof value === 'string' ? value : JSON.stringify(value)),
            h('span', { class: 'dim' }, claimWords[name]?.(value) ?? '')))))),
    h('div', { class: 'raw' },
      h('p', { class: 'jws', tabindex: 0, role: 'group', 'aria-label': `${title} as sent: header, claims, signature` },
        ['head', 'body', 'sign'].map((part, i) => [i ? '.' : '', h('span', { class: part }, t.parts[i] ?? '')])),
      copyButton(`the ${kind} token`, () => t.token)));
}

// tick moves the countdowns, and says once when a token has run out.
let saidOver = null;

function tick() {
  for (const card of document.querySelectorAll('.token[data-kind]')) {
    const p = card.querySelector('.count');
    const left = p.dataset.exp - hubClock.now();
    const share = Math.max(0, Math.min(1, left / (p.dataset.exp - p.dataset.iat)));
    const state = session.ended ? 'ended' : left <= 0 ? 'expired' : share < 0.2 ? 'soon' : 'live';
    card.dataset.state = state;
    card.querySelector('.drain i').style.transform = `scaleX(${state === 'ended' ? 0 : share})`;
    p.querySelector('b').textContent = state === 'ended' ? 'ended' : state === 'expired' ? 'expired' : digits(left);
    p.querySelector('span').textContent = state === 'ended' ? session.ended
      : state === 'expired' ? `${ago(Number(p.dataset.exp), hubClock.now())}${card.dataset.kind === 'access' ? '; refresh for a new one' : '; log in again'}`
      : `left of ${span(p.dataset.exp - p.dataset.iat)}${hubClock.stoppedAt === null ? '' : ', the hub’s clock stands still'}`;
    if (state === 'expired' && saidOver !== session.access && card.dataset.kind === 'access') {
      saidOver = session.access;
      say('The access token has expired.');
    }
  }
}

// digits is a countdown as on a clock: 6 d 23:59:58, 14:32, 9.4 s.
function digits(left) {
  if (left < 10) return `${left.toFixed(1)} s`;
  const whole = Math.floor(left);
  const [d, hr, m, sec] = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60, whole % 60];
  const two = n => String(n).padStart(2, '0');
  if (d) return `${d} d ${two(hr)}:${two(m)}:${two(sec)}`;
  return hr ? `${hr}:${two(m)}:${two(sec)}` : `${m}:${two(sec)}`;
}
