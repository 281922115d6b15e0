/*
 * A deposit is shown before it is credited, as a PENDING transfer that moves no money. Invariants, whatever a node
 * answers:
 * 1. PENDING and FAILED deposits have no entries, change no balance and start no orchestration;
 * 2. a deposit is credited once, by its own PENDING transfer if there is one;
 * 3. a removed deposit becomes FAILED, and no shown deposit stays PENDING forever;
 * 4. a lying node can cause a limited number of records only.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  everyTable,
  MASTER_KEYS,
  movedBy,
  newCustomer,
  type TestCustomer,
  ownTestService,
} from '../../../test/support.ts'
import { dieAtEachStep } from '../../../test/failures.ts'
import { availableOf } from '../../../test/payouts.ts'
import { hurry } from '../../../test/work-off.ts'
import { openDatabase } from '../../db/database.ts'
import { Ledger } from '../../money/movements/queue.ts'
import { RowMacs } from '../../audit/sealed-rows.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import type { FoundDeposit } from '../../networks/found-deposits.ts'
import type { DepositAddress } from '../../money/records/deposit-address.ts'
import { verify } from '../../money/verify/verify.ts'
import { creditDepositsOn } from './credit-deposits.ts'
import { seeDepositsOn } from './see-deposits.ts'

let customer: TestCustomer
let address: string
const service = await ownTestService()
beforeEach(async () => {
  chain = new Map()
  height = 100n
  customer = await newCustomer(service)
  address = await newAddress()
  await round()
})
afterEach(async () => {
  expect((await verify(service.db)).disagreements).toEqual([])
  for (const table of ['network_cursors', 'incoming_transfers', 'seen_deposits'])
    await service.owner.query(`delete from ${table}`)
  await service.owner.query('delete from freezes; delete from customer_freezes')
})

async function newAddress(changes: object = {}): Promise<string> {
  const { body } = await customer.call<DepositAddress>('POST', '/v2/transfer/deposit-addresses', {
    profile_id: customer.profile_id,
    crypto_network: 'ETHEREUM',
    ...changes,
  })
  return body.address
}

/** A chain in memory: its deposits by block, and its newest block. Three confirmations suffice. */
const DEPTH = 3n
let chain: Map<bigint, Omit<FoundDeposit, 'block'>[]>
let height: bigint
const inBlocks = (first: bigint, last: bigint) =>
  [...chain].flatMap(([number, deposits]) =>
    number < first || number > last
      ? []
      : deposits.map((one) => ({ ...one, block: { number, hash: `0x${number}` } })),
  )

const adapter = (changes: Partial<NetworkAdapter> = {}): NetworkAdapter => ({
  ...service.networks.get('ETHEREUM')!,
  isSimulated: undefined,
  scanDeposits: async (cursor) => {
    const last = height - DEPTH + 1n
    return { cursor: String(last), found: cursor === null ? [] : inBlocks(BigInt(cursor) + 1n, last) }
  },
  seeDeposits: async (cursor) => ({
    seen: inBlocks(BigInt(cursor) + 1n, height),
    readUpTo: BigInt(cursor),
  }),
  ...changes,
})

let count = 0
const arrival = (changes: Partial<FoundDeposit> = {}) => ({
  address,
  asset: 'USDP',
  amount: '25.5',
  crypto_tx_hash: `0x${String(++count).padStart(64, '0')}`,
  crypto_tx_index: '0',
  ...changes,
})

/** Adds a block with these deposits. */
function mine(...deposits: Omit<FoundDeposit, 'block'>[]): bigint {
  chain.set(++height, deposits)
  return height
}

/** One round of the worker on the network. */
async function round(changes: Partial<NetworkAdapter> = {}) {
  await hurry(service.db)
  const { credited } = await creditDepositsOn(service, 'ETHEREUM', adapter(changes))
  return { credited, ...(await seeDepositsOn(service, 'ETHEREUM', adapter(changes))) }
}

const transfers = async (of = customer, query = '') =>
  (await of.call<{ items: Transfer[] }>('GET', `/v2/transfer/transfers?order=ASC${query}`)).body.items
