/*
 * One node of a cluster is gone while payments of others are signed over real networks. `npm run test:citus` runs it.
 * Invariants:
 * 1. customers of the other nodes are paid while it is gone, each once;
 * 2. no coin and no nonce of a payment whose record cannot be read is used for another payment;
 * 3. when the node is back, its own payments are made once, with the bytes that were signed before.
 */
import pino from 'pino'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { openDatabase, type Database } from '../src/db/database.ts'
import { Cluster } from '../src/db/nodes.ts'
import { partOf, partsOf } from '../src/db/parts.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { decode } from '../chains/bitcoin/decode.ts'
import { parse } from '../chains/evm/transaction.ts'
import { NodeFailure } from '../src/networks/node-failure.ts'
import { networkReports } from '../src/rails/wallets/network-status.ts'
import type { NetworkAdapter, Networks } from '../src/networks/network.ts'
import { configuredNetworks } from '../src/networks/open-networks.ts'
import { orderTreasurySend } from '../src/rails/treasury/orders.ts'
import { PLATFORM_ID } from '../src/db/ids.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { HAS_LITECOIND, KNOTS } from './bitcoin-node.ts'
import { CLUSTER, refuseDatabase, takeDatabaseAgain } from './cluster.ts'
import {
  bitcoinWorld,
  evmWorld,
  networksFile,
  requireAgreement,
  workToTheEnd,
  type RealService,
  type World,
} from './real-networks.ts'
import {
  cloneDatabase,
  MASTER_KEYS,
  newCustomer,
  TEST_ORIGIN,
  testSettings,
  type TestCustomer,
} from './support.ts'
import { mine } from './work-off.ts'
import { buildApp } from '../src/program/build-app.ts'
import { withdrawalReader } from '../src/rails/payouts/withdrawal-reader.ts'

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** The service of a real network on the cluster, as production opens it. */
async function startService(world: World) {
  closing.push(() => world.stop())
  const file = await networksFile([world])
  const database = await cloneDatabase()
  closing.push(
    () => file.remove(),
    () => database.drop(),
  )
  const { db, url } = database
  const cluster = await Cluster.open(db, () => undefined)
  const pools: Database[] = []
  cluster.connect(db, (node) => {
    const pool = openDatabase(Object.assign(new URL(url), { host: node }).href, {
      max: 6,
      onError: () => undefined,
    })
    pools.push(pool)
    return pool
  })
  const settings = testSettings()
  const ledger = new Ledger(db, { macs: new RowMacs(MASTER_KEYS) })
  const configured = await configuredNetworks(file.path, file.environment, db, settings.mode, {
    signs: true,
    withdrawals: withdrawalReader,
  })
  const networks: Networks = new Map([...configured].map(([network, { adapter }]) => [network, adapter]))
  const app = await buildApp({
    ...{ db, ledger, networks, settings },
    masterKeys: MASTER_KEYS,
    baseUrl: 'http://127.0.0.1:8080',
    log: pino({ level: 'silent' }),
  })
  await app.ready()
  closing.push(
    () => Promise.all(pools.map((pool) => pool.end())),
    () => cluster.close(),
    () => ledger.drain(),
    () => app.close(),
  )
  const service: RealService = {
    ...{ ...database, app, ledger, networks, settings },
    environment: file.environment as RealService['environment'],
    reports: () => networkReports(db, configured),
    close: () => Promise.resolve(),
  }
  return { service, db }
}

/** A customer on each of two nodes, with deposits. The first one's node will be gone. */
async function customersOfTwoNodes(service: RealService, db: Database, world: World, asset: string) {
  const found = new Map<string, TestCustomer>()
  while (found.size < 2) {
    const customer = await newCustomer(service)
    found.set(partOf(db, customer.customer_id).name, customer)
  }
  for (const customer of found.values()) {
    const { body } = await customer.call<{ address: string }>('POST', '/v2/transfer/deposit-addresses', {
      profile_id: customer.profile_id,
      crypto_network: world.network,
    })
    for (let coins = 1; coins <= 3; coins++) await world.pay(body.address, asset, '2')
  }
  await workToTheEnd(service, world)
  // The platform's own transfers are at the living one.
  const ofPlatform = partOf(db, PLATFORM_ID).name
  return [...found].sort(([name]) => (name === ofPlatform ? 1 : -1)) as [
    [gone: string, its: TestCustomer],
    [living: string, other: TestCustomer],
  ]
}

interface Case {
  name: string
  asset: string
  isSkipped: boolean
  start: () => Promise<World & { node?: { restart(): Promise<void> } }>
  /** The coins that a transaction spends, or its nonce. */
  usedBy: (raw: Buffer) => string[]
}

const cases: Case[] = [
  {
    name: 'Litecoin',
    asset: 'LTC',
    isSkipped: !HAS_LITECOIND,
    start: () => bitcoinWorld('LITECOIN'),
    usedBy: (raw) => decode(raw).inputs,
  },
  {
    name: 'Bitcoin',
    asset: 'BTC',
    isSkipped: KNOTS === undefined,
    start: () => bitcoinWorld('BITCOIN', KNOTS),
    usedBy: (raw) => decode(raw).inputs,
  },
  {
    name: 'Ethereum',
    asset: 'ETH',
    isSkipped: false,
    start: () => evmWorld(),
    usedBy: (raw) => [String(parse(raw).nonce)],
  },
]

