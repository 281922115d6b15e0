import { afterAll, describe, expect, test } from 'vitest'
import {
  fund,
  MASTER_KEYS,
  ROW_MACS,
  newCustomer,
  refusing,
  type TestCustomer,
  ownTestService,
} from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { runOrchestrations } from '../orchestrations/run-orchestrations.ts'
import { entriesAt, type DestinationAddress } from '../../money/records/destination-address.ts'
import { Policies } from '../../governance/policy/policy.ts'
import { verify } from '../../money/verify/verify.ts'
import { approveCooledAddresses } from './approve-cooled-addresses.ts'
import { refusedWith } from '../../../test/matchers.ts'

const ENTRY = '/v2/transfer/crypto-destination-address'
const BOOK = '/v2/transfer/crypto-destination-addresses'
const ORCHESTRATIONS = '/v2/orchestration/orchestrations'
const ADDRESS = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'

let customer: TestCustomer

const service = await ownTestService()
afterAll(async () => expect((await verify(service.db, { rowMacs: ROW_MACS })).disagreements).toEqual([]))

async function put(body: object): Promise<DestinationAddress> {
  const answer = await customer.call<{ address: DestinationAddress }>('PUT', ENTRY, body)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body.address
}
const listed = async (query = '') =>
  (await customer.call<{ items: DestinationAddress[] }>('GET', `${BOOK}${query}`)).body.items

describe('List Crypto Destination Addresses', () => {
  test('the same address has a separate entry for each network and identity', async () => {
    customer = await newCustomer(service)
    const person = { ref_id: 'owner', person_details: { first_name: 'Ada', last_name: 'Lovelace' } }
    const { body: identity } = await customer.call<{ id: string }>('POST', '/v2/identity/identities', person)
    const entries = [
      await put({ crypto_network: 'ETHEREUM', address: ADDRESS }),
      await put({ crypto_network: 'BASE', address: ADDRESS }),
      await put({ crypto_network: 'ETHEREUM', address: ADDRESS, identity_id: identity.id }),
    ]
    expect(new Set(entries.map(({ id }) => id)).size).toBe(3)
    const ids = async (query: string) => (await listed(query)).map(({ id }) => id)
    expect(await ids(`?identity_ids=${identity.id}`)).toEqual([entries[2]!.id])
    expect(await ids('?crypto_networks=BASE')).toEqual([entries[1]!.id])
    expect(await ids('?order=ASC')).toEqual(entries.map(({ id }) => id))
  })
})

