import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import type { Hex } from 'viem'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { deployToken, startAnvil, TOKEN_ABI, type Anvil } from '../../../test/anvil.ts'
import { startLyingNode, type Answer } from '../../../test/lying-node.ts'
import { objectionOfBlock } from './block-proof.ts'
import { evmNode, type Receipt } from './node.ts'

let anvil: Anvil
let liar: Awaited<ReturnType<typeof startLyingNode>>
beforeAll(async () => {
  anvil = await startAnvil(1)
  liar = await startLyingNode(anvil.rpcUrl)
})
afterAll(async () => {
  await liar.stop()
  await anvil.stop()
})
afterEach(() => void liar.tellTheTruth())

/** Makes a block of about this many transactions, of each type, some of them reverted. Returns their receipts. */
async function mixedBlock(count: number): Promise<Receipt[]> {
  const { chain } = anvil
  const address = await deployToken(anvil, 6)
  const accounts = await chain.request<{ ReturnType: Hex[] }>({ method: 'eth_accounts' } as never)
  const delegate = privateKeyToAccount(generatePrivateKey())
  const authorization = await delegate.signAuthorization({ contractAddress: address, chainId: 1, nonce: 0 })
  const accessList = [{ address, storageKeys: [`0x${'01'.repeat(32)}` as const] }]
  const gasPrice = 20_000_000_000n
  await chain.setAutomine(false)
  const hashes: Hex[] = []
  for (let index = 0; index < count; index++) {
    const [account, to] = [accounts[index % 9]!, accounts[8]!]
    const sent = { chain: null, account, to, value: BigInt(index), gas: 200_000n } as const
    const onToken = { chain: null, account, address, abi: TOKEN_ABI, gas: 100_000n } as const
    const kinds = [
      () => chain.sendTransaction({ ...sent, gasPrice, type: 'legacy' }),
      () => chain.sendTransaction({ ...sent, gasPrice, type: 'eip2930', accessList }),
      () => chain.sendTransaction({ ...sent, data: '0x00ff' }),
      () => chain.writeContract({ ...onToken, functionName: 'mint', args: [to, 1n] }),
      // Reverted: nobody has as much.
      () => chain.writeContract({ ...onToken, functionName: 'transfer', args: [to, 10n ** 18n] }),
      () => chain.sendTransaction({ chain: null, account, data: '0x6000600055', gas: 100_000n }),
      () => chain.sendTransaction({ ...sent, authorizationList: [authorization] }),
    ]
    hashes.push(await kinds[index % kinds.length]!())
  }
  await chain.mine({ blocks: 1 })
  await chain.setAutomine(true)
  const receipts = await evmNode(anvil.rpcUrl).all<Receipt | null>(
    hashes.map((hash) => ['eth_getTransactionReceipt', hash] as const),
  )
  // Anvil's mempool keeps some back.
  return receipts.filter((receipt) => receipt !== null)
}

test.for([1, 2, 15, 140])('a block of about %i transactions proves each receipt', async (count) => {
  const receipts = await mixedBlock(count)
  const types = new Set(receipts.map((receipt) => (receipt as Receipt & { type: Hex }).type))
  if (count >= 15) expect([...types].sort()).toEqual(['0x0', '0x1', '0x2', '0x4'])
  for (const receipt of receipts)
    expect(await objectionOfBlock(evmNode(anvil.rpcUrl), receipt)).toBeUndefined()
  const reverted = receipts.filter(({ status }) => status === '0x0')
  if (count >= 15) expect(reverted).not.toEqual([])
})

type Members = Record<string, unknown>
const REVERTED = { status: '0x0' }

test.each<[string, (method: string, result: Members & Members[], hash: Hex) => unknown, RegExp]>([
  ['in its receipt alone', () => undefined, /does not contain it with status 0x0/],
  [
    "in the block's receipts, too",
    (method, all, hash) =>
      method === 'eth_getBlockReceipts'
        ? all.map((one) => (one['transactionHash'] === hash ? { ...one, ...REVERTED } : one))
        : undefined,
    /receipts of block \S+ are not those of its header/,
  ],
  [
    'by the hash of one that was reverted',
    (method, block, hash) => {
      if (method !== 'eth_getBlockByNumber') return undefined
      const [transactions, own] = [block['transactions'] as Members[], { hash }]
      const index = transactions.findIndex((one) => one['hash'] === hash)
      // The fifth of each seven is the reverted one.
      return {
        ...block,
        transactions: transactions.map((one, at) =>
          at === index ? { ...one, hash: transactions[4]!['hash'] } : at === 4 ? { ...one, ...own } : one,
        ),
      }
    },
    /does not contain it with status 0x0/,
  ],
  [
    'by a header with other roots',
    (method, block) =>
      method === 'eth_getBlockByNumber' ? { ...block, receiptsRoot: `0x${'11'.repeat(32)}` } : undefined,
    /header of block \S+ does not hash to/,
  ],
  [
    'without the block',
    (method) => (method === 'eth_getBlockReceipts' ? null : undefined),
    /does not give its block/,
  ],
])('a node that says %s that a payment was reverted is not believed', async (_, told, objection) => {
  const receipts = await mixedBlock(7)
  const paid = receipts.find(({ status }) => status === '0x1')!
  liar.lie = ({ method }, { result }): Answer | undefined => {
    const changed = told(method, result as Members & Members[], paid.transactionHash)
    return changed === undefined ? undefined : { result: changed }
  }
  expect(await objectionOfBlock(evmNode(liar.rpcUrl), { ...paid, ...REVERTED } as Receipt)).toMatch(objection)
})

test('a node without the method, or a block that cannot be read, proves nothing', async () => {
  const [receipt] = await mixedBlock(1)
  liar.lie = ({ method }) =>
    method === 'eth_getBlockReceipts' ? { error: { code: -32601, message: 'Method not found' } } : undefined
  expect(await objectionOfBlock(evmNode(liar.rpcUrl), receipt!)).toMatch(/Method not found/)
  liar.lie = ({ method }, { result }) =>
    method === 'eth_getBlockByNumber'
      ? { result: { ...(result as object), transactions: [{ type: '0x7e', hash: '0x' }] } }
      : undefined
  expect(await objectionOfBlock(evmNode(liar.rpcUrl), receipt!)).toMatch(/cannot be checked/)
})
