/*
 * A thief has the service's database role and no master key. The test does what that role may do (src/db/tables.ts), one
 * thing at a time: it changes each column, inserts into each table and deletes from each table, on a database with records of
 * every kind. After each, the worker works. It may sign nothing but what was accepted and not paid, each payment once and as it
 * was accepted. docs/reference/stolen-role.md has a row for each, and the test holds what the row says of `bursar verify`.
 */
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openDatabase, transaction, type Database } from '../src/db/database.ts'
import { momentAt } from '../src/db/ids.ts'
import { PRIVILEGES } from '../src/db/tables.ts'
import { closingOf } from '../src/money/books/closing.ts'
import { approveCooledAddresses } from '../src/resources/destination-addresses/approve-cooled-addresses.ts'
import { makeDemo } from '../src/program/demo/make-demo.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import { magicAddress } from '../src/networks/simulated/magic-addresses.ts'
import { simulatedNetworks } from '../src/networks/simulated/adapter.ts'
import type { Networks, Withdrawal } from '../src/networks/network.ts'
import { createOperator, makeLink, recordOperatorChange } from '../src/access/operators/operators.ts'
import { insertPasskey } from '../src/access/operators/passkeys.ts'
import { runOrchestrations } from '../src/resources/orchestrations/run-orchestrations.ts'
import { freeze, unfreeze } from '../src/money/records/freezes.ts'
import { completeDocument } from '../src/governance/policy/policy-document.ts'
import { Policies } from '../src/governance/policy/policy.ts'
import { creditDepositsOn, readable } from '../src/rails/deposits/credit-deposits.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { verifyAuditChains } from '../src/money/verify/audit-chains.ts'
import { verify } from '../src/money/verify/verify.ts'
import { addTestApprover } from './approvers.ts'
import {
  DESTINATION,
  fund,
  MASTER_KEYS,
  newCustomer,
  ROW_MACS,
  setPrice,
  startTestService,
  TEST_ORIGIN,
  WEBHOOK_SECRETS,
  withdrawalOf,
  type TestCustomer,
  type TestService,
} from './support.ts'
import { hurry } from './work-off.ts'
import { partOf } from './seed.ts'
import { governBy } from '../src/governance/policy/judge-payments.ts'
import { signOnlyAccepted } from '../src/rails/payouts/sign-only-accepted.ts'

const SOLANA = '4fYNw3dojWmQ4dXtSGE9epjRGy9pFSx62YypT7avPYvA'
const MALLORYS_ADDRESS = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'

let service: TestService
/** One connection of the service's role, whose transactions are savepoints of one that is rolled back. */
let thief: Database
let mallory: TestCustomer

/** The payments that were signed since the last look. */
let signed: string[] = []
const contentOf = (one: Withdrawal) =>
  [
    one.customer_id,
    one.profile_id,
    one.network,
    one.asset,
    one.amount,
    one.destination_address,
    one.memo,
  ].join(' ')

/** The networks, which sign as production does, and tell what they have signed. */
function networksOn(db: Database): Networks {
  const macs = new RowMacs(MASTER_KEYS)
  return new Map(
    [...simulatedNetworks(db, { confirmationMs: 0, holdMs: 0 })].map(([network, adapter]) => {
      const told = {
        ...adapter,
        // As of a real network: what was signed is kept for the wallet, too.
        ...(network !== 'WIRE' && { asksNode: true as const }),
        async sign(...[tx, withdrawals]: Parameters<typeof adapter.sign>) {
          const signings = await adapter.sign(tx, withdrawals)
          for (const [index, one] of withdrawals.entries())
            if (signings[index]!.outcome === 'SIGNED') signed.push(contentOf(one))
          return signings
        },
      }
      return [network, signOnlyAccepted(told, macs)] as const
    }),
  )
}

