/* What one lying node can make of a withdrawal: it is never paid and refunded, nor paid twice. */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { numberToHex, parseGwei, type Hex } from 'viem'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { deployToken, startAnvil, TOKEN_ABI, type Anvil } from '../../../test/anvil.ts'
import { startLyingNode } from '../../../test/lying-node.ts'
import {
  credit,
  newCustomer,
  startTestService,
  type TestCustomer,
  type TestService,
} from '../../../test/support.ts'
import { hurryUnlocked } from '../../../test/work-off.ts'
import { parseAmount } from '../../assets/amount.ts'
import type { Transfer } from '../../ledger/transfer.ts'
import { settleWithdrawals } from '../../settlement/settle-withdrawals.ts'
import { verify } from '../../verify/verify.ts'
import type { Networks } from '../network.ts'
import { evmAdapter, type EvmConfig } from './adapter.ts'

const CONFIRMATIONS = 3

let service: TestService
let anvil: Anvil
let first: Awaited<ReturnType<typeof startLyingNode>>
let second: Awaited<ReturnType<typeof startLyingNode>>
let tokens: { USDG: Hex }
beforeAll(async () => {
  ;[service, anvil] = await Promise.all([startTestService(), startAnvil(1)])
  tokens = { USDG: await deployToken(anvil, 6) }
  ;[first, second] = [await startLyingNode(anvil.rpcUrl), await startLyingNode(anvil.rpcUrl)]
})
afterAll(async () => {
  await Promise.all([first?.stop(), second?.stop(), anvil?.stop()])
  await service.close()
})
afterEach(async () => {
  first.tellTheTruth()
  second.tellTheTruth()
  await service.db.query('delete from freezes')
})

/** A new hot wallet with 10 ETH and 1,000 USDG, behind the first node. */
async function newWallet({ verified = false, ...changes }: Partial<EvmConfig> & { verified?: boolean } = {}) {
  const hotWallet = privateKeyToAccount(generatePrivateKey())
  const { chain } = anvil
  await chain.setBalance({ address: hotWallet.address, value: parseAmount('10', 18)! })
  await chain.writeContract({
    chain: null,
    address: tokens.USDG,
    abi: TOKEN_ABI,
    functionName: 'mint',
    args: [hotWallet.address, 1_000_000_000n],
  })
  const config: EvmConfig = {
    rpcUrl: first.rpcUrl,
    hotWallet,
    confirmations: CONFIRMATIONS,
    maxFeePerGasCeiling: '100',
    tokens,
    pollMs: 10,
    // Far above every amount here: a refund is asked about whatever it is.
    ...(verified && { verify: { rpcUrl: second.rpcUrl, above: { ETH: '1000', USDG: '1000000' } } }),
    ...changes,
  }
  const adapter = evmAdapter('ETHEREUM', config, service.db)
  return { hotWallet, adapter, networks: new Map([['ETHEREUM', adapter]]) as Networks }
}
type Wallet = Awaited<ReturnType<typeof newWallet>>

const newAddress = (): Hex => privateKeyToAccount(generatePrivateKey()).address

