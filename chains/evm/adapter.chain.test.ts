/*
 * Invariants of an EVM network, wherever it fails and however many workers there are:
 * 1. the chain mines each withdrawal once, with the exact amount, or the withdrawal is refunded and never mined;
 * 2. the nonces of the hot wallet have no gap, and no two withdrawals share a nonce;
 * 3. the ledger's custody equals the hot wallet plus the unswept deposits, to the last unit;
 * 4. nothing stays in flight;
 * 5. a deposit is found once, however often its block is read.
 */
import { originOfLoop } from '../../src/contract/actor.ts'
import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { generatePrivateKey, mnemonicToAccount, privateKeyToAccount } from 'viem/accounts'
import {
  createWalletClient,
  getAddress,
  http,
  parseGwei,
  recoverTransactionAddress,
  toHex,
  type Hex,
  type TransactionSerialized,
} from 'viem'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { FAILURES, dieAtEachStep, failing } from '../../test/failures.ts'
import { TOKEN_ABI, deployToken, ownAnvil, type Anvil } from '../../test/anvil.ts'
import {
  credit,
  MASTER_KEYS,
  movedBy,
  newCustomer,
  ownTestService,
  ROW_MACS,
  setPrice,
  TEST_ORIGIN,
} from '../../test/support.ts'
import type { TestCustomer } from '../../test/support.ts'
import {
  codesOf,
  keptOf,
  order,
  readTransfer,
  reasonsOf,
  settle,
  sumOn,
  work,
} from '../../test/payouts-on.ts'
import { hurryUnlocked } from '../../test/work-off.ts'
import { formatAmount, parseAmount, parseStoredAmount } from '../../src/contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import { openDatabase, transaction, type Database } from '../../src/db/database.ts'
import { insertDepositAddress } from '../../src/money/records/deposit-address.ts'
import type { Transfer } from '../../src/money/ledger/transfer.ts'
import { freeze, unfreeze } from '../../src/money/records/freezes.ts'
import { PLATFORM_ID } from '../../src/db/ids.ts'
import { verify } from '../../src/money/verify/verify.ts'
import { RowMacs } from '../../src/audit/sealed-rows.ts'
import { creditDeposits } from '../../test/credit-deposits.ts'
import { cancelForOperator } from '../../src/rails/payouts/cancel-withdrawal.ts'
import { markWithdrawalPaid } from '../../src/rails/payouts/mark-withdrawal-paid.ts'
import { resolveWithdrawal, type Resolution } from '../../src/rails/payouts/resolve-withdrawal.ts'
import { resendWithdrawal } from '../../src/rails/payouts/resend-withdrawal.ts'
import { settleWithdrawals } from '../../src/rails/payouts/settle-withdrawals.ts'
import { isFrozen, postSweep } from '../../src/rails/treasury/sweep-deposit-addresses.ts'
import { acknowledgeTransaction } from '../../src/rails/treasury/acknowledged.ts'
import { orderConsolidation, orderTreasurySend } from '../../src/rails/treasury/orders.ts'
import { evmAdapter, type EvmConfig } from './adapter.ts'
import { parse, signerAddressOf } from './transaction.ts'
import { depositKeysOf } from './deposit-keys.ts'
import { evmNode } from './node.ts'
import { simulatedNetworks } from '../../src/networks/simulated/adapter.ts'
import { routeBySigner } from '../../src/networks/simulated/route-by-signer.ts'
import { formerWalletsIn, networkReports } from '../../src/rails/wallets/network-status.ts'
import type { NetworkAdapter, Networks, PayoutNetwork } from '../../src/networks/network.ts'
import { signOnlyAccepted } from '../../src/rails/payouts/sign-only-accepted.ts'
import { sealWithdrawal } from '../../src/money/movements/accepted-withdrawals.ts'
import { withdrawalReader, readerOfWithdrawals } from '../../src/rails/payouts/withdrawal-reader.ts'
import type { FoundDeposit } from '../../src/networks/found-deposits.ts'
import { atEnd } from '../../test/at-end.ts'

const CONFIRMATIONS = 3
const MNEMONIC = 'legal winner thank year wave sausage worth useful legal winner thank yellow'

const service = await ownTestService()
const anvils = new Map<CryptoNetwork, Anvil>([
  ['ETHEREUM', await ownAnvil(1)],
  ['INK', await ownAnvil(57073)],
])
const tokens = new Map<CryptoNetwork, Record<string, Hex>>()

for (const [network, anvil] of anvils) {
  const USDG = await deployToken(anvil, 6)
  tokens.set(network, network === 'ETHEREUM' ? { USDG, LINK: await deployToken(anvil, 18) } : { USDG })
}
// Two tests whose payments fail would stop the network.
afterEach(() => service.owner.query('delete from failed_transactions'))

/** A new hot wallet on a network, with the functions that tests need. */
async function newWallet(
  network: CryptoNetwork,
  funds: Record<string, string>,
  changes: Partial<EvmConfig> = {},
) {
  const anvil = anvils.get(network)!
  const { chain, rpcUrl } = anvil
  const since = await chain.getBlockNumber()
  const hotWallet = privateKeyToAccount(generatePrivateKey())
  const config: EvmConfig = {
    mode: 'sandbox',
    rpcUrl,
    hotWallet,
    depositKey: { mnemonic: MNEMONIC },
    confirmations: CONFIRMATIONS,
    maxFeePerGasCeiling: '100',
    withdrawals: withdrawalReader,
    tokens: tokens.get(network)!,
    pollMs: 10,
    ...changes,
  }
  for (const [asset, amount] of Object.entries(funds)) await give(network, hotWallet.address, asset, amount)
  const adapter = evmAdapter(network, config, service.db)
  return {
    network,
    anvil,
    chain,
    since,
    funds,
    hotWallet,
    config,
    adapter,
    networks: new Map([[network, adapter]]) as Networks,
  }
}
type Wallet = Awaited<ReturnType<typeof newWallet>>

/** A new customer, and a new hot wallet that pays for it. */
const newPayer = async (...wallet: Parameters<typeof newWallet>) =>
  [await newCustomer(service), await newWallet(...wallet)] as const

/** Sends an asset to an address from outside of Bursar. */
async function give(network: CryptoNetwork, to: Hex, asset: string, amount: string): Promise<Hex> {
  const { chain } = anvils.get(network)!
  const token = tokens.get(network)![asset]
  const units = parseAmount(amount, token === undefined ? 18 : asset === 'USDG' ? 6 : 18)!
  return token === undefined
    ? chain.sendTransaction({ chain: null, to, value: units })
    : chain.writeContract({
        chain: null,
        address: token,
        abi: TOKEN_ABI,
        functionName: 'mint',
        args: [to, units],
      })
}

async function balance(network: CryptoNetwork, address: Hex, asset: string): Promise<bigint> {
  const { chain } = anvils.get(network)!
  const token = tokens.get(network)![asset]
  return token === undefined
    ? chain.getBalance({ address })
    : chain.readContract({ address: token, abi: TOKEN_ABI, functionName: 'balanceOf', args: [address] })
}

const newAddress = (): Hex => privateKeyToAccount(generatePrivateKey()).address

/** Orders a withdrawal through the API, from a balance that is credited for it. */
const withdraw = (
  customer: TestCustomer,
  crypto_network: CryptoNetwork,
  asset: string,
  amount: string,
  destination_address: string = newAddress(),
): Promise<Transfer> => order(service, customer, { crypto_network, asset, amount, destination_address })

const read = readTransfer
const hurry = () => hurryUnlocked(service.db, { endLeases: true })

/** Runs the worker, with a block in each round, until nothing is pending. */
const settleAll = ({ networks, chain }: Wallet) =>
  settle(service.db, networks, () => chain.mine({ blocks: 1 }))

/** One step of the worker, with everything due. */
const step = ({ networks }: Pick<Wallet, 'networks'>, db: Database = service.db) =>
  work(service.db, networks, db)

// ---------------------------------------------------------------------------------------------- invariants

/** The sum of the customers' accounts on a network for an asset, in minor units. */
const onLedger = (customers: TestCustomer[], account: string, asset: string) =>
  sumOn(service.db, account, asset, customers)

/** Returns every mined transaction of a wallet, in order. */
async function madeBy({ chain, hotWallet, since }: Wallet) {
  const head = await chain.getBlockNumber({ cacheTime: 0 })
  const numbers = Array.from({ length: Number(head - since) + 1 }, (_, index) => since + BigInt(index))
  const blocks = await Promise.all(
    numbers.map((blockNumber) => chain.getBlock({ blockNumber, includeTransactions: true })),
  )
  return blocks.flatMap(({ transactions }) =>
    transactions.filter(({ from }) => getAddress(from) === hotWallet.address),
  )
}

/** Checks invariants 2 to 4 for a wallet and former ones that had these funds, and the customers for whom they paid. */
async function requireAgreement(
  wallet: Wallet,
  customers: TestCustomer[],
  { funds = wallet.funds, former = [] as Wallet[] } = {},
) {
  const { network, chain, hotWallet, adapter } = wallet
  const { held } = await adapter.status!()
  let fees = 0n
  const made = await madeBy(wallet)
  for (const { hash } of [...made, ...(await Promise.all(former.map(madeBy))).flat()]) {
    const { gasUsed, effectiveGasPrice } = await chain.getTransactionReceipt({ hash })
    fees += gasUsed * effectiveGasPrice
  }
  expect(await onLedger(customers, `network_fees:${network}`, 'ETH')).toBe(-fees)
  for (const [asset, amount] of Object.entries(funds)) {
    const funded = parseAmount(amount, decimalsOf(asset))!
    const paid = await onLedger(customers, `custody:${network}`, asset)
    expect([asset, parseAmount(held[asset]!, decimalsOf(asset))]).toEqual([asset, funded - paid])
    expect(await onLedger(customers, `in_flight:${network}`, asset)).toBe(0n)
  }
  const { rows } = await service.db.query<{ next_nonce: string }>(
    'select next_nonce from evm_nonces where network = $1 and address = $2',
    [network, hotWallet.address],
  )
  expect(made.map(({ nonce }) => nonce)).toEqual(made.map((_, index) => index))
  expect(rows.map(({ next_nonce }) => Number(next_nonce))).toEqual([made.length])
  expect((await verify(service.db, { tokens })).disagreements).toEqual([])
  return made
}

/** Transactions stay in the mempool until a test mines. */
async function withoutMining<T>({ chain }: Wallet, work: () => Promise<T>): Promise<T> {
  await chain.setAutomine(false)
  try {
    return await work()
  } finally {
    await chain.setAutomine(true)
  }
}

const waitingCodes = (transfers: Transfer[]) => codesOf(service.db, transfers)
const waitingReasons = (transfers: Transfer[]) => reasonsOf(service.db, transfers)
const kept = async (one: { id: string }) => {
  const { state, crypto_tx_hash, raw_transaction } = await keptOf(service.db, one)
  return { state, crypto_tx_hash: crypto_tx_hash as Hex, raw_transaction: raw_transaction! }
}

// ---------------------------------------------------------------------------------------------- withdrawals

/** Mined when it returns. Without automatic mining, it is the first transaction of the next block. */
const setOnToken = async (
  functionName: 'setBlocked' | 'setPaused' | 'setFeePercent',
  args: readonly [Hex, boolean] | readonly [boolean] | readonly [bigint],
  { first = false } = {},
) => {
  const { chain } = anvils.get('ETHEREUM')!
  const hash = await chain.writeContract({
    chain: null,
    address: tokens.get('ETHEREUM')!.USDG!,
    abi: TOKEN_ABI,
    functionName,
    args,
    ...(first && { maxPriorityFeePerGas: parseGwei('50'), maxFeePerGas: parseGwei('90') }),
  })
  if (!first) await chain.waitForTransactionReceipt({ hash })
}

test('with the role of the database, a failed transaction of somebody else refunds nothing', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '2' })
  const { chain } = wallet
  const thief = privateKeyToAccount(generatePrivateKey())
  await give('ETHEREUM', thief.address, 'ETH', '1')
  const created = await withdraw(customer, 'ETHEREUM', 'ETH', '0.5')
  const forged = await thief.signTransaction({
    ...{
      type: 'eip1559',
      chainId: 1,
      nonce: 0,
      to: tokens.get('ETHEREUM')!['USDG']!,
      data: '0xffffffff',
    },
    ...{ gas: 100_000n, maxFeePerGas: parseGwei('90'), maxPriorityFeePerGas: parseGwei('2') },
  })
  const { rows: before } = await withoutMining(wallet, async () => {
    await step(wallet)
    const signed = await service.db.query<{ raw_transaction: Buffer; crypto_tx_hash: Hex }>(
      'select raw_transaction, crypto_tx_hash from outgoing_transfers where transfer_id = $1',
      [created.id],
    )
    // Its own transaction is on its way, and pays later.
    await chain.dropTransaction({ hash: signed.rows[0]!.crypto_tx_hash })
    const hash = await chain.sendRawTransaction({ serializedTransaction: forged })
    await chain.mine({ blocks: CONFIRMATIONS + 1 })
    expect((await chain.getTransactionReceipt({ hash })).status).toBe('reverted')
    const raw = Buffer.from(forged.slice(2), 'hex')
    await service.db.query(
      'update outgoing_transfers set raw_transaction = $2, crypto_tx_hash = $3 where transfer_id = $1',
      [created.id, raw, hash],
    )
    return signed
  })
  const { raw_transaction, crypto_tx_hash } = before[0]!
  for (let round = 1; round <= 3; round++) await step(wallet)
  expect((await read(customer, created)).status).toBe('PENDING')
  expect(await waitingReasons([created])).toEqual([
    `${crypto_tx_hash}, which was signed for it as well, is UNKNOWN`,
  ])
  const resolving = () =>
    resolveWithdrawal(service.db, wallet.networks, created.id, {
      outcome: 'NOT_PAID',
      evidence: 'seen',
      origin: TEST_ORIGIN,
    })
  await expect(resolving()).rejects.toThrow('may be paid yet')
  await chain.sendRawTransaction({ serializedTransaction: `0x${raw_transaction.toString('hex')}` })
  // Put right by the schema's owner.
  await service.owner.query(
    'update outgoing_transfers set raw_transaction = $2, crypto_tx_hash = $3 where transfer_id = $1',
    [created.id, raw_transaction, crypto_tx_hash],
  )
  await settleAll(wallet)
  expect((await read(customer, created)).status).toBe('COMPLETED')
  await requireAgreement(wallet, [customer])
})

describe('a destination that the token refuses', () => {
  test('is refunded, and takes no nonce', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1', USDG: '10' })
    const destination_address = newAddress()
    await setOnToken('setBlocked', [destination_address, true])
    const refused = await withdraw(customer, 'ETHEREUM', 'USDG', '1', destination_address)
    const paid = await withdraw(customer, 'ETHEREUM', 'USDG', '2')
    await settleAll(wallet)
    expect(await read(customer, refused)).toMatchObject({
      status: 'FAILED',
      status_details: { invalid_destination_address: { destination_address } },
    })
    expect(await read(customer, paid)).toMatchObject({ status: 'COMPLETED' })
    expect(await requireAgreement(wallet, [customer])).toHaveLength(1)
  })

  test('a precompiled contract that an older version took: it is refunded, and takes no nonce', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '2' })
    const refused = await withdraw(customer, 'ETHEREUM', 'ETH', '0.5')
    await service.owner.query('update transfers set destination_address = $1 where id = $2', [
      `0x${'4'.padStart(40, '0')}`,
      refused.id,
    ])
    await transaction(service.db, (tx) => sealWithdrawal(tx, new RowMacs(MASTER_KEYS), refused.id))
    const paid = await withdraw(customer, 'ETHEREUM', 'ETH', '0.25')
    await settleAll(wallet)
    expect(await read(customer, refused)).toMatchObject({
      status: 'FAILED',
      status_details: {
        invalid_destination_address: {
          message: 'it is a contract of the network itself, or none, and nobody has its key',
        },
      },
    })
    expect(await read(customer, paid)).toMatchObject({ status: 'COMPLETED' })
    expect(await requireAgreement(wallet, [customer])).toHaveLength(1)
  })

  test('after the estimate: the transaction is reverted, the funds return, and its gas is lost', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1', USDG: '10' })
    const destination_address = newAddress()
    const created = await withdraw(customer, 'ETHEREUM', 'USDG', '1', destination_address)
    await withoutMining(wallet, async () => {
      await step(wallet)
      expect(await kept(created)).toMatchObject({ state: 'BROADCAST' })
      await setOnToken('setBlocked', [destination_address, true], { first: true })
    })
    await settleAll(wallet)
    expect(await read(customer, created)).toMatchObject({ status: 'FAILED' })
    const [made] = await requireAgreement(wallet, [customer])
    const receipt = await wallet.chain.getTransactionReceipt({ hash: made!.hash })
    expect(receipt.status).toBe('reverted')
    expect(await balance('ETHEREUM', wallet.hotWallet.address, 'USDG')).toBe(10_000_000n)
  })

  test('not by its fee: the withdrawal waits until the token would deliver the full amount', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1', USDG: '10' })
    await setOnToken('setFeePercent', [5n])
    const created = await withdraw(customer, 'ETHEREUM', 'USDG', '2')
    await step(wallet)
    const native = await withdraw(customer, 'ETHEREUM', 'ETH', '0.1')
    await step(wallet)
    expect(await waitingReasons([created, native])).toEqual([
      'USDG would deliver 1.9 of 2: it takes a fee from transfers',
      null,
    ])
    expect(await madeBy(wallet)).toHaveLength(1)
    await setOnToken('setFeePercent', [0n])
    await settleAll(wallet)
    expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED' })
    expect(await balance('ETHEREUM', created.destination_address as Hex, 'USDG')).toBe(2_000_000n)
  })

  test('a node without eth_simulateV1 is asked for the result of the transfer alone, and the method is tried once', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1', USDG: '10' })
    const destination_address = newAddress()
    await setOnToken('setBlocked', [destination_address, true])
    const refused = await withdraw(customer, 'ETHEREUM', 'USDG', '1', destination_address)
    const paid = await withdraw(customer, 'ETHEREUM', 'USDG', '2')
    let asked = 0
    const error = { code: -32601, message: 'the method eth_simulateV1 does not exist' }
    await withReplies('"eth_simulateV1"', { error }, async () => {
      await settleAll(wallet)
    })
    expect(await read(customer, refused)).toMatchObject({ status: 'FAILED' })
    expect(await read(customer, paid)).toMatchObject({ status: 'COMPLETED' })
    const real = globalThis.fetch
    const spy = vi.spyOn(globalThis, 'fetch').mockImplementation((url, request) => {
      if (typeof request?.body === 'string' && request.body.includes('eth_simulateV1')) asked += 1
      return real(url, request)
    })
    await withdraw(customer, 'ETHEREUM', 'USDG', '2')
    await settleAll(wallet).finally(() => spy.mockRestore())
    expect(asked).toBe(0)
    await requireAgreement(wallet, [customer])
  })

  test('not by a pause, which refuses all transfers: the withdrawal waits', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1', USDG: '10' })
    await setOnToken('setPaused', [true])
    const created = await withdraw(customer, 'ETHEREUM', 'USDG', '1')
    await step(wallet)
    expect(await waitingReasons([created])).toEqual(['USDG refuses every transfer of the hot wallet'])
    expect(await waitingCodes([created])).toEqual(['TOKEN_REFUSES'])
    // Nothing waits behind it: neither in a later batch, nor in the same one.
    const behind: Transfer[] = []
    for (const asset of ['ETH', 'USDG', 'ETH'] as const)
      behind.push(await withdraw(customer, 'ETHEREUM', asset, asset === 'ETH' ? '0.1' : '1'))
    await step(wallet)
    expect(await waitingCodes([created, ...behind])).toEqual(['TOKEN_REFUSES', null, 'TOKEN_REFUSES', null])
    await setOnToken('setPaused', [false])
    await settleAll(wallet)
    for (const one of [created, ...behind])
      expect(await read(customer, one)).toMatchObject({ status: 'COMPLETED' })
    await requireAgreement(wallet, [customer])
  })
})

