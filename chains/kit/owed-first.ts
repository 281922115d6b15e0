import type { Transaction } from '../../src/db/database.ts'
import { PLATFORM_ID } from '../../src/db/ids.ts'
import type { Reserved, Unsigned, WithdrawalReader } from '../../src/networks/withdrawal-reader.ts'
import type { PayoutNetwork, Withdrawal } from '../../src/networks/network.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'

/**
 * What a hot wallet owes before it pays a withdrawal: first the older withdrawals that have waited for it too long; and before a
 * send to cold storage, all of customers' withdrawals that are not signed. Of the network's own asset it owes the fees of all these,
 * too, whatever they pay. A payment leaves them their amounts, and need not leave its own fee: otherwise one large withdrawal of the
 * own asset would stop all tokens.
 */

/** The money of a wallet while payments from it are decided: it goes down with each. Amounts in units of the chain. */
export interface Money {
  /** By asset; below zero where more is signed than there is. */
  spendable: Map<string, bigint>
  /** The asset that pays fees. */
  ownAsset: string
  unitsOf: (asset: string, amount: string) => bigint
  /** What a typical payment of an asset costs, in the own asset. 0 where payments share a transaction. */
  feeOf: (asset: string) => bigint
  /** An amount with its unit, for people. */
  text: (asset: string, units: bigint) => string
  /** The wallet, for people. */
  wallet: string
}

export interface Owed {
  /** The oldest of each asset that has waited too long. */
  older: readonly Reserved[]
  /** Customers' unsigned withdrawals; undefined where they are not known. */
  unsigned: readonly Unsigned[] | undefined
}

/** Whether a transfer goes to cold storage: it is the platform's own, and no consolidation. */
const isTreasurySend = ({
  customer_id,
  consolidation_fee_max,
}: Pick<Withdrawal, 'customer_id' | 'consolidation_fee_max'>): boolean =>
  customer_id === PLATFORM_ID && (consolidation_fee_max ?? null) === null

/** Reads what a network's hot wallet owes before it pays any of these. */
export async function owedOn(
  tx: Transaction,
  network: PayoutNetwork,
  reader: WithdrawalReader,
  withdrawals: readonly Withdrawal[],
): Promise<Owed> {
  const older = await reader.longestWaiting(tx, network)
  const unsigned = withdrawals.some(isTreasurySend) ? await reader.unsigned(tx, network) : []
  return { older, unsigned }
}

/**
 * Why a withdrawal waits for those that come first; undefined where the money covers both. `elsewhere` is what other wallets of the
 * network have of its asset: customers' withdrawals may be paid from those.
 */
export function owedFirst(
  money: Money,
  { older, unsigned }: Owed,
  withdrawal: Withdrawal,
  elsewhere = 0n,
): WaitingReason | undefined {
  const { asset, transfer_id } = withdrawal
  const units = money.unitsOf(asset, withdrawal.amount)
  const left = leftOf(money, asset)
  const isOwn = asset === money.ownAsset
  let kept = 0n
  // Ids are in the order of age.
  const before = older.filter((withdrawal) => withdrawal.transfer_id < transfer_id)
  for (const withdrawal of before.sort((a, b) => (a.transfer_id < b.transfer_id ? -1 : 1))) {
    if (withdrawal.asset === asset) kept += money.unitsOf(asset, withdrawal.amount)
    if (isOwn) kept += money.feeOf(withdrawal.asset)
    if (kept === 0n || left >= kept + units) continue
    const detail =
      `${money.wallet} has ${money.text(asset, left)} left, and keeps ${money.text(asset, kept)} for withdrawal ` +
      `${withdrawal.transfer_id}, which has waited too long`
    return { code: 'KEPT_FOR_OLDER', detail }
  }
  if (!isTreasurySend(withdrawal)) return undefined
  if (unsigned === undefined) return NEEDS_UNKNOWN
  let needed = 0n
  for (const theirs of unsigned) {
    if (theirs.asset === asset) needed += money.unitsOf(asset, theirs.amount)
    if (isOwn) needed += BigInt(theirs.count) * money.feeOf(theirs.asset)
  }
  if (needed === 0n || left + elsewhere >= needed + units) return undefined
  const [has, needs] = [left + elsewhere, needed].map((amount) => money.text(asset, amount))
  const detail = `customers' withdrawals come first: the hot wallet has ${has!} left, and the unsigned ones need ${needs!}`
  return { code: 'KEPT_FOR_CUSTOMERS', detail }
}

const NEEDS_UNKNOWN: WaitingReason = {
  code: 'KEPT_FOR_CUSTOMERS',
  detail: `customers' withdrawals come first, and a part of the database does not answer: what its customers need is unknown`,
}

const leftOf = ({ spendable }: Money, asset: string): bigint => spendable.get(asset) ?? 0n

/** Why the money does not cover a withdrawal that costs this fee; undefined where it does. */
function whyShort(money: Money, { asset, amount }: Withdrawal, fee: bigint): WaitingReason | undefined {
  const isOwn = asset === money.ownAsset
  const short = (symbol: string, needed: bigint, purpose: string) =>
    leftOf(money, symbol) >= needed
      ? undefined
      : `${money.wallet} has ${money.text(symbol, leftOf(money, symbol))} left, the withdrawal needs ${money.text(symbol, needed)}${purpose}`
  const units = money.unitsOf(asset, amount)
  const ofAsset = short(asset, isOwn ? units + fee : units, isOwn ? ' with its fee' : '')
  if (ofAsset !== undefined) return { code: 'HOT_WALLET_SHORT', detail: ofAsset }
  const ofFee = isOwn ? undefined : short(money.ownAsset, fee, ' for its fee')
  return ofFee === undefined ? undefined : { code: 'FEE_NOT_COVERED', detail: ofFee }
}

/** Takes a withdrawal and its fee out of the money. */
function spend(money: Money, { asset, amount }: Withdrawal, fee: bigint): void {
  deduct(money.spendable, asset, money.unitsOf(asset, amount))
  deduct(money.spendable, money.ownAsset, fee)
}

/** Takes units out of the amounts, where the asset is among them. */
export function deduct(spendable: Map<string, bigint>, asset: string, units: bigint): void {
  const before = spendable.get(asset)
  if (before !== undefined) spendable.set(asset, before - units)
}

/** Takes a withdrawal and its fee out of the money, or returns why it waits. */
export function payFrom(
  money: Money,
  owed: Owed,
  withdrawal: Withdrawal,
  fee: bigint,
  elsewhere?: bigint,
): WaitingReason | undefined {
  const reason = owedFirst(money, owed, withdrawal, elsewhere) ?? whyShort(money, withdrawal, fee)
  if (reason === undefined) spend(money, withdrawal, fee)
  return reason
}
