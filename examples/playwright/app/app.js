// The page under test. Its address says which hub it uses (?hub=…) and, for the sake of the tests, whether its tabs agree
// on who refreshes (they don't with ?tabs=alone).

import { Client, SessionEnded } from './client.js';
import { store } from './store.js';

const parameters = new URLSearchParams(location.search);
const status = document.querySelector('[role=status]');

// All tabs share the session, so they also share a lock around its refresh.
const alone = parameters.get('tabs') === 'alone';
const exclusive = alone ? undefined : (work) => navigator.locks.request('session', work);
const client = new Client(parameters.get('hub'), { store, exclusive });

/** Does work and says how it went, in words that a user can use. */
async function attempt(work) {
  status.textContent = '…';
  try {
    status.textContent = await work();
  } catch (error) {
    if (error instanceof SessionEnded) status.textContent = 'Please log in.';
    else if (error.code === 'invalid_credentials') status.textContent = 'Wrong user name or password.';
    else status.textContent = 'That did not work. Please try again.';
  }
  const loggedIn = (await store.load()) !== null;
  document.querySelector('#login').hidden = loggedIn;
  document.querySelector('main').hidden = !loggedIn;
}

const show = async () => `You are ${(await client.me()).name}.`;

document.querySelector('#login').addEventListener('submit', (event) => {
  event.preventDefault();
  const { username, password } = Object.fromEntries(new FormData(event.target));
  attempt(() => client.login(username, password).then(show));
});
document.querySelector('#show').addEventListener('click', () => attempt(show));
document.querySelector('#logout').addEventListener('click', () => attempt(() => client.logout().then(() => 'Goodbye.')));
attempt(show);
