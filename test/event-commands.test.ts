import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { OTHERWISE, RECIPES } from '../src/commands/trigger-recipes.ts'
import { EVENT_TYPES, type EventType } from '../src/contract/event-types.ts'
import type { Event } from '../src/records/event.ts'
import { startCuttingProxy } from './cutting-proxy.ts'
import { insertPastEvents } from './past-events.ts'
import { seededRandom } from './seed.ts'
import {
  atEnd,
  cloneDatabase,
  ENVIRONMENT,
  PROGRAM,
  runBursar,
  spawnBursar,
  type BursarProcess,
  type TestDatabase,
} from './support.ts'

// `bursar events`, `listen` and `trigger`, in processes of their own, against a sandbox.

let database: TestDatabase
let folder: string
let service: BursarProcess
let environment: Record<string, string>
beforeAll(async () => {
  database = await cloneDatabase()
  folder = await mkdtemp(join(tmpdir(), 'bursar-events-'))
  environment = {
    DATABASE_URL: database.url,
    BURSAR_DATA_DIR: folder,
    BURSAR_SIMULATED_CONFIRMATION_MS: '100',
    BURSAR_SIMULATED_HOLD_MS: '100',
  }
  service = await spawnBursar(environment)
})
afterAll(async () => {
  await service.end('SIGTERM')
  await database.drop()
  await rm(folder, { recursive: true, force: true })
})

const bursar = (...args: string[]) => runBursar(args, environment)

/** Runs a command that must succeed, and reads its lines as JSON. */
async function json<T>(...args: string[]): Promise<T[]> {
  const { code, stdout, stderr } = await bursar(...args, '--json')
  expect(stderr).toBe('')
  expect(code).toBe(0)
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T)
}

