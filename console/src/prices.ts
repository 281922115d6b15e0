import { useCall } from './load.ts'
import type { Price } from './records.ts'
import { usdAt } from './usd.ts'

/** Prices in USD, as the service itself uses them: a platform stablecoin is worth one, and what is older than a day is no price. */

const prices = { method: 'GET', path: '/v2/all-markets/prices' } as const
const assets = { method: 'GET', path: '/v2/assets' } as const
const AGE_MS_MAX = 86_400_000

/** What an amount is worth now; undefined without a price. Undefined itself while the prices are read. */
export function usePrices(): ((amount: string, asset: string) => string | undefined) | undefined {
  const priced = useCall<{ items: Price[] }>(prices).data.value?.items
  const known = useCall<{ items: { asset: string; platform_stablecoin: boolean }[] }>(assets).data.value
    ?.items
  if (priced === undefined || known === undefined) return undefined
  const oldest = Date.now() - AGE_MS_MAX
  const texts = new Map([
    ...priced
      .filter(({ market, snapshot_at }) => market.endsWith('USD') && Date.parse(snapshot_at) >= oldest)
      .map(({ market, current_price }) => [market.slice(0, -'USD'.length), current_price] as const),
    ...known
      .filter(({ platform_stablecoin }) => platform_stablecoin)
      .map(({ asset }) => [asset, '1'] as const),
    ['USD', '1'] as const,
  ])
  return (amount, asset) => {
    const price = texts.get(asset)
    return price === undefined ? undefined : usdAt(price, amount)
  }
}
