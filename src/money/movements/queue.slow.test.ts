/*
 * Invariants of the ledger, for any movements in any batches from any number of processes:
 * 1. the entries of an event sum to zero per asset;
 * 2. no balance is below zero, now or at any version;
 * 3. every balance equals its entries: versions are contiguous, and each entry leaves the previous balance plus its
 * amount;
 * 4. time does not run backwards, neither between the versions of a balance nor between ids;
 * 5. a ref_id is used once, and repeated attempts get its record; a fee quote is used once;
 * 6. a refusal changes nothing, and does not affect other movements of its batch;
 * 7. one process answers exactly like a trivial model that executes the movements one after the other.
 */
import { originOfLoop } from '../../contract/actor.ts'
import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { CLUSTER, queryNodes } from '../../../test/cluster.ts'
import { runs, SEED } from '../../../test/seed.ts'
import {
  cloneDatabase,
  credit,
  emptier,
  everyTable,
  movedBy,
  ROW_MACS,
  type TestDatabase,
  ownDatabase,
} from '../../../test/support.ts'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { insertAccount } from '../../resources/accounts/create-account.ts'
import { createCustomer } from '../records/customer.ts'
import {
  connectionLost,
  openDatabase,
  transaction,
  violatedConstraint,
  type Database,
} from '../../db/database.ts'
import { newId, readClock } from '../../db/ids.ts'
import { Problem, problem } from '../../contract/problems.ts'
import { postSweep } from '../../rails/treasury/sweep-deposit-addresses.ts'
import { internalTransfer } from './internal-transfer.ts'
import { ORCHESTRATIONS, type Orchestration } from '../records/orchestration.ts'
import { insertIdentity } from '../../resources/identities/create-identity.ts'
import { insertProfile } from '../records/profile.ts'
import { onPlatform, onProfile, type Entry } from '../ledger/entries.ts'
import type { LedgerEvent } from '../../audit/audit.ts'
import { changeOf, type Decision, type Movement, type View } from './decision.ts'
import { BATCH_MAX, Ledger, WAITING_MAX } from './queue.ts'
import { LedgerTransaction } from '../ledger/ledger-transaction.ts'
import { TRANSFER_COLUMNS, transferToWire, type Transfer, type TransferRow } from '../ledger/transfer.ts'
import { FEE_QUOTES } from '../records/fee-quotes.ts'
import { change, need, type RecordKind } from '../records/need.ts'
import { verify } from '../verify/verify.ts'

const database = await ownDatabase()
const { db } = database

// ---------------------------------------------------------------------------------------------- what is submitted

const ASSETS = ['USD', 'USDP', 'BTC'] as const
const REF_IDS = ['', 'A', 'a', 'b', 'NULL', 'ä', '{}, "\\', '0']

/**
 * A request to move money, as plain values. Profiles and quotes are numbered; the last number of each does not exist.
 */
interface Command {
  kind: 'deposit' | 'withdrawal' | 'refused' | 'unbalanced'
  profile: number
  asset: (typeof ASSETS)[number]
  /** The balance to debit: the asset itself, or USD for USDP. */
  fromUsd: boolean
  /** In the smallest units of the balance. */
  amount: number
  fee: number
  ref: number | undefined
  quote: number | undefined
}
const PROFILES = 3
const QUOTES = 3

