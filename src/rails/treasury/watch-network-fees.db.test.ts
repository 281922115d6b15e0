import { randomUUID } from 'node:crypto'
import { pino } from 'pino'
import { afterEach, expect, test, vi } from 'vitest'
import {
  credit,
  movedBy,
  newCustomer,
  ROW_MACS,
  TEST_ORIGIN,
  type TestCustomer,
  ownTestService,
} from '../../../test/support.ts'
import { hurry } from '../../../test/work-off.ts'
import { transaction } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { selectFreezes, unfreeze } from '../../money/records/freezes.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import type { NetworkAdapter, Networks } from '../../networks/network.ts'
import { startWorker } from '../../program/worker.ts'
import { settleWithdrawals } from '../payouts/settle-withdrawals.ts'
import { postSweep } from './sweep-deposit-addresses.ts'
import { watchNetworkFees } from './watch-network-fees.ts'
import { atEnd } from '../../../test/at-end.ts'

const service = await ownTestService({
  BURSAR_SIMULATED_CONFIRMATION_MS: '0',
  BURSAR_WORKER_INTERVAL_MS: '20',
})
afterEach(() => service.owner.query('delete from freezes; delete from customer_freezes'))

const DESTINATIONS = {
  LITECOIN: 'ltc1qqv9pzxqlyckngw6zf9g9whn9d3eh4qvgr3a900',
  ETHEREUM: '0x52908400098527886E0F7030069857D2E4169EE7',
}

const REVERTED = {
  status_details: { invalid_destination_address: { message: 'reverted', destination_address: '' } },
}

/** Withdraws over a network whose transactions cost this much of its own asset, and may be reverted. */
async function withdraw(
  network: keyof typeof DESTINATIONS,
  asset: string,
  count: number,
  cost: string,
  { fails = false, customer: of = undefined as TestCustomer | undefined } = {},
): Promise<TestCustomer> {
  const customer = of ?? (await newCustomer(service))
  await credit(service.ledger, customer, asset, '1000')
  for (let order = 1; order <= count; order++) {
    const { status } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
      profile_id: customer.profile_id,
      asset,
      amount: '1',
      crypto_network: network,
      destination_address: DESTINATIONS[network],
    })
    expect(status).toBe(200)
  }
  const simulated = service.networks.get(network)!
  const gasAsset = network === 'LITECOIN' ? 'LTC' : 'ETH'
  const costly: NetworkAdapter = {
    ...simulated,
    checkStatus: async (withdrawals) =>
      (await simulated.checkStatus(withdrawals)).map((one) =>
        one.state !== 'CONFIRMED'
          ? one
          : fails
            ? { state: 'FAILED', refusal: REVERTED, networkFee: { asset: gasAsset, amount: cost } }
            : { ...one, networkFee: { asset: gasAsset, amount: cost } },
      ),
  }
  for (let round = 1; round <= 4; round++) {
    await hurry(service.db)
    await settleWithdrawals(service.db, new Map([[network, costly]]))
  }
  return customer
}

/** Records a sweep with this cost. */
const swept = (network: CryptoNetwork, asset: string, amount: string) =>
  newCustomer(service).then(({ customer_id }) =>
    transaction(service.db, (tx) =>
      postSweep(tx, { customer_id, id: randomUUID(), network, networkFee: { asset, amount } }),
    ),
  )

const watchAll = (network: CryptoNetwork, factor: string, minimum: string, mode = service.settings.mode) =>
  watchNetworkFees({ db: service.db, settings: { ...service.settings, mode } }, network, {
    feesLoss: { factor, minimum },
  })

/** Runs the check; returns the reason if the network was frozen now. */
const watch = async (network: CryptoNetwork, factor: string, minimum: string) =>
  (await watchAll(network, factor, minimum)).frozen.find(({ target }) => target.kind === 'NETWORK')?.detail

const frozen = async () =>
  (await selectFreezes(service.db)).map(({ kind, subject, reason }) => `${kind} ${subject} ${reason}`)

