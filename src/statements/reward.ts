import { strict as assert } from 'node:assert'
import { formatAmount, parseAmount } from '../assets/amount.ts'

/** One day of a period: what was held at its end, and the annual rate in force. Decimal strings. */
export interface Day {
  /** YYYY-MM-DD, UTC. */
  day: string
  balance: string
  rate: string
}

/** Where a reward comes from, in decimal strings that are exact unless they say so. */
export interface Derivation {
  /** `product` is balance times rate; `reward` is that by 365, cut off after 12 decimals. */
  days: (Day & { product: string; reward: string })[]
  /** The sum of the products. */
  products: string
  /** The sum of the products by 365, rounded down to 6 decimals: what the statement states. */
  total: string
}

export const RATE_DECIMALS = 10
const BALANCE_DECIMALS = 6
const PRODUCT_DECIMALS = RATE_DECIMALS + BALANCE_DECIMALS
const REWARD_DECIMALS = 12
const TOTAL_DECIMALS = 6
const DAYS_OF_A_YEAR = 365n

/**
 * The reward of a period (design section 5, "Statements"): each day's balance times its rate, summed, by 365 (in leap
 * years too), rounded down once, at the end. So it never exceeds the exact value, nor falls short of it by a unit.
 */
export function rewardOf(days: Day[]): Derivation {
  const products = days.map(
    ({ balance, rate }) => exact(balance, BALANCE_DECIMALS) * exact(rate, RATE_DECIMALS),
  )
  const sum = products.reduce((total, product) => total + product, 0n)
  return {
    days: days.map((day, index) => ({
      ...day,
      product: formatAmount(products[index]!, PRODUCT_DECIMALS),
      reward: formatAmount(perDay(products[index]!, REWARD_DECIMALS), REWARD_DECIMALS),
    })),
    products: formatAmount(sum, PRODUCT_DECIMALS),
    total: formatAmount(perDay(sum, TOTAL_DECIMALS), TOTAL_DECIMALS),
  }
}

function exact(text: string, decimals: number): bigint {
  const value = parseAmount(text, decimals)
  assert(value !== undefined, `${text} has more than ${decimals} decimals`)
  return value
}

/** A product by 365, cut off: bigint division rounds down what is not negative. */
const perDay = (product: bigint, decimals: number): bigint =>
  product / (DAYS_OF_A_YEAR * 10n ** BigInt(PRODUCT_DECIMALS - decimals))
