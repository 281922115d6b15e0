import type { Instruction } from '@solana/kit'
import { GAS_ASSET, lamportsText, type SolanaChain } from './chain.ts'
import { larger, smaller } from '../kit/units.ts'
import type { TransactionError } from './node.ts'
import type { BroadcastWithdrawal } from '../../src/networks/network.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'
import { feeOf, paymentIn, priceWithin, trialOf, type ParsedPayment } from './transaction.ts'

/**
 * What a compute unit costs now by the node, in millionths of a lamport: three of four recent blocks took some transaction for less.
 * This is mostly 0, and `priceFor` has a floor. It is asked of no account: whoever names ours could make it dear for us.
 */
export async function unitPriceNow({ rpc }: SolanaChain): Promise<bigint> {
  const recent = await rpc.call<{ prioritizationFee: string }[]>('getRecentPrioritizationFees', [])
  const prices = recent
    .map(({ prioritizationFee }) => BigInt(prioritizationFee))
    .sort((a, b) => (a < b ? -1 : 1))
  return prices[Math.floor((prices.length * 3) / 4)] ?? 0n
}

/** The price that so many payments offer together where the node says that a unit costs this: within floor and ceiling. */
export const priceFor = (chain: SolanaChain, usual: bigint, limit: number, payments = 1): bigint =>
  smaller(larger(usual, priceWithin(chain.feeFloor, limit)), priceMax(chain, limit, payments))

/** Compute units of a payment that was not simulated, with room: making an account takes the most. */
export const UNITS_TYPICAL = 60_000
/** Units that the nonce and the two instructions about the fee take beside a simulated payment. */
const UNITS_BESIDE = 450

/** The limit for a payment that took these units in simulation: a fifth more, because accounts may change meanwhile. */
const limitFor = (simulated: bigint): number => Math.ceil((Number(simulated) * 6) / 5) + UNITS_BESIDE

/** Simulates instructions that the hot wallet pays for, without a nonce: the error, and the limit to sign them with. */
export async function simulate(
  { rpc, hotWallet }: SolanaChain,
  instructions: readonly Instruction[],
): Promise<{ err: TransactionError; unitLimit: number }> {
  const { value } = await rpc.call<{ value: { err: TransactionError; unitsConsumed?: string } }>(
    'simulateTransaction',
    trialOf(hotWallet.address, instructions),
    { encoding: 'base64', sigVerify: false, replaceRecentBlockhash: true, commitment: 'finalized' },
  )
  return { err: value.err, unitLimit: limitFor(BigInt(value.unitsConsumed ?? UNITS_TYPICAL)) }
}

/** The reason why nothing can be signed at this price; undefined where it is within the ceiling. */
export function aboveCeiling({ feeCeiling }: SolanaChain, price: bigint): WaitingReason | undefined {
  const fee = feeOf({ unitPrice: price, unitLimit: UNITS_TYPICAL })
  if (fee <= feeCeiling) return undefined
  const detail = `a payment costs ${lamportsText(fee)} ${GAS_ASSET}, the ceiling is ${lamportsText(feeCeiling)}`
  return { code: 'FEE_ABOVE_CEILING', detail }
}

export const priceMax = ({ feeCeiling }: SolanaChain, limit: number, payments: number): bigint =>
  priceWithin(BigInt(payments) * feeCeiling, limit)

export const isAtCeiling = (
  chain: SolanaChain,
  { unitPrice, unitLimit, transfers }: ParsedPayment,
): boolean => unitPrice >= priceMax(chain, unitLimit, transfers.length)

/** Why a payment waits that was replaced until it offered the most that it may. */
export function tooCheap(
  chain: SolanaChain,
  { raw_transaction, replaced }: BroadcastWithdrawal,
): { reason?: WaitingReason } {
  const payment = replaced.length === 0 ? undefined : paymentIn(raw_transaction)
  if (payment === undefined || !isAtCeiling(chain, payment)) return {}
  const detail = `no block has taken the payment, which offers all of fee_ceiling, ${lamportsText(chain.feeCeiling)} ${GAS_ASSET}`
  return { reason: { code: 'FEE_ABOVE_CEILING', detail } }
}
