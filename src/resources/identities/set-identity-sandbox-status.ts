import { Type, type Static } from 'typebox'
import { transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, OneOf, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import { identitySummary, STATUSES, type Flags, type HolderStatus } from '../../money/records/holders.ts'
import { insertIdentityEvents } from '../../money/records/summary-status.ts'
import { Identity, identityWritten, requireIdentity } from '../../money/records/identity.ts'
import { audited } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'

/** The simulated checks of an identity, with the names that other platforms use. */
const CHECKS = [
  'id_verification_status',
  'sanctions_verification_status',
  'document_verification_status',
  'additional_screening_status',
] as const
type Checks = Partial<Record<(typeof CHECKS)[number], HolderStatus>>

const REQUIRED: Record<Identity['type'], readonly (keyof Checks)[]> = {
  PERSON: ['id_verification_status', 'sanctions_verification_status'],
  INSTITUTION: ['sanctions_verification_status'],
}

const Result = (party: string) => Type.Optional(OneOf(STATUSES, `Simulated result of the ${party}.`))
/** A flag, as a plain value or in an object. */
const Flag = (description: string) =>
  Type.Optional(
    Type.Unsafe<boolean | { disabled: boolean }>({
      type: ['boolean', 'object'],
      properties: { disabled: Type.Boolean({ description: 'The flag.' }) },
      required: ['disabled'],
      additionalProperties: false,
      description,
    }),
  )

const SandboxStatusBody = Closed({
  status: Type.Optional(Identity.properties.status),
  id_verification_status: Result('verification of the person'),
  sanctions_verification_status: Result('screening for sanctions'),
  document_verification_status: Result('verification of documents'),
  additional_screening_status: Result('additional screening'),
  user_disabled: Flag('True if disabled by the API user.'),
  admin_disabled: Flag('True if disabled by a platform administrator.'),
})

/**
 * Sets an identity's verification status and its flags (API behaviour, Sandbox). Any status may follow any other. The
 * request has two forms, ours and that of other platforms; see `readForm`.
 */
export const setIdentitySandboxStatus = operation({
  method: 'PUT',
  url: '/v2/identity/identities/:id/sandbox-status',
  scope: 'identity:write_identity',
  tag: 'Identities',
  summary: 'Set Identity Sandbox Status',
  description:
    'Simulates the verification and the administrator: sets the given fields, at least one. The results of single checks, from which the status follows, and flags in objects of their own are answered by an empty object. Exists in sandbox mode only.',
  sandboxOnly: true,
  params: Type.Object({ id: Uuid('Identity id.') }),
  body: SandboxStatusBody,
  example: {
    params: { id: EXAMPLE.identity_id },
    bodies: {
      Approved: { status: 'APPROVED' },
      'Approved, by its checks': {
        id_verification_status: 'APPROVED',
        sanctions_verification_status: 'APPROVED',
        document_verification_status: 'APPROVED',
        additional_screening_status: 'APPROVED',
        user_disabled: { disabled: false },
        admin_disabled: { disabled: false },
      },
      'Enabled by user and administrator': { user_disabled: false, admin_disabled: false },
    },
  },
  reply: Type.Object(Type.Partial(Identity).properties, {
    description: 'The identity; empty where the request named checks or flags in objects.',
  }),
  problems: ['not-found'],
  async run({ params, body, customerId, origin, db }) {
    const { checks, status, user_disabled, admin_disabled, answered } = readForm(body)
    return transaction(db, async (tx) => {
      const before = await tx.query<
        Flags & { type: Identity['type']; status: HolderStatus; sandbox_checks: Checks | null }
      >(
        `select type, status, user_disabled, admin_disabled, sandbox_checks from identities
         where customer_id = $1 and id = $2 for no key update`,
        [customerId, params.id],
      )
      const [identity] = before.rows
      if (identity === undefined) throw problem.notFound('identity', params.id)
      const known = checks && { ...identity.sandbox_checks, ...checks }
      // The clock is read after the row is locked, so that updated_at never decreases.
      const now = await readClock(tx)
      await tx.query(
        `
        update identities
        set status = coalesce($3, status),
            sandbox_checks = case when $3 is null then sandbox_checks else $4::jsonb end,
            user_disabled = coalesce($5, user_disabled),
            admin_disabled = coalesce($6, admin_disabled),
            updated_at = $7
        where customer_id = $1 and id = $2`,
        [
          customerId,
          params.id,
          known === undefined ? status : statusOf(identity.type, known),
          known,
          user_disabled,
          admin_disabled,
          now.text,
        ],
      )
      const changed = await requireIdentity(tx, customerId, params.id)
      const after = identitySummary(changed)
      await insertIdentityEvents(tx, customerId, now, {
        id: params.id,
        before: identitySummary(identity),
        after,
      })
      recordChanges(tx, customerId, now, [audited(origin, 'identity.set_status', params.id)])
      return answered ? identityWritten(changed) : {}
    })
  },
})

/**
 * Reads either form of the request: our `status` and plain flags, which answer the identity, or the results of checks
 * and flags in objects, which answer an empty object. Throws bad-request for an empty request and for both forms in one.
 */
function readForm({ status, user_disabled, admin_disabled, ...checks }: Static<typeof SandboxStatusBody>) {
  const flags = { user_disabled, admin_disabled }
  const isOurs = status !== undefined || Object.values(flags).some((flag) => typeof flag === 'boolean')
  const hasChecks = Object.keys(checks).length > 0
  const isTheirs = hasChecks || Object.values(flags).some((flag) => typeof flag === 'object')
  if (!isOurs && !isTheirs)
    throw problem.badRequest(
      `at least one of ${Object.keys(SandboxStatusBody.properties).join(', ')} is required`,
      [],
    )
  if (isOurs && isTheirs)
    throw problem.badRequest(
      `status and flags that are booleans cannot be combined with ${CHECKS.join(', ')} and flags in objects`,
      [],
    )
  return {
    status,
    checks: hasChecks ? checks : undefined,
    user_disabled: plain(user_disabled),
    admin_disabled: plain(admin_disabled),
    answered: isOurs,
  }
}

const plain = (flag: boolean | { disabled: boolean } | undefined) =>
  typeof flag === 'object' ? flag.disabled : flag

/**
 * Returns the status that follows from the results known so far: the worst of them, and APPROVED once every required
 * check has passed and no other check has failed.
 */
function statusOf(type: Identity['type'], checks: Checks): HolderStatus {
  const results = new Set(Object.values(checks))
  for (const status of ['DENIED', 'ERROR', 'DISABLED', 'PENDING'] as const)
    if (results.has(status)) return status
  return REQUIRED[type].every((check) => checks[check] === 'APPROVED') ? 'APPROVED' : 'PENDING'
}
