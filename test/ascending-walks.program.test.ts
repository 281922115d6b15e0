/*
 * Readers that walk lists in ascending order (API behaviour, Lists; src/db/horizon.ts). Invariants:
 * 1. a reader that walks with the cursor, and goes on from its last record's created_at, gets each record exactly once and
 *    in order, while eight processes write and one of them stands still in the middle of a transaction;
 * 2. no list in ascending order shows a record that is newer than the beginning of a transaction under way;
 * 3. when that has ended, the list has the records of the descending list.
 */
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { OPERATIONS } from '../src/program/app.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { originOfLoop } from '../src/contract/actor.ts'
import { createCustomer } from '../src/money/records/customer.ts'
import { momentAt, readClock } from '../src/db/ids.ts'
import { credentialsFile, type SandboxCredentials } from '../src/program/demo/credentials.ts'
import { makeDemo } from '../src/program/demo/make-demo.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import {
  ROW_MACS,
  BASE_URL,
  caller,
  cloneDatabase,
  credit,
  DESTINATION,
  fetchToken,
  remoteCaller,
  spawnBursar,
  startTestService,
  WEBHOOK_SECRETS,
} from './support.ts'
import { withdrawWithApproval } from './approvers.ts'
import { bundle } from './bundle.ts'
import type { BursarProcess, RemoteCaller, TestDatabase, TestService } from './support.ts'

interface Item {
  id: string
  /** Absent from profiles. */
  created_at?: string
  updated_at?: string
}
type Page = { next_page_cursor?: string } & Partial<Record<'items' | 'statements', Item[]>>

const itemsOf = (page: Page) => page.items ?? page.statements!

/** Microseconds of a UUIDv7 of Bursar (src/db/ids.ts). */
const microsOfId = (id: string) =>
  parseInt(id.slice(0, 8) + id.slice(9, 13), 16) * 1000 +
  Math.ceil((parseInt(id.slice(15, 18), 16) * 1000) / 4096)

// ---------------------------------------------------------------------------------------------- eight processes