/** A round of the worker, and as many more as all steps of a payment take. What cannot be worked on stops nothing. */
async function work(db: Database, rounds = 3): Promise<string[]> {
  const networks = networksOn(db)
  const govern = governBy(new Policies(MASTER_KEYS, { sandbox: true }))
  const macs = new RowMacs(MASTER_KEYS)
  const ledger = new Ledger(db, { macs, govern })
  const { settings } = service
  signed = []
  for (let round = 1; round <= rounds; round++) {
    const parts = [
      () => hurry(db),
      () => approveCooledAddresses(db),
      ...readable(networks).map(
        ([network, adapter]) =>
          () =>
            creditDepositsOn({ db, ledger, settings }, network, adapter),
      ),
      () => runOrchestrations(db, { networks, settings, macs, govern }),
      () => settleWithdrawals(db, networks),
    ]
    for (const part of parts) await part().catch(() => undefined)
  }
  await ledger.drain()
  return signed
}

/**
 * A database of one session that is never committed: what begins a transaction makes a savepoint. So each attack, and all that the
 * worker does after it, is undone by one rollback.
 */
function undoable(pool: Database, session: pg.PoolClient): Database {
  let depth = 0
  const names = new Map<string, string>()
  // Statements are prepared: to plan each anew for every attack took half of the time.
  const query = (text: unknown, values?: unknown): Promise<unknown> => {
    if (typeof text !== 'string' || values === undefined) return session.query(text as string)
    const name = names.get(text) ?? `thief ${names.size}`
    names.set(text, name)
    return session.query({ name, text, values: values as unknown[] })
  }
  const connect = async () => {
    let level = 0
    return Object.assign(Object.create(session) as pg.PoolClient, {
      query(text: unknown, values?: unknown) {
        if (typeof text === 'string' && text.startsWith('begin'))
          return query(`savepoint s${(level = ++depth)}`)
        if (text === 'commit') return query(`release savepoint s${level}`)
        if (text === 'rollback') return query(`rollback to savepoint s${level}`)
        return query(text, values)
      },
      release: () => undefined,
    })
  }
  return Object.assign(Object.create(pool) as Database, {
    connect,
    async query(text: unknown, values?: unknown) {
      const name = `a${++depth}`
      await query(`savepoint ${name}`)
      try {
        return await query(text, values)
      } catch (error) {
        await query(`rollback to savepoint ${name}`)
        throw error
      }
    },
  })
}

