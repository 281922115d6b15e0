/*
 * What has come in on a network is credited: once, however often it is read and by however many workers; nothing else
 * is held up by what cannot be credited; and what Bursar itself sends to an address that it gave out arrives there.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fund, newCustomer, startTestService, withdrawalOf } from '../../test/support.ts'
import type { TestCustomer, TestService } from '../../test/support.ts'
import { openDatabase } from '../db/database.ts'
import { Ledger } from '../ledger/ledger.ts'
import type { DepositAddress } from '../ledger/records/deposit-address.ts'
import type { Transfer } from '../ledger/records/transfer.ts'
import { verify } from '../ledger/verify.ts'
import type { Arrival, NetworkAdapter, Networks } from '../networks/networks.ts'
import { creditDeposits } from './credit-deposits.ts'
import { settleWithdrawals } from './settle-withdrawals.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

/** A network that gives these arrivals every time, with a cursor that counts its calls. */
function networkOf(arrivals: Arrival[]): { networks: Networks; cursors: (string | null)[] } {
  const cursors: (string | null)[] = []
  const read: NetworkAdapter['arrivals'] = async (cursor) => {
    cursors.push(cursor)
    return { cursor: String(Number(cursor ?? 0) + 1), arrivals }
  }
  const adapter = { ...service.networks.get('ETHEREUM')!, arrivals: read }
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
const arrivalAt = (address: string, changes: Partial<Arrival> = {}): Arrival => ({
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

test('an arrival is credited to the profile of its address, with what the address says', async () => {
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

test('however often a block is read, and by several workers at once, it is credited once', async () => {
  const customer = await newCustomer(service)
  const { address } = await giveAddress(customer)
  const first = arrivalAt(address)
  const arrivals = [first, { ...first, crypto_tx_index: '1' }, arrivalAt(address, { amount: '1' })]
  const { networks, cursors } = networkOf(arrivals)
  const other = openDatabase(service.url, { max: 4, onError: () => undefined })
  try {
    const contexts = [service.db, other].map((db) => {
      return { db, ledger: new Ledger(db), networks, settings: service.settings }
    })
    const counts = await Promise.all([...contexts, ...contexts].map((context) => creditDeposits(context)))
    await creditDeposits(contexts[1]!)
    expect(counts.reduce((sum, count) => sum + count)).toBe(3)
  } finally {
    await other.end()
  }
  expect((await transfersOf(customer)).map(({ amount }) => amount)).toEqual(['25.5', '25.5', '1'])
  expect(cursors.length).toBeGreaterThan(1)
  expect(await cursorOf('ETHEREUM')).toBe(String(Number(cursors.at(-1)) + 1))
})

test('what is nothing, of no known asset or at no known address is passed over', async () => {
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

test('one that cannot be credited holds up no other, and is tried again', async () => {
  const customer = await newCustomer(service)
  const { address } = await giveAddress(customer)
  const before = await cursorOf('ETHEREUM')
  const failing = arrivalAt(address, { amount: '7' })
  const { networks } = networkOf([failing, arrivalAt(address, { amount: '8' })])
  const { ledger } = service
  const once = { submit: ledger.submit.bind(ledger), failed: false }
  const broken = {
    submit(...movement: Parameters<Ledger['submit']>) {
      if (once.failed) return once.submit(...movement)
      once.failed = true
      return Promise.reject(new Error('not this time'))
    },
  } as Ledger
  await expect(creditDeposits({ ...service, ledger: broken, networks })).rejects.toThrow('not read')
  expect((await transfersOf(customer)).map(({ amount }) => amount)).toEqual(['8'])
  expect(await cursorOf('ETHEREUM')).toBe(before)
  expect(await creditDeposits({ ...service, ledger: broken, networks })).toBe(1)
  expect((await transfersOf(customer)).map(({ amount }) => amount)).toEqual(['8', '7'])
})

test('a network that does not answer holds up no other', async () => {
  const customer = await newCustomer(service)
  const { address } = await giveAddress(customer)
  const silent = {
    ...service.networks.get('BASE')!,
    arrivals: () => Promise.reject(new Error('no answer')),
  }
  const { networks } = networkOf([arrivalAt(address)])
  await expect(
    creditDeposits({ ...service, networks: new Map([['BASE', silent], ...networks]) }),
  ).rejects.toThrow('1 networks')
  expect(await transfersOf(customer)).toHaveLength(1)
})

test('it sets off the rule that waits at the address', async () => {
  const customer = await newCustomer(service)
  const { body } = await customer.call<{ rule: { id: string; source: { crypto: { address: string } } } }>(
    'POST',
    '/v2/orchestration/rules',
    {
      ref_id: 'arrivals',
      profile_id: customer.profile_id,
      source_asset: 'USDP',
      destination_asset: 'USD',
      source: { crypto: { network: 'ETHEREUM' } },
    },
  )
  const { networks } = networkOf([arrivalAt(body.rule.source.crypto.address)])
  await creditDeposits({ ...service, networks })
  const list = await customer.call<{ items: object[] }>('GET', '/v2/orchestration/orchestrations')
  expect(list.body.items).toEqual([
    expect.objectContaining({ orchestration_rule_id: body.rule.id, source_amount: '25.5' }),
  ])
})

test('on the simulated networks, a withdrawal to an address that was given out arrives there, once', async () => {
  await service.db.query('delete from network_cursors')
  const [from, to] = [await newCustomer(service), await newCustomer(service)]
  await fund(from, '100')
  const { address } = await giveAddress(to)
  const sent = await from.call<Transfer>(
    'POST',
    '/v2/transfer/crypto-withdrawals',
    withdrawalOf(from, { destination_address: address.toLowerCase(), amount: '40' }),
  )
  await expect
    .poll(
      async () => {
        await settleWithdrawals(service.db, service.networks)
        await creditDeposits(service)
        return (await transfersOf(to)).map(({ type, amount }) => ({ type, amount }))
      },
      { timeout: 10_000 },
    )
    .toEqual([{ type: 'CRYPTO_DEPOSIT', amount: '40' }])
  await creditDeposits(service)
  const [arrived, ...others] = await transfersOf(to)
  expect(others).toEqual([])
  const { body } = await from.call<Transfer>('GET', `/v2/transfer/transfers/${sent.body.id}`)
  expect(arrived!.crypto_tx_hash).toBe(body.crypto_tx_hash)
  expect((await verify(service.db)).disagreements).toEqual([])
})
