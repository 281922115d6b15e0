import { createHash } from 'node:crypto'
import { getAddress, isAddress } from 'viem/utils'
import type { SignedStatement } from '../src/contract/approval.ts'
import { objectionToSignature, thumbprintOf } from '../src/governance/approvals/approval-statement.ts'
import type { SignerConfig } from './config.ts'
import type { AllowLine, DestinationLine, FillLine, OpenLine, VoidLine } from './journal-lines.ts'
import { Refused } from './refused.ts'

/** How long approvals of a change count. Otherwise those of the first opening would open a journal that was lost. */
const CHANGE_VALID_MS = 86_400_000

const TRANSFERS_MAX = 1_000
/** Each takes some tenths of a millisecond for each approver, in which nothing else is answered. */
const APPROVALS_MAX = 100

/**
 * What people may do to a journal: open it at a nonce, allow transfers that it does not know to be signed, allow some to be
 * signed anew, or use up a nonce with an empty transfer to the wallet itself.
 */
export type JournalChange = { expires_at: string } & (
  | Omit<OpenLine, 'at' | 'change'>
  | (Omit<VoidLine, 'at' | 'change' | 'nonce' | 'transfer_id'> & {
      nonces: VoidLine['nonce'][]
      transfer_ids: string[]
    })
  | Omit<AllowLine, 'at' | 'change'>
  | Omit<DestinationLine, 'at' | 'change' | 'approvals'>
  | (Omit<FillLine, 'at' | 'change' | 'fee'> & { gas: number; max_fee_per_gas: string })
)

export const changeText = (change: JournalChange): string =>
  JSON.stringify({ statement: 'bursar-signer/v2', ...change })

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0
/** What stands for a nonce where the family has none. */
const isName = (value: unknown): value is string =>
  typeof value === 'string' && /^([0-9a-f]{32}|\w{56,64}:\d{1,19})$/.test(value)
/** A timestamp as `Date` writes it: the text decides the order, too. */
const isTime = (value: unknown): value is string =>
  typeof value === 'string' && new Date(Date.parse(value) || 0).toISOString() === value

/** The service compares it with its wallets; only those of EVM networks have two spellings. */
const isAddressText = (value: unknown): value is string =>
  typeof value === 'string' && /^\w{26,69}$/.test(value)
const spelled = (address: string) => (isAddress(address) ? getAddress(address) : address)

const areIds = (ids: unknown): ids is string[] =>
  Array.isArray(ids) &&
  ids.length > 0 &&
  ids.length <= TRANSFERS_MAX &&
  ids.every((id) => typeof id === 'string')

/** Reads a change, with its members in their order. Throws Refused for anything else. */
export function readChange(value: unknown): JournalChange {
  const { kind, network, wallet, nonce, expires_at, ...more } = Object(value) as Record<string, unknown>
  const { next_nonce, transfers_from, after, nonces, transfer_ids, gas, max_fee_per_gas } = more
  const { asset, destinations, remove } = more
  if (kind === 'ALLOW' && typeof network === 'string' && areIds(transfer_ids) && isTime(expires_at))
    return { kind, network, transfer_ids, expires_at }
  const isPlace = typeof network === 'string' && typeof asset === 'string' && isTime(expires_at)
  if (kind === 'DESTINATION' && isPlace && areIds(destinations) && destinations.every(isAddressText))
    return {
      ...{ kind, network, asset, destinations: destinations.map(spelled) },
      ...(remove === true && { remove }),
      expires_at,
    }
  if (typeof network === 'string' && isAddressText(wallet) && isTime(expires_at)) {
    const place = { network, wallet: spelled(wallet) }
    if (kind === 'OPEN' && isCount(next_nonce) && isTime(transfers_from) && (!after || areIds(after)))
      return { kind, ...place, next_nonce, transfers_from, ...(areIds(after) && { after }), expires_at }
    const areNonces = Array.isArray(nonces) && nonces.every((one) => isCount(one) || isName(one))
    if (kind === 'VOID' && areIds(transfer_ids) && areNonces && nonces.length === transfer_ids.length)
      return { kind, ...place, nonces, transfer_ids, expires_at }
    const isPrice = typeof max_fee_per_gas === 'string' && /^\d{1,30}$/.test(max_fee_per_gas)
    if (kind === 'FILL' && isCount(nonce) && isCount(gas) && isPrice)
      return { kind, ...place, nonce, gas, max_fee_per_gas, expires_at }
  }
  throw new Refused(
    'a change has network and expires_at, and is OPEN with wallet, next_nonce and transfers_from, FILL with wallet, nonce, gas ' +
      `and max_fee_per_gas, ALLOW with 1 to ${TRANSFERS_MAX} transfer_ids, DESTINATION with asset and destinations, or VOID with these, their nonces and wallet. ` +
      'Times are written as 2026-01-31T08:00:00.000Z',
  )
}

/** The lines that a change adds to the journal. */
export function linesOf(
  approved: JournalChange,
  approvals: number,
  now: Date,
): (AllowLine | DestinationLine | FillLine | OpenLine | VoidLine)[] {
  const { expires_at: _, ...line } = approved
  const change = createHash('sha256').update(changeText(approved)).digest('hex')
  const kept = { at: now.toISOString(), change }
  if (line.kind === 'VOID') {
    const { nonces, transfer_ids: ids, ...place } = { ...line, ...kept }
    return nonces.map((nonce, n) => ({ ...place, nonce, transfer_id: ids[n]!, change: `${change}/${n}` }))
  }
  // More people may approve the same later.
  if (line.kind === 'DESTINATION') return [{ ...line, ...kept, change: `${change}/${approvals}`, approvals }]
  if (line.kind !== 'FILL') return [{ ...line, ...kept }]
  const { gas, max_fee_per_gas, ...fill } = line
  return [{ ...fill, ...kept, fee: String(BigInt(gas) * BigInt(max_fee_per_gas)) }]
}

/**
 * How many of the configuration's approvers have signed this change, not long ago. Throws Refused unless they are enough.
 */
export function requireApproved(
  { approvers, journalApprovals }: SignerConfig,
  change: JournalChange,
  approvals: readonly SignedStatement[],
  now: Date,
): number {
  if (approvals.length > APPROVALS_MAX) throw new Refused(`at most ${APPROVALS_MAX} approvals are read`)
  const left = Date.parse(change.expires_at) - now.getTime()
  if (left < 0 || left > CHANGE_VALID_MS)
    throw new Refused(`expires_at must lie within the next 24 hours, and is ${change.expires_at}`)
  // All transfers would be refused until then, and the time of an opening only grows.
  if (change.kind === 'OPEN' && Date.parse(change.transfers_from) > now.getTime())
    throw new Refused(`transfers_from is in the future: ${change.transfers_from}`)
  const text = changeText(change)
  const approving = new Set(
    approvals.flatMap((signed) => {
      const key = approvers.find((approver) => objectionToSignature(text, signed, approver) === undefined)
      return key === undefined ? [] : [thumbprintOf(key)]
    }),
  )
  if (approving.size < journalApprovals)
    throw new Refused(`${journalApprovals} approvers must sign this, and ${approving.size} have: ${text}`)
  return approving.size
}