describe('the hot wallet is short', () => {
  test('of a token: it delays no other asset of the profile', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '3' })
    const token = await withdraw(customer, 'ETHEREUM', 'USDG', '1')
    await step(wallet)
    const native = [
      await withdraw(customer, 'ETHEREUM', 'ETH', '0.1'),
      await withdraw(customer, 'ETHEREUM', 'ETH', '0.2'),
    ]
    const tokens = await withdraw(customer, 'ETHEREUM', 'USDG', '2')
    await step(wallet)
    expect(await waitingCodes([token, ...native, tokens])).toEqual([
      'HOT_WALLET_SHORT',
      null,
      null,
      'BEHIND_ANOTHER',
    ])
    await give('ETHEREUM', wallet.hotWallet.address, 'USDG', '3')
    await settleAll(wallet)
    await requireAgreement(wallet, [customer], { funds: { ETH: '3', USDG: '3' } })
  })

  test('of the gas of a token: the native asset of the profile, which pays it, waits behind it', async () => {
    const funds = { ETH: '0.000001', USDG: '5' }
    const [customer, wallet] = await newPayer('ETHEREUM', funds)
    const token = await withdraw(customer, 'ETHEREUM', 'USDG', '1')
    await step(wallet)
    const native = await withdraw(customer, 'ETHEREUM', 'ETH', '0.1')
    await step(wallet)
    expect(await waitingCodes([token, native])).toEqual(['FEE_NOT_COVERED', 'BEHIND_ANOTHER'])
    await give('ETHEREUM', wallet.hotWallet.address, 'ETH', '1')
    await settleAll(wallet)
    await requireAgreement(wallet, [customer], { funds: { ETH: '1.000001', USDG: '5' } })
  })

  test('a large withdrawal that has waited long reserves the native asset, but no tokens, against younger ones', async () => {
    const [first, second] = [await newCustomer(service), await newCustomer(service)]
    const wallet = await newWallet(
      'ETHEREUM',
      { ETH: '3', USDG: '10' },
      { withdrawals: readerOfWithdrawals(0) },
    )
    const patient = evmAdapter(
      'ETHEREUM',
      { ...wallet.config, withdrawals: readerOfWithdrawals(600_000) },
      service.db,
    )
    const large = await withdraw(first, 'ETHEREUM', 'ETH', '5')
    await step(wallet)
    const early = await withdraw(second, 'ETHEREUM', 'ETH', '1')
    await step({ networks: new Map([['ETHEREUM', patient]]) })
    expect((await kept(early)).state).toBe('BROADCAST')
    const small = await withdraw(second, 'ETHEREUM', 'ETH', '1')
    await step(wallet)
    expect(await waitingReasons([small])).toEqual([
      expect.stringMatching(
        new RegExp(
          '^the hot wallet has 1\\.\\d+ ETH left, and keeps 5\\.\\d+ ETH ' +
            `for withdrawal ${large.id}, which has waited too long$`,
        ),
      ),
    ])
    expect(await waitingCodes([small])).toEqual(['KEPT_FOR_OLDER'])
    const tokens = await withdraw(await newCustomer(service), 'ETHEREUM', 'USDG', '2')
    await step(wallet)
    expect((await kept(tokens)).state).toBe('BROADCAST')
    // A refill that suffices for the large one only.
    const hash = await give('ETHEREUM', wallet.hotWallet.address, 'ETH', '3.5')
    await wallet.chain.waitForTransactionReceipt({ hash })
    await step(wallet)
    expect((await kept(large)).state).toBe('BROADCAST')
    expect((await kept(small)).state).toBe('HELD')
    await give('ETHEREUM', wallet.hotWallet.address, 'ETH', '1')
    await settleAll(wallet)
  })

  test.each([
    ['reverts', '0x60006000fd'],
    ['never returns', '0x5b6180006000205060005600'],
  ])('a destination that %s reserves nothing: its withdrawal is refused instead', async (_, bytecode) => {
    const wallet = await newWallet('ETHEREUM', { ETH: '3' }, { withdrawals: readerOfWithdrawals(0) })
    const [attacker, victim] = [await newCustomer(service), await newCustomer(service)]
    const trap = newAddress()
    await wallet.chain.setCode({ address: trap, bytecode: bytecode as Hex })
    const large = await withdraw(attacker, 'ETHEREUM', 'ETH', '5', trap)
    await step(wallet)
    const small = await withdraw(victim, 'ETHEREUM', 'ETH', '0.1')
    await step(wallet)
    expect(await read(attacker, large)).toMatchObject({
      status: 'FAILED',
      status_details: { invalid_destination_address: { destination_address: trap } },
    })
    expect((await kept(small)).state).toBe('BROADCAST')
    await settleAll(wallet)
    await requireAgreement(wallet, [attacker, victim], { funds: { ETH: '3' } })
  })

  test('a reservation lasts a day at most, counted while short: not while frozen or queued', async () => {
    const [first, second, third] = [
      await newCustomer(service),
      await newCustomer(service),
      await newCustomer(service),
    ]
    const wallet = await newWallet('ETHEREUM', { ETH: '3' }, { withdrawals: readerOfWithdrawals(60_000) })
    const age = (one: Transfer, seconds: number) =>
      service.db.query(
        `update outgoing_transfers set waiting_since = ${movedBy('waiting_since', `-${seconds} seconds`)} where transfer_id = $1`,
        [one.id],
      )
    const target = { kind: 'CUSTOMER', customer_id: first.customer_id } as const
    const large = await withdraw(first, 'ETHEREUM', 'ETH', '5')
    await freeze(service.db, TEST_ORIGIN, target, 'OPERATOR', 'a test')
    await step(wallet)
    await age(large, 61)
    await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, target)
    await step(wallet)
    expect(await waitingReasons([large])).toEqual([expect.stringContaining('the withdrawal needs')])
    const early = await withdraw(second, 'ETHEREUM', 'ETH', '0.1')
    await step(wallet)
    expect((await kept(early)).state).toBe('BROADCAST')
    await age(large, 61)
    const held = await withdraw(second, 'ETHEREUM', 'ETH', '0.1')
    const next = await withdraw(third, 'ETHEREUM', 'ETH', '4')
    await step(wallet)
    expect(await waitingReasons([held, next])).toEqual(
      [0, 1].map(() => expect.stringContaining(`${large.id}, which has waited too long`) as string),
    )
    await age(next, 61)
    await age(large, 86_400)
    await step(wallet)
    expect((await kept(held)).state).toBe('BROADCAST')
    expect(await waitingReasons([next])).toEqual([expect.stringContaining('the withdrawal needs')])
    const last = await withdraw(second, 'ETHEREUM', 'ETH', '0.1')
    await step(wallet)
    expect((await kept(last)).state).toBe('BROADCAST')
    await age(next, 61)
    const after = await withdraw(second, 'ETHEREUM', 'ETH', '0.1')
    await step(wallet)
    expect(await waitingReasons([after])).toEqual([
      expect.stringContaining(`${next.id}, which has waited too long`),
    ])
    await give('ETHEREUM', wallet.hotWallet.address, 'ETH', '10')
    await settleAll(wallet)
  })

  test('of gas, or of funds for signed transactions that are not mined yet', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1.5', USDG: '10' })
    await calm(wallet)
    const [first, second] = [
      await withdraw(customer, 'ETHEREUM', 'ETH', '1.4999'),
      await withdraw(customer, 'ETHEREUM', 'USDG', '10'),
    ]
    await withoutMining(wallet, async () => {
      await step(wallet)
      const third = await withdraw(await newCustomer(service), 'ETHEREUM', 'USDG', '1')
      await step(wallet)
      expect(await kept(first)).toMatchObject({ state: 'BROADCAST' })
      expect(
        (await waitingReasons([second, third])).map((reason) => reason?.replace(/[\d.]+/g, '#')),
      ).toEqual(Array(2).fill('the hot wallet has # ETH left, the withdrawal needs # ETH for its fee'))
      await wallet.chain.mine({ blocks: 1 })
      await give('ETHEREUM', wallet.hotWallet.address, 'ETH', '1')
      await give('ETHEREUM', wallet.hotWallet.address, 'USDG', '5')
    })
    await settleAll(wallet)
    expect((await madeBy(wallet)).map(({ nonce }) => nonce)).toEqual([0, 1, 2])
  })
})

/** Lowers the base fee. */
async function calm({ chain }: Wallet): Promise<void> {
  await chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('1') })
  await chain.mine({ blocks: 1 })
}

describe('a transaction that is stuck', () => {
  test('is replaced by a transaction with the same nonce and higher fees, and paid once', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5', USDG: '10' }, { stuckAfterMs: 0 })
    const created = [
      await withdraw(customer, 'ETHEREUM', 'ETH', '1'),
      await withdraw(customer, 'ETHEREUM', 'USDG', '2'),
    ]
    let before: Awaited<ReturnType<typeof kept>>[] = []
    await withoutMining(wallet, async () => {
      await step(wallet)
      before = await Promise.all(created.map(kept))
      await wallet.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('40') })
      await wallet.chain.mine({ blocks: 1 })
      // On a frozen network nothing more is signed, not even a replacement.
      await freeze(service.db, TEST_ORIGIN, { kind: 'NETWORK', network: 'ETHEREUM' }, 'OPERATOR', 'a leak')
      for (let round = 1; round <= 3; round++) await step(wallet)
      expect((await Promise.all(created.map(kept))).map(({ crypto_tx_hash }) => crypto_tx_hash)).toEqual(
        before.map(({ crypto_tx_hash }) => crypto_tx_hash),
      )
      await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, { kind: 'NETWORK', network: 'ETHEREUM' })
      for (let round = 1; round <= 3; round++) await step(wallet)
      const after = await Promise.all(created.map(kept))
      for (const [index, { raw_transaction }] of after.entries()) {
        const [old, now] = [parse(before[index]!.raw_transaction), parse(raw_transaction)]
        expect(now).toMatchObject({ nonce: old.nonce, to: old.to, value: old.value })
        expect(now.data).toBe(old.data)
        expect(now.maxFeePerGas * 8n).toBeGreaterThanOrEqual(old.maxFeePerGas * 9n)
        expect(now.maxPriorityFeePerGas * 8n).toBeGreaterThanOrEqual(old.maxPriorityFeePerGas * 9n)
        expect(now.maxFeePerGas).toBeLessThanOrEqual(parseGwei('100'))
      }
    })
    await settleAll(wallet)
    const made = await requireAgreement(wallet, [customer])
    expect(made).toHaveLength(2)
    expect(made.map(({ hash }) => hash)).not.toContain(before[0]!.crypto_tx_hash)
    await calm(wallet)
  })

  test('by a base fee above its own is replaced at once, and the withdrawals behind it are mined', async () => {
    const customer = await newCustomer(service)
    // Nothing waits this long here.
    const wallet = await newWallet('ETHEREUM', { ETH: '5' }, { stuckAfterMs: 3_600_000 })
    const signed = async () =>
      Promise.all(created.map(async (one) => parse((await kept(one)).raw_transaction)))
    const created = [await withdraw(customer, 'ETHEREUM', 'ETH', '1')]
    await withoutMining(wallet, async () => {
      await step(wallet)
      const [before] = await signed()
      await step(wallet)
      expect(await signed()).toEqual([before])
      await wallet.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('40') })
      await wallet.chain.mine({ blocks: 1 })
      created.push(await withdraw(customer, 'ETHEREUM', 'ETH', '1'))
      for (let round = 1; round <= 3; round++) await step(wallet)
      const [after, behind] = await signed()
      expect(after).toMatchObject({ nonce: 0, to: before!.to, value: before!.value })
      expect(after!.maxFeePerGas).toBeGreaterThan(parseGwei('40'))
      expect(behind!.nonce).toBe(1)
      // At the high fee already.
      await wallet.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('40') })
      await wallet.chain.mine({ blocks: 1 })
      expect(await wallet.chain.getTransactionCount({ address: wallet.hotWallet.address })).toBe(2)
      await calm(wallet)
    })
    await settleAll(wallet)
    expect(await requireAgreement(wallet, [customer])).toHaveLength(2)
  })

  test('is found when the replaced transaction is mined after all', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' }, { stuckAfterMs: 0 })
    const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    await withoutMining(wallet, async () => {
      await step(wallet)
      const first = await kept(created)
      await wallet.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('40') })
      await wallet.chain.mine({ blocks: 1 })
      // Replaced in the database but not broadcast, because the network does not answer.
      const broadcast = () => Promise.reject(new Error('the network does not answer'))
      const networks = new Map([['ETHEREUM', { ...wallet.adapter, broadcast }]]) as Networks
      await step({ networks })
      expect(await kept(created)).toMatchObject({ state: 'SIGNED' })
      await calm(wallet)
      await wallet.chain.sendRawTransaction({ serializedTransaction: toHex(first.raw_transaction) })
      await wallet.chain.mine({ blocks: 1 })
      await settleAll(wallet)
      expect(await read(customer, created)).toMatchObject({
        status: 'COMPLETED',
        crypto_tx_hash: first.crypto_tx_hash,
      })
    })
    expect(await requireAgreement(wallet, [customer])).toHaveLength(1)
  })

  test('is not replaced above the ceiling', async () => {
    const [customer, wallet] = await newPayer(
      'ETHEREUM',
      { ETH: '5' },
      { stuckAfterMs: 0, maxFeePerGasCeiling: '30' },
    )
    const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    await withoutMining(wallet, async () => {
      await step(wallet)
      const first = await kept(created)
      await wallet.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('40') })
      await wallet.chain.mine({ blocks: 1 })
      for (let round = 1; round <= 3; round++) await step(wallet)
      expect((await kept(created)).crypto_tx_hash).toBe(first.crypto_tx_hash)
      await calm(wallet)
    })
    await settleAll(wallet)
    expect(await requireAgreement(wallet, [customer])).toHaveLength(1)
  })
})