/** Records of every kind, and payments in every state. */
async function makeWorld(): Promise<void> {
  const { db, owner } = service
  const dataDir = await mkdtemp(join(tmpdir(), 'bursar-thief-'))
  await makeDemo(
    { ...service, rowMacs: ROW_MACS, webhookSecrets: WEBHOOK_SECRETS },
    { dataDir, baseUrl: 'http://127.0.0.1:1' },
  )
  await rm(dataDir, { recursive: true })
  // The days of the demo's history.
  const closing = closingOf(db)
  while ((await closing()).length === 0) await pause(50)
  const victim = await newCustomer(service)
  mallory = await newCustomer(service)
  const { customer_id, profile_id, call } = victim
  const post = async (path: string, body: object) => {
    const reply = await call<{ id: string }>('POST', path, body)
    if (reply.status !== 200) throw new Error(`${path}: ${JSON.stringify(reply.body)}`)
    return reply.body.id
  }
  const withdraw = (changes: object = {}) =>
    post('/v2/transfer/crypto-withdrawals', withdrawalOf(victim, { amount: '10', ...changes }))
  await setPrice(db, 'BTCUSD', '60000')
  await fund(victim, '5000')
  await fund(mallory, '5')
  const frozen = await post('/v2/profiles', { nickname: 'Frozen' })
  await fund(victim, '100', frozen)
  // Paid, refunded, cancelled, and in the hands of the network.
  await withdraw({ ref_id: 'paid' })
  await withdraw({
    ref_id: 'refunded',
    destination_address: magicAddress('ETHEREUM', 'INVALID_DESTINATION_ADDRESS'),
  })
  await work(db)
  const cancelled = await withdraw({ ref_id: 'cancelled' })
  await call('POST', `/v2/transfer/transfers/${cancelled}/cancel`)
  await post('/v2/transfer/internal', {
    asset: 'USD',
    amount: '1',
    from_profile_id: profile_id,
    to_profile_id: frozen,
  })
  await post('/v2/transfer/paxos', {
    asset: 'USD',
    amount: '1',
    from_profile_id: profile_id,
    to_profile_id: mallory.profile_id,
  })
  const account = await post('/v2/transfer/fiat-accounts', {
    fiat_account_owner: { institution_details: { name: 'Acme' } },
    fiat_network_instructions: { wire: { account_number: '000987654321' } },
  })
  // The bank sends one, and the thief enters another.
  for (const total of ['20', '21'])
    await post('/v2/transfer/fiat-withdrawals', { profile_id, asset: 'USD', total, fiat_account_id: account })
  await withdraw({ ref_id: 'frozen', profile_id: frozen })
  const target = { kind: 'PROFILE', customer_id, profile_id: frozen } as const
  await freeze(db, TEST_ORIGIN, target, 'OPERATOR', 'an older one')
  await unfreeze(db, ROW_MACS, TEST_ORIGIN, target)
  await freeze(db, TEST_ORIGIN, target, 'OPERATOR', 'a leak')
  const network = { kind: 'NETWORK', network: 'SOLANA' } as const
  await freeze(db, TEST_ORIGIN, network, 'OPERATOR', 'an older one')
  await unfreeze(db, ROW_MACS, TEST_ORIGIN, network)
  await freeze(db, TEST_ORIGIN, network, 'OPERATOR', 'stays')
  await withdraw({ ref_id: 'network', asset: 'USDG', crypto_network: 'SOLANA', destination_address: SOLANA })
  await post('/v2/transfer/deposit-addresses', { profile_id, crypto_network: 'ETHEREUM' })
  await post(`/v2/sandbox/profiles/${profile_id}/deposit`, {
    asset: 'USDP',
    amount: '25',
    crypto_network: 'ETHEREUM',
  })
  const quoted = { asset: 'USDP', crypto_network: 'ETHEREUM', destination_address: DESTINATION, amount: '25' }
  await post('/v2/transfer/fees/crypto-withdrawal', quoted)
  const orchestration = { source_asset: 'USD', destination_asset: 'USDG', source_amount: '10' }
  const [source, crypto] = [{ profile: { profile_id } }, { network: 'ETHEREUM', address: DESTINATION }]
  await post('/v2/orchestration/orchestrations', {
    ...orchestration,
    ref_id: 'one',
    source,
    destination: { crypto },
  })
  await makeGoverned()
  await makeOperator(customer_id)
  await work(db, 1)
  await withdraw({ ref_id: 'signed' })
  await work(db, 1)
  await withdraw({ ref_id: 'new' })
  await post('/v2/orchestration/orchestrations', {
    ...orchestration,
    ref_id: 'two',
    source,
    destination: { crypto },
  })
  for (const table of Object.keys(ROWS)) {
    // With a requirement, nothing would be signed.
    if (table === 'screening_requirement') continue
    const { rowCount } = await owner.query(`select 1 from ${table} limit 1`)
    if (rowCount === 0) await owner.query(await inventing(table))
  }
  for (const table of ['incoming_transfers', 'deployment', 'bank_statements'] as const)
    await transaction(owner, (tx) => ROW_MACS.sealAll(tx, table))
}

/** A customer with a policy: a payment that waits for an approver, windows of a limit, and an address book. */
async function makeGoverned(): Promise<void> {
  const governed = await newCustomer(service)
  await fund(governed, '1000')
  const large = { id: 'large', action: 'APPROVE' as const, approvals: 1, match: { assets: ['USDP'] } }
  const limit = {
    id: 'day',
    action: 'BLOCK',
    limit: { amount: '500', asset: 'USD', period_seconds: 86_400 },
  } as const
  const document = completeDocument({ rules: [limit, large], address_book: { cooling_seconds: 3_600 } })
  // What is younger than a minute may be judged by an older version.
  const hourAgo = momentAt(new Date(Date.now() - 3_600_000).toISOString().replace('Z', '000Z'))
  await transaction(service.db, (tx) =>
    new Policies(MASTER_KEYS).add(tx, governed.customer_id, document, hourAgo),
  )
  await addTestApprover(service.owner, governed.customer_id)
  for (const [status, place] of [
    [undefined, 'ETHEREUM'],
    ['REJECTED', 'BASE'],
  ] as const)
    await governed.call('PUT', '/v2/transfer/crypto-destination-address', {
      crypto_network: place,
      address: DESTINATION,
      ...(status && { status }),
    })
  for (const asset of ['USDP', 'USDG'])
    await governed.call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(governed, { asset }))
}

