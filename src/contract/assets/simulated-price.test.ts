import { expect, test } from 'vitest'
import { simulatedPrice } from './simulated-price.ts'

const priceAt = (market: string, minute: number) =>
  simulatedPrice({ base_asset: market.slice(0, -3), quote_asset: market.slice(-3) }, minute)

// Every process must compute these prices, forever: other prices would change a sandbox's history.
test.each<[string, number, string]>([
  ['BTCUSD', 29_500_000, '105630.2'],
  ['BTCUSD', 29_500_001, '105521.3'],
  ['ETHEUR', 29_500_000, '3039.76'],
  ['USDPUSD', 29_500_000, '1.00011'],
  ['PYUSDGBP', 29_540_320, '0.7507'],
  ['BTCMXN', 29_500_000, '1954937.94'],
])('%s in minute %i is %s', (market, minute, price) => {
  expect(priceAt(market, minute)).toBe(price)
})

test('prices stay near their reference, move little in a minute, and agree between markets', () => {
  const at = (market: string, minute: number) => Number(priceAt(market, minute))
  for (let minute = 29_500_000; minute < 29_600_000; minute += 97) {
    expect(Math.abs(at('BTCUSD', minute) / 100_000 - 1)).toBeLessThan(0.2)
    expect(Math.abs(at('BTCUSD', minute + 1) / at('BTCUSD', minute) - 1)).toBeLessThan(0.01)
    expect(Math.abs(at('USDPUSD', minute) - 1)).toBeLessThan(0.001)
    const euro = at('BTCUSD', minute) / at('BTCEUR', minute)
    expect(Math.abs(at('ETHUSD', minute) / at('ETHEUR', minute) / euro - 1)).toBeLessThan(0.0001)
  }
})
