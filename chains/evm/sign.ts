import type { Hex } from 'viem'
import { getAddress } from 'viem/utils'
import type { Transaction } from '../../src/db/database.ts'
import { lanesOf, onChain, transferOf, type EvmChain } from './chain.ts'
import { estimateGas, type Estimate } from './estimate-gas.ts'
import { formerLanesOf, gasPriceMaxOf } from './former-wallets.ts'
import { aboveCeiling, feeMax, feesNow, PLAIN_GAS, type Fees } from './fees.ts'
import { moneyOf, openReservation, type HotWalletReservation } from './hot-wallet.ts'
import { countsAt } from './node.ts'
import { owedOn, payFrom, type Owed } from '../kit/owed-first.ts'
import { noncesBetween, readNonce, writeNonce } from './nonces.ts'
import { refusesDestination } from './refusals.ts'
import { addressRefusal } from '../../src/contract/addresses/destination-rules.ts'
import { refusedAmong } from './reserved.ts'
import { signed, type EvmTransaction } from './transaction.ts'
import { inOrder } from '../../src/networks/in-order.ts'
import {
  BEHIND_ANOTHER,
  deferred,
  type WaitingReason,
  refusedDestination,
} from '../../src/networks/waiting.ts'
import type { Signing, Withdrawal } from '../../src/networks/network.ts'

/**
 * Signs in order the withdrawals that the wallets can pay at the current fees. The others wait, and with them the later ones of
 * the same profile and asset. A withdrawal that one wallet cannot pay is tried on the next. It waits for the reason of the
 * first; a wallet that may not sign gives no reason while another may.
 */
export async function sign(tx: Transaction, chain: EvmChain, withdrawals: Withdrawal[]): Promise<Signing[]> {
  await chain.ready()
  const fees = await feesNow(chain)
  const signings = new Map<Withdrawal, Signing>()
  const moves = withdrawals.filter((one) => gasPriceMaxOf(one) !== undefined)
  const payments = withdrawals.filter((one) => !moves.includes(one))
  const signEach = async (wallets: EvmChain[], some: Withdrawal[], price: Fees) => {
    const own = await signFrom(tx, wallets, price, some)
    for (const [index, one] of some.entries()) signings.set(one, own[index]!)
  }
  if (payments.length > 0) await signEach(lanesOf(chain), payments, fees)
  for (const move of moves) {
    const most = gasPriceMaxOf(move)!
    const own = { ...fees, offer: fees.offer < most ? fees.offer : most }
    await signEach(
      formerLanesOf(chain).map((one) => ({ ...one, feeCeiling: most })),
      [move],
      own,
    )
  }
  return withdrawals.map((one) => signings.get(one)!)
}

async function signFrom(
  tx: Transaction,
  wallets: EvmChain[],
  fees: Fees,
  withdrawals: Withdrawal[],
): Promise<Signing[]> {
  const [chain] = wallets
  const deferAll = (reason: WaitingReason) => withdrawals.map(() => deferred(reason))
  if (chain === undefined)
    return deferAll({ code: 'NO_SIGNING_KEY', detail: 'this process has no key of a former hot wallet' })
  const tooExpensive = aboveCeiling(fees, chain)
  if (tooExpensive !== undefined) return deferAll({ code: 'FEE_ABOVE_CEILING', detail: tooExpensive })
  const lanes = await openLanes(tx, wallets, withdrawals)
  const reasons = lanes.map(({ reservation }) => reservation.blockedReason)
  // What a wallet has sent without this database may have paid any of these, also those that another wallet would pay.
  const unknown =
    reasons.find((reason) => reason?.code === 'UNKNOWN_SPENDS') ?? (await unknownBefore(tx, chain))
  const blockedReason = unknown ?? reasons[0]
  if (blockedReason !== undefined) return deferAll(blockedReason)
  const rules = await paymentRules(tx, chain, lanes, fees, withdrawals)
  const signings = new Map<Withdrawal, Signing>()
  for (const lane of lanes.filter(({ reservation }) => reservation.blockedReason === undefined)) {
    const left = withdrawals.filter((one) => isDeferred(signings.get(one)))
    if (left.length === 0) break
    const own = await signOnLane(tx, lane, { fees, rules, withdrawals: left })
    for (const [index, one] of left.entries())
      if (!isDeferred(own[index]) || isDeferred(signings.get(one), BEHIND_ANOTHER.code))
        signings.set(one, own[index]!)
  }
  return withdrawals.map((one) => signings.get(one)!)
}