/** An operator with a link, a session and a passkey. */
async function makeOperator(customerId: string): Promise<void> {
  const links = await transaction(service.db, async (tx) => {
    const operator = await createOperator(tx, ROW_MACS, { name: 'Ada', role: 'VIEWER', customerId })
    await recordOperatorChange(tx, operator, 'operator.create', { origin: TEST_ORIGIN })
    await insertPasskey(tx, ROW_MACS, {
      operator_id: operator.id,
      name: 'x',
      credential_id: 'credential',
      public_key: Buffer.from('key'),
      transports: [],
      signatures: 0,
    })
    return [await makeLink(tx, ROW_MACS, operator.id)]
  })
  await service.app.inject({
    method: 'POST',
    url: '/v2/operators/sign-in/link',
    payload: { link: links[0]!.secret },
  })
}

// ---------------------------------------------------------------------------------------------- columns and values

interface Column {
  name: string
  type: string
  required: boolean
  /** The texts that a constraint allows. */
  allowed: string[]
}

async function columnsOf(table: string): Promise<Column[]> {
  const { rows } = await service.owner.query<Column>(
    `
    select attname as name, format_type(atttypid, atttypmod) as type, attnotnull and not atthasdef as required,
           coalesce((
             select array(select match[1] from regexp_matches(pg_get_constraintdef(c.oid), $$'([^']*)'::text$$, 'g') match)
             from pg_constraint c
             where c.conrelid = attrelid and c.contype = 'c' and c.conkey = array[attnum]
             limit 1), '{}') as allowed
    from pg_attribute
    where attrelid = $1::regclass and attnum > 0 and not attisdropped
    order by attnum`,
    [table],
  )
  return rows
}

/** What a thief writes into a column, as SQL over a row `r`: by its name, its constraint, its type, and as another row has it. */
function forgedValues({ name, type, required, allowed }: Column, table: string): string[] {
  const named: Record<string, string> = {
    customer_id: mallory.customer_id,
    profile_id: mallory.profile_id,
    destination_address: MALLORYS_ADDRESS,
    address: MALLORYS_ADDRESS,
    canonical_address: MALLORYS_ADDRESS,
    destination: JSON.stringify({ crypto: { network: 'ETHEREUM', address: MALLORYS_ADDRESS } }),
  }
  const byType: Record<string, string[]> = {
    uuid: ['gen_random_uuid()'],
    text: ["'forged'"],
    numeric: [`coalesce(r.${name}, 0) * 1000 + 1`, '0'],
    bigint: [`coalesce(r.${name}, 0) + 1`, '0'],
    integer: [`coalesce(r.${name}, 0) + 1`, '0'],
    smallint: [`coalesce(r.${name}, 0) + 1`, '0'],
    boolean: [`not coalesce(r.${name}, false)`],
    'timestamp with time zone': [
      "clock_timestamp() + interval '1 day'",
      "clock_timestamp() - interval '400 days'",
    ],
    jsonb: ["'{}'", "'[]'"],
    json: ["'{}'"],
    date: ["'2099-01-01'"],
    bytea: ["'\\x00'"],
  }
  const values =
    named[name] !== undefined
      ? [`'${named[name]}'`]
      : allowed.length > 0
        ? allowed.map((one) => `'${one}'`)
        : type.endsWith('[]')
          ? ["'{}'"]
          : byType[type]
  if (values === undefined) throw new Error(`${table}.${name}: the test has no forged value of type ${type}`)
  const other = `(select o.${name} from ${table} o where o.${name}::text is distinct from r.${name}::text limit 1)`
  return [...values, ...(required ? [] : ['null']), ...(allowed.length > 0 ? [] : [other])]
}

