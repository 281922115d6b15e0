/*
 * What every family of chains holds, on its node. A family gives a World, in which the tests act as its miners, its node and other
 * people do; what a chain cannot have is left out with the reason. After each test, what is held and what is in custody differ by
 * what they differed before, to the last unit; nothing is in flight; and the records agree with the chain.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { formatAmount, parseAmount } from '../src/contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../src/contract/assets/catalogue.ts'
import { openDatabase, type Database } from '../src/db/database.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { insertDepositAddress } from '../src/money/records/deposit-address.ts'
import { freeze, unfreeze } from '../src/money/records/freezes.ts'
import { verify } from '../src/money/verify/verify.ts'
import type { NetworkAdapter, Networks } from '../src/networks/network.ts'
import type { TokenAddresses } from '../src/networks/signed-payments.ts'
import { markWithdrawalPaid } from '../src/rails/payouts/mark-withdrawal-paid.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { isFrozen, postSweep } from '../src/rails/treasury/sweep-deposit-addresses.ts'
import { acknowledgeTransaction } from '../src/rails/treasury/acknowledged.ts'
import { orderTreasurySend } from '../src/rails/treasury/orders.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import { creditDeposits } from './credit-deposits.ts'
import { dieAtEachStep, failing, FAILURES } from './failures.ts'
import { codesOf, keptOf, order, readTransfer, settle, sumOn, work } from './payouts-on.ts'
import { MASTER_KEYS, newCustomer, ROW_MACS, startTestService, TEST_ORIGIN } from './support.ts'
import type { TestCustomer, TestService } from './support.ts'
import { hurry } from './work-off.ts'

/** A chain of its own, with a hot wallet that holds some hundred of each asset. Amounts are decimal strings. */
export interface World {
  network: CryptoNetwork
  /** The network's own asset first, then a token where it has one. */
  assets: readonly [own: string, token?: string]
  tokens?: TokenAddresses
  /** In how many blocks a transaction is confirmed. */
  depth: number
  /** The adapter of a process with this database. */
  open(db: Database, terms?: Terms): NetworkAdapter
  /** A new address of somebody else, who can take the assets. */
  somebody(): Promise<string>
  /** What an address has got, by the chain itself. */
  arrived(address: string, asset: string): Promise<string>
  /** Makes blocks of what waits. */
  mine(blocks?: number): Promise<void>
  /** The node forgets what waits for a block. */
  drop(): Promise<void>
  /** Other blocks take the place of the one that is made meanwhile, without its transactions. */
  takeBack?(meanwhile: () => Promise<void>): Promise<void>
  /** Somebody pays an address of ours. */
  pay(address: string, asset: string, amount: string): Promise<void>
  /** Somebody pays the hot wallet, and no deposit address. */
  refill(asset: string, amount: string): Promise<void>
  /** The hot wallet's key pays the network's own asset outside of Bursar. Returns the hash. */
  byHand(to: string, amount: string): Promise<string>
  stop(): Promise<void>
}

/** How an adapter is configured otherwise than by default. */
interface Terms {
  /** Fees are above the ceiling. */
  tooDear?: true
  reserveAfterMs?: number
}

/** What a chain may lack. */
type Lack = 'takeBack' | 'tooDear' | 'sweeps'

const AMOUNT = '1'
const tablesOfWallets = [
  'replaced_transactions',
  'outgoing_transfers',
  'network_transactions',
  'evm_nonces',
  'solana_lanes',
  'wallet_checks',
]
const tablesOfReading = ['network_cursors', 'address_holdings']

