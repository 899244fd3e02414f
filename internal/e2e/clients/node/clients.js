// Clients as their libraries' own documentation sets them up. Each takes the base address of a hub and a pair of tokens,
// and returns a function that asks for the user and resolves to the status.

import axios from 'axios';
import createAuthRefresh from 'axios-auth-refresh';
import { applyAuthTokenInterceptor, setAuthTokens } from 'axios-jwt';
import ky from 'ky';
import got from 'got';
import { ofetch } from 'ofetch';
import wretch from 'wretch';
import { retry as wretchRetry } from 'wretch/middlewares';
import { configureStore } from '@reduxjs/toolkit';
import { createApi, fetchBaseQuery } from '@reduxjs/toolkit/query';
import { Mutex } from 'async-mutex';
import { createAlova } from 'alova';
import { createServerTokenAuthentication } from 'alova/client';
import adapterFetch from 'alova/fetch';
import { ResourceOwnerPassword } from 'simple-oauth2';

const me = '/api/authentication/me';
const refreshPath = '/api/authentication/refresh';
const bearer = (tokens) => `Bearer ${tokens.access_token}`;

// exchange refreshes with the token that is stored, and stores the new pair.
async function exchange(base, tokens) {
  const answer = await fetch(base + refreshPath, {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ refresh_token: tokens.refresh_token }),
  });
  if (!answer.ok) throw Object.assign(new Error('refused'), { status: answer.status });
  Object.assign(tokens, await answer.json());
}

// shared lets those who call while a refresh is under way wait for its result.
function shared(base, tokens) {
  let underWay = null;
  return () => underWay ??= exchange(base, tokens).finally(() => { underWay = null; });
}

const statusOf = (error) => error.response?.status ?? error.status ?? 0;

// https://github.com/Flyrell/axios-auth-refresh#usage
export function axiosAuthRefresh(base, tokens, options = {}) {
  const api = axios.create({ baseURL: base });
  api.interceptors.request.use((config) => { config.headers.Authorization = bearer(tokens); return config; });
  createAuthRefresh(api, async (failed) => {
    await exchange(base, tokens);
    failed.response.config.headers.Authorization = bearer(tokens);
  }, options);
  return () => api.get(me).then((answer) => answer.status, statusOf);
}

// The interceptor with isRefreshing and failedQueue that countless projects have copied.
export function failedQueue(base, tokens) {
  const api = axios.create({ baseURL: base });
  let isRefreshing = false;
  let queue = [];
  const process = (error) => { queue.forEach((waiting) => (error ? waiting.reject(error) : waiting.resolve())); queue = []; };
  api.interceptors.request.use((config) => { config.headers.Authorization = bearer(tokens); return config; });
  api.interceptors.response.use((answer) => answer, async (error) => {
    const original = error.config;
    if (error.response?.status !== 401 || original.retried) throw error;
    original.retried = true;
    if (isRefreshing) {
      await new Promise((resolve, reject) => queue.push({ resolve, reject }));
      return api(original);
    }
    isRefreshing = true;
    try {
      await exchange(base, tokens);
      process(null);
      return api(original);
    } catch (failure) {
      process(failure);
      throw failure;
    } finally {
      isRefreshing = false;
    }
  });
  return () => api.get(me).then((answer) => answer.status, statusOf);
}

// The interceptor that has every caller refresh for itself.
export function naiveAxios(base, tokens) {
  const api = axios.create({ baseURL: base });
  api.interceptors.request.use((config) => { config.headers.Authorization = bearer(tokens); return config; });
  api.interceptors.response.use((answer) => answer, async (error) => {
    if (error.response?.status !== 401 || error.config.retried) throw error;
    error.config.retried = true;
    await exchange(base, tokens);
    return api(error.config);
  });
  return () => api.get(me).then((answer) => answer.status, statusOf);
}

