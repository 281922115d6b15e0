import type { Hex } from 'viem'
import { hexToBigInt } from 'viem/utils'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import { NOTHING_ELSE } from '../../src/networks/one-node.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'
import { doubtOf, type SecondWord } from '../kit/second-word.ts'
import type { EvmChain } from './chain.ts'
import { confirmedHead } from './confirmations.ts'
import { at, type Receipt } from './node.ts'

/**
 * One node's word is not believed where a lie would pay. A block's own hash is no second word: whoever makes up the block
 * makes up those after it, too. In a sandbox, whose money is invented, one node suffices.
 */

/** A transaction as the second node has it; or why it cannot tell yet, or what it says instead. */
export type SecondAnswer =
  | { receipt: Receipt; transaction: { from: Hex; to: Hex | null; value: Hex; nonce: Hex } }
  | { waits: string }
  | { differs: string }

/** Asks the second node for a transaction in this block, which must be confirmed and in the second node's chain, too. */
export async function askSecondNode(
  {
    verify,
    confirmations,
    chainId,
  }: Pick<EvmChain, 'confirmations' | 'chainId'> & Required<Pick<EvmChain, 'verify'>>,
  { number, hash }: { number: bigint; hash: string },
  transactionHash: string,
): Promise<SecondAnswer> {
  const { node } = verify
  try {
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
    return { receipt, transaction } as SecondAnswer
  } catch (error) {
    if (error instanceof NodeFailure) return { waits: `cannot tell: ${error.message}` }
    throw error
  }
}

/** Why a confirmed receipt is not believed yet, whatever the amount; undefined where the second node has the same. */
export function doubtOfReceipt(
  chain: EvmChain,
  receipt: Receipt,
  alone?: string,
): Promise<WaitingReason | undefined> {
  const { transactionHash, blockNumber, status } = receipt
  const says = `the node has ${transactionHash} in block ${hexToBigInt(blockNumber)} with status ${hexToBigInt(status)}`
  const ask = async (verify: NonNullable<EvmChain['verify']>): Promise<SecondWord> => {
    const answer = await askOfReceipt({ ...chain, verify }, receipt)
    return 'receipt' in answer ? undefined : answer
  }
  return doubtOf({ second: chain.verify, mode: chain.mode }, says, ask, alone)
}

/** Asks the second node for the same receipt: in the same block, with the same status. */
async function askOfReceipt(
  chain: Parameters<typeof askSecondNode>[0],
  { transactionHash, blockNumber, blockHash, status }: Receipt,
): Promise<SecondAnswer> {
  const block = { number: hexToBigInt(blockNumber), hash: blockHash }
  const answer = await askSecondNode(chain, block, transactionHash)
  if (!('receipt' in answer)) return answer
  const { receipt } = answer
  return receipt.status === status && receipt.blockHash === blockHash
    ? answer
    : { differs: `has status ${hexToBigInt(receipt.status)} in block ${receipt.blockHash}` }
}

/**
 * A confirmed transaction as the second node has it, for an operator's command; undefined in a sandbox without a second
 * node. Throws an Error where the second node says something else or cannot tell, and in live mode where there is none.
 */
export async function requireSecondWord(chain: EvmChain, receipt: Receipt) {
  const { verify } = chain
  if (verify === undefined) {
    if (chain.mode === 'live') throw new Error(`${receipt.transactionHash}: ${NOTHING_ELSE}`)
    return undefined
  }
  const answer = await askOfReceipt({ ...chain, verify }, receipt)
  if ('receipt' in answer) return { ...answer, node: verify.node }
  const says = 'waits' in answer ? answer.waits : answer.differs
  throw new Error(`${receipt.transactionHash}: the second node ${says}`)
}
