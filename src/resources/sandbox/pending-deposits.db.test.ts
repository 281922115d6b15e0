/*
 * Deposits of a sandbox that do not arrive at once. Invariants:
 * 1. a PENDING or FAILED deposit has no entries and changes no balance;
 * 2. a PENDING deposit ends once, COMPLETED or FAILED, under the same id, and each status has one event;
 * 3. a deposit of any other amount is credited before the answer, as ever;
 * 4. the worker's look names each network whose round finds something, and none where everything has ended.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { entriesOf, newCustomer, type TestCustomer, ownTestService } from '../../../test/support.ts'
import { hurry } from '../../../test/work-off.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { MAGIC_AMOUNTS } from '../../networks/simulated/magic-amounts.ts'
import { runOrchestrations } from '../orchestrations/run-orchestrations.ts'
import type { DepositAddress } from '../../money/records/deposit-address.ts'
import { creditDepositsOn } from '../../rails/deposits/credit-deposits.ts'
import { networksWithDeposits } from '../../rails/deposits/incoming-transfers.ts'
import { endSimulatedWires } from '../../rails/wires/pending-wires.ts'
import { seeDepositsOn } from '../../rails/deposits/see-deposits.ts'
import { settleWithdrawals } from '../../rails/payouts/settle-withdrawals.ts'
import { verify } from '../../money/verify/verify.ts'
import { refusedWith } from '../../../test/matchers.ts'
import { availableOf } from '../../../test/payouts.ts'

let customer: TestCustomer
let address: string
const service = await ownTestService({ BURSAR_SIMULATED_CONFIRMATION_MS: '60000' })
beforeEach(async () => {
  customer = await newCustomer(service)
  const { body } = await customer.call<DepositAddress>('POST', '/v2/transfer/deposit-addresses', {
    profile_id: customer.profile_id,
    crypto_network: 'ETHEREUM',
  })
  ;({ address } = body)
  await round()
})
afterEach(async () => {
  expect((await verify(service.db)).disagreements).toEqual([])
  await confirm()
  await round()
  const found = await networksWithDeposits(service.db)
  const ended = await endSimulatedWires(service, service.networks.get('WIRE')!)
  if (ended > 0) expect(found).toContain('WIRE')
  expect(await networksWithDeposits(service.db)).not.toContain('WIRE')
})

/** One round of the worker on the network. */
async function round() {
  const adapter = service.networks.get('ETHEREUM')!
  await hurry(service.db)
  const found = await networksWithDeposits(service.db)
  const { credited } = await creditDepositsOn(service, 'ETHEREUM', adapter)
  const moved = { credited, ...(await seeDepositsOn(service, 'ETHEREUM', adapter)) }
  if (moved.credited + moved.seen + moved.failed > 0) expect(found).toContain('ETHEREUM')
  return moved
}

/** Lets the time of the confirmation pass on the simulated chain. */
const confirm = () =>
  service.owner.query(`
    update simulated_chain set broadcast_at = broadcast_at - interval '2 minutes';
    update seen_deposits set block_number = block_number - 120000 where state = 'PENDING'`)

async function deposit(amount: string, changes: object = {}): Promise<string> {
  const { status, body } = await customer.call<{ activity_id: string }>(
    'POST',
    `/v2/sandbox/profiles/${customer.profile_id}/deposit`,
    { asset: 'USDP', amount, crypto_network: 'ETHEREUM', crypto_address: address, ...changes },
  )
  expect({ status, body }).toMatchObject({ status: 200 })
  return body.activity_id
}

const read = async (id: string) => (await customer.call<Transfer>('GET', `/v2/transfer/transfers/${id}`)).body
const available = (asset = 'USDP') => availableOf(customer, asset)
const eventsOf = async (id: string) =>
  (await customer.call<{ items: { type: string }[] }>('GET', `/v2/events?object_id=${id}`)).body.items.map(
    ({ type }) => type.split('.').at(-1),
  )

