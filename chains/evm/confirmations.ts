import { LRUCache } from 'lru-cache'
import type { Hex } from 'viem'
import { hexToBigInt } from 'viem/utils'
import { at, NodeError, type Block, type Call, type Finality, type Receipt } from './node.ts'
import type { EvmChain } from './chain.ts'
import { isBelowBaseFee } from './fees.ts'
import { hashesOf } from '../kit/nonce-used.ts'
import { isOurs, parse, signedBy, type Sent } from './transaction.ts'
import type { Confirmations } from '../../src/networks/network.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'

/** The depth at which blocks are confirmed, for people: 3 confirmations, or the finalized block. */
export const depthText = (confirmations: Finality): string =>
  typeof confirmations === 'bigint' ? `${confirmations} confirmations` : `the ${confirmations} block`

/** The number of the newest confirmed block; 0 where the chain has no such block yet. */
export async function confirmedHead(chain: Pick<EvmChain, 'node' | 'confirmations'>): Promise<bigint> {
  const [answer] = await chain.node.each<unknown>([headCall(chain.confirmations)])
  return confirmedIn(answer, chain.confirmations)
}

const headCall = (confirmations: Finality): Call =>
  typeof confirmations === 'bigint' ? ['eth_blockNumber'] : ['eth_getBlockByNumber', confirmations, false]

/** The number of the newest confirmed block, from the answer to `headCall`. */
function confirmedIn(answer: unknown, confirmations: Finality): bigint {
  if (answer instanceof NodeError && typeof confirmations === 'bigint') throw answer
  if (typeof confirmations === 'bigint') {
    const head = hexToBigInt(answer as Hex)
    return head < confirmations ? 0n : head - confirmations + 1n
  }
  if (answer instanceof NodeError || answer === null)
    throw new NodeFailure(
      `the node names no ${confirmations} block: give confirmations as a number, or use another node`,
    )
  return hexToBigInt((answer as Block).number)
}

/**
 * The state of a transaction or of a transaction that it replaced. MINED: a block contains it, and `isConfirmed` says
 * whether that block is confirmed and in the node's canonical chain. UNKNOWN: the node does not have the transaction;
 * `isPassed`: its nonce may be used in a block all the same. `isTooCheap`: its fee is below the base fee, so that no block
 * can have it now.
 */
export type ConfirmationState =
  | { state: 'MINED'; receipt: Receipt; isConfirmed: boolean; confirmations?: Confirmations }
  | { state: 'PENDING'; isTooCheap?: true }
  | { state: 'UNKNOWN'; isPassed?: true; isTooCheap?: true }

/**
 * The state of each transaction. The head is read before the receipts, so that no block seems confirmed too early. A receipt
 * counts only if the canonical chain has its block: a node that lags, or a backend on another fork, still has receipts of
 * blocks that were replaced.
 */
export async function standingsOf(chain: EvmChain, sent: readonly Sent[]): Promise<ConfirmationState[]> {
  const confirmed = await confirmedHead(chain)
  const receipts = await receiptsOf(chain, sent)
  const canonical = await canonicalAmong(chain, confirmed, [...receipts.values()])
  const seen = await seenAmong(
    chain,
    sent.filter((transaction) => !receipts.has(transaction)),
  )
  return sent.map((transaction): ConfirmationState => {
    const receipt = receipts.get(transaction)
    if (receipt === undefined) return { state: seen.has(transaction) ? 'PENDING' : 'UNKNOWN' }
    return { state: 'MINED', receipt, isConfirmed: canonical.has(receipt.blockHash) }
  })
}

/** What the node has of transactions by a method that takes a hash, theirs or, by default, also of those that they replaced. */
async function foundOf<Answer>(
  { node }: EvmChain,
  method: string,
  sent: readonly Sent[],
  hashes: (sent: Sent) => string[] = hashesOf,
): Promise<Map<Sent, Answer>> {
  const owners = sent.flatMap((owner) => hashes(owner).map((hash) => [owner, hash] as const))
  const answers = await node.all<Answer | null>(owners.map(([, hash]) => [method, hash]))
  const found = new Map<Sent, Answer>()
  for (const [index, [owner]] of owners.entries()) {
    const answer = answers[index]!
    if (answer !== null && !found.has(owner)) found.set(owner, answer)
  }
  return found
}

/** The receipts that the node has, of the transactions or of those that they replaced. */
const receiptsOf = (chain: EvmChain, sent: readonly Sent[]) =>
  foundOf<Receipt>(chain, 'eth_getTransactionReceipt', sent)

/** The transactions that the node has, in a block or waiting for one, or of which it has one that they replaced. */
export const knownAmong = (chain: EvmChain, sent: readonly Sent[]) =>
  foundOf<object>(chain, 'eth_getTransactionByHash', sent)

/** The hashes of the receipts' blocks that are confirmed and in the canonical chain. */
async function canonicalAmong(
  { node }: EvmChain,
  confirmed: bigint,
  receipts: readonly Receipt[],
): Promise<Set<Hex>> {
  const numbers = [...new Set(receipts.map(({ blockNumber }) => hexToBigInt(blockNumber)))]
  const blocks = await node.all<Block | null>(
    numbers
      .filter((number) => number <= confirmed)
      .map((number) => ['eth_getBlockByNumber', at(number), false] as const),
  )
  return new Set(blocks.flatMap((block) => (block === null ? [] : [block.hash])))
}

