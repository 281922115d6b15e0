/*
 * Incoming transfers are credited once, however often they are read and by however many workers. A deposit that
 * cannot be credited delays no other. A payment of Bursar to one of its own deposit addresses arrives there.
 */
import { expect, test, vi } from 'vitest'
import {
  fund,
  MASTER_KEYS,
  newCustomer,
  ROW_MACS,
  refusing,
  withdraw,
  ownTestService,
} from '../../../test/support.ts'
import { hurry } from '../../../test/work-off.ts'
import type { TestCustomer } from '../../../test/support.ts'
import { openDatabase } from '../../db/database.ts'
import type { View } from '../../money/movements/decision.ts'
import { Ledger } from '../../money/movements/queue.ts'
import { RowMacs } from '../../audit/sealed-rows.ts'
import { ADDRESSES_PER_PROFILE_MAX, type DepositAddress } from '../../money/records/deposit-address.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { verify } from '../../money/verify/verify.ts'
import type { NetworkAdapter, Networks } from '../../networks/network.ts'
import type { FoundDeposit, DepositScan } from '../../networks/found-deposits.ts'
import type { DepositWaitingReason } from './incoming-transfers.ts'
import { creditDeposits } from '../../../test/credit-deposits.ts'
import { creditDepositsOn } from './credit-deposits.ts'
import { FORGED_DEPOSIT } from './screen-deposits.ts'
import { FORGED_ADDRESS } from './owners.ts'
import { settleWithdrawals } from '../payouts/settle-withdrawals.ts'

const service = await ownTestService()

const WAIT = { timeout: 40_000 }

/** A network that returns these deposits in every scan, with a cursor that counts the scans. */
function networkOf(found: FoundDeposit[]): { networks: Networks; cursors: (string | null)[] } {
  const cursors: (string | null)[] = []
  const read: NetworkAdapter['scanDeposits'] = async (cursor) => {
    cursors.push(cursor)
    return { cursor: String(Number(cursor ?? 0) + 1), found }
  }
  const adapter = { ...service.networks.get('ETHEREUM')!, scanDeposits: read }
  return { networks: new Map([['ETHEREUM', adapter]]), cursors }
}

const giveAddress = async (customer: TestCustomer, changes: object = {}) =>
  (
    await customer.call<DepositAddress>('POST', '/v2/transfer/deposit-addresses', {
      profile_id: customer.profile_id,
      crypto_network: 'ETHEREUM',
      ...changes,
    })
  ).body

let made = 0
const arrivalAt = (address: string, changes: Partial<FoundDeposit> = {}): FoundDeposit => ({
  address,
  asset: 'USDP',
  amount: '25.5',
  crypto_tx_hash: `0x${String(++made).padStart(64, '0')}`,
  crypto_tx_index: '0',
  ...changes,
})

const transfersOf = async (customer: TestCustomer) =>
  (await customer.call<{ items: Transfer[] }>('GET', '/v2/transfer/transfers?order=ASC')).body.items

async function cursorOf(network: string): Promise<string | undefined> {
  const text = 'select cursor from network_cursors where network = $1'
  return (await service.db.query<{ cursor: string }>(text, [network])).rows[0]?.cursor
}

test('an incoming transfer is credited to the profile of its address, with the holders of the address', async () => {
  const customer = await newCustomer(service)
  const place = await giveAddress(customer, { metadata: { order: '1041' } })
  const arrival = arrivalAt(place.address, { crypto_tx_index: '7' })
  const { networks } = networkOf([arrival])
  expect(await creditDeposits({ ...service, networks })).toBe(1)
  const { address: destination_address, asset, amount, crypto_tx_hash, crypto_tx_index } = arrival
  expect(await transfersOf(customer)).toEqual([
    expect.objectContaining({
      type: 'CRYPTO_DEPOSIT',
      direction: 'CREDIT',
      status: 'COMPLETED',
      profile_id: customer.profile_id,
      crypto_network: 'ETHEREUM',
      metadata: { order: '1041' },
      notional_value: '25.5',
      ...{ destination_address, asset, amount, crypto_tx_hash, crypto_tx_index },
    }),
  ])
})

