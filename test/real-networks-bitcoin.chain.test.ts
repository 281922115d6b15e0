/*
 * BITCOIN over a Bitcoin node (Bitcoin Knots), which test/bitcoin-knots.sh installs. The other tests of the family
 * use Litecoin Core, an older version of the same program, which accepts no replacements.
 */
import { startLyingNode, type Call } from './lying-node.ts'
import { originOfLoop } from '../src/contract/actor.ts'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { deposit } from '../src/money/movements/deposit.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import { bitcoinAdapter } from '../chains/bitcoin/adapter.ts'
import type { Networks } from '../src/networks/network.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { acknowledgeTransaction } from '../src/rails/treasury/acknowledged.ts'
import { orderConsolidation, orderTreasurySend } from '../src/rails/treasury/orders.ts'
import { KNOTS } from './bitcoin-node.ts'
import {
  bitcoinWorld,
  prepare,
  requireAgreement,
  requireServedWithoutWorker,
  startRealService,
  workToTheEnd,
  type RealService,
} from './real-networks.ts'
import { MASTER_KEYS, ownedAsDepositAddress, type TestCustomer } from './support.ts'
import { hurry } from './work-off.ts'
import { withdrawalReader } from '../src/rails/payouts/withdrawal-reader.ts'

if (KNOTS === undefined)
  console.warn(
    'skipped: test/real-networks-bitcoin.chain.test.ts needs Bitcoin Knots: run test/bitcoin-knots.sh',
  )