describe('over a simulated network,', () => {
  test('a deposit of a magic amount is PENDING, and COMPLETED when it is confirmed', async () => {
    const id = await deposit(MAGIC_AMOUNTS.COMPLETED_LATER)
    const pending = await read(id)
    expect(pending).toMatchObject({
      ...{ type: 'CRYPTO_DEPOSIT', status: 'PENDING', amount: '9000.01', destination_address: address },
      ...{ crypto_network: 'ETHEREUM', crypto_tx_index: '0', notional_value: '9000.01' },
    })
    expect(await available()).toBe('0')
    expect(await entriesOf(service.db, id)).toEqual([])
    expect(await round()).toEqual({ credited: 0, seen: 0, failed: 0 })
    await confirm()
    expect(await round()).toEqual({ credited: 1, seen: 0, failed: 0 })
    const { updated_at } = await read(id)
    expect(await read(id)).toEqual({ ...pending, status: 'COMPLETED', updated_at })
    expect(await available()).toBe('9000.01')
    expect(await round()).toEqual({ credited: 0, seen: 0, failed: 0 })
    expect(await networksWithDeposits(service.db)).not.toContain('ETHEREUM')
    expect(await eventsOf(id)).toEqual(['pending', 'completed'])
    const { rows } = await service.db.query(
      `select action, actor_type from audit_log where customer_id = $1 and (subject_id = $2 or $3 = any (subject_ids)) order by id`,
      [customer.customer_id, id, id],
    )
    expect(rows).toEqual([
      { action: 'transfer.create', actor_type: 'API_CLIENT' },
      { action: 'transfer.complete', actor_type: 'WORKER' },
    ])
  })

  test('the block of another magic amount is taken back: FAILED, and nothing is credited', async () => {
    const id = await deposit(MAGIC_AMOUNTS.FAILED_LATER, { amount: '9000.020' })
    const other = await deposit(MAGIC_AMOUNTS.COMPLETED_LATER)
    expect((await read(id)).status).toBe('PENDING')
    expect(await round()).toEqual({ credited: 0, seen: 0, failed: 0 })
    await confirm()
    expect(await round()).toEqual({ credited: 1, seen: 0, failed: 1 })
    expect((await read(id)).status).toBe('FAILED')
    expect((await read(other)).status).toBe('COMPLETED')
    expect(await round()).toEqual({ credited: 0, seen: 0, failed: 0 })
    expect(await available()).toBe('9000.01')
    expect(await entriesOf(service.db, id)).toEqual([])
    expect(await eventsOf(id)).toEqual(['pending', 'failed'])
  })

  test('a withdrawal to a deposit address of ours arrives as on a real chain', async () => {
    await deposit('50')
    const payer = await newCustomer(service)
    await payer.call('POST', `/v2/sandbox/profiles/${payer.profile_id}/deposit`, {
      asset: 'USDP',
      amount: '99',
    })
    const { body: sent } = await payer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
      ...{ profile_id: payer.profile_id, asset: 'USDP', crypto_network: 'ETHEREUM', amount: '10' },
      destination_address: address,
    })
    await settleWithdrawals(service.db, service.networks)
    await hurry(service.db)
    await settleWithdrawals(service.db, service.networks)
    expect(await round()).toEqual({ credited: 0, seen: 1, failed: 0 })
    const { items } = (
      await customer.call<{ items: Transfer[] }>('GET', '/v2/transfer/transfers?statuses=PENDING')
    ).body
    expect(items).toMatchObject([{ type: 'CRYPTO_DEPOSIT', amount: '10' }])
    expect(await available()).toBe('50')
    await confirm()
    expect(await round()).toEqual({ credited: 1, seen: 0, failed: 0 })
    expect(await available()).toBe('60')
    await settleWithdrawals(service.db, service.networks)
    const paid = (await payer.call<Transfer>('GET', `/v2/transfer/transfers/${sent.id}`)).body
    const { crypto_tx_hash } = paid
    expect(paid.status).toBe('COMPLETED')
    expect(await read(items[0]!.id)).toMatchObject({ status: 'COMPLETED', crypto_tx_hash })
  })

  test('a deposit waits for those before it whose scan is late, and does not fail', async () => {
    const id = await deposit(MAGIC_AMOUNTS.COMPLETED_LATER)
    await confirm()
    // Without a scan: another worker has the lease.
    const adapter = service.networks.get('ETHEREUM')!
    expect(await seeDepositsOn(service, 'ETHEREUM', adapter)).toEqual({ seen: 0, failed: 0 })
    expect((await read(id)).status).toBe('PENDING')
    expect(await round()).toMatchObject({ credited: 1, failed: 0 })
  })

  test('other amounts, and deposits without an address, are credited before the answer', async () => {
    const ids = [
      await deposit('9000.011'),
      await deposit('9000.03'),
      await deposit(MAGIC_AMOUNTS.FAILED_LATER, { crypto_address: undefined }),
    ]
    for (const id of ids) expect((await read(id)).status).toBe('COMPLETED')
    expect(await round()).toEqual({ credited: 0, seen: 0, failed: 0 })
  })

  test('at most 50 deposits of an address are PENDING: a further one is refused, and changes nothing', async () => {
    for (let n = 1; n <= 50; n++) await deposit(MAGIC_AMOUNTS.COMPLETED_LATER)
    const refused = await customer.call('POST', `/v2/sandbox/profiles/${customer.profile_id}/deposit`, {
      ...{ asset: 'USDP', amount: '9000.01', crypto_network: 'ETHEREUM', crypto_address: address },
    })
    expect(refused).toMatchObject(refusedWith(429, 'are PENDING'))
    const { rows } = await service.db.query<{ count: string }>(
      `select count(*)::text as count from simulated_chain where arrives and dropped_at is null`,
    )
    await confirm()
    expect(rows).toEqual([{ count: '50' }])
    expect(await round()).toMatchObject({ credited: 50, failed: 0 })
  })
})

