import { before, test } from 'node:test'
import assert from 'node:assert/strict'
import dns from 'node:dns'
import { initializeApp } from '@firebase/app'
import {
  connectAuthEmulator, createUserWithEmailAndPassword, getAuth, inMemoryPersistence, setPersistence, signInWithEmailAndPassword, signOut,
} from '@firebase/auth'
import { bench, five, startHub } from './hub.js'

// The SDK drops the path of the emulator's address, so each test has a hub of its own, or a namespace by host name.
let hub
before(async () => {
  hub = await startHub('firebase')
})

test('@firebase/auth with connectAuthEmulator', async () => {
  const lab = bench(hub)
  const auth = getAuth(initializeApp({ apiKey: 'key', projectId: 'demo' }))
  connectAuthEmulator(auth, hub, { disableWarnings: true })
  await setPersistence(auth, inMemoryPersistence)

  const { user: made } = await createUserWithEmailAndPassword(auth, 'new@example.test', 'new-password')
  assert.equal(made.email, 'new@example.test')
  await assert.rejects(createUserWithEmailAndPassword(auth, 'new@example.test', 'new-password'), { code: 'auth/email-already-in-use' })
  await assert.rejects(createUserWithEmailAndPassword(auth, 'short@example.test', 'short'), { code: 'auth/weak-password' })
  await assert.rejects(createUserWithEmailAndPassword(auth, 'no address', 'new-password'), { code: 'auth/invalid-email' })
  await signOut(auth)

  await assert.rejects(signInWithEmailAndPassword(auth, 'new@example.test', 'wrong'), { code: 'auth/invalid-credential' })
  const { user } = await signInWithEmailAndPassword(auth, 'new@example.test', 'new-password')
  const result = await user.getIdTokenResult()
  assert.ok(Math.abs(Date.parse(result.authTime) - Date.now()) < 60_000, result.authTime)
  assert.equal(result.signInProvider, 'password')

  await lab.pass(61)
  const tokens = await five(() => user.getIdToken())
  assert.ok(tokens.every((token) => token && token !== result.token)) // each call refreshes for itself, which no rotation forgives

  await lab.pass(61)
  await lab.fault({ operation: 'refresh', drop: 'after' })
  await assert.rejects(user.getIdToken(), { code: 'auth/network-request-failed' })
  assert.ok(await user.getIdToken()) // the refresh token is the same: there is no rotation
  await user.reload()
  await signOut(auth)
  assert.equal(auth.currentUser, null)
  await lab.clean()
})

test('@firebase/auth in a namespace by host name', async (t) => {
  const lookup = dns.lookup // browsers know *.localhost to be this machine (RFC 6761 section 6.3); Node asks the system, which may not
  t.mock.method(dns, 'lookup', (name, ...rest) => lookup(name.endsWith('.localhost') ? '127.0.0.1' : name, ...rest))
  const address = `http://phone.localhost:${new URL(hub).port}`
  const lab = bench(`${hub}/ns/phone`)
  const auth = getAuth(initializeApp({ apiKey: 'key', projectId: 'demo' }, 'phone'))
  connectAuthEmulator(auth, address, { disableWarnings: true })
  await setPersistence(auth, inMemoryPersistence)

  const { user } = await signInWithEmailAndPassword(auth, 'demo@example.test', 'demo-password')
  const token = await user.getIdToken()
  await lab.pass(61)
  assert.notEqual(await user.getIdToken(), token)
  await user.reload()
  assert.equal(user.displayName, 'Demo User')
  await lab.ask('PUT', '/lab/users/demo', { disabled: true })
  await lab.pass(61)
  await assert.rejects(user.getIdToken(), { code: 'auth/user-disabled' })
  assert.deepEqual((await lab.requests('refresh')).map((r) => r.code), [null, 'account_disabled'])
  await lab.clean()
})