// https://github.com/jetbridge/axios-jwt: refreshes ahead, by the expiry in the token.
export function axiosJwt(base, tokens) {
  const api = axios.create({ baseURL: base });
  const kept = storage();
  applyAuthTokenInterceptor(api, {
    requestRefresh: async (refreshToken) => {
      const { data } = await axios.post(base + refreshPath, { refresh_token: refreshToken });
      return { accessToken: data.access_token, refreshToken: data.refresh_token };
    },
    getStorage: () => kept,
  });
  setAuthTokens({ accessToken: tokens.access_token, refreshToken: tokens.refresh_token });
  return () => api.get(me).then((answer) => answer.status, statusOf);
}

function storage() {
  const kept = new Map();
  return { get: (key) => kept.get(key) ?? null, set: (key, value) => kept.set(key, value), remove: (key) => kept.delete(key) };
}

// https://github.com/sindresorhus/ky#hooksafterresponse
export function kyNaive(base, tokens) { return kyWith(base, tokens, () => kyExchange(base, tokens)); }
export function kyShared(base, tokens) {
  let underWay = null;
  return kyWith(base, tokens, () => underWay ??= kyExchange(base, tokens).finally(() => { underWay = null; }));
}

async function kyExchange(base, tokens) {
  Object.assign(tokens, await ky.post(base + refreshPath, { json: { refresh_token: tokens.refresh_token } }).json());
}

function kyWith(base, tokens, refresh) {
  const api = ky.create({
    prefixUrl: base,
    hooks: {
      beforeRequest: [(request) => { request.headers.set('Authorization', bearer(tokens)); }],
      afterResponse: [async (request, options, response) => {
        if (response.status !== 401 || request.headers.has('X-Again')) return undefined;
        await refresh();
        request.headers.set('Authorization', bearer(tokens));
        request.headers.set('X-Again', '1');
        return ky(request);
      }],
    },
  });
  return () => api.get(me.slice(1)).then((answer) => answer.status, statusOf);
}

// https://github.com/sindresorhus/got/blob/main/documentation/9-hooks.md#afterresponse
export function gotNaive(base, tokens) { return gotWith(base, tokens, () => exchange(base, tokens)); }
export function gotShared(base, tokens) { return gotWith(base, tokens, shared(base, tokens)); }

function gotWith(base, tokens, refresh) {
  const api = got.extend({
    hooks: {
      beforeRequest: [(options) => { options.headers.authorization = bearer(tokens); }],
      afterResponse: [async (response, retryWithMergedOptions) => {
        if (response.statusCode !== 401) return response;
        await refresh();
        return retryWithMergedOptions({ headers: { authorization: bearer(tokens) } });
      }],
    },
  });
  return () => api(base + me).then((answer) => answer.statusCode, (error) => error.response?.statusCode ?? error.status ?? 0);
}

// https://github.com/unjs/ofetch#%EF%B8%8F-interceptors: it retries by itself; the hook renews the token before.
export function ofetchShared(base, tokens) {
  const refresh = shared(base, tokens);
  const api = ofetch.create({
    baseURL: base,
    retry: 1,
    retryStatusCodes: [401],
    onRequest({ options }) { options.headers.set('Authorization', bearer(tokens)); },
    async onResponseError({ response }) { if (response.status === 401) await refresh(); },
  });
  return () => api.raw(me).then((answer) => answer.status, statusOf);
}

// https://github.com/elbywan/wretch#catchers: unauthorized, refresh, replay.
export function wretchNaive(base, tokens) { return wretchWith(base, tokens, () => exchange(base, tokens)); }
export function wretchShared(base, tokens) { return wretchWith(base, tokens, shared(base, tokens)); }

function wretchWith(base, tokens, refresh) {
  return () => wretch(base + me).auth(bearer(tokens)).get()
    .unauthorized(async (_error, request) => {
      await refresh();
      return request.auth(bearer(tokens)).get().unauthorized((error) => { throw error; }).res();
    })
    .res().then((answer) => answer.status, statusOf);
}

// wretch's retry middleware as a client that believes a 401 goes away.
export function wretchHammer(base, tokens) {
  return () => wretch(base + me).auth(bearer(tokens))
    .middlewares([wretchRetry({ delayTimer: 30, maxAttempts: 8, retryOnNetworkError: true })])
    .get().res().then((answer) => answer.status, statusOf);
}