describe('a receipt of status 1', () => {
  test('without its logs gives no refund: the withdrawal waits for an operator or the true answer', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1', USDG: '10' })
    const created = await withdraw(customer, 'ETHEREUM', 'USDG', '2')
    await step(wallet)
    const { crypto_tx_hash: hash } = await kept(created)
    await wallet.chain.mine({ blocks: 3 })
    const receipt: object = await wallet.chain.request({
      method: 'eth_getTransactionReceipt',
      params: [hash],
    } as never)
    const stripped = { result: { ...receipt, logs: [] } }
    await withReplies('"eth_getTransactionReceipt"', stripped, () => step(wallet))
    expect(await read(customer, created)).toMatchObject({ status: 'PENDING' })
    expect(await waitingReasons([created])).toEqual([
      `${hash} succeeded, and its receipt has no transfer of USDG: look at the destination's balance, ` +
        "then say so by 'bursar withdrawal resolve'",
    ])
    // The node now returns the whole receipt, so nothing is left to decide.
    await expect(
      resolveWithdrawal(service.db, wallet.networks, created.id, {
        outcome: 'NOT_PAID',
        evidence: 'the explorer',
        origin: TEST_ORIGIN,
      }),
    ).rejects.toThrow('needs no decision: ETHEREUM says CONFIRMED')
    await step(wallet)
    expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED', crypto_tx_hash: hash })
    expect(await requireAgreement(wallet, [customer])).toHaveLength(1)
  })

  test('without its logs is refunded only when an operator says that nothing arrived', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1', USDG: '10' })
    const created = await withdraw(customer, 'ETHEREUM', 'USDG', '2')
    await step(wallet)
    const { crypto_tx_hash: hash } = await kept(created)
    await wallet.chain.mine({ blocks: 3 })
    const receipt: object = await wallet.chain.request({
      method: 'eth_getTransactionReceipt',
      params: [hash],
    } as never)
    const stripped = { result: { ...receipt, logs: [] } }
    await withReplies('"eth_getTransactionReceipt"', stripped, async () => {
      const resolved = await resolveWithdrawal(service.db, wallet.networks, created.id, {
        outcome: 'NOT_PAID',
        evidence: 'the explorer',
        origin: TEST_ORIGIN,
      })
      expect(resolved).toMatchObject({ outcome: 'NOT_PAID', status: 'FAILED' })
    })
    expect(await read(customer, created)).toMatchObject({ status: 'FAILED' })
    expect((await verify(service.db, { tokens })).disagreements).toEqual([])
  })

  test('of a token that delivered less does not end the withdrawal, whose reason states the delivered amount', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1', USDG: '10' })
    const created = await withdraw(customer, 'ETHEREUM', 'USDG', '2')
    await withoutMining(wallet, async () => {
      await step(wallet)
      await setOnToken('setFeePercent', [5n], { first: true })
      await wallet.chain.mine({ blocks: 4 })
    })
    await step(wallet)
    await setOnToken('setFeePercent', [0n])
    expect(await read(customer, created)).toMatchObject({ status: 'PENDING' })
    expect(await waitingReasons([created])).toEqual([
      expect.stringMatching(/^USDG delivered 1\.9 of 2 by 0x[0-9a-f]{64}: /),
    ])
    // An operator settles the difference with the customer.
    const resolve = (outcome: Resolution) =>
      resolveWithdrawal(service.db, wallet.networks, created.id, {
        outcome,
        evidence: 'balance seen on two explorers',
        origin: TEST_ORIGIN,
      })
    expect(await resolve('PAID')).toMatchObject({ outcome: 'PAID', status: 'COMPLETED' })
    await expect(resolve('NOT_PAID')).rejects.toThrow(`withdrawal ${created.id} is COMPLETED already`)
    expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED' })
    const { rows } = await service.db.query('select * from resolved_withdrawals where transfer_id = $1', [
      created.id,
    ])
    expect(rows).toMatchObject([{ outcome: 'PAID', evidence: 'balance seen on two explorers' }])
    await requireAgreement(wallet, [customer])
  })

  test('from a block outside the canonical chain is ignored', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' })
    const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    await step(wallet)
    const { crypto_tx_hash: hash } = await kept(created)
    await wallet.chain.mine({ blocks: 5 })
    const receipt: object = await wallet.chain.request({
      method: 'eth_getTransactionReceipt',
      params: [hash],
    } as never)
    // Another backend of the provider is still on the losing fork, and reports a revert that the canonical chain
    // lacks.
    const orphaned = { result: { ...receipt, status: '0x0', blockHash: toHex(9n, { size: 32 }) } }
    await withReplies('"eth_getTransactionReceipt"', orphaned, () => step(wallet))
    expect(await read(customer, created)).toMatchObject({ status: 'PENDING' })
    await settleAll(wallet)
    expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED', crypto_tx_hash: hash })
    await requireAgreement(wallet, [customer])
  })
})

test('confirmations may be the finality of the network itself', async () => {
  const [customer, wallet] = await newPayer('INK', { ETH: '5' }, { confirmations: 'finalized' })
  const created = await withdraw(customer, 'INK', 'ETH', '1')
  await step(wallet)
  // Anvil treats a block as finalized when 64 blocks follow it.
  await wallet.chain.mine({ blocks: 60 })
  await step(wallet)
  expect((await read(customer, created)).status).toBe('PENDING')
  await wallet.chain.mine({ blocks: 10 })
  await withReplies('"finalized"', { result: null }, () => step(wallet).catch(() => undefined))
  expect((await read(customer, created)).status).toBe('PENDING')
  await step(wallet)
  expect((await read(customer, created)).status).toBe('COMPLETED')
})

test('following many withdrawals costs few requests', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '50' })
  const created: Transfer[] = []
  for (let order = 1; order <= 10; order++) created.push(await withdraw(customer, 'ETHEREUM', 'ETH', '1'))
  const asked = new Map<string, number>()
  const real = globalThis.fetch
  const spy = vi.spyOn(globalThis, 'fetch').mockImplementation((url, request) => {
    const calls = typeof request?.body === 'string' ? (JSON.parse(request.body) as { method: string }[]) : []
    if (Array.isArray(calls)) for (const { method } of calls) asked.set(method, (asked.get(method) ?? 0) + 1)
    return real(url, request)
  })
  await withoutMining(wallet, async () => {
    await step(wallet)
    asked.clear()
    for (let round = 1; round <= 5; round++) await step(wallet)
  }).finally(() => {
    if (asked.size === 0) spy.mockRestore()
  })
  // While the transactions wait for a block, the wallet's nonces show that the node has them all.
  expect(asked.get('eth_getTransactionReceipt')).toBeUndefined()
  expect(asked.get('eth_getTransactionByHash')).toBeUndefined()
  await settleAll(wallet)
  for (let round = 1; round <= 3; round++) await step(wallet)
  spy.mockRestore()
  expect(asked.get('eth_getTransactionReceipt')).toBe(created.length)
  expect(asked.get('eth_getTransactionByHash')).toBeUndefined()
  await requireAgreement(wallet, [customer])
})

describe('a reorganisation deeper than the confirmations removes completed withdrawals:', () => {
  const reorganise = ({ chain }: Wallet, depth: number) =>
    chain.request({ method: 'anvil_reorg', params: [depth, []] } as never)

  /** A wallet that has paid three COMPLETED withdrawals, each in a separate block. */
  async function paidWallet(changes: Partial<EvmConfig> = {}) {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5', USDG: '10' }, changes)
    await wallet.chain.mine({ blocks: 3 })
    const paid: Transfer[] = []
    for (const asset of ['ETH', 'USDG', 'ETH']) paid.push(await withdraw(customer, 'ETHEREUM', asset, '1'))
    await settleAll(wallet)
    const hashes = await Promise.all(paid.map(async (one) => (await read(customer, one)).crypto_tx_hash))
    const { blockNumber } = await wallet.chain.getTransactionReceipt({ hash: hashes[0] as Hex })
    const depth = Number((await wallet.chain.getBlockNumber({ cacheTime: 0 })) - blockNumber) + 1
    const lose = async () => {
      await reorganise(wallet, depth)
      expect(await madeBy(wallet)).toEqual([])
    }
    return { customer, wallet, paid, hashes, lose }
  }

  test('the same bytes are broadcast again, on a frozen network too, and then the network goes on', async () => {
    const { customer, wallet, paid, hashes, lose } = await paidWallet()
    await lose()
    await freeze(
      service.db,
      TEST_ORIGIN,
      { kind: 'NETWORK', network: 'ETHEREUM' },
      'REORGANISATION',
      'blocks are gone',
    )
    atEnd(() =>
      unfreeze(service.db, ROW_MACS, TEST_ORIGIN, { kind: 'NETWORK', network: 'ETHEREUM' }).then(
        () => undefined,
      ),
    )
    const gone = paid.map(({ id }, nonce) => ({ nonce, crypto_tx_hash: hashes[nonce], transfer_id: id }))
    expect((await wallet.adapter.status!()).takenBack).toEqual(gone)
    expect(await wallet.adapter.rebroadcastTakenBack!()).toEqual(gone)
    await wallet.chain.waitForTransactionReceipt({ hash: hashes[2] as Hex })
    expect(await wallet.adapter.rebroadcastTakenBack!()).toEqual([])
    expect(await wallet.adapter.status!()).not.toHaveProperty('takenBack')
    expect((await madeBy(wallet)).map(({ hash }) => hash)).toEqual(hashes)
    await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, { kind: 'NETWORK', network: 'ETHEREUM' })
    const next = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    await settleAll(wallet)
    expect((await read(customer, next)).status).toBe('COMPLETED')
    expect((await madeBy(wallet)).map(({ nonce }) => nonce)).toEqual([0, 1, 2, 3])
    for (const { destination_address, asset } of paid)
      expect(await balance('ETHEREUM', destination_address as Hex, asset)).toBe(
        parseAmount('1', decimalsOf(asset)),
      )
  })

  test('until then nothing is signed, and the reason names the removed transactions', async () => {
    const { customer, wallet, paid, lose } = await paidWallet()
    await lose()
    const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    await step(wallet)
    expect(await waitingReasons([created])).toEqual([
      `the chain does not have nonce 0 of the hot wallet any more, of withdrawal ${paid[0]!.id}, and 2 more: ` +
        'the node is behind, or blocks were taken back; the same bytes are broadcast again',
    ])
    await wallet.adapter.rebroadcastTakenBack!()
    await settleAll(wallet)
    expect((await read(customer, created)).status).toBe('COMPLETED')
  })

  test('of several transactions of a nonce, the one that was mined is broadcast again', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' }, { stuckAfterMs: 0 })
    await wallet.chain.mine({ blocks: 3 })
    const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    await withoutMining(wallet, async () => {
      await step(wallet)
      const first = await kept(created)
      await wallet.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('40') })
      await wallet.chain.mine({ blocks: 1 })
      const broadcast = () => Promise.reject(new Error('the network does not answer'))
      await step({ networks: new Map([['ETHEREUM', { ...wallet.adapter, broadcast }]]) })
      await calm(wallet)
      await wallet.chain.sendRawTransaction({ serializedTransaction: toHex(first.raw_transaction) })
      await wallet.chain.mine({ blocks: 1 })
      await settleAll(wallet)
    })
    const { crypto_tx_hash: made } = await read(customer, created)
    expect((await kept(created)).crypto_tx_hash).not.toBe(made)
    const { blockNumber } = await wallet.chain.getTransactionReceipt({ hash: made as Hex })
    await reorganise(wallet, Number((await wallet.chain.getBlockNumber({ cacheTime: 0 })) - blockNumber) + 1)
    await calm(wallet)
    expect(await wallet.adapter.rebroadcastTakenBack!()).toEqual([
      { nonce: 0, crypto_tx_hash: made, transfer_id: created.id },
    ])
    // No other transaction of the nonce can be mined now.
    expect(await wallet.chain.waitForTransactionReceipt({ hash: made as Hex })).toMatchObject({
      status: 'success',
      from: wallet.hotWallet.address.toLowerCase(),
    })
  })

  test('a reverted and refunded transaction is never broadcast again, since it might pay this time', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1', USDG: '10' })
    await wallet.chain.mine({ blocks: 3 })
    const destination_address = newAddress()
    const refunded = await withdraw(customer, 'ETHEREUM', 'USDG', '1', destination_address)
    await withoutMining(wallet, async () => {
      await step(wallet)
      await setOnToken('setBlocked', [destination_address, true], { first: true })
    })
    const { crypto_tx_hash } = await kept(refunded)
    await settleAll(wallet)
    expect((await read(customer, refunded)).status).toBe('FAILED')
    const { blockNumber } = await wallet.chain.getTransactionReceipt({ hash: crypto_tx_hash })
    await reorganise(wallet, Number((await wallet.chain.getBlockNumber({ cacheTime: 0 })) - blockNumber) + 1)
    expect(await wallet.adapter.rebroadcastTakenBack!()).toEqual([
      { nonce: 0, crypto_tx_hash, transfer_id: refunded.id, refunded: true },
    ])
    await wallet.chain.mine({ blocks: 1 })
    expect(await balance('ETHEREUM', destination_address, 'USDG')).toBe(0n)
    const created = await withdraw(customer, 'ETHEREUM', 'ETH', '0.1')
    await step(wallet)
    expect(await waitingReasons([created])).toEqual([
      expect.stringContaining('send another transaction with that nonce from the hot wallet (0 to itself)'),
    ])
    const client = createWalletClient({ account: wallet.hotWallet, transport: http(wallet.config.rpcUrl) })
    await client.sendTransaction({ chain: null, to: wallet.hotWallet.address, value: 0n })
    await settleAll(wallet)
    expect((await read(customer, created)).status).toBe('COMPLETED')
    await expect(resendWithdrawal(service.db, wallet.networks, refunded.id, TEST_ORIGIN)).rejects.toThrow(
      `withdrawal ${refunded.id} is FAILED and was refunded: sending it again might pay it, too`,
    )
  })

  test('an operator can resend a withdrawal, unless the chain has it or it is not completed', async () => {
    const { customer, wallet, paid, hashes, lose } = await paidWallet()
    const resend = (id: string) => resendWithdrawal(service.db, wallet.networks, id, TEST_ORIGIN)
    const first = paid[0]!.id
    await expect(resend(first)).rejects.toThrow(`the chain has ${hashes[0]!} in block `)
    await lose()
    await withoutMining(wallet, async () => {
      expect(await resend(first)).toEqual({
        customer_id: customer.customer_id,
        transfer_id: first,
        crypto_network: 'ETHEREUM',
        crypto_tx_hash: hashes[0],
      })
      await expect(resend(first)).rejects.toThrow(`the node has ${hashes[0]!}, and it waits for a block`)
    })
    await wallet.chain.waitForTransactionReceipt({ hash: hashes[0] as Hex })
    expect((await madeBy(wallet)).map(({ hash }) => hash)).toEqual([hashes[0]])
    // Another transaction has used the next nonce.
    const client = createWalletClient({ account: wallet.hotWallet, transport: http(wallet.config.rpcUrl) })
    const hash = await client.sendTransaction({ chain: null, to: newAddress(), value: 1n })
    await wallet.chain.waitForTransactionReceipt({ hash })
    await expect(resend(paid[1]!.id)).rejects.toThrow(/^another transaction of 0x\w+ has nonce 1, so that/)
    await expect(resendWithdrawal(service.db, new Map(), paid[2]!.id, TEST_ORIGIN)).rejects.toThrow(
      'is no real network here',
    )
    const waiting = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    await expect(resend(waiting.id)).rejects.toThrow('is PENDING: the worker broadcasts it until it is mined')
    await cancelForOperator(service.db, waiting.id, TEST_ORIGIN)
    await expect(resend(randomUUID())).rejects.toThrow('there is no withdrawal')
    const { raw_transaction } = await kept(paid[2]!)
    const keep = (bytes: Buffer | string | null) =>
      service.db.query('update outgoing_transfers set raw_transaction = $2 where transfer_id = $1', [
        paid[2]!.id,
        bytes,
      ])
    atEnd(() => keep(raw_transaction).then(() => undefined))
    // An older version did not record the bytes.
    await keep(null)
    await service.owner.query('delete from network_transactions where crypto_tx_hash = $1', [hashes[2]])
    await expect(resend(paid[2]!.id)).rejects.toThrow(
      `the bytes of transaction ${hashes[2]!} are not kept here`,
    )
    await keep('{}')
    await expect(resend(paid[2]!.id)).rejects.toThrow('was paid over the simulation of ETHEREUM')
  })
})

test.each<[string, (wallet: Wallet) => Promise<unknown>]>([
  ['the next try to sign it', (wallet) => step(wallet)],
  ['the look for nonces that the chain lacks', ({ adapter }) => adapter.rebroadcastTakenBack!()],
])('bytes whose withdrawal has lost its record are broadcast by %s, and signed once', async (_, look) => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' })
  const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
  const broadcast = () => Promise.reject(new Error('the network does not answer'))
  await step({ networks: new Map([['ETHEREUM', { ...wallet.adapter, broadcast }]]) }).catch(() => undefined)
  const { crypto_tx_hash } = await kept(created)
  expect(await madeBy(wallet)).toEqual([])
  // The node of the customer is restored from an older state, as a standby that lagged behind.
  await service.owner.query('delete from outgoing_transfers where transfer_id = $1', [created.id])
  await look(wallet)
  expect(await wallet.chain.waitForTransactionReceipt({ hash: crypto_tx_hash })).toMatchObject({
    status: 'success',
  })
  expect(await wallet.adapter.rebroadcastTakenBack!()).toEqual([])
  // Nobody waits for it.
  const other = await withdraw(await newCustomer(service), 'ETHEREUM', 'ETH', '1')
  await step(wallet)
  expect(await kept(other)).toMatchObject({ state: 'BROADCAST' })
  expect(await waitingCodes([created])).toEqual(['UNKNOWN_SPENDS'])
  await markWithdrawalPaid(service.db, wallet.networks, created.id, crypto_tx_hash, TEST_ORIGIN)
  await settleAll(wallet)
  expect((await read(customer, created)).status).toBe('COMPLETED')
  expect((await madeBy(wallet)).map(({ nonce }) => nonce)).toEqual([0, 1])
})

test('a wallet with unknown spends pays nothing until an operator has reviewed them', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' })
  const client = createWalletClient({ account: wallet.hotWallet, transport: http(wallet.config.rpcUrl) })
  const elsewhere = () => client.sendTransaction({ chain: null, to: newAddress(), value: 1n })
  const lookedAt = (firstNonce: number) => {
    const adapter = evmAdapter('ETHEREUM', { ...wallet.config, firstNonce }, service.db)
    return { ...wallet, networks: new Map([['ETHEREUM', adapter]]) as Networks }
  }
  // Sent before this database used the wallet: by another deployment, or after the backup that was restored.
  await elsewhere()
  const created = [await withdraw(customer, 'ETHEREUM', 'ETH', '1')]
  await step(wallet)
  expect(await waitingReasons(created)).toEqual([
    expect.stringMatching(/of nonce 0, which .* first_nonce 1 that/),
  ])
  expect(await waitingCodes(created)).toEqual(['UNKNOWN_SPENDS'])
  await settleAll(lookedAt(1))
  // The spend counts whether or not it is mined yet.
  await withoutMining(wallet, async () => {
    await elsewhere()
    created.push(await withdraw(customer, 'ETHEREUM', 'ETH', '1'))
    await step(wallet)
    expect(await waitingReasons([created[1]!])).toEqual([
      expect.stringMatching(/of nonce 2, which .* first_nonce 3 that/),
    ])
  })
  await settleAll(lookedAt(3))
  for (const one of created) expect((await read(customer, one)).status).toBe('COMPLETED')
  expect((await madeBy(wallet)).map(({ nonce }) => nonce)).toEqual([0, 1, 2, 3])
})

