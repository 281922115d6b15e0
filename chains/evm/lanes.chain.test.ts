/* Several hot wallets on one network: each payment is made once, and a wallet that is stuck or empty delays only itself. */
import { describe, expect, test } from 'vitest'
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts'
import { createWalletClient, http, type Hex } from 'viem'
import { TOKEN_ABI, deployToken, ownAnvil } from '../../test/anvil.ts'
import { FAILURES, dieAtEachStep } from '../../test/failures.ts'
import {
  MASTER_KEYS,
  newCustomer,
  ROW_MACS,
  ownTestService,
  TEST_ORIGIN,
  type TestCustomer,
} from '../../test/support.ts'
import { keptOf, order, settle as settleOn, sumOn, work } from '../../test/payouts-on.ts'
import { parseAmount } from '../../src/contract/assets/amount.ts'
import { openDatabase, type Database } from '../../src/db/database.ts'
import type { Transfer } from '../../src/money/ledger/transfer.ts'
import { RowMacs } from '../../src/audit/sealed-rows.ts'
import { insertDepositAddress } from '../../src/money/records/deposit-address.ts'
import { PLATFORM_ID } from '../../src/db/ids.ts'
import { verify } from '../../src/money/verify/verify.ts'
import { creditDeposits } from '../../test/credit-deposits.ts'
import { markWithdrawalPaid } from '../../src/rails/payouts/mark-withdrawal-paid.ts'
import { isFrozen, postSweep } from '../../src/rails/treasury/sweep-deposit-addresses.ts'
import {
  orderConsolidation,
  orderTreasurySend,
  selectTreasuryTransfers,
} from '../../src/rails/treasury/orders.ts'
import { networkReports } from '../../src/rails/wallets/network-status.ts'
import type { Networks } from '../../src/networks/network.ts'
import { evmAdapter, type EvmConfig } from './adapter.ts'
import { withdrawalReader } from '../../src/rails/payouts/withdrawal-reader.ts'
import { atEnd } from '../../test/at-end.ts'

const CONFIRMATIONS = 2
const ONE_ETH = 10n ** 18n
const MNEMONIC = 'legal winner thank year wave sausage worth useful legal winner thank yellow'
const service = await ownTestService()
const anvil = await ownAnvil(1)
const USDG = await deployToken(anvil, 6)

/** New hot wallets with these amounts of ETH, and 1,000 USDG each. */
async function newWallets(eth: readonly number[], changes: Partial<EvmConfig> = {}) {
  const wallets = eth.map(() => privateKeyToAccount(generatePrivateKey()))
  for (const [index, { address }] of wallets.entries()) {
    const value = (BigInt(eth[index]! * 1000) * ONE_ETH) / 1000n
    await anvil.chain.setBalance({ address, value })
    await giveToken(address, 1_000_000_000n)
  }
  const [hotWallet, ...furtherWallets] = wallets
  const config: EvmConfig = {
    mode: 'sandbox',
    rpcUrl: anvil.rpcUrl,
    hotWallet: hotWallet!,
    furtherWallets,
    depositKey: { mnemonic: MNEMONIC },
    confirmations: CONFIRMATIONS,
    maxFeePerGasCeiling: '100',
    withdrawals: withdrawalReader,
    tokens: { USDG },
    pollMs: 10,
    sweepMinimum: { ETH: '0.002', USDG: '1' },
    ...changes,
  }
  return { wallets, config, ...on(config) }
}
type Wallets = Awaited<ReturnType<typeof newWallets>>

const on = (config: EvmConfig, db: Database = service.db) => {
  const adapter = evmAdapter('ETHEREUM', config, db)
  return { adapter, networks: new Map([['ETHEREUM', adapter]]) as Networks }
}

const giveToken = (to: Hex, units: bigint) =>
  anvil.chain.writeContract({
    chain: null,
    address: USDG,
    abi: TOKEN_ABI,
    functionName: 'mint',
    args: [to, units],
  })

const newAddress = (): Hex => privateKeyToAccount(generatePrivateKey()).address

