/*
 * Invariants of deposits on an EVM network, whatever a node answers:
 * 1. each deposit is credited once, and nothing else is;
 * 2. a deposit that cannot be credited waits with the reason, and delays no other;
 * 3. a deposit that a reorganisation removed is listed, and its profile pays nothing out until an operator decides.
 */
import { originOfLoop } from '../../src/contract/actor.ts'
import type { ServerResponse } from 'node:http'
import { inspect } from 'node:util'
import { pino } from 'pino'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { concat, encodeFunctionData, getAddress, numberToHex, pad, type Hex } from 'viem'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { deployToken, ownAnvil, TOKEN_ABI } from '../../test/anvil.ts'
import { startLyingNode, type Answer } from '../../test/lying-node.ts'
import { startReceiver } from '../../test/receivers.ts'
import {
  credit,
  MASTER_KEYS,
  newCustomer,
  refusing,
  ownTestService,
  ROW_MACS,
  TEST_ORIGIN,
  type TestCustomer,
} from '../../test/support.ts'
import { hurry } from '../../test/work-off.ts'
import { formatAmount, parseAmount } from '../../src/contract/assets/amount.ts'
import { selectFreezes } from '../../src/money/records/freezes.ts'
import { givenBy, insertDepositAddress } from '../../src/money/records/deposit-address.ts'
import type { Transfer } from '../../src/money/ledger/transfer.ts'
import { newSigningSecret } from '../../src/money/records/webhook-secrets.ts'
import { ScreeningEndpoint } from '../../src/rails/screening/endpoint.ts'
import { Screening } from '../../src/rails/screening/screening.ts'
import { verify } from '../../src/money/verify/verify.ts'
import type { Unattributed } from '../../src/rails/deposits/unattributed.ts'
import { auditSweeps } from '../../src/rails/treasury/audit-sweeps.ts'
import { creditDepositsOn } from '../../src/rails/deposits/credit-deposits.ts'
import { resumeAfterReorganisation } from '../../src/rails/deposits/deposit-reorganisations.ts'
import { seeDepositsOn } from '../../src/rails/deposits/see-deposits.ts'
import { settleWithdrawals } from '../../src/rails/payouts/settle-withdrawals.ts'
import { selectUncredited } from '../../src/rails/deposits/incoming-transfers.ts'
import { creditSaidDeposit, rescanDeposits } from '../../src/rails/deposits/recover-deposits.ts'
import { askAgain, listScreened, Screener } from '../../src/rails/screening/screen-payments.ts'
import { sweepDepositAddresses } from '../../src/rails/treasury/sweep-deposit-addresses.ts'
import { bloomMayHave } from './bloom.ts'
import { evmAdapter, type EvmConfig } from './adapter.ts'
import { networkReports } from '../../src/rails/wallets/network-status.ts'
import type { NetworkAdapter, Networks } from '../../src/networks/network.ts'
import { withdrawalReader } from '../../src/rails/payouts/withdrawal-reader.ts'
import { atEnd } from '../../test/at-end.ts'

const CONFIRMATIONS = 3
const service = await ownTestService()
const anvil = await ownAnvil(1)
const USDG = await deployToken(anvil, 6)
const [node, second] = [await startLyingNode(anvil.rpcUrl), await startLyingNode(anvil.rpcUrl)]
afterAll(() => Promise.all([node.stop(), second.stop()]))
afterEach(async () => {
  node.tellTheTruth()
  second.tellTheTruth()
  await service.owner.query('delete from freezes; delete from customer_freezes')
  await service.owner.query('delete from network_cursors')
  await service.owner.query('delete from incoming_transfers')
  await service.owner.query('delete from seen_deposits')
})

const adapterOf = (changes: Partial<EvmConfig> = {}): NetworkAdapter =>
  evmAdapter(
    'ETHEREUM',
    {
      mode: 'sandbox',
      rpcUrl: node.rpcUrl,
      hotWallet: privateKeyToAccount(generatePrivateKey()),
      depositKey: { mnemonic: 'legal winner thank year wave sausage worth useful legal winner thank yellow' },
      confirmations: CONFIRMATIONS,
      maxFeePerGasCeiling: '100',
      withdrawals: withdrawalReader,
      tokens: { USDG },
      ...changes,
    },
    service.db,
  )

/** Creates a customer with a new address. The chain is read from here on. */
async function newPlace(adapter = adapterOf()): Promise<{ customer: TestCustomer; address: Hex }> {
  const customer = await newCustomer(service)
  const networks: Networks = new Map([['ETHEREUM', adapter]])
  const { customer_id, profile_id } = customer
  const asked = { profile_id, crypto_network: 'ETHEREUM' } as const
  const { address } = await insertDepositAddress(
    service.db,
    { networks, rowMacs: ROW_MACS },
    customer_id,
    asked,
  )
  return { customer, address: address as Hex }
}

const give = (to: Hex, asset: 'ETH' | 'USDG', amount: string): Promise<Hex> =>
  asset === 'ETH'
    ? anvil.chain.sendTransaction({ chain: null, to, value: parseAmount(amount, 18)! })
    : anvil.chain.writeContract({
        chain: null,
        address: USDG,
        abi: TOKEN_ABI,
        functionName: 'mint',
        args: [to, parseAmount(amount, 6)!],
      })

const mine = (blocks = CONFIRMATIONS) => anvil.chain.mine({ blocks })

/** One round of the worker, with everything due. */
async function round(adapter: NetworkAdapter) {
  await hurry(service.db)
  return creditDepositsOn(service, 'ETHEREUM', adapter)
}

/** Runs rounds until nothing is left to read. */
async function rounds(adapter: NetworkAdapter): Promise<number> {
  let credited = 0
  for (let count = 1; count <= 50; count++) {
    const { credited: some, isBehind } = await round(adapter)
    credited += some
    if (!isBehind) return credited
  }
  throw new Error('reading does not come to an end')
}

const depositsOf = async (customer: TestCustomer) =>
  (await customer.call<{ items: Transfer[] }>('GET', '/v2/transfer/transfers?order=ASC')).body.items.map(
    ({ asset, amount }) => `${amount} ${asset}`,
  )

const recorded = async () =>
  (
    await service.db.query<{ state: string; reason: string | null; detail: string | null; amount: string }>(
      'select state, reason, detail, amount from incoming_transfers order by amount',
    )
  ).rows

const frozen = async () =>
  (await selectFreezes(service.db)).map(({ kind, reason }) => `${kind} ${reason}`).sort()

const nothing = (answer: Answer): Answer => ({ ...answer, result: [] })

