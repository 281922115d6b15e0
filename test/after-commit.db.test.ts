/*
 * Whatever a transaction writes is sent before its commit: what comes later is lost with the connection, and readers of events
 * may have passed its moment. The test counts, at the pool's connections, the statements behind a commit. It finds the kinds of
 * records that movements write in the sources. The operations are covered by test/documented-examples.program.test.ts, and the
 * commands by test/audit-commands.db.test.ts: a late statement is an assertion there.
 */
import pg from 'pg'
import { afterAll, expect, test } from 'vitest'
import { transaction, type Transaction } from '../src/db/database.ts'
import type { DepositAddress } from '../src/money/records/deposit-address.ts'
import type { AnyKind } from '../src/money/records/need.ts'
import { recordChanges } from '../src/audit/audit.ts'
import { readClock } from '../src/db/ids.ts'
import { audited } from '../src/audit/audited.ts'
import { creditDepositsOn } from '../src/rails/deposits/credit-deposits.ts'
import { announceWire } from '../src/rails/wires/pending-wires.ts'
import { recordWireDeposit } from '../src/rails/wires/record-wires.ts'
import { setPolicy } from './policies.ts'
import { sources } from './sources.ts'
import { fund, newCustomer, TEST_ORIGIN, withdraw, withdrawalOf, ownTestService } from './support.ts'
import { partsOf } from '../src/db/parts.ts'

/** The statements that the pool's connections sent behind a commit, and the number of commits. */
const sent = { late: [] as string[], commits: 0 }
let ended = new WeakSet<object>()
type Query = (...args: unknown[]) => unknown
// oxlint-disable-next-line typescript/unbound-method -- it is called with its client
const query = pg.Client.prototype.query as Query

pg.Client.prototype.query = function (this: pg.Client, ...args: unknown[]) {
  const [statement] = args as [string | { text: string }]
  const text = typeof statement === 'string' ? statement : statement.text
  if (ended.has(this) && text !== 'rollback') sent.late.push(text)
  if (text === 'commit') {
    sent.commits++
    ended.add(this)
  }
  return query.apply(this, args)
} as typeof pg.Client.prototype.query
const service = await ownTestService()
for (const pool of [service.db, ...partsOf(service.db).map(({ db }) => db)])
  pool.on('release', (_error, client) => void ended.delete(client))
ended = new WeakSet()
sent.late = []
const customer = await newCustomer(service)
await fund(customer, '1000')
afterAll(() => void (pg.Client.prototype.query = query as typeof pg.Client.prototype.query))

/** The kinds of records that movements write, by name. */
async function writtenKinds(): Promise<Map<string, AnyKind>> {
  const kinds = new Map<string, AnyKind>()
  for (const { file, text } of sources) {
    for (const [declared, exported, name] of text.matchAll(/^(export )?const (\w+): RecordKind<[^]*?^}/gm)) {
      if (!/^ {2}(async )?write\b/m.test(declared)) continue
      expect(exported, `${name} is not exported: this test must see what it writes`).toBeDefined()
      const module = (await import(/* @vite-ignore */ `../${file}`)) as Record<string, AnyKind>
      kinds.set(name!, module[name!]!)
    }
  }
  return kinds
}

