import { sumOf } from './format.ts'

/** Values in USD, to the cent, from the API's texts. No digit passes through a number. */

/** An amount as digits without a point, and how many of them are decimals. */
function digitsOf(amount: string): [digits: bigint, decimals: number] {
  const [whole = '', rest = ''] = amount.split('.')
  return [BigInt(whole + rest), rest.length]
}

/** A value in USD, rounded down to the cent and with both digits of it. */
function toCents(value: bigint, decimals: number): string {
  const cents = ((value * 100n) / 10n ** BigInt(decimals)).toString().padStart(3, '0')
  return `${cents.slice(0, -2)}.${cents.slice(-2)}`
}

/** What an amount is worth at this price, rounded to the nearest cent. */
export function usdAt(price: string, amount: string): string {
  const [units, decimals] = digitsOf(amount)
  const [ofPrice, priceDecimals] = digitsOf(price)
  const halfCent = 5n * 10n ** BigInt(decimals + priceDecimals)
  return toCents(units * ofPrice * 1_000n + halfCent, decimals + priceDecimals + 3)
}

/** What a part of an amount is worth, by the value of the whole amount. */
export function usdOfPart(part: string, whole: string, value: string): string {
  const [units, decimals] = digitsOf(part)
  const [ofWhole, wholeDecimals] = digitsOf(whole)
  const [ofValue, valueDecimals] = digitsOf(value)
  if (ofWhole === 0n) return '0.00'
  const scaled = units * ofValue * 10n ** BigInt(wholeDecimals + 2)
  return toCents(scaled / ofWhole, decimals + valueDecimals + 2)
}

export function sumOfUsd(values: readonly string[]): string {
  const [whole, rest = ''] = sumOf(values).split('.')
  return `${whole}.${rest.padEnd(2, '0')}`
}