describe('tokens', () => {
  test('are requested by block hash, so that a backend without the block cannot answer that it has none', async () => {
    const adapter = adapterOf()
    const { customer, address } = await newPlace(adapter)
    await give(address, 'USDG', '10')
    await mine()
    // A load balancer chose another backend, which does not have these blocks yet.
    node.lie = ({ method, params: [filter] }, answer) => {
      if (method !== 'eth_getLogs') return undefined
      return 'blockHash' in (filter as object)
        ? { error: { code: -32000, message: 'unknown block' } }
        : nothing(answer)
    }
    await expect(round(adapter)).rejects.toThrow('unknown block')
    node.tellTheTruth()
    expect(await rounds(adapter)).toBe(1)
    expect(await depositsOf(customer)).toEqual(['10 USDG'])
  })

  test('invented by one answer are not credited, and delay no other deposit', async () => {
    const adapter = adapterOf()
    const { customer, address } = await newPlace(adapter)
    await give(address, 'USDG', '10')
    await mine()
    node.lie = ({ method }, answer) => {
      const logs = answer.result as { data: Hex; logIndex: Hex }[]
      if (method !== 'eth_getLogs' || logs.length === 0) return undefined
      const invented = { ...logs[0]!, data: `0x${'0'.repeat(48)}000048c273950000`, logIndex: '0x7' }
      return { result: [...logs, invented] }
    }
    expect(await rounds(adapter)).toBe(1)
    expect(await depositsOf(customer)).toEqual(['10 USDG'])
    expect(await recorded()).toMatchObject([
      { state: 'CREDITED' },
      { state: 'WAITING', reason: 'FAILED', detail: expect.stringContaining('no such log') as string },
    ])
  })

  test('are told by their event: what else a node lists beside them is credited to nobody', async () => {
    const adapter = adapterOf()
    const { customer, address } = await newPlace(adapter)
    await give(address, 'USDG', '10')
    await mine()
    type Logs = { topics: Hex[] }[]
    const approvals = (logs: Logs) =>
      logs.map((log) => ({ ...log, topics: [pad('0x1'), ...log.topics.slice(1)] }))
    node.lie = ({ method }, { result }) => {
      if (method === 'eth_getLogs') return { result: approvals(result as Logs) }
      if (method !== 'eth_getTransactionReceipt' || result === null) return undefined
      return { result: { ...(result as object), logs: approvals((result as { logs: Logs }).logs) } }
    }
    expect(await rounds(adapter)).toBe(0)
    expect(await depositsOf(customer)).toEqual([])
    expect(await recorded()).toEqual([])
  })

  test('are not requested in blocks whose bloom filter rules them out', async () => {
    const adapter = adapterOf()
    const { address } = await newPlace(adapter)
    const other = await deployToken(anvil, 6)
    await mine()
    await rounds(adapter)
    let asked = 0
    node.lie = ({ method }) => void (asked += method === 'eth_getLogs' ? 1 : 0)
    const mint = { abi: TOKEN_ABI, functionName: 'mint', args: [address, 5n] } as const
    await anvil.chain.writeContract({ chain: null, address: other, ...mint })
    await mine()
    expect(await rounds(adapter)).toBe(0)
    expect(asked).toBe(0)
    await give(address, 'USDG', '2')
    await mine()
    expect(await rounds(adapter)).toBe(1)
    expect(asked).toBe(1)
  })

  test('whose contract and catalogue differ in decimals disable the network', async () => {
    const wrong = await deployToken(anvil, 18)
    const adapter = adapterOf({ tokens: { USDG: wrong } })
    const says = `ETHEREUM is not used: the contract of USDG at ${getAddress(wrong)} has 18 decimals, and the catalogue has 6`
    await expect(adapter.scanDeposits!('1:0x' + '0'.repeat(64))).rejects.toThrow(says)
    await expect(adapter.status!()).rejects.toThrow(says)
    await expect(adapter.sign(undefined as never, [])).rejects.toThrow(says)
  })
})

test('a bloom filter is read as the chain encodes it', async () => {
  await give(privateKeyToAccount(generatePrivateKey()).address, 'USDG', '1')
  const { logsBloom } = await anvil.chain.getBlock()
  expect(bloomMayHave(logsBloom, USDG)).toBe(true)
  expect(bloomMayHave(logsBloom, '0x00000000000000000000000000000000000000aa')).toBe(false)
})

test('blocks that are too large for one reply are read by halves', async () => {
  const adapter = adapterOf()
  // Moves past the blocks of earlier tests, which may be larger.
  await mine()
  const { customer, address } = await newPlace(adapter)
  for (let count = 1; count <= 12; count++) await give(address, 'ETH', `0.${String(count).padStart(2, '0')}`)
  await mine()
  // Two blocks are too large for one reply.
  node.bytesMax = 5_000
  expect(await rounds(adapter)).toBe(12)
  expect(await depositsOf(customer)).toHaveLength(12)
})

test('blocks that are read in parts must follow on each other', async () => {
  const adapter = adapterOf()
  await mine(30)
  const last = (await anvil.chain.getBlockNumber()) - BigInt(CONFIRMATIONS) + 1n
  const first = last - 24n
  expect(await adapter.scanBlocks!(first, last)).toEqual([])
  // Another backend, on a fork, gives the first block of the second part.
  node.lie = ({ method, params: [number] }, { result }) =>
    method === 'eth_getBlockByNumber' && number === numberToHex(first + 20n)
      ? { result: { ...(result as object), parentHash: pad('0x1') } }
      : undefined
  await expect(adapter.scanBlocks!(first, last)).rejects.toThrow('does not follow on the last one')
})

test('a scan that is behind reports that there is more to read', async () => {
  const adapter = adapterOf()
  const { customer, address } = await newPlace(adapter)
  await give(address, 'ETH', '0.1')
  await mine(50)
  expect((await round(adapter)).isBehind).toBe(true)
  await rounds(adapter)
  expect((await round(adapter)).isBehind).toBe(false)
  expect(await depositsOf(customer)).toEqual(['0.1 ETH'])
})