/** Runs a command that does not end by itself, and collects its lines. */
function start(...args: string[]) {
  const child = spawn(process.execPath, [...PROGRAM, ...args], {
    env: { ...ENVIRONMENT, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  atEnd(async () => void child.kill('SIGKILL'))
  const ended = once(child, 'close') as Promise<[number | null]>
  const lines: string[] = []
  const waiting: (() => void)[] = []
  createInterface(child.stdout).on('line', (line) => {
    lines.push(line)
    for (const wake of waiting.splice(0)) wake()
  })
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (errors += chunk))
  return {
    lines,
    errors: () => errors,
    /** Waits until it has printed so many lines. */
    async printed(count: number): Promise<void> {
      while (lines.length < count) {
        const next = new Promise<void>((resolve) => waiting.push(resolve))
        const [code] = await Promise.race([next.then(() => [undefined]), ended])
        if (code !== undefined && lines.length < count) throw new Error(`it ended with ${code}: ${errors}`)
      }
    },
    async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
      child.kill(signal)
      return (await ended)[0]
    },
  }
}

/** The events among the printed lines of `listen --json` and `events tail --json`. */
const eventsIn = (lines: string[]) =>
  lines.map((line) => JSON.parse(line) as Event & { listening?: true }).filter(({ listening }) => !listening)

/** Writes the credentials of another customer, whose requests go through a proxy. */
async function otherCustomer(baseUrl = service.address) {
  const { customer_id } = JSON.parse(
    (await bursar('customer', 'create', '--name', 'Listener', '--json')).stdout,
  ) as { customer_id: string }
  const created = await bursar('client', 'create', '--customer', customer_id, '--scopes', 'all', '--json')
  const file = join(folder, `${customer_id}.json`)
  const client = JSON.parse(created.stdout) as object
  await writeFile(
    file,
    JSON.stringify({ ...client, customer_id, base_url: baseUrl, token_url: `${baseUrl}/oauth2/token` }),
  )
  return { customer_id, file }
}

describe('trigger', () => {
  const TYPES = Object.keys(EVENT_TYPES) as EventType[]

  test('every type has a recipe, or the reason why it has none', () => {
    for (const type of TYPES)
      expect([type, RECIPES[type] !== undefined, OTHERWISE[type] !== undefined]).toEqual([
        type,
        OTHERWISE[type] === undefined,
        RECIPES[type] === undefined,
      ])
  })

  test('makes each type happen, and prints the event that the service then shows', async () => {
    const types = TYPES.filter((type) => RECIPES[type] !== undefined)
    const queue = [...types]
    const seen = new Map<string, Event>()
    const worker = async () => {
      for (let type = queue.shift(); type !== undefined; type = queue.shift()) {
        const [event] = await json<Event>('trigger', type)
        seen.set(type, event!)
      }
    }
    await Promise.all([worker(), worker()])
    expect([...seen.keys()].sort()).toEqual(types.toSorted())
    for (const [type, event] of seen) {
      expect(event).toMatchObject({ type, object_type: EVENT_TYPES[type as EventType] })
      const status = (event.object as { status?: string }).status
      if (event.object_type === 'transfer_status_change')
        expect(status).toBe(type.slice(type.lastIndexOf('.') + 1).toUpperCase())
    }
    const last = seen.get('crypto_destination_address.approved')!
    expect(await json<Event>('events', 'show', last.id)).toEqual([last])
    const shown = await json<Event>('events', 'list', '--type', 'orchestration.*', '--limit', '100')
    for (const type of ['processing', 'completed', 'failed'])
      expect(shown).toContainEqual(seen.get(`orchestration.${type}`))
  }, 180_000)

  test('says why a type cannot be triggered, and refuses an unknown one', async () => {
    const generated = await bursar('trigger', 'statement.generated')
    expect(generated).toMatchObject({ code: 1, stdout: '' })
    expect(generated.stderr).toMatch(/statement.generated cannot be triggered: .*bursar statements generate/)
    const unknown = await bursar('trigger', 'transfer.lost')
    expect(unknown.code).toBe(2)
    expect(unknown.stderr).toContain('must be a type of event')
  })
})

describe('events', () => {
  test('list shows the newest first, as a table or as JSON', async () => {
    const [event] = await json<Event>('trigger', 'fiat_account.rejected')
    const [newest] = await json<Event>('events', 'list', '--limit', '1')
    expect(newest).toEqual(event)
    expect(await json<Event>('events', 'list', '--object', event!.object.id)).toEqual([event])
    const { stdout } = await bursar('events', 'list', '--type', 'fiat_account.*')
    expect(stdout.split('\n')[0]).toMatch(/^created_at +type +object +id$/)
    expect(stdout).toContain(event!.id)
  })

  test('tail prints events after a place, and ends with 0 on SIGTERM', async () => {
    const [first] = await json<Event>('trigger', 'fiat_account.approved')
    const tail = start('events', 'tail', '--after', first!.id, '--type', 'fiat_account.*', '--json')
    const [second] = await json<Event>('trigger', 'fiat_account.approved')
    await tail.printed(1)
    expect(eventsIn(tail.lines)).toEqual([second])
    expect(await tail.end('SIGTERM')).toBe(0)
  })

  test('resend delivers an event again', async () => {
    const received: string[] = []
    const receiver = createServer((request, response) => {
      received.push(request.headers['webhook-id'] as string)
      response.writeHead(204).end()
    }).listen(0, '127.0.0.1')
    await once(receiver, 'listening')
    atEnd(async () => void receiver.close())
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
    const body = { name: 'resend', url, event_types: ['fiat_account.approved'] }
    const [made] = await json<{ webhook: { id: string } }>(
      'api',
      'POST',
      '/v2/webhooks',
      JSON.stringify(body),
    )
    const webhook = made!.webhook.id
    const [event] = await json<Event>('trigger', 'fiat_account.approved')
    const arrived = async (count: number) => {
      while (received.length < count) await new Promise((resolve) => setTimeout(resolve, 20))
    }
    await arrived(1)
    expect((await bursar('events', 'resend', event!.id)).stdout).toBe(
      `event ${event!.id} is delivered again to ${webhook}\n`,
    )
    await arrived(2)
    const [again] = await json<object>('events', 'resend', event!.id, '--webhook', webhook)
    expect(again).toMatchObject({ deliveries: [{ webhook_id: webhook }] })
    await arrived(3)
    expect(new Set(received)).toEqual(new Set([event!.id]))
    await json('api', 'DELETE', `/v2/webhooks/${webhook}`)
    expect((await bursar('events', 'resend', event!.id)).stdout).toBe('no active webhook gets this event\n')
  })

  test.each<[string[], number, RegExp]>([
    [['events', 'list', '--limit', '0'], 2, /must be a whole number from 1 to 100/],
    [['events', 'list', '--type', 'nothing.*'], 2, /must be a type of event/],
    [['events', 'show', 'x'], 2, /must be a UUID/],
    [['events', 'show', '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'], 1, /404/],
    [['events', 'tail', '--after', 'yesterday'], 1, /--after must be an event id, an RFC 3339 time or now/],
    [['events', 'tail', '--after', '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'], 1, /404/],
    [['events', 'list', '--credentials', '/no/such/file'], 1, /no credentials/],
    [['listen', '--forward-to', 'ftp://host'], 2, /must be an address that begins with http/],
    [['listen', '--payload', 'FAT'], 2, /Allowed choices are THIN, FULL/],
  ])('%j is refused', async (args, code, reason) => {
    const ended = await bursar(...args)
    expect(ended.code).toBe(code)
    expect(ended.stderr).toMatch(reason)
    expect(ended.stdout).toBe('')
  })
})

describe('listen', () => {
  test('prints 10,000 events once each, over connections that are cut and restarts of its own', async () => {
    const proxy = await startCuttingProxy(service.address, 400_000, seededRandom())
    atEnd(proxy.close)
    const { customer_id, file } = await otherCustomer(proxy.address)
    const ids = await insertPastEvents(database.db, customer_id, 10_000)
    const args = ['listen', '--json', '--credentials', file]
    const first = start(...args, '--after', '2020-01-01T00:00:00Z')
    await first.printed(3_000)
    expect(await first.end('SIGTERM')).toBe(0)
    const printed = eventsIn(first.lines).map(({ id }) => id)
    expect(printed.length).toBeLessThan(ids.length)
    const second = start(...args)
    // Its first line says where it continues.
    await second.printed(1 + ids.length - printed.length)
    printed.push(...eventsIn(second.lines).map(({ id }) => id))
    expect(printed).toEqual(ids)
    expect(JSON.parse(second.lines[0]!)).toMatchObject({
      listening: true,
      cursor: { id: printed[first.lines.length - 2] },
    })
    expect(proxy.cuts()).toBeGreaterThan(10)
    expect(first.errors() + second.errors()).toContain('does not answer')
    await second.end('SIGTERM')
  }, 120_000)

  test('a listener that is killed repeats at most the event that it was printing', async () => {
    const { customer_id, file } = await otherCustomer()
    const ids = await insertPastEvents(database.db, customer_id, 2_000)
    const args = ['listen', '--json', '--credentials', file]
    const first = start(...args, '--after', '2020-01-01T00:00:00Z')
    await first.printed(500)
    await first.end('SIGKILL')
    const before = eventsIn(first.lines).map(({ id }) => id)
    const second = start(...args)
    await second.printed(1 + ids.length - before.length)
    const after = eventsIn(second.lines).map(({ id }) => id)
    expect(before).toEqual(ids.slice(0, before.length))
    const repeated = after[0] === before.at(-1) ? 1 : 0
    expect(after.slice(repeated)).toEqual(ids.slice(before.length, before.length + after.length - repeated))
    await second.end('SIGTERM')
  })

  test('goes on when the service is away for a while', async () => {
    const away = await startCuttingProxy(service.address, 1e9, () => 1)
    const { customer_id, file } = await otherCustomer(away.address)
    const ids = await insertPastEvents(database.db, customer_id, 3)
    const listener = start('listen', '--json', '--credentials', file, '--after', '2020-01-01T00:00:00Z')
    await listener.printed(1 + 3)
    await away.pause()
    while (!listener.errors().includes('does not answer'))
      await new Promise((resolve) => setTimeout(resolve, 50))
    const more = await insertPastEvents(database.db, customer_id, 1, { minutesAgo: 30 })
    await away.resume()
    await listener.printed(1 + 4)
    expect(eventsIn(listener.lines).map(({ id }) => id)).toEqual([...ids, ...more])
    await listener.end('SIGTERM')
    await away.close()
  })

  test('forwards each event once, signed with the secret that it prints, and keeps secret and place', async () => {
    const received: { id: string; body: string; headers: Record<string, string> }[] = []
    const receiver = createServer((request, response) => {
      void text(request).then((body) => {
        received.push({
          id: request.headers['webhook-id'] as string,
          body,
          headers: request.headers as Record<string, string>,
        })
        response.writeHead(received.length === 2 ? 500 : 204).end()
      })
    }).listen(0, '127.0.0.1')
    await once(receiver, 'listening')
    atEnd(async () => void receiver.close())
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`
    const { customer_id, file } = await otherCustomer()
    const ids = await insertPastEvents(database.db, customer_id, 3)
    const args = ['listen', '--forward-to', url, '--credentials', file, '--json']
    const listener = start(...args, '--after', '2020-01-01T00:00:00Z')
    await listener.printed(4)
    const { secret } = JSON.parse(listener.lines[0]!) as { secret: string }
    expect(received.map(({ id }) => id)).toEqual(ids)
    for (const { body, headers } of received) {
      const event = new Webhook(secret).verify(body, headers) as object
      expect(Object.keys(event)).toEqual(['id', 'type', 'source', 'time', 'object', 'is_test'])
    }
    expect(listener.lines.slice(1).map((line) => JSON.parse(line) as object)).toMatchObject([
      { id: ids[0], forwarded: { status: 204 } },
      { id: ids[1], forwarded: { status: 500 } },
      { id: ids[2], forwarded: { status: 204 } },
    ])
    expect(await listener.end('SIGTERM')).toBe(0)
    for (const name of await readdir(folder))
      if (name.startsWith('listen-')) expect((await stat(join(folder, name))).mode & 0o077).toBe(0)

    // The next start has the same secret, and says so to people, too.
    receiver.close()
    receiver.closeAllConnections()
    const more = await insertPastEvents(database.db, customer_id, 1, { minutesAgo: 30 })
    const again = start(...args.slice(0, -1))
    await again.printed(2)
    expect(again.lines[0]).toBe(`forwarding to ${url}, after event ${ids[2]}; signing secret ${secret}`)
    expect(again.lines[1]).toMatch(
      new RegExp(`orchestration.completed .*\\(event ${more[0]}\\)  -> ECONNREFUSED \\(\\d+ ms\\)$`),
    )
    await again.end('SIGTERM')
  })
})