describe('Put Crypto Destination Address', () => {
  test('an address is created once; a repeat in any spelling changes only the given fields', async () => {
    customer = await newCustomer(service)
    const made = await put({ crypto_network: 'ETHEREUM', address: ADDRESS })
    expect(made).toEqual({
      id: made.id,
      customer_id: customer.customer_id,
      crypto_network: 'ETHEREUM',
      address: ADDRESS,
      nickname: 'ETHEREUM 0x5aAeb6…eAed',
      bookmarked: false,
      status: 'APPROVED',
      created_at: made.created_at,
      updated_at: made.created_at,
    })
    expect(await put({ crypto_network: 'ETHEREUM', address: ADDRESS.toLowerCase() })).toEqual(made)
    const facts = { custodian_type: 'VASP' }
    const changed = await put({
      crypto_network: 'ETHEREUM',
      address: ADDRESS,
      nickname: 'Supplier',
      travelrule_metadata: facts,
    })
    expect(changed).toMatchObject({ id: made.id, nickname: 'Supplier', bookmarked: false })
    expect(changed.updated_at > made.updated_at).toBe(true)
    const marked = await put({ id: made.id, bookmarked_status: true })
    expect(marked).toMatchObject({ nickname: 'Supplier', bookmarked: true, travelrule_metadata: facts })
    expect(await put({ id: made.id, bookmarked_status: true })).toEqual(marked)
    expect(await listed()).toEqual([marked])
  })

  test('ten requests at once create one entry', async () => {
    customer = await newCustomer(service)
    const made = await Promise.all(
      Array.from({ length: 10 }, () =>
        put({ crypto_network: 'SOLANA', address: '11111111111111111111111111111112' }),
      ),
    )
    expect(new Set(made.map(({ id }) => id)).size).toBe(1)
    expect(await listed()).toHaveLength(1)
  })

  test('an orchestration and a rule pay to an entry by its id, and show that id', async () => {
    customer = await newCustomer(service)
    await fund(customer, '100')
    const { id } = await put({ crypto_network: 'ETHEREUM', address: ADDRESS })
    const order = {
      ref_id: 'by id',
      source_asset: 'USD',
      destination_asset: 'USDP',
      source_amount: '10',
      source: { profile: { profile_id: customer.profile_id } },
      destination: { crypto: { address_id: id, address: ADDRESS.toLowerCase() } },
    }
    const paid = await customer.call<{ destination: object; destination_transfer: { transfer_id: string } }>(
      'POST',
      ORCHESTRATIONS,
      order,
    )
    const shown = { crypto: { address_id: id, address: ADDRESS, network: 'ETHEREUM' } }
    expect(paid).toMatchObject({ status: 200, body: { destination: shown } })
    const { transfer_id } = paid.body.destination_transfer
    const { body: transfer } = await customer.call('GET', `/v2/transfer/transfers/${transfer_id}`)
    expect(transfer).toMatchObject({ destination_address: ADDRESS, crypto_network: 'ETHEREUM' })

    const rule = await customer.call('POST', '/v2/orchestration/rules', {
      ref_id: 'by id',
      profile_id: customer.profile_id,
      source_asset: 'USD',
      destination_asset: 'USDP',
      source: { fiat: {} },
      destination: { crypto: { address_id: id } },
    })
    expect(rule).toMatchObject({ status: 200, body: { rule: { destination: shown } } })
  })

  test("a rule cannot pay to an entry with the customer's own deposit address", async () => {
    customer = await newCustomer(service)
    const asked = { profile_id: customer.profile_id, crypto_network: 'ETHEREUM' }
    const { body: own } = await customer.call<{ address: string }>(
      'POST',
      '/v2/transfer/deposit-addresses',
      asked,
    )
    const { id } = await put({ crypto_network: 'ETHEREUM', address: own.address })
    const rule = await customer.call('POST', '/v2/orchestration/rules', {
      ref_id: 'to itself',
      profile_id: customer.profile_id,
      source_asset: 'USDP',
      destination_asset: 'USDG',
      source: { crypto: { network: 'ETHEREUM' } },
      destination: { crypto: { address_id: id } },
    })
    expect(rule).toMatchObject(refusedWith(400, 'deposit address'))
  })
})

