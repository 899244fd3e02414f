import { before, test } from 'node:test'
import assert from 'node:assert/strict'
import { GoTrueClient } from '@supabase/auth-js'
import { createClient } from '@supabase/supabase-js'
import { bench, five, space, startHub } from './hub.js'

let hub
before(async () => {
  hub = await startHub('supabase')
})

function memory() {
  const kept = new Map()
  return { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => void kept.set(k, v), removeItem: (k) => void kept.delete(k) }
}

function client(address, storageKey = address) {
  return new GoTrueClient({ url: address + '/auth/v1', headers: { apikey: 'anon', Authorization: 'Bearer anon' },
    storage: memory(), storageKey, autoRefreshToken: false, persistSession: true })
}

test('auth-js: the life of a session', async () => {
  const address = space(hub)
  const lab = bench(address)
  const auth = client(address)

  const up = await auth.signUp({ email: 'new@example.test', password: 'new-password', options: { data: { name: 'New' } } })
  assert.equal(up.error, null)
  assert.equal(up.data.user.user_metadata.name, 'New')
  assert.equal((await auth.signUp({ email: 'new@example.test', password: 'new-password' })).error.code, 'user_already_exists')
  assert.deepEqual((await auth.signUp({ email: 'weak@example.test', password: 'short' })).error.reasons, ['length'])
  assert.equal((await auth.signOut()).error, null)

  assert.equal((await auth.signInWithPassword({ email: 'new@example.test', password: 'wrong' })).error.code, 'invalid_credentials')
  assert.equal((await auth.signInWithPassword({ email: 'new@example.test', password: 'new-password' })).error, null)
  assert.equal((await auth.getUser()).data.user.email, 'new@example.test')

  await lab.pass(16)
  const users = await five(() => auth.getUser())
  assert.deepEqual(users.map((u) => u.data.user?.email), Array(5).fill('new@example.test'))
  assert.equal((await lab.requests('refresh')).length, 1)

  assert.equal((await auth.getClaims()).data.claims.email, 'new@example.test')
  assert.equal((await auth.signOut()).error, null)
  assert.equal((await auth.getSession()).data.session, null)
  await lab.clean()
})

test('auth-js: the answer of a refresh is lost, and grace gives it again', async () => {
  const address = space(hub)
  const lab = bench(address)
  const auth = client(address)
  await lab.grace()
  await auth.signInWithPassword({ email: 'demo@example.test', password: 'demo-password' })
  await lab.pass(16)
  await lab.fault({ operation: 'refresh', drop: 'after' })
  assert.equal((await auth.getUser()).data.user.email, 'demo@example.test')
  await lab.clean()
})

test('auth-js: the answer of a refresh is lost, and the session is over', async () => {
  const address = space(hub)
  const lab = bench(address)
  const auth = client(address)
  await auth.signInWithPassword({ email: 'demo@example.test', password: 'demo-password' })
  await lab.pass(16)
  await lab.fault({ operation: 'refresh', drop: 'after' })
  const lost = await auth.getUser() // which tries again by itself, 200 ms later
  assert.equal(lost.error.code, 'refresh_token_already_used')
  assert.deepEqual((await lab.requests('refresh')).map((r) => r.code), [null, 'token_reused'])
  assert.equal((await auth.getSession()).data.session, null)
  assert.equal((await auth.signInWithPassword({ email: 'demo@example.test', password: 'demo-password' })).error, null)
  assert.equal((await auth.getUser()).error, null)
  await lab.clean()
})

test('auth-js: a session that another ends', async () => {
  const address = space(hub)
  const lab = bench(address)
  const [one, other] = [client(address), client(address, 'another')]
  for (const auth of [one, other]) {
    assert.equal((await auth.signInWithPassword({ email: 'demo@example.test', password: 'demo-password' })).error, null)
  }
  assert.equal((await one.signOut({ scope: 'others' })).error, null)
  assert.equal((await one.getUser()).error, null)
  const gone = await other.getUser()
  assert.equal(gone.error.name, 'AuthSessionMissingError', JSON.stringify(gone))
  await lab.clean()
})

test('supabase-js under a namespace', async () => {
  const address = space(hub)
  const lab = bench(address)
  const supabase = createClient(address, 'anon', {
    auth: { autoRefreshToken: false, storage: memory() },
    realtime: { transport: class {} }, // Node 20 has no WebSocket
  })
  const { data, error } = await supabase.auth.signInWithPassword({ email: 'demo@example.test', password: 'demo-password' })
  assert.equal(error, null)
  assert.equal(data.session.expires_in, 900)
  assert.equal((await supabase.auth.refreshSession()).error, null)
  assert.equal((await supabase.auth.getUser()).data.user.id, 'user-demo')
  assert.equal((await supabase.auth.signOut({ scope: 'local' })).error, null)
  await lab.clean()
})
