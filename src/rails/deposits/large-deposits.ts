import { formatAmount, parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { CENT_DECIMALS, notionalUsd, type UsdPrices } from '../../contract/assets/usd-value.ts'
import type { NetworkAdapter } from '../../networks/network.ts'
import { foundDepositOf, type IncomingTransfer, type Waiting } from './incoming-transfers.ts'

/**
 * Deposits whose value asks for more than what is known of them: for a second node, or for more confirmations than the scan waits
 * for. What has no price counts as large.
 */

/** Divides deposits into those of which enough is known, some once a second node agrees, and those that wait. */
export async function divideLarge(
  adapter: Pick<NetworkAdapter, 'oneNodeMax' | 'secondNodeAbove' | 'depths' | 'confirmationsOf'>,
  due: readonly IncomingTransfer[],
  readPrices: () => Promise<UsdPrices>,
): Promise<{
  enough: IncomingTransfer[]
  needsSecondNode: ReadonlySet<IncomingTransfer>
  large: Waiting[]
}> {
  const { oneNodeMax, secondNodeAbove = oneNodeMax, depths = [] } = adapter
  const needsSecondNode = new Set<IncomingTransfer>()
  if (due.length === 0 || (secondNodeAbove === undefined && depths.length < 2))
    return { enough: [...due], needsSecondNode, large: [] }
  const prices = await readPrices()
  const enough: IncomingTransfer[] = []
  const large: Waiting[] = []
  const deep: { incoming: IncomingTransfer; needed: number; says: string }[] = []
  const totals = new Map<string, bigint>()
  const values = due.map((incoming) => {
    const value = valueOf(incoming, prices)
    const total = (totals.get(incoming.crypto_tx_hash) ?? 0n) + (value === undefined ? 0n : centsOf(value))
    totals.set(incoming.crypto_tx_hash, total)
    return value
  })
  for (const [index, incoming] of due.entries()) {
    // Whoever pays can divide an amount: all outputs of a transaction decide together.
    const total = values[index] === undefined ? undefined : totals.get(incoming.crypto_tx_hash)!
    const isFrom = (usd: string) => total === undefined || total >= centsOf(usd)
    const says =
      total === undefined
        ? `${incoming.asset} has no price`
        : `it is worth ${formatAmount(total, CENT_DECIMALS)} USD`
    const depth = depths.findLast(({ from_usd }) => isFrom(from_usd))
    if (secondNodeAbove !== undefined && (total === undefined || total > centsOf(secondNodeAbove)))
      needsSecondNode.add(incoming)
    if (oneNodeMax !== undefined && needsSecondNode.has(incoming)) {
      const detail = `one node alone says so, and ${says}: it waits for verify_rpc_url, or for 'bursar deposits credit'`
      large.push({ incoming, reason: 'ONE_NODE', detail })
    } else if (depth === undefined || depth === depths[0]) enough.push(incoming)
    else deep.push({ incoming, needed: depth.confirmations, says })
  }
  const seen =
    deep.length === 0
      ? []
      : await adapter.confirmationsOf!(deep.map(({ incoming }) => foundDepositOf(incoming)))
  for (const [index, { incoming, needed, says }] of deep.entries())
    if (seen[index]! >= needed) enough.push(incoming)
    else {
      const detail = `${seen[index]!} of ${needed} confirmations, because ${says}`
      large.push({ incoming, reason: 'CONFIRMATIONS', detail })
    }
  return { enough, needsSecondNode, large }
}

const centsOf = (usd: string): bigint => parseAmount(usd, CENT_DECIMALS)!

function valueOf({ asset, amount }: IncomingTransfer, prices: UsdPrices): string | undefined {
  const known = findAsset(asset)
  return known && notionalUsd(parseStoredAmount(amount, known.decimals), known, prices)
}