// All wallets share the platform's ledger of a network, but only these tests post entries to it.
describe('a treasury transfer', () => {
  const PLATFORM = { customer_id: PLATFORM_ID } as TestCustomer
  const macs = new RowMacs(MASTER_KEYS)
  const orderSend = (
    { network, adapter }: Wallet,
    asset: string,
    amount: string,
    to: string,
    reference = to,
  ) =>
    orderTreasurySend({ db: service.db, macs, origin: TEST_ORIGIN }, adapter, {
      network,
      asset,
      amount,
      destination_address: to,
      reference,
    })
  const inCold = async (network: CryptoNetwork) => {
    const { rows } = await service.db.query<{ asset: string; sum: string }>(
      'select asset, sum(amount) from entries where account = $1 group by asset',
      [`cold:${network}`],
    )
    return Object.fromEntries(
      rows.map(({ asset, sum }) => [
        asset,
        formatAmount(parseStoredAmount(sum, decimalsOf(asset)), decimalsOf(asset)),
      ]),
    )
  }

  test('goes to cold storage once, native asset and tokens, after the withdrawals of customers', async () => {
    const [customer, unsigned] = await newPayer('ETHEREUM', { ETH: '5', USDG: '50' })
    const adapter = signOnlyAccepted(unsigned.adapter, macs)
    const wallet: Wallet = { ...unsigned, adapter, networks: new Map([['ETHEREUM', adapter]]) }
    const [cold, coldTokens] = [newAddress(), newAddress()]
    const ordered = [
      await orderSend(wallet, 'ETH', '1.5', cold),
      await orderSend(wallet, 'USDG', '20.5', coldTokens),
    ].map(({ transfer }) => transfer)
    // The spelling of the amount and the address does not matter.
    expect(await orderSend(wallet, 'USDG', '20.500', coldTokens.toLowerCase(), coldTokens)).toMatchObject({
      is_new: false,
      transfer: { id: ordered[1]!.id },
    })
    const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    await settleAll(wallet)
    expect(await balance('ETHEREUM', cold, 'ETH')).toBe(15n * 10n ** 17n)
    expect(await balance('ETHEREUM', coldTokens, 'USDG')).toBe(20_500_000n)
    expect((await read(customer, created)).status).toBe('COMPLETED')
    expect(await inCold('ETHEREUM')).toEqual({ ETH: '-1.5', USDG: '-20.5' })
    const made = await requireAgreement(wallet, [customer, PLATFORM])
    expect(getAddress(made[0]!.to!)).toBe(getAddress(created.destination_address!))
    expect((await orderSend(wallet, 'ETH', '1.5', cold)).transfer).toMatchObject({
      status: 'COMPLETED',
      crypto_tx_hash: made.find(({ to }) => getAddress(to!) === cold)!.hash,
    })
  })

  test('is broadcast again with its recorded bytes after a reorganisation removed it', async () => {
    const wallet = await newWallet('ETHEREUM', { ETH: '3' })
    const { chain, networks } = wallet
    const cold = newAddress()
    const { transfer } = await orderSend(wallet, 'ETH', '1', cold)
    const resend = () => resendWithdrawal(service.db, networks, transfer.id, TEST_ORIGIN)
    await expect(resend()).rejects.toThrow(`withdrawal ${transfer.id} is PENDING`)
    const before = await chain.snapshot()
    await settleAll(wallet)
    const { crypto_tx_hash: hash } = await kept(transfer)
    await expect(resend()).rejects.toThrow(`the chain has ${hash}`)
    await chain.revert({ id: before })
    expect(await balance('ETHEREUM', cold, 'ETH')).toBe(0n)
    expect(await resend()).toMatchObject({ transfer_id: transfer.id, crypto_tx_hash: hash })
    await chain.waitForTransactionReceipt({ hash })
    expect(await balance('ETHEREUM', cold, 'ETH')).toBe(10n ** 18n)
  })

  test('is refused to a destination where it would be lost, or above the funds', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' })
    const deposit = await newDepositAddress(customer, wallet)
    for (const [asset, amount, to, reason] of [
      ['ETH', '1', deposit, `to: ${deposit} is a deposit address`],
      ['ETH', '1', wallet.hotWallet.address, 'to: it is the wallet that withdrawals are paid from'],
      ['USDG', '1', tokens.get('ETHEREUM')!.USDG!, 'to: it is the contract of USDG'],
      ['ETH', '1', '0x1', 'to: 0x1 is no address of ETHEREUM'],
      ['ETH', '5.1', newAddress(), 'amount: the hot wallet of ETHEREUM has 5 ETH'],
    ] as const)
      await expect(orderSend(wallet, asset, amount, to)).rejects.toThrow(reason)
    const consolidation = orderConsolidation(
      { db: service.db, macs, origin: TEST_ORIGIN },
      wallet.adapter,
      'ETHEREUM',
      undefined,
    )
    await expect(consolidation).rejects.toThrow('no former wallet with a key holds more than the fee')
  })

  test("made by hand stops the wallet until it is acknowledged, and is posted with the chain's amounts", async () => {
    const [customer, wallet] = await newPayer('INK', { ETH: '5', USDG: '50' })
    const { chain, hotWallet, adapter } = wallet
    const client = createWalletClient({ account: hotWallet, transport: http(wallet.config.rpcUrl) })
    const acknowledge = (hash: string) =>
      acknowledgeTransaction(service.db, adapter, 'INK', hash, { origin: originOfLoop('test') })
    const [cold, token] = [newAddress(), tokens.get('INK')!.USDG!]
    const deposit = await newDepositAddress(customer, wallet)
    const move = { chain: null, address: token, abi: TOKEN_ABI, functionName: 'transfer' } as const
    const coins = await client.sendTransaction({ chain: null, to: cold, value: 10n ** 18n })
    await expect(acknowledge(coins)).rejects.toThrow(`${coins} is not confirmed yet`)
    const moved = await client.writeContract({ ...move, args: [cold, 7_000_000n] })
    const kept = await client.sendTransaction({ chain: null, to: deposit, value: 10n ** 15n })
    const created = await withdraw(customer, 'INK', 'ETH', '1')
    await chain.mine({ blocks: CONFIRMATIONS })
    await step(wallet)
    expect(await waitingReasons([created])).toEqual([expect.stringContaining('of nonce 0 and 2 more')])
    const cost = async (hash: Hex) => {
      const { gasUsed, effectiveGasPrice } = await chain.getTransactionReceipt({ hash })
      return { asset: 'ETH', amount: formatAmount(gasUsed * effectiveGasPrice, 18) }
    }
    for (const [hash, what] of [
      [moved, [{ asset: 'USDG', amount: '-7' }]],
      [coins, [{ asset: 'ETH', amount: '-1' }]],
      // The amount is still in custody: it went to an address of ours.
      [kept, []],
    ] as const) {
      expect(await acknowledge(hash)).toMatchObject({
        is_new: true,
        moved: what,
        networkFee: await cost(hash),
      })
      expect(await acknowledge(hash)).toMatchObject({ is_new: false })
    }
    await settleAll(wallet)
    await expect(acknowledge((await read(customer, created)).crypto_tx_hash!)).rejects.toThrow('is known')
    await expect(acknowledge(toHex(1n, { size: 32 }))).rejects.toThrow('has no transaction')

    // A payment back to the hot wallet can be acknowledged too; a payment to another address cannot.
    const back = await give('INK', hotWallet.address, 'USDG', '3')
    const elsewhere = await give('INK', deposit, 'ETH', '1')
    await chain.mine({ blocks: CONFIRMATIONS })
    expect(await acknowledge(back)).toMatchObject({ moved: [{ asset: 'USDG', amount: '3' }] })
    await expect(acknowledge(elsewhere)).rejects.toThrow('moves nothing of the hot wallet')
    expect(await inCold('INK')).toEqual({ ETH: '-1', USDG: '-4' })
    const fees = -(await onLedger([customer, PLATFORM], 'network_fees:INK', 'ETH'))
    expect(await balance('INK', hotWallet.address, 'ETH')).toBe(3n * 10n ** 18n - 10n ** 15n - fees)
    expect(await onLedger([PLATFORM], 'custody:INK', 'USDG')).toBe(4_000_000n)
    expect((await verify(service.db, { tokens })).disagreements).toEqual([])
  })

  test.each(['ETH', 'USDG'] as const)(
    'cannot be acknowledged if it may pay a pending withdrawal, unless an operator denies that: %s',
    async (asset) => {
      const [customer, wallet] = await newPayer('INK', { ETH: '5', USDG: '50' })
      const { chain, hotWallet, adapter } = wallet
      const client = createWalletClient({ account: hotWallet, transport: http(wallet.config.rpcUrl) })
      const to = newAddress()
      const pay = () =>
        asset === 'ETH'
          ? client.sendTransaction({ chain: null, to, value: 10n ** 18n })
          : client.writeContract({
              chain: null,
              address: tokens.get('INK')!.USDG!,
              abi: TOKEN_ABI,
              functionName: 'transfer',
              args: [to, 1_000_000n],
            })
      const created = await withdraw(customer, 'INK', asset, '1', to)
      // An earlier Bursar, before the backup, sent both.
      const [lost, another] = [await pay(), await pay()]
      await chain.mine({ blocks: CONFIRMATIONS })
      const acknowledge = (hash: string, paysNoWithdrawal = false) =>
        acknowledgeTransaction(service.db, adapter, 'INK', hash, {
          paysNoWithdrawal,
          origin: originOfLoop('test'),
        })
      await expect(acknowledge(lost)).rejects.toThrow(
        `${lost} pays 1 ${asset} to ${to}, as withdrawal ${created.id} asks, which is PENDING: ` +
          `'bursar withdrawal mark-paid ${created.id} --tx-hash ${lost}' says`,
      )
      expect(await acknowledge(another, true)).toMatchObject({ is_new: true, not_paid: [created.id] })
      await step(wallet)
      expect(await waitingReasons([created])).toEqual([expect.stringContaining('of nonce 0')])
      await markWithdrawalPaid(service.db, wallet.networks, created.id, lost, TEST_ORIGIN)
      await settleAll(wallet)
      expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED', crypto_tx_hash: lost })
      expect(await balance('INK', to, asset)).toBe(asset === 'ETH' ? 2n * 10n ** 18n : 2_000_000n)
      expect((await verify(service.db, { tokens })).disagreements).toEqual([])
    },
  )

  test('cannot be acknowledged if it used the nonce of an unfinished withdrawal', async () => {
    const [customer, wallet] = await newPayer('INK', { ETH: '5' })
    const { chain, hotWallet, adapter } = wallet
    const created = await withdraw(customer, 'INK', 'ETH', '1')
    await signOnly(wallet)
    const client = createWalletClient({ account: hotWallet, transport: http(wallet.config.rpcUrl) })
    const value = 10n ** 18n
    const paid = await client.sendTransaction({
      chain: null,
      to: created.destination_address as Hex,
      value,
      nonce: 0,
      maxFeePerGas: parseGwei('60'),
    })
    await chain.mine({ blocks: CONFIRMATIONS })
    for (const paysNoWithdrawal of [false, true])
      await expect(
        acknowledgeTransaction(service.db, adapter, 'INK', paid, {
          paysNoWithdrawal,
          origin: originOfLoop('test'),
        }),
      ).rejects.toThrow(
        `${paid} has nonce 0, which is that of withdrawal ${created.id}, and that has not ended: ` +
          `'bursar withdrawal mark-paid ${created.id} --tx-hash ${paid}' says`,
      )
    await markWithdrawalPaid(service.db, wallet.networks, created.id, paid, TEST_ORIGIN)
    await settleAll(wallet)
    expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED', crypto_tx_hash: paid })
  })

  test('leaves the funds that unsigned withdrawals need, though none of them is short', async () => {
    // One in flight at a time, so that the others wait although there is enough for each.
    const [funds, limits] = [{ ETH: '5.1', USDG: '50' }, { maxInFlight: 1 }]
    const [customer, unsigned] = await newPayer('INK', funds, limits)
    const adapter = signOnlyAccepted(unsigned.adapter, macs)
    const wallet: Wallet = { ...unsigned, adapter, networks: new Map([['INK', adapter]]) }
    const [cold, later] = [newAddress(), newAddress()]
    const reason = async ({ id }: { id: string }) => (await waitingReasons([{ id } as Transfer]))[0]
    const { transfer: large } = await orderSend(wallet, 'ETH', '2', cold)
    const created: Transfer[] = []
    for (const asset of ['ETH', 'ETH', 'ETH', 'ETH', 'USDG'])
      created.push(await withdraw(customer, 'INK', asset, '1'))
    await step(wallet)
    expect(await reason(large)).toMatch(
      /^customers' withdrawals come first: the hot wallet has 4\.0\d+ ETH left, and the unsigned ones need 3\.0\d+ ETH$/,
    )
    expect(await reason(created[1]!)).toBe('1 transactions are in flight, the most at a time')
    // A transfer of a token leaves the withdrawals their funds, and so does this one.
    const sent = [
      await orderSend(wallet, 'USDG', '49', newAddress()),
      await orderSend(wallet, 'ETH', '1', later),
    ].map(({ transfer }) => transfer)
    for (let round = 0; round < 20; round++) {
      await step(wallet)
      await wallet.chain.mine({ blocks: 1 })
    }
    for (const one of [...created, ...sent]) expect(await kept(one)).toMatchObject({ state: 'DONE' })
    expect(await balance('INK', later, 'ETH')).toBe(10n ** 18n)
    expect(await balance('INK', cold, 'ETH')).toBe(0n)
    // No withdrawal needs the remaining funds, but they do not suffice.
    expect(await reason(large)).toMatch(
      /^the hot wallet has 0\.0\d+ ETH left, the withdrawal needs 2\.0\d+ ETH with its fee$/,
    )
    await give('INK', wallet.hotWallet.address, 'ETH', '2')
    await settleAll(wallet)
    expect(await balance('INK', cold, 'ETH')).toBe(2n * 10n ** 18n)
    expect((await verify(service.db, { tokens })).disagreements).toEqual([])
  })
})

test('an unknown spend that paid a withdrawal can be assigned to that withdrawal', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '10', USDG: '10' })
  const settled = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
  await settleAll(wallet)
  const paid = [
    await withdraw(customer, 'ETHEREUM', 'ETH', '1'),
    await withdraw(customer, 'ETHEREUM', 'USDG', '2'),
  ]
  await step(wallet)
  await step(wallet)
  const [first, second] = await Promise.all(paid.map(kept))
  await wallet.chain.waitForTransactionReceipt({ hash: second!.crypto_tx_hash })
  // The database is restored from an earlier backup.
  const ids = [paid.map(({ id }) => id)]
  await service.owner.query('delete from outgoing_transfers where transfer_id = any ($1)', ids)
  await service.owner.query('delete from network_transactions where transfer_ids && $1::uuid[]', ids)
  await service.db.query('update evm_nonces set next_nonce = 1 where address = $1', [
    wallet.hotWallet.address,
  ])
  const other = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
  await step(wallet)
  const unknown = (nonces: string) =>
    expect.stringMatching(
      new RegExp(`of nonce ${nonces}, which .* mark-paid.*, first_nonce 3 that`),
    ) as string
  expect(await waitingReasons([...paid, other])).toEqual(Array(3).fill(unknown('1 and 1 more')))

  const mark = ({ id }: { id: string }, hash: string) =>
    markWithdrawalPaid(service.db, wallet.networks, id, hash, TEST_ORIGIN)
  await expect(mark(other, first!.crypto_tx_hash)).rejects.toThrow('does not pay 1 ETH to')
  await expect(mark(other, (await kept(settled)).crypto_tx_hash)).rejects.toThrow('does not pay 1 ETH to')
  await expect(mark(other, toHex(7n, { size: 32 }))).rejects.toThrow('has sent no transaction')
  await expect(mark(paid[1]!, await give('ETHEREUM', newAddress(), 'USDG', '2'))).rejects.toThrow(
    'no transaction',
  )
  // Any order works: transactions that paid no withdrawal, such as gas for sweeping, may lie between them.
  for (const [index, { crypto_tx_hash, raw_transaction }] of [
    [1, second!],
    [0, first!],
  ] as const) {
    await mark(paid[index]!, crypto_tx_hash)
    expect(await kept(paid[index]!)).toMatchObject({ state: 'SIGNED', crypto_tx_hash, raw_transaction })
    if (index === 0) continue
    await step(wallet)
    expect(await waitingReasons([paid[0]!, other])).toEqual([unknown('1'), unknown('1')])
  }
  await settleAll(wallet)
  const made = await requireAgreement(wallet, [customer])
  expect(made.map(({ nonce }) => nonce)).toEqual([0, 1, 2, 3])
  for (const one of [...paid, other]) expect((await read(customer, one)).status).toBe('COMPLETED')
})

test('a withdrawal that another transaction of its nonce paid can be marked as paid by it', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '10' })
  const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
  await signOnly(wallet)
  const signed = await kept(created)
  const { to, value } = parse(signed.raw_transaction)
  // An operator was faster, with a different fee.
  const client = createWalletClient({ account: wallet.hotWallet, transport: http(wallet.config.rpcUrl) })
  const hash = await client.sendTransaction({
    chain: null,
    to,
    value,
    nonce: 0,
    maxFeePerGas: parseGwei('60'),
  })
  const other = await client.sendTransaction({ chain: null, to, value, nonce: 1 })
  const mark = (one: string) => markWithdrawalPaid(service.db, wallet.networks, created.id, one, TEST_ORIGIN)
  await expect(mark(other)).rejects.toThrow('has nonce 1, and the withdrawal’s own'.replace('’', "'"))
  expect(await kept(created)).toEqual(signed)
  await mark(hash)
  await settleAll(wallet)
  expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED', crypto_tx_hash: hash })
})