/** Tests a family by its World. `lacks` says why its chain cannot have something. */
export function conformance(
  start: (db: Database) => Promise<World>,
  lacks: Partial<Record<Lack, string>> = {},
) {
  let service: TestService
  let world: World
  let adapter: NetworkAdapter
  let networks: Networks
  let books: Record<string, bigint>

  const networksOf = (one: NetworkAdapter): Networks => new Map([[world.network, one]])
  const assets = () => world.assets.filter((asset) => asset !== undefined)
  const own = () => world.assets[0]

  /** What is held beyond custody, by asset. */
  async function beyondCustody(): Promise<Record<string, bigint>> {
    const { held } = await adapter.status!()
    const found: Record<string, bigint> = {}
    for (const asset of assets())
      found[asset] =
        parseAmount(held[asset]!, decimalsOf(asset))! +
        (await sumOn(service.db, `custody:${world.network}`, asset))
    return found
  }

  beforeAll(async () => {
    service = await startTestService()
    world = await start(service.db)
    adapter = world.open(service.db)
    networks = networksOf(adapter)
    if (adapter.sweep !== undefined) await sweepAll()
    books = await beyondCustody()
  })
  afterAll(async () => {
    await world?.stop()
    await service?.close()
  })
  afterEach(async () => {
    expect(await beyondCustody()).toEqual(books)
    for (const asset of assets())
      expect([asset, await sumOn(service.db, `in_flight:${world.network}`, asset)]).toEqual([asset, 0n])
    expect((await verify(service.db, { tokens: world.tokens ?? new Map() })).disagreements).toEqual([])
    await service.owner.query('delete from failed_transactions; delete from freezes')
  })

  const withdraw = async (
    customer: TestCustomer,
    { asset = own(), amount = AMOUNT, to = undefined as string | undefined, credited = '1000' } = {},
  ) => {
    const destination_address = to ?? (await world.somebody())
    const asked = { crypto_network: world.network, asset, amount, destination_address }
    return order(service, customer, asked, credited)
  }
  const round = (of: NetworkAdapter = adapter, db: Database = service.db) =>
    work(service.db, networksOf(of), db)
  const settleAll = () => settle(service.db, networks, () => world.mine())

  /** A withdrawal is completed, and its address has got it once. */
  async function requirePaid(customer: TestCustomer, one: Transfer): Promise<void> {
    expect(await readTransfer(customer, one)).toMatchObject({ status: 'COMPLETED' })
    const arrived = await world.arrived(one.destination_address!, one.asset)
    expect([one.asset, parseAmount(arrived, decimalsOf(one.asset))]).toEqual([
      one.asset,
      parseAmount(one.amount, decimalsOf(one.asset)),
    ])
  }

  /** Somebody pays the hot wallet: from now on it holds that much more beyond custody. */
  async function refill(asset: string, amount: string): Promise<void> {
    await world.refill(asset, amount)
    await world.mine(world.depth)
    books[asset] = books[asset]! + parseAmount(amount, decimalsOf(asset))!
  }

  /** Keeps some tables as they are, and returns what brings them back: the database is restored from a backup. */
  async function backup(tables: readonly string[]): Promise<() => Promise<void>> {
    for (const table of tables) await service.owner.query(`create table kept_${table} as table ${table}`)
    return async () => {
      for (const table of tables)
        await service.owner.query(
          `delete from ${table}; insert into ${table} select * from kept_${table}; drop table kept_${table}`,
        )
    }
  }

  async function newDepositAddress(customer: TestCustomer): Promise<string> {
    const { customer_id, profile_id } = customer
    const { address } = await insertDepositAddress(service.db, { networks, rowMacs: ROW_MACS }, customer_id, {
      profile_id,
      crypto_network: world.network,
    })
    return address
  }
  /** Reads the chain and credits what has arrived, until there is no more. Returns how many were credited. */
  async function creditAll(): Promise<number> {
    let credited = 0
    for (let quiet = 0; quiet < 2;) {
      await hurry(service.db)
      const some = await creditDeposits({ ...service, networks })
      credited += some
      quiet = some === 0 ? quiet + 1 : 0
    }
    return credited
  }

  const sweepOnce = (of: NetworkAdapter = adapter) =>
    of.sweep!({ post: postSweep, isFrozen, prices: new Map() })
  /** Sweeps until nothing is left to do once everything is confirmed. */
  async function sweepAll(): Promise<void> {
    let quiet = 0
    for (let count = 1; count <= 100; count++) {
      quiet = (await sweepOnce()) === 0 ? quiet + 1 : 0
      await world.mine()
      if (quiet > world.depth) return
    }
    throw new Error('sweeping does not come to an end')
  }

  const unless = (lack: Lack) => test.runIf(lacks[lack] === undefined)

  describe('withdrawals', () => {
    test('1. each is paid once, with its exact amount, and completed once it is confirmed', async () => {
      const customer = await newCustomer(service)
      const created: Transfer[] = []
      for (const asset of assets()) created.push(await withdraw(customer, { asset, amount: '1.2345' }))
      await round()
      expect(await readTransfer(customer, created[0]!)).toMatchObject({ status: 'PENDING' })
      await settleAll()
      for (const one of created) await requirePaid(customer, one)
    })

    test.each(FAILURES)(
      '2. a worker that dies %s any step pays each once',
      async (failure) => {
        const customer = await newCustomer(service)
        await dieAtEachStep(failure, 10, async (failures) => {
          const created: Transfer[] = []
          for (const asset of assets()) created.push(await withdraw(customer, { asset }))
          const db = failures.database(service.db)
          const dying = world.open(db)
          for (let count = 1; count <= 8 && !failures.died; count++) {
            await failing(failures, () => round(dying, db).catch(() => undefined))
            await world.mine()
          }
          await settleAll()
          for (const one of created) await requirePaid(customer, one)
        })
      },
      240_000,
    )

    test('3. several workers at once pay each once', async () => {
      const customers = await Promise.all([1, 2, 3].map(() => newCustomer(service)))
      const pools = [1, 2].map(() => openDatabase(service.url, { max: 4, onError: () => undefined }))
      let isOrdering = true
      const working = pools.map(async (pool) => {
        const one = world.open(pool)
        while (isOrdering) await round(one, pool)
      })
      const created: [TestCustomer, Transfer][] = []
      for (let index = 0; index < 18; index++) {
        const customer = customers[index % customers.length]!
        created.push([customer, await withdraw(customer, { asset: assets()[index % assets().length]! })])
        if (index % 6 === 5) await world.mine()
      }
      isOrdering = false
      await Promise.all(working)
      await settleAll()
      await Promise.all(pools.map((pool) => pool.end()))
      for (const one of created) await requirePaid(...one)
    })

    test('4. what the node has forgotten is broadcast again, the same bytes', async () => {
      const customer = await newCustomer(service)
      const one = await withdraw(customer)
      await round()
      const { crypto_tx_hash, raw_transaction } = await keptOf(service.db, one)
      await world.drop()
      for (let count = 1; count <= 3; count++) await round()
      await settleAll()
      expect(await keptOf(service.db, one)).toMatchObject({ crypto_tx_hash, raw_transaction })
      await requirePaid(customer, one)
    })

    unless('takeBack')(
      '5. a block that others replace before it is confirmed has ended nothing',
      async () => {
        const customer = await newCustomer(service)
        const one = await withdraw(customer)
        await round()
        const { crypto_tx_hash, raw_transaction } = await keptOf(service.db, one)
        await world.takeBack!(async () => {
          await world.mine()
          await round()
        })
        await round()
        expect(await readTransfer(customer, one)).toMatchObject({ status: 'PENDING' })
        await settleAll()
        expect(await keptOf(service.db, one)).toMatchObject({ crypto_tx_hash, raw_transaction })
        await requirePaid(customer, one)
      },
    )

    unless('tooDear')('6. nothing is signed while fees are above the ceiling', async () => {
      const customer = await newCustomer(service)
      const one = await withdraw(customer)
      await round(world.open(service.db, { tooDear: true }))
      expect(await codesOf(service.db, [one])).toEqual(['FEE_ABOVE_CEILING'])
      await settleAll()
      await requirePaid(customer, one)
    })

    test('7. a short hot wallet delays the profile in order, keeps the money of the oldest, and goes on', async () => {
      const [first, second] = [await newCustomer(service), await newCustomer(service)]
      const { held, hotWallet = held } = await adapter.status!()
      const decimals = decimalsOf(own())
      const amount = formatAmount(
        parseAmount(hotWallet[own()]!, decimals)! + 10n ** BigInt(decimals),
        decimals,
      )
      const large = await withdraw(first, { amount, credited: '10000' })
      const behind = await withdraw(first)
      await round()
      const other = await withdraw(second)
      const keeping = world.open(service.db, { reserveAfterMs: 0 })
      await round(keeping)
      await round(keeping)
      expect(await codesOf(service.db, [large, behind, other])).toEqual([
        'HOT_WALLET_SHORT',
        'BEHIND_ANOTHER',
        'KEPT_FOR_OLDER',
      ])
      await settle(service.db, networks, () => world.mine(), [other])
      await requirePaid(second, other)
      expect(await codesOf(service.db, [large, behind])).toEqual(['HOT_WALLET_SHORT', 'BEHIND_ANOTHER'])
      await refill(own(), amount)
      await settleAll()
      await requirePaid(first, large)
      await requirePaid(first, behind)
    })

    test('8. a send to cold storage leaves what unsigned withdrawals need', async () => {
      const customer = await newCustomer(service)
      const held = await withdraw(customer, { amount: '2' })
      const target = { kind: 'CUSTOMER', customer_id: customer.customer_id } as const
      await freeze(service.db, TEST_ORIGIN, target, 'OPERATOR', 'test')
      const { held: all, hotWallet = all } = await adapter.status!()
      const decimals = decimalsOf(own())
      const amount = formatAmount(
        parseAmount(hotWallet[own()]!, decimals)! - 10n ** BigInt(decimals),
        decimals,
      )
      const macs = new RowMacs(MASTER_KEYS)
      const { transfer } = await orderTreasurySend({ db: service.db, macs, origin: TEST_ORIGIN }, adapter, {
        ...{ network: world.network, asset: own(), amount, reference: held.id },
        destination_address: await world.somebody(),
      })
      await round()
      expect(await codesOf(service.db, [held, transfer])).toEqual(['FROZEN', 'KEPT_FOR_CUSTOMERS'])
      await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target)
      await settle(service.db, networks, () => world.mine(), [held])
      await requirePaid(customer, held)
      await refill(own(), '10')
      await settleAll()
      expect(parseAmount(await world.arrived(transfer.destination_address, own()), decimals)).toBe(
        parseAmount(amount, decimals),
      )
      await refill(own(), amount)
    })

    test('9. a restored database signs nothing until it is told who was paid', async () => {
      const [customer, other] = [await newCustomer(service), await newCustomer(service)]
      const one = await withdraw(customer)
      const restore = await backup(tablesOfWallets)
      await round()
      await round()
      await world.mine(world.depth)
      const { crypto_tx_hash } = await keptOf(service.db, one)
      await restore()
      const fresh = await withdraw(other)
      for (let count = 1; count <= 3; count++) await round()
      expect(await codesOf(service.db, [one, fresh])).toEqual(['UNKNOWN_SPENDS', 'UNKNOWN_SPENDS'])
      await markWithdrawalPaid(service.db, networks, one.id, crypto_tx_hash, TEST_ORIGIN)
      await settleAll()
      await requirePaid(customer, one)
      await requirePaid(other, fresh)
    })

    test("10. a payment by hand stops the wallet until it is acknowledged, with the chain's amounts", async () => {
      const customer = await newCustomer(service)
      const hash = await world.byHand(await world.somebody(), '0.25')
      await world.mine(world.depth)
      const one = await withdraw(customer)
      for (let count = 1; count <= 2; count++) await round()
      expect(await codesOf(service.db, [one])).toEqual(['UNKNOWN_SPENDS'])
      const acknowledge = () =>
        acknowledgeTransaction(service.db, adapter, world.network, hash, { origin: TEST_ORIGIN })
      expect(await acknowledge()).toMatchObject({
        is_new: true,
        moved: [{ asset: own(), amount: '-0.25' }],
      })
      expect(await acknowledge()).toMatchObject({ is_new: false })
      await settleAll()
      await requirePaid(customer, one)
    })

    test('11. a node that does not answer delays, and changes nothing', async () => {
      const customer = await newCustomer(service)
      const [signed, unsigned] = [await withdraw(customer), await withdraw(await newCustomer(service))]
      await settleWithdrawals(service.db, networks)
      const before = await keptOf(service.db, signed)
      const silent = vi.spyOn(globalThis, 'fetch').mockRejectedValue(new TypeError('fetch failed'))
      for (let count = 1; count <= 3; count++) await round().catch(() => undefined)
      silent.mockRestore()
      expect((await keptOf(service.db, signed)).crypto_tx_hash).toBe(before.crypto_tx_hash)
      expect(await readTransfer(customer, signed)).toMatchObject({ status: 'PENDING' })
      await settleAll()
      await requirePaid(customer, signed)
      expect(await world.arrived(unsigned.destination_address!, own())).not.toBe('0')
    })
  })

  describe('deposits', () => {
    test('12. each is credited once, when it is confirmed, however often it is read', async () => {
      const customer = await newCustomer(service)
      const address = await newDepositAddress(customer)
      await creditAll()
      const restore = await backup(tablesOfReading)
      for (const asset of assets()) await world.pay(address, asset, '3.25')
      if (world.depth > 1) expect(await creditAll()).toBe(0)
      await world.mine(world.depth)
      expect(await creditAll()).toBe(assets().length)
      await restore()
      expect(await creditAll()).toBe(0)
      for (const asset of assets()) {
        const path = `/v2/profiles/${customer.profile_id}/balances/${asset}`
        expect((await customer.call<{ available: string }>('GET', path)).body.available).toBe('3.25')
      }
    })

    test('13. a withdrawal to a deposit address is a deposit, and a payment by hand to one is none', async () => {
      const [from, to] = [await newCustomer(service), await newCustomer(service)]
      const address = await newDepositAddress(to)
      await creditAll()
      const one = await withdraw(from, { to: address, amount: '1.5' })
      await settleAll()
      await world.mine(world.depth)
      expect(await creditAll()).toBe(1)
      expect(await readTransfer(from, one)).toMatchObject({ status: 'COMPLETED' })
      const hash = await world.byHand(address, '0.125')
      await world.mine(world.depth)
      expect(await creditAll()).toBe(0)
      await acknowledgeTransaction(service.db, adapter, world.network, hash, { origin: TEST_ORIGIN })
    })

    unless('sweeps').each(FAILURES)(
      '14. a worker that dies %s any step of sweeping moves each deposit once',
      async (failure) => {
        const customer = await newCustomer(service)
        await dieAtEachStep(failure, 10, async (failures) => {
          const address = await newDepositAddress(customer)
          await creditAll()
          for (const asset of assets()) await world.pay(address, asset, '3')
          await world.mine(world.depth)
          expect(await creditAll()).toBe(assets().length)
          const dying = world.open(failures.database(service.db))
          for (let count = 1; count <= 8 && !failures.died; count++) {
            await failing(failures, () =>
              sweepOnce(dying).then(
                () => undefined,
                () => undefined,
              ),
            )
            await world.mine()
          }
          await sweepAll()
        })
        await creditAll()
        const { rows } = await service.db.query<{ asset: string; balance: string }>(
          `select asset, balance from address_holdings where network = $1 and balance > 0 and asset <> $2`,
          [world.network, own()],
        )
        expect(rows).toEqual([])
      },
      240_000,
    )
  })
}
