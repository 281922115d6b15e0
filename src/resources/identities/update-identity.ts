import { isDeepStrictEqual } from 'node:util'
import { Temporal } from 'temporal-polyfill'
import { Type, type Static } from 'typebox'
import { transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Free, Uuid } from '../../contract/fields.ts'
import { microsOf } from '../../http/time-bounds.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import { identitySummary } from '../../money/records/holders.ts'
import { insertIdentityEvents } from '../../money/records/summary-status.ts'
import {
  Identity,
  identityWritten,
  InstitutionDetails,
  lockIdentity,
  PersonDetails,
  requireIdentity,
  type IdentityRow,
} from '../../money/records/identity.ts'
import { audited } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'

const { tax_details, customer_due_diligence, is_merchant, last_kyc_refresh_date, metadata } =
  Identity.properties

const UpdateIdentityBody = Closed({
  id: Type.Optional(Uuid('Identity id: that of the path.')),
  ref_id: Type.Optional(
    Type.String({ maxLength: 100, description: 'The ref_id of the identity. It cannot be changed.' }),
  ),
  person_details: Type.Optional(
    Type.Partial(PersonDetails, {
      ...Free,
      description: 'Members to change. Those that are not given stay.',
    }),
  ),
  institution_details: Type.Optional(
    Type.Partial(InstitutionDetails, {
      ...Free,
      description: 'Members to change. Those that are not given stay.',
    }),
  ),
  tax_details,
  set_tax_details_not_required: Type.Optional(
    Type.Boolean({ description: 'Sets tax_details_not_required.' }),
  ),
  customer_due_diligence,
  is_merchant,
  last_kyc_refresh_date,
  metadata,
  set_user_disabled: Type.Optional(
    Type.Boolean({
      description: "Sets user_disabled. The administrator's flag and the status stay as they are.",
    }),
  ),
})
type UpdateIdentityBody = Static<typeof UpdateIdentityBody>

export const updateIdentity = operation({
  method: 'PUT',
  url: '/v2/identity/identities/:id',
  scope: 'identity:write_identity',
  tag: 'Identities',
  summary: 'Update Identity',
  description:
    'Changes the given fields; members of details and of customer_due_diligence one by one, other fields whole. Other details than email and phone_number need a new verification: an APPROVED identity becomes PENDING.',
  params: Type.Object({ id: Uuid('Identity id.') }),
  body: UpdateIdentityBody,
  example: {
    params: { id: EXAMPLE.identity_id },
    bodies: {
      'A new phone number': { person_details: { phone_number: '+44 20 7946 0000' } },
      'Due diligence and tax ids': {
        customer_due_diligence: { expected_transfer_value: 'TRANSFER_VALUE_25K_TO_50K' },
        tax_details: [{ tax_payer_id: '999999999', tax_payer_country: 'GB' }],
      },
      'Enabled again by the user': { set_user_disabled: false },
    },
  },
  reply: Identity,
  problems: ['not-found'],
  async run({ params, body, customerId, origin, db }) {
    requireChange(params.id, body)
    return transaction(db, async (tx) => {
      const before = await lockIdentity(tx, customerId, params.id)
      const now = await readClock(tx)
      const after = updated(before, body, now.micros)
      if (isDeepStrictEqual(after, before)) return identityWritten(before)
      await tx.query(
        `
        update identities
        set status = $3, user_disabled = $4, details = $5, tax_details = $6, tax_details_not_required = $7,
            customer_due_diligence = $8, is_merchant = $9, last_kyc_refresh_date = $10, metadata = $11,
            sandbox_checks = case when status = $3 then sandbox_checks end, updated_at = $12
        where customer_id = $1 and id = $2`,
        [
          customerId,
          params.id,
          after.status,
          after.user_disabled,
          after.details,
          after.tax_details && JSON.stringify(after.tax_details),
          after.tax_details_not_required,
          after.customer_due_diligence,
          after.is_merchant,
          after.last_kyc_refresh_date,
          after.metadata,
          now.text,
        ],
      )
      await insertIdentityEvents(tx, customerId, now, {
        id: params.id,
        before: identitySummary(before),
        after: identitySummary(after),
      })
      recordChanges(tx, customerId, now, [audited(origin, 'identity.update', params.id)])
      return identityWritten(await requireIdentity(tx, customerId, params.id))
    })
  },
})

