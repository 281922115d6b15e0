import { PASSING_CODES, type WaitingCode } from '../../../src/contract/waiting-codes.ts'
import { after, ago, inWords, lengthOf, moment, readable, short } from '../format.ts'
import type { Network, NetworkTransaction, Transfer, TransferHistory } from '../records.ts'

/** Where a transfer is, since when, what is usual, and what happens next: in words, from its history. */

/** How long transfers of a kind took, from the request to their end: the middle of the latest, and the slowest of them. */
export interface Usual {
  seconds: number
  slowestSeconds: number
}

type Kind = Pick<Transfer, 'type' | 'crypto_network'>
const ageOf = ({ created_at }: Transfer, end: number) => (end - Date.parse(created_at)) / 1000

/** What is usual for a kind of transfer, by the completed ones among these. Undefined where none is of its kind. */
export function usualOf(completed: readonly Transfer[], kind: Kind): Usual | undefined {
  const took = completed
    .filter(({ type, crypto_network }) => type === kind.type && crypto_network === kind.crypto_network)
    .map((transfer) => ageOf(transfer, Date.parse(transfer.updated_at)))
    .sort((a, b) => a - b)
  const seconds = took[Math.floor(took.length / 2)]
  return seconds === undefined ? undefined : { seconds, slowestSeconds: took.at(-1)! }
}

/** How long a transfer may wait where none of its kind has completed yet. */
const UNKNOWN_SECONDS = 600

/** A person sends wires once a day. */
const WIRE_SECONDS = 86_400

/** Whether a transfer waits for longer than each of the latest of its kind took; for 10 minutes where there is none. */
export const isLate = (transfer: Transfer, completed: readonly Transfer[], now: number): boolean =>
  ageOf(transfer, now) >
  (transfer.type.startsWith('WIRE_')
    ? WIRE_SECONDS
    : (usualOf(completed, transfer)?.slowestSeconds ?? UNKNOWN_SECONDS))

const passes = (code: string) => PASSING_CODES.some((passing) => passing === code)

/** What ends a reason to wait that does not pass by itself. */
const ENDS: Partial<Record<WaitingCode, string>> = {
  FEE_ABOVE_CEILING: "the network's fee falls",
  FEE_NOT_COVERED: 'the hot wallet can pay the fee',
  FROZEN: 'the freeze is lifted',
  HOT_WALLET_SHORT: 'the hot wallet is filled',
  NOT_APPROVED: 'the account or identity is approved',
  NOT_PAID_IN: 'as much was deposited over this network',
  SCREENING: 'the screening allows it',
  WAITING_SIGNATURE: 'a person has signed it',
  WALLET_LOCKED: 'a person unlocks the wallet',
  WIRE_TAKEN: 'the operator says what became of it',
  WIRE_TO_TAKE: 'an operator takes and sends it',
}

function nextAfter(code: string): string {
  if (passes(code)) return 'It is tried again by itself.'
  const end = ENDS[code as WaitingCode]
  return end === undefined ? 'An operator must look at it.' : `It goes on when ${end}.`
}

/** What the state is told from, besides the history. */
export interface Known {
  /** In milliseconds. */
  now: number
  network?: Network | undefined
  usual?: Usual | undefined
}

/** The state of a transfer in one or a few short sentences, for an operator. */
export function stateOf(history: TransferHistory, known: Known): string {
  const { status, direction } = history.transfer
  if (status === 'COMPLETED') return completed(history)
  if (status === 'FAILED') return failed(history)
  const usual = known.usual === undefined ? '' : ` Usually ${lengthOf(known.usual.seconds)} in all.`
  const [where, next] = direction === 'DEBIT' ? payment(history, known) : deposit(history, known)
  return readable(`${where}${usual} ${next}`)
}

const nameOf = ({ crypto_network }: Transfer) =>
  crypto_network === undefined ? 'the bank' : inWords(crypto_network)
/** The transaction that pays now. Those that it has replaced come before it. */
const currentOf = ({ transactions }: TransferHistory) =>
  transactions.findLast(({ state }) => state !== 'REPLACED')

