// A client with automatic refresh, for Node and for browsers. What it takes care of, and what hub.test.js holds it to:
//
//   - Requests that find the token expired at the same moment share one refresh; so do tabs that share a store.
//   - A request whose token has been replaced while it was under way takes the new one; it does not refresh again.
//   - A refresh whose answer got lost is sent once more: the hub may have done it, or not.
//   - Retry-After is obeyed, once. Nothing else is repeated.

/** The hub's answer was an error. */
export class HubError extends Error {
  constructor(status, { code, detail, title } = {}) {
    super(detail ?? title ?? `status ${status}`);
    Object.assign(this, { status, code });
  }
}

/** The session can't be continued: the user has to log in. */
export class SessionEnded extends Error {}

function inMemory() {
  let session = null;
  return { load: async () => session, save: async (next) => { session = next; } };
}

export class Client {
  #base;
  #store;
  #exclusive;
  #refreshing = null;

  /**
   * base: address of the hub. store: keeps the session, null for none, with load and save, both asynchronous.
   * exclusive: runs the function it is given while no other user of the same store runs one; in a browser that is
   * navigator.locks.
   */
  constructor(base, { store = inMemory(), exclusive = (work) => work() } = {}) {
    this.#base = base;
    this.#store = store;
    this.#exclusive = exclusive;
  }

  async login(username, password) {
    await this.#store.save(await this.#send('POST', 'login', { body: { username, password } }));
  }

  me() {
    return this.#authorized('GET', 'me');
  }

  async logout() {
    const { access_token: token } = await this.#session();
    await this.#store.save(null);
    await this.#send('POST', 'logout', { token });
  }

  async #authorized(method, operation) {
    const session = await this.#session();
    try {
      return await this.#send(method, operation, { token: session.access_token });
    } catch (error) {
      if (error.status !== 401) throw error;
      if (error.code !== 'token_expired') await this.#end(session, error);
      await this.#refresh(session);
      return await this.#send(method, operation, { token: (await this.#session()).access_token });
    }
  }

  async #session() {
    const session = await this.#store.load();
    if (!session) throw new SessionEnded('not logged in');
    return session;
  }

  #refresh(stale) {
    this.#refreshing ??= this.#exclusive(() => this.#exchange(stale)).finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async #exchange(stale) {
    const { refresh_token } = stale;
    if ((await this.#session()).refresh_token !== refresh_token) return; // somebody else was faster
    const send = () => this.#send('POST', 'refresh', { body: { refresh_token } });
    try {
      const next = await send().catch((error) => {
        if (error instanceof TypeError) return send(); // what fetch throws when no answer comes
        throw error;
      });
      await this.#store.save(next);
    } catch (error) {
      if (error.status !== 401) throw error;
      await this.#end(stale, error);
    }
  }

  /** Forgets the session, unless another one has taken its place, and throws SessionEnded. */
  async #end({ refresh_token }, { message }) {
    if ((await this.#store.load())?.refresh_token === refresh_token) await this.#store.save(null);
    throw new SessionEnded(message);
  }

  async #send(method, operation, { token, body } = {}, mayWait = true) {
    const headers = {};
    if (token) headers.Authorization = `Bearer ${token}`;
    if (body) headers['Content-Type'] = 'application/json';
    const answer = await fetch(`${this.#base}/api/authentication/${operation}`, {
      method,
      headers,
      body: JSON.stringify(body),
      cache: 'no-store', // else a browser has tabs that ask for the same thing wait for each other
    });
    if (answer.ok) return answer.status === 204 ? undefined : answer.json();

    const seconds = Number(answer.headers.get('Retry-After'));
    if (mayWait && seconds > 0 && seconds <= 5) {
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      return this.#send(method, operation, { token, body }, false);
    }
    throw new HubError(answer.status, await answer.json().catch(() => ({}))); // a proxy's error page is no JSON
  }
}

/** What most of us write first: every 401 brings a refresh of its own. Here to show what becomes of it. */
export class NaiveClient {
  constructor(base) {
    this.base = base;
  }

  async login(username, password) {
    this.session = await this.#post('login', { username, password });
  }

  async me() {
    let answer = await this.#get('me');
    if (answer.status === 401) {
      this.session = await this.#post('refresh', { refresh_token: this.session.refresh_token });
      answer = await this.#get('me');
    }
    if (!answer.ok) throw new HubError(answer.status, await answer.json());
    return answer.json();
  }

  #get(operation) {
    return fetch(`${this.base}/api/authentication/${operation}`, {
      headers: { Authorization: `Bearer ${this.session.access_token}` },
    });
  }

  async #post(operation, body) {
    const answer = await fetch(`${this.base}/api/authentication/${operation}`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new HubError(answer.status, await answer.json());
    return answer.json();
  }
}