function requireChange(id: string, { id: named, ref_id: _, ...changes }: UpdateIdentityBody): void {
  if (named !== undefined && named !== id)
    throw problem.badRequest(`id must be that of the path, ${id}; it cannot be changed`, 'id')
  if (Object.keys(changes).length > 0) return
  const fields = Object.keys(UpdateIdentityBody.properties).filter(
    (field) => !['id', 'ref_id'].includes(field),
  )
  throw problem.badRequest(`at least one of ${fields.join(', ')} is required`, [])
}

/** The members of details with contact data, which do not identify the person or institution. */
const CONTACT: readonly string[] = ['email', 'phone_number']

/**
 * Returns the identity as the request leaves it. Throws bad-request for details of the other type, another ref_id,
 * details that grow too large, and a verification in the future.
 */
function updated(identity: IdentityRow, body: UpdateIdentityBody, nowMicros: number): IdentityRow {
  if (body.ref_id !== undefined && body.ref_id !== identity.ref_id)
    throw problem.badRequest('ref_id cannot be changed', 'ref_id')
  const [own, other] =
    identity.type === 'PERSON'
      ? (['person_details', 'institution_details'] as const)
      : (['institution_details', 'person_details'] as const)
  if (body[other] !== undefined)
    throw problem.badRequest(`${other} must not be given: the identity is of type ${identity.type}`, other)
  const details = merged(identity.details, body[own], own)
  const status =
    identity.status === 'APPROVED' && !isDeepStrictEqual(verified(details), verified(identity.details))
      ? 'PENDING'
      : identity.status
  const { customer_due_diligence: diligence } = identity
  return {
    ...identity,
    status,
    user_disabled: body.set_user_disabled ?? identity.user_disabled,
    details,
    tax_details: body.tax_details ?? identity.tax_details,
    tax_details_not_required: body.set_tax_details_not_required ?? identity.tax_details_not_required,
    customer_due_diligence:
      body.customer_due_diligence === undefined
        ? diligence
        : merged(diligence ?? {}, body.customer_due_diligence, 'customer_due_diligence'),
    is_merchant: body.is_merchant ?? identity.is_merchant,
    last_kyc_refresh_date:
      body.last_kyc_refresh_date === undefined
        ? identity.last_kyc_refresh_date
        : pastTime(body.last_kyc_refresh_date, nowMicros),
    metadata: body.metadata ?? identity.metadata,
  }
}

const verified = (details: object) =>
  Object.fromEntries(Object.entries(details).filter(([name]) => !CONTACT.includes(name)))

/** Merges an object with the changes of its members. Throws bad-request when it grows too large. */
function merged<T extends object>(object: T, changes: Partial<T> | undefined, field: string): T {
  const whole = { ...object, ...changes }
  if (Buffer.byteLength(JSON.stringify(whole)) > Free.maxBytes)
    throw problem.badRequest(
      `${field} must have at most ${Free.maxBytes} bytes as JSON, changes included`,
      field,
    )
  return whole
}

/** Reads a time as the database writes it. Throws bad-request for one before 1970 or in the future. */
function pastTime(text: string, nowMicros: number): string {
  const { floor } = microsOf(text, 'last_kyc_refresh_date')
  if (floor < 0 || floor > nowMicros)
    throw problem.badRequest('last_kyc_refresh_date must be between 1970 and now', 'last_kyc_refresh_date')
  return Temporal.Instant.fromEpochNanoseconds(BigInt(floor) * 1000n).toString({ fractionalSecondDigits: 6 })
}
