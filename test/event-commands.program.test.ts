import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { Webhook as Verifier } from 'standardwebhooks'
import { describe, expect, test } from 'vitest'
import { EVENT_TYPES, type EventType } from '../src/contract/event-types.ts'
import { advanceClock } from '../src/db/sandbox-clock.ts'
import type { Event } from '../src/money/records/event.ts'
import type { Webhook } from '../src/money/records/webhook.ts'
import type { WebhookDelivery } from '../src/money/records/webhook-delivery.ts'
import { CLUSTER } from './cluster.ts'
import { startCuttingProxy } from './cutting-proxy.ts'
import { insertPastEvents } from './past-events.ts'
import { seededRandom } from './seed.ts'
import { ENVIRONMENT, PROGRAM, runBursar, ownDatabase, ownBursar } from './support.ts'
import { atEnd, ownFolder } from './at-end.ts'

// `bursar events`, `webhooks`, `listen` and `trigger`, against a sandbox.

const database = await ownDatabase()
const folder = await ownFolder()
const environment: Record<string, string> = {
  DATABASE_URL: database.url,
  BURSAR_MIGRATIONS_DATABASE_URL: database.ownerUrl,
  BURSAR_DATA_DIR: folder,
  BURSAR_SIMULATED_CONFIRMATION_MS: '100',
  BURSAR_SIMULATED_HOLD_MS: '100',
}
const service = await ownBursar(environment)

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
  const child = spawn(process.execPath, [PROGRAM, ...args], {
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

interface WithSecret {
  webhook: Webhook
  secret: string
}

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

  test('makes each type happen, and prints the event that the service then shows', async () => {
    // The last test of this file makes an approval expire, because it moves the clock.
    const types = TYPES.filter((type) => type !== 'approval.expired')
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
    // The recipes of approvals leave no rule and no approver behind.
    const [policy] = await json<object>('api', 'GET', '/v2/policy')
    expect(policy).toMatchObject({ rules: [] })
    expect(policy).not.toHaveProperty('approvals')
    const { customer_id } = seen.get('statement.paid')!.object as unknown as { customer_id: string }
    // The invented month changes no statement of a later one.
    const { rows: statements } = await database.db.query<{ id: string; period: string }>(
      'select id, period_start::text as period from statements where customer_id = $1',
      [customer_id],
    )
    expect(statements.length).toBeGreaterThan(3)
    for (const { id, period } of statements)
      expect((await bursar('statements', 'explain', id)).code, period).toBe(0)
    const [list] = await json<{ approvers: { status: string }[] }>(
      ...['approvers', 'list', '--customer', customer_id],
    )
    expect(list!.approvers.map(({ status }) => status)).toEqual(['REVOKED', 'REVOKED'])
  })

  test('an approval is decided only with the address of the owner, and the policy stays as it was', async () => {
    const { BURSAR_MIGRATIONS_DATABASE_URL: _, ...without } = environment
    const [before] = await json<object>('api', 'GET', '/v2/policy')
    const ended = await runBursar(['trigger', 'approval.rejected'], without)
    expect(ended).toMatchObject({ code: 1, stdout: '' })
    expect(ended.stderr).toContain('BURSAR_MIGRATIONS_DATABASE_URL')
    const [after] = await json<object>('api', 'GET', '/v2/policy')
    expect(after).toEqual(before)
  })

  test('refuses an unknown type', async () => {
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
    // Until an attempt is recorded, a resend counts it as its own.
    const arrived = (count: number) =>
      expect
        .poll(() => json<WebhookDelivery>('webhooks', 'deliveries', webhook))
        .toMatchObject([{ status: 'DELIVERED', attempts: count }])
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
    [['events', 'list', '--type', 'nothing.*'], 2, /must be \*, the beginning of types/],
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

describe('webhooks', () => {
  /** An endpoint that answers with the status of `answers.status`, and keeps what it received. */
  async function startReceiver() {
    const received: { body: string; headers: Record<string, string> }[] = []
    const answers = { status: 204 }
    const receiver = createServer((request, response) => {
      void text(request).then((body) => {
        received.push({ body, headers: request.headers as Record<string, string> })
        response.writeHead(answers.status).end('noted')
      })
    }).listen(0, '127.0.0.1')
    await once(receiver, 'listening')
    atEnd(async () => {
      receiver.close()
      receiver.closeAllConnections()
      return Promise.resolve()
    })
    return { received, answers, url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/` }
  }

  test('are created, tested, listed, rotated and recovered by name and by id', async () => {
    const { received, answers, url } = await startReceiver()
    const { customer_id, file } = await otherCustomer()
    const as = ['--credentials', file]
    expect((await bursar('webhooks', 'list', ...as)).stdout).toBe('there are no webhooks\n')

    const keyFile = join(folder, 'api-key')
    await writeFile(keyFile, 'the key\n')
    const create = ['webhooks', 'create', '--url', url, ...as]
    const [guide] = await json<WithSecret>(
      ...[...create, '--name', 'guide', '--event-types', '*', '--payload', 'FULL', '--rate-limit', '50'],
      ...['--api-key-header', 'x-api-key', '--api-key-file', keyFile],
    )
    const { webhook, secret } = guide!
    expect(webhook).toMatchObject({ name: 'guide', url, event_types: ['*'], payload: 'FULL', rate_limit: 50 })
    expect(webhook.auth).toEqual({ type: 'API_KEY', header: 'x-api-key' })
    const second = await bursar(...create, '--name', 'second', '--event-types', 'identity.*,account.denied')
    expect(second.stdout).toMatch(
      /^id: +[0-9a-f-]{36}\nname: +second\nurl: .*\nevent_types: identity\.\*, account\.denied\nsecret: +whsec_.*\n$/,
    )
    const listed = await json<Webhook>('webhooks', 'list', ...as)
    expect(listed.map(({ name }) => name)).toEqual(['second', 'guide'])
    expect(listed[1]).toEqual(webhook)
    expect((await bursar('webhooks', 'list', ...as)).stdout).toMatch(
      /^name +status +failing_since +event_types +url +id\nsecond +ACTIVE +identity\.\*, account\.denied +http/,
    )

    const tested = await bursar('webhooks', 'test', 'guide', 'statement.paid', ...as)
    expect(tested).toMatchObject({ code: 0, stderr: '' })
    expect(tested.stdout).toMatch(/^test event [0-9a-f-]{36} is delivered: status 204 \(\d+ ms\)\n$/)
    const [{ body, headers }] = received as [(typeof received)[0]]
    expect(new Verifier(secret).verify(body, headers)).toMatchObject({
      type: 'statement.paid',
      is_test: true,
    })
    expect(headers['x-api-key']).toBe('the key')
    answers.status = 500
    const failed = await bursar('webhooks', 'test', webhook.id, ...as, '--json')
    expect(failed).toMatchObject({ code: 1 })
    expect(failed.stderr).toMatch(/^the test was not delivered: status 500 \(\d+ ms\)\n$/)
    expect(JSON.parse(failed.stdout)).toMatchObject({
      delivery: { event_type: 'transfer.crypto_withdrawal.completed' },
      attempt: { status_code: 500, attempt: 1 },
    })

    const [rotated] = await json<WithSecret>('webhooks', 'rotate', 'guide', '--grace-seconds', '3600', ...as)
    expect(rotated!.webhook.id).toBe(webhook.id)
    expect(rotated!.webhook.previous_secret_until).toBeDefined()
    expect(rotated!.secret).not.toBe(secret)
    expect((await bursar('webhooks', 'rotate', 'guide', '--grace-seconds', '0', ...as)).stdout).toMatch(
      /secret: +whsec_.*\nThe previous secret no longer signs\.\n$/,
    )

    // More events than one request of `recover` looks at. All are below the endpoint's cursor: nothing else delivers them.
    answers.status = 204
    const ids = await insertPastEvents(database.db, customer_id, 5_002)
    const recover = ['webhooks', 'recover', 'guide', '--since', '2026-01-01T00:00:00Z']
    const none = await json<object>(...recover, '--until', '2026-01-02T00:00:00Z', ...as)
    expect(none).toEqual([{ recovered: 0 }])
    expect(await json<object>(...recover, ...as)).toEqual([{ recovered: 5_002 }])
    expect((await bursar(...recover, ...as)).stdout).toMatch(/^deliveries due now: \d+\n$/)
    const pending = await json<WebhookDelivery>(
      'webhooks',
      'deliveries',
      'guide',
      '--status',
      'PENDING',
      ...as,
    )
    expect(pending).toHaveLength(20)
    expect(ids).toContain(pending[19]!.id)
  })

  test('are created and rotated after the approval that a policy asks for', async () => {
    const { url } = await startReceiver()
    const { customer_id, file } = await otherCustomer()
    const as = ['--credentials', file]
    const of = ['--customer', customer_id]
    const owner = (...args: string[]) =>
      runBursar([...args, '--json'], { ...environment, BURSAR_MIGRATIONS_DATABASE_URL: database.ownerUrl })
    const people: { id: string; key: string }[] = []
    for (const name of ['Ada', 'Bob']) {
      const key = join(folder, `${name} of ${customer_id}`)
      await json('approvals', 'key', key)
      const added = await owner('approvers', 'add', ...of, '--name', name, '--key', `${key}.pub`)
      people.push({ id: (JSON.parse(added.stdout) as { id: string }).id, key })
    }
    const [ada, bob] = people as [(typeof people)[0], (typeof people)[0]]
    const policy = join(folder, `${customer_id}.policy.json`)
    await writeFile(policy, '{"rules":[],"changes":{"subjects":["WEBHOOKS"],"approvals":1}}')
    expect(await bursar('policy', 'set', ...of, '--file', policy)).toMatchObject({ code: 0 })

    /** Runs a change that needs an approval. Returns the approval that its refusal names. */
    const refused = async (...args: string[]): Promise<string> => {
      const { code, stdout, stderr } = await bursar(...args)
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
      const named =
        /^403 .*: approval (\S+) is PENDING with 0 of 1 .*run the same command with --approval and its id\n$/
      return named.exec(stderr)![1]!
    }
    const sign = (id: string, approver: string, key: string) =>
      bursar('approvals', 'approve', id, ...of, '--approver', approver, '--key', key, '--json')
    const create = (to: string) => [
      ...['webhooks', 'create', '--name', 'guarded', '--url', to, '--event-types', '*', ...as],
    ]
    const id = await refused(...create(url))
    expect(await refused(...create(url), '--approval', id)).toBe(id)
    const forged = await sign(id, ada.id, bob.key)
    expect(forged).toMatchObject({ code: 1, stdout: '' })
    expect(forged.stderr).toMatch(/signature is not by the approver's key/)
    expect(await refused(...create(url), '--approval', id)).toBe(id)
    expect(await sign(id, ada.id, ada.key)).toMatchObject({ code: 0 })
    const elsewhere = await bursar(...create(`${url}elsewhere`), '--approval', id)
    expect(elsewhere).toMatchObject({ code: 1, stdout: '' })
    expect(elsewhere.stderr).toMatch(/is of another change than this request/)
    expect((await bursar('webhooks', 'list', ...as)).stdout).toBe('there are no webhooks\n')
    const [made] = await json<WithSecret>(...create(url), '--approval', id)
    expect(made!.webhook).toMatchObject({ name: 'guarded', url })
    // A repeat finds the webhook that exists.
    expect((await bursar(...create(url), '--approval', id)).stderr).toMatch(/^409 Already Exists/)

    const rotate = ['webhooks', 'rotate', 'guarded', ...as]
    const second = await refused(...rotate)
    expect(await sign(second, bob.id, bob.key)).toMatchObject({ code: 0 })
    const [rotated] = await json<WithSecret>(...rotate, '--approval', second)
    expect(rotated!.secret).not.toBe(made!.secret)
    expect((await bursar(...rotate, '--approval', 'x')).code).toBe(2)
  })

  test('deliveries fit 80 columns and say when the next attempt is due', async () => {
    const { answers, url } = await startReceiver()
    const { file } = await otherCustomer()
    const as = ['--credentials', file]
    const made = await json<WithSecret>(
      ...['webhooks', 'create', '--name', 'table', '--url', url, '--event-types', 'identity.*', ...as],
    )
    const list = (...args: string[]) => bursar('webhooks', 'deliveries', 'table', ...args, ...as)
    expect((await list()).stdout).toBe('there are no such deliveries\n')
    const longest = 'transfer.internal_transfer_credit.completed'
    await bursar('webhooks', 'test', 'table', longest, ...as)
    answers.status = 410
    expect((await bursar('webhooks', 'test', 'table', ...as)).code).toBe(1)
    // Two minutes are left of a wait that nobody sees pass: the 410 has disabled the endpoint.
    await database.db.query(
      "update webhook_deliveries set due_at = (select clock_timestamp()) + interval '150 s' where webhook_id = $1 and status = 'PENDING'",
      [made[0]!.webhook.id],
    )
    const lines = (await list()).stdout.trimEnd().split('\n')
    expect(lines[0]).toMatch(/^time +type +status +tries +next$/)
    expect(lines[1]).toMatch(
      /^\d\d-\d\d \d\d:\d\d {2}transfer\.crypto_withdrawal\.completed +PENDING +1 +2m$/,
    )
    expect(lines[2]).toMatch(
      /^\d\d-\d\d \d\d:\d\d {2}transfer\.internal_transfer_credit\.completed {2}DELIVERED +1$/,
    )
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80)
    expect(await list('--status', 'DELIVERED', '--type', 'identity.*')).toMatchObject({
      code: 0,
      stdout: 'there are no such deliveries\n',
    })
    const [newest, ...others] = await json<WebhookDelivery>(
      'webhooks',
      'deliveries',
      'table',
      '--limit',
      '1',
      ...as,
    )
    expect(newest).toMatchObject({ status: 'PENDING', attempts: 1 })
    expect(others).toEqual([])
  })

  const NEW = ['webhooks', 'create', '--name', 'bad', '--url', 'http://127.0.0.1:9/', '--event-types']
  test.each<[string[], number, RegExp]>([
    [['webhooks', 'create', '--name', 'bad'], 2, /required option '--url <url>' not specified/],
    [[...NEW, 'transfers.*'], 2, /transfers\.\* must be \*, the beginning of types/],
    [[...NEW, '*', '--rate-limit', '101'], 2, /must be a whole number from 1 to 100/],
    [[...NEW, '*', '--profile-ids', 'x'], 2, /must be a UUID/],
    [[...NEW, '*', '--payload', 'FAT'], 2, /Allowed choices are THIN, FULL/],
    [[...NEW, '*', '--api-key-header', 'x'], 1, /--api-key-header and --api-key-file are given together/],
    [[...NEW, '*', '--api-key-header', 'x', '--api-key-file', '/dev/null'], 1, /\/dev\/null has no API key/],
    [[...NEW, '*', '--api-key-header', 'x', '--api-key-file', '/no/file'], 1, /ENOENT.*\/no\/file/],
    [['webhooks', 'create', '--name', 'bad', '--url', 'ftp://host', '--event-types', '*'], 1, /400.*url/],
    [['webhooks', 'test', 'nobody'], 1, /there is no webhook with the name nobody/],
    [['webhooks', 'test', 'nobody', 'transfer.lost'], 2, /Allowed choices are/],
    [['webhooks', 'rotate', '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'], 1, /404/],
    [['webhooks', 'rotate', 'x', '--grace-seconds', '604801'], 2, /must be a whole number from 0 to 604800/],
    [['webhooks', 'recover', 'x'], 2, /required option '--since <time>' not specified/],
    [
      ['webhooks', 'recover', '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f', '--since', 'noon'],
      ...([1, /400.*since/] as [number, RegExp]),
    ],
    [
      ['webhooks', 'deliveries', 'x', '--status', 'SENT'],
      2,
      /Allowed choices are PENDING, DELIVERED, FAILED/,
    ],
    [['webhooks', 'deliveries', 'x', '--limit', '0'], 2, /must be a whole number from 1 to 100/],
    [['webhooks', 'list', '--credentials', '/no/such/file'], 1, /no credentials/],
  ])('%j is refused', async (args, code, reason) => {
    const ended = await bursar(...args)
    expect(ended.stderr).toMatch(reason)
    expect(ended).toMatchObject({ code, stdout: '' })
  })
})

describe('listen', () => {
  test('prints 10,000 events once each, over connections that are cut and restarts of its own', async () => {
    const proxy = await startCuttingProxy(service.address, 60_000, seededRandom())
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
    expect(proxy.cuts()).toBeGreaterThan(5)
    expect(first.errors() + second.errors()).toContain('does not answer')
    await second.end('SIGTERM')
  })

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

  test('a listener that ended before its first event gets it after a restart', async () => {
    const { customer_id, file } = await otherCustomer()
    const args = ['listen', '--json', '--credentials', file]
    const first = start(...args)
    await first.printed(1)
    await first.end('SIGTERM')
    const ids = await insertPastEvents(database.db, customer_id, 1, { minutesAgo: 0 })
    const second = start(...args)
    await second.printed(2)
    expect(eventsIn(second.lines).map(({ id }) => id)).toEqual(ids)
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
      const event = new Verifier(secret).verify(body, headers) as object
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

test('trigger waits for the approval that expires', async () => {
  const { rows: before } = await database.db.query('select from approvals')
  const expiring = start('trigger', 'approval.expired', '--json')
  await expect
    .poll(async () => (await database.db.query('select from approvals')).rowCount)
    .toBe(before.length + 1)
  // The shortest deadline is a minute. The clock of a distributed database is not moved.
  if (CLUSTER.length === 0) await advanceClock(database.db, database.ownerUrl, 'PT1M')
  await expiring.printed(1)
  expect(JSON.parse(expiring.lines[0]!)).toMatchObject({
    type: 'approval.expired',
    object_type: EVENT_TYPES['approval.expired'],
  })
})