describe('a second node', () => {
  const above = { ETH: '1', USDG: '100' }
  const both = () => adapterOf({ verify: { rpcUrl: second.rpcUrl, above } })

  test('is asked from this amount on, and deposits that it confirms are credited', async () => {
    const adapter = both()
    const { customer, address } = await newPlace(adapter)
    await give(address, 'ETH', '0.5')
    await give(address, 'USDG', '99')
    await mine()
    second.requests = 0
    expect(await rounds(adapter)).toBe(2)
    expect(second.requests).toBe(0)
    await give(address, 'ETH', '1')
    await give(address, 'USDG', '100')
    await mine()
    expect(await rounds(adapter)).toBe(2)
    expect(second.requests).toBeGreaterThan(0)
    expect((await depositsOf(customer)).sort()).toEqual(['0.5 ETH', '1 ETH', '100 USDG', '99 USDG'])
    expect(await frozen()).toEqual([])
  })

  test('where there is none, a large deposit waits in live mode, until a person credits it', async () => {
    const adapter = { ...adapterOf({ mode: 'live' }), oneNodeMax: '1' }
    const { customer, address } = await newPlace(adapter)
    await give(address, 'USDG', '1')
    const hash = await give(address, 'USDG', '200')
    await mine()
    expect(await rounds(adapter)).toBe(1)
    expect(await recorded()).toMatchObject([
      { state: 'CREDITED' },
      {
        reason: 'ONE_NODE',
        detail: expect.stringMatching(/^one node alone says so, and it is worth 200 USD/) as string,
      },
    ])
    const credit = (amount: string) =>
      creditSaidDeposit(
        service,
        'ETHEREUM',
        adapter,
        { crypto_tx_hash: hash, address, asset: 'USDG', amount },
        TEST_ORIGIN,
      )
    await expect(credit('201')).rejects.toThrow('was found by a scan')
    // The receipt still has to show it.
    node.lie = ({ method }) => (method === 'eth_getTransactionReceipt' ? { result: null } : undefined)
    await expect(credit('200')).rejects.toThrow(`'bursar deposits list' says why`)
    node.tellTheTruth()
    await service.db.query(`update incoming_transfers set reason = 'ONE_NODE' where state = 'WAITING'`)
    const { id } = await credit('200')
    const { rows } = await service.db.query(
      `select actor_id from audit_log where $1::uuid = any (subject_ids) or subject_id = $1::text`,
      [id],
    )
    expect(rows).toEqual([{ actor_id: TEST_ORIGIN.actor.id }])
    await expect(credit('200')).rejects.toThrow('was found by a scan: it is credited by itself')
    expect((await depositsOf(customer)).sort()).toEqual(['1 USDG', '200 USDG'])
  })

  test('where there is none, no internal transfer is credited in live mode, whoever says so', async () => {
    const adapter = adapterOf({ mode: 'live' })
    const { address } = await newPlace(adapter)
    const hash = await give(privateKeyToAccount(generatePrivateKey()).address, 'ETH', '3')
    await mine()
    await rounds(adapter)
    const said = { crypto_tx_hash: hash, address, asset: 'ETH', amount: '3' }
    await expect(creditSaidDeposit(service, 'ETHEREUM', adapter, said, TEST_ORIGIN)).rejects.toThrow(
      `${hash}: without verify_rpc_url nothing else says so`,
    )
  })

  test('or not, a deposit has the confirmations of its value before it is credited', async () => {
    const deep = CONFIRMATIONS + 2
    const depths = [
      { from_usd: '0', confirmations: CONFIRMATIONS },
      { from_usd: '100', confirmations: deep },
    ]
    const adapter = { ...adapterOf(), depths }
    const { customer, address } = await newPlace(adapter)
    await give(address, 'USDG', '99')
    await give(address, 'USDG', '100')
    await mine(CONFIRMATIONS - 1)
    expect(await rounds(adapter)).toBe(1)
    expect(await recorded()).toMatchObject([
      { state: 'CREDITED' },
      { reason: 'CONFIRMATIONS', detail: `3 of ${deep} confirmations, because it is worth 100 USD` },
    ])
    await mine(1)
    expect(await rounds(adapter)).toBe(0)
    await mine(1)
    expect(await rounds(adapter)).toBe(1)
    expect((await depositsOf(customer)).sort()).toEqual(['100 USDG', '99 USDG'])
  })

  test('that is behind or silent delays large deposits, but not smaller ones', async () => {
    const adapter = both()
    const { customer, address } = await newPlace(adapter)
    await give(address, 'ETH', '2')
    await give(address, 'ETH', '0.5')
    await mine()
    second.bytesMax = 0
    expect(await rounds(adapter)).toBe(1)
    expect(await recorded()).toMatchObject([{ state: 'CREDITED' }, { reason: 'SECOND_NODE' }])
    second.tellTheTruth()
    second.lie = ({ method }) => (method === 'eth_blockNumber' ? { result: '0x1' } : undefined)
    expect(await rounds(adapter)).toBe(0)
    expect(await depositsOf(customer)).toEqual(['0.5 ETH'])
    second.tellTheTruth()
    expect(await rounds(adapter)).toBe(1)
    expect(await depositsOf(customer)).toEqual(['0.5 ETH', '2 ETH'])
    expect(await frozen()).toEqual([])
  })

  test.each([
    [
      'another block',
      'eth_getBlockByNumber',
      (result: object) => ({ ...result, hash: `0x${'ab'.repeat(32)}` }),
    ],
    ['a block without it', 'eth_getBlockByNumber', (result: object) => ({ ...result, transactions: [] })],
    ['another amount', 'eth_getTransactionByHash', (result: object) => ({ ...result, value: '0x1' })],
    ['that it was reverted', 'eth_getTransactionReceipt', (result: object) => ({ ...result, status: '0x0' })],
  ])(
    'that reports %s: the deposit is not credited, and payouts over the network stop',
    async (_, lies, told) => {
      const adapter = both()
      const { customer, address } = await newPlace(adapter)
      await give(address, 'ETH', '2')
      await mine()
      second.lie = ({ method }, { result }) =>
        method === lies ? { result: told(result as object) } : undefined
      expect(await rounds(adapter)).toBe(0)
      expect(await depositsOf(customer)).toEqual([])
      expect(await recorded()).toMatchObject([{ state: 'WAITING', reason: 'NODES_DISAGREE' }])
      expect(await frozen()).toEqual(['NETWORK NODES_DISAGREE'])
    },
  )
})

describe('a transaction with hundreds of payments', () => {
  // The call data: how often, the token, and the call, which the contract makes as often.
  const REPEATER = '0x0000000000000000000000000000000000005e4d'
  const CODE = '0x604460406000376000355b801560275760006000604460006000602035' + '5af15060019003600a565b00'

  /** Gives an address this amount so many times, in one transaction. */
  async function giveOften(to: Hex, count: number, amount: string): Promise<void> {
    await anvil.chain.setCode({ address: REPEATER, bytecode: CODE as Hex })
    const args = [to, parseAmount(amount, 6)!] as const
    const call = encodeFunctionData({ abi: TOKEN_ABI, functionName: 'mint', args })
    const data = concat([numberToHex(count, { size: 32 }), pad(USDG, { size: 32 }), call])
    const hash = await anvil.chain.sendTransaction({ chain: null, to: REPEATER, data, gas: 25_000_000n })
    const { logs } = await anvil.chain.waitForTransactionReceipt({ hash })
    expect(logs).toHaveLength(count)
  }

  const withMinimum = (minimum: string): NetworkAdapter => ({
    ...adapterOf(),
    minimumDeposit: () => minimum,
  })

  /** Counts the receipts that a node is asked for. */
  function countReceipts(of: typeof node): { asked: number } {
    const count = { asked: 0 }
    of.lie = ({ method }) => void (count.asked += method === 'eth_getTransactionReceipt' ? 1 : 0)
    return count
  }

  const sums = async () =>
    (
      await service.db.query<{ reason: string | null; state: string; count: string; sum: string }>(
        `select state, reason, count(*)::text as count, trim_scale(sum(amount))::text as sum
         from incoming_transfers group by state, reason order by state, reason`,
      )
    ).rows.map(({ state, reason, count, sum }) => `${count} ${reason ?? state}: ${sum}`)

  const available = async ({ customer_id }: TestCustomer) =>
    (
      await service.db.query<{ available: string }>(
        `select trim_scale(available)::text as available from balances where customer_id = $1 and asset = 'USDG'`,
        [customer_id],
      )
    ).rows.map((row) => row.available)

  test('is asked for once, at each node', async () => {
    const adapter = adapterOf({ verify: { rpcUrl: second.rpcUrl, above: { USDG: '1' } } })
    const { customer, address } = await newPlace(adapter)
    await giveOften(address, 500, '1')
    await mine()
    const [first, other] = [countReceipts(node), countReceipts(second)]
    expect(await rounds(adapter)).toBe(500)
    expect([first.asked, other.asked]).toEqual([1, 1])
    expect(await available(customer)).toEqual(['500'])
    expect((await verify(service.db)).disagreements).toEqual([])
  })

  test('that is worth more than one node credits is asked of the second, whatever verify_above says', async () => {
    const verify = { rpcUrl: second.rpcUrl, above: { USDG: '1000' } }
    const adapter = { ...adapterOf({ verify }), secondNodeAbove: '4' }
    const { address } = await newPlace(adapter)
    const [asked] = [countReceipts(second)]
    for (const [amount, times] of [
      ['4', 0],
      ['5', 1],
    ] as const) {
      await give(address, 'USDG', amount)
      await mine()
      expect(await rounds(adapter)).toBe(1)
      expect(asked.asked).toBe(times)
    }
  })

  test('below the minimum is not asked for, and delays no other deposit', async () => {
    const adapter = withMinimum('1')
    const [dusty, other] = [await newPlace(adapter), await newPlace(adapter)]
    for (let count = 1; count <= 4; count++) await giveOften(dusty.address, 500, '0.000001')
    await give(other.address, 'USDG', '20')
    await mine()
    const receipts = countReceipts(node)
    expect((await round(adapter)).credited).toBe(1)
    expect(receipts.asked).toBe(1)
    expect(await depositsOf(other.customer)).toEqual(['20 USDG'])
    expect(await sums()).toEqual(['1 CREDITED: 20', '2000 BELOW_MINIMUM: 0.002'])
    // Nor is it due later.
    expect((await round(adapter)).credited).toBe(0)
    expect(receipts.asked).toBe(1)
  })

  test('is credited once when its sum reaches the minimum, with several workers, or when the minimum is lowered', async () => {
    const adapter = withMinimum('1')
    const { customer, address } = await newPlace(adapter)
    await giveOften(address, 120, '0.005')
    await mine()
    expect(await rounds(adapter)).toBe(0)
    await giveOften(address, 80, '0.005')
    await mine()
    // A worker whose deposits another one has leased credits none in that round.
    const workers = () => Promise.all([rounds(adapter), rounds(adapter), rounds(adapter)])
    await expect.poll(() => workers().then(() => available(customer))).toEqual(['1'])
    expect(await sums()).toEqual(['200 CREDITED: 1'])
    await giveOften(address, 60, '0.01')
    await mine()
    expect(await rounds(adapter)).toBe(0)
    expect(await sums()).toEqual(['200 CREDITED: 1', '60 BELOW_MINIMUM: 0.6'])
    const lowered = withMinimum('0.5')
    while ((await rounds(lowered)) > 0);
    expect(await available(customer)).toEqual(['1.6'])
    expect((await verify(service.db)).disagreements).toEqual([])
  })

  test('that a reorganisation removes counts for nothing, and once when it is mined again', async () => {
    const adapter = withMinimum('1')
    const { customer, address } = await newPlace(adapter)
    await mine(5)
    await rounds(adapter)
    await giveOften(address, 450, '0.002')
    await mine(4)
    expect(await rounds(adapter)).toBe(0)
    expect(await sums()).toEqual(['450 BELOW_MINIMUM: 0.9'])
    await reorganise(6)
    await mine(8)
    await expect(round(adapter)).rejects.toThrow('rearranged')
    expect(await sums()).toEqual([])
    await resumeAfterReorganisation(service.db, 'ETHEREUM', adapter, { macs: ROW_MACS, origin: TEST_ORIGIN })
    await giveOften(address, 450, '0.002')
    await mine(4)
    expect(await rounds(adapter)).toBe(0)
    expect(await sums()).toEqual(['450 BELOW_MINIMUM: 0.9'])
    await give(address, 'USDG', '0.1')
    await mine(4)
    while ((await rounds(adapter)) > 0);
    expect(await sums()).toEqual(['451 CREDITED: 1'])
    expect(await available(customer)).toEqual(['1'])
    expect(await depositsOf(customer)).not.toContain('0.9 USDG')
  })
})