/** The transactions whose current bytes the node has, in a block or waiting for one. */
const seenAmong = (chain: EvmChain, sent: readonly Sent[]) =>
  foundOf<object>(chain, 'eth_getTransactionByHash', sent, ({ crypto_tx_hash }) => [crypto_tx_hash])

/** Most transactions that a follower remembers. A receipt of a token transfer takes about 2 kB. */
const REMEMBERED_MAX = 5_000

export interface HotWalletFollower {
  follow: (sent: readonly Sent[]) => Promise<ConfirmationState[]>
  /** Makes the next call ask for this receipt again: its answer is doubtful. */
  markStale: (receipt: Receipt) => void
}

/**
 * Follows the transactions of the wallets that pay with few calls. At each block, a wallet's nonce says which of them were
 * mined since, and only their receipts are asked for, once. The receipt is kept in memory until its block is confirmed, and
 * is then compared with the canonical chain. For 500 transactions over 12 blocks, that is 500 receipts, instead of 6,000 and
 * 1,000 look-ups by hash. A receipt that is forgotten, as by a restart, is asked for again.
 */
export function hotWalletFollower(chain: EvmChain): HotWalletFollower {
  const { node, lanes, confirmations } = chain
  const receipts = new LRUCache<string, Receipt>({ max: REMEMBERED_MAX })
  /** The head at which the node was last seen to have these bytes. */
  const seenAt = new LRUCache<string, string>({ max: REMEMBERED_MAX })

  async function follow(sent: readonly Sent[]): Promise<ConfirmationState[]> {
    const [newest, confirmedBlock, ...counts] = await node.each<unknown>([
      ['eth_getBlockByNumber', 'latest', false],
      headCall(confirmations),
      ...lanes.flatMap(({ address }) =>
        (['latest', 'pending'] as const).map((tag) => ['eth_getTransactionCount', address, tag] as const),
      ),
    ])
    for (const answer of [newest, ...counts]) if (answer instanceof NodeError) throw answer
    const { number: head, baseFeePerGas = '0x0' } = newest as Block
    const confirmed = confirmedIn(confirmedBlock, confirmations)

    const notMined = new Set<Sent>()
    const known = new Set<Sent>()
    // A former hot wallet's transactions are asked for one by one.
    for (const [lane, { address }] of lanes.entries()) {
      const [mined, pending] = [0, 1].map((tag) => Number(hexToBigInt(counts[2 * lane + tag] as Hex)))
      for (const transaction of await signedBy(address, sent)) {
        const { nonce } = parse(transaction.raw_transaction)
        if (nonce < mined!) continue
        // An earlier receipt is from a block that was replaced since.
        notMined.add(transaction)
        for (const hash of hashesOf(transaction)) receipts.delete(hash)
        // When two transactions have the same nonce, only a look-up by hash shows which of them the node has.
        const isQueued = nonce < pending! && transaction.replaced.length === 0
        if (isQueued || seenAt.get(transaction.crypto_tx_hash) === head) known.add(transaction)
      }
    }
    const kept = (transaction: Sent) => hashesOf(transaction).find((hash) => receipts.has(hash))
    const asked = sent.filter((transaction) => !notMined.has(transaction) && kept(transaction) === undefined)
    for (const receipt of (await receiptsOf(chain, asked)).values())
      receipts.set(receipt.transactionHash, receipt)

    const receiptOf = (transaction: Sent) => receipts.get(kept(transaction) ?? '')
    const found = sent.flatMap((transaction) => receiptOf(transaction) ?? [])
    const canonical = await canonicalAmong(chain, confirmed, found)
    const seen = await seenAmong(
      chain,
      sent.filter((transaction) => receiptOf(transaction) === undefined && !known.has(transaction)),
    )
    for (const { crypto_tx_hash } of seen.keys()) seenAt.set(crypto_tx_hash, head)
    return sent.map((transaction): ConfirmationState => {
      const receipt = receiptOf(transaction)
      if (receipt === undefined) {
        const isBelow =
          isOurs(transaction.raw_transaction) &&
          isBelowBaseFee(transaction.raw_transaction, hexToBigInt(baseFeePerGas))
        const tooCheap = isBelow && { isTooCheap: true as const }
        if (known.has(transaction) || seen.has(transaction)) return { state: 'PENDING', ...tooCheap }
        return { state: 'UNKNOWN', ...(!notMined.has(transaction) && { isPassed: true }), ...tooCheap }
      }
      const isDeepEnough = hexToBigInt(receipt.blockNumber) <= confirmed
      const isConfirmed = isDeepEnough && canonical.has(receipt.blockHash)
      // Its block was replaced: the next call asks for the receipt again.
      if (isDeepEnough && !isConfirmed) receipts.delete(receipt.transactionHash)
      const depth = Number(hexToBigInt(head) - hexToBigInt(receipt.blockNumber)) + 1
      const needed = typeof confirmations === 'bigint' && { needed: Number(confirmations) }
      // Behind a load balancer, the node that gave the head may lag behind the one that gave the receipt.
      return { state: 'MINED', receipt, isConfirmed, confirmations: { seen: Math.max(depth, 1), ...needed } }
    })
  }
  return { follow, markStale: ({ transactionHash }) => void receipts.delete(transactionHash) }
}