test('a deposit is credited once, with repeated scans and several simultaneous workers', async () => {
  const customer = await newCustomer(service)
  const { address } = await giveAddress(customer)
  const first = arrivalAt(address)
  const found = [first, { ...first, crypto_tx_index: '1' }, arrivalAt(address, { amount: '1' })]
  const { networks, cursors } = networkOf(found)
  const other = openDatabase(service.url, { max: 4, onError: () => undefined })
  try {
    const contexts = [service.db, other].map((db) => {
      return {
        db,
        ledger: new Ledger(db, { macs: new RowMacs(MASTER_KEYS) }),
        networks,
        settings: service.settings,
      }
    })
    const counts = await Promise.all([...contexts, ...contexts].map((context) => creditDeposits(context)))
    await creditDeposits(contexts[1]!)
    expect(counts.reduce((sum, count) => sum + count)).toBe(3)
  } finally {
    await other.end()
  }
  expect((await transfersOf(customer)).map(({ amount }) => amount).sort()).toEqual(['1', '25.5', '25.5'])
  expect(cursors.length).toBeGreaterThan(1)
  expect(await cursorOf('ETHEREUM')).toBe(String(Number(cursors.at(-1)) + 1))
})

test('a transfer of zero, of an unknown asset or to an unknown address is skipped', async () => {
  const customer = await newCustomer(service)
  const { address } = await giveAddress(customer)
  const { networks } = networkOf([
    arrivalAt(address, { amount: '0' }),
    arrivalAt(address, { asset: 'SPAM' }),
    arrivalAt('0x000000000000000000000000000000000000dEaD'),
    arrivalAt(address, { amount: '5' }),
  ])
  expect(await creditDeposits({ ...service, networks })).toBe(1)
  expect((await transfersOf(customer)).map(({ amount }) => amount)).toEqual(['5'])
})

/** Pays and credits over the simulated networks until what is looked at is as expected. */
const workUntil = <T>(look: () => Promise<T>) =>
  expect.poll(
    async () => {
      await settleWithdrawals(service.db, service.networks)
      await creditDeposits(service)
      return look()
    },
    { timeout: 10_000 },
  )

/** Returns the waiting deposits of an address, with their reasons. */
const waitingAt = async (address: string) =>
  (
    await service.db.query<{ amount: string; reason: string; detail: string }>(
      `select amount, reason, detail from incoming_transfers
       where address = $1 and state = 'WAITING' order by amount`,
      [address],
    )
  ).rows

test('a deposit that cannot be credited is recorded, delays no other, and is credited later', async () => {
  const customer = await newCustomer(service)
  const { address } = await giveAddress(customer)
  const before = await cursorOf('ETHEREUM')
  const { networks } = networkOf([
    arrivalAt(address, { amount: '7' }),
    arrivalAt(address, { amount: '8' }),
    arrivalAt(address, { amount: '9' }),
  ])
  const { ledger } = service
  let failed = false
  const broken = {
    macs: ledger.macs,
    submit(...movement: Parameters<Ledger['submit']>) {
      if (failed) return ledger.submit(...movement)
      failed = true
      return Promise.reject(new Error('not this time'))
    },
  } as Ledger
  expect(await creditDeposits({ ...service, ledger: broken, networks })).toBe(2)
  expect((await transfersOf(customer)).length).toBe(2)
  expect(await cursorOf('ETHEREUM')).not.toBe(before)
  expect(await waitingAt(address)).toMatchObject([{ reason: 'FAILED', detail: 'not this time' }])
  await hurry(service.db)
  // The scan finds nothing new: the retry uses the record alone.
  expect(await creditDeposits({ ...service, ledger: broken, networks: networkOf([]).networks })).toBe(1)
  expect((await transfersOf(customer)).map(({ amount }) => amount).sort()).toEqual(['7', '8', '9'])
  expect(await waitingAt(address)).toEqual([])
})

test('a deposit to the address of a deactivated profile is credited, and the round names the profile', async () => {
  const customer = await newCustomer(service)
  const { id } = (await customer.call<{ id: string }>('POST', '/v2/profiles', { nickname: 'Old' })).body
  const { address } = await giveAddress(customer, { profile_id: id })
  expect(await customer.call('PUT', `/v2/profiles/${id}/deactivate`)).toMatchObject({ status: 200 })
  const { networks } = networkOf([arrivalAt(address, { amount: '7' })])
  const round = await creditDepositsOn(service, 'ETHEREUM', networks.get('ETHEREUM')!)
  expect(round).toMatchObject({ credited: 1, deactivated: new Set([id]) })
})