async function withdraw(
  customer: TestCustomer,
  asset: 'ETH' | 'USDG',
  amount: string,
  destination_address: Hex = newAddress(),
): Promise<Transfer> {
  await credit(service.ledger, customer, asset, '100')
  const { profile_id } = customer
  const order = { profile_id, asset, amount, crypto_network: 'ETHEREUM', destination_address }
  const { status, body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', order)
  expect({ status, body }).toMatchObject({ status: 200 })
  return body
}

const read = async (customer: TestCustomer, { id }: { id: string }) =>
  (await customer.call<Transfer>('GET', `/v2/transfer/transfers/${id}`)).body

/** One step of the worker, with everything due, and a block after it. */
async function step({ networks }: Pick<Wallet, 'networks'>): Promise<void> {
  await hurryUnlocked(service.db, { endLeases: true })
  await settleWithdrawals(service.db, networks)
  await anvil.chain.mine({ blocks: 1 })
}

async function steps(wallet: Wallet, count = CONFIRMATIONS + 2): Promise<void> {
  for (let round = 1; round <= count; round++) await step(wallet)
}

const waiting = async ({ id }: { id: string }) => {
  const { rows } = await service.db.query<{ waiting_code: string | null; waiting_detail: string | null }>(
    'select waiting_code, waiting_detail from outgoing_transfers where transfer_id = $1',
    [id],
  )
  return rows[0]!
}

const frozen = async () => {
  const { rows } = await service.db.query<{ reason: string }>('select reason from freezes')
  return rows.map(({ reason }) => reason)
}

/** The node says of every receipt of these methods that it was reverted. */
const saysReverted =
  (...methods: string[]): typeof first.lie =>
  ({ method }, { result }) => {
    if (!methods.includes(method) || result === null) return undefined
    const told = (one: unknown) => ({ ...(one as object), status: '0x0' })
    return { result: Array.isArray(result) ? result.map(told) : told(result) }
  }

describe.each(['ETH', 'USDG'] as const)(
  '%s: a node that says falsely that a payment was reverted',
  (asset) => {
    test('is contradicted by the second node: nothing is refunded, whatever the amount, and the network stops', async () => {
      const [customer, wallet] = [await newCustomer(service), await newWallet({ verified: true })]
      first.lie = saysReverted('eth_getTransactionReceipt', 'eth_getBlockReceipts')
      const created = await withdraw(customer, asset, '1')
      await steps(wallet)
      expect(await read(customer, created)).toMatchObject({ status: 'PENDING' })
      expect(await waiting(created)).toMatchObject({
        waiting_code: 'NODES_DISAGREE',
        waiting_detail: expect.stringMatching(
          /with status 0, and the second node has status 1 in block 0x/,
        ) as string,
      })
      expect(await frozen()).toEqual(['NODES_DISAGREE'])
      first.tellTheTruth()
      await steps(wallet)
      expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED' })
      expect((await verify(service.db, { tokens: new Map([['ETHEREUM', tokens]]) })).disagreements).toEqual(
        [],
      )
    })

    test('is contradicted by the block where there is no second node: nothing is refunded', async () => {
      const [customer, wallet] = [await newCustomer(service), await newWallet()]
      first.lie = saysReverted('eth_getTransactionReceipt', 'eth_getBlockReceipts')
      const created = await withdraw(customer, asset, '1')
      await steps(wallet)
      expect(await read(customer, created)).toMatchObject({ status: 'PENDING' })
      expect(await waiting(created)).toMatchObject({
        waiting_code: 'UNRESOLVED',
        waiting_detail: expect.stringMatching(
          /receipts of block 0x\w+ are not those of its header/,
        ) as string,
      })
      first.tellTheTruth()
      await steps(wallet)
      expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED' })
    })
  },
)

/** A withdrawal whose token begins to refuse its destination after the estimate, so that it is mined and reverted. */
async function reverted(customer: TestCustomer, wallet: Wallet): Promise<Transfer> {
  const destination = newAddress()
  const created = await withdraw(customer, 'USDG', '1', destination)
  await anvil.chain.setAutomine(false)
  await settleWithdrawals(service.db, wallet.networks)
  await anvil.chain.writeContract({
    chain: null,
    address: tokens.USDG,
    abi: TOKEN_ABI,
    functionName: 'setBlocked',
    args: [destination, true],
    maxPriorityFeePerGas: parseGwei('50'),
    maxFeePerGas: parseGwei('90'),
  })
  await anvil.chain.mine({ blocks: 1 })
  await anvil.chain.setAutomine(true)
  return created
}

test('a refund waits for a second node that lags or does not answer, and is made once it agrees', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet({ verified: true })]
  const created = await reverted(customer, wallet)
  second.bytesMax = 0
  await steps(wallet)
  expect(await waiting(created)).toMatchObject({ waiting_code: 'SECOND_NODE' })
  second.tellTheTruth()
  second.lie = ({ method }) => (method === 'eth_blockNumber' ? { result: numberToHex(1) } : undefined)
  await steps(wallet)
  expect(await waiting(created)).toMatchObject({ waiting_code: 'SECOND_NODE' })
  expect(await read(customer, created)).toMatchObject({ status: 'PENDING' })
  expect(await frozen()).toEqual([])
  second.tellTheTruth()
  await steps(wallet)
  expect(await read(customer, created)).toMatchObject({ status: 'FAILED' })
})

test('without a second node, a payment that was reverted is refunded by the proof of its block', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const created = await reverted(customer, wallet)
  await steps(wallet)
  expect(await read(customer, created)).toMatchObject({ status: 'FAILED' })
})