/** A member of a group that has one already. */
const MEMBER_OF = (table: string, group: string) => ({
  customer_id: `(select customer_id from ${table} order by id limit 1)`,
  [group]: `(select ${group} from ${table} order by id limit 1)`,
  identity_id: `(select i.id from identities i where i.customer_id = (select customer_id from ${table} order by id limit 1)
                 and not exists (select 1 from ${table} m where m.identity_id = i.id) limit 1)`,
})

/** Rows of tables that nothing of a sandbox writes, as SQL, where the type of a column does not say enough. */
const ROWS: Record<string, Record<string, string>> = {
  account_members: MEMBER_OF('account_members', 'account_id'),
  acknowledged_transactions: {},
  audit_heads: { customer_id: 'gen_random_uuid()' },
  bank_lines: { amount: '1' },
  bank_matches: { kind: "'RECORDED'", rule: "'PERSON'" },
  bank_statements: {
    position: '(select coalesce(max(position), 0) + 1 from bank_statements)',
    content_hash: 'gen_random_uuid()::text',
  },
  bank_wires: {
    direction: "'OUT'",
    recorded_at: 'clock_timestamp()',
    bank_reference: 'gen_random_uuid()::text',
    kind: "'SENT'",
    amount: '20',
    asset: "'USD'",
    transfer_id: `(select id from transfers t where type = 'WIRE_WITHDRAWAL'
                   and not exists (select 1 from bank_wires w where w.transfer_id = t.id) limit 1)`,
  },
  customer_fee_checks: {},
  deployment: { id: '1', mode: "'sandbox'" },
  address_series: {},
  asked_addresses: {},
  address_holdings: {},
  evm_nonces: {},
  sweeps: { kind: "'SWEEP'", state: "'SIGNED'", amount: '1' },
  failed_transactions: {},
  incoming_transfers: { state: "'WAITING'", amount: '1' },
  institution_members: MEMBER_OF('institution_members', 'institution_id'),
  network_fee_checks: {},
  network_genesis: {},
  network_transactions: { kind: "'WITHDRAWALS'" },
  price_imports: { market_id: '1' },
  price_minutes: { market_id: '1', price: '1', minute: '28000000' },
  price_points: { market_id: '1' },
  refills: {},
  replaced_transactions: {},
  resolved_withdrawals: { outcome: "'NOT_PAID'" },
  withdrawal_marks: { mark: "'TAKEN'" },
  screening_requirement: { id: '1' },
  screenings: {
    kind: "'WITHDRAWAL'",
    subject: 'gen_random_uuid()::text',
    state: "'WAITING'",
    due_at: 'clock_timestamp()',
  },
  seen_deposits: {
    state: "'COMPLETED'",
    ended_at: 'clock_timestamp()',
    ...Object.fromEntries(
      ['customer_id', 'id'].map((name) => [
        name === 'id' ? 'transfer_id' : name,
        `(select ${name} from transfers where type = 'CRYPTO_DEPOSIT' and status = 'COMPLETED' order by id limit 1)`,
      ]),
    ),
  },
  solana_lanes: {},
  traces: {},
  transfer_metadata: {},
  wallet_checks: {},
  webhook_attempts: {},
  webhook_deliveries: {
    status: "'PENDING'",
    due_at: 'clock_timestamp()',
    webhook_id: '(select id from webhooks limit 1)',
  },
}

const quoted = (columns: readonly string[]) => columns.map((one) => `"${one}"`).join(', ')

/** The statement that inserts a row of `ROWS`. */
async function inventing(table: string): Promise<string> {
  const named: Record<string, string> = {
    customer_id: `'${mallory.customer_id}'`,
    profile_id: `'${mallory.profile_id}'`,
    transfer_id: "(select id from transfers where status = 'PENDING' limit 1)",
    network: "'ETHEREUM'",
    asset: "'ETH'",
    ...ROWS[table],
  }
  const columns = (await columnsOf(table)).filter(
    ({ name, required }) => required || (named[name] !== undefined && ROWS[table]?.[name] !== undefined),
  )
  const values = columns.map(
    (column) => named[column.name] ?? forgedValues(column, table)[0]!.replace(/r\.\w+/, 'null'),
  )
  return `insert into ${table} (${quoted(columns.map(({ name }) => name))}) values (${values.join(', ')})`
}