describe('a node that has moved to another chain', () => {
  const onChain5: typeof node.lie = ({ method }) => (method === 'eth_chainId' ? { result: '0x5' } : undefined)
  const WRONG = 'the node of ETHEREUM is on chain 5, not 1'

  test('is asked for its chain again after a failure, before any other answer is trusted', async () => {
    const adapter = adapterOf()
    const { customer, address } = await newPlace(adapter)
    await rounds(adapter)
    node.bytesMax = 0
    await expect(round(adapter)).rejects.toThrow('the node does not answer: HTTP 413')
    node.tellTheTruth()
    node.lie = onChain5
    await give(address, 'ETH', '1')
    await mine()
    await expect(round(adapter)).rejects.toThrow(WRONG)
    await expect(adapter.sign(undefined as never, [])).rejects.toThrow(WRONG)
    await expect(adapter.status!()).rejects.toThrow(WRONG)
    node.tellTheTruth()
    expect(await rounds(adapter)).toBe(1)
    expect(await depositsOf(customer)).toEqual(['1 ETH'])
  })

  test('is asked again before different blocks count as a reorganisation', async () => {
    const adapter = adapterOf()
    await newPlace(adapter)
    await rounds(adapter)
    node.lie = (call, answer) =>
      call.method === 'eth_getBlockByNumber' && answer.result !== null
        ? { result: { ...(answer.result as object), hash: `0x${'ab'.repeat(32)}` } }
        : onChain5(call, answer)
    await expect(round(adapter)).rejects.toThrow(WRONG)
    expect(await frozen()).toEqual([])
  })

  test('with the same chain id is detected by its first block, which the database records', async () => {
    await rounds(adapterOf())
    node.lie = ({ method, params: [number] }, { result }) =>
      method === 'eth_getBlockByNumber' && number === '0x0'
        ? { result: { ...(result as object), hash: `0x${'cd'.repeat(32)}` } }
        : undefined
    const says = `the node of ETHEREUM is on another chain: its first block is 0x${'cd'.repeat(32)}, and was 0x`
    await expect(adapterOf().status!()).rejects.toThrow(says)
    await expect(adapterOf().sign(undefined as never, [])).rejects.toThrow(says)
    // A node without old blocks cannot return the first block, and is used.
    node.lie = ({ method, params: [number] }) =>
      method === 'eth_getBlockByNumber' && number === '0x0' ? { result: null } : undefined
    expect((await adapterOf().status!()).height).toBeGreaterThan(0)
  })

  test('is named as the waiting reason of a withdrawal, instead of a nonce that it does not know', async () => {
    const hotWallet = privateKeyToAccount(generatePrivateKey())
    await give(hotWallet.address, 'ETH', '5')
    const adapter = adapterOf({ hotWallet, pollMs: 10 })
    const networks: Networks = new Map([['ETHEREUM', adapter]])
    const customer = await newCustomer(service)
    await credit(service.ledger, customer, 'ETH', '10')
    const settle = async () => {
      await service.db.query(
        'update outgoing_transfers set due_at = (select clock_timestamp()) where due_at is not null',
      )
      await settleWithdrawals(service.db, networks)
    }
    const withdraw = async () => {
      const { body } = await customer.call<Transfer>('POST', '/v2/transfer/crypto-withdrawals', {
        profile_id: customer.profile_id,
        asset: 'ETH',
        amount: '1',
        crypto_network: 'ETHEREUM',
        destination_address: privateKeyToAccount(generatePrivateKey()).address,
      })
      return body.id
    }
    const reason = async (id: string) =>
      (
        await service.db.query<{ waiting_detail: string | null }>(
          'select waiting_detail from outgoing_transfers where transfer_id = $1',
          [id],
        )
      ).rows[0]?.waiting_detail
    await withdraw()
    await settle()
    await mine()
    await settle()
    // The other chain has no transactions of the wallet.
    node.lie = (call, answer) =>
      call.method === 'eth_getTransactionCount' ? { result: '0x0' } : onChain5(call, answer)
    const waiting = await withdraw()
    await settle()
    expect(await reason(waiting)).toBe(WRONG)
    node.tellTheTruth()
    await settle()
    expect(await reason(waiting)).toBeNull()
  })
})