/** Optional values: `weight` times as often absent as present. */
const sometimes = <T>(weight: number, arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

const command: fc.Arbitrary<Command> = fc.record({
  kind: fc.constantFrom(
    'deposit',
    'deposit',
    'withdrawal',
    'withdrawal',
    'withdrawal',
    'refused',
    'unbalanced',
  ),
  profile: fc.constantFrom(0, 0, 0, 1, 1, 2, PROFILES),
  asset: fc.constantFrom(...ASSETS),
  fromUsd: fc.boolean(),
  amount: fc.integer({ min: 1, max: 100 }),
  fee: fc.integer({ min: 0, max: 9 }),
  ref: sometimes(1, fc.integer({ min: 1, max: REF_IDS.length - 1 })),
  quote: sometimes(3, fc.integer({ min: 0, max: QUOTES })),
})

const DEPOSIT: Command = {
  kind: 'deposit',
  profile: 0,
  asset: 'USD',
  fromUsd: false,
  amount: 1,
  fee: 0,
  ref: undefined,
  quote: undefined,
}

interface Tenant {
  customer_id: string
  profiles: string[]
  quotes: string[]
}

async function newTenant(): Promise<Tenant> {
  const { customer_id, profile_id } = await createCustomer(db, 'Test')
  const profiles = [profile_id]
  while (profiles.length < PROFILES) {
    const nickname = `profile ${profiles.length}`
    profiles.push((await insertProfile(db, customer_id, { type: 'NORMAL', nickname })).id)
  }
  const now = await transaction(db, readClock)
  const quotes = Array.from({ length: QUOTES }, (_, place) => newId(now, place))
  await db.query(
    `insert into fee_quotes (customer_id, id, asset, crypto_network, destination_address, fee, amount, expires_at,
                             created_at)
     select $1, id, 'BTC', 'BITCOIN', 'any', 1, 1, $3::timestamptz + interval '1 hour', $3
     from unnest($2::uuid[]) as id`,
    [customer_id, quotes, now.text],
  )
  await transaction(db, (tx) => ROW_MACS.sealAll(tx, 'fee_quotes'))
  // The last profile and quote do not exist for this customer: they belong to another.
  return { customer_id, profiles: [...profiles, foreign.profile_id], quotes: [...quotes, foreign.quote_id] }
}

async function newTenants(count: number): Promise<Tenant[]> {
  const tenants: Tenant[] = []
  while (tenants.length < count) tenants.push(await newTenant())
  return tenants
}

const { profile_id, customer_id } = await createCustomer(db, 'Another')
const quote_id = newId(await transaction(db, readClock))
await db.query(
  `insert into fee_quotes (customer_id, id, asset, crypto_network, destination_address, fee, amount, expires_at,
                             created_at)
     values ($1, $2, 'BTC', 'BITCOIN', 'any', 1, 1, clock_timestamp() + interval '1 hour', clock_timestamp())`,
  [customer_id, quote_id],
)
const foreign: { profile_id: string; quote_id: string } = { profile_id, quote_id }

const refIdOf = ({ ref }: Command) => (ref === undefined ? undefined : REF_IDS[ref]!)
const balanceAssetOf = ({ kind, asset, fromUsd }: Command) =>
  kind === 'withdrawal' && asset === 'USDP' && fromUsd ? 'USD' : asset
const totalOf = ({ kind, amount, fee }: Command) => BigInt(kind === 'deposit' ? amount : amount + fee)

/** The record of a successful command, without the fields that only the ledger knows. */
function recordOf(tenant: Tenant, command: Command): Omit<Transfer, 'id' | 'created_at' | 'updated_at'> {
  const { kind, asset, amount, fee, profile } = command
  const balance_asset = balanceAssetOf(command)
  const text = (minor: number | bigint) => formatAmount(BigInt(minor), decimalsOf(balance_asset))
  const ref_id = refIdOf(command)
  const isDeposit = kind !== 'withdrawal'
  return {
    customer_id: tenant.customer_id,
    profile_id: tenant.profiles[profile]!,
    ...(ref_id !== undefined && { ref_id }),
    type: isDeposit ? 'WIRE_DEPOSIT' : 'CRYPTO_WITHDRAWAL',
    direction: isDeposit ? 'CREDIT' : 'DEBIT',
    status: isDeposit ? 'COMPLETED' : 'PENDING',
    asset,
    balance_asset,
    amount: text(amount),
    fee: text(isDeposit ? 0 : fee),
    total: text(totalOf(command)),
    metadata: { 'a "key"': 'a {value}, NULL' },
  }
}

function entriesOf(tenant: Tenant, command: Command): Entry[] {
  const { kind, asset, profile } = command
  const profileId = tenant.profiles[profile]!
  const total = totalOf(command)
  if (kind === 'deposit') return [onPlatform('bank', asset, -total), onProfile(profileId, asset, total)]
  if (kind === 'unbalanced')
    return [onPlatform('bank', asset, -total), onProfile(profileId, asset, total + 1n)]
  const balanceAsset = balanceAssetOf(command)
  const scale = 10n ** BigInt(decimalsOf(asset) - decimalsOf(balanceAsset))
  const [amount, fee] = [BigInt(command.amount) * scale, BigInt(command.fee) * scale]
  const out = [onPlatform('in_flight:ETHEREUM', asset, amount), onPlatform('fees', asset, fee)]
  if (balanceAsset === asset) return [onProfile(profileId, asset, -total), ...out]
  return [
    onProfile(profileId, balanceAsset, -total),
    onPlatform('conversion', balanceAsset, total),
    onPlatform('conversion', asset, -(amount + fee)),
    ...out,
  ]
}

function movementOf(tenant: Tenant, command: Command): Movement {
  const quoteId = command.quote === undefined ? undefined : tenant.quotes[command.quote]!
  const profileId = tenant.profiles[command.profile]!
  return {
    origin: originOfLoop('test'),
    ref_id: refIdOf(command),
    needs: quoteId === undefined ? [] : [need(FEE_QUOTES, quoteId)],
    balances: [{ profile_id: profileId, asset: balanceAssetOf(command) }],
    decide(view) {
      view.requireOpen(profileId)
      if (quoteId !== undefined) {
        const quote = view.get(FEE_QUOTES, quoteId)
        if (quote === undefined) throw problem.notFound('fee quote', quoteId)
        if (quote.transfer_id !== null) throw problem.expired('used', { fee_id: quoteId })
      }
      if (command.kind === 'refused') throw problem.badRequest('as ordered')
      const { now } = view
      const made = { id: view.newId(), created_at: now.text, updated_at: now.text }
      const changes = quoteId === undefined ? [] : [change(FEE_QUOTES, { id: quoteId, transfer_id: made.id })]
      const transfer = { ...recordOf(tenant, command), ...made }
      return { transfer, entries: entriesOf(tenant, command), changes }
    },
  }
}

// ---------------------------------------------------------------------------------------------- the model

type Outcome = { transfer: Transfer } | { refusal: unknown }

const submitTo = async (ledger: Ledger, customerId: string, movement: Movement): Promise<Transfer> =>
  (await ledger.submit(customerId, movement)).transfer

const outcomesOf = async (answers: Promise<Transfer>[]): Promise<Outcome[]> =>
  (await Promise.allSettled(answers)).map((answer) =>
    answer.status === 'fulfilled' ? { transfer: answer.value } : { refusal: answer.reason as unknown },
  )

/** A simple in-memory ledger that executes one movement after the other. */
class Model {
  readonly balances = new Map<string, bigint>()
  readonly transfers: Transfer[] = []
  #byRefId = new Map<string, Transfer>()
  #usedQuotes = new Set<number>()
  #tenant: Tenant

  constructor(tenant: Tenant) {
    this.#tenant = tenant
  }

  /** Returns the refusal of the command, or undefined. */
  #refusalOf(command: Command): object | undefined {
    const { kind, profile, quote } = command
    const existing = this.#byRefId.get(refIdOf(command) ?? '')
    if (existing !== undefined) return { slug: 'already-exists', meta: { existing } }
    if (profile === PROFILES) return { slug: 'not-found' }
    if (quote === QUOTES) return { slug: 'not-found' }
    if (quote !== undefined && this.#usedQuotes.has(quote)) return { slug: 'expired' }
    if (kind === 'refused') return { slug: 'bad-request' }
    if (kind === 'unbalanced') return { name: 'AssertionError' }
    const { available, needed, asset } = this.#funds(command)
    if (kind === 'deposit' || available >= needed) return undefined
    const text = (minor: bigint) => formatAmount(minor, decimalsOf(asset))
    const profile_id = this.#tenant.profiles[profile]!
    const meta = { profile_id, asset, available: text(available), needed: text(needed) }
    return { slug: 'insufficient-funds', meta }
  }

  #funds(command: Command) {
    const asset = balanceAssetOf(command)
    const key = `${this.#tenant.profiles[command.profile]!} ${asset}`
    return { key, asset, available: this.balances.get(key) ?? 0n, needed: totalOf(command) }
  }

  /** Executes the next command; returns whether it is refused. Fails where the ledger's outcome differs. */
  take(command: Command, outcome: Outcome): { refused: boolean } {
    const refusal = this.#refusalOf(command)
    if (refusal !== undefined) {
      expect(outcome).toEqual({ refusal: expect.objectContaining(refusal) as unknown })
      return { refused: true }
    }
    expect(outcome).toEqual({ transfer: expect.objectContaining(recordOf(this.#tenant, command)) as unknown })
    const { transfer } = outcome as { transfer: Transfer }
    const { key, available, needed } = this.#funds(command)
    this.balances.set(key, command.kind === 'deposit' ? available + needed : available - needed)
    const refId = refIdOf(command)
    if (refId !== undefined) this.#byRefId.set(refId, transfer)
    if (command.quote !== undefined) this.#usedQuotes.add(command.quote)
    this.transfers.push(transfer)
    return { refused: false }
  }
}

// ---------------------------------------------------------------------------------------------- the invariants

interface EntryRow {
  transfer_id: string
  event: string
  account: string
  profile_id: string | null
  asset: string
  amount: string
  balance_after: string | null
  version: string | null
  created_at: string
}

/** Checks a customer's tables against invariants 1 to 4, in plain code; returns their content for comparison. */
async function requireSound(customerId: string) {
  const [entries, balances, transfers] = await Promise.all([
    db.query<EntryRow>('select * from entries where customer_id = $1', [customerId]),
    db.query<{ profile_id: string; asset: string; available: string; version: string }>(
      'select * from balances where customer_id = $1',
      [customerId],
    ),
    db.query<TransferRow>(
      `select ${TRANSFER_COLUMNS} from transfers t where customer_id = $1 order by t.id`,
      [customerId],
    ),
  ])
  const minor = (text: string, asset: string) => parseStoredAmount(text, decimalsOf(asset))

  const sums = new Map<string, bigint>()
  for (const { transfer_id, event, asset, amount } of entries.rows) {
    const key = `${transfer_id} ${event} ${asset}`
    sums.set(key, (sums.get(key) ?? 0n) + minor(amount, asset))
  }
  expect([...sums].filter(([, sum]) => sum !== 0n)).toEqual([])

  const histories = new Map<string, EntryRow[]>()
  for (const entry of entries.rows) {
    if (entry.profile_id === null) continue
    const key = `${entry.profile_id} ${entry.asset}`
    histories.set(key, [...(histories.get(key) ?? []), entry])
  }
  const last = new Map<string, { available: bigint; version: number }>()
  for (const [key, history] of histories) {
    history.sort((a, b) => Number(a.version) - Number(b.version))
    let available = 0n
    let earlier = ''
    history.forEach(({ amount, asset, balance_after, version, created_at }, index) => {
      available += minor(amount, asset)
      expect({ key, version: Number(version), after: minor(balance_after!, asset) }).toEqual({
        key,
        version: index + 1,
        after: available,
      })
      expect(available >= 0n, `${key} is ${available} at version ${version}`).toBe(true)
      expect(created_at >= earlier, `${key}: ${created_at} after ${earlier}`).toBe(true)
      earlier = created_at
    })
    last.set(key, { available, version: history.length })
  }
  const kept = new Map(
    balances.rows.map(({ profile_id, asset, available, version }) => [
      `${profile_id} ${asset}`,
      { available: minor(available, asset), version: Number(version) },
    ]),
  )
  expect(kept).toEqual(last)

  const times = transfers.rows.map(({ created_at }) => created_at!)
  expect(times).toEqual([...times].sort())
  expect(new Set(entries.rows.map(({ transfer_id }) => transfer_id))).toEqual(
    new Set(transfers.rows.map(({ id }) => id)),
  )
  return { balances: kept, histories, transfers: transfers.rows.map(transferToWire) }
}

/** Names the ids that a table has made for a customer, in their order. */
const MADE_IDS = { transfers: 't', events: 'e', audit_log: 'a' }

/** The answers that a customer got and all of its rows, with names for what differs between customers and times. */
async function toldOf({ customer_id, profiles, quotes }: Tenant, outcomes: Outcome[]): Promise<object> {
  const { rows: tables } = await db.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'customer_id'
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`,
  )
  const names = new Map([
    [customer_id, 'customer'],
    ...[...profiles, ...quotes].map((id, at) => [id, `own${at}`] as const),
  ])
  for (const [table, letter] of Object.entries(MADE_IDS)) {
    const { rows } = await db.query<{ id: string }>(
      `select id from ${table} where customer_id = $1 order by id`,
      [customer_id],
    )
    rows.forEach(({ id }, at) => names.set(id, `${letter}${at}`))
  }
  const named = (text: string) =>
    text
      .replaceAll(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, (id) => names.get(id) ?? 'another id')
      .replaceAll(/\d{4}-\d\d-\d\d[T ][\d:.]+(?:Z|\+00:00|\+00)/g, 'time')
      .replaceAll(/\\+x[0-9a-f]+/g, 'hash')
  const contents: Record<string, string[]> = {}
  for (const { name } of tables) {
    const { rows } = await db.query<{ row: string }>(
      `select (to_jsonb(t) - 'mac')::text as row from ${name} t where customer_id = $1`,
      [customer_id],
    )
    contents[name] = rows.map(({ row }) => named(row)).sort()
  }
  const answers = outcomes.map((outcome) => {
    if ('transfer' in outcome) return named(JSON.stringify(outcome.transfer))
    const { refusal } = outcome
    return refusal instanceof Problem
      ? named(JSON.stringify([refusal.slug, refusal.detail, refusal.meta]))
      : String(refusal)
  })
  return { answers, contents }
}

const requireClean = async () => expect((await verify(db)).disagreements).toEqual([])

// ---------------------------------------------------------------------------------------------- properties

describe('one process', () => {
  const TENANTS = 4
  const batches = fc.array(
    fc.array(fc.record({ tenant: fc.nat(TENANTS - 1), command }), { minLength: 1, maxLength: 40 }),
    { minLength: 1, maxLength: 6 },
  )

  test('answers like the model, in order, and stores the answered records', async () => {
    const ledger = new Ledger(db)
    await fc.assert(
      fc.asyncProperty(batches, async (batches) => {
        const tenants = await newTenants(TENANTS)
        const models = tenants.map((tenant) => new Model(tenant))
        for (const batch of batches) {
          const before = await everyTable(db)
          const outcomes = await outcomesOf(
            batch.map(({ tenant, command }) => {
              const { customer_id } = tenants[tenant]!
              return submitTo(ledger, customer_id, movementOf(tenants[tenant]!, command))
            }),
          )
          const taken = batch.map(({ tenant, command }, index) =>
            models[tenant]!.take(command, outcomes[index]!),
          )
          if (taken.every(({ refused }) => refused)) expect(await everyTable(db)).toEqual(before)
        }
        for (const [index, model] of models.entries()) {
          const { balances, transfers } = await requireSound(tenants[index]!.customer_id)
          expect(new Map([...balances].map(([key, { available }]) => [key, available]))).toEqual(
            model.balances,
          )
          // The order of acceptance is the order of ids.
          expect(transfers).toEqual(model.transfers)
        }
      }),
      runs(60),
    )
    await requireClean()
  })

  test('gives each customer of a batch what a batch of its own gives', async () => {
    const { pool, seen } = notingShared()
    await fc.assert(
      fc.asyncProperty(batches, async (batches) => {
        const sharing = await newTenants(TENANTS)
        const alone = await newTenants(TENANTS)
        const ledger = new Ledger(pool)
        const answers = [sharing, alone].map((tenants) => tenants.map((): Outcome[] => []))
        for (const batch of batches) {
          const ofTenant = (index: number) =>
            batch.flatMap(({ tenant, command }) => (tenant === index ? command : []))
          const submitAll = ({ customer_id, ...tenant }: Tenant, index: number) =>
            outcomesOf(
              ofTenant(index).map((command) =>
                submitTo(ledger, customer_id, movementOf({ customer_id, ...tenant }, command)),
              ),
            )
          const together = await Promise.all(sharing.map(submitAll))
          together.forEach((outcomes, index) => answers[0]![index]!.push(...outcomes))
          for (const [index, tenant] of alone.entries())
            answers[1]![index]!.push(...(await submitAll(tenant, index)))
        }
        for (const [index, tenant] of sharing.entries())
          expect(await toldOf(tenant, answers[0]![index]!)).toEqual(
            await toldOf(alone[index]!, answers[1]![index]!),
          )
      }),
      runs(40),
    )
    await pool.end()
    // A shared transaction that fails is posted apart, which would hide its fault.
    expect(seen.failures.filter((failure) => failure !== 'transfers_ref_id')).toEqual([])
    expect(seen.sent > 0).toBe(CLUSTER.length === 0)
    await requireClean()
  })

  test('does so too when more movements arrive together than a batch holds', async () => {
    const ledger = new Ledger(db)
    const tenant = await newTenant()
    const model = new Model(tenant)
    const commands = fc.sample(command, { numRuns: 2 * BATCH_MAX + 100, seed: SEED })
    const outcomes = await outcomesOf(
      commands.map((command) => submitTo(ledger, tenant.customer_id, movementOf(tenant, command))),
    )
    commands.forEach((command, index) => model.take(command, outcomes[index]!))
    const { transfers } = await requireSound(tenant.customer_id)
    expect(transfers).toEqual(model.transfers)
    await requireClean()
  })
})

describe('several processes', () => {
  const PROCESSES = 3
  const pools: Database[] = []
  let ledgers: Ledger[]
  beforeAll(() => {
    for (let process = 0; process < PROCESSES; process++)
      pools.push(openDatabase(database.url, { max: 4, onError: () => undefined }))
    // One of them posts the halves of the profiles in transactions of their own.
    ledgers = pools.map((pool, process) => new Ledger(pool, process === 0 ? { halvesFrom: 1 } : {}))
  })
  afterAll(() => Promise.all(pools.map((pool) => pool.end())))

  interface Attempt {
    command: Command
    process: number
    /** Whether the process first waits for a turn of its event loop, so that batches end at different places. */
    later: boolean
  }
  const attempts: fc.Arbitrary<Attempt[]> = fc.array(
    fc.record({ command, process: fc.nat(PROCESSES - 1), later: fc.boolean() }),
    { minLength: 2, maxLength: 80 },
  )

  /** Submits all attempts at once, each to its process; returns the outcomes in the order of the attempts. */
  async function submitAll(tenant: Tenant, attempts: Attempt[]): Promise<Outcome[]> {
    const answers: Promise<Transfer>[] = []
    for (const { command, process, later } of attempts) {
      if (later) await turn()
      answers.push(submitTo(ledgers[process]!, tenant.customer_id, movementOf(tenant, command)))
      answers.at(-1)!.catch(() => undefined)
    }
    return outcomesOf(answers)
  }

  test('give outcomes that some order of the movements explains', async () => {
    await fc.assert(
      fc.asyncProperty(attempts, async (attempts) => {
        const tenant = await newTenant()
        const outcomes = await submitAll(tenant, attempts)
        const { histories, transfers } = await requireSound(tenant.customer_id)

        // The tables contain exactly the acknowledged movements.
        const acknowledged = outcomes.flatMap((outcome) => ('transfer' in outcome ? [outcome.transfer] : []))
        const byId = (a: Transfer, b: Transfer) => (a.id < b.id ? -1 : 1)
        expect(acknowledged.sort(byId)).toEqual(transfers)

        const byRefId = new Map<string, Transfer>()
        for (const transfer of acknowledged) {
          if (transfer.ref_id === undefined) continue
          expect(byRefId.has(transfer.ref_id), `${transfer.ref_id} succeeded twice`).toBe(false)
          byRefId.set(transfer.ref_id, transfer)
        }
        const quotesUsed = attempts.flatMap(({ command }, index) =>
          'transfer' in outcomes[index]! && command.quote !== undefined ? [command.quote] : [],
        )
        expect(new Set(quotesUsed).size).toBe(quotesUsed.length)

        outcomes.forEach((outcome, index) => {
          const { command } = attempts[index]!
          if ('transfer' in outcome) {
            expect(outcome.transfer).toMatchObject(recordOf(tenant, command))
            return
          }
          const { refusal } = outcome
          if (!(refusal instanceof Problem)) {
            expect([command.kind, refusal]).toEqual([
              'unbalanced',
              expect.objectContaining({ name: 'AssertionError' }),
            ])
            return
          }
          switch (refusal.slug) {
            case 'already-exists':
              expect(refusal.meta).toEqual({ existing: byRefId.get(refIdOf(command)!) })
              break
            case 'insufficient-funds': {
              // The balance once had the amount in the refusal, and that was too little.
              const { profile_id, asset, available, needed } = refusal.meta as Record<string, string>
              const history = histories.get(`${profile_id!} ${asset!}`) ?? []
              expect(['0', ...history.map((entry) => entry.balance_after)]).toContain(available)
              expect(Number(available)).toBeLessThan(Number(needed))
              break
            }
            case 'expired':
              expect(quotesUsed).toContain(command.quote)
              break
            case 'not-found':
              expect(command.profile === PROFILES || command.quote === QUOTES).toBe(true)
              break
            default:
              expect([command.kind, refusal.slug]).toEqual(['refused', 'bad-request'])
          }
        })
      }),
      runs(60),
    )
    await requireClean()
  })

  test('let one movement use a quote, for any paying balances', async () => {
    for (let round = 1; round <= 15; round++) {
      const tenant = await newTenant()
      for (let quote = 0; quote < QUOTES; quote++) {
        // One balance per process, so that the processes can only wait for the quote.
        const shape = {
          kind: 'deposit',
          asset: 'USD',
          fromUsd: false,
          amount: 5,
          fee: 0,
          ref: undefined,
        } as const
        const outcomes = await submitAll(
          tenant,
          ledgers.map((_, process) => ({
            process,
            later: false,
            command: { ...shape, profile: process, quote },
          })),
        )
        const refusals = outcomes.flatMap((outcome) =>
          'refusal' in outcome ? [slugOf(outcome.refusal)] : [],
        )
        expect(refusals).toEqual(Array(PROCESSES - 1).fill('expired'))
      }
      await requireSound(tenant.customer_id)
    }
  })

  test('let each ref_id succeed exactly once unless another refusal applies', async () => {
    const repeats = fc.array(
      fc.record({
        process: fc.nat(PROCESSES - 1),
        later: fc.boolean(),
        command: fc.record({
          kind: fc.constant('deposit' as const),
          profile: fc.nat(PROFILES - 1),
          asset: fc.constantFrom(...ASSETS),
          fromUsd: fc.constant(false),
          amount: fc.integer({ min: 1, max: 100 }),
          fee: fc.constant(0),
          ref: fc.integer({ min: 1, max: REF_IDS.length - 1 }),
          quote: fc.constant(undefined),
        }),
      }),
      { minLength: 20, maxLength: 100 },
    )
    await fc.assert(
      fc.asyncProperty(repeats, async (attempts) => {
        const tenant = await newTenant()
        const outcomes = await submitAll(tenant, attempts)
        const winners = outcomes.flatMap((outcome) => ('transfer' in outcome ? [outcome.transfer] : []))
        expect(winners.map(({ ref_id }) => ref_id).sort()).toEqual(
          [...new Set(attempts.map(({ command }) => refIdOf(command)))].sort(),
        )
        const byRefId = new Map(winners.map((winner) => [winner.ref_id, winner]))
        outcomes.forEach((outcome, index) => {
          if ('transfer' in outcome) return
          const existing = byRefId.get(refIdOf(attempts[index]!.command))
          expect(outcome.refusal).toMatchObject({ slug: 'already-exists', meta: { existing } })
        })
        await requireSound(tenant.customer_id)
      }),
      runs(40),
    )
    await requireClean()
  })
})

/** A pool whose sessions answer a statement by way of this function, which sends that statement or another. */
function answeringBy(
  answer: (statement: unknown, send: (other?: string) => Promise<unknown>) => Promise<unknown>,
): Database {
  const pool = openDatabase(database.url, { max: 4, onError: () => undefined })
  pool.on('connect', (session) => {
    const query = session.query.bind(session) as (...statement: unknown[]) => Promise<unknown>
    session.query = ((...statement: unknown[]) =>
      answer(statement[0], (other) =>
        other === undefined ? query(...statement) : query(other),
      )) as typeof session.query
  })
  return pool
}

/** A pool that counts the statements of several customers, and tells the constraints and errors by which they failed. */
function notingShared(): { pool: Database; seen: { sent: number; failures: string[] } } {
  const seen = { sent: 0, failures: [] as string[] }
  const pool = answeringBy((statement, send) => {
    if ((statement as { text?: string }).text?.includes('$1::uuid[]') !== true) return send()
    seen.sent++
    return send().catch((error: pg.DatabaseError) => {
      // Statements behind one that failed fail with it.
      if (error.code !== '25P02') seen.failures.push(error.constraint ?? error.message)
      throw error
    })
  })
  return { pool, seen }
}

/** A pool whose statements fail at the places of this list, counted over all of its sessions, each in its own way. */
function failingAt(places: readonly { statement: number; way: 'ERROR' | 'LOST' }[]): Database {
  const ways = new Map(places.map(({ statement, way }) => [statement, way]))
  let sent = 0
  return answeringBy((statement, send) => {
    const way = ways.get(sent++)
    // The statements that begin and end a transaction have no name.
    if (way === 'ERROR' && typeof statement === 'object') return send('select 1 / 0')
    if (way === 'LOST') send('select pg_terminate_backend(pg_backend_pid())').catch(() => undefined)
    return send()
  })
}

describe('two transactions at a time', () => {
  const failures = fc.array(
    fc.record({ statement: fc.nat(60), way: fc.constantFrom('ERROR' as const, 'LOST' as const) }),
    { maxLength: 4 },
  )
  const bursts = fc.array(
    fc.array(fc.record({ tenant: fc.nat(2), command }), { minLength: 1, maxLength: 30 }),
    { minLength: 2, maxLength: 4 },
  )

  /** Of the halves of one customer's profiles, or of several customers. */
  test.each([1, 3])('lose and invent nothing for %i customers, whichever statements fail', async (count) => {
    let most = 0
    await fc.assert(
      fc.asyncProperty(bursts, failures, async (bursts, failures) => {
        const tenants = await newTenants(count)
        const pool = failingAt(failures)
        const ledger = new Ledger(pool, { halvesFrom: 1 })
        const answers: Promise<Transfer>[] = []
        for (const burst of bursts) {
          for (const { tenant: number, command } of burst) {
            const tenant = tenants[number % count]!
            answers.push(submitTo(ledger, tenant.customer_id, movementOf(tenant, command)))
          }
          for (const answer of answers) answer.catch(() => undefined)
          // The next ones meet the transactions of these at each of their steps.
          await turn()
          await turn()
        }
        const outcomes = await outcomesOf(answers)
        await ledger.drain()
        most = Math.max(most, pool.totalCount)
        await pool.end()
        const sound = await Promise.all(tenants.map(({ customer_id }) => requireSound(customer_id)))
        const transfers = sound.flatMap((each) => each.transfers)
        const recorded = new Map(transfers.map((transfer) => [transfer.id, transfer]))
        const moved = outcomes.flatMap((outcome) => ('transfer' in outcome ? [outcome.transfer] : []))
        for (const transfer of moved) expect(recorded.get(transfer.id)).toEqual(transfer)
        // The answer says that the outcome is unknown where a connection was lost, and only there.
        const unknown = outcomes.filter(
          (outcome) => 'refusal' in outcome && slugOf(outcome.refusal) === 'unavailable',
        )
        expect(transfers.length - moved.length).toBeLessThanOrEqual(unknown.length)
        if (failures.every(({ way }) => way === 'ERROR')) expect(unknown).toEqual([])
      }),
      runs(100),
    )
    // A pool opens a second session when the first is in use.
    expect(most).toBeGreaterThan(1)
    await requireClean()
  })
})

// ---------------------------------------------------------------------------------------------- single cases

describe('a programming error', () => {
  type Mistake = (decision: Decision, view: View) => Decision
  const mistakes: Record<string, { mistake: Mistake; error: object }> = {
    'entries that do not balance': {
      mistake: (decision) => ({ ...decision, entries: decision.entries.slice(1) }),
      error: { name: 'AssertionError', message: expect.stringContaining('must balance') as string },
    },
    'an entry on a balance that was not named': {
      mistake: ({ transfer, entries }) => ({
        transfer,
        entries: entries.map((entry) => ({ ...entry, asset: 'EUR' })),
      }),
      error: {
        name: 'AssertionError',
        message: expect.stringContaining('must name the balances') as string,
      },
    },
    'an entry on an asset that does not exist': {
      mistake: ({ transfer, entries }) => ({
        transfer,
        entries: [...entries, onPlatform('bank', 'NONE', 1n), onPlatform('fees', 'NONE', -1n)],
      }),
      error: { message: 'no asset NONE in the catalogue' },
    },
    'a record that the table refuses': {
      mistake: ({ transfer, entries }) => ({ transfer: { ...transfer, amount: '0' }, entries }),
      error: { message: expect.stringContaining('check constraint "transfers_amount') as string },
    },
    'a text that PostgreSQL cannot hold': {
      mistake: ({ transfer, entries }) => ({ transfer: { ...transfer, memo: 'a\u0000b' }, entries }),
      error: { name: 'error' },
    },
    'an exception while deciding': {
      mistake: () => {
        throw new TypeError('undefined is not a function')
      },
      error: { name: 'TypeError' },
    },
  }

  test.each(Object.entries(mistakes))('%s fails by itself', async (_, { mistake, error }) => {
    const tenant = await newTenant()
    const ledger = new Ledger(db)
    const deposit: Command = { ...DEPOSIT, amount: 5 }
    const good = movementOf(tenant, deposit)
    const bad: Movement = { ...good, decide: (view) => mistake(good.decide(view), view) }
    const submit = (movements: Movement[]) =>
      outcomesOf(movements.map((movement) => submitTo(ledger, tenant.customer_id, movement)))

    const before = await everyTable(db)
    expect(await submit([bad])).toMatchObject([{ refusal: error }])
    expect(await everyTable(db)).toEqual(before)

    const neighbours = await newTenants(2)
    const near = outcomesOf(
      neighbours.map((neighbour) => submitTo(ledger, neighbour.customer_id, movementOf(neighbour, deposit))),
    )
    expect(await submit([good, bad, good, bad, good])).toMatchObject([
      { transfer: { amount: '0.05' } },
      { refusal: error },
      { transfer: { amount: '0.05' } },
      { refusal: error },
      { transfer: { amount: '0.05' } },
    ])
    const { balances, transfers } = await requireSound(tenant.customer_id)
    expect([...balances.values()]).toEqual([{ available: 15n, version: 3 }])
    expect(transfers).toHaveLength(3)
    expect(await near).toMatchObject([{ transfer: { amount: '0.05' } }, { transfer: { amount: '0.05' } }])
    for (const { customer_id } of neighbours)
      expect((await requireSound(customer_id)).transfers).toHaveLength(1)
  })

  test('while the changes of one customer are written fails it, and no neighbour', async () => {
    const tenants = await newTenants(4)
    const ledger = new Ledger(db)
    const broken: RecordKind<string, string, string> = {
      read: async () => ({ get: () => undefined }),
      write: () => {
        throw new TypeError('undefined is not a function')
      },
    }
    const deposit: Command = { ...DEPOSIT, amount: 5 }
    const outcomes = await outcomesOf(
      tenants.map((tenant, index) => {
        const movement = movementOf(tenant, deposit)
        const decide = (view: View) => ({ ...movement.decide(view), changes: [change(broken, 'any')] })
        return submitTo(ledger, tenant.customer_id, index === 0 ? { ...movement, decide } : movement)
      }),
    )
    expect(outcomes.map((outcome) => 'transfer' in outcome)).toEqual([false, true, true, true])
    for (const [index, { customer_id }] of tenants.entries())
      expect((await requireSound(customer_id)).transfers).toHaveLength(index === 0 ? 0 : 1)
  })

  test('a movement that debits one balance twice is refused by the sum', async () => {
    const { customer_id, profiles } = await newTenant()
    const [profile_id] = profiles as [string]
    const ledger = new Ledger(db)
    await credit(ledger, { customer_id, profile_id }, 'USD', '1')
    const twice: Movement = {
      origin: originOfLoop('test'),
      balances: [{ profile_id, asset: 'USD' }],
      decide: () => ({
        transfer: {} as Transfer,
        entries: [
          onProfile(profile_id, 'USD', -60n),
          onProfile(profile_id, 'USD', -60n),
          onPlatform('fees', 'USD', 120n),
        ],
      }),
    }
    await expect(ledger.submit(customer_id, twice)).rejects.toMatchObject({
      slug: 'insufficient-funds',
      meta: { available: '1', needed: '1.2' },
    })
  })
})

describe('the database', () => {
  test.each([
    'update entries set amount = amount',
    'delete from entries',
    'truncate entries',
    'update entries set created_at = (select clock_timestamp()) where false',
  ])('refuses to: %s', async (statement) => {
    await expect(db.query(statement)).rejects.toMatchObject({ code: '42501' })
  })

  test('refuses to post an event of a transfer twice', async () => {
    const { customer_id, profiles } = await newTenant()
    const [profile_id] = profiles as [string]
    const { id } = await credit(new Ledger(db), { customer_id, profile_id }, 'USD', '1')
    await post(customer_id, id, 'SETTLED')
    const before = await everyTable(db)
    const violated = (event: LedgerEvent) =>
      post(customer_id, id, event).then(() => 'none', violatedConstraint)
    expect(await violated('SETTLED')).toBe('entries_pkey')
    expect(await violated('CREATED')).toBe('entries_pkey')
    expect(await everyTable(db)).toEqual(before)
  })
})

/** Posts an event between platform accounts, as settlement does. */
function post(customerId: string, transfer_id: string, event: LedgerEvent): Promise<unknown> {
  const entries = [onPlatform('bank', 'USD', -1n), onPlatform('custody:ETHEREUM', 'USD', 1n)]
  return transaction(db, async (tx) => {
    const ledger = await LedgerTransaction.open(tx, customerId, [])
    ledger.post({ transfer_id, event, entries, origin: originOfLoop('test') })
    return ledger.write()
  })
}

/** Deposits 1.00 for the first profile. */
const deposited = (ledger: Ledger, { customer_id, profiles: [profile_id] }: Tenant, asset = 'USD') =>
  credit(ledger, { customer_id, profile_id: profile_id! }, asset, '1')

describe('what another transaction has locked', () => {
  const LOCKS = {
    'a balance': 'select from balances where customer_id = $1 for update',
    'a profile without a balance in the asset': 'select from profiles where customer_id = $1 for update',
    'the end of the audit chain': 'select from audit_heads where customer_id = $1 for update',
  }
  test.each(Object.entries(LOCKS))('holds up its customer alone: %s', async (_, lock) => {
    const tenants = await newTenants(6)
    const ledger = new Ledger(db)
    const deposit =
      (asset = 'USD') =>
      (tenant: Tenant) =>
        deposited(ledger, tenant, asset)
    await Promise.all(tenants.map(deposit()))
    const [held, ...others] = tenants as [Tenant, ...Tenant[]]
    let isAnswered = false
    let answer: Promise<unknown> | undefined
    await transaction(db, async (tx) => {
      await tx.query(lock, [held.customer_id])
      answer = deposit(lock.includes('profiles') ? 'EUR' : 'USD')(held).finally(() => (isAnswered = true))
      for (let round = 0; round < 5; round++) await Promise.all(others.map(deposit()))
      expect(isAnswered).toBe(false)
    })
    await answer
    for (const { customer_id } of others)
      expect([...(await requireSound(customer_id)).balances.values()]).toEqual([
        { available: 600n, version: 6 },
      ])
    await requireSound(held.customer_id)
  })

  test('leaves the process idle, with more movements of the customer behind its batch', async () => {
    const tenant = await newTenant()
    const ledger = new Ledger(db)
    const deposit = () => deposited(ledger, tenant)
    await deposit()
    const answers: Promise<unknown>[] = []
    await transaction(db, async (tx) => {
      await tx.query('select from balances where customer_id = $1 for update', [tenant.customer_id])
      answers.push(deposit())
      await pause(20)
      answers.push(deposit())
      // For longer than a batch may take before another lane starts.
      await pause(400)
      const before = performance.eventLoopUtilization()
      await pause(200)
      expect(performance.eventLoopUtilization(before).utilization).toBeLessThan(0.9)
    })
    await Promise.all(answers)
  })
})

describe('what PostgreSQL says of a transaction', () => {
  test.each([
    [1, '22012'],
    [1, '57014'],
    [4, '22012'],
    [4, '57014'],
  ])('where none began for %i customers, with the error %s, nothing is posted in it', async (count, code) => {
    const tenants = await newTenants(count)
    let begins = 0
    const pool = answeringBy((statement, send) =>
      typeof statement === 'string' && statement.startsWith('begin') && begins++ === 0
        ? send(`do $$ begin raise exception 'refused' using errcode = '${code}'; end $$`)
        : send(),
    )
    const ledger = new Ledger(pool)
    const outcomes = await outcomesOf([...tenants, ...tenants].map((tenant) => deposited(ledger, tenant)))
    await ledger.drain()
    await pool.end()
    const sound = await Promise.all(tenants.map(({ customer_id }) => requireSound(customer_id)))
    const moved = outcomes.filter((outcome) => 'transfer' in outcome)
    expect(sound.flatMap(({ transfers }) => transfers)).toHaveLength(moved.length)
  })

  test('a repeated ref_id is found in whatever language the server names the severity of its errors', async () => {
    const tenant = await newTenant()
    const pool = answeringBy((_, send) =>
      send().catch((error: unknown) => {
        throw Object.assign(error as Error, { severity: 'FEHLER' })
      }),
    )
    const ledger = new Ledger(pool)
    const repeated = { ...DEPOSIT, ref: 1 }
    const submit = () => submitTo(ledger, tenant.customer_id, movementOf(tenant, repeated))
    await submit()
    await expect(submit()).rejects.toMatchObject({ slug: 'already-exists' })
    await pool.end()
  })
})

describe('when the connection to the database is lost', () => {
  test('in the middle of a batch, its movements are answered 503 and the next batch works', async () => {
    const { customer_id, profiles } = await newTenant()
    const [profile_id] = profiles as [string]
    const ledger = new Ledger(db)
    const deposit = () => credit(ledger, { customer_id, profile_id }, 'USD', '1')
    await deposit()
    const before = await everyTable(db)

    await transaction(db, async (tx) => {
      // The batch waits for this lock, and its connection is cut there.
      await tx.query('select from balances where customer_id = $1 for update', [customer_id])
      const answers = outcomesOf([deposit(), deposit()])
      expect(await cutWaitingConnections()).toBe(1)
      const unavailable = {
        refusal: expect.objectContaining({ slug: 'unavailable', status: 503 }) as unknown,
      }
      expect(await answers).toEqual([unavailable, unavailable])
    })
    expect(await everyTable(db)).toEqual(before)

    await deposit()
    const { balances } = await requireSound(customer_id)
    expect([...balances.values()]).toEqual([{ available: 200n, version: 2 }])
  })

  test.each([
    ['no readable answer', () => new TypeError('an answer that the driver cannot read')],
    // PostgreSQL may have written the commit before it panics: after its recovery the movements are there.
    [
      'a server that panics',
      () => Object.assign(new pg.DatabaseError('disk', 4, 'error'), { severity: 'PANIC', code: '58030' }),
    ],
  ])('movements of a batch whose commit meets %s are not posted again', async (_, failure) => {
    const tenants = await newTenants(4)
    const pool = answeringBy(async (statement, send) => {
      const answer = await send()
      if (statement === 'commit') throw failure()
      return answer
    })
    const ledger = new Ledger(pool)
    const outcomes = await outcomesOf(tenants.map((tenant) => deposited(ledger, tenant)))
    const slugs = outcomes.map((outcome) => 'refusal' in outcome && slugOf(outcome.refusal))
    if (CLUSTER.length === 0) expect(slugs).toEqual(tenants.map(() => 'unavailable'))
    else expect(slugs).not.toContain(false)
    await ledger.drain()
    await pool.end()
    for (const { customer_id } of tenants) expect((await requireSound(customer_id)).transfers).toHaveLength(1)
  })

  test('between two statements, the transaction fails and the process goes on', async () => {
    const lost = transaction(db, async (tx) => {
      const { rows } = await tx.query<{ pid: number }>('select pg_backend_pid() as pid')
      const ended = new Promise<void>((resolve) => tx.once('end', resolve))
      await db.query('select pg_terminate_backend($1::integer)', [rows[0]!.pid])
      await ended
      await tx.query('select 1')
    })
    // Without a listener, an error event ends a process and fails a test run.
    await expect(lost).rejects.toSatisfy(connectionLost)
    await db.query('select 1')
  })

  test('before a batch, its movements are answered 503', async () => {
    const nowhere = openDatabase('postgres://nobody@127.0.0.1:1/none', { max: 1, onError: () => undefined })
    const refused = credit(new Ledger(nowhere), { customer_id: 'any', profile_id: 'any' }, 'USD', '1')
    await expect(refused).rejects.toMatchObject({ slug: 'unavailable', status: 503 })
    await nowhere.end()
  })
})

/** Terminates the connections that wait for a lock, once there are any; returns their number. */
async function cutWaitingConnections(): Promise<number> {
  for (let attempt = 1; attempt <= 500; attempt++) {
    const cut = await queryNodes(
      database.url,
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock'`,
    )
    if (cut.length > 0) return cut.length
    await pause(10)
  }
  return 0
}

test('movements of a customer beyond the limit of the queue are answered 503, the others normally', async () => {
  const { customer_id, profiles } = await newTenant()
  const ledger = new Ledger(db)
  const refused: Movement = {
    origin: originOfLoop('test'),
    balances: [{ profile_id: profiles[0]!, asset: 'USD' }],
    decide: () => {
      throw problem.badRequest('as ordered')
    },
  }
  const another = await newTenant()
  const other = { customer_id: another.customer_id, profile_id: another.profiles[0]! }

  const answers = Array.from({ length: WAITING_MAX + 3 }, () => submitTo(ledger, customer_id, refused))
  const outcomes = outcomesOf([...answers, credit(ledger, other, 'USD', '1')])
  const slugs = (await outcomes).map((outcome) => ('refusal' in outcome ? slugOf(outcome.refusal) : 'moved'))
  expect(slugs.filter((slug) => slug === 'bad-request')).toHaveLength(WAITING_MAX)
  expect(slugs.slice(WAITING_MAX)).toEqual(['unavailable', 'unavailable', 'unavailable', 'moved'])
  // The queue is empty again.
  await expect(ledger.submit(customer_id, refused)).rejects.toMatchObject({ slug: 'bad-request' })
})

const slugOf = (refusal: unknown) => (refusal instanceof Problem ? refusal.slug : refusal)

// ---------------------------------------------------------------------------------------------- verify

describe('verify notices', () => {
  /**
   * One customer with a deposit; withdrawals that are pending, completed, failed, and with a conversion; and an
   * internal transfer. Three orchestrations: started by a deposit, with a pending transfer, and completed.
   */
  async function ledgerOfEachKind(db: Database) {
    const { customer_id, profile_id } = await createCustomer(db, 'Test')
    const to_profile_id = (await insertProfile(db, customer_id, { type: 'NORMAL', nickname: 'Other' })).id
    const tenant: Tenant = { customer_id, profiles: [profile_id], quotes: [] }
    const ledger = new Ledger(db)
    const deposit = await credit(ledger, { customer_id, profile_id }, 'USD', '10')
    const withdrawal = (asset: 'USD' | 'USDP') => {
      const shape = { kind: 'withdrawal', profile: 0, fromUsd: true, amount: 100, fee: 1 } as const
      return movementOf(tenant, { ...shape, asset, ref: undefined, quote: undefined })
    }
    const withdraw = (asset: 'USD' | 'USDP') => submitTo(ledger, customer_id, withdrawal(asset))
    const keys = [
      { profile_id, asset: 'USD' },
      { profile_id: to_profile_id, asset: 'USDP' },
    ]
    const transferred = (view: View, group_id: string) => {
      const ends = { from_profile_id: profile_id, to_profile_id, group_id }
      const what = { asset: 'USDP', minor: 10n ** 18n, balanceAsset: 'USD' }
      return internalTransfer(customer_id, { ...ends, ...what }, view)
    }
    /** Creates an orchestration of this movement, which is its destination transfer or its source deposit. */
    const orchestrate = async (
      decide: (view: View, group_id: string) => Decision,
      isDeposit = false,
    ): Promise<Orchestration> => {
      const decided = await ledger.submit(customer_id, {
        origin: originOfLoop('test'),
        balances: keys,
        decide: (view) => {
          const id = view.newId()
          const decision = decide(view, id)
          const { transfer, otherLeg = { transfer } } = decision
          const started: Orchestration = {
            id,
            customer_id,
            profile_id,
            status: !isDeposit && transfer.status === 'COMPLETED' ? 'COMPLETED' : 'PROCESSING',
            source_asset: 'USD',
            destination_asset: 'USDP',
            source_amount: '1',
            source_transfer: { transfer_id: transfer.id },
            ...(!isDeposit && { destination_transfer: { transfer_id: otherLeg.transfer.id } }),
            source: { profile: { profile_id } },
            destination: { profile: { profile_id: to_profile_id } },
            created_at: view.now.text,
            updated_at: view.now.text,
          }
          const changes = [change(ORCHESTRATIONS, { ...started, origin: originOfLoop('test') })]
          return { ...decision, transfer: { ...transfer, group_id: id }, changes }
        },
      })
      return changeOf(decided, ORCHESTRATIONS)!
    }
    const aDeposit: Command = {
      ...{ kind: 'deposit', profile: 0, asset: 'USD', fromUsd: false, amount: 100, fee: 0 },
      ...{ ref: undefined, quote: undefined },
    }
    const started = await orchestrate((view) => movementOf(tenant, aDeposit).decide(view), true)
    const paying = await orchestrate((view) => withdrawal('USD').decide(view))
    const ended = await orchestrate(transferred)
    let credited: string | undefined
    const internal = await submitTo(ledger, customer_id, {
      origin: originOfLoop('test'),
      balances: keys,
      decide: (view) => {
        const decision = transferred(view, view.newId())
        credited = decision.otherLeg!.transfer.id
        return decision
      },
    })
    const converted = await withdraw('USDP')
    const [pending, completed, failed] = [await withdraw('USD'), await withdraw('USD'), await withdraw('USD')]
    const end = (transfer: Transfer, status: 'COMPLETED' | 'FAILED', entries: Entry[]) =>
      transaction(db, async (tx) => {
        const ledger = await LedgerTransaction.open(tx, customer_id, keys)
        ledger.post({
          transfer_id: transfer.id,
          event: status === 'FAILED' ? 'REFUNDED' : 'SETTLED',
          entries,
          origin: originOfLoop('test'),
        })
        await ledger.write([], [{ id: transfer.id, type: transfer.type, status }])
        await tx.query('update transfers set status = $2, updated_at = $3 where id = $1', [
          transfer.id,
          status,
          ledger.now.text,
        ])
      })
    await end(completed, 'COMPLETED', [
      onPlatform('in_flight:ETHEREUM', 'USD', -100n),
      onPlatform('custody:ETHEREUM', 'USD', 100n),
    ])
    await end(failed, 'FAILED', [
      onProfile(profile_id, 'USD', 101n),
      onPlatform('in_flight:ETHEREUM', 'USD', -100n),
      onPlatform('fees', 'USD', -1n),
    ])
    const [identity, account] = await transaction(db, async (tx) => {
      const person = { ref_id: 'ada', person_details: { first_name: 'Ada', last_name: 'Example' } }
      const { id: identity_id } = await insertIdentity(tx, customer_id, person, 'APPROVED')
      return [identity_id, (await insertAccount(tx, customer_id, 'client', { identity_id })).id]
    })
    return {
      ...{ identity, account },
      ...{ customer: customer_id, profile: profile_id, deposit, pending, completed, failed },
      ...{ converted, internal, credited: credited!, started, paying, ended },
      swept: await sweepThatEnded(db, customer_id),
    }
  }
  type Made = Awaited<ReturnType<typeof ledgerOfEachKind>>

  const ZERO_SUM = 'every ledger transaction sums to zero per asset'
  const BALANCE = 'every balance equals the sum of its entries'
  const HISTORY = 'every balance_after equals the balance before it plus the amount'
  const STATUS = 'every transfer has the postings of its status'
  const ORPHAN = 'every entry belongs to a transfer, to a sweep or to an acknowledged transaction'
  const SWEEP = 'every ended sweep has its network fee posted, and no other sweep does'
  const TOTAL = 'every transfer changes its balance by its total'
  const CONVERSION = 'every conversion is one to one'
  const SIDES = 'every internal transfer has two legs that cancel out'
  const END = 'every orchestration has the outcome of its destination transfer'
  const PAID_ONCE = 'every orchestration is paid out once'
  const START = 'every orchestration has its source transfer'
  const EVENTS = 'every change of a status has its event, and every event its change'
  const EVENT = 'every event has the time and the object of its change'
  const SUMMARY = 'the last event of every identity and account tells its summary_status'
  const NOBODY = 'ffffffff-0000-7000-8000-000000000000'

  interface Damage {
    damage: (made: Made) => string
    rules: string[]
    /** A text that the detail must contain. */
    names: (made: Made) => string
  }
  const damages: Record<string, Damage> = {
    'nothing in a correct ledger': { damage: () => 'select', rules: [], names: () => '' },
    'a balance that was raised': {
      damage: () => 'update balances set available = available + 0.01',
      rules: [BALANCE],
      names: ({ profile }) => profile,
    },
    'a balance with another version': {
      damage: () => 'update balances set version = version + 1',
      rules: [BALANCE],
      names: ({ profile }) => profile,
    },
    'a deleted balance': {
      damage: () => 'delete from balances',
      rules: [BALANCE],
      names: ({ profile }) => profile,
    },
    'a balance without entries': {
      damage: () =>
        `insert into balances select customer_id, profile_id, 'BTC', 1, 1, updated_at from balances`,
      rules: [BALANCE],
      names: ({ profile }) => profile,
    },
    'an entry with another amount': {
      damage: ({ pending }) =>
        `update entries set amount = amount - 0.01 where transfer_id = '${pending.id}' and account = 'profile'`,
      rules: [ZERO_SUM, BALANCE, HISTORY, TOTAL],
      names: ({ pending }) => pending.id,
    },
    'two entries with other amounts that balance': {
      damage: ({ completed }) =>
        `update entries set amount = amount * 2 where transfer_id = '${completed.id}' and event = 'CREATED'`,
      rules: [BALANCE, HISTORY, TOTAL],
      names: ({ completed }) => completed.id,
    },
    'an entry that leaves another balance': {
      damage: ({ pending }) =>
        `update entries set balance_after = 1000000 where transfer_id = '${pending.id}' and account = 'profile'`,
      rules: [HISTORY],
      names: ({ profile }) => profile,
    },
    'an entry before the one that it follows': {
      damage: ({ failed }) =>
        `update entries set created_at = ${movedBy('created_at', '-1 day')} where transfer_id = '${failed.id}'`,
      rules: [HISTORY],
      names: ({ profile }) => profile,
    },
    'a deleted entry': {
      damage: ({ pending }) => `delete from entries where transfer_id = '${pending.id}' and account = 'fees'`,
      rules: [ZERO_SUM],
      names: ({ pending }) => pending.id,
    },
    'a deleted refund': {
      damage: () => `delete from entries where event = 'REFUNDED'`,
      rules: [BALANCE, STATUS],
      names: ({ failed }) => failed.id,
    },
    'the last entries of a balance, deleted with their transfer': {
      damage: ({ failed }) =>
        `delete from entries where transfer_id = '${failed.id}'; delete from transfers where id = '${failed.id}'`,
      rules: [BALANCE, EVENTS],
      names: ({ profile }) => profile,
    },
    'a deleted transfer': {
      damage: ({ completed }) => `delete from transfers where id = '${completed.id}'`,
      rules: [ORPHAN, EVENTS],
      names: ({ completed }) => completed.id,
    },
    'a deleted sweep': {
      damage: ({ swept }) => `delete from sweeps where id = '${swept}'`,
      rules: [ORPHAN],
      names: ({ swept }) => swept,
    },
    'a sweep that was never posted': {
      damage: ({ swept }) => `delete from entries where transfer_id = '${swept}'`,
      rules: [SWEEP],
      names: ({ swept }) => swept,
    },
    'a sweep that was posted before it has ended': {
      damage: ({ swept }) =>
        `update sweeps set state = 'BROADCAST', ended_at = null, network_fee = null where id = '${swept}'`,
      rules: [SWEEP],
      names: ({ swept }) => swept,
    },
    'a sweep with another cost': {
      damage: ({ swept }) => `update entries set amount = amount * 2 where transfer_id = '${swept}'`,
      rules: [SWEEP],
      names: ({ swept }) => swept,
    },
    "a sweep's cost that is posted as a transfer's": {
      damage: ({ swept }) => `update entries set event = 'SETTLED' where transfer_id = '${swept}'`,
      rules: [ORPHAN, SWEEP],
      names: ({ swept }) => swept,
    },
    'a transfer that was never posted': {
      damage: ({ pending }) =>
        `insert into transfers (customer_id, id, profile_id, type, direction, status, asset, amount, fee, total,
                                created_at, updated_at)
         select customer_id, '${NOBODY}', profile_id, type, direction, status, asset,
                amount, fee, total, created_at, updated_at from transfers where id = '${pending.id}'`,
      rules: [STATUS, EVENTS],
      names: () => NOBODY,
    },
    'a transfer with another total': {
      damage: ({ deposit }) => `update transfers set total = total + 1 where id = '${deposit.id}'`,
      rules: [TOTAL],
      names: ({ deposit }) => deposit.id,
    },
    'a withdrawal that was made COMPLETED': {
      damage: ({ pending }) => `update transfers set status = 'COMPLETED' where id = '${pending.id}'`,
      rules: [STATUS, EVENTS],
      names: ({ pending }) => pending.id,
    },
    'a withdrawal that was made PENDING again': {
      damage: ({ completed }) => `update transfers set status = 'PENDING' where id = '${completed.id}'`,
      rules: [STATUS, EVENTS],
      names: ({ completed }) => completed.id,
    },
    'a refunded withdrawal that was made COMPLETED': {
      damage: ({ failed }) => `update transfers set status = 'COMPLETED' where id = '${failed.id}'`,
      rules: [STATUS, EVENTS],
      names: ({ failed }) => failed.id,
    },
    'a deposit that was made FAILED': {
      damage: ({ deposit }) => `update transfers set status = 'FAILED' where id = '${deposit.id}'`,
      rules: [STATUS, EVENTS],
      names: ({ deposit }) => deposit.id,
    },
    'a conversion that gives twice what it takes': {
      damage: ({ converted }) =>
        `update entries set amount = amount * 2 where transfer_id = '${converted.id}' and asset = 'USDP'`,
      rules: [CONVERSION],
      names: ({ converted }) => converted.id,
    },
    'an internal transfer that credits twice what it debits': {
      damage: ({ credited }) => `update entries set amount = amount * 2 where transfer_id = '${credited}'`,
      rules: [BALANCE, HISTORY, TOTAL, SIDES],
      names: ({ internal }) => internal.group_id!,
    },
    'an internal transfer without its credit': {
      damage: ({ credited }) =>
        `delete from entries where transfer_id = '${credited}'; delete from transfers where id = '${credited}'`,
      rules: [BALANCE, SIDES, EVENTS],
      names: ({ internal }) => internal.group_id!,
    },
    'an internal transfer whose credit has another group': {
      damage: ({ credited }) => `update transfers set group_id = '${NOBODY}' where id = '${credited}'`,
      rules: [SIDES],
      names: () => NOBODY,
    },
    'two internal transfers of one group': {
      damage: ({ internal, ended }) =>
        `update transfers set group_id = '${ended.id}' where group_id = '${internal.group_id!}'`,
      rules: [SIDES, PAID_ONCE],
      names: ({ ended }) => ended.id,
    },
    'an orchestration that was made PROCESSING again': {
      damage: ({ ended }) => `update orchestrations set status = 'PROCESSING' where id = '${ended.id}'`,
      rules: [END, EVENTS],
      names: ({ ended }) => ended.id,
    },
    'an orchestration that was made FAILED': {
      damage: ({ ended }) =>
        `update orchestrations set status = 'FAILED', fail_reason = 'none' where id = '${ended.id}'`,
      rules: [END, EVENTS],
      names: ({ ended }) => ended.id,
    },
    'an orchestration that was made COMPLETED before its transfer': {
      damage: ({ paying }) => `update orchestrations set status = 'COMPLETED' where id = '${paying.id}'`,
      rules: [END, EVENTS],
      names: ({ paying }) => paying.id,
    },
    "an orchestration with another one's destination transfer": {
      damage: ({ ended, credited }) =>
        `update orchestrations set destination_transfer_id = '${credited}' where id = '${ended.id}'`,
      rules: [END],
      names: ({ ended }) => ended.id,
    },
    'an orchestration whose destination transfer does not exist': {
      damage: ({ paying }) =>
        `update orchestrations set destination_transfer_id = '${NOBODY}' where id = '${paying.id}'`,
      rules: [END],
      names: () => NOBODY,
    },
    'an orchestration that is paid out twice': {
      damage: ({ paying, pending }) =>
        `update transfers set group_id = '${paying.id}' where id = '${pending.id}'`,
      rules: [PAID_ONCE],
      names: ({ paying }) => paying.id,
    },
    'an orchestration without its source transfer': {
      damage: ({ started }) =>
        `update orchestrations set source_transfer_id = null where id = '${started.id}'`,
      rules: [START],
      names: ({ started }) => started.id,
    },
    'an orchestration with another deposit as its source': {
      damage: ({ started, deposit }) =>
        `update orchestrations set source_transfer_id = '${deposit.id}' where id = '${started.id}'`,
      rules: [START],
      names: ({ started }) => started.id,
    },
    'a deleted event': {
      damage: ({ completed }) =>
        `delete from events where object_id = '${completed.id}' and type like '%.completed'`,
      rules: [EVENTS],
      names: ({ completed }) => completed.id,
    },
    'an event that is there twice': {
      damage: ({ started }) =>
        `insert into events select customer_id, overlay(id::text placing 'ffffffffffff' from 25)::uuid, created_at, type,
                object_id, object, is_test from events where object_id = '${started.id}'`,
      rules: [EVENTS],
      names: ({ started }) => started.id,
    },
    'an event of another type': {
      damage: ({ failed }) =>
        `update events set type = replace(type, 'failed', 'completed') where object_id = '${failed.id}'`,
      rules: [EVENTS],
      names: ({ failed }) => failed.id,
    },
    'an event of another record': {
      damage: ({ pending }) => `update events set object_id = '${NOBODY}' where object_id = '${pending.id}'`,
      rules: [EVENTS],
      names: () => NOBODY,
    },
    'an event of another time': {
      damage: ({ pending }) =>
        `update events set created_at = ${movedBy('created_at', '1 second')} where object_id = '${pending.id}'`,
      rules: [EVENTS, EVENT],
      names: ({ pending }) => pending.id,
    },
    "an event whose id has another event's time": {
      damage: ({ pending }) =>
        `update events set id = overlay(id::text placing '000' from 16)::uuid where object_id = '${pending.id}'`,
      rules: [EVENT],
      names: ({ pending }) => pending.id,
    },
    'an event that hides its transfer behind an object': {
      damage: ({ deposit }) =>
        `update events set object = '{"status": "FAILED"}' where object_id = '${deposit.id}'`,
      rules: [EVENT],
      names: ({ deposit }) => deposit.id,
    },
    'an identity that was approved without an event': {
      damage: ({ identity }) => `update identities set status = 'DENIED' where id = '${identity}'`,
      rules: [SUMMARY],
      names: ({ identity }) => identity,
    },
    'an account that was disabled without an event': {
      damage: ({ account }) => `update accounts set user_disabled = true where id = '${account}'`,
      rules: [SUMMARY],
      names: ({ account }) => account,
    },
    'an approval without its identity event': {
      damage: ({ identity }) => `delete from events where object_id = '${identity}'`,
      rules: [SUMMARY],
      names: ({ identity }) => identity,
    },
    'an approval that says it changed nothing': {
      damage: ({ account }) =>
        `update events set object = object || '{"old_summary_status": "APPROVED"}' where object_id = '${account}'`,
      rules: [EVENT],
      names: ({ account }) => account,
    },
    'a statement without its event': {
      damage: ({ customer }) =>
        `insert into statements (customer_id, id, created_at, ref_id, type, product, status, asset, period_start,
                                 period_end, generated_at, total_amount_owed, amount_paid)
         values ('${customer}', '${NOBODY}', now(), 'ref', 'STATEMENT_TYPE_USDG_REWARD', 'USDG_REWARDS',
                 'STATEMENT_STATUS_GENERATED', 'USDG', '2026-01-01', '2026-02-01', now(), 1, 0)`,
      rules: [EVENTS],
      names: () => NOBODY,
    },
    'a deposit without the group_id of its orchestration': {
      damage: ({ started }) => `update transfers set group_id = null where group_id = '${started.id}'`,
      rules: [START],
      names: ({ started }) => started.id,
    },
  }

  let damaged: TestDatabase
  let empty: () => Promise<void>
  beforeAll(async () => {
    damaged = await cloneDatabase(2)
    empty = await emptier(damaged)
  })
  afterAll(() => damaged.drop())

  test.each(Object.entries(damages))('%s', async (_, { damage, rules, names }) => {
    const { url, db } = damaged
    await empty()
    const made = await ledgerOfEachKind(db)
    await createCustomer(db, 'Another, whose ledger is in order')
    await asSuperuser(url, damage(made))
    const found = await verify(db)
    expect(found).toMatchObject({ customers: 2 })
    expect([...new Set(found.disagreements.map(({ rule }) => rule))].sort()).toEqual(rules.sort())
    if (rules.length === 0) return
    expect(found.disagreements.map(({ customer_id }) => customer_id)).toContain(made.customer)
    expect(found.disagreements.map(({ detail }) => detail).join('\n')).toContain(names(made))
  })
})

/** Inserts and posts a sweep with a fee of 0.00042 ETH. Returns its id. */
async function sweepThatEnded(db: Database, customer_id: string): Promise<string> {
  const { rows } = await db.query<{ id: string }>(
    `
    insert into sweeps (customer_id, id, network, address, kind, asset, amount, state, raw_transaction,
                            crypto_tx_hash, replaced, network_fee, created_at, signed_at, ended_at)
    values ($1, gen_random_uuid(), 'ETHEREUM', '0x', 'SWEEP', 'USDP', 1, 'DONE', '', '0x', '{}', 0.000420, now(), now(),
            now())
    returning id`,
    [customer_id],
  )
  const { id } = rows[0]!
  const networkFee = { asset: 'ETH', amount: '0.00042' }
  await transaction(db, (tx) => postSweep(tx, { customer_id, id, network: 'ETHEREUM', networkFee }))
  return id
}

/** Privileges and constraints protect the tables from the application; only a superuser can cause such damage. */
async function asSuperuser(databaseUrl: string, statement: string): Promise<void> {
  const url = new URL(inject('adminUrl'))
  url.pathname = new URL(databaseUrl).pathname
  const superuser = new pg.Client({ connectionString: url.href })
  await superuser.connect()
  try {
    await superuser.query(statement)
  } finally {
    await superuser.end()
  }
}
