import type { Hex } from 'viem'
import { hexToBigInt } from 'viem/utils'
import { NOTHING_ELSE } from '../../src/networks/one-node.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'
import { doubtOf, requireWord, wordOf, type Question, type SecondWord } from '../kit/second-word.ts'
import type { EvmChain } from './chain.ts'
import { confirmedHead } from './confirmations.ts'
import { at, type EvmNode, type Receipt } from './node.ts'

/**
 * One node's word is not believed where a lie would pay. A block's own hash is no second word: whoever makes up the block
 * makes up those after it, too. In a sandbox, whose money is invented, one node suffices.
 */

/** A transaction as a second node has it. */
interface Seen {
  receipt: Receipt
  transaction: { from: Hex; to: Hex | null; value: Hex; nonce: Hex }
}
type Objection = (seen: Seen, node: EvmNode) => string | undefined | Promise<string | undefined>

/** Asks a second node for a transaction in this block, which must be confirmed and in that node's chain, too. */
export async function askSecondNode(
  { node, confirmations, chainId }: Pick<EvmChain, 'node' | 'confirmations' | 'chainId'>,
  { number, hash }: { number: bigint; hash: string },
  transactionHash: string,
): Promise<Seen | NonNullable<SecondWord>> {
  const found = hexToBigInt(await node.call<Hex>('eth_chainId'))
  if (found !== BigInt(chainId)) return { waits: `is on chain ${found}, not ${chainId}` }
  const confirmed = await confirmedHead({ node, confirmations })
  if (confirmed < number) return { waits: `has confirmed block ${confirmed}, and not yet ${number}` }
  const block = await node.call<{ hash: Hex; transactions: Hex[] } | null>(
    'eth_getBlockByNumber',
    at(number),
    false,
  )
  if (block === null) return { waits: `does not have block ${number}` }
  if (block.hash !== hash) return { differs: `has ${block.hash} as block ${number}, not ${hash}` }
  if (!block.transactions.includes(transactionHash as Hex))
    return { differs: `has no such transaction in block ${number}` }
  const [receipt, transaction] = await node.all<unknown>([
    ['eth_getTransactionReceipt', transactionHash],
    ['eth_getTransactionByHash', transactionHash],
  ])
  // The block has the transaction, so that its receipt is only a matter of time.
  if (receipt === null || transaction === null) return { waits: `has no receipt of ${transactionHash} yet` }
  return { receipt, transaction } as Seen
}

/** The word of a node that has answered so: what it has may still be objected to. */
export async function wordIn(
  answer: Awaited<ReturnType<typeof askSecondNode>>,
  objection: (seen: Seen) => ReturnType<Objection>,
): Promise<SecondWord> {
  if (!('receipt' in answer)) return answer
  const differs = await objection(answer)
  return differs === undefined ? undefined : { differs }
}

/** Why a confirmed receipt is not believed yet, whatever the amount; undefined where second nodes have the same. */
export function doubtOfReceipt(
  chain: EvmChain,
  receipt: Receipt,
  alone?: string,
): Promise<WaitingReason | undefined> {
  const { transactionHash, blockNumber, status } = receipt
  const says = `the node has ${transactionHash} in block ${hexToBigInt(blockNumber)} with status ${hexToBigInt(status)}`
  return doubtOf({ second: chain.verify, mode: chain.mode }, says, askOfReceipt(chain, receipt), alone)
}

/** Asks second nodes for the same receipt: in the same block, with the same status. */
const askOfReceipt =
  (
    chain: EvmChain,
    { transactionHash, blockNumber, blockHash, status }: Receipt,
    objection: Objection = () => undefined,
  ): Question<EvmNode> =>
  async (node) => {
    const block = { number: hexToBigInt(blockNumber), hash: blockHash }
    return wordIn(await askSecondNode({ ...chain, node }, block, transactionHash), (seen) =>
      seen.receipt.status === status && seen.receipt.blockHash === blockHash
        ? objection(seen, node)
        : `has status ${hexToBigInt(seen.receipt.status)} in block ${seen.receipt.blockHash}`,
    )
  }

/**
 * For an operator's command: throws an Error where second nodes have something else than this confirmed transaction, cannot
 * tell, or have what the caller objects to; in live mode also where there is none.
 */
export async function requireSecondWord(
  chain: EvmChain,
  receipt: Receipt,
  objection: Objection,
): Promise<void> {
  const { verify } = chain
  if (verify === undefined) {
    if (chain.mode === 'live') throw new Error(`${receipt.transactionHash}: ${NOTHING_ELSE}`)
    return
  }
  requireWord(receipt.transactionHash, await wordOf(verify, askOfReceipt(chain, receipt, objection)))
}
