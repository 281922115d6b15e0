import { formatAmount, parseStoredAmount } from '../../src/contract/assets/amount.ts'

/** Decimals of the family's coins: one coin is 100,000,000 minor units. */
export const DECIMALS = 8

/** The minor units of a decimal string of coins. */
export const minorOf = (amount: string): bigint => parseStoredAmount(amount, DECIMALS)
/** The decimal string of minor units. */
export const decimalOf = (minor: bigint): string => formatAmount(minor, DECIMALS)

export { larger, smaller, sum } from '../kit/units.ts'
