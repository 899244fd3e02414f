// Starts the hub at AUTHHUB and gives each test a namespace of its own.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { after, mock } from 'node:test'
import assert from 'node:assert/strict'

const hubs = []
after(() => hubs.forEach((hub) => hub.stdin.end()))

// startHub starts a hub that speaks this dialect and resolves to its address. It ends with the tests.
export async function startHub(dialect, ...flags) {
  const hub = spawn(process.env.AUTHHUB, ['-addr', '127.0.0.1:0', '-ephemeral', '-lab', '-log', 'off', '-exit-with-stdin', '-dialect', dialect, ...flags],
    { stdio: ['pipe', 'pipe', 'inherit'] })
  hubs.push(hub)
  const [address] = await once(createInterface({ input: hub.stdout }), 'line')
  return address
}

// bench is the lab of a hub at an address: that of the process or of a namespace. It sets the client's clock right.
export function bench(address) {
  mock.timers.reset()
  mock.timers.enable({ apis: ['Date'], now: performance.timeOrigin + performance.now() })
  const ask = async (method, path, body) => {
    const answer = await fetch(address + path, {
      method,
      headers: body && { 'Content-Type': 'application/json' },
      body: body && JSON.stringify(body),
    })
    const text = await answer.text()
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`)
    return text && JSON.parse(text)
  }
  return {
    ask,
    // pass lets time pass for the hub and, with it, for the client. Timers stay real.
    async pass(minutes) {
      await ask('PUT', '/lab/clock', { advance: `${minutes}m` })
      mock.timers.setTime(Date.now() + minutes * 60_000)
    },
    fault: (fault) => ask('POST', '/lab/faults', fault),
    grace: () => ask('PUT', '/lab/refresh-policy', { reuse: 'grace', grace: '10s' }),
    requests: async (operation) => (await ask('GET', `/lab/requests?operation=${operation}`)).requests,
    findings: async () => (await ask('GET', '/lab/report')).findings,
    // clean fails unless the report finds nothing.
    async clean() {
      assert.deepEqual(await this.findings(), [])
    },
  }
}

let spaces = 0

// space returns the address of a fresh namespace of the hub.
export const space = (hub) => `${hub}/ns/t${process.pid}-${++spaces}`

// five makes five calls at once and resolves to their results.
export const five = (call) => Promise.all(Array.from({ length: 5 }, call))
