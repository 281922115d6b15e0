import { get } from './api.ts'
import { groupDigits, signed } from './format.ts'
import { useCall } from './load.ts'
import type { Price } from './records.ts'
import { usdAt } from './usd.ts'

/** Prices in USD, as the service itself uses them: a platform stablecoin is worth one, and what is older than a day is no price. */

const prices = get('/v2/all-markets/prices')
const assets = get('/v2/assets')
const AGE_MS_MAX = 86_400_000

export type UsdOf = (amount: string, asset: string) => string | undefined

/** What an amount is worth now; undefined without a price. Undefined itself while the prices are read. */
export function usePrices(): UsdOf | undefined {
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

/** A value that the page has computed: the API answers amounts and prices. */
export const Usd = ({ value, sign = false }: { value: string; sign?: boolean }) => (
  <span class="amount usd">
    {sign ? signed(value) : groupDigits(value)} <span class="asset">USD</span>
  </span>
)

/** An amount's value in USD, or that there is no price. */
export function InUsd({ usd, amount, asset }: { usd: UsdOf | undefined; amount: string; asset: string }) {
  const value = usd?.(amount, asset)
  if (value !== undefined) return <Usd value={value} />
  return <span class="quiet">{usd !== undefined && 'no price'}</span>
}