describe('for an operator', () => {
  test('a rescan credits missed deposits, and none twice', async () => {
    const adapter = adapterOf()
    const { customer, address } = await newPlace(adapter)
    await give(address, 'ETH', '0.3')
    const from = await anvil.chain.getBlockNumber()
    await mine()
    expect(await rounds(adapter)).toBe(1)
    await give(address, 'USDG', '7')
    await mine()
    const to = (await anvil.chain.getBlockNumber()) - BigInt(CONFIRMATIONS) + 1n
    // Like after a scan with a node that lacked these blocks.
    await service.db.query('update network_cursors set cursor = $1', [await adapter.cursorAt!(to)])
    expect(await rounds(adapter)).toBe(0)
    const rescan = () => rescanDeposits(service, 'ETHEREUM', adapter, { from, to }, TEST_ORIGIN)
    expect(await rescan()).toEqual({ network: 'ETHEREUM', found: 1, credited: 1 })
    expect(await rescan()).toEqual({ network: 'ETHEREUM', found: 0, credited: 0 })
    expect((await depositsOf(customer)).sort()).toEqual(['0.3 ETH', '7 USDG'])
    await expect(
      rescanDeposits(service, 'ETHEREUM', adapter, { from: to + 1n, to: to + 1n }, TEST_ORIGIN),
    ).rejects.toThrow('is not confirmed yet (3 confirmations)')
  })

  test('an internal transfer of a contract is credited once, up to the amount that the address received', async () => {
    const adapter = adapterOf()
    const { customer, address } = await newPlace(adapter)
    // PUSH20 of the address and SELFDESTRUCT: the contract's initial balance goes to the address.
    const data: Hex = `0x73${address.slice(2).toLowerCase()}ff`
    const hash = await anvil.chain.sendTransaction({ chain: null, data, value: parseAmount('3', 18)! })
    await mine()
    expect(await rounds(adapter)).toBe(0)
    const said = { crypto_tx_hash: hash, address, asset: 'ETH', amount: '3' }
    const credit = (changes = {}) =>
      creditSaidDeposit(service, 'ETHEREUM', adapter, { ...said, ...changes }, originOfLoop('test'))
    await expect(credit({ amount: '3.1' })).rejects.toThrow('has received 3 ETH in the block of')
    await expect(credit({ address: USDG })).rejects.toThrow('is no deposit address that was given out')
    expect(await credit()).toMatchObject({ type: 'CRYPTO_DEPOSIT', status: 'COMPLETED', amount: '3' })
    // Like after a process that ended between the credit and its record.
    await service.owner.query('delete from incoming_transfers where crypto_tx_hash = $1', [hash])
    await expect(credit()).rejects.toThrow('before')
    expect(await depositsOf(customer)).toEqual(['3 ETH'])
    const recorded = `select from incoming_transfers where crypto_tx_hash = $1 and state = 'CREDITED'`
    expect((await service.db.query(recorded, [hash])).rowCount).toBe(1)
    // The amount is held, and will be swept.
    const { rowCount } = await service.db.query('select from address_holdings where address = $1', [address])
    expect(rowCount).toBe(1)
    const plain = await give(address, 'ETH', '1')
    await mine(CONFIRMATIONS)
    // A scan is about to find it, and would credit it again.
    await expect(credit({ crypto_tx_hash: plain, amount: '1' })).rejects.toThrow('is not read yet')
    await rounds(adapter)
    await expect(credit({ crypto_tx_hash: plain, amount: '1' })).rejects.toThrow(
      'was found by a scan: it is credited by itself',
    )
    // Like after a scan with a node that lacked the block: a rescan credits these deposits, and nothing else does.
    const missed = [await give(address, 'ETH', '2'), await give(address, 'USDG', '6')]
    await mine(CONFIRMATIONS)
    const head = (await anvil.chain.getBlockNumber()) - BigInt(CONFIRMATIONS) + 1n
    await service.db.query('update network_cursors set cursor = $1', [await adapter.cursorAt!(head)])
    for (const [index, asset] of ['ETH', 'USDG'].entries())
      await expect(credit({ crypto_tx_hash: missed[index]!, asset, amount: '1' })).rejects.toThrow(
        'pays ' + address + ' in a way that a scan sees: bursar deposits rescan of block',
      )
    expect((await verify(service.db)).disagreements).toEqual([])
  })

  test('an internal transfer that one node invents, or makes larger, is not credited where there is a second', async () => {
    const adapter = adapterOf({
      // Far above the amount: what an operator credits is asked about whatever it is.
      verify: { rpcUrl: second.rpcUrl, above: { ETH: '1000' } },
    })
    const { customer, address } = await newPlace(adapter)
    const data: Hex = `0x73${address.slice(2).toLowerCase()}ff`
    const hash = await anvil.chain.sendTransaction({ chain: null, data, value: parseAmount('3', 18)! })
    await mine()
    await rounds(adapter)
    const credit = (amount: string) =>
      creditSaidDeposit(
        service,
        'ETHEREUM',
        adapter,
        { crypto_tx_hash: hash, address, asset: 'ETH', amount },
        originOfLoop('test'),
      )
    node.lie = ({ method }, { result }) =>
      method === 'eth_getBalance' ? { result: numberToHex(BigInt(result as Hex) * 10n) } : undefined
    await expect(credit('30')).rejects.toThrow(
      `${hash}: the second node says that ${address} has received 3 ETH in the block of ${hash}, and not 30`,
    )
    node.tellTheTruth()
    second.lie = ({ method }) => (method === 'eth_blockNumber' ? { result: '0x1' } : undefined)
    await expect(credit('3')).rejects.toThrow(`${hash}: the second node has confirmed block`)
    second.lie = ({ method }, { result }) =>
      method === 'eth_getTransactionReceipt'
        ? { result: { ...(result as object), status: '0x0' } }
        : undefined
    await expect(credit('3')).rejects.toThrow(`${hash}: the second node has status 0 in block`)
    second.tellTheTruth()
    expect(await credit('3')).toMatchObject({ status: 'COMPLETED', amount: '3' })
    expect(await depositsOf(customer)).toEqual(['3 ETH'])
  })

  const says = (body: string) => (response: ServerResponse) => void response.writeHead(200).end(body)
  test.each<[string, (response: ServerResponse) => void, string]>([
    ['silent', () => undefined, 'no answer within 0.3 s'],
    [
      'slow',
      (response) => void setTimeout(() => says('{"decision":"ALLOW"}')(response), 900),
      'no answer within 0.3 s',
    ],
    ['wrong', says('ALLOW'), 'answered neither ALLOW nor REJECT'],
    ['down', (response) => void response.socket?.destroy(), 'the screening endpoint: '],
  ])(
    'a %s screening endpoint: neither command credits a deposit, until it allows it',
    async (_, bad, why) => {
      let answer = bad
      const receiver = await startReceiver((_received, response) => answer(response))
      const endpoint = new ScreeningEndpoint(receiver.url, [newSigningSecret()], 300)
      const screening = new Screening(endpoint, MASTER_KEYS)
      const screener = new Screener({ db: service.db, screening, log: pino({ level: 'silent' }) })
      atEnd(() => screener.stop())
      const context = { ...service, screening }
      const adapter = adapterOf()
      const { customer, address } = await newPlace(adapter)
      const head = () => anvil.chain.getBlockNumber({ cacheTime: 0 })
      const from = (await head()) + 1n
      await give(address, 'ETH', '0.3')
      // PUSH20 of the address and SELFDESTRUCT, as above.
      const data: Hex = `0x73${address.slice(2).toLowerCase()}ff`
      const crypto_tx_hash = await anvil.chain.sendTransaction({
        chain: null,
        data,
        value: parseAmount('3', 18)!,
      })
      await mine(CONFIRMATIONS)
      const to = (await head()) - BigInt(CONFIRMATIONS) + 1n
      await service.db.query('update network_cursors set cursor = $1', [await adapter.cursorAt!(to)])
      const rescan = () => rescanDeposits(context, 'ETHEREUM', adapter, { from, to }, TEST_ORIGIN)
      const said = { crypto_tx_hash, address, asset: 'ETH', amount: '3' }
      const credit = () => creditSaidDeposit(context, 'ETHEREUM', adapter, said, TEST_ORIGIN)

      expect(await rescan()).toMatchObject({ found: 1, credited: 0 })
      await screener.round()
      await screener.answered()
      expect(await rescan()).toMatchObject({ found: 0, credited: 0 })
      await expect(credit()).rejects.toThrow(why)
      await expect(credit()).rejects.toThrow('nothing was recorded')
      expect(await depositsOf(customer)).toEqual([])

      answer = says('{"decision":"ALLOW"}')
      expect(await credit()).toMatchObject({ status: 'COMPLETED', amount: '3' })
      const held = await listScreened(service.db)
      await askAgain(
        service.db,
        held.map(({ subject }) => subject),
        TEST_ORIGIN,
      )
      await screener.round()
      await screener.answered()
      await hurry(service.db)
      expect(await rescan()).toMatchObject({ found: 0, credited: 1 })
      expect((await depositsOf(customer)).sort()).toEqual(['0.3 ETH', '3 ETH'])
      expect((await verify(service.db)).disagreements).toEqual([])
    },
  )
})

