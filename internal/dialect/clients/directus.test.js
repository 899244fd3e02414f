import { before, test } from 'node:test'
import assert from 'node:assert/strict'
import { authentication, createDirectus, readMe, rest } from '@directus/sdk'
import { bench, five, space, startHub } from './hub.js'

let json, cookie
before(async () => {
  ;[json, cookie] = await Promise.all([startHub('directus'), startHub('directus-cookie')])
})

const wrong = { errors: [{ message: 'Invalid user credentials.', extensions: { code: 'INVALID_CREDENTIALS' } }] }

test('@directus/sdk in mode json', async () => {
  const address = space(json)
  const lab = bench(address)
  const client = createDirectus(address).with(authentication('json', { autoRefresh: false })).with(rest())
  await assert.rejects(client.login({ email: 'demo@example.test', password: 'wrong' }), (e) => {
    assert.deepEqual(e.errors, wrong.errors)
    return true
  })
  await client.login({ email: 'demo@example.test', password: 'demo-password' })
  assert.equal((await client.request(readMe())).first_name, 'Demo User')

  await lab.pass(16)
  const users = await five(() => client.request(readMe())) // which refresh by themselves
  assert.deepEqual(users.map((u) => u.email), Array(5).fill('demo@example.test'))
  assert.equal((await lab.requests('refresh')).length, 1)

  const session = (await lab.requests('login')).at(-1).session
  await lab.ask('POST', `/lab/sessions/${session}/expire`)
  await assert.rejects(client.request(readMe()), (e) => e.errors[0].extensions.code === 'TOKEN_EXPIRED')
  await client.refresh()

  await client.logout()
  assert.equal(await client.getToken(), null)
  await lab.clean()
})

test('@directus/sdk keeps the spent token when the answer of a refresh is lost', async () => {
  const address = space(json)
  const lab = bench(address)
  const client = createDirectus(address).with(authentication('json', { autoRefresh: false })).with(rest())
  await client.login({ email: 'demo@example.test', password: 'demo-password' })
  await lab.fault({ operation: 'refresh', drop: 'after' })
  await assert.rejects(client.refresh())
  await assert.rejects(client.refresh(), (e) => e.errors[0].extensions.code === 'INVALID_CREDENTIALS')
  assert.deepEqual((await lab.requests('refresh')).map((r) => r.code), [null, 'token_reused'])
  await client.login({ email: 'demo@example.test', password: 'demo-password' })
  assert.equal((await client.request(readMe())).role, 'user')
  await lab.clean()
})

test('@directus/sdk in mode cookie', async () => {
  const address = space(cookie)
  const lab = bench(address)
  const jar = new Jar()
  const client = createDirectus(address, { globals: { fetch: jar.fetch } }).with(authentication('cookie', { autoRefresh: false, credentials: 'include' })).with(rest({ credentials: 'include' }))
  await assert.rejects(client.login({ email: 'demo@example.test', password: 'wrong' }), (e) => {
    assert.deepEqual(e.errors, wrong.errors)
    return true
  })
  const session = await client.login({ email: 'demo@example.test', password: 'demo-password' })
  assert.equal(session.refresh_token, undefined)
  assert.match(jar.lines[0], new RegExp(`^directus_refresh_token=.*; Path=${new URL(address).pathname}/; Max-Age=604800; HttpOnly; SameSite=Lax$`))

  await lab.pass(16)
  const users = await five(() => client.request(readMe()))
  assert.deepEqual(users.map((u) => u.email), Array(5).fill('demo@example.test'))
  assert.equal((await lab.requests('refresh')).length, 1)

  await lab.pass(16)
  await lab.fault({ operation: 'refresh', drop: 'after' })
  await assert.rejects(client.refresh())
  await assert.rejects(client.refresh(), (e) => e.errors[0].extensions.code === 'INVALID_CREDENTIALS') // the jar still has the spent token
  assert.deepEqual((await lab.requests('refresh')).map((r) => r.code), [null, null, 'token_reused'])

  await client.login({ email: 'demo@example.test', password: 'demo-password' })
  assert.equal((await client.request(readMe())).email, 'demo@example.test')
  await client.logout()
  assert.equal(jar.cookies.size, 0)
  await lab.clean()
})

// Jar is fetch with cookies, which Node has not.
class Jar {
  cookies = new Map()
  lines = []
  fetch = async (url, options = {}) => {
    const headers = new Headers(options.headers)
    headers.set('Cookie', [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; '))
    const answer = await fetch(url, { ...options, headers })
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)
      this.lines.push(line)
      if (value === '') this.cookies.delete(name)
      else this.cookies.set(name, value)
    }
    return answer
  }
}