test('costs above the fees by the factor and the minimum stop payouts, once for the same money', async () => {
  // The schedule's fee is 0.001 LTC: customers paid 0.004, and the transactions cost 0.02.
  await withdraw('LITECOIN', 'LTC', 4, '0.005')
  expect(await watch('LITECOIN', '5', '0.001')).toBeUndefined()
  expect(await watch('LITECOIN', '3', '0.017')).toBeUndefined()
  expect(await frozen()).toEqual([])
  const detail =
    'transactions have cost 0.02 LTC within 24 hours, and the withdrawals among them paid 0.004 LTC in fees: ' +
    'more than 4.9 times as much (fees_loss_factor)'
  expect(await watch('LITECOIN', '4.9', '0.016')).toBe(detail)
  expect(await selectFreezes(service.db)).toMatchObject([
    { kind: 'NETWORK', subject: 'LITECOIN', reason: 'NETWORK_FEES', detail },
  ])
  expect(await watch('LITECOIN', '3', '0.001')).toBeUndefined()
  // An operator has reviewed and lifted the freeze.
  await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, { kind: 'NETWORK', network: 'LITECOIN' }, 'NETWORK_FEES')
  expect(await watch('LITECOIN', '3', '0.001')).toBeUndefined()
  expect(await frozen()).toEqual([])
  // Later costs count.
  await withdraw('LITECOIN', 'LTC', 1, '0.005')
  expect(await watch('LITECOIN', '4', '0.001')).toMatch(/^transactions have cost 0.005 LTC .* paid 0.001 LTC/)
})

test('costs during the freeze do not count either', async () => {
  await swept('BITCOIN', 'BTC', '0.5')
  expect(await watch('BITCOIN', '3', '0.1')).toMatch(/paid nothing in fees/)
  await swept('BITCOIN', 'BTC', '0.5')
  expect(await watch('BITCOIN', '3', '0.1')).toBeUndefined()
  await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, { kind: 'NETWORK', network: 'BITCOIN' })
  expect(await watch('BITCOIN', '3', '0.1')).toBeUndefined()
  expect(await frozen()).toEqual([])
})

test('fees in other assets count by the newest prices; sweeps cost, too', async () => {
  // Two fees of 1 USDG. ETH is at 3,500 USD, so 0.001 ETH cost 3.50.
  await withdraw('ETHEREUM', 'USDG', 2, '0.0005')
  expect(await watch('ETHEREUM', '2', '0.0001')).toBeUndefined()
  await swept('ETHEREUM', 'ETH', '0.001')
  expect(await watch('ETHEREUM', '3.6', '0.0001')).toBeUndefined()
  expect(await watch('ETHEREUM', '3.4', '0.0001')).toMatch(
    /^transactions have cost 0.002 ETH .* paid 2 USDG in fees: more than 3.4 times/,
  )
})

test('a fee without a price counts as zero and is reported: the check still works', async () => {
  await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, { kind: 'NETWORK', network: 'ETHEREUM' })
  await withdraw('ETHEREUM', 'USDG', 1, '0.0003')
  expect(await watchAll('ETHEREUM', '2', '0.0003')).toEqual({ frozen: [], unpriced: [] })
  expect(await watchAll('ETHEREUM', '2', '0.0003', 'live')).toEqual({
    frozen: [
      {
        target: { kind: 'NETWORK', network: 'ETHEREUM' },
        detail:
          'transactions have cost 0.0003 ETH within 24 hours, and the withdrawals among them paid 1 USDG in fees: ' +
          'more than 2 times as much (fees_loss_factor); USDG counted for nothing, without a price',
      },
    ],
    unpriced: ['USDG'],
  })
})