// https://redux-toolkit.js.org/rtk-query/usage/customizing-queries#automatic-re-authorization-by-extending-fetchbasequery
export function rtkQuery(base, tokens) {
  const query = rtkBase(base, tokens);
  return rtkWith(base, tokens, async (args, api, extra) => {
    let result = await query(args, api, extra);
    if (result.error?.status === 401) {
      const renewed = await rtkRefresh(base, tokens, api);
      if (renewed) result = await query(args, api, extra);
    }
    return result;
  });
}

// …#preventing-multiple-unauthorized-errors
export function rtkQueryMutex(base, tokens) {
  const query = rtkBase(base, tokens);
  const mutex = new Mutex();
  return rtkWith(base, tokens, async (args, api, extra) => {
    await mutex.waitForUnlock();
    let result = await query(args, api, extra);
    if (result.error?.status === 401) {
      if (!mutex.isLocked()) {
        const release = await mutex.acquire();
        try {
          const renewed = await rtkRefresh(base, tokens, api);
          if (renewed) result = await query(args, api, extra);
        } finally {
          release();
        }
      } else {
        await mutex.waitForUnlock();
        result = await query(args, api, extra);
      }
    }
    return result;
  });
}

const rtkBase = (base, tokens) => fetchBaseQuery({
  baseUrl: base, prepareHeaders: (headers) => { headers.set('Authorization', bearer(tokens)); },
});

async function rtkRefresh(base, tokens) {
  return exchange(base, tokens).then(() => true, () => false);
}

function rtkWith(base, tokens, baseQuery) {
  const api = createApi({ baseQuery, endpoints: (build) => ({ me: build.query({ query: (n) => ({ url: me, params: { n } }), transformResponse: (_body, meta) => meta.response.status }) }) });
  const store = configureStore({
    reducer: { [api.reducerPath]: api.reducer },
    middleware: (defaults) => defaults({ serializableCheck: false, immutableCheck: false }).concat(api.middleware),
  });
  let n = 0;
  return async () => {
    const request = store.dispatch(api.endpoints.me.initiate(n++, { forceRefetch: true }));
    const result = await request;
    request.unsubscribe();
    return result.data ?? result.error?.status ?? 0;
  };
}

// https://alova.js.org/tutorial/client/strategy/token-authentication
export function alova(base, tokens) {
  const { onAuthRequired, onResponseRefreshToken } = createServerTokenAuthentication({
    assignToken: (method) => { method.config.headers.Authorization = bearer(tokens); },
    refreshTokenOnSuccess: {
      isExpired: (response) => response.status === 401,
      handler: () => exchange(base, tokens),
    },
  });
  const api = createAlova({
    baseURL: base, requestAdapter: adapterFetch(), cacheFor: null, shareRequest: false,
    beforeRequest: onAuthRequired(), responded: onResponseRefreshToken((response) => response.status),
  });
  return () => api.Get(me).send(true).catch(statusOf);
}

// https://www.npmjs.com/package/simple-oauth2: the caller asks whether the token has expired, and refreshes.
export function simpleOauth2(base, tokens, { together = true } = {}) {
  const { origin, pathname } = new URL(base);
  const client = new ResourceOwnerPassword({
    client: { id: 'test', secret: 'test' },
    auth: { tokenHost: origin, tokenPath: pathname + refreshPath, refreshPath: pathname + refreshPath },
  });
  let token = client.createToken(tokens);
  let renewal = null;
  const call = () => fetch(base + me, { headers: { Authorization: `Bearer ${token.token.access_token}` } });
  const renew = () => token.refresh().then((next) => { token = next; });
  return async () => {
    const answer = await call();
    if (answer.status !== 401) return answer.status;
    try {
      await (together ? renewal ??= renew().finally(() => { renewal = null; }) : renew());
      return (await call()).status;
    } catch (error) {
      return error.output?.statusCode ?? 0;
    }
  };
}