const balance = (address: Hex, asset = 'ETH') =>
  asset === 'ETH'
    ? anvil.chain.getBalance({ address })
    : anvil.chain.readContract({ address: USDG, abi: TOKEN_ABI, functionName: 'balanceOf', args: [address] })

/** Orders withdrawals through the API, each to a new address, from a balance that is credited for them. */
async function withdraw(
  customer: TestCustomer,
  amounts: readonly string[],
  asset = 'ETH',
): Promise<Transfer[]> {
  const created: Transfer[] = []
  for (const amount of amounts) {
    const asked = { crypto_network: 'ETHEREUM', asset, amount, destination_address: newAddress() } as const
    created.push(await order(service, customer, asked))
  }
  return created
}

/** One round of the worker, with everything due. */
const step = ({ networks }: Pick<Wallets, 'networks'>, db: Database = service.db) =>
  work(service.db, networks, db)

/** Works, with a block in each round, until these have ended. */
const settle = ({ networks }: Pick<Wallets, 'networks'>, transfers: readonly Transfer[]) =>
  settleOn(service.db, networks, () => anvil.chain.mine({ blocks: 1 }), transfers)

/** By transfer: who signed it, or why it waits. */
const standing = (transfers: readonly Transfer[]) =>
  Promise.all(
    transfers.map(async (one) => {
      const { state, waiting_code, crypto_tx_hash } = await keptOf(service.db, one)
      if (state === 'HELD') return waiting_code
      return (await anvil.chain.getTransaction({ hash: crypto_tx_hash as Hex })).from
    }),
  )

/** What each wallet has sent, by its nonce; everything in it is mined once, with the exact amount. */
async function requirePaid(transfers: readonly Transfer[]): Promise<void> {
  for (const { destination_address, amount, asset } of transfers)
    expect(await balance(destination_address as Hex, asset)).toBe(
      parseAmount(amount, asset === 'ETH' ? 18 : 6),
    )
}

/** What the wallets hold is what they were given, less what the ledgers say has left them. */
async function requireAgreement(
  { adapter, wallets }: Wallets,
  eth: readonly number[],
  customers: TestCustomer[],
) {
  const given = eth.reduce((sum, one) => sum + (BigInt(one * 1000) * ONE_ETH) / 1000n, 0n)
  const paid = await sumOn(service.db, 'custody:ETHEREUM', 'ETH', customers)
  const { held } = await adapter.status!()
  expect(parseAmount(held.ETH!, 18)).toBe(given - paid)
  const nonces = await service.db.query<{ address: Hex; next_nonce: string }>(
    'select address, next_nonce from evm_nonces where address = any ($1)',
    [wallets.map(({ address }) => address)],
  )
  for (const { address, next_nonce } of nonces.rows)
    expect(await anvil.chain.getTransactionCount({ address })).toBe(Number(next_nonce))
  expect((await verify(service.db, { tokens: new Map([['ETHEREUM', { USDG }]]) })).disagreements).toEqual([])
}

async function withoutMining<T>(work: () => Promise<T>): Promise<T> {
  await anvil.chain.setAutomine(false)
  try {
    return await work()
  } finally {
    await anvil.chain.setAutomine(true)
  }
}

const lanesOf = async ({ adapter }: Pick<Wallets, 'adapter'>) => {
  const [report] = await networkReports(
    service.db,
    new Map([['ETHEREUM', { adapter, confirmations: CONFIRMATIONS }]]),
  )
  return report!.lanes
}

/** Sends with a wallet's key, from outside of Bursar. */
const sendWith = (account: PrivateKeyAccount) =>
  createWalletClient({ account, transport: http(anvil.rpcUrl) }).sendTransaction({
    chain: null,
    to: newAddress(),
    value: 1n,
  })

test('each wallet has its own limit in flight, and all pay at the same time', async () => {
  const eth = [10, 10, 10]
  const [customer, wallets] = [await newCustomer(service), await newWallets(eth, { maxInFlight: 2 })]
  const created = await withdraw(customer, Array<string>(7).fill('0.5'))
  await withoutMining(async () => {
    await step(wallets)
    const senders = await standing(created)
    expect(senders[6]).toBe('IN_FLIGHT_LIMIT')
    const counts = wallets.wallets.map(
      ({ address }) => senders.filter((one) => one === address.toLowerCase()).length,
    )
    expect(counts).toEqual([2, 2, 2])
    expect((await lanesOf(wallets)).map(({ lane, in_flight }) => [lane, in_flight])).toEqual(
      wallets.wallets.map(({ address }) => [address, 2]),
    )
  })
  await settle(wallets, created)
  await requirePaid(created)
  await requireAgreement(wallets, eth, [customer])
})

