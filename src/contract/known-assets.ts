import { findAsset } from '../assets/catalogue.ts'
import { problem } from './problems.ts'

/** Most characters of a value that a message repeats. */
const SHOWN_MAX = 40

/**
 * Refuses an asset that does not exist, in a filter as in a body: a list of nothing would hide the mistake. Throws
 * bad-request with the field and the value.
 */
export function requireKnownAssets(field: string, symbols: readonly string[] | undefined): void {
  const unknown = symbols?.find((symbol) => findAsset(symbol) === undefined)
  if (unknown === undefined) return
  const shown = unknown.length > SHOWN_MAX ? `${unknown.slice(0, SHOWN_MAX)}…` : unknown
  throw problem.badRequest(`${field} ${shown === '' ? '(empty)' : shown} is unknown`)
}