const statuses = async () => (await transfers()).map(({ status }) => status)
const available = (asset = 'USDP') => availableOf(customer, asset)

test('a deposit is PENDING from its first confirmation, and COMPLETED under the same id when confirmed', async () => {
  const place = await newAddress({ metadata: { order: '1041' }, conversion_target_asset: 'USD' })
  mine(arrival({ address: place }))
  expect(await round()).toEqual({ credited: 0, seen: 1, failed: 0 })
  const [pending] = (await transfers()) as [Transfer]
  expect(pending).toMatchObject({
    ...{ type: 'CRYPTO_DEPOSIT', direction: 'CREDIT', status: 'PENDING', amount: '25.5', total: '25.5' },
    ...{ asset: 'USDP', balance_asset: 'USD', auto_conversion: {}, notional_value: '25.5' },
    ...{ destination_address: place, crypto_network: 'ETHEREUM', metadata: { order: '1041' } },
  })
  expect(pending).not.toHaveProperty('group_id')
  expect(await available('USD')).toBe('0')
  expect(await transfers(customer, '&statuses=COMPLETED')).toEqual([])
  expect(await transfers(customer, '&statuses=PENDING&type=CRYPTO_DEPOSIT')).toEqual([pending])
  expect(await transfers(customer, '&metadata.order=1041')).toEqual([pending])
  expect((await customer.call('POST', `/v2/transfer/transfers/${pending.id}/cancel`)).status).toBe(409)

  // Further rounds change nothing.
  const before = await everyTable(service.db)
  expect(await seeDepositsOn(service, 'ETHEREUM', adapter())).toEqual({ seen: 0, failed: 0 })
  expect(await everyTable(service.db)).toEqual(before)
  mine()
  expect(await round()).toMatchObject({ credited: 0, seen: 0, failed: 0 })
  mine()
  expect(await round()).toEqual({ credited: 1, seen: 0, failed: 0 })
  const [completed] = (await transfers()) as [Transfer]
  expect(completed).toEqual({ ...pending, status: 'COMPLETED', updated_at: completed.updated_at })
  expect(completed.updated_at > pending.updated_at).toBe(true)
  expect(await available('USD')).toBe('25.5')
  expect(await round()).toEqual({ credited: 0, seen: 0, failed: 0 })
  expect(await statuses()).toEqual(['COMPLETED'])
  expect(await transfers(customer, '&metadata.order=1041')).toEqual([completed])
})

test('its orchestration starts only when it is credited', async () => {
  const made = await customer.call<{ rule: { source: { crypto: { address: string } } } }>(
    'POST',
    '/v2/orchestration/rules',
    {
      ref_id: 'rule',
      profile_id: customer.profile_id,
      source_asset: 'USDP',
      destination_asset: 'USD',
      source: { crypto: { network: 'ETHEREUM' } },
    },
  )
  mine(arrival({ address: made.body.rule.source.crypto.address }))
  await round()
  const started = async () =>
    (await customer.call<{ items: { source_transfer: object }[] }>('GET', '/v2/orchestration/orchestrations'))
      .body.items
  expect(await started()).toEqual([])
  mine()
  mine()
  await round()
  const [transfer] = (await transfers()) as [Transfer]
  expect(transfer.status).toBe('COMPLETED')
  expect(await started()).toMatchObject([
    { id: transfer.group_id, source_transfer: { transfer_id: transfer.id } },
  ])
})

test('verify finds a deposit whose transfer disagrees with its entries or with its recorded sight', async () => {
  mine(arrival())
  await round()
  const [{ id }] = (await transfers()) as [Transfer]
  const found = async (status: string) => {
    await service.owner.query('update transfers set status = $2 where id = $1', [id, status])
    return [...new Set((await verify(service.db)).disagreements.map(({ rule }) => rule))]
  }
  const POSTINGS = 'every transfer has the postings of its status'
  const SEEN = 'every deposit that was seen has the state of its transfer'
  const EVENTS = 'every change of a status has its event, and every event its change'
  expect(await found('COMPLETED')).toEqual([POSTINGS, SEEN, EVENTS])
  expect(await found('FAILED')).toEqual([SEEN, EVENTS])
  expect(await found('PENDING')).toEqual([])
  mine()
  mine()
  await round()
  // The money has arrived, and no transfer has credited it.
  const CREDITED = 'every credited deposit has its completed transfer'
  expect(await found('PENDING')).toEqual([POSTINGS, SEEN, CREDITED, EVENTS])
  expect(await found('FAILED')).toEqual([POSTINGS, SEEN, CREDITED, EVENTS])
  expect(await found('COMPLETED')).toEqual([])
})

