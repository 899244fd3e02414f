import { before, test } from 'node:test'
import assert from 'node:assert/strict'
import axios from 'axios'
import { bench, five, space, startHub } from './hub.js'

let hub
before(async () => {
  hub = await startHub('simplejwt')
})

// client is axios with the interceptor that most clients of djangorestframework-simplejwt have: one refresh for all.
function client(address) {
  const api = axios.create({ baseURL: address + '/api/' })
  const kept = {}
  let refreshing
  api.interceptors.request.use((config) => {
    if (kept.access) config.headers.Authorization = `Bearer ${kept.access}`
    return config
  })
  api.interceptors.response.use(undefined, async (error) => {
    const { config, response } = error
    if (response?.status !== 401 || response.data.code !== 'token_not_valid' || config.again || !kept.refresh) throw error
    if (config.headers.Authorization !== `Bearer ${kept.access}`) return api({ ...config, again: true }) // another call has refreshed
    refreshing ??= axios.post(address + '/api/token/refresh/', { refresh: kept.refresh }).finally(() => (refreshing = undefined))
    const { data } = await refreshing
    Object.assign(kept, data) // without rotation there is no refresh in it
    return api({ ...config, again: true })
  })
  return { api, kept, login: async (username, password) => Object.assign(kept, (await axios.post(address + '/api/token/', { username, password })).data) }
}

test('axios as for djangorestframework-simplejwt', async () => {
  const address = space(hub)
  const lab = bench(address)
  const { api, kept, login } = client(address)
  await assert.rejects(login('demo', 'wrong'), (e) => e.response.data.detail === 'No active account found with the given credentials')
  await assert.rejects(api.get('me/'), (e) => e.response.data.detail === 'Authentication credentials were not provided.')
  await assert.rejects(axios.post(address + '/api/token/', { username: 'demo' }), (e) => Array.isArray(e.response.data.password))
  await login('demo', 'demo-password')
  assert.equal((await api.get('me/')).data.username, 'demo')
  const first = kept.refresh

  await lab.pass(6)
  const users = await five(() => api.get('me/'))
  assert.deepEqual(users.map((u) => u.data.email), Array(5).fill('demo@example.test'))
  assert.equal((await lab.requests('refresh')).length, 1)
  assert.equal(kept.refresh, first)

  await lab.pass(6)
  await lab.fault({ operation: 'refresh', drop: 'after' })
  await assert.rejects(api.get('me/'))
  assert.equal((await api.get('me/')).status, 200)

  assert.equal((await axios.post(address + '/api/token/verify/', { token: kept.access })).status, 200)
  await axios.post(address + '/api/token/blacklist/', { refresh: kept.refresh })
  await assert.rejects(axios.post(address + '/api/token/verify/', { token: kept.refresh }), (e) => e.response.data.detail === 'Token is blacklisted')
  await lab.clean()
})