test('a deposit that the database refuses to record keeps no other from its credit', async () => {
  const customer = await newCustomer(service)
  const { address } = await giveAddress(customer)
  const arrivals = ['7', '8', '9'].map((amount) => arrivalAt(address, { amount }))
  const odd = arrivals[1]!.crypto_tx_hash
  await refusing(
    service,
    'incoming_transfers',
    `crypto_tx_hash <> '${odd}' or state = 'WAITING'`,
    async () => {
      await creditDeposits({ ...service, networks: networkOf(arrivals).networks })
    },
  )
  expect(await waitingAt(address)).toMatchObject([
    { amount: '8', reason: 'FAILED', detail: expect.stringContaining('odd_record') as string },
  ])
  await hurry(service.db)
  await creditDeposits({ ...service, networks: networkOf([]).networks })
  expect(await waitingAt(address)).toEqual([])
  // It was credited before its record was refused, and is credited once.
  expect((await transfersOf(customer)).map(({ amount }) => amount).sort()).toEqual(['7', '8', '9'])
})

test('a deposit to an address that two profiles share is credited to neither', async () => {
  const [customer, other] = [await newCustomer(service), await newCustomer(service)]
  const { address } = await giveAddress(customer)
  const copied = await giveAddress(other)
  await service.owner.query('update deposit_addresses set address = $1 where id = $2', [address, copied.id])
  await ROW_MACS.seal(service.db, 'deposit_addresses', other.customer_id, copied.id)
  const { networks } = networkOf([arrivalAt(address)])
  expect(await creditDeposits({ ...service, networks })).toBe(0)
  expect(await waitingAt(address)).toMatchObject([
    { reason: 'FAILED', detail: 'its deposit address belongs to more than one profile' },
  ])
  expect([...(await transfersOf(customer)), ...(await transfersOf(other))]).toEqual([])
})

test('a deposit to an address that Bursar did not give out is not credited, and hinders none of another', async () => {
  const [victim, thief] = [await newCustomer(service), await newCustomer(service)]
  const [given, own] = [await giveAddress(victim), await giveAddress(thief)]
  const planted = '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'
  // Owners are listed by age, and then by id: the thief's comes first.
  const plant = (address: string, from: string) =>
    service.db.query(
      `insert into deposit_addresses
         (customer_id, id, profile_id, crypto_network, address, conversion_target_asset, created_at, derivation, sealed_at, mac)
       select $1, overlay(gen_random_uuid()::text placing '00000000' from 1)::uuid, $2, crypto_network, $3, conversion_target_asset, created_at, derivation, sealed_at, mac
       from deposit_addresses where id = $4`,
      [thief.customer_id, thief.profile_id, address, from],
    )
  // With the MAC of an address of the thief's own, and of the victim's.
  await plant(planted, own.id)
  await plant(given.address, given.id)
  const { networks } = networkOf([planted, given.address, own.address].map((address) => arrivalAt(address)))
  expect(await creditDeposits({ ...service, networks })).toBe(2)
  const amounts = async () =>
    (await Promise.all([victim, thief].map(transfersOf))).map((some) => some.map(({ amount }) => amount))
  expect(await amounts()).toEqual([['25.5'], ['25.5']])
  expect(await waitingAt(planted)).toMatchObject([{ reason: 'FORGED', detail: FORGED_ADDRESS }])
  // Nor is a withdrawal to it.
  await fund(thief, '10')
  await withdraw(thief, { destination_address: planted, amount: '5' })
  await workUntil(async () => (await waitingAt(planted)).map(({ reason }) => reason)).toEqual([
    'FORGED',
    'FORGED',
  ])
  const { disagreements } = await verify(service.db, { rowMacs: ROW_MACS })
  expect(disagreements).toMatchObject([
    { customer_id: thief.customer_id, rule: 'every row of deposit_addresses matches its MAC' },
    { customer_id: thief.customer_id, rule: 'every row of deposit_addresses matches its MAC' },
  ])
  await service.owner.query('delete from incoming_transfers where address = $1', [planted])
  await service.owner.query('delete from deposit_addresses where customer_id = $1 and id <> $2', [
    thief.customer_id,
    own.id,
  ])
})