describe('a removed deposit', () => {
  test('is FAILED once its block is confirmed without it; mined again, it is credited once', async () => {
    const deposit = arrival()
    const block = mine(deposit)
    await round()
    chain.delete(block)
    mine()
    // The node may be on a fork: nothing is certain yet.
    expect(await round()).toMatchObject({ failed: 0 })
    expect(await statuses()).toEqual(['PENDING'])
    mine()
    expect(await round()).toMatchObject({ credited: 0, failed: 1 })
    expect(await statuses()).toEqual(['FAILED'])
    expect(await available()).toBe('0')

    mine(deposit)
    expect(await round()).toMatchObject({ seen: 1 })
    mine()
    mine()
    expect(await round()).toEqual({ credited: 1, seen: 0, failed: 0 })
    expect(await statuses()).toEqual(['FAILED', 'COMPLETED'])
    expect(await available()).toBe('25.5')
  })

  test('in another block stays the same transfer', async () => {
    const deposit = arrival()
    const block = mine(deposit)
    await round()
    chain.delete(block)
    mine()
    mine(deposit)
    expect(await round()).toMatchObject({ seen: 0, failed: 0 })
    mine()
    mine()
    expect(await round()).toEqual({ credited: 1, seen: 0, failed: 0 })
    expect(await statuses()).toEqual(['COMPLETED'])
  })

  test('in another block with another index is another transfer, and never two are PENDING', async () => {
    const deposit = arrival({ crypto_tx_index: '5' })
    const block = mine(deposit)
    await round()
    chain.delete(block)
    mine({ ...deposit, crypto_tx_index: '3' })
    expect(await round()).toMatchObject({ seen: 1 })
    expect(await statuses()).toEqual(['FAILED', 'PENDING'])
    mine()
    mine()
    await round()
    expect(await statuses()).toEqual(['FAILED', 'COMPLETED'])
    expect(await available()).toBe('25.5')
  })

  test('is not FAILED while unconfirmed blocks are not scanned', async () => {
    const block = mine(arrival())
    await round()
    chain.delete(block)
    mine()
    mine()
    const isBehind = async (cursor: string) => ({ seen: [], readUpTo: BigInt(cursor), isBehind: true })
    expect(await round({ seeDeposits: isBehind })).toMatchObject({ failed: 0 })
    expect(await round()).toMatchObject({ failed: 1 })
  })
})

describe('deposits that never stay PENDING', () => {
  test('a deposit below the minimum is not shown before it is credited', async () => {
    const minimumDeposit = () => '20'
    mine(arrival({ amount: '15' }), arrival({ amount: '20', address: await newAddress() }))
    expect(await round({ minimumDeposit })).toMatchObject({ seen: 1 })
    mine()
    mine()
    expect(await round({ minimumDeposit })).toMatchObject({ credited: 1 })
    expect((await transfers()).map(({ amount, status }) => [amount, status])).toEqual([['20', 'COMPLETED']])
    // Together with another small deposit it reaches the minimum.
    mine(arrival({ amount: '5' }))
    expect(await round({ minimumDeposit })).toMatchObject({ seen: 0 })
    mine()
    mine()
    expect(await round({ minimumDeposit })).toMatchObject({ credited: 2 })
    expect(await available()).toBe('40')
  })

  test('a deposit that cannot be credited is FAILED after three days, and credited as another transfer', async () => {
    mine(arrival())
    await round()
    mine()
    mine()
    const verifyDeposits: NetworkAdapter['verifyDeposits'] = async (found) =>
      found.map(() => ({ verdict: 'WAITS', detail: 'the second node does not answer', secondNode: true }))
    await round({ verifyDeposits })
    expect(await statuses()).toEqual(['PENDING'])
    await service.owner.query(`update seen_deposits set seen_at = ${movedBy('seen_at', '-72 hours')}`)
    expect(await round({ verifyDeposits })).toMatchObject({ failed: 1, seen: 0 })
    expect(await statuses()).toEqual(['FAILED'])
    expect(await round()).toMatchObject({ credited: 1 })
    expect(await statuses()).toEqual(['FAILED', 'COMPLETED'])
    expect(await available()).toBe('25.5')
  })

  test('a transfer of an unknown asset, of no amount or to an unknown address is not shown', async () => {
    mine(
      arrival({ asset: 'SPAM' }),
      arrival({ amount: '0' }),
      arrival({ address: '0x000000000000000000000000000000000000dEaD' }),
    )
    expect(await round()).toMatchObject({ seen: 0 })
  })
})