describe('by wire,', () => {
  const wire = async (amount: string) =>
    (
      await customer.call<{ activity_id: string }>(
        'POST',
        `/v2/sandbox/profiles/${customer.profile_id}/deposit`,
        { asset: 'USD', amount },
      )
    ).body.activity_id
  const round = () => endSimulatedWires(service, service.networks.get('WIRE')!)

  test('a magic amount is PENDING, and COMPLETED when the bank credits it, once', async () => {
    const id = await wire(MAGIC_AMOUNTS.COMPLETED_LATER)
    const pending = await read(id)
    expect(pending).toMatchObject({ type: 'WIRE_DEPOSIT', status: 'PENDING', amount: '9000.01' })
    expect(await round()).toBe(0)
    expect(await entriesOf(service.db, id)).toEqual([])
    expect(await available('USD')).toBe('0')
    await confirm()
    expect(await Promise.all([round(), round()])).toContain(1)
    const { updated_at } = await read(id)
    expect(await read(id)).toEqual({ ...pending, status: 'COMPLETED', updated_at })
    expect(await entriesOf(service.db, id)).toEqual([
      'CREATED bank USD -9000.01',
      'CREATED profile USD 9000.01',
    ])
    expect(await available('USD')).toBe('9000.01')
    // Like a process that died before it marked the wire.
    await service.owner.query(`update simulated_chain set arrives = true where crypto_network = 'WIRE'`)
    expect(await round()).toBe(1)
    expect(await available('USD')).toBe('9000.01')
    expect(await eventsOf(id)).toEqual(['pending', 'completed'])
  })

  test('another magic amount is sent back: FAILED, and nothing is credited', async () => {
    const id = await wire(MAGIC_AMOUNTS.FAILED_LATER)
    await confirm()
    expect(await round()).toBe(1)
    expect((await read(id)).status).toBe('FAILED')
    expect(await round()).toBe(0)
    expect(await available('USD')).toBe('0')
    expect(await eventsOf(id)).toEqual(['pending', 'failed'])
    const { rows } = await service.db.query(
      `select action, actor_type from audit_log where customer_id = $1 and subject_id = $2 order by id`,
      [customer.customer_id, id],
    )
    expect(rows).toEqual([
      { action: 'transfer.create', actor_type: 'API_CLIENT' },
      { action: 'transfer.fail', actor_type: 'WORKER' },
    ])
  })

  describe('Initiate Sandbox Fiat Deposit', () => {
    test('the wire of a memo is found as documented: by its ref_id, and as the newest of its profile', async () => {
      const { body: to } = await customer.call<{ memo_id: string }>(
        'POST',
        '/v2/transfer/fiat-deposit-instructions',
        { profile_id: customer.profile_id, fiat_network: 'WIRE', metadata: { desk: 'B' } },
      )
      const found = async (query: string) =>
        (await customer.call<{ items: Transfer[] }>('GET', `/v2/transfer/transfers?${query}`)).body.items
      for (const [ref_id, amount] of [
        ['first wire', '10'],
        ['second wire', MAGIC_AMOUNTS.COMPLETED_LATER],
        ['third wire', '30'],
      ]) {
        const sent = await customer.call('POST', '/v2/sandbox/fiat-deposits', {
          ...{ amount, asset: 'USD', memo_id: to.memo_id, fiat_network_instructions: { wire: {} } },
          ...(amount !== MAGIC_AMOUNTS.COMPLETED_LATER && { ref_id }),
        })
        expect(sent).toMatchObject({ status: 200, body: {} })
        const newest = await found(`type=WIRE_DEPOSIT&profile_ids=${customer.profile_id}&limit=1`)
        expect(newest).toMatchObject([{ amount, memo: to.memo_id }])
        const named = await found(`ref_ids=${encodeURIComponent(ref_id!)}`)
        expect(named).toEqual(amount === MAGIC_AMOUNTS.COMPLETED_LATER ? [] : newest)
        // Also while it is PENDING.
        for (const filter of [`memo=${to.memo_id}`, 'metadata.desk=B'])
          expect((await found(filter))[0], filter).toEqual(newest[0])
      }
      expect(await found('metadata.desk=B')).toHaveLength(3)
    })

    test('a wire with a memo starts the orchestration of its rule when it is credited, not before', async () => {
      const { body: to } = await customer.call<{ id: string }>('POST', '/v2/profiles', { nickname: 'to' })
      const { body } = await customer.call<{ rule: { source: { fiat: { memo_id: string } } } }>(
        'POST',
        '/v2/orchestration/rules',
        {
          ...{ ref_id: `rule-${to.id}`, profile_id: customer.profile_id },
          ...{ source_asset: 'USD', destination_asset: 'USDG', source: { fiat: { network: 'WIRE' } } },
          destination: { profile: { profile_id: to.id } },
        },
      )
      const { memo_id } = body.rule.source.fiat
      const sent = await customer.call('POST', '/v2/sandbox/fiat-deposits', {
        ...{ amount: MAGIC_AMOUNTS.COMPLETED_LATER, asset: 'USD', memo_id },
        fiat_network_instructions: { wire: { account_number: '000123456789' } },
      })
      expect(sent).toMatchObject({ status: 200, body: {} })
      const [pending] = (
        await customer.call<{ items: Transfer[] }>('GET', '/v2/transfer/transfers?statuses=PENDING')
      ).body.items
      expect(pending).toMatchObject({ type: 'WIRE_DEPOSIT', memo: memo_id })
      expect(pending).not.toHaveProperty('group_id')
      await confirm()
      expect(await round()).toBe(1)
      expect(await read(pending!.id)).toMatchObject({
        status: 'COMPLETED',
        group_id: expect.any(String) as string,
      })
      await runOrchestrations(service.db, { ...service, macs: service.ledger.macs })
      expect(await available('USD')).toBe('0')
    })
  })
})
