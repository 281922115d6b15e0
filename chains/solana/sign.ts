import type { Transaction } from '../../src/db/database.ts'
import type { PaymentRefusal, SignedTransaction, Signing, Withdrawal } from '../../src/networks/network.ts'
import { inOrder } from '../../src/networks/in-order.ts'
import { deferred, refusedDestination, type WaitingReason } from '../../src/networks/waiting.ts'
import { PLATFORM_ID } from '../../src/db/ids.ts'
import { GAS_ASSET, lamportsText, onChain, type SolanaChain } from './chain.ts'
import { plansOf, type Plan } from './destinations.ts'
import { aboveCeiling, priceFor, priceMax, simulate, unitPriceNow } from './fees.ts'
import { keepUsed } from './lanes.ts'
import { failureIn, type TransactionError } from './node.ts'
import { reserve, type Reservation } from './reserve.ts'
import {
  fitTogether,
  instructionsOf,
  parsePayment,
  signPayments,
  targetOf,
  type SolanaPayment,
} from './transaction.ts'

/** How often payments that fail in simulation make place for later ones. */
const ROUNDS_MAX = 3
/** The most payments of a transaction. */
export const PAYMENTS_MAX = 15
/** The payments of one transaction, and the withdrawals that they pay. */
interface Pack {
  withdrawals: Withdrawal[]
  payments: SolanaPayment[]
  /** The units that it takes, once it was simulated. */
  unitLimit?: number | undefined
}
type Ended = { outcome: 'REFUSED'; refusal: PaymentRefusal } | ReturnType<typeof deferred>
type Payable = Extract<Plan, { payment: unknown }>
/** A withdrawal that may be signed is in a pack. */
type Decision = Ended | { pack: Pack }

/**
 * Signs in order the withdrawals that the hot wallet can pay at the current fees, many in a transaction, each of which takes a
 * lane. The others wait, and with them the later ones of the same profile and asset.
 */
export async function sign(
  tx: Transaction,
  chain: SolanaChain,
  withdrawals: Withdrawal[],
): Promise<Signing[]> {
  const facts = await chain.facts()
  const unitPrice = await unitPriceNow(chain)
  const deferAll = (reason: WaitingReason) => withdrawals.map(() => deferred(reason))
  const tooExpensive = aboveCeiling(chain, unitPrice)
  if (tooExpensive !== undefined) return deferAll(tooExpensive)
  const reservation = await reserve(tx, chain, facts, withdrawals, unitPrice)
  const { free, blocked } = reservation.lanes
  if (blocked !== undefined) return deferAll(blocked)
  if (free.length === 0) return deferAll(noLane(reservation))
  const plans = (await plansOf(chain, facts, withdrawals)).map((plan, index) =>
    payableOf(plan, withdrawals[index]!),
  )
  const decisions = await decide(chain, plans, reservation, withdrawals)
  const used: Parameters<typeof keepUsed>[1][number][] = []
  const signed = new Map<Withdrawal, SignedTransaction>()
  const packs = new Set(decisions.flatMap((decision) => ('pack' in decision ? decision.pack : [])))
  for (const [index, pack] of [...packs].entries()) {
    const lane = free[index]!
    const unitLimit = pack.unitLimit!
    const payments = pack.payments.length
    // What a signer process signs is never replaced.
    const least = chain.hotWallet.isRemote ? priceMax(chain, unitLimit, payments) : unitPrice
    const terms = { ...lane, unitLimit, unitPrice: priceFor(chain, least, unitLimit, payments) }
    const bytes = signPayments(chain.hotWallet, pack.payments, terms)
    used.push({ ...lane, signature: bytes.crypto_tx_hash })
    const { transfers } = parsePayment(bytes.raw_transaction)
    for (const [place, withdrawal] of pack.withdrawals.entries())
      signed.set(withdrawal, { ...bytes, crypto_tx_index: transfers[place]!.index, payments })
  }
  await keepUsed(tx, used)
  return decisions.map((decision, index) =>
    'outcome' in decision ? decision : { outcome: 'SIGNED', ...signed.get(withdrawals[index]!)! },
  )
}

function noLane({ lanes: { inFlight, lagging } }: Reservation): WaitingReason {
  if (lagging !== undefined) return lagging
  const detail =
    inFlight === 0
      ? 'the hot wallet has no nonce account yet: the worker makes them, and needs SOL for their rent'
      : `${inFlight} transactions are in flight, one for each nonce account`
  return { code: 'IN_FLIGHT_LIMIT', detail }
}

/**
 * Decides about each withdrawal: first by its destination's accounts, then in order by the wallet's balances and lanes. What
 * may be signed is packed and simulated. A payment that fails there waits or is refused, and the others are packed anew.
 */
