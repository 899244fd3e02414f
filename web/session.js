// The session the page holds, in memory only, and the hub's clock as far as the page knows it.

export const session = {
  access: null, // decoded tokens, see decode
  refresh: null,
  user: null,
  spent: [], // refresh tokens that rotation has spent, oldest first
  ended: '', // why both tokens are dead, in words; empty while they live
};

const watchers = [];
export const onSession = f => watchers.push(f);
const changed = () => watchers.forEach(f => f());

// hubClock follows the hub's time, which the lab can move or stop.
export const hubClock = {
  ahead: 0, // milliseconds ahead of this machine's clock
  stoppedAt: null, // milliseconds since 1970 while frozen
  now() { // seconds since 1970
    return (this.stoppedAt ?? Date.now() + this.ahead) / 1000;
  },
  set(now, frozen) {
    this.ahead = now - Date.now();
    this.stoppedAt = frozen ? now : null;
  },
};

// decode takes a compact JWS apart without judging its signature, which only the hub can.
export function decode(token) {
  const parts = token.split('.');
  const json = part => {
    const bytes = Uint8Array.from(atob(part.replaceAll('-', '+').replaceAll('_', '/')), c => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  };
  try {
    return { token, parts, header: json(parts[0]), claims: json(parts[1]) };
  } catch {
    return { token, parts, header: {}, claims: {} };
  }
}

// begin takes the session body of register and login; rotate that of refresh.
export function begin(body) {
  session.spent = [];
  take(body);
}

export function rotate(body) {
  if (body.refresh_token && session.refresh) session.spent.push(session.refresh);
  take({ ...body, refresh_token: body.refresh_token ?? session.refresh?.token }); // where there is no rotation it stays
}

function take(body) {
  session.access = decode(body.access_token);
  session.refresh = body.refresh_token ? decode(body.refresh_token) : null; // it may be in a cookie
  session.user = body.user;
  session.ended = '';
  // Under a frozen lab clock the offset is the lab's to tell.
  const issued = session.access.claims.iat * 1000;
  if (hubClock.stoppedAt === null && Number.isFinite(issued)) hubClock.set(issued, false);
  changed();
}

// end marks both tokens dead; they stay to be looked at, and to be refused.
export function end(why) {
  if (!session.access || session.ended) return;
  session.ended = why;
  changed();
}

export const live = () => session.access !== null && session.ended === '';

// bearer is the access token to send along, while there is a session.
export const bearer = () => (live() ? session.access.token : undefined);