test('an address that Bursar did not give out is neither custody, nor swept, nor credited by hand', async () => {
  await service.owner.query('delete from address_holdings')
  const adapter = adapterOf({ areGiven: givenBy(ROW_MACS) })
  const { customer, address } = await newPlace(adapter)
  const planted = privateKeyToAccount(generatePrivateKey()).address
  await service.db.query(
    `insert into deposit_addresses
       (customer_id, id, profile_id, crypto_network, address, conversion_target_asset, created_at, derivation)
     select customer_id, gen_random_uuid(), profile_id, crypto_network, $2, conversion_target_asset, created_at, derivation
     from deposit_addresses where address = $1`,
    [address, planted],
  )
  await give(address, 'ETH', '1')
  await give(planted, 'ETH', '20')
  // The initial balance of a contract, which a scan does not see.
  const data: Hex = `0x73${planted.slice(2).toLowerCase()}ff`
  const crypto_tx_hash = await anvil.chain.sendTransaction({
    chain: null,
    data,
    value: parseAmount('3', 18)!,
  })
  await mine()
  expect(await rounds(adapter)).toBe(1)
  expect(await depositsOf(customer)).toEqual(['1 ETH'])
  expect(await recorded()).toMatchObject([{ state: 'CREDITED' }, { state: 'WAITING', reason: 'FORGED' }])
  const said = { crypto_tx_hash, address: planted, asset: 'ETH', amount: '3' }
  await expect(creditSaidDeposit(service, 'ETHEREUM', adapter, said, originOfLoop('test'))).rejects.toThrow(
    'was invented or changed',
  )
  expect((await adapter.status!()).held).toMatchObject({ ETH: '1' })
  const networks: Networks = new Map([['ETHEREUM', adapter]])
  await sweepDepositAddresses({ ...service, networks })
  const { rows } = await service.db.query('select address from sweeps where address = any ($1)', [
    [address, planted],
  ])
  expect(rows).toEqual([{ address }])
  await service.owner.query('delete from sweeps where address = $1', [address])
})

describe('an amount swept beyond the known deposits', () => {
  // The amounts that other tests left at their addresses are not swept.
  beforeEach(() => service.owner.query('delete from address_holdings').then(() => undefined))

  const auditAt = async (address: string) => {
    const found: Unattributed[] = []
    await auditSweeps(service.db, 'ETHEREUM', (one) => found.push(one))
    return found.filter((one) => one.address === address)
  }

  /** Sweeps all deposit addresses, and scans until the sweeps are confirmed. */
  async function sweepAll(adapter: NetworkAdapter): Promise<void> {
    const networks: Networks = new Map([['ETHEREUM', adapter]])
    for (let round = 1; round <= 10; round++) {
      const steps = await sweepDepositAddresses({ ...service, networks })
      await mine()
      await rounds(adapter)
      if (steps === 0 && round > 3) return
    }
  }

  test('is reported, and stays listed until an operator credits it', async () => {
    const adapter = adapterOf()
    const { customer, address } = await newPlace(adapter)
    const data: Hex = `0x73${address.slice(2).toLowerCase()}ff`
    const hash = await anvil.chain.sendTransaction({ chain: null, data, value: parseAmount('3', 18)! })
    await give(address, 'ETH', '0.5')
    await mine()
    await rounds(adapter)
    expect(await depositsOf(customer)).toEqual(['0.5 ETH'])
    const networks: Networks = new Map([['ETHEREUM', adapter]])
    for (let count = 1; count <= 2; count++) {
      await sweepDepositAddresses({ ...service, networks })
      // Deposits are not scanned up to the sweep yet, and one of them may be part of it.
      expect(await auditAt(address)).toEqual([])
      await mine()
    }
    await rounds(adapter)
    const { customer_id } = customer
    const place = { customer_id, network: 'ETHEREUM', address, asset: 'ETH' }
    expect(await auditAt(address)).toEqual([
      { ...place, amount: '3', crypto_tx_hash: expect.stringMatching(/^0x/) as string },
    ])
    expect(await auditAt(address)).toEqual([])
    const unattributed = async () =>
      (await selectUncredited(service.db, 'ETHEREUM', 'UNATTRIBUTED', 10)).map(({ amount, asset }) => [
        Number(amount),
        asset,
      ])
    expect(await unattributed()).toEqual([[3, 'ETH']])
    const [report] = await networkReports(service.db, new Map([['ETHEREUM', { adapter, confirmations: 3 }]]))
    expect(report!.uncredited).toMatchObject([{ reason: 'UNATTRIBUTED', count: 1 }])
    // It is never credited automatically.
    expect(await rounds(adapter)).toBe(0)

    // This transaction brought a part of it.
    const credit = (amount: string) =>
      creditSaidDeposit(
        service,
        'ETHEREUM',
        adapter,
        { crypto_tx_hash: hash, address, asset: 'ETH', amount },
        originOfLoop('test'),
      )
    await credit('2.75')
    expect(await unattributed()).toEqual([[0.25, 'ETH']])
    await expect(credit('2.75')).rejects.toThrow('before')
    // A later deposit at the address does not explain the earlier sweep.
    await give(address, 'ETH', '2')
    await mine()
    expect(await rounds(adapter)).toBe(1)
    expect(await unattributed()).toEqual([[0.25, 'ETH']])
    await sweepAll(adapter)
    expect(await auditAt(address)).toMatchObject([{ amount: '0.25' }])
    expect(await unattributed()).toEqual([[0.25, 'ETH']])
    expect((await depositsOf(customer)).sort()).toEqual(['0.5 ETH', '2 ETH', '2.75 ETH'])
    expect((await verify(service.db)).disagreements).toEqual([])
  })

  test('is zero when all deposits were found: tokens, their gas, and the remainder of the gas', async () => {
    const hotWallet = privateKeyToAccount(generatePrivateKey())
    await give(hotWallet.address, 'ETH', '1')
    const adapter = adapterOf({ hotWallet })
    const { address } = await newPlace(adapter)
    await give(address, 'USDG', '5000')
    await give(address, 'ETH', '1')
    await mine()
    expect(await rounds(adapter)).toBe(2)
    await sweepAll(adapter)
    await give(address, 'USDG', '4000')
    await mine()
    await rounds(adapter)
    await sweepAll(adapter)
    const { rows } = await service.db.query<{ kind: string; asset: string }>(
      `select kind, asset from sweeps where address = $1 and state = 'DONE' order by id`,
      [address],
    )
    expect(rows.map(({ kind, asset }) => `${kind} ${asset}`)).toEqual(
      expect.arrayContaining(['SWEEP USDG', 'SWEEP ETH', 'TOP_UP ETH']),
    )
    expect(await auditAt(address)).toEqual([])
    const { rowCount } = await service.db.query(
      'select from sweeps where address = $1 and audit_block is not null',
      [address],
    )
    expect(rowCount).toBe(0)
    expect(await recorded()).toMatchObject([
      { state: 'CREDITED' },
      { state: 'CREDITED' },
      { state: 'CREDITED' },
    ])
  })

  test('is looked for at each address, though the database refuses to record it for another', async () => {
    const adapter = adapterOf()
    const addresses = [(await newPlace(adapter)).address, (await newPlace(adapter)).address]
    for (const address of addresses) await give(address, 'ETH', '0.5')
    await mine()
    await rounds(adapter)
    await sweepAll(adapter)
    const [odd] = addresses
    const toAudit = async () => {
      const { rows } = await service.db.query<{ address: string }>(
        'select address from sweeps where address = any ($1) and audit_block is not null',
        [addresses],
      )
      return rows.map(({ address }) => address)
    }
    expect((await toAudit()).sort()).toEqual(addresses.toSorted())
    await refusing(service, 'sweeps', `address <> '${odd}' or audit_block is not null`, async () => {
      const failure = await auditSweeps(service.db, 'ETHEREUM', () => undefined).catch(
        (error: unknown) => error,
      )
      expect(failure).toMatchObject({ errors: [{ record: `sweeps of ETHEREUM ${odd}` }] })
    })
    expect(await toAudit()).toEqual([odd])
    expect(await auditAt(odd!)).toEqual([])
    expect(await toAudit()).toEqual([])
  })

  test('may be a missed deposit: a rescan credits it, and it is no longer unattributed', async () => {
    const adapter = adapterOf()
    const { customer, address } = await newPlace(adapter)
    await give(address, 'ETH', '0.75')
    const from = await anvil.chain.getBlockNumber({ cacheTime: 0 })
    await mine()
    const to = (await anvil.chain.getBlockNumber({ cacheTime: 0 })) - BigInt(CONFIRMATIONS) + 1n
    // Like after a scan with a node that lacked these blocks.
    await service.db.query('update network_cursors set cursor = $1', [await adapter.cursorAt!(to)])
    await give(address, 'ETH', '1')
    await mine()
    expect(await rounds(adapter)).toBe(1)
    await sweepAll(adapter)
    expect(await auditAt(address)).toMatchObject([{ amount: '0.75' }])
    expect(await rescanDeposits(service, 'ETHEREUM', adapter, { from, to }, TEST_ORIGIN)).toMatchObject({
      credited: 1,
    })
    expect(await selectUncredited(service.db, 'ETHEREUM', 'UNATTRIBUTED', 10)).toEqual([])
    expect((await depositsOf(customer)).sort()).toEqual(['0.75 ETH', '1 ETH'])
  })
})

