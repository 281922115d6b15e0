/*
 * Deposits of BITCOIN_CASH, over a model of its node. No coin that the wallet cannot spend is credited, counts as held, or leaves custody
 * when a person returns it.
 */
import { afterAll, expect, test } from 'vitest'
import { startCashNode } from '../../test/cash-node.ts'
import { newCustomer, ROW_MACS, ownTestService, TEST_ORIGIN, type TestCustomer } from '../../test/support.ts'
import { hurry } from '../../test/work-off.ts'
import type { Transfer } from '../../src/money/ledger/transfer.ts'
import { insertDepositAddress } from '../../src/money/records/deposit-address.ts'
import { creditDepositsOn } from '../../src/rails/deposits/credit-deposits.ts'
import { seeDepositsOn } from '../../src/rails/deposits/see-deposits.ts'
import { acknowledgeTransaction } from '../../src/rails/treasury/acknowledged.ts'
import { compareCustody } from '../../src/rails/wallets/custody.ts'
import { networkReports } from '../../src/rails/wallets/network-status.ts'
import { bitcoinAdapter } from './adapter.ts'
import { withdrawalReader } from '../../src/rails/payouts/withdrawal-reader.ts'

const DEPTH = 2
const COIN = 100_000_000n
const service = await ownTestService()
const node = await startCashNode()
afterAll(() => node.stop())

const adapter = () => ({
  ...bitcoinAdapter(
    'BITCOIN_CASH',
    { ...node.config, confirmations: DEPTH, feeCeiling: '0.01', withdrawals: withdrawalReader },
    service.db,
  ),
  treasury: { marks: { BCH: { low: '4', target: '10' } }, cold: [] },
})
const round = async () => {
  await hurry(service.db)
  const { credited, waiting } = await creditDepositsOn(service, 'BITCOIN_CASH', adapter())
  return { credited, waiting: [...waiting], ...(await seeDepositsOn(service, 'BITCOIN_CASH', adapter())) }
}
const transfersOf = async (customer: TestCustomer) =>
  (await customer.call<{ items: Transfer[] }>('GET', '/v2/transfer/transfers?order=ASC')).body.items.map(
    ({ amount, status }) => `${amount} ${status}`,
  )
const report = async () =>
  (
    await networkReports(
      service.db,
      new Map([['BITCOIN_CASH', { adapter: adapter(), confirmations: DEPTH }]]),
    )
  )[0]!

test('a deposit is PENDING from its first confirmation; a coin with tokens is returned and never credited', async () => {
  const customer = await newCustomer(service)
  const networks = new Map([['BITCOIN_CASH', adapter()] as const])
  const { address } = await insertDepositAddress(
    service.db,
    { networks, rowMacs: ROW_MACS },
    customer.customer_id,
    {
      profile_id: customer.profile_id,
      crypto_network: 'BITCOIN_CASH',
    },
  )
  await round()
  node.mine([{ address, amount: 5n * COIN }])
  const tokens = node.mine([
    { address: node.newAddress(), amount: COIN },
    { address, amount: 7n * COIN, hasToken: true },
  ])
  node.bury(0)
  expect(await round()).toMatchObject({ credited: 1, seen: 0 })
  expect(await transfersOf(customer)).toEqual(['5 COMPLETED'])
  node.mine([{ address, amount: COIN }])
  expect(await round()).toMatchObject({ credited: 0, seen: 1, waiting: [['HAS_TOKENS', 1]] })
  expect(await transfersOf(customer)).toEqual(['5 COMPLETED', '1 PENDING'])
  node.bury(1)
  expect(await round()).toMatchObject({ credited: 1, seen: 0, waiting: [] })
  expect(await transfersOf(customer)).toEqual(['5 COMPLETED', '1 COMPLETED'])

  const held = { asset: 'BCH', held: '6', in_custody: '6', difference: '0' }
  const { custody, uncredited, asks } = await report()
  expect(custody).toMatchObject([held])
  expect(uncredited).toMatchObject([{ reason: 'HAS_TOKENS', count: 1 }])
  expect(asks).toEqual([])
  expect(await compareCustody(service.db, 'BITCOIN_CASH', () => adapter().status())).toMatchObject([
    { held: 6n * COIN, least: 0n },
  ])

  // The return pays its fee from the coin itself, and leaves the row once it is mined.
  const outputs = [{ address: node.newAddress(), amount: 7n * COIN - 500n, hasToken: true }]
  const returned = node.mine(outputs, [`${tokens}:1`])
  node.bury(DEPTH - 1)
  await round()
  expect(
    await acknowledgeTransaction(service.db, adapter(), 'BITCOIN_CASH', returned, { origin: TEST_ORIGIN }),
  ).toMatchObject({
    moved: [],
    networkFee: { asset: 'BCH', amount: '0' },
  })
  const after = await report()
  expect(after).toMatchObject({ custody: [held], uncredited: [] })
})

test('of a coin with tokens and of others in one transaction, the others alone leave custody', async () => {
  const [{ custody: before }] = [await report()]
  const own = await adapter().newDepositAddress('BITCOIN_CASH')
  const { address } = own('')
  const paid = node.mine([
    { address, amount: 2n * COIN },
    { address, amount: COIN, hasToken: true },
  ])
  node.bury(DEPTH)
  const acknowledge = (hash: string) =>
    acknowledgeTransaction(service.db, adapter(), 'BITCOIN_CASH', hash, { origin: TEST_ORIGIN })
  expect(await acknowledge(paid)).toMatchObject({ moved: [{ asset: 'BCH', amount: '2' }] })
  const spent = node.mine(
    [{ address: node.newAddress(), amount: 3n * COIN - 500n, hasToken: true }],
    [`${paid}:0`, `${paid}:1`],
  )
  node.bury(DEPTH)
  expect(await acknowledge(spent)).toMatchObject({ moved: [{ asset: 'BCH', amount: '-2' }] })
  expect((await report()).custody).toMatchObject([{ held: before[0]!.held, difference: '0' }])
})

test('a coin with tokens does not count for the minimum of the others', async () => {
  const customer = await newCustomer(service)
  const minimal = { ...adapter(), minimumDeposit: () => '1' }
  const { address } = await insertDepositAddress(
    service.db,
    { networks: new Map([['BITCOIN_CASH', minimal]]), rowMacs: ROW_MACS },
    customer.customer_id,
    { profile_id: customer.profile_id, crypto_network: 'BITCOIN_CASH' },
  )
  await round()
  node.mine([{ address, amount: (6n * COIN) / 10n, hasToken: true }])
  node.mine([{ address, amount: (6n * COIN) / 10n }])
  node.bury(DEPTH)
  const small = await creditDepositsOn(service, 'BITCOIN_CASH', minimal)
  expect(small).toMatchObject({ credited: 0, waiting: new Map([['HAS_TOKENS', 1]]) })
  node.mine([{ address, amount: (4n * COIN) / 10n }])
  node.bury(DEPTH)
  await creditDepositsOn(service, 'BITCOIN_CASH', minimal)
  await hurry(service.db)
  await creditDepositsOn(service, 'BITCOIN_CASH', minimal)
  expect((await transfersOf(customer)).toSorted()).toEqual(['0.4 COMPLETED', '0.6 COMPLETED'])
})