test('with the role of the database, nobody has a deposit credited again, or one that never arrived', async () => {
  const thief = await newCustomer(service)
  const { address } = await giveAddress(thief)
  const arrival = arrivalAt(address)
  const { networks } = networkOf([arrival])
  expect(await creditDeposits({ ...service, networks })).toBe(1)
  const [credited] = (await transfersOf(thief)) as [Transfer]
  const setBack = `update incoming_transfers set state = 'WAITING', transfer_id = null, due_at = now() where address = $1`
  const attacks = [
    [`update transfers set crypto_tx_hash = '0xother' where id = $2 and $1 <> ''`, setBack],
    [`update transfers set status = 'FAILED' where id = $2 and $1 <> ''`, setBack],
    [
      `update transfers set crypto_tx_index = '9' where id = $2 and $1 <> ''`,
      'delete from incoming_transfers where address = $1',
      `update network_cursors set cursor = '0' where $1 <> ''`,
    ],
  ]
  for (const statements of attacks) {
    for (const text of statements)
      await service.db.query(text, text.includes('$2') ? [address, credited.id] : [address])
    await creditDeposits({ ...service, networks })
    expect((await transfersOf(thief)).map(({ amount }) => amount)).toEqual(['25.5'])
    const rules = (await verify(service.db)).disagreements.map(({ rule }) => rule)
    if (statements.includes(setBack))
      expect(rules).toContain('every credited deposit has its completed transfer')
    await service.db.query(
      `update transfers set status = 'COMPLETED', crypto_tx_hash = $2, crypto_tx_index = $3 where id = $1`,
      [credited.id, arrival.crypto_tx_hash, arrival.crypto_tx_index],
    )
  }
  await service.db.query(
    `insert into incoming_transfers (customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount, state,
                                     cleared, attempts, found_at, due_at, sealed_at, mac)
     select customer_id, network, '0xnever', crypto_tx_index, address, asset, 1000, 'WAITING', true, 0, now(), now(), sealed_at, mac
     from incoming_transfers where address = $1`,
    [address],
  )
  expect(await creditDeposits({ ...service, networks: networkOf([]).networks })).toBe(0)
  expect(await waitingAt(address)).toMatchObject([
    { amount: '1000', reason: 'FORGED', detail: FORGED_DEPOSIT },
  ])
  expect((await transfersOf(thief)).map(({ amount }) => amount)).toEqual(['25.5'])
  await service.owner.query(`delete from incoming_transfers where crypto_tx_hash = '0xnever'`)
})

test('small deposits are credited when their sum reaches the minimum, each once', async () => {
  const customer = await newCustomer(service)
  const [{ address }, elsewhere] = [await giveAddress(customer), await giveAddress(customer)]
  const credited = async (...amounts: [string, string][]) => {
    const { networks } = networkOf(amounts.map(([to, amount]) => arrivalAt(to, { amount })))
    const adapter = { ...networks.get('ETHEREUM')!, minimumDeposit: () => '5' }
    return creditDeposits({ ...service, networks: new Map([['ETHEREUM', adapter]]) })
  }
  expect(await credited([address, '2'], [elsewhere.address, '4.99'], [address, '2.5'])).toBe(0)
  expect(await waitingAt(address)).toMatchObject([
    { amount: '2', reason: 'BELOW_MINIMUM', detail: 'below the minimum deposit of 5 USDP' },
    { amount: '2.5', reason: 'BELOW_MINIMUM' },
  ])
  await hurry(service.db)
  expect(await credited()).toBe(0)
  expect(await credited([address, '0.5'])).toBe(3)
  expect((await transfersOf(customer)).map(({ amount }) => amount).sort()).toEqual(['0.5', '2', '2.5'])
  // Later small deposits start a new sum, and a deposit above the minimum does not wait.
  expect(await credited([address, '1'], [elsewhere.address, '5'])).toBe(2)
  expect(await waitingAt(address)).toMatchObject([{ amount: '1' }])
  expect((await verify(service.db)).disagreements).toEqual([])
})

