import type { Buffer } from 'node:buffer'
import { bytesToHex } from 'viem/utils'
import { walletsOf, type EvmChain } from './chain.ts'
import { within } from '../kit/nodes.ts'
import { knownAmong } from './confirmations.ts'
import { countAt, NodeError, says } from './node.ts'
import { isAsked, parse, signedBy, type Sent } from './transaction.ts'
import type { BroadcastAnswer, BroadcastWithdrawal, SignedTransaction } from '../../src/networks/network.ts'

/**
 * Broadcasts signed withdrawals. None is ever refused for good: it has a nonce, and is mined sooner or later. A
 * withdrawal that the node does not accept now is broadcast again.
 */
export async function broadcast(
  chain: EvmChain,
  withdrawals: BroadcastWithdrawal[],
): Promise<BroadcastAnswer[]> {
  await chain.ready()
  const rejections = await send(chain, withdrawals)
  return rejections.map((rejection) =>
    rejection === undefined
      ? { accepted: true }
      : { accepted: false, reason: { code: 'NODE_REFUSED', detail: rejection.reason } },
  )
}

/** Most transactions of a wallet that one call broadcasts again: nodes keep 64 of an account (geth). */
export const REBROADCAST_MAX = 64

/** Broadcasts unmined transactions again: of each wallet, those with the lowest nonces. Leaves out simulated ones. */
export async function rebroadcast(chain: EvmChain, kept: readonly SignedTransaction[]): Promise<void> {
  await chain.ready()
  for (const { address } of walletsOf(chain)) {
    const own = await signedBy(address, kept)
    if (own.length === 0) continue
    const count = await countAt(chain.node, address, 'latest')
    const waiting = own
      .filter(({ raw_transaction }) => !isAsked(raw_transaction) && nonceOf(raw_transaction) >= count)
      .sort((a, b) => nonceOf(a.raw_transaction) - nonceOf(b.raw_transaction))
    await send(
      chain,
      waiting.slice(0, REBROADCAST_MAX).map((transaction) => ({ ...transaction, replaced: [] })),
    )
  }
}

const nonceOf = (raw: Buffer): number => parse(raw).nonce

/** Why a node does not accept a transaction now. */
export interface Rejection {
  reason: string
  /** Its fees are too low for now: `replacement` raises them. */
  isTooCheap: boolean
}

const isTaken = (answer: unknown): boolean =>
  !(answer instanceof Error) || (answer instanceof NodeError && says(answer, 'known'))

/**
 * Broadcasts stored bytes to every node, in the order of their nonces. Returns for each the reason why none accepts it, or
 * undefined. A transaction that a node already has, or that is mined, counts as accepted. The other nodes are waited for
 * where the first refuses or is silent.
 */
export async function send(chain: EvmChain, sent: readonly Sent[]): Promise<(Rejection | undefined)[]> {
  const inOrder = [...sent].sort((a, b) => nonceOf(a.raw_transaction) - nonceOf(b.raw_transaction))
  const calls = inOrder.map(
    ({ raw_transaction }) => ['eth_sendRawTransaction', bytesToHex(raw_transaction)] as const,
  )
  const failed = (error: Error): unknown[] => calls.map(() => error)
  const others = chain.nodes.filter(({ node }) => node !== chain.node)
  const elsewhere = others.map(({ node }) => within(node.each(calls)).catch(failed))
  const answers = await chain.node.each(calls).catch(failed)
  const taken = answers.every(isTaken) ? [] : await Promise.all(elsewhere)
  const rejected = new Map(
    inOrder.flatMap((transaction, index) => {
      const answer = answers[index]
      if ([answers, ...taken].some((some) => isTaken(some[index]))) return []
      if (!(answer instanceof NodeError)) throw answer
      const reason = `the node does not take nonce ${nonceOf(transaction.raw_transaction)} yet: ${answer.message}`
      return [[transaction, { reason, isTooCheap: says(answer, 'feeTooLow') }] as const]
    }),
  )
  // A node answers 'nonce too low' both for a mined transaction and for a transaction that can never be mined. Only a
  // look-up shows which it is.
  const known = await knownAmong(chain, [...rejected.keys()])
  return sent.map((transaction) => (known.has(transaction) ? undefined : rejected.get(transaction)))
}
