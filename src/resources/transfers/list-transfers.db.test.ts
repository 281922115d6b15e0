/*
 * Invariants of the list, for all filters, orders and page sizes:
 * 1. the pages contain exactly the matching records, in order, each once;
 * 2. records that are added or updated while the list is read do not disturb the earlier records;
 * 3. bounds on time are exact to the microsecond.
 */
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { COMPARE, walkList, type Query } from '../../../test/list-in-memory.ts'
import { runs } from '../../../test/seed.ts'
import { DESTINATION, fund, newCustomer, sharedTestService, withdrawalOf } from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { momentAt, newId } from '../../db/ids.ts'
import { insertMetadata } from '../../money/ledger/transfer-metadata.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'

const service = await sharedTestService()
const customer = await newCustomer(service)

const PROFILES = [randomUUID(), randomUUID()]
const TYPES = ['CRYPTO_WITHDRAWAL', 'WIRE_DEPOSIT', 'INTERNAL_TRANSFER_DEBIT'] as const
const STATUSES = ['PENDING', 'COMPLETED', 'FAILED'] as const
const SECONDARY = ['TRAVEL_RULE_REJECTED', 'CUSTOMER_REJECTED'] as const
const GROUPS = [randomUUID(), randomUUID()]
const HASHES = ['0xaa', '0xbb']
const ASSETS = ['USD', 'USDP'] as const
const NETWORKS = ['ETHEREUM', 'SOLANA'] as const
/** Numbers whose order is not that of their texts. */
const AMOUNTS = ['1', '9.5', '10', '10.000000000000000001'] as const
const COUNT = 240

/** Few moments for many records, so that equal timestamps are common. */
const momentOf = (n: number) => `2026-03-01T12:00:0${n % 3}.00000${n % 7}Z`
const pick = <T>(values: readonly T[], n: number): T | undefined => values[n % (values.length + 1)]

function recordOf(n: number): Transfer {
  const created_at = momentOf(n)
  const secondary = pick(SECONDARY, n)
  return {
    id: newId(momentAt(created_at), n),
    customer_id: customer.customer_id,
    profile_id: PROFILES[n % 2]!,
    type: TYPES[n % 3]!,
    direction: n % 5 < 2 ? 'DEBIT' : 'CREDIT',
    status: STATUSES[(n >> 1) % 3]!,
    asset: ASSETS[n % 2]!,
    amount: AMOUNTS[n % 4]!,
    fee: '0',
    total: AMOUNTS[n % 4]!,
    created_at,
    updated_at: n % 4 === 0 ? created_at : `2026-03-02T00:00:00.00000${n % 5}Z`,
    ref_id: n % 5 === 0 ? undefined : `ref,${n}`,
    identity_id: pick(PROFILES, n),
    account_id: pick(GROUPS, n >> 1),
    group_id: pick(GROUPS, n),
    crypto_tx_hash: pick(HASHES, n),
    crypto_network: pick(NETWORKS, n >> 2),
    fiat_account_id: pick(PROFILES, n >> 3),
    secondary_status: secondary && { name: secondary, detail: 'test' },
    memo: pick(['INV-1', 'INV-2'], n >> 1),
    metadata: n % 3 === 0 ? undefined : { source: pick(['web', 'app'], n) ?? '', batch: String(n % 4) },
  }
}

const insert = (records: Transfer[]) =>
  transaction(service.db, async (tx) => {
    await tx.query('insert into transfers select * from json_populate_recordset(null::transfers, $1)', [
      JSON.stringify(records),
    ])
    await insertMetadata(tx, records)
  })
/** All transfers, oldest first. */
const all = Array.from({ length: COUNT }, (_, n) => recordOf(n)).sort((a, b) => (a.id < b.id ? -1 : 1))
await insert(all)

const PATH = '/v2/transfer/transfers'
/** An address of the specification of CashAddr. */
const CASH = 'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a'
const walk = (query: Query, between?: () => Promise<unknown>) =>
  walkList<Transfer>(customer, PATH, query, between)

const anyOf = <T>(values: readonly T[]) =>
  fc.option(fc.subarray([...values], { minLength: 1 }), { nil: undefined })
const anyBound = fc.record({
  field: fc.constantFrom('created_at' as const, 'updated_at' as const),
  comparison: fc.constantFrom('lt', 'lte', 'eq', 'gte', 'gt'),
  value: fc.oneof(
    fc.nat(60).map(momentOf),
    fc.nat(4).map((n) => `2026-03-02T00:00:00.00000${n}Z`),
  ),
})