test('code at the destination does not run for gas that the platform pays', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '10' })
  const address = newAddress()
  // keccak256 of a megabyte of memory: 2.3 million gas.
  await wallet.chain.setCode({ address, bytecode: '0x620fffff6000205000' })
  const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1', address)
  await step(wallet)
  expect(await read(customer, created)).toMatchObject({
    status: 'FAILED',
    status_details: {
      invalid_destination_address: {
        message: expect.stringMatching(/takes more than 121000 gas, the most that is paid$/) as string,
      },
    },
  })
  await requireAgreement(wallet, [customer])
})

test('destinations that never return delay no other withdrawal: their simulation has a gas limit', async () => {
  const [attacker, victim] = [await newCustomer(service), await newCustomer(service)]
  const wallet = await newWallet('ETHEREUM', { ETH: '30', USDG: '10' })
  const trap = newAddress()
  // keccak256 of memory in an endless loop.
  await wallet.chain.setCode({ address: trap, bytecode: '0x5b6180006000205060005600' })
  const traps: Transfer[] = []
  for (let order = 1; order <= 50; order++)
    traps.push(await withdraw(attacker, 'ETHEREUM', 'ETH', '0.01', trap))
  const paid = await withdraw(victim, 'ETHEREUM', 'ETH', '0.1')
  await step(wallet)
  expect((await kept(paid)).state).toBe('BROADCAST')
  for (const one of traps)
    expect(await read(attacker, one)).toMatchObject({
      status: 'FAILED',
      status_details: {
        invalid_destination_address: {
          message: expect.stringMatching(/takes more than 121000 gas, the most that is paid$/) as string,
        },
      },
    })
  await settleAll(wallet)
  await requireAgreement(wallet, [attacker, victim])
})

test.each([
  ['reverts', '0x3a15600757600080fd5b00'],
  ['breaks off', '0x3a15600657fe5b00'],
])(
  'a destination that %s only when gas has a price is refused before anything is signed',
  async (_, bytecode) => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' })
    const address = newAddress()
    await wallet.chain.setCode({ address, bytecode: bytecode as Hex })
    const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1', address)
    await step(wallet)
    expect(await read(customer, created)).toMatchObject({ status: 'FAILED' })
    expect(await requireAgreement(wallet, [customer])).toEqual([])
  },
)

test('while its node is catching up, nothing is signed', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' })
  const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
  await withReplies('"eth_syncing"', { result: { currentBlock: '0x1', highestBlock: '0x9' } }, () =>
    step(wallet),
  )
  expect(await waitingReasons([created])).toEqual(['the node is catching up with its chain'])
  expect(await waitingCodes([created])).toEqual(['NODE_BEHIND'])
  await settleAll(wallet)
  expect((await read(customer, created)).status).toBe('COMPLETED')
})

test('a signed transaction is followed by its bytes, even after the configuration changes', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5', USDG: '10' })
  const created = await withdraw(customer, 'ETHEREUM', 'USDG', '2')
  await step(wallet)
  const { mode, rpcUrl, confirmations, maxFeePerGasCeiling, withdrawals } = wallet.config
  const hotWallet = privateKeyToAccount(generatePrivateKey())
  const limits = { mode, confirmations, maxFeePerGasCeiling, withdrawals }
  const later = evmAdapter('ETHEREUM', { rpcUrl, ...limits, hotWallet }, service.db)
  await settleAll({ ...wallet, networks: new Map([['ETHEREUM', later]]) })
  expect((await read(customer, created)).status).toBe('COMPLETED')
  await requireAgreement(wallet, [customer])
})

describe('another hot wallet', () => {
  test.each([
    ['with the key of the former one', true],
    ['without it', false],
  ])(
    'pays from its own funds and by its own nonces, while five transactions of the former one are followed: %s',
    async (_, hasKey) => {
      const [customer, later] = [await newCustomer(service), await newCustomer(service)]
      const old = await newWallet('ETHEREUM', { ETH: '9', USDG: '10' })
      const { address } = old.hotWallet
      const signTransaction = () => Promise.reject(new Error('it has no key'))
      const former = hasKey ? old.hotWallet : { address, isWatched: true as const, signTransaction }
      // Less than the amounts that the former wallet has in flight.
      const wallet = await newWallet(
        'ETHEREUM',
        { ETH: '2.5', USDG: '1' },
        { stuckAfterMs: 0, formerWallets: [former] },
      )
      const inFlight: Transfer[] = []
      const orders: Transfer[] = []
      await withoutMining(wallet, async () => {
        for (const asset of ['ETH', 'USDG', 'ETH', 'USDG', 'ETH'])
          inFlight.push(await withdraw(customer, 'ETHEREUM', asset, '1'))
        await step(old)
        const before = await Promise.all(inFlight.map(kept))
        expect(before.map(({ raw_transaction }) => parse(raw_transaction).nonce)).toEqual([0, 1, 2, 3, 4])
        await wallet.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('40') })
        await wallet.chain.mine({ blocks: 1 })
        for (const [asset, amount] of [
          ['ETH', '2'],
          ['USDG', '1'],
        ] as const)
          orders.push(await withdraw(later, 'ETHEREUM', asset, amount))
        for (let round = 1; round <= 3; round++) await step(wallet)

        const signers = async (transfers: Transfer[]) =>
          Promise.all(transfers.map(async (one) => signerAddressOf((await kept(one)).raw_transaction)))
        expect(await waitingReasons(orders)).toEqual([null, null])
        expect(await signers(orders)).toEqual(orders.map(() => wallet.hotWallet.address))
        expect(await signers(inFlight)).toEqual(inFlight.map(() => address))
        const after = await Promise.all(inFlight.map(kept))
        for (const [index, { raw_transaction }] of after.entries()) {
          const [was, now] = [parse(before[index]!.raw_transaction), parse(raw_transaction)]
          expect(now).toMatchObject({ nonce: was.nonce, to: was.to, value: was.value })
          expect(now.maxFeePerGas > was.maxFeePerGas).toBe(hasKey)
        }
        await calm(wallet)
      })
      await settleAll(wallet)
      for (const [index, transfer] of [...inFlight, ...orders].entries()) {
        const owner = index < inFlight.length ? customer : later
        expect(await read(owner, transfer)).toMatchObject({ status: 'COMPLETED' })
        const units = parseAmount(transfer.amount, decimalsOf(transfer.asset))
        expect(await balance('ETHEREUM', transfer.destination_address as Hex, transfer.asset)).toBe(units)
      }
      const made = await requireAgreement(wallet, [customer, later], {
        funds: { ETH: '11.5', USDG: '11' },
        former: [old],
      })
      expect(made).toHaveLength(2)
      expect((await madeBy(old)).map(({ nonce }) => nonce)).toEqual([0, 1, 2, 3, 4])
    },
  )

  test('counts what the former one holds as custody until it is moved, and takes its transfers for no deposits', async () => {
    const customer = await newCustomer(service)
    const payers = [customer, { customer_id: PLATFORM_ID } as TestCustomer]
    const feesPaid = () => onLedger(payers, 'network_fees:ETHEREUM', 'ETH')
    const before = await feesPaid()
    const old = await newWallet('ETHEREUM', { ETH: '5', USDG: '10' })
    const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    await settleAll(old)
    const wallet = await newWallet('ETHEREUM', { ETH: '1' }, { formerWallets: [old.hotWallet] })
    const { adapter, chain, hotWallet } = wallet
    const { address } = old.hotWallet
    const holds = async (asset: string) =>
      formatAmount(await balance('ETHEREUM', address, asset), decimalsOf(asset))
    const reported = { adapter, confirmations: CONFIRMATIONS }
    const report = async () => (await networkReports(service.db, new Map([['ETHEREUM', reported]])))[0]!
    expect(formerWalletsIn(await report())).toEqual([
      { asset: 'ETH', address, held: await holds('ETH') },
      { asset: 'USDG', address, held: '10' },
    ])
    expect(adapter.refusesDestination!(address)).toBe('it is the wallet that withdrawals are paid from')
    expect((await read(customer, created)).status).toBe('COMPLETED')

    // Everything but the gas is moved by hand, and only the fee leaves custody.
    const client = createWalletClient({ account: old.hotWallet, transport: http(wallet.config.rpcUrl) })
    const token = { chain: null, address: tokens.get('ETHEREUM')!.USDG!, abi: TOKEN_ABI } as const
    const moved = [
      await client.writeContract({
        ...token,
        functionName: 'transfer',
        args: [hotWallet.address, 10_000_000n],
      }),
      await client.sendTransaction({ chain: null, to: hotWallet.address, value: 39n * 10n ** 17n }),
    ]
    await chain.mine({ blocks: CONFIRMATIONS })
    for (const hash of moved) {
      const origin = originOfLoop('test')
      const posted = await acknowledgeTransaction(service.db, adapter, 'ETHEREUM', hash, { origin })
      expect(posted).toMatchObject({ is_new: true, moved: [] })
    }
    expect(formerWalletsIn(await report())).toEqual([{ asset: 'ETH', address, held: await holds('ETH') }])
    const fees = await feesPaid()
    expect(parseAmount((await adapter.status!()).held.ETH!, 18)).toBe(5n * 10n ** 18n + fees - before)
  })
})

test('nothing is signed after a nonce that the node has lost', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' })
  await withdraw(customer, 'ETHEREUM', 'ETH', '1')
  await settleAll(wallet)
  const setNext = (nonce: number) =>
    service.db.query('update evm_nonces set next_nonce = $2 where address = $1', [
      wallet.hotWallet.address,
      nonce,
    ])
  await setNext(2)
  const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
  await step(wallet)
  expect(await waitingReasons([created])).toEqual([
    expect.stringMatching(/^nonce 1 of the hot wallet was used/),
  ])
  await setNext(1)
  await settleAll(wallet)
  expect(await requireAgreement(wallet, [customer])).toHaveLength(2)
})

test('a node of another chain, or an unreachable node, is reported without its address', async () => {
  const { rpcUrl } = anvils.get('ETHEREUM')!
  const hotWallet = privateKeyToAccount(generatePrivateKey())
  const limits = {
    mode: 'sandbox',
    hotWallet,
    confirmations: 1,
    maxFeePerGasCeiling: '1',
    withdrawals: withdrawalReader,
  } as const
  const other = evmAdapter('BASE', { rpcUrl, ...limits }, service.db)
  await expect(other.status!()).rejects.toThrow('the node of BASE is on chain 1, not 8453')
  const down = evmAdapter('BASE', { rpcUrl: 'http://127.0.0.1:1/secret', ...limits }, service.db)
  const failure = await down.status!().catch((error: unknown) => error as Error)
  expect(failure).toHaveProperty('message', expect.stringMatching(/^the node does not answer/))
  expect(inspect(failure, { depth: 9, showHidden: true })).not.toContain('secret')
})

test('an estimate equals the later cost of the withdrawal, or is slightly above it', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5', USDG: '9' })
  for (const asset of ['ETH', 'USDG']) {
    const estimate = await wallet.adapter.estimateFee!(asset)
    const before = await onLedger([customer], 'network_fees:ETHEREUM', 'ETH')
    await withdraw(customer, 'ETHEREUM', asset, '2')
    await settleAll(wallet)
    const paid = before - (await onLedger([customer], 'network_fees:ETHEREUM', 'ETH'))
    expect(estimate.asset).toBe('ETH')
    const estimated = parseAmount(estimate.amount, 18)!
    expect(estimated * 10n).toBeGreaterThanOrEqual(paid * 8n)
    expect(estimated).toBeLessThanOrEqual(paid * 2n)
  }
})

test('the estimates of a block share what they have in common, and destinations without code are not tried', async () => {
  const wallet = await newWallet('ETHEREUM', { ETH: '5' })
  await wallet.adapter.ready!()
  const asked = vi.spyOn(globalThis, 'fetch')
  await Promise.all(Array.from({ length: 20 }, () => wallet.adapter.estimateFee!('ETH', newAddress())))
  const methods = asked.mock.calls.flatMap(([, init]) =>
    (JSON.parse(init?.body as string) as { method: string }[]).map(({ method }) => method),
  )
  asked.mockRestore()
  const count = (wanted: string) => methods.filter((method) => method === wanted).length
  expect(count('eth_getCode')).toBe(20)
  expect([count('eth_estimateGas'), count('eth_maxPriorityFeePerGas'), count('eth_call')]).toEqual([2, 1, 1])
})

/** Runs work against the API with these networks configured. */
async function withNetworks<T>(networks: Networks, work: () => Promise<T>): Promise<T> {
  const all = service.networks as Map<PayoutNetwork, NetworkAdapter>
  const before = new Map(all)
  for (const [network, adapter] of networks) all.set(network, adapter)
  return work().finally(() => {
    for (const [network, adapter] of before) all.set(network, adapter)
  })
}

describe('a quoted fee', () => {
  const quote = (customer: TestCustomer, asset: string, asked: object = { amount: '20' }) =>
    customer.call<{ id: string; fee: string; detail: string }>(
      'POST',
      '/v2/transfer/fees/crypto-withdrawal',
      {
        asset,
        crypto_network: 'ETHEREUM',
        destination_address: PAYEE,
        ...asked,
      },
    )
  const PAYEE = newAddress()
  const setBaseFee = async ({ chain }: Wallet, gwei: string) => {
    await chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei(gwei) })
    await chain.mine({ blocks: 1 })
  }
  test('follows the node, and the withdrawal pays it; the ledger has the actual cost as well', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5', USDG: '90' })
    const networks: Networks = new Map([['ETHEREUM', { ...wallet.adapter, feeMargin: '50' }]])
    await withNetworks(networks, async () => {
      await setBaseFee(wallet, '10')
      const { amount } = await wallet.adapter.estimateFee!('ETH')
      const cheap = await quote(customer, 'ETH', { amount: '2' })
      expect(cheap.body.fee).toBe(formatAmount((parseAmount(amount, 18)! * 3n + 1n) / 2n, 18))
      await setBaseFee(wallet, '60')
      const dear = await quote(customer, 'ETH', { amount: '2' })
      expect(parseAmount(dear.body.fee, 18)).toBeGreaterThan(4n * parseAmount(cheap.body.fee, 18)!)

      await credit(service.ledger, customer, 'ETH', '10')
      const { status, body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
        profile_id: customer.profile_id,
        asset: 'ETH',
        amount: '2',
        crypto_network: 'ETHEREUM',
        destination_address: PAYEE,
        fee_id: dear.body.id,
      })
      expect({ status, body }).toMatchObject({ status: 200, body: { fee: dear.body.fee, status: 'PENDING' } })
    })
    await calm(wallet)
    await settleAll(wallet)
    await requireAgreement(wallet, [customer])
    const [report] = await networkReports(
      service.db,
      new Map([['ETHEREUM', { adapter: wallet.adapter, confirmations: 1 }]]),
    )
    expect(report!.fees.find(({ asset }) => asset === 'ETH')).toEqual({
      asset: 'ETH',
      collected: expect.stringMatching(/^0\.\d+$/) as string,
      paid: expect.stringMatching(/^0\.\d+$/) as string,
    })
  })

  test('is in the withdrawn asset: at the newest prices, rounded up to a debitable amount', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', {})
    const estimateFee = () => Promise.resolve({ asset: 'ETH', amount: '0.0010000000000001' })
    const networks: Networks = new Map([['ETHEREUM', { ...wallet.adapter, estimateFee, feeMargin: '20' }]])
    const feeIn = async (asset: string) => (await quote(customer, asset)).body.fee
    await withNetworks(networks, async () => {
      // The catalogue's prices are 3500 and 18. For a platform stablecoin the fee is whole cents, so that USD can be
      // debited.
      expect(await feeIn('USDG')).toBe('4.21')
      expect(await feeIn('LINK')).toBe('0.233333333333356667')
      await setPrice(service.db, 'ETHUSD', '9999', { minutesAgo: 2 })
      await setPrice(service.db, 'ETHUSD', '2000.5')
      await setPrice(service.db, 'LINKUSD', '20', { minutesAgo: 2_000 })
      expect(await feeIn('USDG')).toBe('2.41')
      // A price that is too old does not count.
      expect(await feeIn('LINK')).toBe('0.133366666666680004')
      await setPrice(service.db, 'LINKUSD', '10')
      expect(await feeIn('LINK')).toBe('0.240060000000024006')
      await setPrice(service.db, 'LINKUSD', '10', { minutesAgo: 2_000 })
      // The amount that remains after the fee is below the minimum.
      expect(await quote(customer, 'USDG', { total: '3.4' })).toMatchObject({
        status: 400,
        body: { type: expect.stringContaining('below-min-withdraw-limit') as string },
      })
      const live = service.settings as { mode: string }
      live.mode = 'live'
      try {
        expect(await feeIn('USDG')).toBe('2.41')
        // Without a real price, the fee is that of the schedule.
        expect(await feeIn('LINK')).toBe('0.1')
      } finally {
        live.mode = 'sandbox'
      }
    })
    expect(await feeIn('LINK')).toBe('0.1')
  })

  test('is required if the schedule does not cover the network fee, but not while the node is down', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5', USDG: '90' })
    await credit(service.ledger, customer, 'USDG', '100')
    const order = (changes: object = {}) =>
      customer.call<Transfer & { detail: string }>('POST', '/v2/transfer/crypto-withdrawals', {
        profile_id: customer.profile_id,
        asset: 'USDG',
        amount: '20',
        crypto_network: 'ETHEREUM',
        destination_address: newAddress(),
        ...changes,
      })
    const costing = (amount: string): Networks => {
      const estimateFee = () => Promise.resolve({ asset: 'ETH', amount })
      return new Map([['ETHEREUM', { ...wallet.adapter, estimateFee, feeMargin: '20' }]])
    }
    await setPrice(service.db, 'ETHUSD', '2000')
    // Orders keep prices for some seconds: this waits until they have read the new one.
    await withNetworks(costing('0.0005'), () =>
      vi.waitFor(async () => expect((await order()).status).toBe(200), { timeout: 60_000, interval: 500 }),
    )
    await withNetworks(costing('0.002'), async () => {
      const { status, body } = await order()
      expect(status).toBe(400)
      expect(body.detail).toBe(
        'fee_id must be given: the fee of 1 USDG does not cover the 4 USDG that ETHEREUM costs now for this ' +
          'destination; POST /v2/transfer/fees/crypto-withdrawal quotes a fee that does',
      )
      // An orchestration cannot name a quote: it pays the network fee plus the margin.
      const started = await customer.call<{ destination_transfer: { transfer_id: string } }>(
        'POST',
        '/v2/orchestration/orchestrations',
        {
          ref_id: randomUUID(),
          source_asset: 'USDG',
          destination_asset: 'USDG',
          source_amount: '20',
          source: { profile: { profile_id: customer.profile_id } },
          destination: { crypto: { network: 'ETHEREUM', address: newAddress() } },
        },
      )
      expect(started.status).toBe(200)
      const { transfer_id } = started.body.destination_transfer
      expect(await read(customer, { id: transfer_id })).toMatchObject({ fee: '4.8', amount: '15.2' })
    })
    const down = evmAdapter('ETHEREUM', { ...wallet.config, rpcUrl: 'http://127.0.0.1:1/x' }, service.db)
    await withNetworks(new Map([['ETHEREUM', down]]), async () => expect((await order()).status).toBe(200))
    await settleAll(wallet)
    await requireAgreement(wallet, [customer])
  })

  test('is refused for a destination with costly code; one for a contract wallet covers its gas', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' })
    await credit(service.ledger, customer, 'ETH', '10')
    const [computation, contractWallet] = [newAddress(), newAddress()]
    // The first computes keccak256 of a megabyte of memory (2.3 million gas); the second writes one storage slot
    // (22,100).
    await wallet.chain.setCode({ address: computation, bytecode: '0x620fffff6000205000' })
    await wallet.chain.setCode({ address: contractWallet, bytecode: '0x4360005500' })
    await withNetworks(wallet.networks, async () => {
      const ask = { asset: 'ETH', crypto_network: 'ETHEREUM', amount: '2' }
      for (const [path, more] of [
        ['/v2/transfer/fees/crypto-withdrawal', {}],
        ['/v2/transfer/crypto-withdrawals', { profile_id: customer.profile_id }],
      ] as const) {
        const { status, body } = await customer.call<{ type: string; detail: string }>('POST', path, {
          ...ask,
          ...more,
          destination_address: computation,
        })
        expect(status).toBe(400)
        expect(body.type).toMatch(/unsupported-address$/)
        expect(body.detail).toMatch(
          /^destination_address cannot be paid: a transfer to it takes more than 121000 gas, the most that is paid/,
        )
      }
      const feeTo = async (destination_address: string) =>
        parseAmount((await quote(customer, 'ETH', { amount: '2', destination_address })).body.fee, 18)!
      expect(await feeTo(contractWallet)).toBeGreaterThan(((await feeTo(PAYEE)) * 3n) / 2n)
    })
  })

  test('is refused while the node does not answer', async () => {
    const customer = await newCustomer(service)
    const { config } = await newWallet('ETHEREUM', {})
    const down = evmAdapter('ETHEREUM', { ...config, rpcUrl: 'http://127.0.0.1:1/secret' }, service.db)
    const { status, body } = await withNetworks(new Map([['ETHEREUM', down]]), () => quote(customer, 'ETH'))
    expect(status).toBe(503)
    expect(body.detail).toBe('the fees of the network are not available now; try again')
  })
})