test('an empty wallet delays nobody; a payment that none can make delays its own profile and asset', async () => {
  const eth = [0, 5, 3]
  const wallets = await newWallets(eth)
  const [customer, other] = [await newCustomer(service), await newCustomer(service)]
  const small = await withdraw(customer, ['1', '1'])
  const large = await withdraw(customer, ['7'])
  const behind = await withdraw(customer, ['0.1'])
  const tokens = await withdraw(customer, ['5', '6'], 'USDG')
  const others = await withdraw(other, ['1'])
  await withoutMining(async () => {
    await step(wallets)
    expect(await standing([...large, ...behind])).toEqual(['HOT_WALLET_SHORT', 'BEHIND_ANOTHER'])
    for (const sender of await standing([...small, ...tokens, ...others])) {
      expect(sender).toMatch(/^0x/)
      expect(sender).not.toBe(wallets.wallets[0]!.address.toLowerCase())
    }
  })
  await settle(wallets, [...small, ...tokens, ...others])
  const balances = await Promise.all(wallets.wallets.map(({ address }) => balance(address)))
  const fullest = balances.reduce((most, one) => (one > most ? one : most))
  const order = {
    network: 'ETHEREUM',
    asset: 'ETH',
    destination_address: newAddress(),
    reference: 'x',
  } as const
  const amount = String(fullest / ONE_ETH + 1n)
  const macs = new RowMacs(MASTER_KEYS)
  await expect(
    orderTreasurySend({ db: service.db, macs, origin: TEST_ORIGIN }, wallets.adapter, { ...order, amount }),
  ).rejects.toThrow(/^amount: the fullest hot wallet of ETHEREUM has \d/)
  // A refill of one wallet pays it, and what waits behind it.
  await anvil.chain.sendTransaction({ chain: null, to: wallets.wallets[2]!.address, value: 8n * ONE_ETH })
  await settle(wallets, [...large, ...behind])
  await requirePaid([...small, ...large, ...behind, ...tokens, ...others])
  await requireAgreement(wallets, [...eth, 8], [customer, other])
})

test('unknown transactions of one wallet stop all: they may have paid what another would pay', async () => {
  const eth = [5, 5]
  const [customer, wallets] = [await newCustomer(service), await newWallets(eth)]
  const [first] = wallets.wallets
  const made = await withdraw(customer, ['0.5', '0.5', '0.5'])
  // The database was restored from before the first of them was paid.
  const [paid] = made
  await createWalletClient({ account: first!, transport: http(anvil.rpcUrl) }).sendTransaction({
    ...{ chain: null, to: paid!.destination_address as Hex, value: ONE_ETH / 2n },
  })
  await step(wallets)
  expect(await standing(made)).toEqual(Array(3).fill('UNKNOWN_SPENDS'))
  const [blocked, free] = await lanesOf(wallets)
  expect(blocked).toMatchObject({
    lane: first!.address,
    blocked: { code: 'UNKNOWN_SPENDS', detail: expect.stringMatching(/of nonce 0, which /) as string },
  })
  expect(free).not.toHaveProperty('blocked')
  const hash = (await anvil.chain.getBlock({ includeTransactions: true })).transactions[0]!.hash
  await markWithdrawalPaid(service.db, wallets.networks, paid!.id, hash, TEST_ORIGIN)
  await settle(wallets, made)
  await requirePaid(made)
  await requireAgreement(wallets, eth, [customer])
})

