import { sign } from 'node:crypto'
import type { Actor } from '../contract/actor.ts'
import type { PayoutNetwork } from '../networks/network.ts'
import type { RowMacs } from './sealed-rows.ts'

/**
 * A MAC over the payment details of a withdrawal, made when it is accepted, with a key that is not in the database.
 * It is checked before the withdrawal is signed. So write access to the database is not enough to redirect or invent
 * a withdrawal.
 */

/** The withdrawal details that the MAC covers. Ids in lower case, the amount as a decimal string. */
export interface AcceptedWithdrawal {
  customer_id: string
  id: string
  profile_id: string
  asset: string
  amount: string
  network: PayoutNetwork
  /** The address as the client sent it; for a wire the bank account, as `payeeOf` writes it. */
  destination: string
  memo: string | null
  /** The approvers that it needs; absent where it needs none. */
  approval?: RequiredApproval | undefined
}

/** The approvers that a withdrawal requires. */
export interface RequiredApproval {
  id: string
  required: number
  role: string
  rule_id: string | null
  policy_version: number
  initiator: Actor
  deadline: string
}

/** Makes the MAC of a withdrawal, with the signature of this process where there are signer processes. */
export function macOfWithdrawal(macs: RowMacs, accepted: AcceptedWithdrawal): string {
  const text = acceptedText(accepted)
  const mac = macs.of('withdrawals').make(text)
  if (macs.acceptanceKey === undefined) return mac
  return `${mac}${ACCEPTANCE}${sign(null, Buffer.from(text), macs.acceptanceKey).toString('base64url')}`
}

/** Returns what is wrong with a withdrawal; undefined when it is unchanged since it was accepted. */
export const objectionToWithdrawal = (
  macs: RowMacs,
  accepted: AcceptedWithdrawal,
  mac: string | null,
): string | undefined =>
  mac === null
    ? 'it has no MAC: no Bursar with the master key accepted it'
    : macs
        .of('withdrawals')
        .objectionTo(
          acceptedText(accepted),
          mac.split(ACCEPTANCE)[0]!,
          'it was changed after it was accepted, or was never accepted',
        )

/** Between the MAC and the signature of the process that accepted the withdrawal. */
const ACCEPTANCE = '~'

/** The signature in a withdrawal's `mac`, base64url; null where the process that accepted it had no key for signers. */
export const acceptanceOf = (mac: string | null): string | null => mac?.split(ACCEPTANCE)[1] ?? null

/** The text that the MAC and the acceptance's signature cover. JSON delimits the members, so no two withdrawals have the same. */
export function acceptedText(accepted: AcceptedWithdrawal): string {
  const { customer_id, id, profile_id, asset, amount, network, destination, memo, approval } = accepted
  const payment = [customer_id, id, profile_id, asset, amount, network, destination, memo]
  return JSON.stringify(approval === undefined ? payment : [...payment, requirementOf(approval)])
}

/** A withdrawal without approvers has one member fewer, so neither adding nor removing a requirement keeps the MAC. */
function requirementOf(approval: RequiredApproval): unknown[] {
  const { id, required, role, rule_id, policy_version, initiator, deadline } = approval
  return [id, required, role, rule_id, policy_version, initiator.type, initiator.id, deadline]
}