describe('simultaneously', () => {
  test('two workers show and credit it once', async () => {
    const other = openDatabase(service.url, { max: 4, onError: () => undefined })
    try {
      const contexts = [service.db, other].map((db) => ({
        db,
        ledger: new Ledger(db, { macs: new RowMacs(MASTER_KEYS) }),
        settings: service.settings,
      }))
      for (let block = 0; block < 12; block++) {
        if (block < 8) mine(arrival({ amount: '1' }), arrival({ amount: '1' }))
        else mine()
        await hurry(service.db)
        await Promise.all(
          [...contexts, ...contexts].flatMap((context) => [
            creditDepositsOn(context, 'ETHEREUM', adapter()),
            seeDepositsOn(context, 'ETHEREUM', adapter()),
          ]),
        )
      }
      expect(await available()).toBe('16')
      expect(await statuses()).toEqual(Array(16).fill('COMPLETED'))
    } finally {
      await other.end()
    }
  })

  test('a deposit whose sight is recorded during its credit is credited once', async () => {
    const deposit = arrival()
    const block = mine(deposit)
    mine()
    mine()
    const { ledger } = service
    let late = 1
    // A slow scan records the PENDING transfer after the credit has looked for one.
    const racing = {
      ...service,
      ledger: {
        macs: ledger.macs,
        async submit(...args: Parameters<typeof ledger.submit>) {
          const decide = args[1].decide
          if (late-- > 0)
            args[1] = {
              ...args[1],
              decide(view) {
                return decide({
                  ...view,
                  get: (kind, key) => (isArrival(key) ? undefined : view.get(kind, key)),
                })
              },
            }
          return ledger.submit(...args)
        },
      } as unknown as Ledger,
    }
    const isArrival = (key: unknown) => typeof key === 'object' && key !== null && 'crypto_tx_hash' in key
    const seeDeposits = async () => ({
      seen: [{ ...deposit, block: { number: block, hash: '0x1' } }],
      readUpTo: 90n,
    })
    expect(await seeDepositsOn(service, 'ETHEREUM', adapter({ seeDeposits }))).toMatchObject({ seen: 1 })
    await creditDepositsOn(racing, 'ETHEREUM', adapter())
    expect(late).toBeLessThan(1)
    expect(await statuses()).toEqual(['COMPLETED'])
    expect(await available()).toBe('25.5')
    const { rows } = await service.db.query<{ state: string }>('select state from incoming_transfers')
    expect(rows).toEqual([{ state: 'CREDITED' }])
  })

  test('a deposit that is confirmed with another amount than shown is another transfer', async () => {
    const deposit = arrival()
    const block = mine(deposit)
    await round()
    // The transaction has another effect in the replacing block.
    chain.set(block, [{ ...deposit, amount: '7' }])
    mine()
    mine()
    expect(await round()).toMatchObject({ credited: 1 })
    expect((await transfers()).map(({ amount, status }) => [amount, status])).toEqual([
      ['25.5', 'FAILED'],
      ['7', 'COMPLETED'],
    ])
    expect(await available()).toBe('7')
  })
})