/** The filters, both as query parameters and as a predicate. */
const filters = fc.record({
  profile_ids: anyOf(PROFILES),
  identity_ids: anyOf(PROFILES),
  account_ids: anyOf(GROUPS),
  group_ids: anyOf(GROUPS),
  crypto_tx_hashes: anyOf(HASHES),
  type: anyOf(TYPES),
  statuses: anyOf(STATUSES),
  secondary_statuses: anyOf(SECONDARY),
  ref_ids: anyOf(['ref,1', 'ref,2', 'ref,3', 'nobody']),
  directions: anyOf(['CREDIT', 'DEBIT']),
  assets: anyOf(ASSETS),
  crypto_networks: anyOf(NETWORKS),
  fiat_account_ids: anyOf(PROFILES),
  memo: fc.constantFrom('INV-1', 'INV-2', 'INV', 'inv-1').map((memo) => [memo]),
  'metadata.source': fc.constantFrom('web', 'app', '', 'we').map((value) => [value]),
  'metadata[batch]': fc.constantFrom('0', '1', '2', '9').map((value) => [value]),
  'amount.gte': fc.constantFrom(...AMOUNTS, '5').map((amount) => [amount]),
  'amount.lte': fc.constantFrom(...AMOUNTS, '0', '.99').map((amount) => [amount]),
})
/** An amount in units of the 18th decimal. */
const unitsOf = (amount: string) => {
  const [whole, rest = ''] = amount.split('.')
  return BigInt(whole + rest.padEnd(18, '0'))
}
const FIELD_OF: Record<string, (transfer: Transfer) => string | undefined> = {
  profile_ids: (transfer) => transfer.profile_id,
  identity_ids: (transfer) => transfer.identity_id,
  account_ids: (transfer) => transfer.account_id,
  group_ids: (transfer) => transfer.group_id,
  crypto_tx_hashes: (transfer) => transfer.crypto_tx_hash,
  type: (transfer) => transfer.type,
  statuses: (transfer) => transfer.status,
  secondary_statuses: (transfer) => transfer.secondary_status?.name,
  ref_ids: (transfer) => transfer.ref_id,
  directions: (transfer) => transfer.direction,
  assets: (transfer) => transfer.asset,
  crypto_networks: (transfer) => transfer.crypto_network,
  fiat_account_ids: (transfer) => transfer.fiat_account_id,
  memo: (transfer) => transfer.memo,
  'metadata.source': (transfer) => transfer.metadata?.source,
  'metadata[batch]': (transfer) => transfer.metadata?.batch,
}
const passes = (transfer: Transfer, name: string, values: readonly string[]) => {
  if (name === 'amount.gte') return unitsOf(transfer.amount) >= unitsOf(values[0]!)
  if (name === 'amount.lte') return unitsOf(transfer.amount) <= unitsOf(values[0]!)
  const value = FIELD_OF[name]!(transfer)
  return value !== undefined && values.includes(value)
}

