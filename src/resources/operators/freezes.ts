import { Type } from 'typebox'
import { Closed, Items, Nothing, OneOf, Text, Timestamp, Uuid } from '../../contract/fields.ts'
import { Refusal } from '../../contract/refusal.ts'
import {
  freeze,
  FREEZE_REASONS,
  selectFreezes,
  signingEnds,
  unfreeze,
  type FreezeTarget,
} from '../../money/records/freezes.ts'
import { forAll } from '../../db/database.ts'
import { requireProfile } from '../../money/records/profile.ts'
import { operatorOperation } from '../operation.ts'

/** How long an answer waits for payments that a worker is signing. */
const SIGNING_WAIT_MS = 10_000

const Target = { profile_id: Type.Optional(Uuid('The profile; absent: the whole customer.')) }

const targetOf = (customer_id: string, profile_id: string | undefined): FreezeTarget =>
  profile_id === undefined ? { kind: 'CUSTOMER', customer_id } : { kind: 'PROFILE', customer_id, profile_id }

/**
 * The freezes of the token's customer and of its profiles. An API client does not see them: the reason of a freeze may be a
 * suspicion against the people whom the client serves.
 */
export const listFreezes = operatorOperation({
  method: 'GET',
  url: '/v2/operators/freezes',
  scope: 'operators:read_freeze',
  summary: 'List Freezes',
  reply: Items(
    Type.Object({
      ...Target,
      reason: OneOf(FREEZE_REASONS, 'Its cause.'),
      detail: Type.String({ description: 'What happened, for operators.' }),
      created_at: Timestamp('When it began.'),
    }),
  ),
  run: async ({ customerId, db }) => ({
    items: (await selectFreezes(db, { customerIds: [customerId] })).map(
      ({ subject, reason, detail, created_at }) => ({
        ...(subject !== customerId && { profile_id: subject.split('/')[1]! }),
        reason,
        detail,
        created_at,
      }),
    ),
  }),
})

/** Freezes the customer or one of its profiles. `signing_ended` is false while a worker may still sign a payment. */
export const createFreeze = operatorOperation({
  method: 'POST',
  url: '/v2/operators/freezes',
  scope: 'operators:write_freeze',
  summary: 'Create Freeze',
  body: Closed({ ...Target, reason: Text(500, 'The reason, for other operators.', 1) }),
  reply: Type.Object({
    signing_ended: Type.Boolean({ description: 'False while a worker may still sign a payment.' }),
  }),
  async run({ body: { profile_id, reason }, customerId, origin, db }) {
    if (profile_id !== undefined) await requireProfile(db, customerId, profile_id)
    await freeze(db, origin, targetOf(customerId, profile_id), 'OPERATOR', reason)
    return { signing_ended: await signingEnds(forAll(db), SIGNING_WAIT_MS) }
  },
})

/** Ends a freeze of the customer or of one of its profiles, for one cause. */
export const endFreeze = operatorOperation({
  method: 'POST',
  url: '/v2/operators/freezes/end',
  scope: 'operators:end_freeze',
  summary: 'End Freeze',
  body: Closed({
    ...Target,
    cause: OneOf(
      FREEZE_REASONS.filter((reason) => reason !== 'DISABLED'),
      'The `reason` of the freeze.',
    ),
  }),
  reply: Nothing,
  async run({ body: { profile_id, cause }, customerId, origin, db, rowMacs }) {
    const ended = await unfreeze(db, rowMacs, origin, targetOf(customerId, profile_id), cause)
    if (ended === 0) throw new Refusal(`not frozen for ${cause}`)
    return {}
  },
})