let session: pg.PoolClient
let pool: Database
/** What the worker signs where nobody has attacked: content and how often. */
let honest: Map<string, number>

const counted = (contents: readonly string[]) => {
  const counts = new Map<string, number>()
  for (const one of contents) counts.set(one, (counts.get(one) ?? 0) + 1)
  return counts
}

beforeAll(async () => {
  service = await startTestService()
  await makeWorld()
  pool = openDatabase(service.url, { max: 1, onError: () => undefined })
  session = await pool.connect()
  thief = undoable(pool, session)
  honest = counted(await attacked(async () => work(thief)))
})
afterAll(async () => {
  session.release()
  await pool.end()
  await service.close()
})

/** Runs something and undoes it. */
async function attacked<T>(run: () => Promise<T>): Promise<T> {
  await session.query('begin')
  try {
    return await run()
  } finally {
    await session.query('rollback')
  }
}

/** Payments that were signed and should not have been. */
const wrong = (contents: readonly string[]) =>
  [...counted(contents)]
    .filter(([content, times]) => times > (honest.get(content) ?? 0))
    .map(([content]) => content)

interface Attack {
  /** What the role may do: `insert`, `delete`, or the column that it may update. */
  may: string
  /** Lists of statements: of each list, the first that the database takes is made. */
  together: string[][]
}

function updates(table: string, columns: Column[]): Attack[] {
  return (PRIVILEGES[table]!.update ?? []).flatMap((name) => {
    const column = columns.find((one) => one.name === name)!
    return forgedValues(column, table).map((value) => {
      const all = `update ${table} r set ${name} = ${value}`
      const newest = [0, 1, 2, 3].map(
        (place) =>
          `${all} where r.ctid = (select ctid from ${table} order by ctid desc limit 1 offset ${place})`,
      )
      return { may: name, together: [[all, ...newest]] }
    })
  })
}

/** Columns that say whose money it is and where it goes. */
const OWNERS = ['customer_id', 'profile_id']
const PAYEES = ['address', 'destination_address', 'canonical_address', 'destination']
/** How many rows of a table are copied, the newest. */
const COPIED_MAX = 8

/** Inserts copies of rows with keys of their own, the same with the thief's columns, and an invented row. */
async function inserts(table: string, columns: Column[]): Promise<Attack[]> {
  if (!PRIVILEGES[table]!.insert) return []
  const { rows } = await service.owner.query<{ name: string }>(
    `select distinct attname as name
     from pg_index i
     join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
     where i.indrelid = $1::regclass and i.indisunique and attname <> 'customer_id'`,
    [table],
  )
  const keys = rows.map(({ name }) => name)
  const copies = (own: readonly string[]) =>
    Array.from({ length: COPIED_MAX }, (_, place) =>
      [keys, ...keys.map((key) => [key])].map((fresh) => {
        const values = columns.map((column) =>
          fresh.includes(column.name) || own.includes(column.name)
            ? forgedValues(column, table)[0]
            : `r."${column.name}"`,
        )
        return `insert into ${table} (${quoted(columns.map(({ name }) => name))})
                select ${values.join(', ')} from ${table} r order by r.ctid desc limit 1 offset ${place}`
      }),
    )
  return [
    ...[[], PAYEES, [...OWNERS, ...PAYEES]].map((own) => ({ may: 'insert', together: copies(own) })),
    { may: 'insert', together: [[await inventing(table)]] },
  ]
}

const deletes = (table: string): Attack[] =>
  PRIVILEGES[table]!.delete ? [{ may: 'delete', together: [[`delete from ${table}`]] }] : []

/** Makes an attack. False where the database refuses all of it. */
async function make({ together }: Attack): Promise<boolean> {
  let made = 0
  for (const statements of together)
    for (const statement of statements) {
      const done = await thief.query(statement).catch(() => undefined)
      if (done === undefined) continue
      made += done.rowCount!
      break
    }
  return made > 0
}