describe('List Transfers', () => {
  test('any combination of filters, order and page size equals a filter in memory', async () => {
    // One or two filters at a time, so that some records match.
    const someFilters = fc.tuple(
      filters,
      fc.subarray([...Object.keys(FIELD_OF), 'amount.gte', 'amount.lte'], { maxLength: 2 }),
    )
    await fc.assert(
      fc.asyncProperty(
        someFilters,
        fc.array(anyBound, { maxLength: 2 }),
        fc.constantFrom('ASC', 'DESC'),
        fc.constantFrom('CREATED_AT', 'UPDATED_AT'),
        fc.constantFrom(7, 50, 1000),
        async ([values, names], bounds, order, orderBy, limit) => {
          const chosen = Object.entries(values).filter(
            ([name, value]) => names.includes(name) && value !== undefined,
          )
          // Each bound may appear only once, because the service refuses a repeated parameter.
          const distinct = [...new Map(bounds.map((bound) => [`${bound.field}.${bound.comparison}`, bound]))]
          const query: [string, string][] = [
            ...chosen.flatMap(([name, value]) => value!.map((one): [string, string] => [name, one])),
            ...distinct.map(([name, { value }]): [string, string] => [name, value]),
            ['order', order],
            ['order_by', orderBy],
            ['limit', String(limit)],
          ]
          const expected = all
            .filter((transfer) => chosen.every(([name, value]) => passes(transfer, name, value as string[])))
            .filter((transfer) =>
              distinct.every(([, { field, comparison, value }]) =>
                COMPARE[comparison]!(transfer[field], value),
              ),
            )
          const key = ({ id, updated_at }: Transfer) => (orderBy === 'UPDATED_AT' ? updated_at + id : id)
          expected.sort((a, b) => (key(a) < key(b) === (order === 'ASC') ? -1 : 1))
          const seen = await walk(query)
          expect(seen.map(({ id }) => id)).toEqual(expected.map(({ id }) => id))
        },
      ),
      runs(120),
    )
  })

  test('an address in any spelling finds each transfer to it, and no other address does', async () => {
    const other = await newCustomer(service)
    const to = [DESTINATION, DESTINATION.toLowerCase(), CASH, CASH.replace('bitcoincash:', ''), undefined]
    const records = to.map((destination_address, n) => ({
      ...recordOf(n),
      customer_id: other.customer_id,
      ref_id: undefined,
      destination_address,
    }))
    await insert(records)
    const found = async (address: string) =>
      (await walkList<Transfer>(other, PATH, [['destination_addresses', address]])).map(({ id }) => id).sort()
    const ids = records.map(({ id }) => id)
    for (const one of [DESTINATION, DESTINATION.toLowerCase(), DESTINATION.toUpperCase().replace('0X', '0x')])
      expect(await found(one), one).toEqual(ids.slice(0, 2).sort())
    for (const one of [CASH, CASH.toUpperCase(), CASH.replace('bitcoincash:', '')])
      expect(await found(one), one).toEqual(ids.slice(2, 4).sort())
    expect(await found('nowhere')).toEqual([])
    expect(await found(DESTINATION.slice(0, -1))).toEqual([])
  })

  test('metadata and memos of transfers of each kind are found at once, as wholes, and by their customer alone', async () => {
    const [payer, payee] = [await newCustomer(service), await newCustomer(service)]
    await fund(payer, '100')
    const { body: to } = await payer.call<{ id: string }>('POST', '/v2/profiles', { nickname: 'to' })
    const metadata = { order: '1041', 'a.b[c]': 'x, y', '': '' }
    const from = { from_profile_id: payer.profile_id, asset: 'USD', amount: '1', metadata }
    const { body: bank } = await payer.call<{ id: string }>('POST', '/v2/transfer/fiat-accounts', {
      fiat_account_owner: { institution_details: { name: 'Acme' } },
      fiat_network_instructions: { wire: {} },
    })
    const made = [
      ['crypto-withdrawals', withdrawalOf(payer, { metadata, memo: 'INV-1' })],
      [
        'fiat-withdrawals',
        {
          profile_id: payer.profile_id,
          asset: 'USD',
          amount: '1',
          fiat_account_id: bank.id,
          metadata,
          memo: 'INV-1',
        },
      ],
      ['internal', { ...from, to_profile_id: to.id, memo: 'INV-1' }],
      ['paxos', { ...from, to_profile_id: payee.profile_id, recipient_metadata: { order: 'theirs' } }],
    ] as const
    for (const [kind, body] of made)
      expect(await payer.call('POST', `/v2/transfer/${kind}`, body), kind).toMatchObject({ status: 200 })
    const found = async (query: string, of = payer) =>
      (await of.call<{ items: Transfer[] }>('GET', `${PATH}?order=ASC&${query}`)).body.items.map(
        ({ type }) => type,
      )
    const withMetadata = [
      'CRYPTO_WITHDRAWAL',
      'WIRE_WITHDRAWAL',
      'INTERNAL_TRANSFER_DEBIT',
      'INTERNAL_TRANSFER_CREDIT',
    ]
    for (const query of [
      'metadata.order=1041',
      'metadata[order]=1041',
      'metadata.=',
      'metadata.a.b[c]=x,%20y&metadata.order=1041',
    ])
      expect(await found(query), query).toEqual([...withMetadata, 'PAXOS_TRANSFER_DEBIT'])
    expect(await found('memo=INV-1')).toEqual(withMetadata)
    expect(await found('memo=INV-1&metadata.order=1041&type=WIRE_WITHDRAWAL')).toEqual(['WIRE_WITHDRAWAL'])
    expect(await found('metadata.order=theirs', payee)).toEqual(['PAXOS_TRANSFER_CREDIT'])
    for (const query of ['metadata.order=1041', 'memo=INV-1']) expect(await found(query, payee)).toEqual([])
    for (const query of [
      ...[
        'metadata.order=104',
        'metadata.order=%25',
        'metadata.order=',
        'metadata.Order=1041',
        'metadata.orde=1041',
      ],
      ...[
        'metadata.order=theirs',
        'metadata.order=1041&metadata.x=y',
        'memo=INV',
        'memo=inv-1',
        'memo=INV-1%20',
      ],
    ])
      expect(await found(query), query).toEqual([])
    const volumes = await payer.call<{ items: { count: number }[] }>(
      'GET',
      '/v2/transfer/volumes?metadata.order=1041&memo=INV-1',
    )
    expect(volumes.body.items.reduce((sum, { count }) => sum + count, 0)).toBe(withMetadata.length)
  })

  test('the order of ids is the order of creation', () => {
    const byTime = [...all].sort((a, b) => (a.created_at + a.id < b.created_at + b.id ? -1 : 1))
    expect(all).toEqual(byTime)
  })

  test.each(['ASC', 'DESC'])(
    'records that are added while the list is read disturb no page (%s)',
    async (order) => {
      let added = 0
      const seen = await walk(
        [
          ['order', order],
          ['limit', '13'],
        ],
        async () => {
          // These records are created before, within and after the part that has been read.
          const records = [1, COUNT / 2, COUNT * 3].map((n) => ({
            ...recordOf(n),
            ref_id: undefined,
            id: '',
          }))
          await insert(
            records.map((record) => ({ ...record, id: newId(momentAt(record.created_at), 5000 + added++) })),
          )
        },
      )
      const ids = seen.map(({ id }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      const known = new Set(all.map(({ id }) => id))
      const before = ids.filter((id) => known.has(id))
      const expected = all.map(({ id }) => id)
      expect(before).toEqual(order === 'ASC' ? expected : expected.reverse())
    },
  )
})
