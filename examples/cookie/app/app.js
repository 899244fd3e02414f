// The page. It keeps the access token in memory; the refresh token is in an HttpOnly cookie that it can't read. So each
// load of the page begins with a refresh. ?lock=yes has tabs refresh one after the other.

const parameters = new URLSearchParams(location.search);
const hub = parameters.get('hub');
const status = document.querySelector('[role=status]');

/** Asks the hub, with the cookie, and resolves to the answer's body; null if the hub refuses. */
async function ask(operation, body) {
  const answer = await fetch(`${hub}/api/authentication/${operation}`, {
    method: 'POST',
    credentials: 'include',
    headers: body && { 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  return answer.status === 200 ? answer.json() : null;
}

const show = (session) => { status.textContent = session ? `You are ${session.user.name}.` : 'Please log in.'; };

/** The cookie that a refresh sends must be the one that the latest refresh has set, whichever tab that was. */
function refresh() {
  return parameters.get('lock') ? navigator.locks.request('refresh', () => ask('refresh')) : ask('refresh');
}

document.querySelector('#in').addEventListener('click', async () => show(await ask('login', { username: 'demo', password: 'demo-password' })));
document.querySelector('#out').addEventListener('click', async () => show(await ask('logout')));
show(await refresh());
