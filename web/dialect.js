// The operations of the page in the API that the hub speaks: its own or, where it has one, a dialect.
import { send } from './wire.js';
import { decode } from './session.js';

const api = 'api/authentication/';
const own = {
  register: { method: 'POST', path: 'register' },
  login: { method: 'POST', path: 'login' },
  me: { method: 'GET', path: 'me' },
  refresh: { method: 'POST', path: 'refresh' },
  logout: { method: 'POST', path: 'logout' },
  logout_all: { method: 'POST', path: 'logout?all=true' },
};

// The dialect: its name, "" for none, and its operations with the places of their values, as the hub has read them.
export const spoken = { name: '', operations: [] };

// learn asks the hub which dialect it speaks, and resolves to whether that is another one than before.
export async function learn() {
  const x = await send('GET', 'web/dialect.json', { quiet: true });
  if (!x.ok) return false;
  const before = spoken.name;
  Object.assign(spoken, x.data ?? { name: '', operations: [] });
  return spoken.name !== before;
}

// ask asks for an operation with these values: username, email, name, password, expires_in, token, refresh_token. The
// result is that of send, with the tokens of the answer in session, which is null where it has none.
export async function ask(op, values) {
  await learn();
  const described = spoken.operations.find(o => o.op === op) ?? (op === 'logout' && spoken.operations.find(o => o.op === 'revoke'));
  const x = described ? await send(...inDialect(described, values)) : await send(...inOwn(op, values));
  x.session = sessionOf(x.data);
  return x;
}

function inOwn(op, { token, refresh_token, ...json }) {
  const { method, path } = own[op];
  return [method, api + path, { token: token ?? refresh_token, json: Object.keys(json).length > 0 ? json : undefined }];
}

// inDialect returns the arguments of send for a described operation.
function inDialect(described, values) {
  const request = { path: described.path.slice(1), query: new URLSearchParams(), headers: {}, json: {}, basic: {} };
  for (const place of described.when) put(request, place, place.value);
  if (!described.in.username && described.in.email) values = { ...values, email: values.email ?? values.username };
  for (const name of ['username', 'email', 'name', 'password', 'expires_in', 'token', 'refresh_token']) {
    const place = described.in[name];
    if (place && values[name] !== undefined) put(request, place, place.unit ? values[name] / place.unit : values[name]);
  }
  const path = request.path + (request.query.size > 0 ? `?${request.query}` : '');
  const options = { headers: request.headers, cookies: true };
  if (described.method !== 'GET' && Object.keys(request.json).length > 0) {
    if ('grant_type' in request.json) options.form = new URLSearchParams(request.json).toString(); // RFC 6749
    else options.json = request.json;
  }
  return [described.method, path, options];
}

// put puts a value into its place.
function put(request, { kind, path }, value) {
  const [name] = path;
  if (kind === 'query') request.query.set(name, value);
  else if (kind === 'header') request.headers[name] = value;
  else if (kind === 'authorization') request.headers.Authorization = `${name} ${value}`;
  else if (kind === 'path') request.path = request.path.replace(`{${name}}`, encodeURIComponent(value));
  else if (kind === 'body') nest(request.json, path, value);
  else if (kind === 'basic') {
    request.basic[name] = value;
    const text = new TextEncoder().encode(`${request.basic.username ?? ''}:${request.basic.password ?? ''}`);
    request.headers.Authorization = `Basic ${btoa(String.fromCharCode(...text))}`; // RFC 7617
  }
}

function nest(object, names, value) {
  const inner = names.slice(0, -1).reduce((o, name) => (o[name] ??= {}), object);
  inner[names.at(-1)] = value;
}

// sessionOf finds the tokens in an answer, wherever they are: the header of each says which it is.
function sessionOf(data) {
  const found = {};
  const look = value => {
    if (typeof value === 'string' && value.startsWith('eyJ')) {
      const kind = { 'at+jwt': 'access_token', 'rt+jwt': 'refresh_token' }[decode(value).header.typ];
      if (kind) found[kind] ??= value;
    } else if (value !== null && typeof value === 'object') {
      Object.values(value).forEach(look);
    }
  };
  look(data);
  if (!found.access_token) return null;
  const { claims } = decode(found.access_token);
  return { ...found, user: data.user?.username ? data.user : { id: claims.sub, username: claims.username, role: claims.role } };
}