test('after a crash between credits, the remaining small deposits of a sum are credited', async () => {
  const customer = await newCustomer(service)
  const { address } = await giveAddress(customer)
  const { networks } = networkOf([arrivalAt(address, { amount: '3' }), arrivalAt(address, { amount: '2' })])
  const adapter = { ...networks.get('ETHEREUM')!, minimumDeposit: () => '5' }
  const dying = {
    macs: service.ledger.macs,
    submit(...[id, movement]: Parameters<Ledger['submit']>) {
      const { amount } = movement.decide({
        now: { micros: 0, text: '' },
        newId: () => '',
        get: () => undefined,
      } as unknown as View).transfer
      return amount === '2' ? Promise.reject(new Error('died')) : service.ledger.submit(id, movement)
    },
  } as Ledger
  const context = { ...service, networks: new Map([['ETHEREUM', adapter]]) as Networks }
  expect(await creditDeposits({ ...context, ledger: dying })).toBe(1)
  await hurry(service.db)
  expect(await creditDeposits(context)).toBe(1)
  expect((await transfersOf(customer)).map(({ amount }) => amount)).toEqual(['3', '2'])
})

test('a reader that lost its lease does not take it again, and leaves none behind', async () => {
  const set = (changes: string) =>
    service.db.query(`update network_cursors set ${changes} where network = 'ETHEREUM'`)
  const leasedUntil = async () =>
    (
      await service.db.query<{ leased_until: string | null }>(
        "select leased_until from network_cursors where network = 'ETHEREUM'",
      )
    ).rows
  const own = openDatabase(service.url, { max: 4, onError: () => undefined })
  const statements = vi.spyOn(own, 'query')
  const context = { ...service, db: own }
  let answer: (scan: DepositScan) => void = () => undefined
  await creditDeposits({ ...service, networks: networkOf([]).networks })
  try {
    for (const isLost of [true, false]) {
      const scanDeposits = vi.fn(() => new Promise<DepositScan>((resolve) => (answer = resolve)))
      const hanging = { ...service.networks.get('ETHEREUM')!, scanDeposits }
      const round = creditDepositsOn(context, 'ETHEREUM', hanging)
      await vi.waitFor(() => expect(scanDeposits).toHaveBeenCalled(), WAIT)
      statements.mockClear()
      // Another has read the network meanwhile.
      await set(isLost ? "cursor = 'later', leased_until = null" : "cursor = 'latest'")
      await vi.waitFor(async () => {
        const renewals = await Promise.all(statements.mock.results.map(({ value }) => value as unknown))
        expect(renewals).toContainEqual(expect.objectContaining({ rowCount: isLost ? 0 : 1 }))
      }, WAIT)
      expect(await leasedUntil()).toEqual([{ leased_until: isLost ? null : (expect.any(String) as unknown) }])
      answer({ cursor: 'old', found: [] })
      await round
      expect(await leasedUntil()).toEqual([{ leased_until: null }])
    }
  } finally {
    answer({ cursor: 'old', found: [] })
    await set("cursor = '1', leased_until = null")
    await own.end()
  }
})

test('with the role of the database, nobody sends on the deposits of another, or by a rule that was deleted', async () => {
  const victim = await newCustomer(service)
  const { address, id } = await giveAddress(victim)
  const made = await victim.call<{ rule: { id: string } }>('POST', '/v2/orchestration/rules', {
    ref_id: 'own',
    profile_id: victim.profile_id,
    source_asset: 'USDG',
    destination_asset: 'USD',
    source: { profile: { profile_id: victim.profile_id } },
  })
  expect(made.status).toBe(200)
  const { rule } = made.body
  expect((await victim.call('DELETE', `/v2/orchestration/rules/${rule.id}`)).status).toBe(200)
  await service.db.query(`update orchestration_rules set status = 'ACTIVE' where id = $1`, [rule.id])
  await service.db.query(
    `insert into orchestration_rules (customer_id, id, created_at, updated_at, ref_id, profile_id, status, source_asset,
                                      destination_asset, source, destination, source_id, created_by, sealed_at, mac)
     select customer_id, gen_random_uuid(), created_at, updated_at, 'planted', profile_id, 'ACTIVE', 'USDP', 'USDP', source, $2, $3,
            created_by, sealed_at, mac
     from orchestration_rules where id = $1`,
    [rule.id, { crypto: { network: 'ETHEREUM', address: '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed' } }, id],
  )
  const { networks } = networkOf([arrivalAt(address), arrivalAt(address, { asset: 'USDG' })])
  expect(await creditDeposits({ ...service, networks })).toBe(2)
  const started = await victim.call<{ items: object[] }>('GET', '/v2/orchestration/orchestrations')
  expect(started.body.items).toEqual([])
  const { disagreements } = await verify(service.db, { rowMacs: ROW_MACS })
  expect(disagreements).toMatchObject([
    { customer_id: victim.customer_id, rule: 'every row of orchestration_rules matches its MAC' },
    { customer_id: victim.customer_id, rule: 'nothing is in use that has ended, says the audit log' },
  ])
  await service.owner.query('delete from orchestration_rules where customer_id = $1', [victim.customer_id])
})

