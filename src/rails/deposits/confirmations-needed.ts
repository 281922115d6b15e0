import { formatAmount, parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { CENT_DECIMALS, notionalUsd, type UsdPrices } from '../../contract/assets/usd-value.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import { foundDepositOf, type IncomingTransfer, type Sifted, type Waiting } from './incoming-transfers.ts'

/**
 * Deposits whose value asks for more than what is known of them: for a second node, or for more confirmations than the scan
 * waits for. An asset without a price counts as large.
 */

/** A deposit, and whether its value asks for the word of a second node. */
export type WeighedDeposit = IncomingTransfer & { needsSecondNode?: true }

/** Lets deposits pass that have the confirmations that their value asks for, some once a second node agrees. */
export async function deepEnough(
  adapter: Pick<NetworkAdapter, 'oneNodeMax' | 'secondNodeAbove' | 'depths' | 'confirmationsOf'>,
  due: readonly IncomingTransfer[],
  readPrices: () => Promise<UsdPrices>,
): Promise<Sifted<WeighedDeposit>> {
  const { oneNodeMax, secondNodeAbove = oneNodeMax, depths = [] } = adapter
  if (due.length === 0 || (secondNodeAbove === undefined && depths.length < 2))
    return { pass: [...due], wait: [] }
  const prices = await readPrices()
  const pass: WeighedDeposit[] = []
  const wait: Waiting[] = []
  const deep: { incoming: WeighedDeposit; needed: number; says: string }[] = []
  const values = due.map((incoming) => valueOf(incoming, prices))
  const totals = new Map<string, bigint>()
  for (const [index, { crypto_tx_hash }] of due.entries())
    totals.set(crypto_tx_hash, (totals.get(crypto_tx_hash) ?? 0n) + (values[index] ?? 0n))
  for (const [index, deposit] of due.entries()) {
    // Whoever pays can divide an amount: all outputs of a transaction decide together.
    const total = values[index] === undefined ? undefined : totals.get(deposit.crypto_tx_hash)!
    const says =
      total === undefined
        ? `${deposit.asset} has no price`
        : `it is worth ${formatAmount(total, CENT_DECIMALS)} USD`
    const depth = depths.findLast(({ from_usd }) => total === undefined || total >= centsOf(from_usd))
    const isAbove = secondNodeAbove !== undefined && (total === undefined || total > centsOf(secondNodeAbove))
    const incoming: WeighedDeposit = isAbove ? { ...deposit, needsSecondNode: true } : deposit
    if (oneNodeMax !== undefined && isAbove) {
      const detail = `one node alone says so, and ${says}: it waits for verify_rpc_url, or for 'bursar deposits credit'`
      wait.push({ incoming, reason: 'ONE_NODE', detail })
    } else if (depth === undefined || depth === depths[0]) pass.push(incoming)
    else deep.push({ incoming, needed: depth.confirmations, says })
  }
  const found = deep.map(({ incoming }) => foundDepositOf(incoming))
  const seen = found.length === 0 ? [] : await adapter.confirmationsOf!(found)
  for (const [index, { incoming, needed, says }] of deep.entries())
    if (seen[index]! >= needed) pass.push(incoming)
    else {
      const detail = `${seen[index]!} of ${needed} confirmations, because ${says}`
      wait.push({ incoming, reason: 'CONFIRMATIONS', detail })
    }
  return { pass, wait }
}

const centsOf = (usd: string): bigint => parseAmount(usd, CENT_DECIMALS)!

/** In cents; undefined where the asset has no price. */
function valueOf({ asset, amount }: IncomingTransfer, prices: UsdPrices): bigint | undefined {
  const known = findAsset(asset)
  const value = known && notionalUsd(parseStoredAmount(amount, known.decimals), known, prices)
  return value === undefined ? undefined : centsOf(value)
}
