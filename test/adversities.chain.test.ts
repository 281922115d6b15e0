/*
 * What was tried on these rails by hand, as one list: each adversity with the tests of it, and in this file those that are of
 * no other. Invariants: each payment arrives once or is refunded, each deposit is credited once, and the ledger agrees with
 * the chain to the unit.
 */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Hex } from 'viem'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { freeze } from '../src/money/records/freezes.ts'
import { creditDeposits } from './credit-deposits.ts'
import { deployToken, TOKEN_ABI } from './anvil.ts'
import { HAS_LITECOIND } from './bitcoin-node.ts'
import { startLyingNode, type Answer } from './lying-node.ts'
import {
  evmWorld,
  litecoinWorld,
  prepare,
  requireAgreement,
  startRealService,
  workToTheEnd,
  type RealService,
  type World,
} from './real-networks.ts'
import { seededRandom } from './seed.ts'
import { TEST_ORIGIN, type TestCustomer } from './support.ts'

const EVM = 'chains/evm/adapter.chain.test.ts'
const LANES = 'chains/evm/lanes.chain.test.ts'
const SECOND = 'chains/evm/second-word.chain.test.ts'
const EVM_DEPOSITS = 'chains/evm/deposits.chain.test.ts'
const BITCOIN = 'chains/bitcoin/adapter.chain.test.ts'
/** Every family is tested by it. */
const EVERY = 'test/conformance.ts'
const KNOTS = 'test/real-networks-bitcoin.chain.test.ts'
const CREDITS = 'src/rails/deposits/credit-deposits.db.test.ts'
const WORKER = 'src/program/worker.db.test.ts'
const HERE = 'test/adversities.chain.test.ts'

/** Each adversity, and the file and the name of each test of it. */
const ADVERSITIES: [adversity: string, ...tests: [file: string, name: string][]][] = [
  [
    'a fee spike in the middle of a batch, and one above the ceiling',
    [EVM, 'by a base fee above its own is replaced at once'],
    [EVM, 'is not replaced above the ceiling'],
    [EVERY, 'nothing is signed while fees are above the ceiling'],
  ],
  [
    "a fee spike, in Bitcoin's family",
    [EVERY, 'nothing is signed while fees are above the ceiling'],
    [BITCOIN, 'nor above the ceiling'],
  ],
  [
    'a hot wallet of many small coins',
    [BITCOIN, 'a withdrawal of more coins than one transaction can spend waits'],
    [BITCOIN, 'merges the smallest coins into one'],
  ],
  [
    'a nonce that a foreign transaction used',
    [SECOND, 'is asked for again before the withdrawal is signed anew'],
    [SECOND, 'that paid the withdrawal itself'],
  ],
  [
    'a balancer with backends that are behind',
    [HERE, 'a balancer whose backends are behind'],
    [EVM_DEPOSITS, 'are requested by block hash'],
  ],
  [
    'a second node that is down, behind, or disagrees',
    [EVM_DEPOSITS, 'that is behind or silent delays large deposits'],
    [SECOND, 'a refund waits for a second node that lags or does not answer'],
    [SECOND, 'is contradicted by the second node'],
  ],
  [
    'a node that lies about the status of a receipt',
    [SECOND, 'by blocks that it makes up, in live mode: nothing is refunded'],
    [EVM, 'without its logs gives no refund'],
  ],
  ['a fee bump of a deposit in the mempool', [HERE, 'a deposit whose sender raises its fee']],
  [
    'a deposit whose block is removed, and which never comes back',
    [BITCOIN, 'FAILED when its block is removed'],
    [EVM, 'and never if it was replaced before'],
  ],
  [
    'a payment to a deposit address of our own',
    [EVM, 'from a withdrawal of Bursar count like any other'],
    [BITCOIN, 'a withdrawal to a deposit address is one'],
  ],
  [
    'several deposits in one block',
    [HERE, 'of two assets in one block'],
    [EVM, 'that share an address and a block'],
  ],
  ['forged logs of another contract', [HERE, 'of a contract that is not in the networks file']],
  [
    'a deposit to a frozen, an old or a deactivated profile',
    [HERE, 'a deposit to a frozen profile'],
    [CREDITS, 'a deposit to the address of a deactivated profile is credited'],
  ],
  [
    'a flood of dust',
    [EVM_DEPOSITS, 'below the minimum is not asked for, and delays no other deposit'],
    [CREDITS, 'small deposits are credited when their sum reaches the minimum'],
  ],
  ['a token whose transfer returns nothing', [HERE, 'a token whose transfers return nothing']],
  [
    'a token with a fee, a pause, or a refused address',
    [EVM, 'not by its fee: the withdrawal waits'],
    [EVM, 'not by a pause, which refuses all transfers'],
    [EVM, 'is refunded, and takes no nonce'],
    [EVM, 'a token that takes a fee from transfers is not swept'],
  ],
  [
    'a destination that reverts, in the simulation or only when mined',
    [EVM, 'a precompiled contract that an older version took'],
    [EVM, 'after the estimate: the transaction is reverted'],
  ],
  ['a destination that delegates (EIP-7702)', [HERE, 'a destination that delegates to a contract']],
  ['wrong decimals of a token', [EVM_DEPOSITS, 'whose contract and catalogue differ in decimals']],
  [
    "the hot wallet's key is changed while payments are under way",
    [LANES, 'a wallet that is taken out of service is followed to its end'],
    [EVM, 'counts what the former one holds as custody'],
  ],
  ['a locked wallet', [BITCOIN, 'while the wallet is locked with a passphrase']],
  ["a worker's clock that is hours off", [HERE, "a worker's clock two hours"]],
  ['a memo where there is none', [EVM, 'to the hot wallet, to a token contract, with a memo']],
  [
    'a destination that is the hot wallet, a token or nobody',
    [EVM, 'to the hot wallet, to a token contract, with a memo'],
    [BITCOIN, 'is refused when it is ordered; to the deposit address of a customer it is paid'],
    [KNOTS, 'one payment to a change address, signed by an older version'],
  ],
  [
    'the least amount, and one with too many decimals',
    [HERE, 'the least unit of an asset'],
    [EVERY, 'each is paid once, with its exact amount'],
  ],
  ['many withdrawals to one address', [HERE, 'thirty withdrawals to one address']],
  ['all forms of addresses', [KNOTS, 'withdrawals to each kind of address']],
  [
    'a node that has lost its newest blocks',
    [BITCOIN, 'may be missing from a node that is behind'],
    [EVM, 'nothing is signed after a nonce that the node has lost'],
  ],
  [
    'a removed block and a lost mempool at once',
    [KNOTS, 'after a reorganisation and a lost mempool, the same bytes are broadcast again'],
    [EVERY, 'a block that others replace before it is confirmed has ended nothing'],
  ],
  [
    'a worker that dies, at any step',
    ['test/real-networks-evm.chain.test.ts', 'a worker that dies between any two steps'],
    ['test/real-networks-litecoin.chain.test.ts', 'a worker that dies between any two steps'],
  ],
  ['a node that hangs', [WORKER, 'a hanging node delays neither'], [EVM, 'it does not answer']],
]

