import { parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { CENT_DECIMALS, notionalUsd, type UsdPrices } from '../../contract/assets/usd-value.ts'
import type { NetworkAdapter } from '../../chains/network.ts'
import { foundDepositOf, type IncomingTransfer, type Waiting } from './incoming-transfers.ts'

/**
 * Deposits whose value asks for more than what is known of them: for a second node, or for more confirmations than the scan waits
 * for. What has no price counts as large.
 */

/** Divides deposits into those of which enough is known, and those that wait. */
export async function divideLarge(
  adapter: Pick<NetworkAdapter, 'oneNodeMax' | 'depths' | 'confirmationsOf'>,
  due: readonly IncomingTransfer[],
  readPrices: () => Promise<UsdPrices>,
): Promise<{ enough: IncomingTransfer[]; large: Waiting[] }> {
  const { oneNodeMax, depths = [] } = adapter
  if (due.length === 0 || (oneNodeMax === undefined && depths.length < 2))
    return { enough: [...due], large: [] }
  const prices = await readPrices()
  const enough: IncomingTransfer[] = []
  const large: Waiting[] = []
  const deep: { incoming: IncomingTransfer; needed: number; says: string }[] = []
  for (const incoming of due) {
    const value = valueOf(incoming, prices)
    const isFrom = (usd: string) => value === undefined || centsOf(value) >= centsOf(usd)
    const says = value === undefined ? `${incoming.asset} has no price` : `it is worth ${value} USD`
    const depth = depths.findLast(({ from_usd }) => isFrom(from_usd))
    if (oneNodeMax !== undefined && (value === undefined || centsOf(value) > centsOf(oneNodeMax))) {
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
  return { enough, large }
}

const centsOf = (usd: string): bigint => parseAmount(usd, CENT_DECIMALS)!

function valueOf({ asset, amount }: IncomingTransfer, prices: UsdPrices): string | undefined {
  const known = findAsset(asset)
  return known && notionalUsd(parseStoredAmount(amount, known.decimals), known, prices)
}