test('failed withdrawals of one customer freeze that customer, once for the same money, and never the network', async () => {
  await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, { kind: 'NETWORK', network: 'ETHEREUM' })
  const customer = await withdraw('ETHEREUM', 'USDG', 2, '0.01', { fails: true })
  const target = { kind: 'CUSTOMER' as const, customer_id: customer.customer_id }
  const detail =
    'withdrawals over ETHEREUM that the network reverted have cost 0.02 ETH within 24 hours: ' +
    'at least 0.02 ETH (fees_loss_minimum)'
  expect(await watchAll('ETHEREUM', '3', '0.02')).toEqual({ frozen: [{ target, detail }], unpriced: [] })
  expect(await frozen()).toEqual([`CUSTOMER ${customer.customer_id} NETWORK_FEES`])
  expect((await watchAll('ETHEREUM', '3', '0.001')).frozen).toEqual([])
  // An operator has reviewed and lifted the freeze.
  await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target, 'NETWORK_FEES')
  expect((await watchAll('ETHEREUM', '3', '0.001')).frozen).toEqual([])
  expect(await frozen()).toEqual([])
  // Later costs count.
  await withdraw('ETHEREUM', 'USDG', 1, '0.01', { fails: true, customer })
  expect((await watchAll('ETHEREUM', '3', '0.01')).frozen).toMatchObject([{ target }])
})

test('failed withdrawals of several customers, each below the minimum, count for the network', async () => {
  for (let order = 1; order <= 2; order++) await withdraw('ETHEREUM', 'USDG', 1, '0.01', { fails: true })
  expect(await watch('ETHEREUM', '3', '0.02')).toMatch(/^transactions have cost 0.02 ETH .* paid nothing/)
  expect(await frozen()).toEqual(['NETWORK ETHEREUM NETWORK_FEES'])
})

test('treasury transfers do not count', async () => {
  await transaction(service.db, (tx) =>
    postSweep(tx, {
      customer_id: PLATFORM_ID,
      id: randomUUID(),
      network: 'INK',
      networkFee: { asset: 'ETH', amount: '1' },
    }),
  )
  expect(await watch('INK', '3', '0.1')).toBeUndefined()
})

test('costs older than a day do not count', async () => {
  await swept('BASE', 'ETH', '1')
  // The owner has revoked this privilege from itself, and can grant it again.
  await service.owner.query('grant update on entries to current_user')
  atEnd(() => service.owner.query('revoke update on entries from current_user').then(() => undefined))
  const move = (hours: number) =>
    service.owner.query(
      `update entries set created_at = ${movedBy('created_at', `${hours} hours`)} where account like '%:BASE'`,
    )
  await move(-25)
  expect(await watch('BASE', '3', '0.1')).toBeUndefined()
  await move(2)
  expect(await watch('BASE', '3', '0.1')).toMatch(/^transactions have cost 1 ETH/)
})

test('the worker checks before it signs, and logs the freeze', async () => {
  const asset = 'POL'
  await swept('POLYGON_POS', asset, '5000')
  const customer = await newCustomer(service)
  await credit(service.ledger, customer, asset, '1000')
  const { body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
    profile_id: customer.profile_id,
    asset,
    amount: '10',
    crypto_network: 'POLYGON_POS',
    destination_address: DESTINATIONS.ETHEREUM,
  })
  let signed = 0
  const simulated = service.networks.get('POLYGON_POS')!
  const real: NetworkAdapter = {
    ...simulated,
    asksNode: true,
    feesLoss: { factor: '3', minimum: '1000' },
    sign: (tx, withdrawals) => {
      signed += withdrawals.length
      return simulated.sign(tx, withdrawals)
    },
  }
  const networks: Networks = new Map([['POLYGON_POS', real]])
  const lines: string[] = []
  const log = pino({ base: null }, { write: (line: string) => void lines.push(line) })
  const { db, ledger, settings } = service
  const worker = startWorker({ db, ledger, networks, settings, log })
  atEnd(() => worker.stop())
  const reason = async () =>
    (
      await db.query<{ waiting_detail: string | null }>(
        'select waiting_detail from outgoing_transfers where transfer_id = $1',
        [body.id],
      )
    ).rows[0]?.waiting_detail
  await vi.waitFor(
    async () =>
      expect(await reason()).toMatch(
        /^network POLYGON_POS is frozen \(NETWORK_FEES\): transactions have cost 5000 POL/,
      ),
    10_000,
  )
  expect(signed).toBe(0)
  expect(lines.join('')).toContain('network fees: payouts over the network are frozen')
  await unfreeze(db, ROW_MACS, TEST_ORIGIN, { kind: 'NETWORK', network: 'POLYGON_POS' }, 'NETWORK_FEES')
  await vi.waitFor(() => expect(signed).toBe(1), 20_000)
})
