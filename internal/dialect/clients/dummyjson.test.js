import { before, test } from 'node:test'
import assert from 'node:assert/strict'
import { bench, five, space, startHub } from './hub.js'

let hub
before(async () => {
  hub = await startHub('dummyjson')
})

// The examples of DummyJSON's documentation of its auth API, with another address.
test('the fetch examples of dummyjson', async () => {
  const address = space(hub)
  const lab = bench(address)
  const login = (password) => fetch(address + '/auth/login', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ username: 'demo', password, expiresInMins: 30 }),
    credentials: 'include',
  })
  const wrong = await login('wrong')
  assert.deepEqual([wrong.status, await wrong.json()], [400, { message: 'Invalid credentials' }])
  const { accessToken, refreshToken, firstName } = await (await login('demo-password')).json()
  assert.equal(firstName, 'Demo User')

  const me = (token) => fetch(address + '/auth/me', { method: 'GET', headers: { Authorization: 'Bearer ' + token }, credentials: 'include' })
  assert.equal((await (await me(accessToken)).json()).username, 'demo')
  await lab.pass(31)
  const expired = await me(accessToken)
  assert.deepEqual([expired.status, await expired.json()], [401, { message: 'Token Expired!' }])

  const refresh = (refreshToken) => fetch(address + '/auth/refresh', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ refreshToken, expiresInMins: 30 }),
    credentials: 'include',
  })
  const refreshed = await (await refresh(refreshToken)).json()
  assert.deepEqual((await five(() => me(refreshed.accessToken))).map((answer) => answer.status), Array(5).fill(200))

  await lab.pass(31)
  assert.equal((await me(refreshed.accessToken)).status, 401)
  await lab.fault({ operation: 'refresh', drop: 'after' })
  await assert.rejects(refresh(refreshed.refreshToken), TypeError)
  const spent = await refresh(refreshed.refreshToken) // the next try has only the spent token
  assert.deepEqual([spent.status, await spent.json()], [403, { message: 'Invalid refresh token' }])
  const again = await (await login('demo-password')).json()
  assert.equal((await me(again.accessToken)).status, 200)
  await lab.clean()
})
