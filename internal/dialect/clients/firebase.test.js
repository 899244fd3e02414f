import { before, test } from 'node:test'
import assert from 'node:assert/strict'
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