function completed({ transfer }: TransferHistory): string {
  const { type, direction, crypto_tx_hash, created_at, updated_at } = transfer
  const verb = type.includes('TRANSFER') ? 'Moved' : direction === 'DEBIT' ? 'Paid' : 'Credited'
  const where =
    crypto_tx_hash === undefined ? '' : `, in transaction ${short(crypto_tx_hash)} on ${nameOf(transfer)}`
  const began = direction === 'DEBIT' ? 'the request' : 'it was seen'
  const took = created_at === updated_at ? '' : `, ${after(created_at, updated_at).slice(1)} after ${began}`
  return `${verb} on ${moment(updated_at)}${took}${where}.`
}

function failed({ transfer, entries }: TransferHistory): string {
  const { direction, secondary_status, status_details, updated_at } = transfer
  const reason = secondary_status?.detail ?? Object.values(status_details ?? {})[0]?.message
  const refund = entries.find(({ event }) => event === 'REFUNDED')
  return [
    `Failed on ${moment(updated_at)}${reason === undefined ? '' : `: ${reason}`}.`,
    direction === 'CREDIT' && 'Nothing was credited.',
    refund !== undefined && `The money went back on ${moment(refund.created_at)}.`,
  ]
    .filter(Boolean)
    .join(' ')
}

type Pending = [where: string, next: string]

function payment(history: TransferHistory, known: Known): Pending {
  const { transfer, waiting, approval } = history
  const since = (timestamp: string) => ago(timestamp, known.now)
  const current = currentOf(history)
  if (current !== undefined) return signed(history, current, known)
  if (waiting !== undefined && waiting.code !== 'AWAITING_APPROVAL') {
    const { code, since } = waiting
    const began =
      since === undefined
        ? 'It waits'
        : `${code === 'FROZEN' ? 'Held' : 'It has waited'} since ${moment(since)}`
    // The page Wires does what the command does.
    return [`${began}: ${waiting.detail.replace(/: bursar wire .*$/, '')}.`, nextAfter(code)]
  }
  if (approval?.status === 'PENDING') {
    const { approvals, required, role, created_at, deadline } = approval
    return [
      `It waits for approval, asked for ${since(created_at)}: ${approvals} of ${required} of role ${inWords(role).toLowerCase()} have approved.`,
      `With enough approvals by ${moment(deadline)}, it is signed and sent.`,
    ]
  }
  const { secondary_status, status_details } = transfer
  if (secondary_status !== undefined && approval === undefined) {
    const hold = status_details?.pending_customer_approval
    const isSimulated = hold !== undefined && hold.approval_id === undefined
    return [
      `Held, requested ${since(transfer.created_at)}: ${secondary_status.detail}.`,
      isSimulated
        ? 'The sandbox simulates this hold, and ends it by itself.'
        : 'It goes on when that is done.',
    ]
  }
  return [
    approval === undefined ? `Requested ${since(transfer.created_at)}.` : 'Approved.',
    transfer.type === 'WIRE_WITHDRAWAL' ? 'It goes to the bank next.' : 'It is signed and sent next.',
  ]
}

function signed(
  { transfer, transactions, waiting }: TransferHistory,
  current: NetworkTransaction,
  known: Known,
): Pending {
  const { signed_at, broadcast_at, state } = current
  const since = broadcast_at ?? signed_at ?? transfer.created_at
  const why = waiting === undefined ? '' : ` It waits: ${waiting.detail}.`
  if (state === 'BROADCAST')
    return [
      `Sent ${ago(since, known.now)}; ${confirmed(transfer, current, known)}.${why}`,
      waiting === undefined ? 'It is completed when it is final.' : nextAfter(waiting.code),
    ]
  if (waiting !== undefined && ['WAITING_SIGNATURE', 'SIGNER_DOWN', 'SIGNER_REFUSES'].includes(waiting.code))
    return [`Prepared ${ago(since, known.now)}, and not signed: ${waiting.detail}.`, nextAfter(waiting.code)]
  const earlier = transactions.find(({ broadcast_at }) => broadcast_at !== undefined)?.broadcast_at
  const replaced =
    earlier === undefined
      ? ''
      : ` An earlier transaction was sent ${ago(earlier, known.now)} and may be paid.`
  return [
    `Signed ${ago(since, known.now)}; ${nameOf(transfer)} has not accepted it yet.${replaced}${why}`,
    waiting === undefined ? 'It is broadcast next.' : nextAfter(waiting.code),
  ]
}

