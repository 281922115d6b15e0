/*
 * Invariants of SOLANA, wherever it fails and however many workers there are:
 * 1. the chain makes each withdrawal once, with the exact amount, or the withdrawal is refunded and never made;
 * 2. no two withdrawals share a value of a nonce, unless the first is proven void;
 * 3. the ledger's custody equals the hot wallet and its nonce accounts, to the last lamport;
 * 4. nothing stays in flight.
 */
import { randomBytes } from 'node:crypto'
import type { Address } from '@solana/addresses'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runtime, SolanaNode } from '../../../test/solana-node.ts'
import { credit, newCustomer, startTestService } from '../../../test/support.ts'
import type { TestCustomer, TestService } from '../../../test/support.ts'
import { hurryUnlocked } from '../../../test/work-off.ts'
import { parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import type { Transfer } from '../../money/ledger/transfer.ts'
import { verify } from '../../money/verify/verify.ts'
import { settleWithdrawals } from '../../rails/payouts/settle-withdrawals.ts'
import { isFrozenFor, postSweep } from '../../rails/treasury/sweep-deposit-addresses.ts'
import type { Database } from '../../db/database.ts'
import type { Networks } from '../network.ts'
import { solanaAdapter, type SolanaConfig } from './adapter.ts'
import { TOKEN, TOKEN_2022 } from './instructions.ts'
import { signerOfSeed } from './keys.ts'

let service: TestService

beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service.close())

const newAddress = (): Address => signerOfSeed(randomBytes(32)).address

/** A chain, with a hot wallet that has these funds and its lanes. */
async function newWallet(funds: Record<string, string>, changes: Partial<SolanaConfig> = {}) {
  // Each chain has a first block of its own, which the database records.
  await service.owner.query(`delete from network_genesis where network = 'SOLANA'`)
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
    hotWallet,
    feeCeiling: '0.001',
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

const round = (wallet: Pick<Wallet, 'adapter'>) => ({
  post: postSweep,
  isFrozen: isFrozenFor(wallet.adapter),
  prices: new Map() as never,
})

/** Makes the lanes. */
async function prepare(wallet: Pick<Wallet, 'adapter' | 'node'>): Promise<void> {
  for (let count = 0; count < 20; count++) {
    const steps = await wallet.adapter.sweep!(round(wallet))
    wallet.node.mine()
    if (steps === 0) return
  }
  throw new Error('the lanes are not made')
}

async function withdraw(
  customer: TestCustomer,
  asset: string,
  amount: string,
  destination_address: string = newAddress(),
  more: Record<string, unknown> = {},
): Promise<Transfer> {
  await credit(service.ledger, customer, asset, '1000')
  const { status, body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
    profile_id: customer.profile_id,
    asset,
    amount,
    crypto_network: 'SOLANA',
    destination_address,
    ...more,
  })
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}

const readTransfer = async (customer: TestCustomer, { id }: { id: string }) =>
  (await customer.call<Transfer>('GET', `/v2/transfer/transfers/${id}`)).body

async function step({ networks, node }: Wallet, db: Database = service.db): Promise<void> {
  await hurryUnlocked(service.db, { endLeases: true })
  await settleWithdrawals(db, networks)
  node.mine()
}

async function settleAll(wallet: Wallet): Promise<void> {
  for (let count = 1; count <= 60; count++) {
    await step(wallet)
    const { rowCount } = await service.db.query(`select from transfers where status = 'PENDING'`)
    if (rowCount === 0) return
  }
  const { rows } = await service.db.query(
    'select waiting_code, waiting_detail from outgoing_transfers where due_at is not null',
  )
  throw new Error(`the worker does not come to an end: ${JSON.stringify(rows)}`)
}

async function onLedger(account: string, asset: string): Promise<bigint> {
  const { rows } = await service.db.query<{ sum: string | null }>(
    'select sum(amount) from entries where account = $1 and asset = $2',
    [account, asset],
  )
  return parseStoredAmount(rows[0]!.sum ?? '0', decimalsOf(asset))
}

/** Runs a test with a ledger that has nothing of SOLANA from the tests before. */
async function withBooks<T>(
  work: () => Promise<T>,
): Promise<{
  paid: (asset: string) => Promise<bigint>
  inFlight: (asset: string) => Promise<bigint>
  result: T
}> {
  const assets = ['SOL', 'USDC', 'PYUSD']
  const before = new Map<string, bigint>()
  for (const asset of assets)
    for (const account of ['custody:SOLANA', 'in_flight:SOLANA'])
      before.set(account + asset, await onLedger(account, asset))
  const result = await work()
  const since = async (account: string, asset: string) =>
    (await onLedger(account, asset)) - before.get(account + asset)!
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

describe.skipIf(runtime === undefined)('on the real runtime', () => {
  test('withdrawals of SOL and of tokens are made once, with the exact amount', async () => {
    const customer = await newCustomer(service)
    let wallet!: Wallet
    const orders = [
      ['SOL', '1.000000007'],
      ['USDC', '12.345678'],
      ['PYUSD', '7.000001'],
    ] as const
    const books = await withBooks(async () => {
      wallet = await newWallet({ SOL: '100', USDC: '1000', PYUSD: '1000' })
      const created = []
      for (const [asset, amount] of orders) created.push(await withdraw(customer, asset, amount))
      await settleAll(wallet)
      for (const [index, one] of created.entries()) {
        const [asset, amount] = orders[index]!
        expect(await readTransfer(customer, one)).toMatchObject({ status: 'COMPLETED', crypto_tx_index: '0' })
        const to = one.destination_address as Address
        const arrived =
          asset === 'SOL'
            ? wallet.node.lamportsOf(to)
            : wallet.node.unitsOf(wallet.programs[asset], wallet.mints[asset], to)
        expect(arrived).toBe(parseAmount(amount, asset === 'SOL' ? 9 : 6))
      }
    })
    await requireAgreement(wallet, books)
    await wallet.node.stop()
  })
})
