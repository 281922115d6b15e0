import { CRYPTO_NETWORKS, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { addressFromBytes } from '../../contract/addresses/addresses.ts'

/**
 * The outcomes that magic addresses cause on the simulated networks (API behaviour, Sandbox; `status_details` and
 * `secondary_status`). An outcome's position is part of its addresses: append, never reorder.
 *
 * - INVALID_DESTINATION_ADDRESS, STALE_FEE_QUOTE, MISSING_TRUSTLINE, MAX_RENT_EXCEEDED: FAILED, with these
 *   `status_details`.
 * - TRAVEL_RULE_REJECTED, CUSTOMER_REJECTED: FAILED, with this `secondary_status`.
 * - TRAVEL_RULE_INFO_REQUESTED, PENDING_CUSTOMER_APPROVAL: PENDING with this `secondary_status` for a while, then
 *   like any other.
 * - DROPPED_ONCE: the network drops the transaction once, so that it must be broadcast again.
 * - NEVER_CONFIRMS: stays PENDING.
 */
export const MAGIC_OUTCOMES = [
  'INVALID_DESTINATION_ADDRESS',
  'STALE_FEE_QUOTE',
  'MISSING_TRUSTLINE',
  'MAX_RENT_EXCEEDED',
  'TRAVEL_RULE_REJECTED',
  'CUSTOMER_REJECTED',
  'TRAVEL_RULE_INFO_REQUESTED',
  'PENDING_CUSTOMER_APPROVAL',
  'DROPPED_ONCE',
  'NEVER_CONFIRMS',
] as const

export type MagicOutcome = (typeof MAGIC_OUTCOMES)[number]

// Only Stellar has trust lines, and only Solana has rent.
const ONLY_ON: Partial<Record<MagicOutcome, CryptoNetwork>> = {
  MISSING_TRUSTLINE: 'STELLAR',
  MAX_RENT_EXCEEDED: 'SOLANA',
}

/** The outcome of each magic address, by `<network> <address>`. Made when first asked for, not at each start. */
const outcomes = new Map<string, MagicOutcome>()

/**
 * Returns the address that causes this outcome on a network in the sandbox (API behaviour, Sandbox), in the form of the
 * main network; undefined when the network does not have the outcome. The addresses are valid on real networks too, but
 * nobody has their keys.
 */
export function magicAddress(network: CryptoNetwork, outcome: MagicOutcome): string | undefined {
  return (ONLY_ON[outcome] ?? network) === network ? addressFromBytes(network, payload(outcome)) : undefined
}

/** Returns the outcome that a magic address causes (API behaviour, Sandbox); undefined for any other canonical address. */
export function magicOutcome(network: CryptoNetwork, canonicalAddress: string): MagicOutcome | undefined {
  if (outcomes.size === 0)
    for (const one of CRYPTO_NETWORKS)
      for (const outcome of MAGIC_OUTCOMES) outcomes.set(`${one} ${magicAddress(one, outcome)}`, outcome)
  return outcomes.get(`${network} ${canonicalAddress}`)
}

const WIRE_OUTCOMES: readonly MagicOutcome[] = [
  'INVALID_DESTINATION_ADDRESS',
  'CUSTOMER_REJECTED',
  'PENDING_CUSTOMER_APPROVAL',
  'DROPPED_ONCE',
  'NEVER_CONFIRMS',
]

/** The account number that the simulated bank refuses as a fiat account: it becomes REJECTED. */
export const REJECTED_ACCOUNT_NUMBER = '900000000000'

/** Returns the account number that causes this outcome of a wire in the sandbox; undefined when a wire cannot have it. */
export function magicAccountNumber(outcome: MagicOutcome): string | undefined {
  if (!WIRE_OUTCOMES.includes(outcome)) return undefined
  return `9000000000${numberOf(outcome)}`
}

/** Returns the outcome that a magic account number causes; undefined for any other number. */
export function magicWireOutcome(accountNumber: string): MagicOutcome | undefined {
  return WIRE_OUTCOMES.find((outcome) => magicAccountNumber(outcome) === accountNumber)
}

// Readable in a hex dump: 'bursar sandbox 01', then zeros. The number is within the first 20 bytes, which every kind of
// address contains.
function payload(outcome: MagicOutcome): Uint8Array {
  const bytes = new Uint8Array(32)
  bytes.set(new TextEncoder().encode(`bursar sandbox ${numberOf(outcome)}`))
  return bytes
}

function numberOf(outcome: MagicOutcome): string {
  return String(MAGIC_OUTCOMES.indexOf(outcome) + 1).padStart(2, '0')
}