function confirmed(
  transfer: Transfer,
  { confirmations, confirmations_needed: needed }: NetworkTransaction,
  { network }: Known,
): string {
  const name = nameOf(transfer)
  if (confirmations === undefined) return `${name} has not confirmed it yet${finalityOf(network)}`
  return needed === undefined
    ? `${name} has it in a block, with ${confirmations} confirmations; its node says when it is final`
    : `${name} has confirmed ${confirmations} of ${needed} blocks`
}

/** What the network's record says of when a transaction is final. */
const finalityOf = ({ confirmations, finality }: Partial<Network> = {}): string =>
  confirmations !== undefined
    ? ` (${confirmations} blocks are needed)`
    : finality !== undefined
      ? ` (it is final when the chain says ${finality.toLowerCase()})`
      : ''

function deposit({ transfer }: TransferHistory, { now, network }: Known): Pending {
  const { type, created_at } = transfer
  return type === 'CRYPTO_DEPOSIT'
    ? [
        `Seen ${ago(created_at, now)} on ${nameOf(transfer)}, and not credited yet${finalityOf(network)}.`,
        'It is credited when it is final.',
      ]
    : [
        `Held since ${moment(created_at)}, and not credited yet.`,
        'It is credited or sent back by a decision.',
      ]
}

/** The same for the customer, without what is internal: amount, destination, state, transaction and reference. */
export function textForCustomer(history: TransferHistory): string {
  const { transfer } = history
  const { type, amount, asset, destination_address, crypto_network, ref_id } = transfer
  const hash =
    transfer.crypto_tx_hash ??
    history.transactions.findLast(({ broadcast_at }) => broadcast_at !== undefined)?.crypto_tx_hash
  return [
    `${inWords(type)} of ${amount} ${asset}`,
    destination_address !== undefined && `To: ${destination_address}`,
    crypto_network !== undefined && `Network: ${inWords(crypto_network)}`,
    `State: ${stateForCustomer(history)}`,
    hash !== undefined && `Transaction: ${hash}`,
    ref_id !== undefined && `Reference: ${ref_id}`,
  ]
    .filter(Boolean)
    .join('\n')
}

function stateForCustomer(history: TransferHistory): string {
  const { transfer, entries, transactions, waiting } = history
  const { status, direction, created_at, updated_at } = transfer
  if (status === 'COMPLETED') return `completed on ${moment(updated_at)}`
  if (status === 'FAILED') {
    const refund = entries.find(({ event }) => event === 'REFUNDED')
    const end = direction === 'CREDIT' ? 'not credited' : 'not carried out'
    return refund === undefined ? end : `${end}; the money went back on ${moment(refund.created_at)}`
  }
  if (direction === 'CREDIT') return `seen on ${moment(created_at)}, not credited yet`
  const began = `in progress since ${moment(created_at)}`
  if (waiting?.code === 'WIRE_TAKEN') return `${began}, being sent at the bank`
  // The reason may be a suspicion, which the customer must not read.
  if (waiting?.code === 'FROZEN') return `${began}, held and not sent`
  const current = currentOf(history)
  if (current === undefined) return `${began}, not sent yet`
  // A replacement for a higher fee begins anew, and the first one may be paid.
  const sent = transactions.find(({ broadcast_at }) => broadcast_at !== undefined)
  if (sent === undefined) return `${began}, signed: it may be sent already`
  const { confirmations, confirmations_needed: needed } = current
  const soFar = confirmations === undefined || needed === undefined ? '' : `: ${confirmations} of ${needed}`
  return `sent on ${moment(sent.broadcast_at!)}, waiting for confirmations${soFar}`
}

/** Whether a reason to wait needs a person. An approval is asked for by itself. */
export const needsPerson = (code: string): boolean => !passes(code) && code !== 'AWAITING_APPROVAL'
