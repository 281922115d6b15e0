/*
 * Invariants of SOLANA, wherever it fails and however many workers there are:
 * 1. the chain makes each withdrawal once, with the exact amount, or the withdrawal is refunded and never made;
 * 2. no two withdrawals share a value of a nonce, unless the first is proven void;
 * 3. the ledger's custody equals the hot wallet and its nonce accounts, to the last lamport;
 * 4. nothing stays in flight.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { base58 } from '@scure/base'
import type { Address } from '@solana/addresses'
import { dieAtEachStep, failing } from '../../test/failures.ts'
import { EVERY_STEP } from '../../test/every-step.ts'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { runtime, SolanaNode } from '../../test/solana-node.ts'
import { newCustomer, ROW_MACS, startTestService, TEST_ORIGIN } from '../../test/support.ts'
import type { TestCustomer, TestService } from '../../test/support.ts'
import { keptOf, order, readTransfer, settle, sumOn, work } from '../../test/payouts-on.ts'
import { parseAmount } from '../../src/contract/assets/amount.ts'
import { decimalsOf } from '../../src/contract/assets/catalogue.ts'
import type { Transfer } from '../../src/money/ledger/transfer.ts'
import { verify } from '../../src/money/verify/verify.ts'
import { isFrozen, postSweep } from '../../src/rails/treasury/sweep-deposit-addresses.ts'
import { transaction } from '../../src/db/database.ts'
import { PLATFORM_ID } from '../../src/db/ids.ts'
import { guardedNetworks } from '../../src/rails/payouts/signing-guards.ts'
import { markWithdrawalPaid } from '../../src/rails/payouts/mark-withdrawal-paid.ts'
import { resolveWithdrawal } from '../../src/rails/payouts/resolve-withdrawal.ts'
import { acknowledgeTransaction } from '../../src/rails/treasury/acknowledged.ts'
import type { Networks, Signing, Withdrawal } from '../../src/networks/network.ts'
import { solanaAdapter, type SolanaConfig } from './adapter.ts'
import { associatedOf, TOKEN, TOKEN_2022, transferSol } from './instructions.ts'
import { laneAccounts } from './lanes.ts'
import { signerOfSeed } from './keys.ts'
import { feeOf, parse, parsePayment, paymentIn, signPayments } from './transaction.ts'
import { withdrawalReader } from '../../src/rails/payouts/withdrawal-reader.ts'

let service: TestService

beforeEach(async () => {
  service = await startTestService()
})
afterEach(() => service.close())

const newAddress = (): Address => signerOfSeed(randomBytes(32)).address

/** A chain, with a hot wallet that has these funds and its lanes. */
async function newWallet(funds: Record<string, string>, changes: Partial<SolanaConfig> = {}) {
  const node = await SolanaNode.start()
  const hotWallet = signerOfSeed(randomBytes(32))
  const programs = { USDC: TOKEN, PYUSD: TOKEN_2022 } as const
  const mints = {
    USDC: node.makeMint(TOKEN, 6),
    PYUSD: node.makeMint(TOKEN_2022, 6),
  }
  for (const [asset, amount] of Object.entries(funds)) {
    const units = parseAmount(amount, asset === 'SOL' ? 9 : 6)!
    if (asset === 'SOL') node.give(hotWallet.address, units)
    else node.mint(programs[asset as 'USDC'], mints[asset as 'USDC'], hotWallet.address, units)
  }
  const config: SolanaConfig = {
    rpcUrl: node.rpcUrl,
    verifyRpcUrl: node.rpcUrl,
    hotWallet,
    feeCeiling: '0.001',
    withdrawals: withdrawalReader,
    lanes: 4,
    mints,
    mode: 'sandbox',
    pollMs: 10,
    ...changes,
  }
  const adapter = solanaAdapter(config, service.db)
  const wallet = {
    node,
    hotWallet,
    config,
    adapter,
    mints,
    programs,
    funds,
    networks: new Map([['SOLANA', adapter]]) as Networks,
  }
  await prepare(wallet)
  return wallet
}
type Wallet = Awaited<ReturnType<typeof newWallet>>

const round = () => ({
  post: postSweep,
  isFrozen,
  prices: new Map() as never,
})

/** Makes the lanes. */
async function prepare(wallet: Pick<Wallet, 'adapter' | 'node'>): Promise<void> {
  for (let count = 0; count < 20; count++) {
    const steps = await wallet.adapter.sweep!(round())
    wallet.node.mine()
    if (steps === 0) return
  }
  throw new Error('the lanes are not made')
}

/** A wallet with an account of USDC: its rent costs nobody anything. */
const holderOfUsdc = ({ node, mints }: Pick<Wallet, 'node' | 'mints'>) =>
  node.open(TOKEN, mints.USDC, newAddress())

const withdraw = (
  customer: TestCustomer,
  asset: string,
  amount: string,
  destination_address: string = newAddress(),
  more: { memo?: string } = {},
): Promise<Transfer> =>
  order(service, customer, { crypto_network: 'SOLANA', asset, amount, destination_address, ...more })

async function step({ networks, node }: Wallet): Promise<void> {
  await work(service.db, networks)
  node.mine()
}

const settleAll = ({ networks, node }: Wallet) => settle(service.db, networks, () => node.mine())

/** Runs a test with a ledger that has nothing of SOLANA from the tests before. */
async function withBooks<T>(work: () => Promise<T>): Promise<{
  paid: (asset: string) => Promise<bigint>
  inFlight: (asset: string) => Promise<bigint>
  result: T
}> {
  const assets = ['SOL', 'USDC', 'PYUSD']
  const before = new Map<string, bigint>()
  for (const asset of assets)
    for (const account of ['custody:SOLANA', 'in_flight:SOLANA'])
      before.set(account + asset, await sumOn(service.db, account, asset))
  const result = await work()
  const since = async (account: string, asset: string) =>
    (await sumOn(service.db, account, asset)) - before.get(account + asset)!
  return {
    paid: (asset) => since('custody:SOLANA', asset),
    inFlight: (asset) => since('in_flight:SOLANA', asset),
    result,
  }
}

