/* What one lying node can make of a withdrawal: it is never paid and refunded, nor paid twice. */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createWalletClient, http, keccak256, numberToHex, parseGwei, parseTransaction, type Hex } from 'viem'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { TOKEN_ABI, deployToken, ownAnvil } from '../../test/anvil.ts'
import { FAILURES, dieAtEachStep } from '../../test/failures.ts'
import { forgery } from '../../test/forging-node.ts'
import { startLyingNode } from '../../test/lying-node.ts'
import { newCustomer, ownTestService, ROW_MACS, TEST_ORIGIN, type TestCustomer } from '../../test/support.ts'
import { keptOf, order, readTransfer, work } from '../../test/payouts-on.ts'
import { parseAmount } from '../../src/contract/assets/amount.ts'
import type { Transfer } from '../../src/money/ledger/transfer.ts'
import { markWithdrawalPaid } from '../../src/rails/payouts/mark-withdrawal-paid.ts'
import { resolveWithdrawal, type Resolution } from '../../src/rails/payouts/resolve-withdrawal.ts'
import { acknowledgeTransaction } from '../../src/rails/treasury/acknowledged.ts'
import { watchCustody, type Suspicions } from '../../src/rails/treasury/watch-custody.ts'
import { unfreeze } from '../../src/money/records/freezes.ts'
import { settleWithdrawals } from '../../src/rails/payouts/settle-withdrawals.ts'
import { verify } from '../../src/money/verify/verify.ts'
import type { Networks } from '../../src/networks/network.ts'
import { evmAdapter, type EvmConfig } from './adapter.ts'
import { evmNode, type Receipt } from './node.ts'
import { withdrawalReader } from '../../src/rails/payouts/withdrawal-reader.ts'

const CONFIRMATIONS = 3
const service = await ownTestService()
const anvil = await ownAnvil(1)
const tokens = { USDG: await deployToken(anvil, 6) }
const [first, second] = [await startLyingNode(anvil.rpcUrl), await startLyingNode(anvil.rpcUrl)]
afterAll(() => Promise.all([first.stop(), second.stop()]))
afterEach(async () => {
  first.tellTheTruth()
  second.tellTheTruth()
  await service.owner.query('delete from freezes')
  await service.owner.query('delete from failed_transactions')
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
    withdrawals: withdrawalReader,
    tokens,
    pollMs: 10,
    mode: 'sandbox',
    // Far above every amount here: a refund is asked about whatever it is.
    ...(verified && { verify: { rpcUrl: second.rpcUrl, above: { ETH: '1000', USDG: '1000000' } } }),
    ...changes,
  }
  const adapter = evmAdapter('ETHEREUM', config, service.db)
  return { config, hotWallet, adapter, networks: new Map([['ETHEREUM', adapter]]) as Networks }
}
type Wallet = Awaited<ReturnType<typeof newWallet>>

const newAddress = (): Hex => privateKeyToAccount(generatePrivateKey()).address

const withdraw = (
  customer: TestCustomer,
  asset: 'ETH' | 'USDG',
  amount: string,
  destination_address: Hex = newAddress(),
): Promise<Transfer> =>
  order(service, customer, { crypto_network: 'ETHEREUM', asset, amount, destination_address }, '100')

const read = readTransfer

/** One step of the worker, with everything due, and a block after it. */
async function step({ networks }: Pick<Wallet, 'networks'>): Promise<void> {
  await work(service.db, networks)
  await anvil.chain.mine({ blocks: 1 })
}

async function steps(wallet: Wallet, count = CONFIRMATIONS + 2): Promise<void> {
  for (let round = 1; round <= count; round++) await step(wallet)
}

const waiting = (one: { id: string }) => keptOf(service.db, one)