/** Replaces the newest blocks with blocks that have none of their transactions. */
const reorganise = (depth: number) =>
  anvil.chain.request({ method: 'anvil_reorg', params: [depth, []] } as never)

describe('a deposit without enough confirmations', () => {
  const see = (adapter: NetworkAdapter) => seeDepositsOn(service, 'ETHEREUM', adapter)
  /** The node returns the hash before the block is mined. */
  const mined = (hash: Hex) => anvil.chain.waitForTransactionReceipt({ hash })
  async function arrive(...asked: Parameters<typeof give>): Promise<Hex> {
    const hash = await give(...asked)
    await mined(hash)
    return hash
  }
  const shownTo = async (customer: TestCustomer) =>
    (await customer.call<{ items: Transfer[] }>('GET', '/v2/transfer/transfers?order=ASC')).body.items.map(
      ({ asset, amount, status }) => `${amount} ${asset} ${status}`,
    )
  const availableTo = async ({ call, profile_id }: TestCustomer, asset: string) =>
    (await call<{ available: string }>('GET', `/v2/profiles/${profile_id}/balances/${asset}`)).body.available

  test('is PENDING, COMPLETED when confirmed, and FAILED when the chain dropped its block', async () => {
    const adapter = adapterOf()
    const { customer, address } = await newPlace(adapter)
    await mine()
    await rounds(adapter)
    await see(adapter)
    await arrive(address, 'USDG', '10')
    expect(await see(adapter)).toEqual({ seen: 1, failed: 0 })
    expect(await rounds(adapter)).toBe(0)
    expect(await shownTo(customer)).toEqual(['10 USDG PENDING'])
    expect(await availableTo(customer, 'USDG')).toBe('0')
    await mine(2)
    expect(await rounds(adapter)).toBe(1)
    expect(await see(adapter)).toEqual({ seen: 0, failed: 0 })
    expect(await shownTo(customer)).toEqual(['10 USDG COMPLETED'])
    expect(await availableTo(customer, 'USDG')).toBe('10')

    const hash = await arrive(address, 'ETH', '3')
    const serializedTransaction = await anvil.chain.request({
      method: 'eth_getRawTransactionByHash',
      params: [hash],
    } as never)
    expect(await see(adapter)).toEqual({ seen: 1, failed: 0 })
    await reorganise(1)
    await mine(1)
    expect(await see(adapter)).toEqual({ seen: 0, failed: 0 })
    await mine(3)
    expect(await rounds(adapter)).toBe(0)
    expect(await see(adapter)).toEqual({ seen: 0, failed: 1 })
    expect(await shownTo(customer)).toEqual(['10 USDG COMPLETED', '3 ETH FAILED'])
    expect(await availableTo(customer, 'ETH')).toBe('0')
    expect((await verify(service.db)).disagreements).toEqual([])

    await mined(await anvil.chain.sendRawTransaction({ serializedTransaction }))
    // Another process reads all blocks again, and shows the deposit once.
    for (const one of [adapter, adapterOf(), adapter]) await see(one)
    expect(await shownTo(customer)).toEqual(['10 USDG COMPLETED', '3 ETH FAILED', '3 ETH PENDING'])
    await mine(3)
    expect(await rounds(adapter)).toBe(1)
    expect(await rounds(adapterOf())).toBe(0)
    expect(await shownTo(customer)).toEqual(['10 USDG COMPLETED', '3 ETH FAILED', '3 ETH COMPLETED'])
    expect(await availableTo(customer, 'ETH')).toBe('3')
    expect((await verify(service.db)).disagreements).toEqual([])
  })

  test('is not FAILED when it moves to another block, and is not swept before it is credited', async () => {
    const adapter = adapterOf()
    const { customer, address } = await newPlace(adapter)
    await mine()
    await rounds(adapter)
    const hash = await arrive(address, 'ETH', '2')
    const serializedTransaction = await anvil.chain.request({
      method: 'eth_getRawTransactionByHash',
      params: [hash],
    } as never)
    await see(adapter)
    const { rowCount } = await service.db.query('select from address_holdings where address = $1', [address])
    expect(rowCount).toBe(0)
    await reorganise(1)
    await mine(2)
    await mined(await anvil.chain.sendRawTransaction({ serializedTransaction }))
    expect(await see(adapter)).toEqual({ seen: 0, failed: 0 })
    await mine(2)
    expect(await rounds(adapter)).toBe(1)
    expect(await shownTo(customer)).toEqual(['2 ETH COMPLETED'])
  })

  test('that a node invents ends FAILED, and a scan that fails half-way records nothing', async () => {
    const adapter = adapterOf()
    const { customer, address } = await newPlace(adapter)
    await mine()
    await rounds(adapter)
    await arrive(address, 'USDG', '1')
    node.lie = ({ method }) =>
      method === 'eth_getLogs' ? { error: { code: -32000, message: 'unknown block' } } : undefined
    await expect(see(adapter)).rejects.toThrow('unknown block')
    expect(await shownTo(customer)).toEqual([])
    node.tellTheTruth()
    // The next look gives the deposits again that the database did not record.
    const query = service.db.query.bind(service.db)
    const connect = () => Promise.reject(new Error('the database went away'))
    const broken = { ...service, db: { query, connect } as never }
    await expect(seeDepositsOn(broken, 'ETHEREUM', adapter)).rejects.toThrow('went away')
    node.lie = ({ method }, answer) => {
      const logs = answer.result as { data: Hex; logIndex: Hex }[]
      if (method !== 'eth_getLogs' || logs.length === 0) return undefined
      return {
        result: [...logs, { ...logs[0]!, data: `0x${'0'.repeat(48)}000048c273950000`, logIndex: '0x7' }],
      }
    }
    expect(await see(adapter)).toMatchObject({ seen: 2 })
    node.tellTheTruth()
    await mine(2)
    expect(await rounds(adapter)).toBe(1)
    await mine(1)
    expect(await rounds(adapter)).toBe(0)
    expect(await see(adapter)).toMatchObject({ failed: 1 })
    expect((await shownTo(customer)).map((line) => line.split(' ').at(-1)).sort()).toEqual([
      'COMPLETED',
      'FAILED',
    ])
    expect(await availableTo(customer, 'USDG')).toBe('1')
  })
})

