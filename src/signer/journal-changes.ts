import { getAddress, isAddress } from 'viem/utils'
import type { SignedStatement } from '../contract/approval.ts'
import { objectionToSignature, thumbprintOf } from '../governance/approvals/approval-statement.ts'
import type { SignerConfig } from './config.ts'
import type { OpenLine, VoidLine } from './journal.ts'
import { Refused } from './rules.ts'

/** What people may do to a journal: open it at a nonce after it was lost, or void what was signed for a transfer. */
export type JournalChange = Omit<OpenLine, 'at'> | Omit<VoidLine, 'at'>

/** The text that approvers sign for a change of the journal. */
export const changeText = (change: JournalChange): string =>
  JSON.stringify({ statement: 'bursar-signer/v1', ...change })

/** Reads a change, with its members in their order. Throws Refused for anything else. */
export function readChange(value: unknown): JournalChange {
  const { kind, network, wallet, next_nonce, nonce, transfer_id } = Object(value) as Record<string, unknown>
  const isCount = (one: unknown): one is number => Number.isSafeInteger(one) && (one as number) >= 0
  if (typeof network === 'string' && typeof wallet === 'string' && isAddress(wallet)) {
    const of = { network, wallet: getAddress(wallet) }
    if (kind === 'OPEN' && isCount(next_nonce)) return { kind, ...of, next_nonce }
    if (kind === 'VOID' && isCount(nonce) && typeof transfer_id === 'string')
      return { kind, ...of, nonce, transfer_id }
  }
  throw new Refused(
    'a change is OPEN with network, wallet and next_nonce, or VOID with network, wallet, nonce and transfer_id',
  )
}

/** Throws Refused unless enough of the configuration's approvers have signed this change. */
export function requireApproved(
  { approvers, journalApprovals }: SignerConfig,
  change: JournalChange,
  approvals: readonly SignedStatement[],
): void {
  const text = changeText(change)
  const approving = new Set(
    approvals.flatMap((signed) => {
      const key = approvers.find((one) => objectionToSignature(text, signed, one) === undefined)
      return key === undefined ? [] : [thumbprintOf(key)]
    }),
  )
  if (approving.size < journalApprovals)
    throw new Refused(`${journalApprovals} approvers must sign this, and ${approving.size} have: ${text}`)
}