/**
 * What wallets that paid before have sent without this database. Restored from before a rotation, it would have the present
 * wallets pay that again. Only what is mined counts: whoever has such a key could leave a cheap transaction waiting for ever.
 */
async function unknownBefore(tx: Transaction, chain: EvmChain): Promise<WaitingReason | undefined> {
  const open = chain.formerWallets.filter(({ isClosed }) => isClosed !== true)
  if (open.length === 0) return undefined
  const counts = await countsAt(
    chain.node,
    open.map(({ address }) => address),
    'latest',
  )
  for (const [index, hotWallet] of open.entries()) {
    const { next, acknowledged } = await readNonce(tx, { ...chain, hotWallet })
    const unknown = noncesBetween(next, counts[index]!).filter((one) => !acknowledged.has(one))
    if (unknown.length === 0) continue
    const detail =
      `the former wallet ${hotWallet.address} has sent transactions that this database does not know, from nonce ${unknown[0]!} on: ` +
      `'bursar withdrawal mark-paid' and 'bursar wallet acknowledge' say what they were, "closed" in the networks file that all were looked at`
    return { code: 'UNKNOWN_SPENDS', detail }
  }
  return undefined
}

/** Whether a withdrawal has no decision yet, or waits; with a code, for that reason. */
const isDeferred = (signing: Signing | undefined, code?: WaitingReason['code']): boolean =>
  signing === undefined ||
  (signing.outcome === 'DEFERRED' && (code === undefined || signing.reason.code === code))

/** A wallet that pays, while one transaction signs from it. */
interface Lane {
  chain: EvmChain
  reservation: HotWalletReservation
}

/** Reserves each wallet. Those that may sign come first, and of these the one with the fewest transactions in flight. */
async function openLanes(tx: Transaction, wallets: EvmChain[], withdrawals: Withdrawal[]): Promise<Lane[]> {
  const assets = new Set(withdrawals.map(({ asset }) => asset))
  const lanes: Lane[] = []
  for (const chain of wallets) lanes.push({ chain, reservation: await openReservation(tx, chain, assets) })
  const rank = ({ reservation: { blockedReason, inFlight } }: Lane) =>
    blockedReason === undefined ? inFlight : Infinity
  return lanes.sort((a, b) => rank(a) - rank(b) || 0)
}

