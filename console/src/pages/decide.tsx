import type { ComponentChildren } from 'preact'
import { Action } from '../action.tsx'
import { get, post, send } from '../api.ts'
import { useCall } from '../load.ts'
import { Link } from '../parts.tsx'
import { signText, type ApproverPasskey } from '../passkey.ts'
import type { Approval, Approver } from '../records.ts'
import { may, session } from '../session.ts'
import { isPayment, type Decision, type Statement, type ToSign } from '../statement.ts'
import { isOpen } from './approvals.tsx'

/** The person's own decision about an approval, signed with a passkey. */

const approvers = get('/v2/operators/approvers')

export const useApprovers = () =>
  useCall<{ items: Approver[] }>(may('operators:read_approver') ? approvers : undefined)

interface DecideProps {
  approval: Approval
  statement: Statement
  toSign: ToSign
  approvers: readonly Approver[]
  again: () => void
}

/** Whether a passkey of this domain signs on this page. */
const isOfThisPage = (domain: string): boolean =>
  location.hostname === domain || location.hostname.endsWith(`.${domain}`)

/** The passkey with which the person signs, or why there is none. */
function keyOf(statement: Statement, own: readonly Approver[]): ApproverPasskey | ComponentChildren {
  const { operator } = session.value!
  const { initiator, customer_id, approval_id, role } = statement
  const asked =
    (initiator.type === 'OPERATOR' && initiator.id === operator.id) ||
    (initiator.type === 'API_CLIENT' && own.some(({ client_id }) => client_id === initiator.id))
  if (asked) return 'You asked for it. Somebody else decides.'
  if (own.length === 0)
    return (
      <>
        You are no approver of this customer. Who owns the database adds you with a passkey of{' '}
        <Link to="sign-in/own">your sign-in</Link>:{' '}
        <code>
          bursar approvers add --customer {customer_id} --name &lt;name&gt; --role {role} --operator{' '}
          {operator.id} --passkey &lt;id&gt;
        </code>
      </>
    )
  const active = own.filter(({ status }) => status === 'ACTIVE')
  if (active.length === 0) return 'You are an approver no more: your entry is revoked.'
  const fitting = active.filter((approver) => approver.role === role || approver.role === 'ADMIN')
  if (fitting.length === 0)
    return `It needs an approver of the role ${role}. You have the role ${active.map(({ role }) => role).join(', ')}.`
  const passkeys = fitting.flatMap(({ id, credential_id, rp_id }) =>
    credential_id === undefined || rp_id === undefined ? [] : [{ id, credential_id, rp_id }],
  )
  if (passkeys.length === 0)
    return (
      <>
        Your entry as an approver has a key file. Sign with it:{' '}
        <code>
          bursar approvals approve {approval_id} --customer {customer_id} --approver {fitting[0]!.id} --key
          &lt;file&gt;
        </code>
      </>
    )
  return (
    passkeys.find(({ rp_id }) => isOfThisPage(rp_id)) ??
    `Your passkey belongs to ${passkeys[0]!.rp_id}. Open the console there.`
  )
}

const isKey = (found: ApproverPasskey | ComponentChildren): found is ApproverPasskey =>
  typeof found === 'object' && found !== null && 'credential_id' in found

export function Decide({ approval, statement, toSign, approvers, again }: DecideProps) {
  if (!isOpen(approval)) return null
  const own = approvers.filter(({ operator_id }) => operator_id === session.value!.operator.id)
  const found = may('approvals:write_decision')
    ? keyOf(statement, own)
    : 'Your role decides no approvals. The roles APPROVER and ADMIN do.'
  const hasApproved = approval.decisions.some(({ approver_id }) => own.some(({ id }) => id === approver_id))
  return (
    <section>
      <h2>Your decision</h2>
      {hasApproved && <p>You have approved it. Until it is carried out, you can still reject it.</p>}
      {isKey(found) ? (
        <Buttons
          {...{ approval, statement, toSign, again }}
          passkey={found}
          mayApprove={approval.status === 'PENDING' && !hasApproved}
        />
      ) : (
        <p class="own-decision">{found}</p>
      )}
    </section>
  )
}

function Buttons({
  approval: { id },
  statement,
  toSign,
  passkey,
  mayApprove,
  again,
}: Omit<DecideProps, 'approvers'> & { passkey: ApproverPasskey; mayApprove: boolean }) {
  const decide = async (decision: Decision) => {
    const body = await signText(toSign[decision], passkey)
    await send(post(`/v2/approvals/${id}/${decision.toLowerCase()}`, body))
  }
  const ends = isPayment(statement.subject)
    ? 'Reject it? The payment fails, and its total returns to the profile.'
    : 'Reject it? The change is not made.'
  return (
    <div class="buttons">
      {mayApprove && (
        <Action work={() => decide('APPROVE')} done={again} kind="main">
          Approve with your passkey
        </Action>
      )}
      <Action work={() => decide('REJECT')} done={again} ask={ends} kind="danger">
        Reject
      </Action>
    </div>
  )
}