describe('a reorganisation deeper than the confirmations', () => {
  test('stops the network, lists removed deposits and freezes their profiles, until an operator resumes', async () => {
    const adapter = adapterOf()
    const [kept, gone] = [await newPlace(adapter), await newPlace(adapter)]
    await give(kept.address, 'ETH', '1')
    await mine(10)
    await rounds(adapter)
    await give(gone.address, 'ETH', '50')
    await mine(5)
    expect(await rounds(adapter)).toBe(1)
    await reorganise(8)
    await mine(6)
    await expect(round(adapter)).rejects.toThrow(
      'ETHEREUM has rearranged its blocks deeper than 3 confirmations',
    )
    expect(await frozen()).toEqual(['NETWORK REORGANISATION', 'PROFILE REORGANISATION'])
    const [profile] = (await selectFreezes(service.db)).filter(({ kind }) => kind === 'PROFILE')
    expect(profile!.subject).toBe(`${gone.customer.customer_id}/${gone.customer.profile_id}`)
    expect(await recorded()).toMatchObject([{ state: 'CREDITED' }, { state: 'REORGANISED', amount: '50' }])

    // Scanning has stopped, and is not retried.
    await give(kept.address, 'ETH', '0.25')
    await mine()
    expect(await rounds(adapter)).toBe(0)
    expect(
      await resumeAfterReorganisation(service.db, 'ETHEREUM', adapter, {
        macs: ROW_MACS,
        origin: TEST_ORIGIN,
      }),
    ).toMatch(/^\d+:0x/)
    expect(await frozen()).toEqual(['PROFILE REORGANISATION'])
    expect(await rounds(adapter)).toBe(1)
    expect(await depositsOf(kept.customer)).toEqual(['1 ETH', '0.25 ETH'])
    expect(await depositsOf(gone.customer)).toEqual(['50 ETH'])
    await expect(
      resumeAfterReorganisation(service.db, 'ETHEREUM', adapter, { macs: ROW_MACS, origin: TEST_ORIGIN }),
    ).rejects.toThrow('nothing to resume')
    expect((await verify(service.db)).disagreements).toEqual([])
  })

  test('that removed sweeps: their bytes are broadcast again after an operator resumes', async () => {
    await service.owner.query('delete from address_holdings')
    const hotWallet = privateKeyToAccount(generatePrivateKey())
    const adapter = adapterOf({ hotWallet })
    const { address } = await newPlace(adapter)
    await give(address, 'ETH', '2')
    await mine(4)
    expect(await rounds(adapter)).toBe(1)
    const before = await anvil.chain.getBlockNumber({ cacheTime: 0 })
    const networks: Networks = new Map([['ETHEREUM', adapter]])
    const sweepOnce = () => sweepDepositAddresses({ ...service, networks })
    for (let count = 1; count <= 3; count++) {
      await sweepOnce()
      await mine()
    }
    await rounds(adapter)
    const at = (who: Hex) => anvil.chain.getBalance({ address: who })
    const swept = await at(hotWallet.address)
    expect(await at(address)).toBe(0n)
    const { rows } = await service.db.query<{ crypto_tx_hash: Hex }>(
      `select crypto_tx_hash from sweeps where address = $1 and state = 'DONE'`,
      [address],
    )
    await reorganise(Number((await anvil.chain.getBlockNumber({ cacheTime: 0 })) - before))
    await mine(3)
    expect(await at(hotWallet.address)).toBe(0n)
    await expect(round(adapter)).rejects.toThrow('rearranged')
    await resumeAfterReorganisation(service.db, 'ETHEREUM', adapter, { macs: ROW_MACS, origin: TEST_ORIGIN })
    const failure = await sweepOnce().catch((error: unknown) => error)
    expect(inspect(failure, { depth: 5 })).toContain('the same bytes were broadcast again')
    await anvil.chain.waitForTransactionReceipt({ hash: rows[0]!.crypto_tx_hash })
    expect(await at(address)).toBe(0n)
    // The new block has another base fee, but a sweep offers its whole fee.
    expect(await at(hotWallet.address)).toBe(swept)
    await sweepOnce()
    expect((await adapter.status!()).held.ETH).toBe(formatAmount(swept, 18))
    const { rowCount } = await service.db.query('select from sweeps where address = $1', [address])
    expect(rowCount).toBe(1)
  })

  test('whose transactions are mined again with other indexes credits none of them twice', async () => {
    const adapter = adapterOf()
    const { customer, address } = await newPlace(adapter)
    await mine(5)
    await rounds(adapter)
    const bytes: Hex[] = []
    for (const asset of ['USDG', 'ETH'] as const) {
      const hash = await give(address, asset, '3')
      const raw = await anvil.chain.request({
        method: 'eth_getRawTransactionByHash',
        params: [hash],
      } as never)
      bytes.push(raw)
    }
    await mine(4)
    expect(await rounds(adapter)).toBe(2)
    await reorganise(6)
    // Another transaction with a log comes before them in the block, so their logs count from 1.
    await anvil.chain.setAutomine(false)
    try {
      for (const serializedTransaction of bytes)
        await anvil.chain.sendRawTransaction({ serializedTransaction })
      await mine(1)
    } finally {
      await anvil.chain.setAutomine(true)
    }
    await mine(6)
    await expect(round(adapter)).rejects.toThrow('rearranged')
    expect(await frozen()).toEqual(['NETWORK REORGANISATION'])
    expect(await recorded()).toMatchObject([{ state: 'REORGANISED' }, { state: 'REORGANISED' }])
    // Changes the recorded index, as if the log had been counted differently at first.
    await service.owner.query(
      `update incoming_transfers set crypto_tx_index = '5' where asset = 'USDG' and state = 'REORGANISED'`,
    )
    await resumeAfterReorganisation(service.db, 'ETHEREUM', adapter, { macs: ROW_MACS, origin: TEST_ORIGIN })
    expect(await rounds(adapter)).toBe(0)
    expect((await depositsOf(customer)).sort()).toEqual(['3 ETH', '3 USDG'])
    expect((await recorded()).map(({ state }) => state)).toEqual(['CREDITED', 'CREDITED', 'CREDITED'])
  })
})