test('a wallet whose transactions were taken back signs nothing, and the others go on', async () => {
  const eth = [5, 5]
  const [customer, wallets] = [await newCustomer(service), await newWallets(eth)]
  const [first, second] = wallets.wallets
  await service.db.query(`insert into evm_nonces (network, address, next_nonce) values ('ETHEREUM', $1, 3)`, [
    first!.address,
  ])
  const made = await withdraw(customer, ['0.5', '0.5'])
  await step(wallets)
  expect(await standing(made)).toEqual(Array(2).fill(second!.address.toLowerCase()))
  await settle(wallets, made)
  await requirePaid(made)
})

test('a wallet that is taken out of service is followed to its end, and the others pay on', async () => {
  const eth = [5, 5]
  const [customer, wallets] = [await newCustomer(service), await newWallets(eth, { maxInFlight: 2 })]
  const before = await withdraw(customer, ['0.5', '0.5', '0.5', '0.5'])
  const [hotWallet, drained] = wallets.wallets
  const { furtherWallets: _, ...rest } = wallets.config
  const rotated = on({ ...rest, formerWallets: [drained!] })
  const after = await withoutMining(async () => {
    await step(wallets)
    expect(new Set(await standing(before)).size).toBe(2)
    const later = await withdraw(customer, ['0.25'])
    await step(rotated)
    expect(await standing(later)).toEqual(['IN_FLIGHT_LIMIT'])
    return later
  })
  await settle(rotated, [...before, ...after])
  await requirePaid([...before, ...after])
  const ended = await customer.call<Transfer>('GET', `/v2/transfer/transfers/${after[0]!.id}`)
  const hash = ended.body.crypto_tx_hash as Hex
  expect((await anvil.chain.getTransaction({ hash })).from).toBe(hotWallet!.address.toLowerCase())
  await requireAgreement({ ...wallets, ...rotated }, eth, [customer])
})

test('what a former wallet holds is moved to the hot wallet, tokens first, and stays in custody', async () => {
  const eth = [5, 2]
  const [customer, wallets] = [await newCustomer(service), await newWallets(eth)]
  const paid = await withdraw(customer, ['0.5', '0.5'])
  await settle(wallets, paid)
  const [hotWallet, former] = wallets.wallets
  const { furtherWallets: _, ...rest } = wallets.config
  const rotated = { ...wallets, ...on({ ...rest, formerWallets: [former!] }) }
  const ordering = { db: service.db, macs: new RowMacs(MASTER_KEYS), origin: TEST_ORIGIN }
  const consolidate = (rate?: string) => orderConsolidation(ordering, rotated.adapter, 'ETHEREUM', rate)
  await expect(consolidate('x')).rejects.toThrow('the fee rate must be an amount in gwei')
  const moved: unknown[] = []
  for (const rate of [undefined, '50']) {
    const { transfer, is_new } = await consolidate(rate)
    expect(is_new).toBe(true)
    expect(await consolidate()).toMatchObject({ transfer: { id: transfer.id }, is_new: false })
    await settle(rotated, [transfer as unknown as Transfer])
    moved.push(transfer.asset)
    expect((await selectTreasuryTransfers(service.db, 'ETHEREUM', 1))[0]).toMatchObject({
      id: transfer.id,
      status: 'COMPLETED',
      destination_address: hotWallet!.address,
    })
  }
  expect(moved).toEqual(['USDG', 'ETH'])
  await expect(consolidate('50')).rejects.toThrow('no former wallet with a key holds more than the fee')
  expect(await balance(former!.address, 'USDG')).toBe(0n)
  expect(await balance(hotWallet!.address, 'USDG')).toBe(2_000_000_000n)
  // At 50 gwei: the part of the fee that the transfer did not need.
  expect(await balance(former!.address)).toBeLessThan(2n * 10n ** 15n)
  const platform = { customer_id: PLATFORM_ID } as TestCustomer
  await requireAgreement(rotated, eth, [customer, platform])
})