// ---------------------------------------------------------------------------------------------- failures

test('no more is in flight than nodes accept of one account, and the rest follows', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '20' }, { maxInFlight: 2 })
  const created: Transfer[] = []
  for (let order = 1; order <= 5; order++) created.push(await withdraw(customer, 'ETHEREUM', 'ETH', '1'))
  await withoutMining(wallet, async () => {
    await step(wallet)
    await step(wallet)
    const reasons = await waitingReasons(created)
    expect(reasons.slice(0, 2)).toEqual([null, null])
    expect(reasons[2]).toBe('2 transactions are in flight, the most at a time')
    expect(
      await wallet.chain.getTransactionCount({ address: wallet.hotWallet.address, blockTag: 'pending' }),
    ).toBe(2)
  })
  await settleAll(wallet)
  expect(await requireAgreement(wallet, [customer])).toHaveLength(5)
})

test('withdrawals that must wait after their estimate leave the places in flight to later ones', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '20', USDG: '50' }, { maxInFlight: 2 })
  const withdrawFromNewProfile = async (asset: string, destination?: Hex) => {
    const { body } = await customer.call<{ id: string }>('POST', '/v2/profiles', { nickname: randomUUID() })
    return withdraw({ ...customer, profile_id: body.id }, 'ETHEREUM', asset, '1', destination)
  }
  const blocked = newAddress()
  await setOnToken('setBlocked', [blocked, true])
  const refused = await withdrawFromNewProfile('USDG', blocked)
  await setOnToken('setFeePercent', [5n])
  const waiting: Transfer[] = []
  for (let order = 1; order <= 3; order++) waiting.push(await withdrawFromNewProfile('USDG'))
  const others: Transfer[] = []
  for (let order = 1; order <= 3; order++) others.push(await withdrawFromNewProfile('ETH'))
  await withoutMining(wallet, async () => {
    await step(wallet)
    expect(await waitingCodes(waiting)).toEqual(Array(3).fill('TOKEN_DELIVERS_LESS'))
    // The first two withdrawals that can be signed take both places, in one call.
    expect(await waitingCodes(others)).toEqual([null, null, 'IN_FLIGHT_LIMIT'])
    expect((await read(customer, refused)).status).toBe('FAILED')
    const [first, second] = [await kept(others[0]!), await kept(others[1]!)]
    expect([first, second].map(({ raw_transaction }) => parse(raw_transaction).nonce)).toEqual([0, 1])
    await step(wallet)
    expect(await waitingCodes([...waiting, others[2]!])).toEqual(Array(4).fill('IN_FLIGHT_LIMIT'))
  })
  await setOnToken('setFeePercent', [0n])
  await settleAll(wallet)
  for (const one of [...waiting, ...others])
    expect(await read(customer, one)).toMatchObject({ status: 'COMPLETED' })
  expect(await requireAgreement(wallet, [customer])).toHaveLength(6)
})

test('a withdrawal that would be lost is refused: to the hot wallet, to a token contract, with a memo', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', {})
  const networks: Networks = new Map([['ETHEREUM', { ...wallet.adapter, carriesNoMemo: true }]])
  const order = (destination_address: string, changes: object = {}) =>
    customer.call<{ type: string; detail: string }>('POST', '/v2/transfer/crypto-withdrawals', {
      profile_id: customer.profile_id,
      asset: 'USDG',
      amount: '2',
      crypto_network: 'ETHEREUM',
      destination_address,
      ...changes,
    })
  await withNetworks(networks, async () => {
    for (const [address, why] of [
      [wallet.hotWallet.address, 'it is the wallet that withdrawals are paid from'],
      [tokens.get('ETHEREUM')!.USDG!, 'it is the contract of USDG, which keeps what is sent to it'],
      [
        `0x${'4'.padStart(40, '0')}`,
        'it is a contract of the network itself, or none, and nobody has its key',
      ],
    ] as const) {
      const { status, body } = await order(address.toLowerCase())
      expect({ status, detail: body.detail }).toEqual({
        status: 400,
        detail: `destination_address cannot be paid: ${why}`,
      })
      expect(body.type).toMatch(/unsupported-address$/)
    }
    expect(await order(newAddress(), { memo: 'destination tag 123' })).toMatchObject({
      status: 400,
      body: { detail: 'memo cannot be sent over ETHEREUM: its transfers have no memo' },
    })
  })
})

describe('a transaction that the node does not accept now waits, with the reason, and delays no other:', () => {
  test.each([
    ['its mempool is full', { code: -32000, message: 'txpool is full' }],
    ['the fee is too low for it', { code: -32000, message: 'transaction underpriced' }],
  ])('%s', async (_, error) => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' })
    const stuck = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    const [before, after] = [
      await withdraw(customer, 'ETHEREUM', 'ETH', '1'),
      await withdraw(customer, 'ETHEREUM', 'ETH', '1'),
    ]
    await signOnly(wallet)
    const { raw_transaction } = await kept(stuck)
    await withReplies(toHex(raw_transaction), { error }, async () => {
      await step(wallet)
      expect(await waitingReasons([stuck, before, after])).toEqual([
        `the node does not take nonce 0 yet: eth_sendRawTransaction: ${error.message}`,
        null,
        null,
      ])
      expect(await kept(stuck)).toMatchObject({ state: 'SIGNED' })
      expect(await kept(after)).toMatchObject({ state: 'BROADCAST' })
      await step(wallet)
    })
    await settleAll(wallet)
    expect(await requireAgreement(wallet, [customer])).toHaveLength(3)
  })

  test('its fee is too low for long: it is replaced, though no node ever had it', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' }, { stuckAfterMs: 0 })
    const stuck = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    await signOnly(wallet)
    const first = await kept(stuck)
    await wallet.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('40') })
    await wallet.chain.mine({ blocks: 1 })
    const error = { code: -32000, message: 'max fee per gas less than block base fee' }
    await withReplies(toHex(first.raw_transaction), { error }, () => step(wallet))
    const second = await kept(stuck)
    expect(second.crypto_tx_hash).not.toBe(first.crypto_tx_hash)
    await settleAll(wallet)
    expect(await requireAgreement(wallet, [customer])).toHaveLength(1)
    await calm(wallet)
  })

  test('it does not answer', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' })
    const signed = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    await signOnly(wallet)
    const fresh = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    const config = { ...wallet.config, rpcUrl: 'http://127.0.0.1:1/secret' }
    const down = new Map([['ETHEREUM', evmAdapter('ETHEREUM', config, service.db)]]) as Networks
    // Settlement reports that the node cannot say how far they are; the recorded state is kept.
    await expect(step({ networks: down })).rejects.toThrow('1 steps of settlement failed')
    const reason = expect.stringMatching(/^the node does not answer: /) as string
    expect(await waitingReasons([signed, fresh])).toEqual([reason, reason])
    await settleAll(wallet)
    expect(await requireAgreement(wallet, [customer])).toHaveLength(2)
  })
})

/** Lets the worker die after signing and before the broadcast. */
async function signOnly({ networks, network, adapter }: Wallet): Promise<void> {
  const broadcast = () => Promise.reject(new Error('the worker died here'))
  const dying: Networks = new Map([...networks, [network, { ...adapter, broadcast }]])
  await expect(step({ networks: dying })).rejects.toThrow('steps of settlement failed')
}

/** Runs work while the node gives this answer to requests that contain `text`. */
async function withReplies(text: string, answer: object, work: () => Promise<void>): Promise<void> {
  const real = globalThis.fetch
  const spy = vi.spyOn(globalThis, 'fetch').mockImplementation(async (...[url, request]) => {
    const calls = typeof request?.body === 'string' ? (JSON.parse(request.body) as unknown) : undefined
    const isIts = (call: unknown) => JSON.stringify(call).includes(text)
    if (!Array.isArray(calls) || !calls.some(isIts)) return real(url, request)
    const others = (calls as { id: number }[]).filter((call) => !isIts(call))
    const rest = others.length === 0 ? [] : await real(url, { ...request, body: JSON.stringify(others) })
    const replies = rest instanceof Response ? ((await rest.json()) as unknown[]) : rest
    const its = (calls as { id: number }[]).filter(isIts).map(({ id }) => ({ jsonrpc: '2.0', id, ...answer }))
    return Response.json([...replies, ...its])
  })
  try {
    await work()
  } finally {
    spy.mockRestore()
  }
}

describe('when the worker dies', () => {
  test.each(FAILURES)(
    '%s any one statement or request, each withdrawal is paid once',
    async (failure) => {
      const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '900', USDG: '900' })
      let orders = 0
      await dieAtEachStep(failure, 20, async (failures) => {
        const created = [
          await withdraw(customer, 'ETHEREUM', 'ETH', '1'),
          await withdraw(customer, 'ETHEREUM', 'USDG', '1'),
        ]
        orders += created.length
        const db = failures.database(service.db)
        const networks = new Map([['ETHEREUM', evmAdapter('ETHEREUM', wallet.config, db)]]) as Networks
        for (let round = 1; round <= 8 && !failures.died; round++) {
          await hurry()
          await failing(failures, () =>
            settleWithdrawals(db, networks).then(
              () => undefined,
              () => undefined,
            ),
          )
          await wallet.chain.mine({ blocks: 1 })
        }
        await settleAll(wallet)
        for (const transfer of created) {
          expect(await read(customer, transfer)).toMatchObject({ status: 'COMPLETED' })
          const units = await balance('ETHEREUM', transfer.destination_address as Hex, transfer.asset)
          expect(units).toBe(parseAmount('1', decimalsOf(transfer.asset)))
        }
      })
      expect(await requireAgreement(wallet, [customer])).toHaveLength(orders)
    },
    240_000,
  )
})

describe('a network that was simulated before', () => {
  const simulation = () => service.networks.get('ETHEREUM')!
  /** Creates a withdrawal that the simulation has signed and broadcast, but not confirmed. */
  async function inFlight(customer: TestCustomer) {
    const slow = simulatedNetworks(service.db, { confirmationMs: 3_600_000, holdMs: 0 })
    const created = [
      await withdraw(customer, 'ETHEREUM', 'ETH', '1'),
      await withdraw(customer, 'ETHEREUM', 'USDG', '1'),
    ]
    await settleWithdrawals(service.db, new Map([['ETHEREUM', { ...slow.get('ETHEREUM')! }]]))
    await service.db.query(`update outgoing_transfers set state = 'SIGNED' where transfer_id = $1`, [
      created[1]!.id,
    ])
    return created
  }

  test('completes the transactions that it signed, and the chain gets only those signed later', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5', USDG: '10' })
    const past = await inFlight(customer)
    const adapter = routeBySigner(wallet.adapter, simulation())
    const real = await withdraw(customer, 'ETHEREUM', 'USDG', '2')
    await settleAll({ ...wallet, networks: new Map([['ETHEREUM', adapter]]) })
    for (const one of [...past, real]) expect((await read(customer, one)).status).toBe('COMPLETED')
    const made = await madeBy(wallet)
    expect(made.map(({ hash }) => hash)).toEqual([(await read(customer, real)).crypto_tx_hash])
    for (const { destination_address } of past)
      expect(await balance('ETHEREUM', destination_address as Hex, 'ETH')).toBe(0n)
    expect((await verify(service.db, { tokens })).disagreements).toEqual([])
  })

  test('in live mode keeps the transactions that it signed waiting, with the reason, and no others', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5', USDG: '10' })
    const past = await inFlight(customer)
    const networks: Networks = new Map([['ETHEREUM', routeBySigner(wallet.adapter, undefined)]])
    for (let round = 1; round <= 3; round++) await step({ networks })
    expect(await waitingReasons(past)).toEqual(Array(2).fill('it was signed for a simulated network'))
    const other = await newCustomer(service)
    const real = await withdraw(other, 'ETHEREUM', 'USDG', '2')
    for (let round = 1; round <= 8; round++) {
      await step({ networks })
      await wallet.chain.mine({ blocks: 1 })
    }
    expect((await read(other, real)).status).toBe('COMPLETED')
    for (const one of past) expect((await read(customer, one)).status).toBe('PENDING')
    // The simulation ends them when it is configured again.
    await settleAll({ ...wallet, networks: new Map([['ETHEREUM', simulation()]]) })
    for (const one of past) expect((await read(customer, one)).status).toBe('COMPLETED')
  })

  test('the other way round: transactions signed for the real network wait for it', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' })
    const created = await withdraw(customer, 'ETHEREUM', 'ETH', '1')
    await step(wallet)
    for (let round = 1; round <= 4; round++) await step({ networks: new Map([['ETHEREUM', simulation()]]) })
    expect(await waitingReasons([created])).toEqual([
      'it was signed for a real ETHEREUM, which is not configured',
    ])
    await settleAll(wallet)
    expect(await requireAgreement(wallet, [customer])).toHaveLength(1)
  })

  test('neither accepts the cursor of the other', async () => {
    const wallet = await newWallet('ETHEREUM', {})
    const simulated = (await simulation().scanDeposits!(null)).cursor
    const { cursor } = await wallet.adapter.scanDeposits!(simulated)
    expect(cursor).toMatch(/^\d+:0x/)
    expect((await simulation().scanDeposits!(cursor)).cursor).toBe('simulated')
  })
})

// ---------------------------------------------------------------------------------------------- deposits

/** Creates a deposit address of a customer, as the API does. */
const newDepositAddress = async ({ customer_id, profile_id }: TestCustomer, { network, networks }: Wallet) =>
  (
    await insertDepositAddress(service.db, { networks, rowMacs: ROW_MACS }, customer_id, {
      profile_id,
      crypto_network: network,
    })
  ).address as Hex