describe('the cooling time', () => {
  const cool = (cooling_seconds: number) =>
    transaction(service.db, async (tx) =>
      new Policies(MASTER_KEYS).add(
        tx,
        customer.customer_id,
        { rules: [], address_book: { cooling_seconds } },
        await readClock(tx),
      ),
    )
  /** Ends the cooling time of an entry, as if it had passed. */
  const passTime = async (id: string) => {
    await service.owner.query(
      'update crypto_destination_addresses set cooling_until = created_at where id = $1',
      [id],
    )
    await ROW_MACS.seal(service.db, 'crypto_destination_addresses', customer.customer_id, id)
  }
  const pay = (address_id: string) =>
    customer.call<{ detail: string }>('POST', ORCHESTRATIONS, {
      ref_id: crypto.randomUUID(),
      source_asset: 'USD',
      destination_asset: 'USDP',
      source_amount: '10',
      source: { profile: { profile_id: customer.profile_id } },
      destination: { crypto: { address_id } },
    })
  const eventsOf = async (id: string) =>
    (
      await customer.call<{ items: { type: string; object_id: string; object: unknown }[] }>(
        'GET',
        '/v2/events?order=ASC&types=crypto_destination_address.*',
      )
    ).body.items.filter(({ object }) => (object as { id: string }).id === id)
  const actionsOf = async (id: string) =>
    (
      await service.db.query<{ action: string; actor_type: string }>(
        'select action, actor_type from audit_log where customer_id = $1 and subject_id = $2 order by id',
        [customer.customer_id, id],
      )
    ).rows.map(({ action, actor_type }) => `${actor_type} ${action}`)

  test('keeps a new entry PENDING, which cannot be paid, and ends by itself', async () => {
    customer = await newCustomer(service)
    await fund(customer, '100')
    const before = await put({ crypto_network: 'BASE', address: ADDRESS })
    await cool(3_600)
    expect((await put({ id: before.id })).status).toBe('APPROVED')
    const made = await put({ crypto_network: 'ETHEREUM', address: ADDRESS })
    expect(made).toMatchObject({ status: 'PENDING', cooling_until: expect.any(String) as string })
    expect(Date.parse(made.cooling_until!) - Date.parse(made.created_at)).toBe(3_600_000)
    const refused = await pay(made.id)
    expect(refused).toMatchObject({
      status: 400,
      body: { detail: expect.stringMatching(/is PENDING: only an APPROVED address can be paid$/) as string },
    })
    // A later policy does not shorten it.
    await cool(0)
    expect(await put({ crypto_network: 'ETHEREUM', address: ADDRESS })).toEqual(made)
    await approveCooledAddresses(service.db)
    expect(await listed('?statuses=PENDING')).toEqual([made])
    expect(await eventsOf(made.id)).toEqual([])

    await passTime(made.id)
    const workers = await Promise.all([1, 2, 3].map(() => approveCooledAddresses(service.db)))
    expect(workers.reduce((sum, count) => sum + count)).toBe(1)
    const [approved] = await listed(`?ids=${made.id}`)
    expect(approved).toMatchObject({ status: 'APPROVED' })
    expect(approved).not.toHaveProperty('cooling_until')
    expect((await eventsOf(made.id)).map(({ type }) => type)).toEqual(['crypto_destination_address.approved'])
    expect(await pay(made.id)).toMatchObject({ status: 200 })
    expect(await actionsOf(made.id)).toEqual([
      'API_CLIENT destination_address.create',
      'WORKER destination_address.approve',
    ])
  })

  test('is not skipped by SQL of the service, and verify finds who tried', async () => {
    customer = await newCustomer(service)
    await fund(customer, '100')
    await cool(3_600)
    const { id } = await put({ crypto_network: 'ETHEREUM', address: ADDRESS })
    const set = (change: string) =>
      service.db.query(`update crypto_destination_addresses set ${change} where id = $1`, [id])
    await expect(set('cooling_until = created_at')).rejects.toThrow('permission denied')
    await set(`status = 'APPROVED', approved_at = '2999-01-01'`)
    expect(await pay(id)).toMatchObject({
      status: 400,
      body: { detail: expect.stringMatching(/is PENDING: only an APPROVED address can be paid$/) as string },
    })
    // An orchestration that was made before is not paid either, and a rule for the address book does not fit.
    const place = { crypto_network: 'ETHEREUM', address: ADDRESS }
    const entries = await entriesAt(service.db, ROW_MACS, customer.customer_id, [place])
    expect([...entries.values()]).toEqual([[{ id, status: 'PENDING' }]])
    // An address that was never put has no MAC, nor has one the MAC of another.
    const forged = crypto.randomUUID()
    await service.db.query(
      `insert into crypto_destination_addresses
         (customer_id, id, created_at, updated_at, crypto_network, address, canonical_address, nickname, bookmarked, status,
          cooling_until, approved_at, sealed_at, mac)
       select customer_id, $2, now(), now(), 'BASE', $3, $3, 'x', false, 'APPROVED', now(), now(), sealed_at, mac
       from crypto_destination_addresses where id = $1`,
      [id, forged, ADDRESS],
    )
    expect(await pay(forged)).toMatchObject({
      status: 400,
      body: { detail: expect.stringMatching(/is REJECTED: only an APPROVED address can be paid$/) as string },
    })
    const there = [{ crypto_network: 'BASE', address: ADDRESS }]
    const found = await entriesAt(service.db, ROW_MACS, customer.customer_id, there)
    expect([...found.values()]).toEqual([[{ id: forged, status: 'REJECTED' }]])
    const own = (await verify(service.db, { rowMacs: ROW_MACS })).disagreements.filter(
      ({ customer_id }) => customer_id === customer.customer_id,
    )
    for (const [rule, address] of [
      [
        'no address of the address book is approved before its cooling time is over, or after it was rejected',
        id,
      ],
      ['every row of crypto_destination_addresses matches its MAC', forged],
    ] as const)
      expect(own.filter((one) => one.rule === rule)).toMatchObject([
        { detail: expect.stringContaining(address) as string },
      ])
    await set(`status = 'PENDING', approved_at = null`)
    await service.owner.query('delete from crypto_destination_addresses where id = $1', [forged])
  })

  test('an entry that cannot be approved keeps those of other customers from nothing', async () => {
    const ids: string[] = []
    for (let count = 1; count <= 3; count++) {
      customer = await newCustomer(service)
      await cool(3_600)
      const { id } = await put({ crypto_network: 'ETHEREUM', address: ADDRESS })
      await passTime(id)
      ids.push(id)
    }
    await refusing(
      service,
      'crypto_destination_addresses',
      `id <> '${ids[1]}' or status = 'PENDING'`,
      async () => {
        const approving = approveCooledAddresses(service.db)
        await expect(approving).rejects.toMatchObject({
          errors: [{ message: expect.stringContaining('odd_record') as string }],
        })
      },
    )
    const { rows } = await service.db.query<{ id: string }>(
      `select id from crypto_destination_addresses where id = any ($1) and status = 'APPROVED' order by id`,
      [ids],
    )
    expect(rows.map(({ id }) => id)).toEqual([ids[0], ids[2]].sort())
    expect(await approveCooledAddresses(service.db)).toBe(1)
  })

  test('a rejected entry stays rejected, whatever is put and however long it waits', async () => {
    customer = await newCustomer(service)
    await fund(customer, '100')
    await cool(3_600)
    const { id } = await put({ crypto_network: 'ETHEREUM', address: ADDRESS })
    expect(await put({ id, status: 'REJECTED', nickname: 'Not ours' })).toMatchObject({
      status: 'REJECTED',
      nickname: 'Not ours',
    })
    await passTime(id)
    await approveCooledAddresses(service.db)
    const again = await put({ crypto_network: 'ETHEREUM', address: ADDRESS })
    expect(again).toMatchObject({ id, status: 'REJECTED' })
    expect(await put({ id, status: 'REJECTED' })).toEqual(again)
    expect(await pay(id)).toMatchObject({ status: 400 })
    expect((await eventsOf(id)).map(({ type }) => type)).toEqual(['crypto_destination_address.rejected'])
    const out = await put({ crypto_network: 'BASE', address: ADDRESS, status: 'REJECTED' })
    expect(out).toMatchObject({ status: 'REJECTED' })
    // Nor does SQL of the service approve it.
    for (const one of [id, out.id]) {
      await service.db.query(
        `update crypto_destination_addresses set status = 'APPROVED', approved_at = now(), rejected_at = null where id = $1`,
        [one],
      )
      expect(await pay(one)).toMatchObject({ status: 400 })
      const { disagreements } = await verify(service.db, { rowMacs: ROW_MACS })
      expect(disagreements.filter(({ detail }) => detail.includes(one))).not.toEqual([])
      await service.db.query(
        `update crypto_destination_addresses set status = 'REJECTED', approved_at = null, rejected_at = updated_at where id = $1`,
        [one],
      )
    }
    expect((await eventsOf(out.id)).map(({ type }) => type)).toEqual(['crypto_destination_address.rejected'])
  })

  test('a rule pays no entry that was rejected meanwhile: the money stays on the profile', async () => {
    customer = await newCustomer(service)
    const { id } = await put({ crypto_network: 'ETHEREUM', address: ADDRESS })
    const rule = await customer.call('POST', '/v2/orchestration/rules', {
      ref_id: 'by id',
      profile_id: customer.profile_id,
      source_asset: 'USD',
      destination_asset: 'USDP',
      source: { profile: { profile_id: customer.profile_id } },
      destination: { crypto: { address_id: id } },
    })
    expect(rule).toMatchObject({ status: 200 })
    await put({ id, status: 'REJECTED' })
    await fund(customer, '100')
    await runOrchestrations(service.db, service)
    const { body } = await customer.call<{ items: { status: string; fail_reason?: object }[] }>(
      'GET',
      ORCHESTRATIONS,
    )
    expect(body.items).toMatchObject([
      {
        status: 'FAILED',
        fail_reason: { detail: 'the address of the address book that the rule pays is REJECTED' },
      },
    ])
    const balances = await customer.call<{ items: { asset: string; available: string }[] }>(
      'GET',
      `/v2/profiles/${customer.profile_id}/balances`,
    )
    expect(balances.body.items).toMatchObject([{ asset: 'USD', available: '100' }])
  })

  test('a policy that was changed in the database refuses new entries', async () => {
    customer = await newCustomer(service)
    await cool(3_600)
    await service.owner.query(`update policies set document = '{"rules": []}' where customer_id = $1`, [
      customer.customer_id,
    ])
    const answer = await customer.call('PUT', ENTRY, { crypto_network: 'ETHEREUM', address: ADDRESS })
    expect(answer).toMatchObject({ status: 503 })
    expect(await listed()).toEqual([])
    await service.owner.query('delete from policies where customer_id = $1', [customer.customer_id])
  })
})
