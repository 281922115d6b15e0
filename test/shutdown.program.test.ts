import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { createCustomer } from '../src/money/records/customer.ts'
import { transaction } from '../src/db/database.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { partOf } from './seed.ts'
import { ROW_MACS, credit, spawnBursar, withdrawalOf, ownDatabase } from './support.ts'
import { atEnd } from './at-end.ts'

/*
 * A process that receives SIGTERM finishes the work that it has accepted:
 * 1. a request sent on an open connection is answered, whenever the signal arrives;
 * 2. a record whose creation was answered with success exists;
 * 3. answers on open connections ask the client to close them, and idle connections are closed;
 * 4. the process ends in time, with exit code 0, or 1 when work was left unfinished.
 */

const database = await ownDatabase()
const { customer_id, profile_id } = await createCustomer(database.db, 'Test')
const customer: { customer_id: string; profile_id: string; client_id: string; client_secret: string } = {
  customer_id,
  profile_id,
  ...(await createApiClient(database.db, ROW_MACS, customer_id, SCOPES)),
}
await credit(new Ledger(database.db), customer, 'USD', '1000000')

async function start(environment: Record<string, string> = {}) {
  const process = await spawnBursar({ DATABASE_URL: database.url, BURSAR_METRICS_PORT: '0', ...environment })
  atEnd(() => process.end('SIGKILL'))
  const reply = await fetch(`${process.address}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: customer.client_id,
      client_secret: customer.client_secret,
    }),
  })
  const { access_token } = (await reply.json()) as { access_token: string }
  return { process, token: access_token }
}

function requestOf(token: string, ref_id: string): string {
  const body = JSON.stringify(withdrawalOf({ profile_id: customer.profile_id }, { ref_id }))
  return [
    'POST /v2/transfer/crypto-withdrawals HTTP/1.1',
    'Host: bursar',
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    '',
    body,
  ].join('\r\n')
}

/** A connection that records all received data and how the connection ends. */
class Connection {
  readonly socket: Socket
  text = ''
  ended: 'open' | 'closed' | 'reset' = 'open'
  #tell: (news: unknown) => void = () => undefined

  constructor(address: string) {
    const { hostname, port } = new URL(address)
    this.socket = connect({ host: hostname, port: Number(port), noDelay: true })
    this.socket.setEncoding('utf8').on('data', (text: string) => this.#tell((this.text += text)))
    this.socket.on('error', () => (this.ended = 'reset'))
    this.socket.on('close', () => this.#tell((this.ended = this.ended === 'reset' ? 'reset' : 'closed')))
    atEnd(async () => void this.socket.destroy())
  }

  /** The next answer in full, or undefined when the connection ends without one. */
  async answer(): Promise<string | undefined> {
    for (;;) {
      const head = this.text.indexOf('\r\n\r\n')
      const [, length] = /content-length: (\d+)/i.exec(this.text) ?? []
      const size = head + 4 + Number(length)
      if (head !== -1 && this.text.length >= size) {
        const answer = this.text.slice(0, size)
        this.text = this.text.slice(size)
        return answer
      }
      if (this.ended !== 'open') return undefined
      await new Promise<unknown>((resolve) => (this.#tell = resolve))
    }
  }
}

test.each(partOf([0, 7, 23]))('under load, %i ms into it: each request sent is answered', async (ms) => {
  const { process, token } = await start()
  const acknowledged: string[] = []
  const unanswered: string[] = []
  const statuses = new Map<string, number>()
  let connections = 0
  const client = async (number: number): Promise<void> => {
    for (let round = 0; ; round++) {
      const connection = new Connection(process.address)
      const connected = await once(connection.socket, 'connect').catch(() => undefined)
      if (connected === undefined) return
      connections += 1
      for (let n = 0; ; n++) {
        const ref_id = `load-${ms}-${number}-${round}-${n}`
        connection.socket.write(requestOf(token, ref_id))
        const answer = await connection.answer()
        if (answer === undefined) {
          // Connected but never accepted: the connection was in the kernel's queue when the port closed.
          if (n > 0) unanswered.push(`${ref_id} ${connection.ended}`)
          return
        }
        const status = answer.slice(9, 12)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
        if (status === '200') acknowledged.push(ref_id)
        if (/^connection: close/im.test(answer)) break
      }
    }
  }
  const load = Array.from({ length: 64 }, (_, number) => client(number))
  await vi.waitUntil(() => acknowledged.length > 500, { timeout: 20_000, interval: 5 })
  await pause(ms)
  await process.end('SIGTERM')
  await Promise.all(load)
  expect(unanswered).toEqual([])
  expect([...statuses.keys()]).toEqual(['200'])
  // Each client received an answer with `Connection: close`.
  expect(connections).toBeGreaterThanOrEqual(64)
  expect(process.exitCode()).toBe(0)
  const { rows } = await database.db.query<{ ref_id: string }>(
    'select ref_id from transfers where customer_id = $1 and ref_id like $2',
    [customer.customer_id, `load-${ms}-%`],
  )
  const kept = new Set(rows.map(({ ref_id }) => ref_id))
  expect(acknowledged.filter((ref_id) => !kept.has(ref_id))).toEqual([])
})

test('requests that wait for the database are answered; idle and slow clients do not delay the end', async () => {
  const { process, token } = await start()
  const idle = new Connection(process.address)
  idle.socket.write('GET /health/live HTTP/1.1\r\nHost: bursar\r\n\r\n')
  expect(await idle.answer()).toContain('200 OK')
  // Half a request, and half of its headers: neither was accepted.
  const slow = new Connection(process.address)
  slow.socket.write(requestOf(token, 'slow').slice(0, -20))
  const slower = new Connection(process.address)
  slower.socket.write('GET /health/live HTTP/1.1\r\nHo')
  const waiting = new Connection(process.address)
  let end: Promise<void>
  const began = await transaction(database.owner, async (tx) => {
    await tx.query('lock table balances in access exclusive mode')
    waiting.socket.write(requestOf(token, 'waiting'))
    await pause(300)
    end = process.end('SIGTERM')
    await expect.poll(() => idle.ended, { timeout: 5_000 }).toBe('closed')
    const refused = await fetch(`${process.address}/health/ready`).catch(() => 'refused')
    expect(refused).toBe('refused')
    expect(waiting.ended).toBe('open')
    return performance.now()
  })
  const answer = await waiting.answer()
  expect(answer).toContain('200 OK')
  expect(answer).toMatch(/^connection: close/im)
  await end!
  expect(process.exitCode()).toBe(0)
  expect(performance.now() - began).toBeLessThan(8_000)
  expect([slow.ended, slower.ended]).not.toContain('open')
  const { rowCount } = await database.db.query(`select from transfers where ref_id in ('waiting', 'slow')`)
  expect(rowCount).toBe(1)
})

test('with a drain delay, readiness fails at once and requests are served until the delay ends', async () => {
  const { process, token } = await start({ BURSAR_DRAIN_DELAY_MS: '1500' })
  const end = process.end('SIGTERM')
  const ready = () => fetch(`${process.address}/health/ready`).then(({ status }) => status)
  await expect.poll(ready, { timeout: 1_000, interval: 20 }).toBe(503)
  const served = await fetch(`${process.address}/v2/profiles`, {
    headers: { authorization: `Bearer ${token}` },
  })
  expect(served.status).toBe(200)
  expect(served.headers.get('connection')).toBe('close')
  expect((await fetch(`${process.address}/health/live`)).status).toBe(200)
  await end
  expect(process.exitCode()).toBe(0)
})

test('work that does not end in time is abandoned, with exit code 1', async () => {
  const { process, token } = await start({ BURSAR_SHUTDOWN_TIMEOUT_MS: '1000' })
  const waiting = new Connection(process.address)
  await transaction(database.owner, async (tx) => {
    await tx.query('lock table balances in access exclusive mode')
    waiting.socket.write(requestOf(token, 'given up'))
    await pause(300)
    const began = performance.now()
    await process.end('SIGTERM')
    expect(process.exitCode()).toBe(1)
    expect(performance.now() - began).toBeLessThan(3_000)
  })
  expect(process.log()).toContain('did not end within 1000 ms')
})
