import { strict as assert } from 'node:assert'
import { formatAmount, parseAmount } from '../../contract/assets/amount.ts'

/** One day of a period, with the annual rate in force. Decimal strings. */
export interface Day {
  /** YYYY-MM-DD, UTC. */
  day: string
  /** The balance times the seconds it was held, summed over the day: its average times 86,400. Exact. */
  balance_seconds: string
  rate: string
}

/** The derivation of a reward, in decimal strings that are exact unless noted. */
export interface Derivation {
  /**
   * `average_balance` is balance_seconds divided by 86,400; `reward` is the average times the rate divided by 365.
   * Both are truncated after 12 decimals. `product` is balance_seconds times rate.
   */
  days: (Day & { average_balance: string; product: string; reward: string })[]
  /** The sum of the products. */
  products: string
  /** The sum of the products divided by 86,400 and 365, rounded down to 6 decimals: the amount of the statement. */
  total: string
}

export const RATE_DECIMALS = 10
const BALANCE_DECIMALS = 6
/** Seconds have 6 decimals: the database's clock counts microseconds. */
const BALANCE_SECONDS_DECIMALS = BALANCE_DECIMALS + 6
const PRODUCT_DECIMALS = RATE_DECIMALS + BALANCE_SECONDS_DECIMALS
const SHOWN_DECIMALS = 12
const TOTAL_DECIMALS = 6
export const SECONDS_OF_A_DAY = 86_400n
const SECONDS_OF_A_YEAR = 365n * SECONDS_OF_A_DAY

/**
 * Computes the reward of a period (API behaviour, Statements): the sum of each day's average balance times its rate,
 * divided by 365 (in leap years too). The sum is rounded down once, at the end. So it never exceeds the exact value,
 * and is less than one unit below it.
 */
export function rewardOf(days: Day[]): Derivation {
  const derived = days.map((day) => {
    const balanceSeconds = exact(day.balance_seconds, BALANCE_SECONDS_DECIMALS)
    return { day, balanceSeconds, product: balanceSeconds * exact(day.rate, RATE_DECIMALS) }
  })
  const sum = derived.reduce((total, { product }) => total + product, 0n)
  return {
    days: derived.map(({ day, balanceSeconds, product }) => ({
      ...day,
      average_balance: formatAmount(balanceSeconds / SECONDS_OF_A_DAY, BALANCE_SECONDS_DECIMALS),
      product: formatAmount(product, PRODUCT_DECIMALS),
      reward: formatAmount(byYear(product, SHOWN_DECIMALS), SHOWN_DECIMALS),
    })),
    products: formatAmount(sum, PRODUCT_DECIMALS),
    total: formatAmount(byYear(sum, TOTAL_DECIMALS), TOTAL_DECIMALS),
  }
}

function exact(text: string, decimals: number): bigint {
  const value = parseAmount(text, decimals)
  assert(value !== undefined, `${text} has more than ${decimals} decimals`)
  return value
}

/** Divides a product by the seconds of a year. The result is truncated: bigint division rounds non-negative values down. */
const byYear = (product: bigint, decimals: number): bigint =>
  product / (SECONDS_OF_A_YEAR * 10n ** BigInt(PRODUCT_DECIMALS - decimals))