describe.skipIf(CLUSTER.length === 0)('while a node is gone', () => {
  test.for(cases.filter(({ isSkipped }) => !isSkipped))(
    'the customers of the others are paid over $name, and nothing is paid twice',
    async ({ asset, start, usedBy }) => {
      const world = await start()
      const { network } = world
      const { service, db: whole } = await startService(world)
      const { db, networks } = service
      const [[gone, its], [living, other]] = await customersOfTwoNodes(service, whole, world, asset)
      const orders: { customer: TestCustomer; transfer: Transfer }[] = []
      const withdraw = async (customer: TestCustomer, amount: string) => {
        const { status, body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
          profile_id: customer.profile_id,
          ...{ asset, crypto_network: network, amount },
          destination_address: await world.newAddress(),
        })
        expect({ status, body }).toMatchObject({ status: 200 })
        orders.push({ customer, transfer: body })
        return body
      }
      const settle = (name: string, by: Networks = networks) => {
        const node = partsOf(whole).find((node) => node.name === name)!
        return settleWithdrawals(node.db, by)
      }
      const transactions = async () => {
        const { rows } = await db.query<{
          crypto_tx_hash: string
          raw_transaction: Buffer
          transfer_ids: string[]
          ended: boolean
        }>(
          `select crypto_tx_hash, raw_transaction, transfer_ids, ended_at is not null as ended
           from network_transactions where network = $1`,
          [network],
        )
        return rows
      }
      const signedFor = async ({ id }: Transfer) =>
        (await transactions()).filter(({ transfer_ids }) => transfer_ids.includes(id))

      // One payment of the node that will be gone is signed, and was never broadcast. The wallet forgets its locks.
      const mute: NetworkAdapter = {
        ...networks.get(network)!,
        broadcast: () => Promise.reject(new NodeFailure('the node hears nothing')),
      }
      const signed = await withdraw(its, '0.7')
      await expect(settle(gone, new Map([[network, mute]]))).rejects.toThrow()
      const [before, ...more] = await signedFor(signed)
      expect(more).toEqual([])
      await world.node?.restart()
      // Another one is not signed yet.
      const unsigned = await withdraw(its, '0.3')

      const macs = new RowMacs(MASTER_KEYS)
      const { transfer: send } = await orderTreasurySend(
        { db, macs, origin: TEST_ORIGIN },
        networks.get(network)!,
        {
          ...{ network, asset, amount: '0.1', reference: 'to cold storage' },
          destination_address: await world.newAddress(),
        },
      )

      await refuseDatabase(gone, service.url)
      try {
        await expect(settle(gone)).rejects.toThrow()
        for (const amount of ['0.4', '0.5']) {
          const paid = await withdraw(other, amount)
          await vi.waitFor(
            async () => {
              await makeDue(db, other)
              await settle(living)
              await mine(world.mining)
              const { body } = await other.call<Transfer>('GET', `/v2/transfer/transfers/${paid.id}`)
              expect(body.status).toBe('COMPLETED')
            },
            { timeout: 60_000, interval: 100 },
          )
        }
        // Signing the second noted that the first has ended, and knows nothing of the node that is gone.
        const [first] = orders.filter(({ customer }) => customer === other)
        expect(await signedFor(first!.transfer)).toMatchObject([{ ended: true }])
        expect(await signedFor(signed)).toMatchObject([{ ended: false }])
        // The platform's own send leaves what customers need, and that is unknown now. It delays nobody.
        const { rows } = await db.query(
          'select state, waiting_code from outgoing_transfers where customer_id = $1 and transfer_id = $2',
          [PLATFORM_ID, send.id],
        )
        expect(rows).toEqual([{ state: 'HELD', waiting_code: 'KEPT_FOR_CUSTOMERS' }])
        const used = new Set(usedBy(before!.raw_transaction))
        for (const { crypto_tx_hash, raw_transaction } of await transactions())
          if (crypto_tx_hash !== before!.crypto_tx_hash)
            expect(usedBy(raw_transaction).filter((one) => used.has(one))).toEqual([])
        expect(await signedFor(unsigned)).toEqual([])
      } finally {
        await takeDatabaseAgain(gone, service.url)
      }
      await vi.waitFor(() => workToTheEnd(service, world), { timeout: 60_000 })
      expect(await signedFor(signed)).toMatchObject([{ crypto_tx_hash: before!.crypto_tx_hash }])
      for (const { customer, transfer } of orders) {
        const { body } = await customer.call<Transfer>('GET', `/v2/transfer/transfers/${transfer.id}`)
        expect(body.status).toBe('COMPLETED')
        expect(await world.received(transfer.destination_address!, asset)).toMatchObject([
          { hash: body.crypto_tx_hash, amount: transfer.amount },
        ])
      }
      await requireAgreement(service, world)
      await world.requireAtRest()
    },
  )
})

/** Makes the customer's withdrawals due: through the coordinator, a statement about all customers would need all nodes. */
const makeDue = (db: Database, { customer_id }: TestCustomer) =>
  db.query(
    'update outgoing_transfers set due_at = (select clock_timestamp()) where customer_id = $1 and due_at is not null',
    [customer_id],
  )
