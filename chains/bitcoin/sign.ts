import type { Transaction } from '../../src/db/database.ts'
import type { Signing, Withdrawal } from '../../src/networks/network.ts'
import { inOrder } from '../../src/networks/in-order.ts'
import { deferred } from '../../src/networks/waiting.ts'
import { owedFirst, owedOn, type Money, type Owed } from '../kit/owed-first.ts'
import { minorOf, sum } from './amounts.ts'
import { Batch, spendableAtOnce } from './choose-coins.ts'
import { reconcileLocks, type Coins } from './coin-locks.ts'
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
  const payouts = withdrawals.filter((withdrawal) => feeMaxOf(withdrawal) === undefined)
  const consolidations = withdrawals.filter((withdrawal) => feeMaxOf(withdrawal) !== undefined)
  if (payouts.length > 0) await signPayouts(tx, wallet, payouts, round)
  else await signConsolidation(tx, wallet, consolidations[0]!, round)
  const { signings } = round
  for (const order of consolidations)
    if (!signings.has(order))
      signings.set(
        order,
        deferred({ code: 'NEXT_TRANSACTION', detail: 'another transaction is signed first' }),
      )
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
  const owed = await owedOn(tx, wallet.network, wallet.withdrawals, payouts)
  const chosen = choose(wallet, payable, round, owed)
  const { changeScriptBytes } = wallet.dialect
  const limits = { rate, changeScriptBytes, coinsMax: wallet.coinsMax, open: coins.open }
  await signAccepted(wallet, chosen, coins.spendable, limits, signings)
}

/** The withdrawals that one transaction can pay, in their order; the others wait. */
function choose(
  wallet: BitcoinWallet,
  payable: Payable[],
  { coins, rate, signings }: SigningRound,
  owed: Owed,
): Payable[] {
  const { changeScriptBytes } = wallet.dialect
  const total = sum(coins.spendable.map(({ amount }) => amount))
  const batch = new Batch<Payable>(coins.spendable, { rate, changeScriptBytes, coinsMax: wallet.coinsMax })
  const decisions = inOrder(
    payable.map(({ withdrawal }) => withdrawal),
    (withdrawal, index) => {
      const payment = payable[index]!
      const left = total - batch.due
      const owedBefore = owedFirst(moneyOf(wallet, left), owed, withdrawal)
      if (owedBefore !== undefined) return deferred(owedBefore)
      if (batch.add(payment)) return undefined
      const detail = describeShortage(wallet, payment.amount, left, coins)
      return deferred({ code: 'HOT_WALLET_SHORT', detail })
    },
  )
  for (const [index, decision] of decisions.entries())
    if (decision !== undefined) signings.set(payable[index]!.withdrawal, decision)
  return [...batch.payments]
}

/** What is left of the wallet's coins. Payments share the fee of their transaction. */
const moneyOf = (wallet: BitcoinWallet, left: bigint): Money => ({
  spendable: new Map([[wallet.coin, left]]),
  ownAsset: wallet.coin,
  unitsOf: (_asset, amount) => minorOf(amount),
  feeOf: () => 0n,
  text: (_asset, minor) => coinText(wallet, minor),
  wallet: 'the hot wallet',
})

/** Describes why the coins do not suffice: the spendable amount, whether it is in too many coins, and unspendable coins. */
function describeShortage(
  wallet: BitcoinWallet,
  amount: bigint,
  left: bigint,
  { spendable, unconfirmedDeposits, unbroadcastChange }: Coins,
): string {
  const text = (minor: bigint) => coinText(wallet, minor)
  const atOnce = spendableAtOnce(spendable, wallet.coinsMax)
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
