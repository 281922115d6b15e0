import { Type } from 'typebox'
import { Closed, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import { operatorOperation } from '../operation.ts'
import { Identity, requireIdentity } from '../../money/records/identity.ts'
import { IDENTITY_DECISIONS, setIdentityStatus } from './set-identity-status.ts'

type Decision = keyof typeof IDENTITY_DECISIONS

/** Decides about an identity of the token's customer, as the platform's administrator. Answers the identity. */
export const decideIdentity = operatorOperation({
  method: 'POST',
  url: '/v2/operators/identities/:id/decisions',
  scope: 'operators:write_verification',
  summary: 'Decide About Identity',
  params: Closed({ id: Uuid('Identity.') }),
  body: Closed({
    decision: OneOf(
      Object.keys(IDENTITY_DECISIONS) as Decision[],
      'APPROVE: it is verified, and may withdraw. DENY: the verification failed. REOPEN: it is needed again. DISABLE and ENABLE: its withdrawals stop, and may go on.',
    ),
    seen: Type.Optional(
      Timestamp('`updated_at` of what was looked at: refused where the identity was changed after it.'),
    ),
  }),
  reply: Identity,
  async run({ params: { id }, body: { decision, seen }, customerId, origin, db }) {
    await requireIdentity(db, customerId, id)
    const decided = { ...IDENTITY_DECISIONS[decision], seen }
    return (await setIdentityStatus(db, id, decided, origin, customerId))!
  },
})