const made = async (url: string, body: object) => {
  const answer = await customer.call<{ id: string }>('POST', url, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body
}
const WIRE = { amount: '25', operator: 'ada', origin: TEST_ORIGIN }

async function memoOf() {
  const { body } = await customer.call<{ id: string; memo_id: string }>(
    'POST',
    '/v2/transfer/fiat-deposit-instructions',
    { profile_id: customer.profile_id, fiat_network: 'WIRE' },
  )
  return body
}

/** For each kind of record, how a movement writes it. */
const WAYS: Record<string, () => Promise<unknown>> = {
  FEE_QUOTES: async () => {
    const { profile_id: _, balance_asset: __, ...quoted } = withdrawalOf(customer)
    const { id } = await made('/v2/transfer/fees/crypto-withdrawal', quoted)
    await withdraw(customer, { fee_id: id })
  },
  ORCHESTRATIONS: () =>
    made('/v2/orchestration/orchestrations', {
      ref_id: 'order',
      source_asset: 'USD',
      destination_asset: 'USDP',
      source_amount: '5',
      source: { profile: { profile_id: customer.profile_id } },
      destination: { crypto: { network: 'ETHEREUM', address: withdrawalOf(customer).destination_address } },
    }),
  BANK_WIRES: async () =>
    recordWireDeposit(service, { ...WIRE, memo: (await memoOf()).memo_id, bank_reference: 'B1' }),
  SEEN_DEPOSITS: async () => {
    const place = await memoOf()
    const { customer_id, profile_id } = customer
    const record = { memo: place.memo_id }
    const wire = { profile_id, asset: 'USD', minor: 2500n, place, record }
    await transaction(service.db, (tx) => announceWire(tx, customer_id, 'B2', wire, TEST_ORIGIN))
    await recordWireDeposit(service, { ...WIRE, memo: place.memo_id, bank_reference: 'B2' })
  },
  CREDITED_DEPOSITS: async () => {
    const { profile_id } = customer
    const order = { profile_id, crypto_network: 'ETHEREUM' }
    const { address } = (await made('/v2/transfer/deposit-addresses', order)) as DepositAddress
    const found = [
      { address, asset: 'USDP', amount: '5', crypto_tx_hash: `0x${'7'.repeat(64)}`, crypto_tx_index: '0' },
    ]
    const scanDeposits = () => Promise.resolve({ cursor: '1', found })
    const adapter = { ...service.networks.get('ETHEREUM')!, scanDeposits }
    expect(await creditDepositsOn(service, 'ETHEREUM', adapter)).toMatchObject({ credited: 1 })
  },
  TRANSFER_APPROVALS: async () => {
    const rules = [{ id: 'four-eyes', action: 'APPROVE' as const, approvals: 1 }]
    await setPolicy(service.db, customer.customer_id, { rules })
    const { id } = await withdraw(customer)
    const { rows } = await service.db.query<{ type: string }>(
      `select e.type from events e join approvals a on a.customer_id = $1 and a.id = e.object_id
       where e.customer_id = $1 and a.transfer_id = $2`,
      [customer.customer_id, id],
    )
    expect(rows).toEqual([{ type: 'approval.requested' }])
  },
}

test('nothing follows the commit of a movement, whatever kind of record it writes', async () => {
  const kinds = await writtenKinds()
  expect([...kinds.keys()].sort()).toEqual(Object.keys(WAYS).sort())
  const written = new Set<string>()
  const restored = [...kinds].map(([name, kind]) => {
    const write = kind.write!.bind(kind)
    kind.write = (...args) => {
      written.add(name)
      return write(...args)
    }
    return () => void (kind.write = write)
  })
  try {
    for (const [name, way] of Object.entries(WAYS)) {
      const before = sent.commits
      await way()
      expect(written, name).toContain(name)
      expect(sent.commits, name).toBeGreaterThan(before)
      expect(sent.late, name).toEqual([])
    }
  } finally {
    for (const restore of restored) restore()
  }
})

test('a transaction refuses a statement and an audit record behind its commit', async () => {
  let left!: Transaction
  const now = await transaction(service.db, (tx) => readClock((left = tx)))
  expect(() => void left.query('select 1')).toThrow('no statement may follow the commit')
  const { customer_id, profile_id } = customer
  const late = [audited(TEST_ORIGIN, 'profile.update', profile_id)]
  expect(() => recordChanges(left, customer_id, now, late)).toThrow('audit trail')
  // The pool lends the connection again, and another transaction begins on it.
  await Promise.all(Array.from({ length: 10 }, () => transaction(service.db, readClock)))
  expect(sent.late).toEqual([])
})