test.each(['BEFORE', 'AFTER'] as const)(
  'a worker that dies %s any step shows and credits a deposit once, and fails a removed deposit',
  async (failure) => {
    await dieAtEachStep(failure, 30, async (failures) => {
      customer = await newCustomer(service)
      address = await newAddress()
      const db = failures.database(service.db)
      const context = {
        db,
        ledger: new Ledger(db, { macs: new RowMacs(MASTER_KEYS) }),
        settings: service.settings,
      }
      const work = async () => {
        await creditDepositsOn(context, 'ETHEREUM', adapter())
        await seeDepositsOn(context, 'ETHEREUM', adapter())
      }
      const kept = arrival()
      const block = mine(kept, arrival({ amount: '7' }))
      const life = async () => {
        await hurry(service.db)
        await work()
        chain.set(block, [kept])
        mine()
        mine()
        await work()
      }
      await life().catch((error: unknown) => {
        if (!failures.died) throw error
      })
      chain.set(block, [kept])
      mine()
      mine()
      await round()
      expect(await round()).toEqual({ credited: 0, seen: 0, failed: 0 })
      expect(await available()).toBe('25.5')
      const ended = (await transfers()).map(({ amount, status }) => `${amount} ${status}`)
      expect(ended.filter((one) => one !== '7 FAILED')).toEqual(['25.5 COMPLETED'])
      expect(ended.length).toBeLessThanOrEqual(2)
    })
  },
)

describe('a node that lies', () => {
  test('causes at most 50 open records for an address and 1,000 for the network, and no credit', async () => {
    const lies = (addresses: string[], each: number) =>
      addresses.flatMap((one) => Array.from({ length: each }, () => arrival({ address: one })))
    mine(...lies([address], 60))
    expect(await round()).toMatchObject({ seen: 50 })
    const addresses = await Promise.all(Array.from({ length: 25 }, () => newAddress()))
    mine(...lies(addresses, 45))
    expect(await round()).toMatchObject({ seen: 950 })
    expect(await available()).toBe('0')
    // New lies after these are removed cause no more records: the limit of a day is a thousand.
    chain.clear()
    mine()
    mine()
    mine()
    expect(await round()).toMatchObject({ failed: 1_000, credited: 0 })
    mine(...lies(addresses, 45))
    expect(await round()).toMatchObject({ seen: 0 })
    // An honest deposit among the lies is still credited.
    chain.clear()
    mine(arrival())
    mine()
    mine()
    expect(await round()).toMatchObject({ credited: 1 })
    await service.owner.query(`update seen_deposits set ended_at = ${movedBy('ended_at', '-1 day')}`)
    mine(arrival())
    expect(await round()).toMatchObject({ seen: 1 })
  })

  test('that repeats one output after each removal causes three records of it', async () => {
    const deposit = arrival()
    for (let time = 1; time <= 5; time++) {
      const block = mine(deposit)
      expect(await round()).toMatchObject({ seen: time <= 3 ? 1 : 0 })
      chain.delete(block)
      for (let blocks = 0; blocks < 3; blocks++) mine()
      expect(await round()).toMatchObject({ failed: time <= 3 ? 1 : 0 })
    }
    mine(deposit)
    mine()
    mine()
    expect(await round()).toMatchObject({ credited: 1 })
    expect(await statuses()).toEqual(['FAILED', 'FAILED', 'FAILED', 'COMPLETED'])
  })
})

test('a credited deposit that a deep reorganisation removed is not shown again when it returns', async () => {
  const deposit = arrival()
  mine(deposit)
  mine()
  mine()
  expect(await round()).toMatchObject({ credited: 1 })
  await service.db.query(`update incoming_transfers set state = 'REORGANISED'`)
  mine({ ...deposit, crypto_tx_index: '9' })
  expect(await round()).toMatchObject({ seen: 0 })
  mine()
  mine()
  expect(await round()).toMatchObject({ credited: 0 })
  expect(await statuses()).toEqual(['COMPLETED'])
})