describe('each adversity has its tests:', () => {
  test.each(ADVERSITIES)('%s', (_, ...tests) => {
    for (const [file, name] of tests) {
      const text = readFileSync(fileURLToPath(new URL(`../${file}`, import.meta.url)), 'utf8')
      // This file has the name in the list, too.
      expect(text.split(name).length - 1, `${file}: ${name}`).toBeGreaterThan(file === HERE ? 1 : 0)
    }
  })
})

/** Orders a withdrawal that is taken. */
async function withdraw(
  { network }: World,
  { call, profile_id }: TestCustomer,
  asset: string,
  amount: string,
  destination_address: string,
): Promise<string> {
  const body = { profile_id, asset, amount, crypto_network: network, destination_address }
  const made = await call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', body)
  expect([made.status, made.body]).toEqual([200, expect.anything()])
  return made.body.id
}

const transfers = async (customer: TestCustomer, type: Transfer['type']) =>
  (await customer.call<{ items: Transfer[] }>('GET', `/v2/transfer/transfers?type=${type}&limit=100`)).body
    .items

describe('over an EVM network', () => {
  let world: Awaited<ReturnType<typeof evmWorld>>
  let node: Awaited<ReturnType<typeof startLyingNode>>
  let service: RealService
  let customer: TestCustomer
  let address: Hex
  const token = () => ({ address: (world.section.tokens as { USDG: Hex }).USDG, abi: TOKEN_ABI, chain: null })

  beforeAll(async () => {
    world = await evmWorld()
    node = await startLyingNode(world.anvil.rpcUrl)
    world.section.rpc_url = node.rpcUrl
    service = await startRealService(world)
    await workToTheEnd(service, world)
  })
  afterAll(async () => {
    await service?.close()
    await node?.stop()
    await world?.stop()
  })
  afterEach(() => void node.tellTheTruth())
  beforeEach(async () => {
    const prepared = await prepare(service, world, { asset: 'ETH', amount: '5' })
    ;[customer, address] = [prepared.customer, prepared.address as Hex]
    await workToTheEnd(service, world)
    await world.pay(address, 'USDG', '100')
    await workToTheEnd(service, world)
  })

  test('a balancer whose backends are behind: each payment is made once, and each deposit credited once', async () => {
    const random = seededRandom()
    const answers = new Map<string, Answer[]>()
    // Each answer about the newest state is one of the last four to the same question.
    node.lie = ({ method, params }, answer) => {
      if (!/blockNumber|latest|pending|Receipt|ByHash/.test(`${method} ${JSON.stringify(params)}`))
        return undefined
      const question = JSON.stringify([method, params])
      const known = [...(answers.get(question) ?? []), answer].slice(-4)
      answers.set(question, known)
      return known[Math.floor(random() * known.length)]
    }
    const destinations: string[] = []
    for (let number = 0; number < 12; number++) {
      const to = await world.newAddress()
      await (number % 2 === 0
        ? withdraw(world, customer, 'ETH', '0.25', to)
        : withdraw(world, customer, 'USDG', '2', to))
      destinations.push(to)
      if (number % 4 === 0) await world.pay(address, 'ETH', `0.0${number + 1}`)
      // A round may fail over an answer, and the next one goes on.
      await workToTheEnd(service, world).catch(() => undefined)
    }
    node.tellTheTruth()
    await workToTheEnd(service, world)
    for (const [number, to] of destinations.entries())
      expect(await world.received(to, number % 2 === 0 ? 'ETH' : 'USDG')).toHaveLength(1)
    expect((await transfers(customer, 'CRYPTO_DEPOSIT')).map(({ amount }) => amount).sort()).toEqual(
      ['5', '100', '0.01', '0.05', '0.09'].sort(),
    )
    await requireAgreement(service, world)
  })

  test('deposits of two assets in one block, and of a contract that is not in the networks file', async () => {
    const { chain } = world.anvil
    const foreign = await deployToken(world.anvil, 6)
    await chain.setAutomine(false)
    for (const value of [1n, 2n])
      await chain.sendTransaction({ chain: null, to: address, value: value * 10n ** 17n })
    for (const [contract, amount] of [
      [token().address, 3n],
      [token().address, 4n],
      [foreign, 5n],
    ] as const)
      await chain.writeContract({
        ...token(),
        address: contract,
        functionName: 'mint',
        args: [address, amount * 1_000_000n],
      })
    await chain.mine({ blocks: 1 })
    await chain.setAutomine(true)
    await workToTheEnd(service, world)
    const credited = (await transfers(customer, 'CRYPTO_DEPOSIT')).map(
      ({ amount, asset }) => `${amount} ${asset}`,
    )
    expect(credited.sort()).toEqual(['0.1 ETH', '0.2 ETH', '100 USDG', '3 USDG', '4 USDG', '5 ETH'])
    await requireAgreement(service, world)
  })

  test('a deposit to a frozen profile is credited', async () => {
    const { customer_id, profile_id } = customer
    const target = { kind: 'PROFILE', customer_id, profile_id } as const
    await freeze(service.db, TEST_ORIGIN, target, 'OPERATOR', 'asked by the police')
    await world.pay(address, 'ETH', '0.5')
    await workToTheEnd(service, world)
    expect((await transfers(customer, 'CRYPTO_DEPOSIT')).map(({ amount }) => amount)).toContain('0.5')
    await requireAgreement(service, world)
  })

  test('a token whose transfers return nothing is paid, deposited and swept', async () => {
    await world.anvil.chain.writeContract({ ...token(), functionName: 'setSilent', args: [true] })
    const to = await world.newAddress()
    await world.pay(address, 'USDG', '7')
    await withdraw(world, customer, 'USDG', '50', to)
    await workToTheEnd(service, world)
    await world.anvil.chain.writeContract({ ...token(), functionName: 'setSilent', args: [false] })
    expect(await world.received(to, 'USDG')).toMatchObject([{ amount: '50' }])
    const left = { ...token(), functionName: 'balanceOf', args: [address] } as const
    expect(await world.anvil.chain.readContract(left)).toBe(0n)
    await requireAgreement(service, world)
  })

  test('a destination that delegates to a contract gets both assets', async () => {
    const [to, delegate] = [(await world.newAddress()) as Hex, (await world.newAddress()) as Hex]
    // The contract stops, and so takes what is sent.
    await world.anvil.chain.setCode({ address: delegate, bytecode: '0x00' })
    await world.anvil.chain.setCode({ address: to, bytecode: `0xef0100${delegate.slice(2)}` })
    await withdraw(world, customer, 'ETH', '1', to)
    await withdraw(world, customer, 'USDG', '1', to)
    await workToTheEnd(service, world)
    for (const asset of ['ETH', 'USDG'])
      expect(await world.received(to, asset)).toMatchObject([{ amount: '1' }])
    await requireAgreement(service, world)
  })

  test.each([2, -2])("a worker's clock two hours (%i) off pays once, and replaces nothing", async (hours) => {
    const to = await world.newAddress()
    await withdraw(world, customer, 'ETH', '1', to)
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + hours * 3_600_000 })
    try {
      await workToTheEnd(service, world)
    } finally {
      vi.useRealTimers()
    }
    expect(await world.received(to, 'ETH')).toHaveLength(1)
    const { rows } = await service.db.query(
      'select id from network_transactions, unnest(transfer_ids) as paid (id) group by id having count(*) > 1',
    )
    expect(rows).toEqual([])
    await requireAgreement(service, world)
  })

  test.each([
    ['ETH', '0.000000000000000001', 'below the minimum'],
    ['USDG', '0.000001', 'below the minimum'],
    ['ETH', '1.0000000000000000001', 'decimal'],
  ])('the least unit of an asset, and less: %s %s is refused', async (asset, amount, reason) => {
    const { profile_id } = customer
    const body = { profile_id, asset, amount, crypto_network: world.network, destination_address: address }
    const answer = await customer.call<{ detail: string }>('POST', '/v2/transfer/crypto-withdrawals', body)
    expect([answer.status, answer.body.detail]).toEqual([400, expect.stringContaining(reason)])
  })
})