describe('while eight processes write', () => {
  const PROCESSES = 8
  /** How long each frozen process stands still, within the walk. */
  const FROZEN_MS = 2_000
  /** Each table that a process freezes at, and its list. */
  const LISTS = {
    transfers: '/v2/transfer/transfers',
    orchestrations: '/v2/orchestration/orchestrations',
    identities: '/v2/identity/identities',
  }
  const TABLES = Object.keys(LISTS) as (keyof typeof LISTS)[]
  /** The lists that are walked: those, and the events of their records. */
  const WALKED = { ...LISTS, events: '/v2/events' }
  type Table = keyof typeof WALKED

  // In a folder beside that of the built program, because the folder tells where its files are.
  const program = fileURLToPath(new URL('../dist-test/freeze-at-commit.js', import.meta.url))
  let database: TestDatabase
  let folder: string
  let owner: { customer_id: string; profile_id: string }
  const processes: (BursarProcess & { call: RemoteCaller; profiles: [string, string] })[] = []

  beforeAll(async () => {
    database = await cloneDatabase(4)
    folder = await mkdtemp(join(tmpdir(), 'bursar-ascending-'))
    owner = await createCustomer(database.db, 'Test')
    const client = await createApiClient(database.db, ROW_MACS, owner.customer_id, SCOPES)
    await bundle(new URL('freeze-at-commit.ts', import.meta.url), program)
    const start = async (number: number) => {
      const settings = {
        DATABASE_URL: database.url,
        BURSAR_DATA_DIR: folder,
        BURSAR_BASE_URL: BASE_URL,
        BURSAR_WORKER: 'false',
        BURSAR_DATABASE_CONNECTIONS: '6',
        FREEZE_TABLE: TABLES[number % TABLES.length]!,
        FREEZE_FILE: fileOf(number),
      }
      const started = await spawnBursar(settings, program)
      const call = await remoteCaller(started.address, client)
      const made = async () => {
        const nickname = crypto.randomUUID()
        return (await call<{ id: string }>('POST', '/v2/profiles', { nickname })).body.id
      }
      processes[number] = { ...started, call, profiles: [await made(), await made()] }
    }
    for (let number = 0; number < PROCESSES; number += 2)
      await Promise.all([start(number), start(number + 1)])
    const ledger = new Ledger(database.db)
    for (const { profiles } of processes)
      await credit(ledger, { ...owner, profile_id: profiles[0] }, 'USD', '1000000')
  })
  afterAll(async () => {
    // A stopped process ends by SIGKILL only.
    await Promise.all(processes.map((process) => process.end('SIGKILL')))
    await database.drop()
    await rm(program)
    await rm(folder, { recursive: true, force: true })
  })
  const fileOf = (number: number) => join(folder, `frozen-${number}`)

  /** Writes records of all kinds through one process until `done`, from its own profile: writers do not wait for each other. */
  async function write({ call, profiles }: (typeof processes)[number], done: () => boolean): Promise<void> {
    const [from, to] = profiles
    while (!done()) {
      const replies = [
        await call('POST', '/v2/transfer/internal', {
          asset: 'USD',
          amount: '0.01',
          from_profile_id: from,
          to_profile_id: to,
        }),
        await call('POST', '/v2/orchestration/orchestrations', {
          ref_id: crypto.randomUUID(),
          profile_id: from,
          source_asset: 'USD',
          destination_asset: 'USD',
          source_amount: '0.01',
          source: { profile: { profile_id: from } },
          destination: { profile: { profile_id: to } },
        }),
        await call('POST', '/v2/identity/identities', {
          ref_id: crypto.randomUUID(),
          person_details: { first_name: 'A', last_name: 'B' },
        }),
      ]
      expect(replies.map(({ status, body }) => (status < 300 ? 'made' : body))).toEqual([
        'made',
        'made',
        'made',
      ])
      await pause(20)
    }
  }

  /**
   * Walks a list until `done`, and once more to its end: pages by the cursor, then on from the last record's created_at,
   * without the records of that moment that are known.
   */
  async function walk(call: RemoteCaller, url: string, done: () => boolean): Promise<Item[]> {
    const seen: Item[] = []
    for (let last = false; ;) {
      const from = seen.at(-1)?.created_at
      const known = new Set(seen.filter(({ created_at }) => created_at === from).map(({ id }) => id))
      let cursor: string | undefined
      do {
        const query = new URLSearchParams({
          order: 'ASC',
          limit: '50',
          ...(from !== undefined && { 'created_at.gte': from }),
          ...(cursor !== undefined && { page_cursor: cursor }),
        })
        const { status, body } = await call<Page>('GET', `${url}?${query.toString()}`)
        expect(status).toBe(200)
        seen.push(...itemsOf(body).filter(({ id }) => !known.has(id)))
        cursor = body.next_page_cursor
      } while (cursor !== undefined)
      if (last) return seen
      last = done()
      await pause(10)
    }
  }

  const idsIn = async (table: Table) => {
    const { rows } = await database.db.query<{ id: string }>(
      `select id from ${table} where customer_id = $1 order by id`,
      [owner.customer_id],
    )
    return rows.map(({ id }) => id)
  }

  test('and one of them stands still in the middle of a transaction, a walk gets each record once', async () => {
    let written = false
    let walked = false
    const [reader] = processes.slice(TABLES.length)
    const writing = Promise.all(processes.map((process) => write(process, () => written)))
    const tables = Object.keys(WALKED) as Table[]
    const walks = Promise.all(tables.map((table) => walk(reader!.call, WALKED[table], () => walked)))

    const overtaken: Record<string, number> = {}
    for (const [number, table] of TABLES.entries()) {
      const { pid } = processes[number]!
      process.kill(pid, 'SIGUSR2')
      await vi.waitUntil(() => existsSync(fileOf(number)), { timeout: 20_000 })
      await pause(FROZEN_MS)
      const before = await idsIn(table)
      process.kill(pid, 'SIGCONT')
      await pause(500)
      // The frozen record commits after records with later ids: without them, this test would show nothing.
      const after = new Set(await idsIn(table))
      for (const id of before) after.delete(id)
      overtaken[table] = [...after].filter((id) => id < before.at(-1)!).length
    }
    written = true
    await writing
    walked = true
    const seen = await walks
    for (const [index, table] of tables.entries()) {
      const ids = seen[index]!.map(({ id }) => id)
      expect({ table, twice: ids.length - new Set(ids).size }).toEqual({ table, twice: 0 })
      expect({ table, ids }).toEqual({ table, ids: await idsIn(table) })
    }
    for (const table of TABLES)
      expect({ table, overtaken: overtaken[table]! > 0 }).toEqual({ table, overtaken: true })
  })
})

// ---------------------------------------------------------------------------------------------- every list