const frozen = async () => {
  const { rows } = await service.db.query<{ reason: string }>(
    'select reason from freezes where lifted_at is null',
  )
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

    test.each([false, true])(
      'by blocks that it makes up, in live mode: nothing is refunded (second node: %s)',
      async (verified) => {
        const [customer, wallet] = [await newCustomer(service), await newWallet({ verified, mode: 'live' })]
        first.lie = forgery(evmNode(anvil.rpcUrl), wallet.hotWallet.address)
        const created = await withdraw(customer, asset, '1')
        await steps(wallet)
        expect(await read(customer, created)).toMatchObject({ status: 'PENDING' })
        expect(await waiting(created)).toMatchObject({
          waiting_code: verified ? 'NODES_DISAGREE' : 'UNRESOLVED',
          waiting_detail: expect.stringMatching(
            verified ? /the second node has 0x\w+ as block/ : /without verify_rpc_url nothing else says so/,
          ) as string,
        })
        expect(await frozen()).toEqual(verified ? ['NODES_DISAGREE'] : [])
        first.tellTheTruth()
        await steps(wallet)
        expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED' })
      },
    )
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

test('in a sandbox without a second node, a payment that was reverted is refunded', async () => {
  const [customer, wallet] = [await newCustomer(service), await newWallet()]
  const created = await reverted(customer, wallet)
  await steps(wallet)
  expect(await read(customer, created)).toMatchObject({ status: 'FAILED' })
})

test('a transfer by hand is acknowledged only as the second node has it', async () => {
  const { hotWallet, adapter } = await newWallet({ verified: true })
  const client = createWalletClient({ account: hotWallet, transport: http(anvil.rpcUrl) })
  const hash = await client.sendTransaction({ chain: null, to: newAddress(), value: parseAmount('1', 18)! })
  await anvil.chain.mine({ blocks: CONFIRMATIONS })
  const acknowledge = () =>
    acknowledgeTransaction(service.db, adapter, 'ETHEREUM', hash, { origin: TEST_ORIGIN })
  const told = (method: string, changes: object) => {
    first.lie = (call, { result }) =>
      call.method === method && result !== null
        ? { result: { ...(result as object), ...changes } }
        : undefined
  }
  for (const [method, changes, why] of [
    ['eth_getTransactionByHash', { value: '0x1' }, 'another sender, nonce, amount or fee'],
    ['eth_getTransactionByHash', { nonce: '0x7' }, 'another sender, nonce, amount or fee'],
    ['eth_getTransactionReceipt', { effectiveGasPrice: '0x1' }, 'another sender, nonce, amount or fee'],
    ['eth_getTransactionReceipt', { status: '0x0' }, 'status 1 in block'],
  ] as const) {
    told(method, changes)
    await expect(acknowledge()).rejects.toThrow(`${hash}: the second node has ${why}`)
  }
  first.tellTheTruth()
  second.lie = ({ method }) => (method === 'eth_blockNumber' ? { result: numberToHex(1) } : undefined)
  await expect(acknowledge()).rejects.toThrow(`${hash}: the second node has confirmed block 0`)
  second.tellTheTruth()
  expect(await acknowledge()).toMatchObject({ is_new: true, moved: [{ asset: 'ETH', amount: '-1' }] })
})

describe('payments that the network reverted', () => {
  /** Native coins to an address that gets code after the estimate: its owner has the payment fail on purpose. */
  async function refused(customer: TestCustomer, wallet: Wallet): Promise<void> {
    const destination = newAddress()
    await withdraw(customer, 'ETH', '0.1', destination)
    await anvil.chain.setAutomine(false)
    await settleWithdrawals(service.db, wallet.networks)
    await anvil.chain.setCode({ address: destination, bytecode: '0xfe' })
    await anvil.chain.mine({ blocks: 1 })
    await anvil.chain.setAutomine(true)
  }

  test('stop the network at the second within an hour, and lifting that does not stop it again', async () => {
    const [customer, wallet] = [await newCustomer(service), await newWallet({ verified: true })]
    const fail = async () => {
      const created = await reverted(customer, wallet)
      await steps(wallet)
      expect(await read(customer, created)).toMatchObject({ status: 'FAILED' })
    }
    await fail()
    expect(await frozen()).toEqual([])
    await fail()
    expect(await frozen()).toEqual(['WITHDRAWALS_FAIL'])
    await unfreeze(
      service.db,
      ROW_MACS,
      TEST_ORIGIN,
      { kind: 'NETWORK', network: 'ETHEREUM' },
      'WITHDRAWALS_FAIL',
    )
    await fail()
    expect(await frozen()).toEqual([])
    await fail()
    expect(await frozen()).toEqual(['WITHDRAWALS_FAIL'])
  })

  test('by the code at their destinations stop nobody else: a customer can cause as many as it likes', async () => {
    const [customer, wallet] = [await newCustomer(service), await newWallet()]
    for (let count = 1; count <= 3; count++) await refused(customer, wallet)
    await steps(wallet)
    const { rows } = await service.db.query('select counts from failed_transactions')
    expect(rows).toEqual([{ counts: false }, { counts: false }, { counts: false }])
    expect(await frozen()).toEqual([])
  })

  test('although their destinations have no code stop the network: no recipient can have caused them', async () => {
    const [customer, wallet] = [await newCustomer(service), await newWallet({ verified: true, mode: 'live' })]
    // Both nodes lie, and none of their answers contradicts another.
    first.lie = second.lie = saysReverted('eth_getTransactionReceipt')
    for (let count = 1; count <= 2; count++) await withdraw(customer, 'ETH', '0.1')
    await steps(wallet)
    expect(await frozen()).toEqual(['WITHDRAWALS_FAIL'])
  })

  test('are held against custody: one that arrived all the same shows, whatever the wallet holds beyond it', async () => {
    const [customer, wallet] = [await newCustomer(service), await newWallet({ verified: true })]
    const suspicions: Suspicions = new Map()
    const look = () => watchCustody(service.db, wallet.networks, suspicions)
    const looks = async () => [await look(), await look(), await look()]
    expect(await looks()).toEqual([0, 0, 0])
    await reverted(customer, wallet)
    await steps(wallet)
    expect(await looks()).toEqual([0, 0, 0])
    // Both nodes lie, and none of their answers contradicts another.
    first.lie = second.lie = saysReverted('eth_getTransactionReceipt', 'eth_getBlockReceipts')
    const created = await withdraw(customer, 'ETH', '1')
    await steps(wallet)
    expect(await read(customer, created)).toMatchObject({ status: 'FAILED' })
    expect(await anvil.chain.getBalance({ address: created.destination_address as Hex })).toBe(
      parseAmount('1', 18)!,
    )
    expect(await looks()).toEqual([0, 1, 0])
    expect(await frozen()).toEqual(['WITHDRAWALS_FAIL', 'CUSTODY_SHORT'])
  })
})

describe('a nonce that another transaction of the wallet used', () => {
  /** What a tool that has the hot wallet's key signs. */
  const signedByTool = ({ hotWallet }: Wallet, nonce: number, to: Hex, value: string, chainId = 1) =>
    hotWallet.signTransaction({
      ...{ type: 'eip1559', chainId, nonce, to, value: parseAmount(value, 18)!, gas: 21_000n },
      ...{ maxFeePerGas: parseGwei('50'), maxPriorityFeePerGas: parseGwei('2') },
    })

  const keptOf = async ({ id }: { id: string }) => {
    const { rows } = await service.db.query<{ state: string; crypto_tx_hash: Hex | null }>(
      'select state, crypto_tx_hash from outgoing_transfers where transfer_id = $1',
      [id],
    )
    return rows[0]!
  }

  /** Signs a withdrawal with nonce 0, and has the tool's transaction mined in its place. */
  async function overtaken(
    customer: TestCustomer,
    wallet: Wallet,
    { to = newAddress(), value = '0.25' }: { to?: Hex; value?: string } = {},
  ) {
    const { chain } = anvil
    const nonce = await chain.getTransactionCount({ address: wallet.hotWallet.address })
    await chain.setAutomine(false)
    const created = await withdraw(customer, 'ETH', '1', to)
    await settleWithdrawals(service.db, wallet.networks)
    const lost = (await keptOf(created)).crypto_tx_hash!
    await chain.dropTransaction({ hash: lost })
    const raw = await signedByTool(wallet, nonce, value === '1' ? to : newAddress(), value)
    const hash = await chain.sendRawTransaction({ serializedTransaction: raw })
    await chain.mine({ blocks: 1 })
    await chain.setAutomine(true)
    expect((await chain.getTransactionReceipt({ hash })).status).toBe('success')
    return { created, lost, hash }
  }

  const received = ({ destination_address }: Transfer) =>
    anvil.chain.getBalance({ address: destination_address as Hex })

  const ONE = parseAmount('1', 18)!

  test.each([true, false])(
    'ends its withdrawal, which is signed anew and paid once (second node: %s)',
    async (verified) => {
      const [customer, wallet] = [await newCustomer(service), await newWallet({ verified })]
      const { created, lost, hash } = await overtaken(customer, wallet)
      const acknowledge = () =>
        acknowledgeTransaction(service.db, wallet.adapter, 'ETHEREUM', hash, { origin: TEST_ORIGIN })
      await anvil.chain.mine({ blocks: CONFIRMATIONS })
      await expect(acknowledge()).rejects.toThrow('the worker signs it anew')
      await expect(
        markWithdrawalPaid(service.db, wallet.networks, created.id, hash, TEST_ORIGIN),
      ).rejects.toThrow(
        `does not pay 1 ETH to ${created.destination_address!}, and has its nonce: the worker signs it anew`,
      )
      const second = await withdraw(customer, 'ETH', '0.5')
      await steps(wallet, 2 * CONFIRMATIONS + 4)
      for (const [transfer, units] of [
        [created, ONE],
        [second, ONE / 2n],
      ] as const) {
        expect(await read(customer, transfer)).toMatchObject({ status: 'COMPLETED' })
        expect(await received(transfer)).toBe(units)
      }
      expect((await read(customer, created)).crypto_tx_hash).not.toBe(lost)
      const { rows } = await service.db.query(
        `select n.crypto_tx_hash, n.used_by, r.raw_transaction = n.raw_transaction as kept
         from network_transactions n
         join replaced_transactions r on r.crypto_tx_hash = n.crypto_tx_hash
         where n.transfer_ids @> array[$1::uuid]`,
        [created.id],
      )
      expect(rows).toEqual([{ crypto_tx_hash: lost, used_by: hash, kept: true }])
      const { rows: audit } = await service.db.query(
        `select changes from audit_log where action = 'transfer.void' and subject_id = $1`,
        [created.id],
      )
      expect(audit).toEqual([{ changes: { after: { used_by: hash } } }])
      expect(await acknowledge()).toMatchObject({ is_new: true, moved: [{ asset: 'ETH', amount: '-0.25' }] })
      expect((await verify(service.db, { tokens: new Map([['ETHEREUM', tokens]]) })).disagreements).toEqual(
        [],
      )
    },
  )

  test('that paid the withdrawal itself: it is not signed anew, and marked as paid by it', async () => {
    const [customer, wallet] = [await newCustomer(service), await newWallet()]
    const { created, hash } = await overtaken(customer, wallet, { value: '1' })
    await steps(wallet)
    expect(await waiting(created)).toMatchObject({
      waiting_code: 'NONCE_USED',
      waiting_detail: `${hash} pays it: 'bursar withdrawal mark-paid ${created.id} --tx-hash ${hash}' says so`,
    })
    await markWithdrawalPaid(service.db, wallet.networks, created.id, hash, TEST_ORIGIN)
    await steps(wallet)
    expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED', crypto_tx_hash: hash })
    expect(await received(created)).toBe(ONE)
  })

  test('that paid an equal withdrawal: it is signed anew', async () => {
    const [customer, wallet] = [await newCustomer(service), await newWallet()]
    const { created, hash } = await overtaken(customer, wallet, { value: '1' })
    await service.owner.query(
      `insert into network_transactions
         (network, crypto_tx_hash, raw_transaction, kind, payments, customer_ids, transfer_ids, signed_at, ended_at)
       values ('ETHEREUM', $1, '\\x00', 'WITHDRAWALS', 1, array[gen_random_uuid()], array[gen_random_uuid()], now(), now())`,
      [hash],
    )
    await steps(wallet, 2 * CONFIRMATIONS + 4)
    expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED' })
    expect(await received(created)).toBe(2n * ONE)
  })

  test('which the node does not show: an operator names it, and only the right one counts', async () => {
    const [customer, wallet] = [await newCustomer(service), await newWallet()]
    const { created, lost, hash } = await overtaken(customer, wallet)
    const pruned = { error: { code: -32000, message: 'missing trie node' } }
    const head = () => anvil.chain.getBlockNumber({ cacheTime: 0 })
    await anvil.chain.mine({ blocks: CONFIRMATIONS })
    const confirmed = (await head()) - BigInt(CONFIRMATIONS) + 1n
    first.lie = ({ method, params }) =>
      method === 'eth_getTransactionCount' &&
      String(params[1]).startsWith('0x') &&
      BigInt(params[1] as Hex) < confirmed
        ? pruned
        : undefined
    await step(wallet)
    await step(wallet)
    expect(await waiting(created)).toMatchObject({
      waiting_code: 'NONCE_USED',
      waiting_detail: expect.stringContaining(`${created.id} --outcome sign-anew --used-by <hash>`) as string,
    })
    const resolve = (outcome: Resolution) =>
      resolveWithdrawal(service.db, wallet.networks, created.id, {
        outcome,
        evidence: 'the explorer',
        origin: TEST_ORIGIN,
      })
    await expect(resolve('NOT_PAID')).rejects.toThrow('may be paid yet')
    const other = await anvil.chain.sendTransaction({ chain: null, to: newAddress(), value: 1n })
    await expect(resolve({ usedBy: other })).rejects.toThrow(/was signed by 0x\w+, and not by its wallet/)
    await expect(resolve({ usedBy: lost })).rejects.toThrow('was signed for it, and may pay it')
    expect(await resolve({ usedBy: hash })).toMatchObject({ outcome: 'SIGN_ANEW', status: 'PENDING' })
    await steps(wallet)
    expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED' })
    expect(await received(created)).toBe(ONE)
  })

  test.each([
    { verified: true, mode: 'live', chainId: 1, code: 'NODES_DISAGREE' },
    { verified: false, mode: 'live', chainId: 1, code: 'UNRESOLVED' },
    // Signed with the same key for another chain.
    { verified: false, mode: 'sandbox', chainId: 8453, code: 'NONCE_USED' },
  ] as const)(
    'by the lie of a node that hides the payment and shows a losing one ($mode, second node: $verified, chain $chainId): nothing is paid twice',
    async ({ verified, mode, chainId, code }) => {
      const [customer, wallet] = [await newCustomer(service), await newWallet({ verified, mode })]
      const created = await withdraw(customer, 'ETH', '1')
      await step(wallet)
      const paid = (await keptOf(created)).crypto_tx_hash!
      const node = evmNode(anvil.rpcUrl)
      const receipt = await node.call<Receipt>('eth_getTransactionReceipt', paid)
      // The tool had signed with the same nonce, and lost.
      const raw = await signedByTool(wallet, 0, newAddress(), '0.25', chainId)
      const losing = keccak256(raw)
      const shown = {
        ...(await node.call<object>('eth_getTransactionByHash', paid)),
        ...shownAs(raw),
        hash: losing,
      }
      first.lie = ({ method, params }, { result }) => {
        if (params[0] === paid) return { result: null }
        if (params[0] === losing)
          return {
            result: method === 'eth_getTransactionReceipt' ? { ...receipt, transactionHash: losing } : shown,
          }
        if (
          method === 'eth_getBlockByNumber' &&
          Array.isArray((result as { transactions?: unknown })?.transactions)
        ) {
          const block = result as { transactions: (string | { hash: string })[] }
          const replaced = block.transactions.map((one) =>
            typeof one === 'string' ? (one === paid ? losing : one) : one.hash === paid ? shown : one,
          )
          return { result: { ...block, transactions: replaced } }
        }
        if (method === 'eth_getBlockReceipts' && Array.isArray(result))
          return {
            result: (result as { transactionHash: string }[]).map((one) =>
              one.transactionHash === paid ? { ...one, transactionHash: losing } : one,
            ),
          }
        return undefined
      }
      await steps(wallet)
      expect(await waiting(created)).toMatchObject({ waiting_code: code })
      await expect(
        resolveWithdrawal(service.db, wallet.networks, created.id, {
          outcome: { usedBy: losing },
          evidence: 'the explorer',
          origin: TEST_ORIGIN,
        }),
      ).rejects.toThrow(/is not signed anew/)
      expect(await received(created)).toBe(ONE)
      first.tellTheTruth()
      await service.owner.query('delete from freezes')
      await steps(wallet)
      expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED', crypto_tx_hash: paid })
      expect(await received(created)).toBe(ONE)
    },
  )

  test('is asked for again before the withdrawal is signed anew: a row of the database does not do', async () => {
    const [customer, wallet] = [await newCustomer(service), await newWallet()]
    const foreign = await overtaken(customer, wallet)
    await steps(wallet, 2 * CONFIRMATIONS + 4)
    const created = await withdraw(customer, 'ETH', '1')
    await step(wallet)
    // Whoever has the service's role writes that another transaction has used its nonce.
    const { rowCount } = await service.db.query(
      'update network_transactions set used_by = $2 where transfer_ids @> array[$1::uuid]',
      [created.id, foreign.hash],
    )
    expect(rowCount).toBe(1)
    await service.db.query(
      `update outgoing_transfers
       set state = 'HELD', raw_transaction = null, crypto_tx_hash = null, signed_at = null, broadcast_at = null,
           confirmations = null, confirmations_needed = null
       where transfer_id = $1`,
      [created.id],
    )
    await steps(wallet)
    expect(await keptOf(created)).toEqual({ state: 'HELD', crypto_tx_hash: null })
    expect(await waiting(created)).toMatchObject({
      waiting_code: 'NONCE_USED',
      waiting_detail: `${foreign.hash} has nonce 0, and not 2`,
    })
    expect(await received(created)).toBe(ONE)
  })

  test.each(FAILURES)(
    'and a worker that dies %s any one statement: the withdrawal is paid once',
    async (failure) => {
      const [customer, wallet] = [await newCustomer(service), await newWallet()]
      await anvil.chain.setBalance({ address: wallet.hotWallet.address, value: parseAmount('1000', 18)! })
      await dieAtEachStep(failure, 20, async (failures) => {
        const { created } = await overtaken(customer, wallet)
        const db = failures.database(service.db)
        const networks = new Map([['ETHEREUM', evmAdapter('ETHEREUM', wallet.config, db)]]) as Networks
        for (let round = 1; round <= 2 * CONFIRMATIONS + 4 && !failures.died; round++) {
          await work(service.db, networks, db).catch(() => undefined)
          await anvil.chain.mine({ blocks: 1 })
        }
        await steps(wallet, 2 * CONFIRMATIONS + 4)
        expect(await read(customer, created)).toMatchObject({ status: 'COMPLETED' })
        expect(await received(created)).toBe(ONE)
      })
    },
    240_000,
  )
})

/** A signed transaction as a node shows it. */
function shownAs(raw: Hex) {
  const {
    to,
    value = 0n,
    nonce = 0,
    chainId,
    gas,
    r,
    s,
    yParity,
    maxFeePerGas,
    maxPriorityFeePerGas,
  } = parseTransaction(raw as `0x02${string}`)
  const hex = (one: bigint | number | undefined) => numberToHex(one ?? 0)
  return {
    ...{
      to,
      value: hex(value),
      nonce: hex(nonce),
      chainId: hex(chainId),
      gas: hex(gas),
      r,
      s,
      yParity: hex(yParity),
      v: hex(yParity),
    },
    ...{ maxFeePerGas: hex(maxFeePerGas), maxPriorityFeePerGas: hex(maxPriorityFeePerGas), input: '0x' },
  }
}