async function decide(
  chain: SolanaChain,
  plans: readonly (Payable | Ended)[],
  reservation: Reservation,
  withdrawals: Withdrawal[],
): Promise<Decision[]> {
  const ended = new Map<Withdrawal, Ended>()
  const alone = new Set<Withdrawal>()
  const limits = new Map<string, number>()
  const balances = new Map(reservation.spendable)
  for (let round = 1; ; round++) {
    for (const [asset, units] of balances) reservation.spendable.set(asset, units)
    const packs: Pack[] = []
    const placed = inOrder(withdrawals, (withdrawal, index): Decision => {
      const plan = ended.get(withdrawal) ?? plans[index]!
      if ('outcome' in plan) return plan
      const { payment, rent } = plan
      // A signer process reads no chain: a payment that made others fail would need its approvers for each of them.
      const isAlone = payment.memo !== null || alone.has(withdrawal) || chain.hotWallet.isRemote
      const open = isAlone ? undefined : packs.findLast((pack) => hasRoom(pack, payment, alone))
      if (open === undefined && packs.length === reservation.lanes.free.length)
        return deferred(noLaneLeft(reservation))
      const short = reservation.pay(withdrawal, chain.feeCeiling + rent)
      if (short !== undefined) return deferred(short)
      const pack = open ?? { withdrawals: [], payments: [] }
      if (open === undefined) packs.push(pack)
      pack.withdrawals.push(withdrawal)
      pack.payments.push(payment)
      return { pack }
    })
    for (const pack of packs) pack.unitLimit = limits.get(keyOf(pack))
    const unknown = packs.filter(({ unitLimit }) => unitLimit === undefined)
    if (unknown.length === 0 || round > ROUNDS_MAX)
      return placed.map((decision) =>
        'pack' in decision && unknown.includes(decision.pack) ? deferred(noLaneLeft(reservation)) : decision,
      )
    await Promise.all(
      unknown.map(async (pack) => {
        const { err, unitLimit } = await simulate(chain, pack.payments.flatMap(instructionsOf))
        if (err === null) limits.set(keyOf(pack), unitLimit)
        else await findFaulty(chain, pack, err, ended, alone)
      }),
    )
  }
}

const keyOf = ({ withdrawals }: Pack) => withdrawals.map(({ transfer_id }) => transfer_id).join(' ')

/** Whether a payment may join others: no two go to the same account, and one with a memo is alone. */
const hasRoom = (
  { payments, withdrawals }: Pack,
  payment: SolanaPayment,
  alone: ReadonlySet<Withdrawal>,
): boolean =>
  payments.length < PAYMENTS_MAX &&
  payments.every((other) => other.memo === null && targetOf(other) !== targetOf(payment)) &&
  !alone.has(withdrawals[0]!) &&
  fitTogether([...payments, payment])

/** Finds out which payments of a pack fail. Where each passes alone, each is signed alone. */
async function findFaulty(
  chain: SolanaChain,
  { withdrawals, payments }: Pack,
  err: NonNullable<TransactionError>,
  ended: Map<Withdrawal, Ended>,
  alone: Set<Withdrawal>,
): Promise<void> {
  const errors =
    payments.length === 1
      ? [err]
      : await Promise.all(
          payments.map(async (payment) => (await simulate(chain, instructionsOf(payment))).err),
        )
  for (const [index, withdrawal] of withdrawals.entries()) {
    const error = errors[index] ?? null
    if (error !== null) ended.set(withdrawal, endOfTrial(withdrawal, error))
    else if (errors.every((other) => other === null)) alone.add(withdrawal)
  }
}

const noLaneLeft = ({ lanes: { free, inFlight } }: Reservation): WaitingReason => ({
  code: 'IN_FLIGHT_LIMIT',
  detail: `${free.length + inFlight} transactions are in flight, one for each nonce account that is not blocked`,
})

/**
 * How a withdrawal can be paid, or why not. Not where the network's rent of the recipient's account is more than the withdrawal
 * paid for: the recipient gets the rent once it closes the account, and may have closed it since the order.
 */
function payableOf(plan: Plan, withdrawal: Withdrawal): Payable | Ended {
  const { asset, fee_worth, customer_id, destination_address } = withdrawal
  if ('why' in plan) return { outcome: 'REFUSED', refusal: refusedDestination(withdrawal, plan.why) }
  if ('outcome' in plan || plan.rent === 0n || customer_id === PLATFORM_ID) return plan
  if (fee_worth == null)
    return deferred({
      code: 'FEE_NOT_COVERED',
      detail: `market history has no price of ${asset} and ${GAS_ASSET} to compare the fee with the rent of the recipient's account`,
    })
  if (onChain(GAS_ASSET, fee_worth) >= plan.rent) return plan
  const message = `the rent of the recipient's account, ${lamportsText(plan.rent)} ${GAS_ASSET}, exceeds what the withdrawal paid`
  return {
    outcome: 'REFUSED',
    refusal: { status_details: { max_rent_exceeded: { message, destination_address } } },
  }
}

/** Errors of the runtime about the account that is paid, by their names. */
const DESTINATION_ERRORS: ReadonlySet<string> = new Set([
  'InsufficientFundsForRent',
  'InvalidRentPayingAccount',
  'RentEpochModified',
  'ReadonlyLamportChange',
  'InvalidWritableAccount',
])

/** The end of a payment that fails in simulation. That says nothing about the recipient for good: the payment waits. */
function endOfTrial(withdrawal: Withdrawal, error: NonNullable<TransactionError>): Ended {
  const err = JSON.stringify(error)
  if (withdrawal.asset === GAS_ASSET && DESTINATION_ERRORS.has(failureIn(error).name))
    return {
      outcome: 'REFUSED',
      refusal: refusedDestination(withdrawal, `the network refuses a transfer to it: ${err}`),
    }
  const detail = `the payment would fail: ${err}`
  return deferred({ code: withdrawal.asset === GAS_ASSET ? 'NODE_REFUSED' : 'TOKEN_REFUSES', detail })
}
