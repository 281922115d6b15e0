const NEEDS_NO_QUOTES = /^[\w.:/+-]+$/

/** Formats a one-dimensional array as PostgreSQL reads it. The driver's own writer takes several times as long. */
export function arrayLiteral(values: readonly (string | number | null | undefined)[]): string {
  let literal = '{'
  // Many columns repeat a value: a repeated value is quoted once.
  let last: string | undefined
  let quoted = ''
  for (let index = 0; index < values.length; index++) {
    const value = values[index] ?? null
    if (index > 0) literal += ','
    if (value === null) literal += 'NULL'
    else if (typeof value === 'number') literal += value
    else {
      if (value !== last) quoted = quotedElement((last = value))
      literal += quoted
    }
  }
  return `${literal}}`
}

/** Quotes an element where necessary. The word NULL, in any case of letters, must be quoted. */
const quotedElement = (value: string): string =>
  NEEDS_NO_QUOTES.test(value) && (value.length !== 4 || value.toLowerCase() !== 'null')
    ? value
    : `"${value.replaceAll(/["\\]/g, '\\$&')}"`