describe.skipIf(!HAS_LITECOIND)('over a Litecoin node', () => {
  let world: Awaited<ReturnType<typeof litecoinWorld>>
  let service: RealService
  beforeAll(async () => {
    world = await litecoinWorld()
    service = await startRealService(world)
    await workToTheEnd(service, world)
  })
  afterAll(async () => {
    await service?.close()
    await world?.stop()
  })

  test('a deposit whose sender raises its fee in the mempool is credited once, with the hash that was mined', async () => {
    const { customer, address } = await prepare(service, world, { asset: 'LTC', amount: '1' })
    const { miner } = world.node
    await world.node.restart(['-mempoolreplacement=1'])
    // The wallets of these tests broadcast nothing by themselves.
    const broadcast = async (hash: string) => {
      const { hex } = await miner.call<{ hex: string }>('gettransaction', hash)
      await miner.call('sendrawtransaction', hex)
      expect(await miner.call('getrawmempool')).toEqual([hash])
    }
    const first = await miner.call<string>('sendtoaddress', address, 2, '', '', false, true)
    await broadcast(first)
    await creditDeposits(service)
    const { txid } = await miner.call<{ txid: string }>('bumpfee', first)
    await broadcast(txid)
    await workToTheEnd(service, world)
    const credited = await transfers(customer, 'CRYPTO_DEPOSIT')
    expect(credited.map(({ amount, crypto_tx_hash }) => [amount, crypto_tx_hash])).toContainEqual(['2', txid])
    expect(credited).toHaveLength(2)
    await requireAgreement(service, world)
  })

  test('thirty withdrawals to one address are paid by thirty outputs, each once', async () => {
    const { customer } = await prepare(service, world, { asset: 'LTC', amount: '10' })
    await workToTheEnd(service, world)
    const to = await world.newAddress()
    await Promise.all(Array.from({ length: 30 }, () => withdraw(world, customer, 'LTC', '0.1', to)))
    await workToTheEnd(service, world)
    const paid = await transfers(customer, 'CRYPTO_WITHDRAWAL')
    expect(paid.map(({ status }) => status)).toEqual(Array.from({ length: 30 }, () => 'COMPLETED'))
    const places = paid.map(({ crypto_tx_hash, crypto_tx_index }) => `${crypto_tx_hash} ${crypto_tx_index}`)
    expect(new Set(places).size).toBe(30)
    await requireAgreement(service, world)
  })
})
