import type { Hex } from 'viem'
import { hexToBigInt } from 'viem/utils'
import type { Queryable } from '../../src/db/database.ts'
import { offChain, type EvmChain } from './chain.ts'
import type { HotWalletFollower } from './confirmations.ts'
import { NATIVE_INDEX } from './deposit-scan.ts'
import { feePaid } from './fees.ts'
import { at, NodeError, type Receipt } from './node.ts'
import { doubtOfReceipt } from './second-word.ts'
import { endOfAsked, endOfNonce } from './nonce-used.ts'
import { toBeJudged, unresolved } from '../kit/unresolved.ts'
import { judgeAlone } from '../../src/networks/judge-alone.ts'
import { amountIn, isAsked, loggedTransfer, logIndexOf, parse } from './transaction.ts'
import type { BroadcastWithdrawal, PaymentStatus } from '../../src/networks/network.ts'
import { refusedDestination } from '../../src/networks/waiting.ts'

/** How far the transaction of each withdrawal is, and the outcome of the confirmed ones. */
export async function checkStatus(
  db: Queryable,
  chain: EvmChain,
  { follow, markStale }: HotWalletFollower,
  withdrawals: BroadcastWithdrawal[],
): Promise<PaymentStatus[]> {
  await chain.ready()
  // What the signer process has not answered yet has no hash, but what it is to replace has.
  const signed = withdrawals.filter(
    ({ raw_transaction, isAsked: isWaiting }) => isWaiting || !isAsked(raw_transaction),
  )
  const standings = new Map((await follow(signed)).map((standing, index) => [signed[index]!, standing]))
  const statusOf = async (withdrawal: BroadcastWithdrawal): Promise<PaymentStatus> => {
    const standing = standings.get(withdrawal)
    if (standing === undefined) return endOfAsked(chain, withdrawal)
    if (standing.state !== 'MINED') {
      const used = 'isPassed' in standing ? await endOfNonce(db, chain, withdrawal) : undefined
      const { state, isTooCheap } = standing
      return used ?? { state, ...(isTooCheap && { isTooCheap }) }
    }
    const { receipt, isConfirmed, confirmations } = standing
    if (!isConfirmed) return { state: 'MINED', ...(confirmations && { confirmations }) }
    const outcome = await judgeAlone(() => believed(chain, withdrawal, receipt))
    if (outcome.state === 'UNRESOLVED') markStale(receipt)
    return outcome
  }
  const statuses: PaymentStatus[] = []
  for (const withdrawal of withdrawals) statuses.push(await statusOf(withdrawal))
  return statuses
}

/** A failure refunds the withdrawal. By a single node's false word, the withdrawal would be both paid and refunded. */
async function believed(
  chain: EvmChain,
  withdrawal: BroadcastWithdrawal,
  receipt: Receipt,
): Promise<PaymentStatus> {
  const outcome = outcomeOf(chain, withdrawal, receipt)
  if (outcome.state !== 'FAILED') return outcome
  const { byRecipient, ...failed } = outcome
  const reason = await doubtOfReceipt(chain, receipt)
  if (reason !== undefined) {
    const place = { crypto_tx_hash: receipt.transactionHash, crypto_tx_index: NATIVE_INDEX }
    return unresolved(reason, { ...place, networkFee: failed.networkFee })
  }
  const { to, data } = parse(withdrawal.raw_transaction)
  const isTheirs = data === undefined ? await mayRunCode(chain, to, receipt) : byRecipient
  return { ...failed, ...(isTheirs && { byRecipient: true }) }
}

/**
 * The outcome of a withdrawal whose transaction is in a confirmed block. Its call is read from the signed bytes, since the
 * configuration may have changed.
 *
 * Only status 0 fails the withdrawal: then nothing has moved (`believed` asks for a second word). Status 1 says that the
 * transaction ran: money may have moved, and a refund may pay twice. An operator decides where the receipt lacks the token's
 * log (nodes that are pruned or half synced give such receipts) or has another amount (a token that takes a fee).
 */
function outcomeOf(chain: EvmChain, withdrawal: BroadcastWithdrawal, receipt: Receipt): PaymentStatus {
  const networkFee = feePaid(chain, receipt)
  const { transactionHash: crypto_tx_hash, status } = receipt
  const transaction = parse(withdrawal.raw_transaction)
  if (status === '0x0') {
    const refusal = refusedDestination(withdrawal, `the network reverted transaction ${crypto_tx_hash}`)
    // The recipient decides about the gas that a token's transfer to it takes.
    const isFull = hexToBigInt(receipt.gasUsed) >= transaction.gas
    return { state: 'FAILED', refusal, networkFee, ...(isFull && { byRecipient: true }) }
  }
  const judged = (detail: string, crypto_tx_index = NATIVE_INDEX): PaymentStatus =>
    unresolved(toBeJudged(detail), { crypto_tx_hash, crypto_tx_index, networkFee })
  if (status !== '0x1') return judged(`the receipt of ${crypto_tx_hash} does not say whether it succeeded`)
  const confirmed = (crypto_tx_index: string): PaymentStatus => {
    return { state: 'CONFIRMED', crypto_tx_hash, crypto_tx_index, networkFee }
  }
  if (transaction.data === undefined) return confirmed(NATIVE_INDEX)
  const { asset } = withdrawal
  const transfer = loggedTransfer(transaction, receipt)
  if (transfer === undefined)
    return judged(`${crypto_tx_hash} succeeded, and its receipt has no transfer of ${asset}`)
  const asked = amountIn(transaction.data)
  const index = logIndexOf(transfer.log)
  if (transfer.amount === asked) return confirmed(index)
  const text = (units: bigint) => amountText(chain, asset, units)
  return judged(`${asset} delivered ${text(transfer.amount)} of ${text(asked)} by ${crypto_tx_hash}`, index)
}

/**
 * Whether an address may have had code while the transaction ran: then its owner can have a payment of native coins fail. Without
 * code it cannot. An account that gets code and loses it again within the block (EIP-7702) has another nonce after it.
 */
async function mayRunCode({ node }: EvmChain, address: Hex, { blockNumber }: Receipt): Promise<boolean> {
  const blocks = [hexToBigInt(blockNumber) - 1n, hexToBigInt(blockNumber)].map(at)
  const answers = await node.each<unknown>(
    (['eth_getCode', 'eth_getTransactionCount'] as const).flatMap((method) =>
      blocks.map((block) => [method, address, block] as const),
    ),
  )
  const [codeBefore, code, nonceBefore, nonce] = answers
  // A node without the state of that block cannot tell.
  if (answers.some((answer) => answer instanceof NodeError)) return true
  return codeBefore !== '0x' || code !== '0x' || nonceBefore !== nonce
}

/** An amount for people. A token that is not configured any more has unknown decimals. */
const amountText = (chain: EvmChain, asset: string, units: bigint): string =>
  asset === chain.gasAsset || chain.tokens.has(asset) ? offChain(chain, asset, units) : `${units} units`
