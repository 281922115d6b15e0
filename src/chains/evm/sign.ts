import type { Hex } from 'viem'
import type { Transaction } from '../../db/database.ts'
import { onChain, transferOf, type EvmChain } from './chain.ts'
import { estimateGas, type Estimate } from './estimate.ts'
import { aboveCeiling, feesNow, PLAIN_GAS, type Fees } from './fees.ts'
import {
  closeReservation,
  keptForCustomers,
  keptForOlder,
  openReservation,
  pay,
  type HotWalletReservation,
  type Spendable,
} from './hot-wallet.ts'
import { refusalOf, refusesDestination } from './refusals.ts'
import { addressRefusal } from '../destination-rules.ts'
import { refusedAmong } from './reserved.ts'
import { signed, type EvmTransaction } from './transaction.ts'
import { isTreasurySend, longestWaiting, unsignedWithdrawals } from '../longest-waiting.ts'
import { inOrder } from '../in-order.ts'
import { deferred, type WaitingReason } from '../waiting.ts'
import type { Signing, Withdrawal } from '../network.ts'

/**
 * Signs in order the withdrawals that the hot wallet can pay at the current fees. The others wait, and with them the later
 * ones of the same profile and asset.
 */
export async function sign(tx: Transaction, chain: EvmChain, withdrawals: Withdrawal[]): Promise<Signing[]> {
  await chain.ready()
  const fees = await feesNow(chain)
  const deferAll = (reason: WaitingReason) => withdrawals.map(() => deferred(reason))
  const tooExpensive = aboveCeiling(fees, chain)
  if (tooExpensive !== undefined) return deferAll({ code: 'FEE_ABOVE_CEILING', detail: tooExpensive })
  const reservation = await openReservation(tx, chain, new Set(withdrawals.map(({ asset }) => asset)))
  if (reservation.blockedReason !== undefined) return deferAll(reservation.blockedReason)
  const decisions = await decide(tx, chain, reservation, fees, withdrawals)
  const signings: Signing[] = []
  for (const [index, withdrawal] of withdrawals.entries()) {
    const decision = decisions[index]!
    if ('outcome' in decision) {
      signings.push(decision)
      continue
    }
    const transaction = transactionOf(chain, fees, withdrawal, { ...decision, nonce: reservation.nonce++ })
    signings.push({ outcome: 'SIGNED', ...(await signed(chain.hotWallet, transaction)) })
  }
  await closeReservation(tx, chain, reservation)
  return signings
}

const transactionOf = (
  chain: EvmChain,
  { offer, tip }: Fees,
  { asset, amount, destination_address }: Withdrawal,
  { gas, nonce }: { gas: bigint; nonce: number },
): EvmTransaction => ({
  type: 'eip1559',
  chainId: chain.chainId,
  nonce,
  ...transferOf(chain, asset, destination_address as Hex, onChain(chain, asset, amount)),
  gas,
  maxFeePerGas: offer,
  maxPriorityFeePerGas: tip,
})

/** The decision about a withdrawal: sign it with this much gas, or refuse or defer it with the reason. */
type Decision = Estimate

/**
 * Decides about each withdrawal, and takes the payments out of the reservation. Gas is estimated first for as many
 * withdrawals as may be signed. Where some of those are deferred or refused after all, a second round estimates all
 * others. Without the second round, 64 withdrawals of a paused token at the front would hold every place in flight, in
 * each call.
 */
async function decide(
  tx: Transaction,
  chain: EvmChain,
  reservation: HotWalletReservation,
  fees: Fees,
  withdrawals: Withdrawal[],
): Promise<Decision[]> {
  const { refused, payFrom } = await paymentRules(tx, chain, reservation, fees, withdrawals)
  const decided = new Map<Withdrawal, Decision>(
    withdrawals.flatMap((one) => {
      // A destination may have become refused since the order: a token may have been added to the networks file.
      const { asset, destination_address: address } = one
      const why = addressRefusal(chain.network, { address, asset }) ?? refusesDestination(chain, address)
      if (why !== undefined) return [[one, { outcome: 'REFUSED', refusal: refusalOf(one, why) }] as const]
      const refusal = refused.get(one.transfer_id)
      return refusal === undefined ? [] : [[one, refusal] as const]
    }),
  )
  const full = inFlightLimit(chain)
  let places = Math.max(0, chain.maxInFlight - reservation.inFlight)
  let decisions: Decision[] = []
  for (const isSecondRound of [false, true]) {
    const tentative = new Map(reservation.spendable)
    let estimates = isSecondRound ? Infinity : places
    const reasons = inOrder(withdrawals, (withdrawal) => {
      const reason = decided.get(withdrawal) ?? payFrom(tentative, withdrawal, PLAIN_GAS)
      return reason ?? (places > 0 && estimates-- > 0 ? undefined : full)
    })
    const candidates = withdrawals.filter((_, index) => reasons[index] === undefined)
    const estimated = await estimateGas(chain, reservation, fees, candidates)
    decisions = inOrder(withdrawals, (withdrawal, index): Decision => {
      const estimate = estimated.get(withdrawal)
      if (estimate === undefined) return reasons[index]!
      if ('outcome' in estimate) return estimate
      if (places <= 0) return full
      const short = payFrom(reservation.spendable, withdrawal, estimate.gas)
      if (short === undefined) places -= 1
      return short ?? estimate
    })
    for (const [index, withdrawal] of withdrawals.entries())
      if (estimated.has(withdrawal)) decided.set(withdrawal, decisions[index]!)
    if (candidates.every((withdrawal) => 'gas' in decided.get(withdrawal)!)) break
  }
  return decisions
}

const inFlightLimit = ({ maxInFlight }: EvmChain) =>
  deferred({
    code: 'IN_FLIGHT_LIMIT',
    detail: `${maxInFlight} transactions are in flight, the most at a time`,
  })

/** The refusals that are known before gas is estimated, and how withdrawals are paid out of spendable amounts. */
async function paymentRules(
  tx: Transaction,
  chain: EvmChain,
  reservation: HotWalletReservation,
  fees: Fees,
  withdrawals: Withdrawal[],
) {
  const longest = await longestWaiting(tx, chain.network, chain.reserveAfterMs)
  const refused = await refusedAmong(chain, reservation, fees, longest)
  const reserved = longest.filter(({ transfer_id }) => !refused.has(transfer_id))
  const unsigned = withdrawals.some(isTreasurySend) ? await unsignedWithdrawals(tx, chain.network) : []
  return {
    refused,
    /** Deducts a withdrawal with its gas from the amounts, or returns the reason why it waits. */
    payFrom: (spendable: Spendable, withdrawal: Withdrawal, gas: bigint) => {
      const reason =
        keptForOlder(chain, spendable, fees, withdrawal, reserved) ??
        keptForCustomers(chain, spendable, fees, withdrawal, unsigned) ??
        pay(chain, spendable, fees, withdrawal, gas)
      return reason && deferred(reason)
    },
  }
}