describe.skipIf(KNOTS === undefined)('on Bitcoin', () => {
  let world: Awaited<ReturnType<typeof bitcoinWorld>>
  let service: RealService

  beforeAll(async () => {
    world = await bitcoinWorld('BITCOIN', KNOTS)
    service = await startRealService(world)
  })
  afterAll(async () => {
    await service?.close()
    await world?.stop()
  })
  // Whatever a test does, each ordered payment is paid once, and the ledger agrees with the wallet.
  afterEach(async () => {
    await workToTheEnd(service, world)
    await requireAgreement(service, world)
    await world.requireAtRest()
  })

  const depositor = async (amount: string) =>
    (await prepare(service, world, { asset: 'BTC', amount })).customer

  async function withdraw(customer: TestCustomer, amount: string, destination_address: string) {
    const { status, body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
      profile_id: customer.profile_id,
      asset: 'BTC',
      crypto_network: 'BITCOIN',
      amount,
      destination_address,
    })
    expect({ status, body }).toMatchObject({ status: 200 })
    return body
  }
  const read = async (customer: TestCustomer, { id }: Transfer) =>
    (await customer.call<Transfer>('GET', `/v2/transfer/transfers/${id}`)).body
  const hashesOf = async (transfers: Transfer[]) => {
    const { rows } = await service.db.query<{ hash: string }>(
      'select distinct crypto_tx_hash as hash from outgoing_transfers where transfer_id = any ($1)',
      [transfers.map(({ id }) => id)],
    )
    return rows.map(({ hash }) => hash)
  }

  /** One round of the worker with everything due. */
  async function work(networks: Networks = service.networks): Promise<void> {
    await hurry(service.db)
    await settleWithdrawals(service.db, networks)
  }

  /**
   * An adapter with this fee ceiling, which immediately replaces any transaction that pays less than the current
   * rate.
   */
  const paying = (feeCeiling: string, rpcUrl = world.node.config.rpcUrl): Networks =>
    new Map([
      [
        'BITCOIN',
        bitcoinAdapter(
          'BITCOIN',
          {
            ...world.node.config,
            rpcUrl,
            confirmations: 1,
            feeCeiling,
            stuckAfterMs: 0,
            withdrawals: withdrawalReader,
          },
          service.db,
        ),
      ],
    ])

  async function requirePaid(customer: TestCustomer, transfer: Transfer): Promise<Transfer> {
    const ended = await read(customer, transfer)
    const { status, amount, crypto_tx_hash: hash, crypto_tx_index: index } = ended
    expect(status).toBe('COMPLETED')
    expect(await world.received(transfer.destination_address!, 'BTC')).toEqual([{ hash, index, amount }])
    return ended
  }

  test('a process without the worker gives out addresses and quotes with the methods that the guide names', async () => {
    await depositor('1')
    await requireServedWithoutWorker(world, 'BTC')
  })

  test('deposits are credited, and withdrawals to each kind of address are paid by one transaction', async () => {
    const customers = [await depositor('2'), await depositor('1.00000001')]
    await workToTheEnd(service, world)
    const { body } = await customers[1]!.call('GET', `/v2/profiles/${customers[1]!.profile_id}/balances/BTC`)
    expect(body).toMatchObject({ available: '1.00000001' })
    const orders = await Promise.all(
      (['bech32', 'bech32m', 'p2sh-segwit', 'legacy'] as const).map(async (kind, index) => {
        const customer = customers[index % 2]!
        return { customer, transfer: await withdraw(customer, '0.3', await world.node.newAddress(kind)) }
      }),
    )
    await work()
    expect(await hashesOf(orders.map(({ transfer }) => transfer))).toHaveLength(1)
    await workToTheEnd(service, world)
    for (const { customer, transfer } of orders) await requirePaid(customer, transfer)
  })

  test('a transaction with too low a fee is replaced with all its payments, and one is mined', async () => {
    const customer = await depositor('2')
    await workToTheEnd(service, world)
    const orders = [
      await withdraw(customer, '0.4', await world.newAddress()),
      await withdraw(customer, '0.5', await world.newAddress()),
    ]
    const { mempoolminfee } = await world.node.bursar.call<{ mempoolminfee: string }>('getmempoolinfo')
    // A node on a chain of tests has an estimate or none, by what was paid there before.
    let feerate = 2 * Number(mempoolminfee)
    const liar = Object.assign(await startLyingNode(world.node.config.rpcUrl), {
      lie: ({ method }: Call) =>
        method === 'estimatesmartfee' ? { result: { feerate, blocks: 6 } } : undefined,
    })
    onTestFinished(() => liar.stop())
    const networks = paying('0.01', liar.rpcUrl)
    /** Works until the orders' transaction is the only one in the mempool, and pays this rate; its hash. */
    const paidAt = (rate: number) =>
      vi.waitFor(async () => {
        feerate = rate
        await work(networks)
        const hashes = await hashesOf(orders)
        expect(await world.node.bursar.call('getrawmempool')).toEqual(hashes)
        const { vsize, fees } = await world.node.bursar.call<{ vsize: string; fees: { base: string } }>(
          'getmempoolentry',
          hashes[0],
        )
        expect((1000 * Number(fees.base)) / Number(vsize) / rate).toBeCloseTo(1, 1)
        return hashes[0]!
      })
    const first = await paidAt(feerate)
    const second = await paidAt(0.01)
    expect(second).not.toBe(first)
    await workToTheEnd(service, world)
    for (const order of orders)
      expect(await requirePaid(customer, order)).toMatchObject({ crypto_tx_hash: second })
  })

  test('after a reorganisation and a lost mempool, the same bytes are broadcast again', async () => {
    const customer = await depositor('2')
    await workToTheEnd(service, world)
    const order = await withdraw(customer, '0.4', await world.newAddress())
    await work(paying('0.01'))
    const hashes = await hashesOf([order])
    const [block] = await world.node.mine(1)
    await world.node.miner.call('invalidateblock', block)
    await world.node.restart()
    for (let blocks = 0; blocks < 2; blocks++) await world.node.mineEmpty()
    expect(await read(customer, order)).toMatchObject({ status: 'PENDING' })
    await workToTheEnd(service, world)
    expect(await hashesOf([order])).toEqual(hashes)
    await requirePaid(customer, order)
  })

  test('one payment to a change address, signed by an older version, keeps nobody else from being paid', async () => {
    const customers = [await depositor('1'), await depositor('1'), await depositor('1')]
    await workToTheEnd(service, world)
    const ownAddress = () => world.node.bursar.call<string>('getrawchangeaddress')
    const order = (customer: TestCustomer, address: string) => withdraw(customer, '0.4', address)
    await expect(order(customers[1]!, await ownAddress())).rejects.toThrow('status: 400')
    const own = await ownAddress()
    const orders: Transfer[] = []
    await ownedAsDepositAddress(service, customers[1]!, 'BITCOIN', own, async () => {
      for (const [index, customer] of customers.entries())
        orders.push(await order(customer, index === 1 ? own : await world.newAddress()))
      await work()
    })
    expect(await hashesOf(orders)).toHaveLength(1)
    await workToTheEnd(service, world)
    for (const index of [0, 2]) await requirePaid(customers[index]!, orders[index]!)
    expect(await read(customers[1]!, orders[1]!)).toMatchObject({ status: 'COMPLETED' })
    // The coins have not left the wallet.
    const { customer_id, profile_id } = customers[1]!
    const back = {
      profile_id,
      type: 'CRYPTO_DEPOSIT',
      asset: 'BTC',
      minor: 40_000_000n,
      place: undefined,
    } as const
    const record = {
      crypto_network: 'BITCOIN',
      destination_address: own,
      crypto_tx_hash: 'b'.repeat(64),
    } as const
    const arrival = {
      ...back,
      arrivedAt: 'custody:BITCOIN' as const,
      record: { ...record, crypto_tx_index: '0' },
    }
    await service.ledger.submit(customer_id, deposit(customer_id, arrival, originOfLoop('test')))
  })

  test('coins go to cold storage, are merged, and a transaction made by hand is acknowledged', async () => {
    const customer = await depositor('1')
    const small = Array.from({ length: 20 }, async () => {
      const { body } = await customer.call<{ address: string }>('POST', '/v2/transfer/deposit-addresses', {
        profile_id: customer.profile_id,
        crypto_network: 'BITCOIN',
      })
      return [body.address, '0.01'] as const
    })
    await world.node.pay(world.node.miner, Object.fromEntries(await Promise.all(small)))
    await workToTheEnd(service, world)
    const context = { db: service.db, macs: new RowMacs(MASTER_KEYS), origin: originOfLoop('test') }
    const adapter = service.networks.get('BITCOIN')!
    const { transfer: merged } = await orderConsolidation(context, adapter, 'BITCOIN', '0.0001')
    const cold = await world.newAddress()
    const send = { network: 'BITCOIN', asset: 'BTC', amount: '0.6', reference: 'cold' } as const
    await orderTreasurySend(context, adapter, { ...send, destination_address: cold })
    await workToTheEnd(service, world)
    expect(await world.received(cold, 'BTC')).toMatchObject([{ amount: '0.6' }])
    const coins = await world.node.bursar.call<{ amount: string }[]>('listunspent')
    expect(coins.map(({ amount }) => Number(amount))).toContain(Number(merged.amount))

    const hash = await world.node.pay(world.node.bursar, { [cold]: '0.1' })
    const behind = await withdraw(customer, '0.2', await world.newAddress())
    await work()
    expect(await hashesOf([behind])).toEqual([null])
    await world.node.mine(1)
    const said = await acknowledgeTransaction(service.db, adapter, 'BITCOIN', hash, {
      origin: originOfLoop('test'),
    })
    expect(said.moved).toEqual([{ asset: 'BTC', amount: '-0.1' }])
    await workToTheEnd(service, world)
    await requirePaid(customer, behind)
  })
})
