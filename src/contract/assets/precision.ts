import { problem } from '../problems.ts'
import { parseAmount } from './amount.ts'

/** The minor units of an amount of a request, whose member is `field`. Throws exceed-precision where the decimals do not suffice. */
export function minorUnits(
  field: string,
  amount: string,
  precision: { asset: string; decimals: number },
): bigint {
  const minor = parseAmount(amount, precision.decimals)
  if (minor === undefined) throw problem.exceedPrecision(field, precision)
  return minor
}
