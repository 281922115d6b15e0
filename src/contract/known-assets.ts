import { findAsset } from './assets/catalogue.ts'
import { problem } from './problems.ts'

/** Most characters of a value that a message repeats. */
const SHOWN_MAX = 40

/**
 * Refuses an unknown asset, in a filter as well as in a body: an empty list would hide the mistake. Throws
 * bad-request with the field and the value.
 */
export function requireKnownAssets(field: string, symbols: readonly string[] | undefined): void {
  const unknown = symbols?.find((symbol) => findAsset(symbol) === undefined)
  if (unknown === undefined) return
  const shown = unknown.length > SHOWN_MAX ? `${unknown.slice(0, SHOWN_MAX)}…` : unknown
  throw problem.badRequest(`${field} ${shown === '' ? '(empty)' : shown} is unknown`, field)
}