test('a former wallet without gas, or in use elsewhere, moves nothing', async () => {
  const wallets = await newWallets([5, 0])
  const [hotWallet, former] = wallets.wallets
  const { furtherWallets: _, ...rest } = wallets.config
  const consolidate = (formerWallets: EvmConfig['formerWallets'] = [former!]) =>
    orderConsolidation(
      { db: service.db, macs: new RowMacs(MASTER_KEYS), origin: TEST_ORIGIN },
      on({ ...rest, formerWallets }).adapter,
      'ETHEREUM',
      undefined,
    )
  await expect(consolidate()).rejects.toThrow(
    new RegExp(
      `^the former wallet ${former!.address} has USDG, and too little gas to move it: send it 0\\.\\d+ ETH$`,
    ),
  )
  await anvil.chain.setBalance({ address: former!.address, value: ONE_ETH })
  await sendWith(former!)
  await expect(consolidate()).rejects.toThrow(/^the wallet has sent transactions of nonce 0/)
  const { address } = former!
  const watched = {
    address,
    isWatched: true as const,
    signTransaction: () => Promise.reject(new Error('no key')),
  }
  await expect(consolidate([watched])).rejects.toThrow('no former wallet with a key')
  expect(await balance(hotWallet!.address, 'USDG')).toBe(1_000_000_000n)
})

test('two workers neither pay twice nor leave a gap', async () => {
  const eth = [50, 50, 50]
  const wallets = await newWallets(eth, { maxInFlight: 3 })
  const customers = [await newCustomer(service), await newCustomer(service)]
  const pools = [1, 2].map(() => openDatabase(service.url, { max: 4, onError: () => undefined }))
  let isOrdering = true
  atEnd(async () => {
    isOrdering = false
  })
  const working = pools.map(async (pool) => {
    const own = on(wallets.config, pool)
    while (isOrdering) await step(own, pool)
  })
  const made: Transfer[] = []
  for (let order = 0; order < 20; order++)
    made.push(...(await withdraw(customers[order % 2]!, ['5'], order % 2 === 0 ? 'ETH' : 'USDG')))
  isOrdering = false
  await Promise.all(working)
  await settle(wallets, made)
  await Promise.all(pools.map((pool) => pool.end()))
  await requirePaid(made)
  await requireAgreement(wallets, eth, customers)
})

test('sweeps go to the wallet with the least, with gas from one that has it', async () => {
  const [customer, wallets] = [await newCustomer(service), await newWallets([0, 2])]
  const { networks, adapter } = wallets
  const { profile_id, customer_id } = customer
  const { address } = await insertDepositAddress(service.db, { networks, rowMacs: ROW_MACS }, customer_id, {
    profile_id,
    crypto_network: 'ETHEREUM',
  })
  await giveToken(wallets.wallets[0]!.address, 500_000_000n)
  await giveToken(address as Hex, 40_000_000n)
  await anvil.chain.sendTransaction({ chain: null, to: address as Hex, value: ONE_ETH })
  const { db, ledger, settings } = service
  const prices = new Map([
    ['ETH', 3_000n * ONE_ETH],
    ['USDG', ONE_ETH],
  ])
  for (let round = 1; round <= 30; round++) {
    await anvil.chain.mine({ blocks: 1 })
    await creditDeposits({ db, ledger, networks, settings })
    await adapter.sweep!({ post: postSweep, isFrozen, prices })
  }
  const [first, second] = wallets.wallets
  // The first wallet has no ETH, and more of the token.
  expect(await balance(second!.address, 'USDG')).toBe(1_040_000_000n)
  expect(await balance(first!.address)).toBeGreaterThan((9n * ONE_ETH) / 10n)
  expect(await balance(address as Hex, 'USDG')).toBe(0n)
  expect((await lanesOf(wallets)).map(({ lane }) => lane)).toEqual([first!.address, second!.address])
})

describe('a worker that dies', () => {
  test.each(FAILURES)('%s a step pays from each wallet once', async (failure) => {
    const eth = [900, 900]
    const [customer, wallets] = [await newCustomer(service), await newWallets(eth, { maxInFlight: 1 })]
    await dieAtEachStep(failure, 15, async (failures) => {
      const created = await withdraw(customer, ['0.5', '0.5', '0.5'])
      const db = failures.database(service.db)
      const own = on(wallets.config, db)
      for (let round = 1; round <= 12 && !failures.died; round++) {
        await step(own, db).catch(() => undefined)
        await anvil.chain.mine({ blocks: 1 })
      }
      await settle(wallets, created)
      await requirePaid(created)
    })
    await requireAgreement(wallets, eth, [customer])
  })
})