/** Checks that custody is what the chain holds, to the unit. */
async function requireAgreement(
  wallet: Wallet,
  books: Pick<Awaited<ReturnType<typeof withBooks>>, 'paid' | 'inFlight'>,
): Promise<void> {
  const { held } = await wallet.adapter.status!()
  for (const [asset, amount] of Object.entries(wallet.funds)) {
    const funded = parseAmount(amount, decimalsOf(asset))!
    expect([asset, parseAmount(held[asset]!, decimalsOf(asset))]).toEqual([
      asset,
      funded - (await books.paid(asset)),
    ])
    expect([asset, await books.inFlight(asset)]).toEqual([asset, 0n])
  }
  const tokens = new Map([['SOLANA' as const, wallet.mints]])
  expect((await verify(service.db, { tokens })).disagreements).toEqual([])
}

const u16 = (value: number) => {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16LE(value)
  return bytes
}
const extension = (type: number, bytes: Buffer) => Buffer.concat([u16(type), u16(bytes.length), bytes])

/** How many withdrawals are queued at once: more with TEST_EVERY_STEP=1. */
const QUEUED = EVERY_STEP ? 500 : 40

/** The payments of the hot wallet that the chain has. */
const isPayout =
  ({ hotWallet }: Wallet) =>
  ({ raw }: { raw: Buffer }) =>
    paymentIn(raw)?.from === hotWallet.address

async function requirePaid(wallet: Wallet, customer: TestCustomer, one: Transfer): Promise<void> {
  expect(await readTransfer(customer, one)).toMatchObject({ status: 'COMPLETED' })
  const asset = one.asset as 'SOL' | 'USDC' | 'PYUSD'
  const to = one.destination_address as Address
  const arrived =
    asset === 'SOL'
      ? wallet.node.lamportsOf(to)
      : wallet.node.unitsOf(wallet.programs[asset], wallet.mints[asset], to)
  expect(arrived).toBe(parseAmount(one.amount, decimalsOf(asset) === 9 ? 9 : 6))
}

type Wanted = Pick<Withdrawal, 'asset' | 'amount' | 'destination_address'> & Partial<Withdrawal>

/** Signs withdrawals of a customer each in a transaction that is rolled back. */
async function signAll({ adapter }: Pick<Wallet, 'adapter'>, ...wanted: Wanted[]): Promise<Signing[]> {
  let signings: Signing[] = []
  const undone = new Error('undone')
  await transaction(service.db, async (tx) => {
    const withdrawals = wanted.map((one): Withdrawal => {
      const ids = { customer_id: randomUUID(), transfer_id: randomUUID(), profile_id: randomUUID() }
      return {
        ...ids,
        fee: '1',
        fee_worth: '1',
        network: 'SOLANA',
        fiat_account_id: null,
        memo: null,
        ...one,
      }
    })
    signings = await adapter.sign(tx, withdrawals)
    throw undone
  }).catch((error: unknown) => {
    if (error !== undone) throw error
  })
  return signings
}

const sign = async (wallet: Pick<Wallet, 'adapter'>, wanted: Wanted): Promise<Signing> =>
  (await signAll(wallet, wanted))[0]!

/** Has the second of three payments of a transaction fail. Returns them, and the bytes that were signed anew for the others. */
async function afterFailure(wallet: Wallet, customer: TestCustomer) {
  const { node, mints } = wallet
  const to = node.open(TOKEN, mints.USDC, newAddress())
  const [before, frozen, after] = [
    await withdraw(customer, 'SOL', '1'),
    await withdraw(customer, 'USDC', '1', to),
    await withdraw(customer, 'USDC', '2', holderOfUsdc(wallet)),
  ]
  await work(service.db, wallet.networks)
  const waiting = new Map(node.pool)
  expect(waiting.size).toBe(1)
  node.pool.clear()
  node.freeze(TOKEN, mints.USDC, to)
  node.pool = waiting
  node.mine()
  for (let count = 0; count < 10 && node.pool.size === 0; count++) await work(service.db, wallet.networks)
  const [again] = [...node.pool.values()]
  expect(parsePayment(again!).transfers).toHaveLength(2)
  return { before, frozen, after, again: again! }
}
const unfreeze = async () => {
  await service.owner.query('delete from failed_transactions')
  await service.owner.query('delete from freezes')
}

