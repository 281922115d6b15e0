/** An amount on the wire, in a request or answer (API behaviour, Conventions). For JSON schemas, together with a `maxLength`. */
export const AMOUNT_PATTERN = '^[0-9]*\\.?[0-9]+$'

// Accepts the same texts as AMOUNT_PATTERN without its quadratic backtracking. It also keeps BigInt() from reading
// '', ' 1 ' or '0x10' as numbers.
const AMOUNT_SHAPE = /^(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)$/

const ZERO = 48

/**
 * Converts an amount to minor units of an asset with this many decimals, exactly (API behaviour, Conventions).
 * Undefined when the text is no amount or has more significant decimals than the asset. Trailing zeros do not count:
 * '1.500' is an amount of an asset with two decimals.
 */
export function parseAmount(text: string, decimals: number): bigint | undefined {
  if (!AMOUNT_SHAPE.test(text)) return undefined
  const point = text.indexOf('.')
  if (point === -1) return BigInt(text + '0'.repeat(decimals))
  let end = text.length
  while (text.charCodeAt(end - 1) === ZERO) end--
  const missing = decimals - (end - point - 1)
  if (missing < 0) return undefined
  return BigInt(text.slice(0, point) + text.slice(point + 1, end) + '0'.repeat(missing))
}

/** The canonical decimal string of minor units: '1.5', '0', '-0.01'; never '1.50', '.5' or '-0'. */
export function formatAmount(minor: bigint, decimals: number): string {
  if (minor < 0n) return `-${formatAmount(-minor, decimals)}`
  const digits = minor.toString().padStart(decimals + 1, '0')
  const point = digits.length - decimals
  let end = digits.length
  while (end > point && digits.charCodeAt(end - 1) === ZERO) end--
  return end === point ? digits.slice(0, point) : `${digits.slice(0, point)}.${digits.slice(point, end)}`
}

/** Rewrites an amount that `parseAmount` accepts in canonical form: '1.5' for '1.50', '0.5' for '.5'. */
export const canonicalAmount = (text: string, decimals: number): string =>
  formatAmount(parseAmount(text, decimals)!, decimals)

/**
 * Converts a value of SQL `numeric`, which may be negative and padded with zeros, to minor units. Throws RangeError
 * when the asset cannot represent it: then Bursar did not write this row.
 */
export function parseStoredAmount(text: string, decimals: number): bigint {
  const negative = text.startsWith('-')
  const minor = parseAmount(negative ? text.slice(1) : text, decimals)
  if (minor === undefined) throw new RangeError(`stored amount ${text} does not fit ${decimals} decimals`)
  return negative ? -minor : minor
}
