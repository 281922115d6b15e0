import type { Transaction } from '../../src/db/database.ts'
import type { PaymentRefusal, Signing, Withdrawal } from '../../src/networks/network.ts'
import { inOrder } from '../../src/networks/in-order.ts'
import { deferred, refusedDestination, type WaitingReason } from '../../src/networks/waiting.ts'
import { GAS_ASSET, type Facts, type SolanaChain } from './chain.ts'
import { plansOf, type Plan } from './destinations.ts'
import { aboveCeiling, priceMax, simulate, unitPriceNow, UNITS_TYPICAL } from './fees.ts'
import { keepUsed } from './lanes.ts'
import { failureIn } from './node.ts'
import { reserve, type Reservation } from './reserve.ts'
import { feeOf, instructionsOf, signPayment, type SolanaPayment } from './transaction.ts'

/** How often payments that fail in simulation make place for later ones. */
const ROUNDS_MAX = 3

/** A payment that is simulated: it may be signed with this limit. */
interface Tried {
  payment: SolanaPayment
  unitLimit: number
}
type Decision = Tried | { outcome: 'REFUSED'; refusal: PaymentRefusal } | ReturnType<typeof deferred>

/**
 * Signs in order the withdrawals that the hot wallet can pay at the current fees, each on a lane of its own. The others wait,
 * and with them the later ones of the same profile and asset.
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
  if (tooExpensive !== undefined) return deferAll({ code: 'FEE_ABOVE_CEILING', detail: tooExpensive })
  const reservation = await reserve(tx, chain, facts, withdrawals, unitPrice)
  const { free, blocked } = reservation.lanes
  if (blocked !== undefined) return deferAll(blocked)
  if (free.length === 0) return deferAll(noLane(reservation))
  const decisions = await decide(chain, facts, reservation, withdrawals, unitPrice)
  const used: typeof free = []
  const signings = decisions.map((decision): Signing => {
    if ('outcome' in decision) return decision
    const lane = free[used.length]!
    used.push(lane)
    const { payment, unitLimit } = decision
    const price = least(unitPrice, priceMax(chain, unitLimit))
    return {
      outcome: 'SIGNED',
      ...signPayment(chain.hotWallet, payment, { ...lane, unitLimit, unitPrice: price }),
    }
  })
  await keepUsed(tx, used)
  return signings
}

const least = (a: bigint, b: bigint) => (a < b ? a : b)

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
 * may be signed is simulated. One that fails there waits or is refused, and then others are tried in its place.
 */
async function decide(
  chain: SolanaChain,
  facts: Facts,
  reservation: Reservation,
  withdrawals: Withdrawal[],
  unitPrice: bigint,
): Promise<Decision[]> {
  const plans = await plansOf(chain, facts, withdrawals)
  const tried = new Map<Withdrawal, Decision>()
  const balances = new Map(reservation.spendable)
  for (let round = 1; ; round++) {
    for (const [asset, units] of balances) reservation.spendable.set(asset, units)
    let places = reservation.lanes.free.length
    const decisions = inOrder(withdrawals, (withdrawal, index): Decision | undefined => {
      const plan = plans[index]!
      const known = tried.get(withdrawal) ?? endOf(plan, withdrawal)
      if (known !== undefined && 'outcome' in known) return known
      if (places === 0) return deferred(noLaneLeft(reservation))
      const { rent } = plan as Extract<Plan, { payment: unknown }>
      const short = reservation.pay(withdrawal, costOf(chain, known, unitPrice) + rent)
      if (short !== undefined) return deferred(short)
      places -= 1
      return known
    })
    const toTry = withdrawals.filter((_, index) => decisions[index] === undefined)
    if (toTry.length === 0 || round > ROUNDS_MAX)
      return decisions.map((decision) => decision ?? deferred(noLaneLeft(reservation)))
    await Promise.all(
      toTry.map(async (withdrawal) => {
        const plan = plans[withdrawals.indexOf(withdrawal)] as Extract<Plan, { payment: unknown }>
        tried.set(withdrawal, await tryOut(chain, plan.payment, withdrawal))
      }),
    )
  }
}

const noLaneLeft = ({ lanes: { free, inFlight } }: Reservation): WaitingReason => ({
  code: 'IN_FLIGHT_LIMIT',
  detail: `${free.length + inFlight} transactions are in flight, one for each nonce account that is not blocked`,
})

const costOf = (chain: SolanaChain, tried: Tried | undefined, unitPrice: bigint) => {
  const unitLimit = tried?.unitLimit ?? UNITS_TYPICAL
  return feeOf({ unitLimit, unitPrice: least(unitPrice, priceMax(chain, unitLimit)) })
}

function endOf(plan: Plan, withdrawal: Withdrawal): Exclude<Decision, Tried> | undefined {
  if (!('outcome' in plan)) return undefined
  return plan.outcome === 'REFUSED'
    ? { outcome: 'REFUSED', refusal: refusedDestination(withdrawal, plan.why) }
    : plan
}

/** Errors of the runtime about the account that is paid, by their names. */
const DESTINATION_ERRORS: ReadonlySet<string> = new Set([
  'InsufficientFundsForRent',
  'InvalidRentPayingAccount',
  'RentEpochModified',
  'ReadonlyLamportChange',
  'InvalidWritableAccount',
])

/** Simulates a payment without its nonce. A failure says nothing about the recipient for good: the payment waits. */
async function tryOut(chain: SolanaChain, payment: SolanaPayment, withdrawal: Withdrawal): Promise<Decision> {
  const trial = await simulate(chain, instructionsOf(payment))
  if (trial.err === null) return { payment, unitLimit: trial.unitLimit }
  const err = JSON.stringify(trial.err)
  if (withdrawal.asset === GAS_ASSET && DESTINATION_ERRORS.has(failureIn(trial.err).name))
    return {
      outcome: 'REFUSED',
      refusal: refusedDestination(withdrawal, `the network refuses a transfer to it: ${err}`),
    }
  const detail = `the payment would fail: ${err}`
  return deferred({ code: withdrawal.asset === GAS_ASSET ? 'NODE_REFUSED' : 'TOKEN_REFUSES', detail })
}