/** Scans from a cursor until nothing is left to read. */
async function readOn(
  { adapter }: Wallet,
  cursor: string,
): Promise<{ cursor: string; found: FoundDeposit[] }> {
  const found: FoundDeposit[] = []
  for (let call = 1; call <= 200; call++) {
    const read = await adapter.scanDeposits!(cursor)
    found.push(...read.found)
    if (read.cursor === cursor) return { cursor, found }
    cursor = read.cursor
  }
  throw new Error('the chain has no end')
}

/** The block of a transaction, as a deposit records it. */
async function blockOf({ chain }: Wallet, hash?: Hex) {
  const { blockNumber, blockHash } = await chain.getTransactionReceipt({ hash: hash! })
  return { block: { number: blockNumber, hash: blockHash } }
}

describe('deposits', () => {
  test('of the native asset and of tokens are found when confirmed, with the same result at each scan', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1', USDG: '5' })
    const { chain, adapter } = wallet
    const [first, second] = [
      await newDepositAddress(customer, wallet),
      await newDepositAddress(customer, wallet),
    ]
    // An address works on every EVM network, also on networks other than its own.
    const elsewhere = await newDepositAddress(customer, await newWallet('INK', {}))
    const start = (await adapter.scanDeposits!(null)).cursor
    const hashes = [
      await give('ETHEREUM', first, 'ETH', '1.000000000000000007'),
      await give('ETHEREUM', second, 'USDG', '2.000001'),
      await give('ETHEREUM', first, 'LINK', '3.000000000000000001'),
      await give('ETHEREUM', elsewhere, 'ETH', '4'),
    ]
    await give('ETHEREUM', newAddress(), 'ETH', '5')
    await give('ETHEREUM', newAddress(), 'USDG', '5')
    await chain.mine({ blocks: 30 })
    const { found, cursor } = await readOn(wallet, start)
    const [nativeHash, tokenHash, linkHash, elsewhereHash] = hashes
    const at0 = async (crypto_tx_hash?: Hex) => {
      return { crypto_tx_hash, crypto_tx_index: '0', ...(await blockOf(wallet, crypto_tx_hash)) }
    }
    expect(found.sort((a, b) => (a.amount < b.amount ? -1 : 1))).toEqual([
      { address: first, asset: 'ETH', amount: '1.000000000000000007', ...(await at0(nativeHash)) },
      { address: second, asset: 'USDG', amount: '2.000001', ...(await at0(tokenHash)) },
      { address: first, asset: 'LINK', amount: '3.000000000000000001', ...(await at0(linkHash)) },
      { address: elsewhere, asset: 'ETH', amount: '4', ...(await at0(elsewhereHash)) },
    ])
    const again = await readOn(wallet, start)
    expect(again.found.sort((a, b) => (a.amount < b.amount ? -1 : 1))).toEqual(found)
    expect(again.cursor).toBe(cursor)
    expect((await readOn(wallet, cursor)).found).toEqual([])
  })

  test('are found when their block is confirmed, and never if it was replaced before', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', {})
    const address = await newDepositAddress(customer, wallet)
    await wallet.chain.mine({ blocks: 5 })
    let { cursor } = await wallet.adapter.scanDeposits!(null)
    await give('ETHEREUM', address, 'ETH', '1')
    await wallet.chain.mine({ blocks: 1 })
    await wallet.chain.request({ method: 'anvil_reorg', params: [2, []] } as never)
    const kept = await give('ETHEREUM', address, 'ETH', '2')
    for (let depth = 1; depth < CONFIRMATIONS; depth++) {
      const { found, cursor: next } = await readOn(wallet, cursor)
      expect([depth, found]).toEqual([depth, []])
      cursor = next
      await wallet.chain.mine({ blocks: 1 })
    }
    const { found } = await readOn(wallet, cursor)
    expect(found).toEqual([
      {
        address,
        asset: 'ETH',
        amount: '2',
        crypto_tx_hash: kept,
        crypto_tx_index: '0',
        ...(await blockOf(wallet, kept)),
      },
    ])
  })

  test('from a withdrawal of Bursar count like any other; a reverted transfer does not count', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' })
    const address = await newDepositAddress(customer, wallet)
    await wallet.chain.mine({ blocks: CONFIRMATIONS })
    const { cursor } = await wallet.adapter.scanDeposits!(null)
    const paid = await withdraw(customer, 'ETHEREUM', 'ETH', '1', address)
    await settleAll(wallet)
    const { crypto_tx_hash } = await read(customer, paid)
    expect((await readOn(wallet, cursor)).found).toEqual([
      {
        address,
        asset: 'ETH',
        amount: '1',
        crypto_tx_hash,
        crypto_tx_index: '0',
        ...(await blockOf(wallet, crypto_tx_hash as Hex)),
      },
    ])
  })

  test('that share an address and a block, or span several blocks of one scan, are each credited once', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', {})
    await service.owner.query('delete from network_cursors')
    const address = await newDepositAddress(customer, wallet)
    const amounts = ['0.1', '0.2', '0.3', '0.4']
    const [first, second, ...others] = amounts
    await withoutMining(wallet, async () => {
      await give('ETHEREUM', address, 'ETH', first!)
      await give('ETHEREUM', address, 'ETH', second!)
      await wallet.chain.mine({ blocks: 1 })
    })
    for (const amount of others) await give('ETHEREUM', address, 'ETH', amount)
    await creditAll(wallet)
    await creditAll(wallet)
    const { body } = await customer.call<{ items: Transfer[] }>(
      'GET',
      '/v2/transfer/transfers?type=CRYPTO_DEPOSIT',
    )
    expect(body.items.map(({ amount }) => amount).sort()).toEqual(amounts)
  })

  test('stop at blocks that were replaced below the confirmations, with an error', async () => {
    const wallet = await newWallet('ETHEREUM', {})
    // Without a transaction, the replaced blocks would be identical.
    await give('ETHEREUM', newAddress(), 'ETH', '1')
    await wallet.chain.mine({ blocks: CONFIRMATIONS })
    const { cursor } = await wallet.adapter.scanDeposits!(null)
    await wallet.chain.request({ method: 'anvil_reorg', params: [5, []] } as never)
    await wallet.chain.mine({ blocks: 3 })
    await expect(wallet.adapter.scanDeposits!(cursor)).rejects.toThrow(
      'ETHEREUM has rearranged its blocks deeper than 3 confirmations',
    )
  })
})

test('a deposit before the first scan of the network is credited, too', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', {})
  // Like after a switch from the simulation, whose cursor is meaningless on this chain.
  await service.owner.query(`delete from network_cursors`)
  await service.db.query(`insert into network_cursors values ('ETHEREUM', '7', now())`)
  const address = await newDepositAddress(customer, wallet)
  await give('ETHEREUM', address, 'ETH', '0.25')
  await creditAll(wallet)
  const { body } = await customer.call('GET', `/v2/profiles/${customer.profile_id}/balances/ETH`)
  expect(body).toMatchObject({ available: '0.25' })

  // Without an initial cursor no address is given, so no deposit can be lost.
  await service.owner.query(`delete from network_cursors`)
  const { rpcUrl: _, ...rest } = wallet.config
  const down = evmAdapter('ETHEREUM', { ...rest, rpcUrl: 'http://127.0.0.1:1' }, service.db)
  await withNetworks(new Map([['ETHEREUM', down]]), async () => {
    const { profile_id } = customer
    const asked = { profile_id, crypto_network: 'ETHEREUM' }
    const refused = await customer.call('POST', '/v2/transfer/deposit-addresses', asked)
    expect(refused).toMatchObject({
      status: 503,
      body: { detail: 'the node of ETHEREUM does not answer; no address was created' },
    })
  })
})

// ---------------------------------------------------------------------------------------------- sweeping

const SWEEPS_MAX = 40
/** USD for a whole unit, times 10^18. */
const PRICES = new Map([
  ['ETH', 3_000n * 10n ** 18n],
  ['USDG', 10n ** 18n],
  ['LINK', 15n * 10n ** 18n],
])
const ROUND = { post: postSweep, isFrozen, prices: PRICES }
/** Amounts that are swept at any cost, for tests of other subjects. */
const AT_ANY_COST = { sweepMinimum: { ETH: '0.002', USDG: '1', LINK: '0.5' } }

/** Sweeps, with a block in each round, until nothing is left to do. */
async function sweepAll({ adapter, chain, network }: Wallet): Promise<void> {
  for (let round = 1; round <= SWEEPS_MAX; round++) {
    const steps = await adapter.sweep!(ROUND)
    await chain.mine({ blocks: 1 })
    const { rowCount } = await service.db.query(
      `select from sweeps where network = $1 and state in ('SIGNED', 'BROADCAST')`,
      [network],
    )
    if (steps === 0 && rowCount === 0) return
  }
  throw new Error('sweeping does not come to an end')
}

test('a holding whose sweep the database does not know is not reported as held', async () => {
  const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '5' }, AT_ANY_COST)
  const address = await newDepositAddress(customer, wallet)
  const held = async () => (await wallet.adapter.status!()).held.LINK
  const before = await held()
  await service.db.query(
    `insert into address_holdings (customer_id, network, address, asset, balance)
     values ($1, 'ETHEREUM', $2, 'LINK', 20)`,
    [customer.customer_id, address],
  )
  expect(await held()).not.toBe(before)
  await sweepAll(wallet)
  expect(await held()).toBe(before)
})

/** Returns a customer's cost of sweeping in the ledger. Throws if the ledger has disagreements. */
async function sweepingCost({ customer_id }: TestCustomer): Promise<bigint> {
  const { rows } = await service.db.query<{ sum: string | null }>(
    `select sum(amount) from entries where customer_id = $1 and event = 'SWEPT' and account like 'custody:%'`,
    [customer_id],
  )
  expect((await verify(service.db, { tokens })).disagreements).toEqual([])
  return parseStoredAmount(rows[0]!.sum ?? '0', 18)
}

/** Credits incoming transfers to deposit addresses, as the worker does. */
async function creditAll({ networks, chain }: Wallet): Promise<void> {
  await chain.mine({ blocks: CONFIRMATIONS })
  const { db, ledger, settings } = service
  await creditDeposits({ db, ledger, networks, settings })
}

/** Checks invariant 3 with sweeps, and that the ledger has each fee of the chain once. */
async function requireSwept(wallet: Wallet, funds: Record<string, string>, customer: TestCustomer) {
  const { network, chain, hotWallet, adapter, since } = wallet
  const { rows } = await service.db.query<{ address: string }>(
    'select address from deposit_addresses where customer_id = $1',
    [customer.customer_id],
  )
  const ours = new Set([hotWallet.address, ...rows.map(({ address }) => address)])
  let fees = 0n
  for (let blockNumber = since; blockNumber <= (await chain.getBlockNumber()); blockNumber++) {
    for (const { hash, from } of (await chain.getBlock({ blockNumber, includeTransactions: true }))
      .transactions) {
      if (!ours.has(getAddress(from))) continue
      const { gasUsed, effectiveGasPrice } = await chain.getTransactionReceipt({ hash })
      fees += gasUsed * effectiveGasPrice
    }
  }
  expect(fees).toBeGreaterThan(0n)
  expect(await onLedger([customer], `network_fees:${network}`, 'ETH')).toBe(-fees)
  const { held } = await adapter.status!()
  for (const [asset, amount] of Object.entries(funds)) {
    const funded = parseAmount(amount, decimalsOf(asset))!
    const inCustody = funded - (await onLedger([customer], `custody:${network}`, asset))
    expect([asset, parseAmount(held[asset]!, decimalsOf(asset))]).toEqual([asset, inCustody])
  }
  expect((await verify(service.db, { tokens })).disagreements).toEqual([])
}