test('a withdrawal to a deposit address over a simulated network arrives though the clock moves', async () => {
  const [from, to] = [await newCustomer(service), await newCustomer(service)]
  await fund(from, '100')
  const { address } = await giveAddress(to)
  const arrives = async (amount: string) => {
    await withdraw(from, { destination_address: address.toLowerCase(), amount })
    await workUntil(async () => (await transfersOf(to)).map((one) => one.amount)).toContain(amount)
  }
  await arrives('10')
  // Like a broadcast while the clock was an hour ahead, before it was set back.
  await service.db.query(`
    update simulated_chain set broadcast_at = broadcast_at + interval '1 hour'`)
  await arrives('11')
  // Like a broadcast while the clock was an hour behind.
  await service.db.query(`
    update simulated_chain set broadcast_at = broadcast_at - interval '2 hours'`)
  await arrives('12')
  // As while a node of the cluster is gone, which knows the addresses.
  await service.db.query('update simulated_chain set arrives = null')
  await creditDeposits(service)
  expect((await transfersOf(to)).map(({ amount }) => amount)).toEqual(['10', '11', '12'])
})

test('a profile has a limited number of deposit addresses', async () => {
  const customer = await newCustomer(service)
  const first = await giveAddress(customer)
  await service.db.query(
    `insert into deposit_addresses (customer_id, id, profile_id, crypto_network, address, conversion_target_asset, created_at)
     select customer_id, gen_random_uuid(), profile_id, crypto_network, 'copy ' || n, conversion_target_asset, created_at
     from deposit_addresses cross join generate_series(2, $2) as n
     where id = $1`,
    [first.id, ADDRESSES_PER_PROFILE_MAX],
  )
  const asked = { profile_id: customer.profile_id, crypto_network: 'ETHEREUM' }
  expect(await customer.call('POST', '/v2/transfer/deposit-addresses', asked)).toMatchObject({
    status: 400,
    body: { detail: `profile_id ${customer.profile_id} has 10000 deposit addresses, the most allowed` },
  })
})

test('each reason for which a deposit waits can be stored', async () => {
  const reasons: Record<DepositWaitingReason, true> = {
    ...{ FAILED: true, BELOW_MINIMUM: true, SECOND_NODE: true, ONE_NODE: true, CONFIRMATIONS: true },
    ...{ NODES_DISAGREE: true, SCREENING: true, FORGED: true, HAS_TOKENS: true },
  }
  const { rows } = await service.db.query<{ text: string }>(
    `select pg_get_constraintdef(oid) as text from pg_constraint where conname = 'incoming_transfers_reason'`,
  )
  const stored = [...rows[0]!.text.matchAll(/'([A-Z_]+)'/g)].map(([, reason]) => reason)
  expect(stored).toEqual(expect.arrayContaining(Object.keys(reasons)))
})

test('in live mode a deposit without a block is verified, too', async () => {
  const place = await giveAddress(await newCustomer(service))
  const { networks } = networkOf([arrivalAt(place.address)])
  const detail = 'the second node cannot tell'
  const adapter: NetworkAdapter = {
    ...networks.get('ETHEREUM')!,
    verifyDeposits: async (found) => found.map(() => ({ verdict: 'WAITS', detail, secondNode: true })),
  }
  const live = { ...service, settings: { ...service.settings, mode: 'live' as const } }
  const { credited, waiting } = await creditDepositsOn(live, 'ETHEREUM', adapter)
  expect([credited, waiting.get('SECOND_NODE')]).toEqual([0, 1])
  await hurry(service.db)
  expect(await creditDepositsOn(service, 'ETHEREUM', adapter)).toMatchObject({ credited: 1 })
})