describe.skipIf(runtime === undefined)('on the real runtime', () => {
  test('bytes that the network drops are broadcast again, and a higher price replaces them on the same nonce', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '10' }, { stuckAfterMs: 0 })
      const { node } = wallet
      const one = await withdraw(customer, 'SOL', '1')
      const drop = async () => {
        await work(service.db, wallet.networks)
        const sent = [...node.pool.values()]
        node.pool.clear()
        return sent
      }
      const [first] = await drop()
      await drop()
      const sent = [...(await drop()), ...(await drop()), ...(await drop()), ...(await drop())]
      const replacement = sent.find((raw) => !raw.equals(first!))!
      const [old, raised] = [parsePayment(first!), parsePayment(replacement)]
      expect({ ...raised, unitPrice: 0n }).toEqual({ ...old, unitPrice: 0n })
      expect(raised.unitPrice).toBe(old.unitPrice + old.unitPrice / 2n + 1n)
      // The first bytes come back: the network makes one of the two.
      node.pool.set(parse(first!).hash, first!)
      node.pool.set(parse(replacement).hash, replacement)
      node.mine()
      await settleAll(wallet)
      await requirePaid(wallet, customer, one)
      expect(node.made.filter(isPayout(wallet))).toHaveLength(1)
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  })

  test.each([
    ['USDC', TOKEN],
    ['PYUSD', TOKEN_2022],
  ] as const)(
    'a payment of %s that makes its transaction fail is refunded once, and the others are signed anew',
    async (asset, program) => {
      const customer = await newCustomer(service)
      let wallet!: Wallet
      const books = await withBooks(async () => {
        wallet = await newWallet({ SOL: '10', USDC: '100', PYUSD: '100' })
        const { node, mints } = wallet
        const to = node.open(program, mints[asset], newAddress())
        const [before, frozen, after] = [
          await withdraw(customer, 'SOL', '1'),
          await withdraw(customer, asset, '1', to),
          await withdraw(customer, 'USDC', '2', holderOfUsdc(wallet)),
        ]
        await work(service.db, wallet.networks)
        const waiting = new Map(node.pool)
        expect(waiting.size).toBe(1)
        node.pool.clear()
        node.freeze(program, mints[asset], to)
        node.pool = waiting
        node.mine()
        await settleAll(wallet)
        expect(await readTransfer(customer, frozen)).toMatchObject({ status: 'FAILED' })
        for (const one of [before, after]) await requirePaid(wallet, customer, one)
        expect(node.made.filter(isPayout(wallet)).map(({ err }) => err !== null)).toEqual([true, false])
        // Right away it is refused: the account is frozen.
        const refused = await withdraw(customer, asset, '1', to)
        await settleAll(wallet)
        expect(await readTransfer(customer, refused)).toMatchObject({
          status: 'FAILED',
          status_details: {
            invalid_destination_address: { message: `its account of ${asset} is frozen by the issuer` },
          },
        })
        await service.owner.query('delete from failed_transactions')
        await service.owner.query('delete from freezes')
      })
      await requireAgreement(wallet, books)
      await wallet.node.stop()
    },
  )

  test.each(['alone', 'agrees', 'disagrees'] as const)(
    'one node that says a payment failed, and a second: %s',
    async (second) => {
      const customer = await newCustomer(service)
      const other = await SolanaNode.start()
      const first = await newWallet({ SOL: '10', USDC: '100' })
      const { node, mints } = first
      const adapter = solanaAdapter(
        { ...first.config, verifyRpcUrl: second === 'alone' ? undefined : other.rpcUrl },
        service.db,
      )
      const wallet = { ...first, adapter, networks: new Map([['SOLANA', adapter]]) as Networks }
      const to = newAddress()
      node.mint(TOKEN, mints.USDC, to, 1n)
      const one = await withdraw(customer, 'USDC', '1', to)
      await work(service.db, wallet.networks)
      const waiting = new Map(node.pool)
      node.pool.clear()
      node.freeze(TOKEN, mints.USDC, to)
      node.pool = waiting
      node.mine()
      if (second === 'disagrees') other.made = node.made.map((made) => ({ ...made, err: null }))
      if (second === 'agrees') other.made = node.made
      other.mine(100)
      for (let count = 0; count < 3; count++) await step(wallet)
      const { status } = await readTransfer(customer, one)
      const { waiting_code } = await keptOf(service.db, one)
      expect([status, waiting_code]).toEqual(
        {
          alone: ['PENDING', 'UNRESOLVED'],
          agrees: ['FAILED', null],
          disagrees: ['PENDING', 'NODES_DISAGREE'],
        }[second],
      )
      await Promise.all([node.stop(), other.stop()])
    },
  )

  test('a foreign transaction on a lane: the payment is signed anew, and the lane waits until it is acknowledged', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '10' }, { lanes: 1 })
      const { node, hotWallet, config } = wallet
      // What has used a nonce, and what it moved, needs the second node's word.
      const second = await SolanaNode.start()
      const adapter = solanaAdapter({ ...config, verifyRpcUrl: second.rpcUrl }, service.db)
      wallet.networks = new Map([['SOLANA', adapter]])
      const one = await withdraw(customer, 'SOL', '1')
      await work(service.db, wallet.networks)
      const [kept] = [...node.pool.values()]
      node.pool.clear()
      const elsewhere = newAddress()
      const { nonceAccount, nonce } = parsePayment(kept!)
      const foreign = signPayments(
        hotWallet,
        [{ from: hotWallet.address, to: elsewhere, units: 500_000_000n, memo: null }],
        { nonceAccount, nonce, unitLimit: 10_000, unitPrice: 0n },
      )
      node.pool.set(foreign.crypto_tx_hash, foreign.raw_transaction)
      node.mine()
      const acknowledge = () =>
        acknowledgeTransaction(service.db, adapter, 'SOLANA', foreign.crypto_tx_hash, { origin: TEST_ORIGIN })
      for (let count = 0; count < 3; count++) await step(wallet)
      expect(await keptOf(service.db, one)).toMatchObject({ waiting_code: 'SECOND_NODE' })
      await expect(acknowledge()).rejects.toThrow('the second node has no finalized transaction')
      second.made = node.made.map((made) => ({ ...made, fee: made.fee + 1n }))
      second.mine(100)
      await expect(acknowledge()).rejects.toThrow('the second node says something else')
      second.made = node.made
      for (let count = 0; count < 4; count++) await step(wallet)
      expect(await keptOf(service.db, one)).toMatchObject({
        waiting_code: 'UNKNOWN_SPENDS',
        waiting_detail: expect.stringContaining(foreign.crypto_tx_hash) as string,
      })
      await acknowledge()
      await settleAll(wallet)
      await second.stop()
      await requirePaid(wallet, customer, one)
      expect(node.lamportsOf(elsewhere)).toBe(500_000_000n)
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  })

  test('a restored database signs on no lane that it does not know, while mark-paid ends what was paid', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '10' }, { lanes: 2 })
      const { node } = wallet
      const [lane] = laneAccounts({ hotWallet: wallet.hotWallet, formerWallets: [], lanes: 1 })
      // More than are looked at in one round.
      for (let count = 0; count < 450; count++) node.run([transferSol(node.bank.address, lane!.account, 0n)])
      const [one, two] = [
        await withdraw(customer, 'SOL', '1'),
        await withdraw(await newCustomer(service), 'SOL', '1.5'),
      ]
      await work(service.db, wallet.networks)
      node.mine()
      const hash = (await keptOf(service.db, one)).crypto_tx_hash
      expect(await keptOf(service.db, two)).toMatchObject({ crypto_tx_hash: hash })
      // As an older backup has it: not signed yet.
      await service.owner.query('delete from outgoing_transfers where transfer_id in ($1, $2)', [
        one.id,
        two.id,
      ])
      await service.owner.query('delete from network_transactions where crypto_tx_hash = $1', [hash])
      await service.owner.query(
        `update solana_lanes set used_nonce = null, used_by = '{}', checked_nonce = null, checked_signature = null`,
      )
      // The other lane may not sign either: this one may have paid any withdrawal. Nor may it with fewer lanes than before.
      const fewer = solanaAdapter({ ...wallet.config, lanes: 1 }, service.db)
      const wanted = { asset: 'SOL', amount: '2', destination_address: newAddress() }
      expect(await sign(wallet, wanted)).toMatchObject({ reason: { code: 'NODE_BEHIND' } })
      const other = await newCustomer(service)
      const fresh = await withdraw(other, 'SOL', '2')
      for (let count = 0; count < 3; count++) await step(wallet)
      for (const adapter of [wallet.adapter, fewer])
        expect(await sign({ adapter }, wanted)).toMatchObject({ reason: { code: 'UNKNOWN_SPENDS' } })
      expect(await keptOf(service.db, one)).toMatchObject({ waiting_code: 'UNKNOWN_SPENDS' })
      expect(await keptOf(service.db, fresh)).toMatchObject({ waiting_code: 'UNKNOWN_SPENDS' })
      for (const { id } of [one, two])
        await markWithdrawalPaid(service.db, wallet.networks, id, hash, TEST_ORIGIN)
      await settleAll(wallet)
      await requirePaid(wallet, customer, one)
      await requirePaid(wallet, other, fresh)
      expect(node.lamportsOf(two.destination_address as Address)).toBe(1_500_000_000n)
      const { rows } = await service.db.query('select status from transfers where id = $1', [two.id])
      expect(rows).toEqual([{ status: 'COMPLETED' }])
      expect(node.made.filter(isPayout(wallet))).toHaveLength(2)
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  })

  test('another hot wallet: what the old one signed is made, and what a restored database lacks of it stops payments', async () => {
    const customer = await newCustomer(service)
    let [wallet, paid] = [] as unknown as [Wallet, Transfer]
    const books = await withBooks(async () => {
      const old = await newWallet({ SOL: '5' }, { lanes: 2 })
      const { node } = old
      const [first, underWay] = [
        await withdraw(customer, 'SOL', '1'),
        await withdraw(await newCustomer(service), 'SOL', '0.5', newAddress(), { memo: 'alone' }),
      ]
      paid = first
      await step(old)
      node.pool.clear()
      // As the guide has it: the new wallet has its funds, and the old one is named.
      const hotWallet = signerOfSeed(randomBytes(32))
      const formerWallets = [old.hotWallet.address]
      node.give(hotWallet.address, 5_000_000_000n)
      const config = { ...old.config, hotWallet, formerWallets }
      const adapter = solanaAdapter(config, service.db)
      wallet = { ...old, config, hotWallet, adapter, networks: new Map([['SOLANA', adapter]]) }
      wallet.funds = { SOL: '10' }
      await prepare(wallet)
      const next = await withdraw(await newCustomer(service), 'SOL', '2')
      await settleAll(wallet)
      for (const { destination_address: to, amount } of [first, underWay, next])
        expect(node.lamportsOf(to as Address)).toBe(parseAmount(amount, 9))
      expect(node.made.filter(isPayout(old))).toHaveLength(2)
      expect(node.made.filter(isPayout(wallet))).toHaveLength(1)
      const { formerWallets: held } = await adapter.status!()
      expect(held).toMatchObject([
        { address: old.hotWallet.address, held: { SOL: expect.any(String) as string } },
      ])
      expect(adapter.refusesDestination!(old.hotWallet.address)).toMatch(/or were before/)
    })
    await requireAgreement(wallet, books)

    // A backup from before has the first one unsigned.
    const { crypto_tx_hash: hash } = await keptOf(service.db, paid)
    await service.owner.query('delete from outgoing_transfers where transfer_id = $1', [paid.id])
    await service.owner.query('delete from network_transactions where crypto_tx_hash = $1', [hash])
    await service.owner.query(
      `update solana_lanes set used_nonce = null, used_by = '{}', checked_nonce = null, checked_signature = null`,
    )
    const wanted = { asset: 'SOL', amount: '0.1', destination_address: newAddress() }
    expect(await sign(wallet, wanted)).toMatchObject({
      reason: { code: 'UNKNOWN_SPENDS', detail: expect.stringContaining(hash) as string },
    })
    await acknowledgeTransaction(service.db, wallet.adapter, 'SOLANA', hash, {
      origin: TEST_ORIGIN,
      paysNoWithdrawal: true,
    })
    expect(await sign(wallet, wanted)).toMatchObject({ outcome: 'SIGNED' })
    await wallet.node.stop()
  })

  test('a nonce account that a former wallet has made is no lost one', async () => {
    let wallet!: Wallet
    const books = await withBooks(async () => {
      const old = await newWallet({ SOL: '5' }, { lanes: 1 })
      const { node } = old
      await solanaAdapter({ ...old.config, lanes: 2 }, service.db).sweep!(round())
      node.mine()
      node.forgetHashes()
      const hotWallet = signerOfSeed(randomBytes(32))
      node.give(hotWallet.address, 5_000_000_000n)
      const config = { ...old.config, hotWallet, formerWallets: [old.hotWallet.address] }
      wallet = { ...old, config, hotWallet, adapter: solanaAdapter(config, service.db), funds: { SOL: '10' } }
      // The node has the account, and has forgotten what made it.
      node.intercept = (method, params, next) =>
        method === 'getSignatureStatuses'
          ? { context: { slot: '1' }, value: (params[0] as string[]).map(() => null) }
          : next()
      for (let count = 0; count < 2; count++) {
        await wallet.adapter.sweep!(round())
        await service.owner.query(
          `update sweeps set lost_since = (select clock_timestamp() - interval '301 s') where lost_since is not null`,
        )
      }
      node.intercept = undefined
      await prepare(wallet)
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  })

  test('a node that lags, forgets or lies makes no payment twice and refunds none', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '100', USDC: '100' }, { lanes: 2 })
      const { node } = wallet
      const one = await withdraw(customer, 'SOL', '1')
      const stale = node.snapshotOfAccounts()
      await step(wallet)
      // The node has forgotten the transaction, and shows its nonce as used.
      node.intercept = (method, _params, next) =>
        method === 'getSignatureStatuses'
          ? { context: { slot: 1 }, value: [null] }
          : method === 'getTransaction'
            ? null
            : next()
      for (let count = 0; count < 3; count++) await step(wallet)
      expect(await readTransfer(customer, one)).toMatchObject({ status: 'PENDING' })
      // It says that it failed, and its transaction says that it did not.
      node.intercept = (method, _params, next) =>
        method === 'getSignatureStatuses'
          ? { context: { slot: 1 }, value: [{ slot: 1, err: 'Oh', confirmationStatus: 'finalized' }] }
          : next()
      for (let count = 0; count < 3; count++) await step(wallet)
      expect(await readTransfer(customer, one)).toMatchObject({ status: 'PENDING' })
      node.intercept = undefined
      await settleAll(wallet)
      await requirePaid(wallet, customer, one)
      // It shows old accounts: no value of a nonce is given out twice.
      const two = await withdraw(customer, 'SOL', '1')
      node.intercept = (method, params, next) => (method === 'getMultipleAccounts' ? stale(params) : next())
      for (let count = 0; count < 3; count++) await step(wallet)
      node.intercept = undefined
      await settleAll(wallet)
      await requirePaid(wallet, customer, two)
      expect(node.made.filter(isPayout(wallet))).toHaveLength(2)
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  })

  test('destinations that keep what is sent to them are refused, and tokens that deliver less wait', async () => {
    const customer = await newCustomer(service)
    const wallet = await newWallet({ SOL: '10', USDC: '100', PYUSD: '100' })
    const { node, mints, hotWallet, adapter } = wallet
    const program = newAddress()
    node.give(program, 1_000_000_000n)
    node.intercept = (method, params, next) => {
      const answer = next() as { value: ({ executable: boolean } | null)[] }
      const at = method === 'getMultipleAccounts' ? (params[0] as string[]).indexOf(program) : -1
      if (at >= 0) answer.value[at]!.executable = true
      return answer
    }
    const holder = newAddress()
    node.mint(TOKEN, mints.USDC, holder, 1n)
    const account = associatedOf(holder, mints.USDC, TOKEN)
    const otherMint = node.makeMint(TOKEN, 6)
    const refused = [
      [program, 'it is a program, which keeps what is sent to it'],
      [account, "it is an account of a token: give its owner's address instead"],
      [otherMint, 'it is a mint or another account of a token, which keeps what is sent to it'],
    ] as const
    for (const [to, why] of refused) await expect(adapter.estimateFee!('USDC', to)).rejects.toThrow(why)
    expect(adapter.refusesDestination!(hotWallet.address)).toMatch('it is the wallet')
    expect(adapter.refusesDestination!(mints.USDC)).toMatch('it is the mint of USDC')
    const small = await withdraw(customer, 'SOL', '0.001')
    const empty = await sign(wallet, { asset: 'SOL', amount: '0.0005', destination_address: newAddress() })
    expect(empty).toMatchObject({
      outcome: 'REFUSED',
      refusal: {
        status_details: {
          invalid_destination_address: {
            message: expect.stringMatching(/at least 0.00089088 SOL/) as string,
          },
        },
      },
    })
    const [plain, made] = await Promise.all([
      adapter.estimateFee!('USDC', holder),
      adapter.estimateFee!('USDC', newAddress()),
    ])
    expect(parseAmount(made.amount, 9)! - parseAmount(plain.amount, 9)!).toBe(2_039_280n)
    await settleAll(wallet)
    await requirePaid(wallet, customer, small)
    await node.stop()
  })

  test.each([
    [
      'a transfer fee',
      extension(1, Buffer.concat([Buffer.alloc(88), u16(25), Buffer.alloc(16), u16(25)])),
      'TOKEN_DELIVERS_LESS',
    ],
    [
      'a transfer hook',
      extension(14, Buffer.concat([Buffer.alloc(32), Buffer.alloc(32, 7)])),
      'TOKEN_REFUSES',
    ],
    [
      'a hook without a program, and no fee',
      Buffer.concat([extension(14, Buffer.alloc(64)), extension(1, Buffer.alloc(108))]),
      undefined,
    ],
  ])('a mint with %s', async (_, bytes, code) => {
    const wallet = await newWallet({ SOL: '10' })
    const mint = wallet.node.makeMint(TOKEN_2022, 6, bytes)
    const mints = { ...wallet.mints, PYUSD: mint }
    const adapter = solanaAdapter({ ...wallet.config, mints }, service.db)
    if (code === undefined) wallet.node.mint(TOKEN_2022, mint, wallet.hotWallet.address, 5_000_000n)
    const signing = await sign(
      { adapter },
      { asset: 'PYUSD', amount: '1', destination_address: newAddress() },
    )
    expect(signing).toMatchObject(
      code === undefined ? { outcome: 'SIGNED' } : { outcome: 'DEFERRED', reason: { code } },
    )
    await wallet.node.stop()
  })

  test('an account that requires a memo gets one, and a memo of the customer arrives', async () => {
    const customer = await newCustomer(service)
    const wallet = await newWallet({ SOL: '10', PYUSD: '100' })
    const { node, mints } = wallet
    const to = newAddress()
    const base = Buffer.alloc(165)
    Buffer.from(base58.decode(mints.PYUSD)).copy(base, 0)
    Buffer.from(base58.decode(to)).copy(base, 32)
    base[108] = 1
    node.put(
      associatedOf(to, mints.PYUSD, TOKEN_2022),
      TOKEN_2022,
      Buffer.concat([base, Buffer.of(2), extension(8, Buffer.of(1)), extension(7, Buffer.alloc(0))]),
    )
    const created = [
      await withdraw(customer, 'PYUSD', '1', to),
      await withdraw(customer, 'PYUSD', '2', to, { memo: '3440566070' }),
    ]
    await settleAll(wallet)
    const memos = []
    for (const one of created) {
      expect(await readTransfer(customer, one)).toMatchObject({ status: 'COMPLETED' })
      memos.push(parsePayment((await keptOf(service.db, one)).raw_transaction!).transfers[0]!.memo)
    }
    expect(memos).toEqual(['Bursar', '3440566070'])
    await node.stop()
  })

  test('a payment that no block takes offers half as much more each time, up to the ceiling, and then says so', async () => {
    const customer = await newCustomer(service)
    const wallet = await newWallet(
      { SOL: '10', USDC: '10' },
      { stuckAfterMs: 0, feeFloor: '0.00001', feeCeiling: '0.000015' },
    )
    const { node } = wallet
    // The node says that nothing costs anything, as it does of an account that nobody else writes to.
    node.unitPrice = 0n
    const both = [
      await withdraw(customer, 'SOL', '1'),
      await withdraw(customer, 'USDC', '1', holderOfUsdc(wallet)),
    ]
    const fees: bigint[] = []
    for (let count = 0; count < 12; count++) {
      await work(service.db, wallet.networks)
      fees.push(...[...node.pool.values()].map((raw) => feeOf(parsePayment(raw))))
      node.pool.clear()
    }
    const rising = [...new Set(fees)]
    expect(rising[0]).toBeGreaterThan(9_990n)
    expect(rising.at(-1)).toBeGreaterThan(29_900n)
    expect(rising.at(-1)).toBeLessThanOrEqual(30_000n)
    expect(rising).toHaveLength(5)
    for (const one of both)
      expect(await keptOf(service.db, one)).toMatchObject({
        waiting_code: 'FEE_ABOVE_CEILING',
        waiting_detail: expect.stringContaining('offers all of fee_ceiling, 0.000015 SOL') as string,
      })
    await settleAll(wallet)
    for (const one of both) await requirePaid(wallet, customer, one)
    await node.stop()
  })

  test('rent that the withdrawal has not paid for is not paid: a recipient could close its account after the order', async () => {
    const wallet = await newWallet({ SOL: '10', USDC: '100' })
    const wanted = { asset: 'USDC', amount: '5', destination_address: newAddress() }
    expect(await sign(wallet, { ...wanted, fee_worth: '0.002' })).toMatchObject({
      outcome: 'REFUSED',
      refusal: {
        status_details: {
          max_rent_exceeded: {
            message: expect.stringMatching(/^the rent of the recipient's account, 0.00203928 SOL,/) as string,
            destination_address: wanted.destination_address,
          },
        },
      },
    })
    expect(await sign(wallet, { ...wanted, fee_worth: '0.00203928' })).toMatchObject({ outcome: 'SIGNED' })
    expect(await sign(wallet, { ...wanted, fee_worth: null, customer_id: PLATFORM_ID })).toMatchObject({
      outcome: 'SIGNED',
    })
    wallet.node.mint(TOKEN, wallet.mints.USDC, wanted.destination_address, 1n)
    expect(await sign(wallet, { ...wanted, fee_worth: '0' })).toMatchObject({ outcome: 'SIGNED' })
    // The worker tells it, behind all guards: these prices of the live market are unknown here.
    const customer = await newCustomer(service)
    const one = await withdraw(customer, 'USDC', '1')
    await work(service.db, guardedNetworks(wallet.networks, { macs: ROW_MACS, screening: undefined }))
    expect(await keptOf(service.db, one)).toMatchObject({
      waiting_code: 'FEE_NOT_COVERED',
      waiting_detail: expect.stringContaining('no price of USDC and SOL') as string,
    })
    await wallet.node.stop()
  })

  test('strangers who send dust to a lane stop nothing', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '10' }, { lanes: 1 })
      const [lane] = laneAccounts({ hotWallet: wallet.hotWallet, formerWallets: [], lanes: 1 })
      const created = [await withdraw(customer, 'SOL', '1'), await withdraw(customer, 'SOL', '2')]
      await step(wallet)
      for (let count = 0; count < 150; count++)
        wallet.node.run([transferSol(wallet.node.bank.address, lane!.account, BigInt(count + 1))])
      wallet.node.calls = []
      await settleAll(wallet)
      // Nobody looks at what strangers do with the account: its value is the one that our own payment has left.
      expect(wallet.node.calls).not.toContain('getSignaturesForAddress')
      for (const one of created) await requirePaid(wallet, customer, one)
      expect(wallet.adapter.refusesDestination!(lane!.account)).toMatch('it is a nonce account')
    })
    // What strangers gave is held, and nobody's.
    const { held } = await wallet.adapter.status!()
    const given = (150n * 151n) / 2n
    expect(parseAmount(held.SOL!, 9)).toBe(10_000_000_000n - (await books.paid('SOL')) + given)
    await wallet.node.stop()
  })

  test('a worker that dies at any step of making lanes makes each once, and posts each fee once', async () => {
    let lives = 0
    const wallet = await newWallet({}, { lanes: 0 })
    const books = await withBooks(() =>
      dieAtEachStep('AFTER', 10, async (failures) => {
        lives += 1
        const config = { ...wallet.config, hotWallet: signerOfSeed(randomBytes(32)), lanes: 2 }
        wallet.node.give(config.hotWallet.address, 1_000_000_000n)
        const dying = solanaAdapter(config, failures.database(service.db))
        for (let count = 0; count < 6 && !failures.died; count++) {
          await failing(failures, () =>
            dying.sweep!(round()).then(
              () => undefined,
              () => undefined,
            ),
          )
          wallet.node.mine()
        }
        const adapter = solanaAdapter(config, service.db)
        await prepare({ adapter, node: wallet.node })
        expect((await adapter.status!()).held.SOL).toBe('0.99999')
      }),
    )
    const { rows } = await service.db.query<{ state: string; count: number }>(
      `select state, count(*)::int from sweeps where network = 'SOLANA' group by state`,
    )
    expect(rows).toEqual([{ state: 'DONE', count: 2 * lives }])
    expect(await books.paid('SOL')).toBe(BigInt(2 * lives) * 5_000n)
    expect((await verify(service.db)).disagreements).toEqual([])
    await wallet.node.stop()
  })

  test('a lane whose transaction came too late ends as VOID, and is made by another', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '10' }, { lanes: 1 })
      const adapter = solanaAdapter({ ...wallet.config, lanes: 2 }, service.db)
      wallet = { ...wallet, adapter, networks: new Map([['SOLANA', adapter]]) }
      await adapter.sweep!(round())
      wallet.node.pool.clear()
      wallet.node.forgetHashes()
      await adapter.sweep!(round())
      wallet.node.pool.clear()
      await service.owner.query(
        `update sweeps set lost_since = (select clock_timestamp() - interval '301 s') where lost_since is not null and state <> 'DONE'`,
      )
      await prepare(wallet)
      const { rows } = await service.db.query(`select state, network_fee from sweeps order by id`)
      expect(rows.map(({ state }) => state as string)).toEqual(['DONE', 'VOID', 'DONE'])
      const one = await withdraw(customer, 'SOL', '1')
      await settleAll(wallet)
      await requirePaid(wallet, customer, one)
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  })

  test('many withdrawals are paid in few transactions', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '1000', USDC: '1000' }, { lanes: 16 })
      const created = []
      for (let count = 0; count < QUEUED; count++)
        created.push(
          count % 2 === 0
            ? await withdraw(customer, 'SOL', '1')
            : await withdraw(customer, 'USDC', '1', holderOfUsdc(wallet)),
        )
      const began = performance.now()
      wallet.node.calls = []
      await settleAll(wallet)
      const calls = wallet.node.calls.length
      console.log(`${QUEUED} withdrawals in ${Math.round(performance.now() - began)} ms by ${calls} calls`)
      for (const one of created) await requirePaid(wallet, customer, one)
      const paid = wallet.node.made
        .filter(isPayout(wallet))
        .map(({ raw }) => parsePayment(raw).transfers.length)
      expect(paid.reduce((sum, count) => sum + count)).toBe(QUEUED)
      expect(paid.length).toBeLessThan(QUEUED / 10)
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  }, 600_000)

  test('what is signed anew after a failed transaction is broadcast again where the network drops it', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '10', USDC: '100', PYUSD: '100' }, { stuckAfterMs: 0 })
      const { before, after } = await afterFailure(wallet, customer)
      wallet.node.pool.clear()
      await settleAll(wallet)
      for (const one of [before, after]) await requirePaid(wallet, customer, one)
      await unfreeze()
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  })

  test.each([1, 1_000])(
    'a payment after a failed transaction is not refunded where %s statuses lag',
    async (lagging) => {
      const customer = await newCustomer(service)
      let wallet!: Wallet
      const books = await withBooks(async () => {
        wallet = await newWallet({ SOL: '10', USDC: '100', PYUSD: '100' })
        const { before, after, again } = await afterFailure(wallet, customer)
        const { node } = wallet
        node.mine()
        const late = parse(again).hash
        let asked = 0
        node.intercept = (method, params, next) => {
          const answer = next() as { value: unknown[] }
          if (method === 'getSignatureStatuses' && asked++ < lagging)
            answer.value = answer.value.map((one, index) =>
              (params[0] as string[])[index] === late ? null : one,
            )
          return answer
        }
        for (let count = 0; count < 5; count++) await step(wallet)
        node.intercept = undefined
        await settleAll(wallet)
        for (const one of [before, after]) await requirePaid(wallet, customer, one)
        await unfreeze()
      })
      await requireAgreement(wallet, books)
      await wallet.node.stop()
    },
  )

  test('a lost transaction of which one payment is marked pays no other twice', async () => {
    const customer = await newCustomer(service)
    const other = await newCustomer(service)
    const wallet = await newWallet({ SOL: '10' }, { lanes: 2 })
    const { node } = wallet
    const [one, two] = [await withdraw(customer, 'SOL', '1'), await withdraw(other, 'SOL', '1.5')]
    await work(service.db, wallet.networks)
    node.mine()
    const hash = (await keptOf(service.db, one)).crypto_tx_hash
    expect(await keptOf(service.db, two)).toMatchObject({ crypto_tx_hash: hash })
    await service.owner.query('delete from outgoing_transfers where transfer_id in ($1, $2)', [
      one.id,
      two.id,
    ])
    await service.owner.query('delete from network_transactions where crypto_tx_hash = $1', [hash])
    await service.owner.query(
      `update solana_lanes set used_nonce = null, used_by = '{}', checked_nonce = null, checked_signature = null`,
    )
    for (let count = 0; count < 2; count++) await step(wallet)
    await markWithdrawalPaid(service.db, wallet.networks, one.id, hash, TEST_ORIGIN)
    for (let count = 0; count < 4; count++) await step(wallet)
    expect(node.lamportsOf(two.destination_address as Address)).toBe(1_500_000_000n)
    expect(await keptOf(service.db, two)).toMatchObject({ waiting_code: 'UNKNOWN_SPENDS' })
    await markWithdrawalPaid(service.db, wallet.networks, two.id, hash, TEST_ORIGIN)
    const three = await withdraw(other, 'SOL', '1')
    await settleAll(wallet)
    await requirePaid(wallet, other, three)
    expect(node.made.filter(isPayout(wallet))).toHaveLength(2)
    await node.stop()
  })

  test('the payments of a foreign transaction that are no marked ones are acknowledged, to the lamport', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '10', USDC: '100' }, { lanes: 2 })
      const { node, hotWallet, mints } = wallet
      const [one, two] = [await withdraw(customer, 'SOL', '1'), await withdraw(customer, 'USDC', '2')]
      const from = hotWallet.address
      const value = await sign(wallet, { asset: 'SOL', amount: '1', destination_address: newAddress() })
      const { nonce, nonceAccount } = parsePayment((value as { raw_transaction: Buffer }).raw_transaction)
      const token = { mint: mints.USDC, program: TOKEN, decimals: 6 }
      const foreign = signPayments(
        hotWallet,
        [
          { from, to: one.destination_address as Address, units: 1_000_000_000n, memo: null },
          { from, to: newAddress(), units: 500_000_000n, memo: null },
          {
            from,
            to: two.destination_address as Address,
            units: 2_000_000n,
            memo: null,
            token,
            makesAccount: true,
          },
          { from, to: newAddress(), units: 3_000_000n, memo: null, token, makesAccount: true },
        ],
        { nonceAccount, nonce, unitLimit: 100_000, unitPrice: 100_000n },
      )
      const hash = foreign.crypto_tx_hash
      node.pool.set(hash, foreign.raw_transaction)
      node.mine()
      await step(wallet)
      expect(await keptOf(service.db, one)).toMatchObject({ waiting_code: 'UNKNOWN_SPENDS' })
      await markWithdrawalPaid(service.db, wallet.networks, one.id, hash, TEST_ORIGIN)
      await markWithdrawalPaid(service.db, wallet.networks, two.id, hash, TEST_ORIGIN)
      const three = await withdraw(customer, 'SOL', '1')
      for (let count = 0; count < 3; count++) await step(wallet)
      expect(await keptOf(service.db, three)).toMatchObject({ waiting_code: 'UNKNOWN_SPENDS' })
      await acknowledgeTransaction(service.db, wallet.adapter, 'SOLANA', hash, { origin: TEST_ORIGIN })
      await settleAll(wallet)
      for (const paid of [one, two, three]) await requirePaid(wallet, customer, paid)
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  })

  test('a foreign transaction on the nonce of two payments: both are signed anew', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '10' }, { lanes: 1 })
      const { node, hotWallet } = wallet
      const [one, two] = [await withdraw(customer, 'SOL', '1'), await withdraw(customer, 'SOL', '2')]
      await work(service.db, wallet.networks)
      const [kept] = [...node.pool.values()]
      expect(parsePayment(kept!).transfers).toHaveLength(2)
      node.pool.clear()
      const { nonceAccount, nonce } = parsePayment(kept!)
      const foreign = signPayments(
        hotWallet,
        [{ from: hotWallet.address, to: newAddress(), units: 500_000_000n, memo: null }],
        { nonceAccount, nonce, unitLimit: 10_000, unitPrice: 0n },
      )
      node.pool.set(foreign.crypto_tx_hash, foreign.raw_transaction)
      node.mine()
      for (let count = 0; count < 4; count++) await step(wallet)
      await acknowledgeTransaction(service.db, wallet.adapter, 'SOLANA', foreign.crypto_tx_hash, {
        origin: TEST_ORIGIN,
      })
      await settleAll(wallet)
      for (const sent of [one, two]) await requirePaid(wallet, customer, sent)
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  })

  test('no two payments of a transaction go to the same account, as SOL and as a token', async () => {
    const wallet = await newWallet({ SOL: '10', USDC: '100' })
    const owner = newAddress()
    const account = associatedOf(owner, wallet.mints.USDC, TOKEN)
    const signings = await signAll(
      wallet,
      { asset: 'SOL', amount: '1', destination_address: account },
      { asset: 'USDC', amount: '1', destination_address: owner },
      { asset: 'SOL', amount: '1', destination_address: owner },
      { asset: 'SOL', amount: '2', destination_address: owner },
    )
    const hashes = signings.map((one) => (one as { crypto_tx_hash: string }).crypto_tx_hash)
    expect(hashes.map((hash) => hashes.indexOf(hash))).toEqual([0, 1, 1, 0])
    await wallet.node.stop()
  })

  test('of a transaction that failed, the payment at fault is no one to sign anew: its fee would be lost', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '10', USDC: '100', PYUSD: '100' }, { verifyRpcUrl: undefined })
      const { node, mints } = wallet
      const to = node.open(TOKEN, mints.USDC, newAddress())
      const frozen = await withdraw(customer, 'USDC', '1', to)
      const after = await withdraw(customer, 'USDC', '2', holderOfUsdc(wallet))
      await work(service.db, wallet.networks)
      const waiting = new Map(node.pool)
      node.pool.clear()
      node.freeze(TOKEN, mints.USDC, to)
      node.pool = waiting
      node.mine()
      for (let count = 0; count < 3; count++) await step(wallet)
      const { crypto_tx_hash } = await keptOf(service.db, frozen)
      const resolve = (id: string) =>
        resolveWithdrawal(service.db, wallet.networks, id, {
          outcome: { usedBy: crypto_tx_hash },
          evidence: '',
          origin: TEST_ORIGIN,
        })
      await resolve(after.id)
      await expect(resolve(frozen.id)).rejects.toThrow('failed because of it')
      await resolveWithdrawal(service.db, wallet.networks, frozen.id, {
        outcome: 'NOT_PAID',
        evidence: 'x',
        origin: TEST_ORIGIN,
      })
      await settleAll(wallet)
      await requirePaid(wallet, customer, after)
      await unfreeze()
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  })

  test('a replacement offers no more than the wallet has kept for it', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '3.0068' }, { stuckAfterMs: 0 })
      const { node } = wallet
      const created = [
        await withdraw(customer, 'SOL', '1'),
        await withdraw(customer, 'SOL', '1'),
        await withdraw(customer, 'SOL', '0.9999'),
      ]
      for (let count = 0; count < 40; count++) {
        await work(service.db, wallet.networks)
        node.pool.clear()
      }
      for (let count = 0; count < 5 && node.pool.size === 0; count++) await work(service.db, wallet.networks)
      node.mine()
      expect(node.made.filter(isPayout(wallet)).map(({ err }) => err)).toEqual([null])
      for (let count = 0; count < 5; count++) await step(wallet)
      expect(await keptOf(service.db, created[2]!)).toMatchObject({ waiting_code: 'HOT_WALLET_SHORT' })
      node.give(wallet.hotWallet.address, 10_000_000n)
      await settleAll(wallet)
      for (const one of created) await requirePaid(wallet, customer, one)
      wallet.funds.SOL = '3.0168'
      await unfreeze()
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  })
})