/** What finds an attack, by its name in docs/reference/stolen-role.md. */
const TELLERS = {
  '`verify`': async () => {
    const macs = new RowMacs(MASTER_KEYS)
    return (await verify(thief, { macs, rowMacs: ROW_MACS })).disagreements.map(({ rule }) => rule)
  },
  '`audit verify`': async () => (await verifyAuditChains(thief)).faults.map(({ fault }) => fault),
}
type Teller = keyof typeof TELLERS

// ---------------------------------------------------------------------------------------------- the document

/** What the page says of each thing that the role may do, as `<table> <insert, delete or column>`: who tells of it. */
const documented = new Map<string, string>()
const text = readFileSync(new URL('../docs/reference/stolen-role.md', import.meta.url), 'utf8')
for (const [, table, may, told] of text.matchAll(/^\| `(\w+)` \| ([^|]+) \| [^|]+ \| ([^|]+) \|$/gm)) {
  const what = [...may!.matchAll(/`(\w+)`|\b(insert|delete)\b/g)].map((match) => match[1] ?? match[2]!)
  for (const one of what) documented.set(`${table} ${one}`, told!)
}
// Below the table: what no decision rests on.
for (const [, table, one] of text.matchAll(/`(\w+)\.(\w+)`/g)) documented.set(`${table!} ${one!}`, 'nobody')

const tellersOf = (table: string, may: string): Teller[] =>
  (Object.keys(TELLERS) as Teller[]).filter((teller) => documented.get(`${table} ${may}`)?.includes(teller))

test('the page has a row for each thing that the role may do', () => {
  const declared = Object.entries(PRIVILEGES).flatMap(([table, may]) =>
    [...(may.insert ? ['insert'] : []), ...(may.update ?? []), ...(may.delete ? ['delete'] : [])].map(
      (one) => `${table} ${one}`,
    ),
  )
  expect([...documented.keys()].sort()).toEqual(declared.sort())
})

test('nothing is wrong before, and there is something to sign', async () => {
  for (const tells of Object.values(TELLERS)) expect(await attacked(tells)).toEqual([])
  expect(honest.size).toBeGreaterThan(1)
})

test.each(partOf(Object.keys(PRIVILEGES).filter((table) => Object.keys(PRIVILEGES[table]!).length > 0)))(
  '%s: no coin leaves, and verify tells what the page says',
  async (table) => {
    const columns = await columnsOf(table)
    const attacks = [...updates(table, columns), ...(await inserts(table, columns)), ...deletes(table)]
    const taken = new Set<string>()
    const told = new Set<string>()
    for (const attack of attacks)
      await attacked(async () => {
        if (!(await make(attack))) return
        taken.add(attack.may)
        // Before the worker ends what it is about.
        for (const teller of tellersOf(table, attack.may)) {
          const key = `${attack.may}: ${teller}`
          if (!told.has(key) && (await TELLERS[teller]()).length > 0) told.add(key)
        }
        expect(wrong(await work(thief, 2)), `${attack.may}: ${attack.together[0]![0]}`).toEqual([])
      })
    const may = [...new Set(attacks.map((one) => one.may))]
    expect(
      may.filter((one) => !taken.has(one) && `${table} ${one}` !== 'deployment insert'),
      'the test needs a value that the database takes',
    ).toEqual([])
    const claimed = may.flatMap((one) => tellersOf(table, one).map((teller) => `${one}: ${teller}`))
    expect(
      claimed.filter((one) => !told.has(one)),
      'the page says that these tell',
    ).toEqual([])
  },
  120_000,
)

test('an orchestration that is set back together with its payment is not paid again', async () => {
  await attacked(async () => {
    await thief.query("update transfers set group_id = null where direction = 'DEBIT'")
    const { rowCount } = await thief.query(
      "update orchestrations set destination_transfer_id = null, status = 'PROCESSING', fail_reason = null",
    )
    expect(rowCount).toBeGreaterThan(1)
    expect(await TELLERS['`verify`']()).toContain('every orchestration has the payout that was recorded')
    expect(wrong(await work(thief, 2))).toEqual([])
  })
})