describe('every list', () => {
  const LISTS = OPERATIONS.filter(
    ({ query, url }) =>
      query?.properties.order && query.properties.page_cursor && !url.startsWith('/v2/markets'),
  )
  /** The ids in the paths of lists that have some. */
  const PATH_IDS: Record<string, () => string> = {
    '/v2/profiles/:id/entries': () => credentials.profile_id,
  }
  let service: TestService
  let folder: string
  let credentials: SandboxCredentials
  let call: ReturnType<typeof caller>

  beforeAll(async () => {
    service = await startTestService()
    folder = await mkdtemp(join(tmpdir(), 'bursar-ascending-'))
  })
  afterAll(async () => {
    await service.close()
    await rm(folder, { recursive: true, force: true })
  })

  /** Each list, and again in the order of updates where it has that. */
  const urls = LISTS.flatMap(({ url, query }) =>
    JSON.stringify(query?.properties.order_by ?? {}).includes('UPDATED_AT')
      ? [url, `${url}?order_by=UPDATED_AT`]
      : [url],
  )

  async function read(list: string, order: 'ASC' | 'DESC'): Promise<Item[]> {
    const [path, filter] = list.split('?') as [string, string | undefined]
    const url = path.replace(':id', () => PATH_IDS[path]!())
    const items: Item[] = []
    let cursor: string | undefined
    do {
      const query = new URLSearchParams({
        ...Object.fromEntries(new URLSearchParams(filter)),
        order,
        limit: '100',
        ...(path === '/v2/statements' && { customer_id: credentials.customer_id }),
        ...(cursor !== undefined && { page_cursor: cursor }),
      })
      const { status, body } = await call<Page>('GET', `${url}?${query.toString()}`)
      expect({ list, status }).toEqual({ list, status: 200 })
      items.push(...itemsOf(body))
      cursor = body.next_page_cursor
    } while (cursor !== undefined)
    return items
  }

  const microsOf = (list: string, { id, created_at, updated_at }: Item) => {
    if (list.endsWith('UPDATED_AT')) return momentAt(updated_at!).micros
    return created_at === undefined ? microsOfId(id) : momentAt(created_at).micros
  }

  test('ends where a transaction under way began, and reaches its newest record when that has ended', async () => {
    const { app, db, ledger, networks } = service
    const frozen = await db.connect()
    await frozen.query('begin')
    const { micros: began } = await readClock(frozen)

    await makeDemo(
      { db, ledger, networks, rowMacs: ROW_MACS, webhookSecrets: WEBHOOK_SECRETS },
      { dataDir: folder, baseUrl: BASE_URL },
    )
    credentials = JSON.parse(await readFile(credentialsFile(folder), 'utf8')) as SandboxCredentials
    call = caller(app, await fetchToken(app, credentials))
    const { profile_id } = credentials
    await call('POST', '/v2/transfer/deposit-addresses', { profile_id, crypto_network: 'ETHEREUM' })
    await call('PUT', '/v2/transfer/crypto-destination-address', {
      crypto_network: 'ETHEREUM',
      address: DESTINATION,
    })

    const converted = await call('POST', '/v2/conversion/stablecoins', {
      profile_id,
      source_asset: 'USD',
      target_asset: 'USDG',
      amount: '1',
    })
    expect(converted.status).toBe(200)
    await withdrawWithApproval(service, credentials, originOfLoop('test'))

    const withoutNewRecords: string[] = []
    for (const list of urls) {
      const newer = (items: Item[]) => items.filter((item) => microsOf(list, item) >= began)
      expect({ list, items: newer(await read(list, 'ASC')) }).toEqual({ list, items: [] })
      if (newer(await read(list, 'DESC')).length === 0) withoutNewRecords.push(list)
    }
    expect(withoutNewRecords).toEqual([])
    // The answer says so, and each kind of list in the same way.
    const completeUntil = async (path: string) =>
      (await call<{ complete_until?: string }>('GET', path)).body.complete_until
    for (const path of [
      '/v2/transfer/transfers?',
      '/v2/events?',
      `/v2/statements?customer_id=${credentials.customer_id}&`,
    ]) {
      const until = await completeUntil(`${path}order=ASC&limit=100`)
      expect(momentAt(until!).micros).toBeLessThanOrEqual(began)
      expect(await completeUntil(`${path}order=DESC&limit=100`)).toBeUndefined()
    }

    await frozen.query('rollback')
    frozen.release()
    for (const list of urls)
      expect({ list, items: await read(list, 'ASC') }).toEqual({
        list,
        items: (await read(list, 'DESC')).reverse(),
      })
  })
})
