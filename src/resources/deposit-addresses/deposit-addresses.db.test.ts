/*
 * Invariants of deposit addresses:
 * 1. each is an address of its network, given once, and the list shows the record that was answered;
 * 2. a ref_id is used once, and a refused request changes nothing;
 * 3. the list contains exactly the matching records, in order, each once;
 * 4. an address that is derived from a key can be derived again from its id alone.
 */
import { createHash, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { COMPARE, walkList, type Query } from '../../../test/list-in-memory.ts'
import { SEED } from '../../../test/seed.ts'
import {
  everyTable,
  newCustomer,
  ROW_MACS,
  type TestCustomer,
  sharedTestService,
  newHolder,
} from '../../../test/support.ts'
import { CRYPTO_NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { NIL_UUID } from '../../contract/fields.ts'
import { transaction } from '../../db/database.ts'
import { momentAt, newId } from '../../db/ids.ts'
import { insertDepositAddress, type DepositAddress } from '../../money/records/deposit-address.ts'
import { addressFromBytes, canonicalAddress } from '../../contract/addresses/addresses.ts'
import type { PayoutNetwork, NetworkAdapter, Networks } from '../../networks/network.ts'
import { NodeFailure } from '../../networks/node-failure.ts'
import { NOBODY, A_UUID, A_TIME } from '../../../test/matchers.ts'

const ADDRESSES = '/v2/transfer/deposit-addresses'
const EVM: CryptoNetwork[] = ['ETHEREUM', 'POLYGON_POS', 'BASE', 'ARBITRUM_ONE', 'INK', 'XLAYER']
const compatible = (network: CryptoNetwork) => (EVM.includes(network) ? EVM : [network])

const service = await sharedTestService()
const customer = await newCustomer(service)
const other = await newCustomer(service)

async function made(by: TestCustomer, changes: object = {}): Promise<DepositAddress> {
  const answer = await by.call<DepositAddress>('POST', ADDRESSES, {
    profile_id: by.profile_id,
    crypto_network: 'ETHEREUM',
    ...changes,
  })
  expect(answer).toMatchObject({ status: 200 })
  return answer.body
}

describe('Create Deposit Address', () => {
  describe('no address is given to an identity that', () => {
    const STATES = [
      [{ status: 'PENDING' }, 'identity-verification-required'],
      [{ status: 'ERROR' }, 'identity-verification-required'],
      [{ status: 'DENIED' }, 'identity-verification-required'],
      [{ status: 'APPROVED', admin_disabled: true }, 'disabled'],
    ] as const
    test.each(STATES)('is %j', async (state, slug) => {
      const { identity_id, account_id } = await newHolder(customer)
      const made = await customer.call<{ profile_id: string }>('POST', '/v2/identity/accounts', {
        account: { identity_id },
        create_profile: true,
      })
      await customer.call('PUT', `/v2/identity/identities/${identity_id}/sandbox-status`, state)
      for (const [ref_path, named] of [
        ['identity_id', { identity_id }],
        ['account_id', { account_id }],
        ['profile_id', { profile_id: made.body.profile_id }],
      ] as const) {
        const body = { profile_id: customer.profile_id, crypto_network: 'ETHEREUM', ...named }
        const before = await everyTable(service.db)
        const answer = await customer.call('POST', '/v2/transfer/deposit-addresses', body)
        expect(answer, ref_path).toMatchObject({
          status: 403,
          body: {
            type: expect.stringMatching(new RegExp(`/problems/${slug}$`)) as string,
            ...(slug === 'disabled' ? {} : { meta: { ref_path, identity_id, current_status: state.status } }),
          },
        })
        expect(await everyTable(service.db)).toEqual(before)
      }
    })
  })

  describe('an address', () => {
    test.each(CRYPTO_NETWORKS)(
      'of %s is valid on that network, and each request gives a new address',
      async (network) => {
        const records = [await made(customer, { crypto_network: network })]
        for (let n = 1; n < 5; n++) records.push(await made(customer, { crypto_network: network }))
        for (const record of records) {
          expect(record).toEqual({
            id: A_UUID,
            customer_id: customer.customer_id,
            profile_id: customer.profile_id,
            crypto_network: network,
            address: expect.any(String) as string,
            compatible_crypto_networks: compatible(network),
            conversion_target_asset: 'NO_CONVERSION',
            identity_id: NIL_UUID,
            created_at: A_TIME,
          })
          for (const each of compatible(network)) {
            expect(canonicalAddress(each, record.address, { testNetworks: false })).toBe(record.address)
          }
        }
        expect(new Set(records.map(({ address }) => address)).size).toBe(records.length)
        const ids = records.map(({ id }) => id).join()
        const list = await customer.call('GET', `${ADDRESSES}?order=ASC&ids=${ids}`)
        expect(list.body).toEqual({ items: records })
      },
    )

    test('is answered with all fields of the request', async () => {
      const given = {
        ...(await newHolder(customer)),
        ref_id: 'everything, and a comma',
        metadata: { order: '1041', '': '' },
        conversion_target_asset: 'USD',
      }
      const record = await made(customer, given)
      expect(record).toMatchObject(given)
      const list = await customer.call('GET', `${ADDRESSES}?ids=${record.id}`)
      expect(list.body).toEqual({ items: [record] })
    })
  })

  describe('a ref_id', () => {
    test('that is taken is answered with its record, whatever the other fields', async () => {
      const first = await made(customer, { ref_id: 'taken' })
      const before = await everyTable(service.db)
      for (const changes of [{}, { crypto_network: 'BITCOIN' }, { profile_id: NOBODY }]) {
        const again = await customer.call('POST', ADDRESSES, {
          profile_id: customer.profile_id,
          crypto_network: 'ETHEREUM',
          ref_id: 'taken',
          ...changes,
        })
        expect(again).toMatchObject({ status: 409, body: { title: 'Already Exists' } })
        expect(again.body.meta).toEqual({ existing: first, differs: Object.keys(changes) })
      }
      expect(await everyTable(service.db)).toEqual(before)
      // Another customer may use the same ref_id.
      await made(other, { ref_id: 'taken' })
    })

    test('in many requests at once creates one address, and the others get its record', async () => {
      for (let round = 1; round <= 5; round++) {
        const ref_id = `at once ${round}`
        const answers = await Promise.all(
          CRYPTO_NETWORKS.map((crypto_network) =>
            customer.call<DepositAddress & { meta: unknown }>('POST', ADDRESSES, {
              profile_id: customer.profile_id,
              crypto_network,
              ref_id,
            }),
          ),
        )
        const [winner, ...others] = answers.filter(({ status }) => status === 200)
        expect(others).toEqual([])
        for (const { status, body } of answers.filter((answer) => answer !== winner)) {
          expect({ status, meta: body.meta }).toEqual({
            status: 409,
            meta: { existing: winner!.body, differs: ['crypto_network'] },
          })
        }
        const list = await customer.call('GET', `${ADDRESSES}?ref_ids=${encodeURIComponent(ref_id)}`)
        expect(list.body).toEqual({ items: [winner!.body] })
      }
    })
  })

  test('an address that is derived from a key can be derived again from its id alone', async () => {
    const derive = (id: string) => ({
      address: addressFromBytes('ETHEREUM', createHash('sha256').update(id).digest()),
      derivation: `key/${id}`,
    })
    const simulated = service.networks.get('ETHEREUM')!
    const networks = new Map([
      ...service.networks,
      ['ETHEREUM', { ...simulated, newDepositAddress: async () => derive }],
    ] satisfies [PayoutNetwork, NetworkAdapter][])
    const { customer_id, profile_id } = customer
    const order = { profile_id, crypto_network: 'ETHEREUM' } as const
    const { id, address } = await insertDepositAddress(
      service.db,
      { networks, rowMacs: ROW_MACS },
      customer_id,
      order,
    )
    const derived = derive(id)
    expect(address).toBe(derived.address)
    const { rows } = await service.db.query('select derivation from deposit_addresses where id = $1', [id])
    expect(rows).toEqual([{ derivation: derived.derivation }])
  })

  test('where the adapter can give none now, the answer is a 503 and no address is created', async () => {
    const simulated = service.networks.get('SOLANA')!
    const fails = async () => Promise.reject(new NodeFailure('no worker has answered'))
    const networks = new Map([
      ...service.networks,
      ['SOLANA', { ...simulated, newDepositAddress: fails }],
    ] satisfies [PayoutNetwork, NetworkAdapter][])
    const { customer_id, profile_id } = customer
    const asked = insertDepositAddress(service.db, { networks, rowMacs: ROW_MACS }, customer_id, {
      ...{ profile_id, crypto_network: 'SOLANA' as const },
    })
    await expect(asked).rejects.toMatchObject({
      status: 503,
      detail: 'SOLANA gives no address now; none was created',
    })
  })

  test('an address names the networks whose deposits are read; a simulated address names no real network', async () => {
    const { db, networks } = service
    const [ethereum, base, ink] = (['ETHEREUM', 'BASE', 'INK'] as const).map((name) => networks.get(name)!)
    const some: Networks = new Map([
      ['ETHEREUM', ethereum!],
      ['BASE', { ...base!, asksNode: true }],
      ['INK', ink!],
    ])
    const { customer_id, profile_id } = customer
    const given = await insertDepositAddress(db, { networks: some, rowMacs: ROW_MACS }, customer_id, {
      profile_id,
      crypto_network: 'INK',
    })
    expect(given.compatible_crypto_networks).toEqual(['ETHEREUM', 'INK'])
  })
})

describe('where to pay is told only from records that Bursar made', () => {
  const INSTRUCTIONS = '/v2/transfer/fiat-deposit-instructions'
  const RULES = '/v2/orchestration/rules'
  /** Each is copied into the database with a thief's address or memo. */
  const TOLD = [
    {
      path: ADDRESSES,
      table: 'deposit_addresses',
      body: { crypto_network: 'ETHEREUM' },
      where: 'address',
      thief: "'0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'",
    },
    {
      path: INSTRUCTIONS,
      table: 'fiat_deposit_instructions',
      body: { fiat_network: 'WIRE' },
      where: 'memo_id',
      thief: "'THIEFTHIEFTHIEF0'",
    },
    {
      path: RULES,
      table: 'orchestration_rules',
      body: {
        ...{ source: { crypto: { network: 'ETHEREUM' } }, source_asset: 'USDP', destination_asset: 'USDP' },
        destination: {
          crypto: { network: 'ETHEREUM', address: '0x52908400098527886E0F7030069857D2E4169EE7' },
        },
      },
      where: 'source',
      thief: `'{"crypto":{"address_id":"${NOBODY}","address":"0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed","network":"ETHEREUM"}}'`,
    },
  ]

  test.each(TOLD)('$path', async ({ path, table, body, where, thief }) => {
    const victim = await newCustomer(service)
    const { profile_id } = victim
    const asked = { profile_id, ...body, ref_id: 'user-1' }
    expect(await victim.call('POST', path, asked)).toMatchObject({ status: 200 })
    const { rows: columns } = await service.db.query<{ name: string }>(
      'select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped',
      [table],
    )
    const forged: Record<string, string> = {
      ...{ id: 'gen_random_uuid()', ref_id: "'user-2'", source_id: 'gen_random_uuid()', [where]: thief },
    }
    const { rows } = await service.db.query<{ id: string }>(
      `insert into ${table} (${columns.map(({ name }) => name).join(', ')})
       select ${columns.map(({ name }) => forged[name] ?? name).join(', ')} from ${table} where customer_id = $1
       returning id`,
      [victim.customer_id],
    )
    const { id } = rows[0]!
    const list = async (query: Query) =>
      (await walkList<{ ref_id: string }>(victim, path, query)).map(({ ref_id }) => ref_id)
    expect(await list([['order', 'ASC']])).toEqual(['user-1'])
    expect(await list([['limit', '1']])).toEqual(['user-1'])
    expect(await list([['ref_ids', 'user-2']])).toEqual([])
    expect(await victim.call('POST', path, { ...asked, ref_id: 'user-2' })).toMatchObject({
      status: 409,
      body: { meta: {} },
    })
    expect(JSON.stringify(await victim.call('POST', path, { ...asked, ref_id: 'user-2' }))).not.toMatch(
      /thief|5aAeb/i,
    )
    for (const q of [
      id,
      id.slice(0, 13),
      'user-2',
      '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
      'THIEFTHIEFTHIEF0',
    ])
      expect(await victim.call('GET', `/v2/search?q=${q}`)).toMatchObject({
        status: 200,
        body: { items: [] },
      })
    if (path === INSTRUCTIONS)
      expect(await victim.call('GET', `${path}/${id}`)).toMatchObject({ status: 404 })
    await service.owner.query(`delete from ${table} where id = $1`, [id])
  })
})

describe('List Deposit Addresses', () => {
  /** The number of addresses: nine on each of eleven networks. */
  const COUNT = 99
  let owner: TestCustomer
  let profiles: string[]
  /** All addresses, oldest first. */
  let all: DepositAddress[]

  /** Few moments for many records, so that equal timestamps are common. */
  const momentOf = (n: number) => `2026-03-01T12:00:0${n % 3}.00000${n % 7}Z`

  function recordOf(n: number): DepositAddress {
    const created_at = momentOf(n)
    const crypto_network = CRYPTO_NETWORKS[n % CRYPTO_NETWORKS.length]!
    return {
      id: newId(momentAt(created_at), n),
      customer_id: owner.customer_id,
      profile_id: profiles[n % 3]!,
      crypto_network,
      // The address has the same bytes on every network that accepts them.
      address: addressFromBytes(crypto_network, Buffer.alloc(32, 1 + (n % 9))),
      compatible_crypto_networks: compatible(crypto_network),
      conversion_target_asset: n % 4 === 0 ? 'USD' : 'NO_CONVERSION',
      ...(n % 5 !== 0 && { ref_id: `ref,${n}` }),
      identity_id: n % 2 === 0 ? randomUUID() : NIL_UUID,
      ...(n % 3 === 0 && { account_id: randomUUID() }),
      ...(n % 6 === 0 && { metadata: { n: `${n}` } }),
      created_at,
    }
  }

  beforeAll(async () => {
    owner = await newCustomer(service)
    const more = await Promise.all(
      ['second', 'third'].map((nickname) => owner.call('POST', '/v2/profiles', { nickname })),
    )
    profiles = [owner.profile_id, ...more.map(({ body }) => body.id as string)]
    all = Array.from({ length: COUNT }, (_, n) => recordOf(n)).sort((a, b) => (a.id < b.id ? -1 : 1))
    await service.db.query(
      'insert into deposit_addresses select * from json_populate_recordset(null::deposit_addresses, $1)',
      // The nil UUID is the answer for a row without an identity.
      [JSON.stringify(all, (_, value: unknown) => (value === NIL_UUID ? null : value))],
    )
    await transaction(service.db, (tx) => ROW_MACS.sealAll(tx, 'deposit_addresses'))
  })

  const walk = (query: Query) => walkList<DepositAddress>(owner, ADDRESSES, query)

  const FIELD_OF: Record<string, (record: DepositAddress) => string | undefined> = {
    ids: ({ id }) => id,
    profile_ids: ({ profile_id }) => profile_id,
    ref_ids: ({ ref_id }) => ref_id,
    addresses: ({ address }) => address,
    crypto_networks: ({ crypto_network }) => crypto_network,
    networks: ({ crypto_network }) => crypto_network,
    identity_ids: ({ identity_id }) => (identity_id === NIL_UUID ? undefined : identity_id),
    account_ids: ({ account_id }) => account_id,
  }

  test('has all addresses without filters, in the order of creation', async () => {
    expect(await walk([['order', 'ASC']])).toEqual(all)
    expect(await walk([])).toEqual([...all].reverse())
    expect(await walk([['limit', '1']])).toEqual([...all].reverse())
  })

  test('any combination of filters, order and page size equals a filter in memory', async () => {
    const some = (values: readonly string[]) => fc.subarray([...values], { minLength: 1 })
    const foreign = await made(customer, { ref_id: 'ref,1' })
    const filters: Record<string, fc.Arbitrary<string[]>> = {
      ids: some([...all.slice(0, 60).map(({ id }) => id), foreign.id, 'no id']),
      profile_ids: some([...profiles, foreign.profile_id, NOBODY]),
      ref_ids: some([...all.slice(0, 60).flatMap(({ ref_id }) => ref_id ?? []), 'nobody']),
      addresses: some([...new Set(all.map(({ address }) => address)), foreign.address]),
      crypto_networks: some(CRYPTO_NETWORKS),
      networks: some(CRYPTO_NETWORKS),
      identity_ids: some([...all.map(({ identity_id }) => identity_id), foreign.identity_id]),
      account_ids: some(all.flatMap(({ account_id }) => account_id ?? [])),
    }
    let [found, empty] = [0, 0]
    await fc.assert(
      fc.asyncProperty(
        fc
          .subarray(Object.keys(filters), { maxLength: 3 })
          .chain((names) => fc.record(Object.fromEntries(names.map((name) => [name, filters[name]!])))),
        fc.uniqueArray(
          fc.record({
            comparison: fc.constantFrom('lt', 'lte', 'eq', 'gte', 'gt'),
            value: fc.nat(60).map(momentOf),
          }),
          { maxLength: 2, selector: ({ comparison }) => comparison },
        ),
        fc.constantFrom('ASC', 'DESC'),
        fc.constantFrom(7, 50, 1000),
        async (chosen, bounds, order, limit) => {
          const expected = all
            .filter((record) =>
              Object.entries(chosen).every(([name, values]) =>
                values.includes(FIELD_OF[name]!(record) ?? ''),
              ),
            )
            .filter(({ created_at }) =>
              bounds.every(({ comparison, value }) => COMPARE[comparison]!(created_at, value)),
            )
          if (order === 'DESC') expected.reverse()
          if (expected.length > 0) found++
          else empty++
          const query: [string, string][] = [
            ...Object.entries(chosen).flatMap(([name, values]) =>
              values.map((value): [string, string] => [name, value]),
            ),
            ...bounds.map(({ comparison, value }): [string, string] => [`created_at.${comparison}`, value]),
            ['order', order],
            ['limit', String(limit)],
          ]
          expect(await walk(query)).toEqual(expected)
        },
      ),
      { seed: SEED, numRuns: 100 },
    )
    expect(Math.min(found, empty)).toBeGreaterThan(5)
  })
})