describe('sweeping', () => {
  // Forgets the holdings that other tests left at their addresses.
  const forget = () => service.owner.query('delete from address_holdings')
  beforeEach(forget)
  afterEach(forget)

  test('moves tokens, with gas from the hot wallet, and the native asset, and posts the cost', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1' }, AT_ANY_COST)
    const { chain, adapter, hotWallet } = wallet
    const { cursor } = await adapter.scanDeposits!(null)
    const [one, two] = [await newDepositAddress(customer, wallet), await newDepositAddress(customer, wallet)]
    await give('ETHEREUM', one, 'USDG', '20')
    await give('ETHEREUM', two, 'ETH', '2')
    await give('ETHEREUM', two, 'LINK', '3')
    await chain.mine({ blocks: CONFIRMATIONS })
    const arrived = await readOn(wallet, cursor)
    expect(arrived.found).toHaveLength(3)
    expect((await adapter.status!()).held).toMatchObject({ ETH: '3', USDG: '20', LINK: '3' })

    await sweepAll(wallet)
    expect(await balance('ETHEREUM', hotWallet.address, 'USDG')).toBe(20_000_000n)
    expect(await balance('ETHEREUM', hotWallet.address, 'LINK')).toBe(3n * 10n ** 18n)
    expect(await balance('ETHEREUM', two, 'ETH')).toBe(0n)
    const cost = await sweepingCost(customer)
    expect(cost).toBeGreaterThan(0n)
    const held = parseAmount((await adapter.status!()).held.ETH!, 18)!
    expect(held).toBe(3n * 10n ** 18n - cost)
    const spread = await Promise.all(
      [hotWallet.address, one, two].map((at) => balance('ETHEREUM', at, 'ETH')),
    )
    expect(spread.reduce((sum, part) => sum + part)).toBe(held)

    // Neither top-ups nor sweeps are deposits.
    await chain.mine({ blocks: CONFIRMATIONS })
    expect((await readOn(wallet, arrived.cursor)).found).toEqual([])
    // Top-ups use nonces of the hot wallet, and a withdrawal takes the next one.
    await withdraw(customer, 'ETHEREUM', 'USDG', '20')
    await settleAll(wallet)
    expect((await madeBy(wallet)).map(({ nonce }) => nonce)).toEqual([0, 1])
  })

  test('reserves the L1 fee of an OP stack chain, and includes it in quotes', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1' }, AT_ANY_COST)
    const { chain, adapter } = wallet
    const before = parseAmount((await adapter.estimateFee!('ETH')).amount, 18)!
    // The contract that reports the fee always answers with this amount. Anvil itself charges no such fee.
    const answer = 10n ** 15n
    const code = `0x7f${answer.toString(16).padStart(64, '0')}60005260206000f3` as const
    await chain.setCode({ address: '0x420000000000000000000000000000000000000F', bytecode: code })
    await chain.mine({ blocks: 1 })
    expect(parseAmount((await adapter.estimateFee!('ETH')).amount, 18)! - before).toBe(2n * answer)

    const { cursor } = await adapter.scanDeposits!(null)
    const [one, two] = [await newDepositAddress(customer, wallet), await newDepositAddress(customer, wallet)]
    await give('ETHEREUM', one, 'USDG', '20')
    await give('ETHEREUM', two, 'ETH', '2')
    await chain.mine({ blocks: CONFIRMATIONS })
    await readOn(wallet, cursor)
    await sweepAll(wallet)
    expect(await balance('ETHEREUM', wallet.hotWallet.address, 'USDG')).toBe(20_000_000n)
    expect(await balance('ETHEREUM', one, 'ETH')).toBeGreaterThanOrEqual(2n * answer)
    expect(await balance('ETHEREUM', two, 'ETH')).toBe(2n * answer)
    await chain.setCode({ address: '0x420000000000000000000000000000000000000F', bytecode: '0x' })
  })

  test('leaves amounts that are not worth their fee, and waits for gas in the hot wallet', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', {}, AT_ANY_COST)
    const { cursor } = await wallet.adapter.scanDeposits!(null)
    const address = await newDepositAddress(customer, wallet)
    await give('ETHEREUM', address, 'USDG', '0.5')
    await wallet.chain.mine({ blocks: CONFIRMATIONS })
    const { cursor: next } = await readOn(wallet, cursor)
    expect(await wallet.adapter.sweep!(ROUND)).toBe(0)
    await give('ETHEREUM', address, 'USDG', '1')
    await wallet.chain.mine({ blocks: CONFIRMATIONS })
    await readOn(wallet, next)
    const failure = await wallet.adapter.sweep!(ROUND).catch((error: unknown) => error as AggregateError)
    expect(String((failure as AggregateError).errors[0])).toMatch(
      /the hot wallet has 0 ETH left, gas to sweep/,
    )
    await give('ETHEREUM', wallet.hotWallet.address, 'ETH', '1')
    await sweepAll(wallet)
    expect(await balance('ETHEREUM', wallet.hotWallet.address, 'USDG')).toBe(1_500_000n)
  })

  test.each([
    ['is stuck', 0],
    ['is too cheap for any block', 3_600_000],
  ])('a sweep that %s is replaced with the same nonce', async (_, stuckAfterMs) => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1' }, { stuckAfterMs, ...AT_ANY_COST })
    const { cursor } = await wallet.adapter.scanDeposits!(null)
    const address = await newDepositAddress(customer, wallet)
    await give('ETHEREUM', address, 'ETH', '2')
    await give('ETHEREUM', address, 'USDG', '2')
    await wallet.chain.mine({ blocks: CONFIRMATIONS })
    await readOn(wallet, cursor)
    await freeze(service.db, TEST_ORIGIN, { kind: 'NETWORK', network: 'ETHEREUM' }, 'OPERATOR', 'a leak')
    expect(await wallet.adapter.sweep!(ROUND)).toBe(0)
    expect((await service.db.query('select from sweeps where address = $1', [address])).rowCount).toBe(0)
    await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, { kind: 'NETWORK', network: 'ETHEREUM' })
    for (let round = 1; round <= 3; round++) {
      await withoutMining(wallet, async () => {
        await wallet.adapter.sweep!(ROUND)
        await wallet.chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('40') })
        await wallet.chain.mine({ blocks: 1 })
        await freeze(service.db, TEST_ORIGIN, { kind: 'ALL' }, 'OPERATOR', 'a leak')
        const signed = 'select crypto_tx_hash from sweeps where address = $1 order by id'
        const before = (await service.db.query(signed, [address])).rows
        await wallet.adapter.sweep!(ROUND)
        expect((await service.db.query(signed, [address])).rows).toEqual(before)
        await unfreeze(service.db, ROW_MACS, TEST_ORIGIN, { kind: 'ALL' })
        // The node may have dropped it: then it is broadcast first.
        for (let look = 1; look <= 2; look++) await wallet.adapter.sweep!(ROUND)
      })
      await calm(wallet)
    }
    await sweepAll(wallet)
    const replaced = `select from sweeps where address = $1 and replaced <> '{}'`
    expect((await service.db.query(replaced, [address])).rowCount).toBeGreaterThan(0)
    expect(await balance('ETHEREUM', wallet.hotWallet.address, 'USDG')).toBe(2_000_000n)
    const held = parseAmount((await wallet.adapter.status!()).held.ETH!, 18)!
    expect(held).toBe(3n * 10n ** 18n - (await sweepingCost(customer)))
  })

  test('after sweeps, top-ups, fee bumps and reverted sweeps by two workers, custody equals the balances', async () => {
    const funds = { ETH: '3', USDG: '0', LINK: '0' }
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '3' }, AT_ANY_COST)
    const { chain, config, hotWallet } = wallet
    await service.owner.query('delete from network_cursors')
    await creditAll(wallet)
    const pools = [1, 2].map(() => openDatabase(service.url, { max: 4, onError: () => undefined }))
    atEnd(async () => void (await Promise.all(pools.map((pool) => pool.end()))))
    const workers = pools.map((pool) => evmAdapter('ETHEREUM', config, pool))
    const hasty = pools.map((pool) => evmAdapter('ETHEREUM', { ...config, stuckAfterMs: 0 }, pool))
    const both = async (adapters: NetworkAdapter[]) => {
      const sweeping = adapters.map((adapter) => adapter.sweep!(ROUND))
      // If one fails, the other still comes to its end.
      await Promise.allSettled(sweeping)
      return Promise.all(sweeping)
    }
    // The node refuses a sweep that one worker plans after the other has sent its own: it is planned again.
    const overtaken = (error: unknown): number[] => {
      if (/execution reverted/.test(String(error))) return [1]
      throw error
    }
    const endAll = async () => {
      for (let round = 1; round <= SWEEPS_MAX; round++) {
        const steps = await both(workers).catch(overtaken)
        await chain.mine({ blocks: 1 })
        if (steps.every((taken) => taken === 0)) {
          const { rowCount } = await service.db.query(
            `select from sweeps where customer_id = $1 and ended_at is null`,
            [customer.customer_id],
          )
          if (rowCount === 0) return
        }
      }
      throw new Error('sweeping does not come to an end')
    }
    const addresses = await Promise.all([1, 2, 3].map(() => newDepositAddress(customer, wallet)))
    for (const [round, asset] of ['USDG', 'LINK', 'USDG'].entries()) {
      for (const address of addresses) {
        await give('ETHEREUM', address, asset, '20')
        await give('ETHEREUM', address, 'ETH', ['0.1', '0.00001', '2'][round]!)
      }
      await creditAll(wallet)
      await withoutMining(wallet, async () => {
        await both(workers).catch(overtaken)
        // Transactions in flight now pay too little, and are replaced.
        await chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('30') })
        await chain.mine({ blocks: 1 })
        await both(hasty).catch(overtaken)
        await both(hasty).catch(overtaken)
        // The token refuses in the block that mines them, so they are reverted.
        if (asset === 'USDG') await setOnToken('setBlocked', [hotWallet.address, true], { first: true })
        await calm(wallet)
      })
      await chain.mine({ blocks: CONFIRMATIONS })
      await both(workers).catch(() => undefined)
      if (asset === 'USDG') await setOnToken('setBlocked', [hotWallet.address, false])
      await endAll()
      await requireSwept(wallet, funds, customer)
      await creditAll(wallet)
    }
    expect(await balance('ETHEREUM', hotWallet.address, 'USDG')).toBe(120_000_000n)
    expect(await balance('ETHEREUM', hotWallet.address, 'LINK')).toBe(60n * 10n ** 18n)
    const { rows } = await service.db.query<{ kind: string; state: string; replaced: boolean }>(
      `select distinct kind, state, replaced <> '{}' as replaced from sweeps where customer_id = $1`,
      [customer.customer_id],
    )
    for (const expected of [
      { kind: 'TOP_UP', state: 'DONE', replaced: true },
      { kind: 'SWEEP', state: 'DONE' },
      { kind: 'SWEEP', state: 'FAILED', replaced: true },
    ])
      expect(rows).toContainEqual(expect.objectContaining(expected))
  })

  /** Creates an address of the wallet's customer with this amount, recorded as a deposit scan does. */
  async function newHolding(customer: TestCustomer, wallet: Wallet, amounts: Record<string, string>) {
    const address = await newDepositAddress(customer, wallet)
    for (const [asset, amount] of Object.entries(amounts)) {
      const hash = await give('ETHEREUM', address, asset, amount)
      await wallet.chain.waitForTransactionReceipt({ hash })
      await service.db.query(
        `insert into address_holdings (customer_id, network, address, asset, balance, stale_at)
         values ($1, 'ETHEREUM', $2, $3, 0, clock_timestamp())`,
        [customer.customer_id, address, asset],
      )
    }
    return address
  }

  test('sweeps cost less than they bring: dust stays, and a sweep uses up its gas', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1' })
    const { chain, adapter, hotWallet } = wallet
    const atGwei30 = async () => {
      await chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('30') })
      await chain.mine({ blocks: 1 })
    }
    const dust: Hex[] = []
    for (let count = 1; count <= 5; count++)
      dust.push(await newHolding(customer, wallet, { USDG: '1', ETH: '0.0021' }))
    const worthy = await newHolding(customer, wallet, { USDG: '5000' })
    await atGwei30()
    for (let round = 1; round <= 6; round++) {
      await adapter.sweep!(ROUND)
      await atGwei30()
    }
    for (const address of dust) expect(await balance('ETHEREUM', address, 'USDG')).toBe(1_000_000n)
    expect(await balance('ETHEREUM', hotWallet.address, 'USDG')).toBe(5_000_000_000n)
    const { rows } = await service.db.query<{ kind: string; amount: string }>(
      'select kind, amount from sweeps where customer_id = $1 order by id',
      [customer.customer_id],
    )
    expect(rows.map(({ kind }) => kind)).toEqual(['TOP_UP', 'SWEEP'])
    // Of the gas that was sent, only the margin of the estimate above the used gas is left.
    const sent = parseStoredAmount(rows[0]!.amount, 18)
    expect((await balance('ETHEREUM', worthy, 'ETH')) * 4n).toBeLessThan(sent)
    expect((await sweepingCost(customer)) * 3_000n * 100n).toBeLessThan(5n * 5_000n * 10n ** 18n)

    // At a fifteenth of the gas price, the native asset at the same addresses is worth its fee.
    await chain.setNextBlockBaseFeePerGas({ baseFeePerGas: parseGwei('1') })
    await chain.mine({ blocks: 1 })
    await sweepAll(wallet)
    for (const address of dust) expect(await balance('ETHEREUM', address, 'ETH')).toBe(0n)
    await calm(wallet)
  })

  test('a token that takes a fee from transfers is not swept until the fee ends, with a warning', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1' })
    const address = await newHolding(customer, wallet, { USDG: '500', ETH: '1' })
    await setOnToken('setFeePercent', [5n])
    const sweep = () => wallet.adapter.sweep!(ROUND).catch((error: unknown) => error)
    // The native asset is swept, since nothing reserves it for gas.
    for (let round = 1; round <= 4; round++) {
      expect(String(((await sweep()) as AggregateError).errors)).toBe(
        `Error: USDG is not swept: of 500 at ${address}, 475 would arrive, since it takes a fee from transfers`,
      )
      await wallet.chain.mine({ blocks: 1 })
      if ((await balance('ETHEREUM', address, 'ETH')) === 0n) break
    }
    expect(await balance('ETHEREUM', address, 'ETH')).toBe(0n)
    expect(await balance('ETHEREUM', address, 'USDG')).toBe(500_000_000n)
    const { rows } = await service.db.query<{ kind: string; asset: string }>(
      'select kind, asset from sweeps where address = $1',
      [address],
    )
    expect(rows).toEqual([{ kind: 'SWEEP', asset: 'ETH' }])
    expect((await wallet.adapter.status!()).held).toMatchObject({ USDG: '500' })

    await setOnToken('setFeePercent', [0n])
    await sweepAll(wallet)
    expect(await balance('ETHEREUM', wallet.hotWallet.address, 'USDG')).toBe(500_000_000n)
  })

  test('an asset without a price is not swept, with a warning, and the others are', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1' })
    const address = await newHolding(customer, wallet, { LINK: '500', ETH: '1' })
    const prices = new Map([...PRICES].filter(([asset]) => asset !== 'LINK'))
    const failure = await wallet.adapter.sweep!({ ...ROUND, prices }).catch((error: unknown) => error)
    expect(String((failure as AggregateError).errors)).toBe(
      'Error: LINK is not swept: market history has no price of LINK; set sweep_minimum.LINK, the amount from which on it is swept',
    )
    await wallet.chain.mine({ blocks: 1 })
    await wallet.adapter.sweep!({ ...ROUND, prices }).catch(() => undefined)
    expect(await balance('ETHEREUM', address, 'ETH')).toBe(0n)
    expect(await balance('ETHEREUM', wallet.hotWallet.address, 'LINK')).toBe(0n)
    await sweepAll(wallet)
  })

  test('a sweep whose receipt cannot be read keeps no other from its end', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1' }, AT_ANY_COST)
    const { adapter, chain } = wallet
    const { cursor } = await adapter.scanDeposits!(null)
    const addresses = [await newDepositAddress(customer, wallet), await newDepositAddress(customer, wallet)]
    for (const address of addresses) await give('ETHEREUM', address, 'ETH', '2')
    await chain.mine({ blocks: CONFIRMATIONS })
    await readOn(wallet, cursor)
    await adapter.sweep!(ROUND)
    await chain.mine({ blocks: CONFIRMATIONS })
    const sweeps = async () => {
      const { rows } = await service.db.query<{ id: string; state: string; crypto_tx_hash: Hex }>(
        'select id, state, crypto_tx_hash from sweeps where address = any ($1) order by signed_at',
        [addresses],
      )
      return rows
    }
    const [odd] = await sweeps()
    const { crypto_tx_hash: hash } = odd!
    const [receipt] = await evmNode(wallet.config.rpcUrl).all<object>([['eth_getTransactionReceipt', hash]])
    const result = { ...receipt, l1Fee: '0xodd' }
    await withReplies(`"eth_getTransactionReceipt","params":["${hash}"]`, { result }, async () => {
      const failure = await adapter.sweep!(ROUND).catch((error: unknown) => error as AggregateError)
      expect(failure).toMatchObject({ errors: [{ record: `sweep ${odd!.id}` }] })
    })
    expect((await sweeps()).map(({ state }) => state)).toEqual(['BROADCAST', 'DONE'])
    await sweepAll(wallet)
    expect((await sweeps()).map(({ state }) => state)).toEqual(['DONE', 'DONE'])
  })

  test('a sweep whose nonce was used ends, and the address is swept with the next nonce', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1' })
    const { chain, adapter, hotWallet } = wallet
    const address = await newHolding(customer, wallet, { ETH: '2' })
    await withoutMining(wallet, async () => {
      await adapter.sweep!(ROUND)
      const { rows } = await service.db.query<{ crypto_tx_hash: Hex }>(
        'select crypto_tx_hash from sweeps where customer_id = $1',
        [customer.customer_id],
      )
      await chain.dropTransaction({ hash: rows[0]!.crypto_tx_hash })
      await chain.setNonce({ address, nonce: 1 })
    })
    await chain.mine({ blocks: CONFIRMATIONS })
    const states = async () =>
      (
        await service.db.query<{ state: string }>(
          'select state from sweeps where customer_id = $1 order by id',
          [customer.customer_id],
        )
      ).rows.map(({ state }) => state)
    const refused = () => adapter.sweep!(ROUND).catch((error: unknown) => String(error))
    expect(await refused()).toContain('sweeps failed')
    expect(await refused()).toContain('sweeps failed')
    expect(await states()).toEqual(['SIGNED'])
    await service.db.query(`update sweeps set lost_since = ${movedBy('lost_since', '-1 hour')}`)
    await sweepAll(wallet)
    expect(await states()).toEqual(['VOID', 'DONE'])
    expect(await balance('ETHEREUM', address, 'ETH')).toBe(0n)
    const held = 3n * 10n ** 18n - (await sweepingCost(customer))
    expect(await balance('ETHEREUM', hotWallet.address, 'ETH')).toBe(held)
  })

  test('a node that reports a used nonce as free is not believed', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1' })
    const address = await newHolding(customer, wallet, { ETH: '2' })
    await sweepAll(wallet)
    await wallet.chain.setNonce({ address, nonce: 0 })
    const hash = await give('ETHEREUM', address, 'ETH', '2')
    await wallet.chain.waitForTransactionReceipt({ hash })
    await service.db.query('update address_holdings set stale_at = (select clock_timestamp())')
    const failure = await wallet.adapter.sweep!(ROUND).catch((error: unknown) => error)
    expect(String((failure as AggregateError).errors)).toContain(
      'the node is behind, or blocks were taken back: it says that nonce 0',
    )
    await wallet.chain.setNonce({ address, nonce: 1 })
    await sweepAll(wallet)
    expect(await balance('ETHEREUM', address, 'ETH')).toBe(0n)
  })

  test('a round reads all balances that may have changed, not the oldest hundred', async () => {
    const [customer, wallet] = await newPayer('ETHEREUM', { ETH: '1' })
    await service.db.query(
      `insert into address_holdings (customer_id, network, address, asset, balance, stale_at)
       select $1, 'ETHEREUM', '0x' || lpad(to_hex(n), 40, '0'), 'ETH', 0, clock_timestamp() - interval '1 hour'
       from generate_series(200000, 201200) n`,
      [customer.customer_id],
    )
    const address = await newHolding(customer, wallet, { ETH: '2' })
    await wallet.adapter.sweep!(ROUND)
    const { rows } = await service.db.query(
      'select from address_holdings where stale_at is not null and address <> $1',
      [address],
    )
    expect(rows).toHaveLength(0)
    await sweepAll(wallet)
    expect(await balance('ETHEREUM', address, 'ETH')).toBe(0n)
  })
})

test('addresses are derived at the paths that their ids encode, and from the key that they name', async () => {
  const keys = depositKeysOf({ mnemonic: MNEMONIC })
  const root = mnemonicToAccount(MNEMONIC, { path: "m/44'/60'/0'" }).getHdKey()
  const fingerprint = root.fingerprint.toString(16).padStart(8, '0')
  const at = (path: string) => privateKeyToAccount(toHex(root.derive(`m/${path}`).privateKey!))

  // All 128 bits of the id, from the highest: 4 bits, and then 31 at a time.
  for (const [id, path] of [
    ['0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f', '0/211262755/1819407610/503362774/2089655823'],
    ['00000000-0000-7000-8000-000000000001', '0/0/114690/0/1'],
    ['ffffffff-ffff-ffff-ffff-ffffffffffff', '15/2147483647/2147483647/2147483647/2147483647'],
  ] as const) {
    expect(keys.newAddress(id)).toEqual({ address: at(path).address, derivation: `${fingerprint}/${path}` })
    expect(keys.newAddress(id.toUpperCase())).toEqual(keys.newAddress(id))
  }
  expect(() => keys.newAddress('0192f3a4')).toThrow('is no id')

  // Older addresses, at paths of two components, still sign.
  const fees = { gas: 21_000n, maxFeePerGas: 1n, maxPriorityFeePerGas: 1n }
  const move = { nonce: 0, to: at('0').address, value: 1n }
  const transaction = { type: 'eip1559', chainId: 1, ...move, ...fees } as const
  for (const path of ['1207959552/77312', '0/211262755/1819407610/503362774/2089655823']) {
    const { address } = at(path)
    const signer = keys.signerOf(address, `${fingerprint}/${path}`)!
    expect(signer.address).toBe(address)
    const serializedTransaction = (await signer.signTransaction(transaction)) as TransactionSerialized
    expect(await recoverTransactionAddress({ serializedTransaction })).toBe(address)
  }

  const made = Array.from({ length: 2 }, () => keys.newAddress(randomUUID()))
  const extendedKey = depositKeysOf({ extendedKey: root.privateExtendedKey })
  expect(extendedKey.signerOf(made[0]!.address, made[0]!.derivation!)!.address).toBe(made[0]!.address)
  expect(() => keys.signerOf(made[0]!.address, made[1]!.derivation!)).toThrow('is not derived at')
  const other = depositKeysOf({ mnemonic: 'test test test test test test test test test test test junk' })
  expect(other.signerOf(made[0]!.address, made[0]!.derivation!)).toBeUndefined()
  for (const wrong of [{ mnemonic: 'secret words' }, { extendedKey: 'xpub' }])
    expect(() => depositKeysOf(wrong)).toThrow(/^is no mnemonic \(BIP-39\)/)

  // A public key derives the same addresses, and can sign for none.
  const publicKey = depositKeysOf({ extendedKey: keys.publicKey })
  expect([keys.canSign, extendedKey.canSign, publicKey.canSign]).toEqual([true, true, false])
  expect(keys.publicKey).toBe(root.publicExtendedKey)
  for (let count = 1; count <= 20; count++) {
    const id = randomUUID()
    expect(publicKey.newAddress(id)).toEqual(keys.newAddress(id))
  }
  expect(publicKey.signerOf(made[0]!.address, made[0]!.derivation!)).toBeUndefined()
})
