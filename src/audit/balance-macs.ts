import type { RowMacs } from './sealed-rows.ts'

/**
 * MACs of balances. The service's database role writes balances and inserts entries, so neither proves what a profile has. A
 * balance carries a MAC with a key outside the database, over the available amount, its version and the time of its last entry.
 * An older balance that was put back has a right MAC, but the role can remove no entry: a newer entry exposes it.
 */

export interface Sealed {
  profile_id: string
  asset: string
  /** In minor units. */
  available: bigint
  version: number
}

/** Balances whose MACs a process remembers. */
const PROVEN_MAX = 10_000

/** The last MAC of each balance that was made here or found right, with the text that it covers. Most are read as last written. */
const proven = new WeakMap<RowMacs, Map<string, { text: string; mac: string }>>()

function prove(macs: RowMacs, balance: Sealed, text: string, mac: string): void {
  let known = proven.get(macs)
  if (known === undefined || known.size >= PROVEN_MAX) {
    known = new Map<string, { text: string; mac: string }>()
    proven.set(macs, known)
  }
  known.set(keyOf(balance), { text, mac })
}

/** Makes the MAC of a balance; `updatedAt` is the time of its last entry. */
export function macOfBalance(macs: RowMacs, customerId: string, balance: Sealed, updatedAt: string): string {
  const text = textOfBalance(customerId, balance, updatedAt)
  const mac = macs.of('balances').make(text)
  prove(macs, balance, text, mac)
  return mac
}

/** Returns what is wrong with a balance; undefined when a Bursar with the master key wrote it. */
export function objectionToBalance(
  macs: RowMacs,
  customerId: string,
  balance: Sealed,
  { updated_at, mac }: { updated_at: string; mac: string | null },
): string | undefined {
  if (mac === null) return 'it has no MAC: no Bursar with the master key wrote it'
  const text = textOfBalance(customerId, balance, updated_at)
  const known = proven.get(macs)?.get(keyOf(balance))
  if (known?.text === text && known.mac === mac) return undefined
  const objection = macs.of('balances').objectionTo(text, mac)
  if (objection === undefined) prove(macs, balance, text, mac)
  return objection
}

export const keyOfBalance = (profile_id: string, asset: string): string => `${profile_id}/${asset}`

const keyOf = ({ profile_id, asset }: Sealed): string => keyOfBalance(profile_id.toLowerCase(), asset)

/** No member has a space, so different balances have different texts. */
const textOfBalance = (
  customerId: string,
  { profile_id, asset, available, version }: Sealed,
  updatedAt: string,
): string =>
  `${customerId.toLowerCase()} ${profile_id.toLowerCase()} ${asset} ${available} ${version} ${updatedAt}`
