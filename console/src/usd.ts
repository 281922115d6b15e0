import { sumOf } from './format.ts'

/** Values in USD, to the cent, from the API's texts. No digit passes through a number. */

/** An amount as digits without a point, and how many of them are decimals. */
function digitsOf(amount: string): [digits: bigint, decimals: number] {
  const [whole = '', rest = ''] = amount.split('.')
  return [BigInt(whole + rest), rest.length]
}

/** Cents as USD: `2601` is `26.01`. */
export function usdOfCents(cents: string): string {
  const digits = cents.padStart(3, '0')
  return `${digits.slice(0, -2)}.${digits.slice(-2)}`
}

/** What an amount is worth at this price, rounded down to the cent. */
export function usdAt(price: string, amount: string): string {
  const [units, decimals] = digitsOf(amount)
  const [ofPrice, priceDecimals] = digitsOf(price)
  return usdOfCents(((units * ofPrice * 100n) / 10n ** BigInt(decimals + priceDecimals)).toString())
}

/** What a part of an amount is worth, by the cents that the whole amount is worth; rounded down to the cent. */
export function usdOfPart(part: string, whole: string, cents: string): string {
  const [units, decimals] = digitsOf(part)
  const [ofWhole, wholeDecimals] = digitsOf(whole)
  if (ofWhole === 0n) return '0.00'
  return usdOfCents(
    (
      (units * 10n ** BigInt(wholeDecimals) * BigInt(cents)) /
      (ofWhole * 10n ** BigInt(decimals))
    ).toString(),
  )
}

/** The sum of values in USD. */
export function sumOfUsd(values: readonly string[]): string {
  const [whole, rest = ''] = sumOf(values).split('.')
  return `${whole}.${rest.padEnd(2, '0')}`
}
