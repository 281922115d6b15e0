import { randomBytes } from 'node:crypto'
import type { FastifyInstance, InjectOptions } from 'fastify'
import pg from 'pg'
import { pino } from 'pino'
import { inject, onTestFinished } from 'vitest'
import { buildApp } from '../src/app.ts'
import { createCustomer } from '../src/customers/create-customer.ts'
import { openDatabase, type Database } from '../src/db/database.ts'
import { SCOPES, type Scope } from '../src/http/scopes.ts'
import { Ledger } from '../src/ledger/ledger.ts'
import { simulatedNetworks } from '../src/networks/simulated.ts'
import { createApiClient } from '../src/oauth/api-clients.ts'
import { readSettings, type Settings } from '../src/settings.ts'

/** A database of its own: a clone of the migrated template. */
export interface TestDatabase {
  url: string
  db: Database
  /** Closes the pool and drops the database. */
  drop(): Promise<void>
}

export async function cloneDatabase(max = 10): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`
  await asAdmin(`create database ${name} template template owner bursar`)
  const url = new URL(inject('templateUrl'))
  url.pathname = `/${name}`
  const db = openDatabase(url.href, { max, onError: () => undefined })
  return {
    url: url.href,
    db,
    async drop() {
      await db.end()
      await asAdmin(`drop database ${name} with (force)`)
    },
  }
}

export async function asAdmin(statement: string): Promise<void> {
  const admin = new pg.Client({ connectionString: inject('adminUrl') })
  await admin.connect()
  try {
    await admin.query(statement)
  } finally {
    await admin.end()
  }
}

export const BASE_URL = 'http://127.0.0.1:8080'

export const testSettings = (environment: Record<string, string> = {}): Settings =>
  readSettings({ BURSAR_SIMULATED_CONFIRMATION_MS: '0', BURSAR_SIMULATED_HOLD_MS: '50', ...environment })

/** The service as production builds it, on a database of its own. Close it in `afterAll`. */
export async function startTestService(environment: Record<string, string> = {}) {
  const settings = testSettings(environment)
  const { url, db, drop } = await cloneDatabase()
  const ledger = new Ledger(db)
  const networks =
    settings.mode === 'sandbox'
      ? simulatedNetworks(db, {
          confirmationMs: settings.simulatedConfirmationMs,
          holdMs: settings.simulatedHoldMs,
        })
      : new Map()
  const log = pino({ level: 'silent' })
  const app = await buildApp({ db, ledger, networks, settings, baseUrl: BASE_URL, log })
  await app.ready()
  return {
    url,
    db,
    app,
    ledger,
    networks,
    settings,
    async close() {
      await app.close()
      await ledger.drain()
      await drop()
    },
  }
}
export type TestService = Awaited<ReturnType<typeof startTestService>>

/** A customer with a client, a token with all scopes (or those given) and its default profile. */
export async function newCustomer(service: TestService, scopes: readonly Scope[] = SCOPES) {
  const { customer_id, profile_id } = await createCustomer(service.db, 'Test')
  const client = await createApiClient(service.db, customer_id, scopes)
  const token = await fetchToken(service.app, client)
  return { customer_id, profile_id, ...client, token, call: caller(service.app, token) }
}
export type TestCustomer = Awaited<ReturnType<typeof newCustomer>>

export async function fetchToken(
  app: FastifyInstance,
  client: { client_id: string; client_secret: string },
): Promise<string> {
  const reply = await app.inject({
    method: 'POST',
    url: '/oauth2/token',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      authorization: `Basic ${Buffer.from(`${client.client_id}:${client.client_secret}`).toString('base64')}`,
    },
    payload: 'grant_type=client_credentials',
  })
  if (reply.statusCode !== 200) throw new Error(`no token: ${reply.body}`)
  return reply.json<{ access_token: string }>().access_token
}

/** A reply with its body read as JSON. */
export interface Answer<T = Record<string, unknown>> {
  status: number
  headers: Record<string, unknown>
  body: T
}

/** Calls the API with a token; a body is sent as JSON. */
export function caller(app: FastifyInstance, token: string) {
  return async <T = Record<string, unknown>>(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    url: string,
    body?: unknown,
    options: InjectOptions = {},
  ): Promise<Answer<T>> => {
    const reply = await app.inject({
      method,
      url,
      ...(body !== undefined && { payload: body as object }),
      ...options,
      headers: { authorization: `Bearer ${token}`, ...options.headers },
    })
    return { status: reply.statusCode, headers: reply.headers, body: reply.json<T>() }
  }
}

/** Wires USD to a profile, through deposit instructions of its own. */
export async function fund(
  customer: TestCustomer,
  amount: string,
  profile_id = customer.profile_id,
): Promise<void> {
  const instructions = await customer.call<{ memo_id: string }>(
    'POST',
    '/v2/transfer/fiat-deposit-instructions',
    {
      profile_id,
      fiat_network: 'WIRE',
    },
  )
  const deposit = await customer.call('POST', '/v2/sandbox/fiat-deposits', {
    amount,
    asset: 'USD',
    memo_id: instructions.body.memo_id,
    fiat_network_instructions: { wire: {} },
  })
  if (deposit.status !== 200) throw new Error(`not funded: ${JSON.stringify(deposit.body)}`)
}

export const DESTINATION = '0x52908400098527886E0F7030069857D2E4169EE7'

/** A withdrawal body that is accepted, paid from USD. */
export const withdrawalOf = (customer: TestCustomer, changes: Record<string, unknown> = {}) => ({
  profile_id: customer.profile_id,
  asset: 'USDP',
  balance_asset: 'USD',
  crypto_network: 'ETHEREUM',
  amount: '10',
  destination_address: DESTINATION,
  ...changes,
})

/** Every table's content, to show that something changed nothing. */
export async function everyTable(db: Database): Promise<Record<string, string[]>> {
  const { rows } = await db.query<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'public' order by 1`,
  )
  const contents = await Promise.all(
    rows.map(async ({ name }) => {
      const table = await db.query<{ row: string }>(`select t::text as row from ${name} t order by 1`)
      return [name, table.rows.map(({ row }) => row)] as const
    }),
  )
  return Object.fromEntries(contents)
}

/** Random seed for a property test, printed when it fails (TEST_SEED repeats it). */
export const SEED = Number(process.env.TEST_SEED ?? randomBytes(4).readInt32BE())

/** Runs at the end of the test, however it ends. */
export const atEnd = (work: () => Promise<void>) => onTestFinished(work)
