import { parseAmount } from '../../src/contract/assets/amount.ts'
import type { Transaction } from '../../src/db/database.ts'
import type { ConsolidationPlan, Withdrawal } from '../../src/networks/network.ts'
import { DECIMALS, decimalOf, minorOf, smaller } from './amounts.ts'
import { Batch, CHANGE_MIN, consolidationOf, worthSpending, type Coin } from './choose-coins.ts'
import { reconcileLocks } from './coin-locks.ts'
import { newDepositAddress } from './deposits.ts'
import { deferred } from '../../src/networks/waiting.ts'
import { payableAmong, signAccepted, type Payable, type SigningRound } from './sign-batch.ts'
import { signingBlockedReason } from './unknown-spends.ts'
import { coinText, signerAddress, type BitcoinWallet } from './wallet.ts'

/** Consolidation: the wallet's smallest coins are merged into one, at an address of the wallet. */

const MERGED_MIN = 2

/** The highest fee rate of a consolidation, in minor units per 1,000 virtual bytes; undefined for any other withdrawal. */
export const feeMaxOf = ({ consolidation_fee_max }: Withdrawal): bigint | undefined =>
  consolidation_fee_max == null ? undefined : minorOf(consolidation_fee_max)

/** Mined coins only: a consolidation is one large transaction, and should wait for no other. */
const mergeable = (coins: readonly Coin[], rate: bigint): Coin[] =>
  worthSpending(coins, rate).filter(({ isMined }) => isMined)

/**
 * Plans a consolidation. From here to the commit, nobody else signs. Throws an Error where the rate is no amount, signing is
 * blocked, or there is nothing worth merging.
 */
export async function planConsolidation(
  tx: Transaction,
  wallet: BitcoinWallet,
  maxFeeRate: string | undefined,
): Promise<ConsolidationPlan> {
  const { coin, ceiling, dialect } = wallet
  const asked = maxFeeRate === undefined ? ceiling : parseAmount(maxFeeRate, DECIMALS)
  if (asked === undefined || asked <= 0n) throw new Error(`the fee rate must be an amount of ${coin}`)
  const blocked = await signingBlockedReason(tx, wallet)
  if (blocked !== undefined) throw new Error(blocked.detail)
  const rate = smaller(asked, ceiling)
  const { spendable } = await reconcileLocks(tx, wallet)
  const { coins, amount, fee } = consolidationOf(
    mergeable(spendable, rate),
    rate,
    dialect.changeScriptBytes,
    wallet.coinsMax,
  )
  if (coins.length < MERGED_MIN)
    throw new Error(
      `the wallet has ${spendable.length} coins to spend, of which the largest stay as they are: there is nothing to merge`,
    )
  if (amount < CHANGE_MIN) {
    const [cost, value] = [coinText(wallet, fee), coinText(wallet, amount + fee)]
    throw new Error(`merging ${coins.length} coins may cost ${cost}, and they hold ${value}`)
  }
  // A signer knows one of its addresses by heart, and no customer has that.
  const { address } =
    wallet.signer === undefined ? await newDepositAddress(wallet) : { address: await signerAddress(wallet) }
  return {
    asset: coin,
    destination_address: address,
    amount: decimalOf(amount),
    coins: coins.length,
    fee_max: decimalOf(fee),
    max_fee_rate: decimalOf(rate),
  }
}

/**
 * Signs a consolidation. The consolidation was planned for its highest fee rate. At a lower rate the same coins suffice, and
 * the rest becomes change.
 */
export async function signConsolidation(
  tx: Transaction,
  wallet: BitcoinWallet,
  withdrawal: Withdrawal,
  { coins: { spendable, open }, rate, signings }: SigningRound,
): Promise<void> {
  const most = feeMaxOf(withdrawal)!
  if (rate > most) {
    const [now, limit] = [coinText(wallet, rate), coinText(wallet, most)]
    const detail = `the network's fee is ${now} per kvB, and the consolidation pays ${limit} at most`
    signings.set(withdrawal, deferred({ code: 'FEE_ABOVE_CEILING', detail }))
    return
  }
  const payable = await payableAmong(tx, wallet, [withdrawal], signings)
  const coins = mergeable(spendable, most)
  const { changeScriptBytes } = wallet.dialect
  const limits = { rate, changeScriptBytes, coinsMax: wallet.coinsMax, consolidates: true, open }
  if (payable.every((order) => new Batch<Payable>(coins, limits).add(order))) {
    await signAccepted(wallet, payable, coins, limits, signings)
    return
  }
  const detail = 'coins that it was to merge are spent: cancel it, and order another'
  signings.set(withdrawal, deferred({ code: 'COINS_SPENT', detail }))
}
