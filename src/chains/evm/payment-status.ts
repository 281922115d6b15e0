import { hexToBigInt } from 'viem/utils'
import { offChain, type EvmChain } from './chain.ts'
import type { HotWalletFollower } from './confirmations.ts'
import { NATIVE_INDEX } from './deposit-scan.ts'
import { feePaid } from './fees.ts'
import type { Receipt } from './node.ts'
import { doubtOf } from './second-word.ts'
import { endOfAsked, endOfNonce } from './nonce-used.ts'
import { refusalOf } from './refusals.ts'
import { judgeAlone } from '../judge-alone.ts'
import { amountIn, isAsked, loggedTransfer, logIndexOf, parse, type LoggedTransfer } from './transaction.ts'
import type { BroadcastWithdrawal, PaymentStatus } from '../network.ts'

/** How far the transaction of each withdrawal is, and the outcome of the confirmed ones. */
export async function checkStatus(
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
  const statuses: PaymentStatus[] = []
  for (const withdrawal of withdrawals) {
    const standing = standings.get(withdrawal)
    if (standing === undefined) {
      statuses.push(await endOfAsked(chain, withdrawal))
      continue
    }
    if (standing.state !== 'MINED') {
      const used = 'isPassed' in standing ? await endOfNonce(chain, withdrawal) : undefined
      const { state, isTooCheap } = standing
      statuses.push(used ?? { state, ...(isTooCheap && { isTooCheap }) })
      continue
    }
    if (!standing.isConfirmed) {
      const { confirmations } = standing
      statuses.push({ state: 'MINED', ...(confirmations && { confirmations }) })
      continue
    }
    const { receipt } = standing
    const outcome = await judgeAlone(() => believed(chain, outcomeOf(chain, withdrawal, receipt), receipt))
    if (outcome.state === 'UNRESOLVED') markStale(receipt)
    statuses.push(outcome)
  }
  return statuses
}

/** A failure refunds the withdrawal. By a single node's false word, the withdrawal would be both paid and refunded. */
async function believed(chain: EvmChain, outcome: PaymentStatus, receipt: Receipt): Promise<PaymentStatus> {
  if (outcome.state !== 'FAILED') return outcome
  const reason = await doubtOf(chain, receipt)
  if (reason === undefined) return outcome
  const { networkFee } = outcome
  return {
    state: 'UNRESOLVED',
    reason,
    crypto_tx_hash: receipt.transactionHash,
    crypto_tx_index: NATIVE_INDEX,
    ...(networkFee && { networkFee }),
  }
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
    const refusal = refusalOf(withdrawal, `the network reverted transaction ${crypto_tx_hash}`)
    // The recipient decides about the code at a destination of native coins, and the gas that a token's transfer to it takes.
    const isFull = hexToBigInt(receipt.gasUsed) >= transaction.gas
    const byRecipient = (transaction.data === undefined || isFull) && { byRecipient: true as const }
    return { state: 'FAILED', refusal, networkFee, ...byRecipient }
  }
  const unresolved = (detail: string, transfer?: LoggedTransfer): PaymentStatus => {
    const crypto_tx_index = transfer === undefined ? NATIVE_INDEX : logIndexOf(transfer.log)
    const reason = { code: 'UNRESOLVED', detail: `${detail}${RESOLVE}` } as const
    return { state: 'UNRESOLVED', reason, crypto_tx_hash, crypto_tx_index, networkFee }
  }
  if (status !== '0x1')
    return unresolved(`the receipt of ${crypto_tx_hash} does not say whether it succeeded`)
  const confirmed = (crypto_tx_index: string): PaymentStatus => {
    return { state: 'CONFIRMED', crypto_tx_hash, crypto_tx_index, networkFee }
  }
  if (transaction.data === undefined) return confirmed(NATIVE_INDEX)
  const { asset } = withdrawal
  const transfer = loggedTransfer(transaction, receipt)
  if (transfer === undefined)
    return unresolved(`${crypto_tx_hash} succeeded, and its receipt has no transfer of ${asset}`)
  const asked = amountIn(transaction.data)
  if (transfer.amount === asked) return confirmed(logIndexOf(transfer.log))
  const text = (units: bigint) => amountText(chain, asset, units)
  return unresolved(
    `${asset} delivered ${text(transfer.amount)} of ${text(asked)} by ${crypto_tx_hash}`,
    transfer,
  )
}

const RESOLVE = `: look at the destination's balance, then say so by 'bursar withdrawal resolve'`

/** An amount for people. A token that is not configured any more has unknown decimals. */
const amountText = (chain: EvmChain, asset: string, units: bigint): string =>
  asset === chain.gasAsset || chain.tokens.has(asset) ? offChain(chain, asset, units) : `${units} units`
