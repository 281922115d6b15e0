import type { Transaction } from '../../src/db/database.ts'
import {
  isTreasurySend,
  longestWaiting,
  NEEDS_UNKNOWN,
  neededByCustomers,
  unsignedWithdrawals,
  type Reserved,
} from '../../src/networks/longest-waiting.ts'
import type { Signing, Withdrawal } from '../../src/networks/network.ts'
import { BEHIND_ANOTHER, deferred, type WaitingReason } from '../../src/networks/waiting.ts'
import { minorOf, sum } from './amounts.ts'
import { Batch, spendableAtOnce } from './batch.ts'
import { reconcileLocks, type Coins } from './coins.ts'
import { feeMaxOf, signConsolidation } from './consolidate.ts'
import { feeRate } from './fees.ts'
import { exportedUnrecorded, whyGathered } from './psbt.ts'
import { payableAmong, signAccepted, type Payable, type SigningRound } from './sign-batch.ts'
import { signingBlockedReason } from './unknown-spends.ts'
import { coinText, type BitcoinWallet } from './wallet.ts'

/**
 * Pays as many withdrawals as it can with one transaction, in their order. A withdrawal that does not fit, or cannot be paid
 * now, waits with the reason, and so do later ones of its profile. A consolidation has a transaction of its own, signed when
 * there is nothing else to sign.
 */
export async function sign(
  tx: Transaction,
  wallet: BitcoinWallet,
  withdrawals: Withdrawal[],
): Promise<Signing[]> {
  const blocked = (await signingBlockedReason(tx, wallet)) ?? (await exportedUnrecorded(tx, wallet))
  if (blocked !== undefined) return withdrawals.map(() => deferred(blocked))
  const coins = await reconcileLocks(tx, wallet)
  const gathered = whyGathered(wallet, coins)
  if (gathered !== undefined) return withdrawals.map(() => deferred(gathered))
  const rate = await feeRate(wallet)
  if (rate > wallet.ceiling) {
    const [now, most] = [coinText(wallet, rate), coinText(wallet, wallet.ceiling)]
    const detail = `the network's fee is ${now} per kvB, above the ceiling of ${most}`
    return withdrawals.map(() => deferred({ code: 'FEE_ABOVE_CEILING', detail }))
  }
  const round: SigningRound = { coins, rate, signings: new Map() }
  const payouts = withdrawals.filter((one) => feeMaxOf(one) === undefined)
  const consolidations = withdrawals.filter((one) => feeMaxOf(one) !== undefined)
  if (payouts.length > 0) await signPayouts(tx, wallet, payouts, round)
  else await signConsolidation(tx, wallet, consolidations[0]!, round)
  const { signings } = round
  for (const one of consolidations)
    if (!signings.has(one))
      signings.set(one, deferred({ code: 'NEXT_TRANSACTION', detail: 'another transaction is signed first' }))
  return withdrawals.map((withdrawal) => signings.get(withdrawal)!)
}

async function signPayouts(
  tx: Transaction,
  wallet: BitcoinWallet,
  payouts: Withdrawal[],
  round: SigningRound,
): Promise<void> {
  const { coins, rate, signings } = round
  const payable = await payableAmong(tx, wallet, payouts, signings)
  const [reserved] = await longestWaiting(tx, wallet.network, wallet.reserveAfterMs)
  const unsigned = payouts.some(isTreasurySend) ? await unsignedWithdrawals(tx, wallet.network) : []
  const needed = unsigned && sum(unsigned.map(({ amount }) => minorOf(amount)))
  const chosen = choose(wallet, payable, round, { reserved, needed })
  const limits = { rate, changeScriptBytes: wallet.dialect.changeScriptBytes, open: coins.open }
  await signAccepted(wallet, chosen, coins.spendable, limits, signings)
}

/** What `choose` takes into account in addition to the coins. */
interface Claims {
  /** The older withdrawal that the hot wallet's money is kept for. */
  reserved: Reserved | undefined
  /** The sum of customers' unsigned withdrawals in minor units, which a send to cold storage must leave. Undefined: unknown. */
  needed: bigint | undefined
}

/** The withdrawals that one transaction can pay, in their order; the others wait. */
function choose(
  wallet: BitcoinWallet,
  payable: Payable[],
  { coins, rate, signings }: SigningRound,
  claims: Claims,
): Payable[] {
  const { changeScriptBytes } = wallet.dialect
  const total = sum(coins.spendable.map(({ amount }) => amount))
  const batch = new Batch<Payable>(coins.spendable, { rate, changeScriptBytes })
  const waitingProfiles = new Set<string>()
  for (const one of payable) {
    const { withdrawal, amount } = one
    const { profile_id } = withdrawal
    const left = total - batch.due
    const reason = waitingProfiles.has(profile_id)
      ? BEHIND_ANOTHER
      : (claimBefore(wallet, one, left, claims) ??
        (batch.add(one)
          ? undefined
          : { code: 'HOT_WALLET_SHORT' as const, detail: describeShortage(wallet, amount, left, coins) }))
    if (reason === undefined) continue
    waitingProfiles.add(profile_id)
    signings.set(withdrawal, deferred(reason))
  }
  return [...batch.payments]
}

/** Why a withdrawal waits for others that come first; undefined where `left` covers both, or none comes first. */
function claimBefore(
  wallet: BitcoinWallet,
  { withdrawal, amount }: Payable,
  left: bigint,
  { reserved, needed }: Claims,
): WaitingReason | undefined {
  if (
    reserved !== undefined &&
    withdrawal.transfer_id > reserved.transfer_id &&
    left < amount + minorOf(reserved.amount)
  )
    return {
      code: 'KEPT_FOR_OLDER',
      detail:
        `the hot wallet has ${coinText(wallet, left)} to spend, and ${coinText(wallet, minorOf(reserved.amount))} are kept ` +
        `for withdrawal ${reserved.transfer_id}, which has waited too long`,
    }
  if (!isTreasurySend(withdrawal)) return undefined
  if (needed === undefined) return NEEDS_UNKNOWN
  if (needed > 0n && left < amount + needed)
    return neededByCustomers(coinText(wallet, left), coinText(wallet, needed))
  return undefined
}

/** Describes why the coins do not suffice: the spendable amount, whether it is in too many coins, and unspendable coins. */
function describeShortage(
  wallet: BitcoinWallet,
  amount: bigint,
  left: bigint,
  { spendable, unconfirmedDeposits, unbroadcastChange }: Coins,
): string {
  const text = (minor: bigint) => coinText(wallet, minor)
  const atOnce = spendableAtOnce(spendable)
  const also = [
    left > amount && atOnce.count < spendable.length
      ? `; it is in ${spendable.length} coins, of which one transaction can spend ${atOnce.count}, and these hold ` +
        `${text(atOnce.amount)}: 'bursar wallet consolidate' merges them`
      : '',
    unbroadcastChange > 0n
      ? `; ${text(unbroadcastChange)} more are change of transactions that are not broadcast yet`
      : '',
    unconfirmedDeposits > 0n
      ? `; ${text(unconfirmedDeposits)} more have fewer than ${wallet.depth} confirmations`
      : '',
  ]
  return `the hot wallet has ${text(left)} to spend, and needs ${text(amount)} and the fee${also.join('')}`
}
