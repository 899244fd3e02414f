import { before, test } from 'node:test'
import assert from 'node:assert/strict'
import { ResourceOwnerPassword } from 'simple-oauth2'
import * as oauth from 'oauth4webapi'
import * as openid from 'openid-client'
import { bench, five, space, startHub } from './hub.js'

let hub
before(async () => {
  hub = await startHub('oauth2')
})

const demo = { username: 'demo', password: 'demo-password' }

// simple is simple-oauth2 with the paths of a namespace.
function simple(address) {
  const path = address.replace(hub, '')
  return new ResourceOwnerPassword({
    client: { id: 'app', secret: 'secret' },
    auth: { tokenHost: hub, tokenPath: path + '/oauth/token', revokePath: path + '/oauth/revoke' },
  })
}

test('simple-oauth2: the life of a session', async () => {
  const address = space(hub)
  const lab = bench(address)
  const client = simple(address)
  await assert.rejects(client.getToken({ username: 'demo', password: 'wrong' }), (e) => e.data.payload.error === 'invalid_grant')

  let token = await client.getToken({ ...demo, scope: 'profile' })
  assert.equal(token.token.scope, 'profile')
  assert.equal(token.expired(), false)
  await lab.pass(16)
  assert.equal(token.expired(), true)
  token = await token.refresh()
  assert.equal(token.expired(), false)

  await token.revokeAll()
  await token.revokeAll() // RFC 7009 section 2.2: the token is dead already, which is no error
  await lab.clean()
  await assert.rejects(token.refresh(), (e) => e.data.payload.error === 'invalid_grant')
  assert.deepEqual((await lab.findings()).map((f) => f.rule), ['token_after_logout']) // this test's own doing
})

test('simple-oauth2 keeps the spent token when the answer of a refresh is lost', async () => {
  const address = space(hub)
  const lab = bench(address)
  const client = simple(address)
  let token = await client.getToken(demo)
  await lab.pass(16)
  await lab.fault({ operation: 'refresh', drop: 'after' })
  await assert.rejects(token.refresh(), { code: 'ECONNRESET' })
  await assert.rejects(token.refresh(), (e) => e.data.payload.error === 'invalid_grant')
  assert.deepEqual((await lab.requests('refresh')).map((r) => r.code), [null, 'token_reused'])

  token = await client.getToken(demo)
  await token.revokeAll()
  await lab.clean()
})

test('oauth4webapi: metadata, tokens, userinfo, introspection, revocation', async () => {
  const address = space(hub)
  const lab = bench(address)
  const insecure = { [oauth.allowInsecureRequests]: true }
  const issuer = new URL(address)
  const as = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { ...insecure, algorithm: 'oauth2' }))
  assert.equal(as.token_endpoint, address + '/oauth/token')

  const client = { client_id: 'app' }
  const none = oauth.None()
  const login = (password) => oauth.genericTokenEndpointRequest(as, client, none, 'password', { username: 'demo', password }, insecure)
  await assert.rejects(oauth.processGenericTokenEndpointResponse(as, client, await login('wrong')), { error: 'invalid_grant' })
  let tokens = await oauth.processGenericTokenEndpointResponse(as, client, await login('demo-password'))

  const userinfo = async () => oauth.processUserInfoResponse(as, client, 'user-demo', await oauth.userInfoRequest(as, client, tokens.access_token, insecure))
  assert.equal((await userinfo()).email, 'demo@example.test')
  const active = async (token) => (await oauth.processIntrospectionResponse(as, client, await oauth.introspectionRequest(as, client, none, token, insecure))).active
  assert.equal(await active(tokens.access_token), true)
  assert.equal(await active(tokens.refresh_token), true)

  await lab.pass(16)
  assert.equal(await active(tokens.access_token), false)
  await assert.rejects(userinfo())
  const spent = tokens.refresh_token
  tokens = await oauth.processRefreshTokenResponse(as, client, await oauth.refreshTokenGrantRequest(as, client, none, spent, insecure))
  assert.deepEqual((await five(userinfo)).map((u) => u.preferred_username), Array(5).fill('demo'))
  assert.equal(await active(spent), false) // asking is no use of it: the session lives on
  assert.equal(await active('nonsense'), false)
  assert.equal((await userinfo()).sub, 'user-demo')

  await oauth.processRevocationResponse(await oauth.revocationRequest(as, client, none, tokens.refresh_token, insecure))
  assert.equal(await active(tokens.access_token), false)
  await lab.clean()
})