async function signOnLane(
  tx: Transaction,
  lane: Lane,
  batch: { fees: Fees; rules: PaymentRules; withdrawals: Withdrawal[] },
): Promise<Signing[]> {
  const { chain, reservation } = lane
  const { fees, withdrawals } = batch
  const decisions = await decide(lane, batch)
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
  await writeNonce(tx, chain, reservation.nonce)
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

/**
 * Decides about each withdrawal, and takes the payments out of the reservation. Gas is estimated first for as many
 * withdrawals as may be signed. Where some of those are deferred or refused after all, a second round estimates all
 * others. Without the second round, 64 withdrawals of a paused token at the front would hold every place in flight, in
 * each call.
 */
async function decide(
  lane: Lane,
  { fees, rules: { refused, payOn }, withdrawals }: Parameters<typeof signOnLane>[2],
): Promise<Estimate[]> {
  const { chain, reservation } = lane
  const decided = new Map<Withdrawal, Estimate>(
    withdrawals.flatMap((one) => {
      // A destination may have become refused since the order: a token may have been added to the networks file.
      const { asset, destination_address: address } = one
      const why = addressRefusal(chain.network, { address, asset }) ?? refusalBy(chain, one)
      if (why !== undefined)
        return [[one, { outcome: 'REFUSED', refusal: refusedDestination(one, why) }] as const]
      const refusal = refused.get(one.transfer_id)
      return refusal === undefined ? [] : [[one, refusal] as const]
    }),
  )
  const full = inFlightLimit(chain)
  let places = Math.max(0, chain.maxInFlight - reservation.inFlight)
  let decisions: Estimate[] = []
  for (const isSecondRound of [false, true]) {
    const tentative = new Map(reservation.spendable)
    let estimates = isSecondRound ? Infinity : places
    const reasons = inOrder(withdrawals, (withdrawal) => {
      const reason = decided.get(withdrawal) ?? payOn(lane, tentative, withdrawal, PLAIN_GAS)
      return reason ?? (places > 0 && estimates-- > 0 ? undefined : full)
    })
    const candidates = withdrawals.filter((_, index) => reasons[index] === undefined)
    const estimated = await estimateGas(chain, reservation, fees, candidates)
    decisions = inOrder(withdrawals, (withdrawal, index): Estimate => {
      const estimate = estimated.get(withdrawal)
      if (estimate === undefined) return reasons[index]!
      if ('outcome' in estimate) return estimate
      if (places <= 0) return full
      const short = payOn(lane, reservation.spendable, withdrawal, estimate.gas)
      if (short === undefined) places -= 1
      return short ?? estimate
    })
    for (const [index, withdrawal] of withdrawals.entries())
      if (estimated.has(withdrawal)) decided.set(withdrawal, decisions[index]!)
    if (candidates.every((withdrawal) => 'gas' in decided.get(withdrawal)!)) break
  }
  return decisions
}

/** Why the platform does not pay the destination. A consolidation pays the hot wallet, and nobody else. */
function refusalBy(chain: EvmChain, one: Withdrawal): string | undefined {
  const { destination_address: address } = one
  if (gasPriceMaxOf(one) === undefined) return refusesDestination(chain, address)
  return chain.lanes.some((wallet) => getAddress(wallet.address) === getAddress(address))
    ? undefined
    : 'it is not the hot wallet, which a consolidation pays'
}

const inFlightLimit = ({ maxInFlight }: EvmChain) =>
  deferred({
    code: 'IN_FLIGHT_LIMIT',
    detail: `${maxInFlight} transactions are in flight, the most at a time`,
  })

type PaymentRules = Awaited<ReturnType<typeof paymentRules>>

/** The refusals that are known before gas is estimated, and how withdrawals are paid out of spendable amounts. */
async function paymentRules(
  tx: Transaction,
  chain: EvmChain,
  lanes: readonly Lane[],
  fees: Fees,
  withdrawals: Withdrawal[],
) {
  // A former wallet pays nobody, and keeps nothing for anybody.
  const { older, unsigned }: Owed = chain.lanes.includes(chain.hotWallet)
    ? await owedOn(tx, chain.network, chain.withdrawals, withdrawals)
    : { older: [], unsigned: [] }
  /** The wallet that keeps its money for the oldest withdrawal of an asset: the one that has the most of it. */
  const keeperOf = (asset: string) =>
    lanes.reduce((most, one) => (heldBy(one, asset) > heldBy(most, asset) ? one : most))
  const keepers = new Map(older.map((one) => [one, keeperOf(one.asset)]))
  const refused: Awaited<ReturnType<typeof refusedAmong>> = new Map()
  for (const lane of new Set(keepers.values())) {
    const own = older.filter((one) => keepers.get(one) === lane)
    for (const refusal of await refusedAmong(lane.chain, lane.reservation, fees, own)) refused.set(...refusal)
  }
  const olderOn = (lane: Lane) =>
    older.filter((one) => !refused.has(one.transfer_id) && keepers.get(one) === lane)
  return {
    refused,
    /** Deducts a withdrawal with its gas from the amounts of a wallet, or returns the reason why it waits. */
    payOn: (lane: Lane, spendable: Map<string, bigint>, withdrawal: Withdrawal, gas: bigint) => {
      const elsewhere = lanes.reduce(
        (sum, one) => sum + (one === lane ? 0n : heldBy(one, withdrawal.asset)),
        0n,
      )
      const fee = feeMax({ gas, maxFeePerGas: fees.offer })
      const money = moneyOf(lane.chain, spendable, fees)
      const reason = payFrom(money, { older: olderOn(lane), unsigned }, withdrawal, fee, elsewhere)
      return reason && deferred(reason)
    },
  }
}

/** What a wallet may spend of an asset; nothing where it may not sign. */
const heldBy = ({ reservation: { blockedReason, spendable } }: Lane, asset: string): bigint =>
  blockedReason === undefined ? (spendable.get(asset) ?? 0n) : 0n