test('oauth4webapi: the answer of a refresh is lost, and the session is over', async () => {
  const address = space(hub)
  const lab = bench(address)
  const insecure = { [oauth.allowInsecureRequests]: true }
  const [client, none] = [{ client_id: 'app' }, oauth.None()]
  const as = { issuer: address, token_endpoint: address + '/oauth/token', introspection_endpoint: address + '/oauth/introspect' }
  const login = async () => oauth.processGenericTokenEndpointResponse(as, client,
    await oauth.genericTokenEndpointRequest(as, client, none, 'password', demo, insecure))
  const tokens = await login()
  const refresh = async () => oauth.processRefreshTokenResponse(as, client,
    await oauth.refreshTokenGrantRequest(as, client, none, tokens.refresh_token, insecure))

  await lab.pass(16)
  await lab.fault({ operation: 'refresh', drop: 'after' })
  await assert.rejects(refresh(), TypeError) // fetch's own
  await assert.rejects(refresh(), { error: 'invalid_grant' })
  assert.deepEqual((await lab.requests('refresh')).map((r) => r.code), [null, 'token_reused'])

  const { access_token } = await login()
  const introspection = await oauth.processIntrospectionResponse(as, client, await oauth.introspectionRequest(as, client, none, access_token, insecure))
  assert.equal(introspection.active, true)
  await lab.clean()
})

test('openid-client keeps the spent token when the answer of a refresh is lost', async () => {
  const address = space(hub)
  const lab = bench(address)
  const config = await openid.discovery(new URL(address), 'app', undefined, openid.None(), { algorithm: 'oauth2', execute: [openid.allowInsecureRequests] })
  let tokens = await openid.genericGrantRequest(config, 'password', demo)
  await lab.pass(16)
  await lab.fault({ operation: 'refresh', drop: 'after' })
  await assert.rejects(openid.refreshTokenGrant(config, tokens.refresh_token), TypeError) // fetch's own
  await assert.rejects(openid.refreshTokenGrant(config, tokens.refresh_token), { error: 'invalid_grant' })
  assert.deepEqual((await lab.requests('refresh')).map((r) => r.code), [null, 'token_reused'])

  tokens = await openid.genericGrantRequest(config, 'password', demo)
  assert.equal((await openid.fetchUserInfo(config, tokens.access_token, 'user-demo')).sub, 'user-demo')
  await lab.clean()
})

test('openid-client: discovery, tokens, a lost answer', async () => {
  const address = space(hub)
  const lab = bench(address)
  await lab.grace()
  const config = await openid.discovery(new URL(address), 'app', undefined, openid.None(), { algorithm: 'oauth2', execute: [openid.allowInsecureRequests] })
  await assert.rejects(openid.genericGrantRequest(config, 'password', { ...demo, password: 'wrong' }), { error: 'invalid_grant' })
  let tokens = await openid.genericGrantRequest(config, 'password', demo)
  assert.equal((await openid.fetchUserInfo(config, tokens.access_token, 'user-demo')).name, 'Demo User')
  assert.equal((await openid.tokenIntrospection(config, tokens.access_token)).username, 'demo')

  await lab.pass(16)
  await lab.fault({ operation: 'refresh', drop: 'after' })
  const refresh = () => openid.refreshTokenGrant(config, tokens.refresh_token)
  await assert.rejects(refresh())
  tokens = await refresh()
  assert.ok(tokens.expires_in <= 900 && tokens.expires_in > 800) // what is left
  const users = await five(() => openid.fetchUserInfo(config, tokens.access_token, 'user-demo'))
  assert.deepEqual(users.map((u) => u.name), Array(5).fill('Demo User'))
  await openid.tokenRevocation(config, tokens.refresh_token)
  await assert.rejects(openid.genericGrantRequest(config, 'client_credentials', {}), { error: 'unsupported_grant_type' })
  await lab.clean()
})
