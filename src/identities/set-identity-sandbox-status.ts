import { Type } from 'typebox'
import { EXAMPLE } from '../contract/example-records.ts'
import { Uuid } from '../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../contract/problems.ts'
import { Identity, IDENTITY_COLUMNS, identityWritten, type IdentityRow } from './identity.ts'

/** Sets an identity's verification status and its flags (API behaviour, Sandbox). Any status may follow any other. */
export const setIdentitySandboxStatus = operation({
  method: 'PUT',
  url: '/v2/identity/identities/:id/sandbox-status',
  scope: 'identity:write_identity',
  tag: 'Identities',
  summary: 'Set Identity Sandbox Status',
  description:
    'Simulates the verification and the administrator: sets the given fields, at least one. Exists in sandbox mode only.',
  sandboxOnly: true,
  params: Type.Object({ id: Uuid('Identity id.') }),
  body: Type.Object(
    {
      status: Type.Optional(Identity.properties.status),
      user_disabled: Type.Optional(Identity.properties.user_disabled),
      admin_disabled: Type.Optional(Identity.properties.admin_disabled),
    },
    { additionalProperties: false },
  ),
  example: {
    params: { id: EXAMPLE.identity_id },
    bodies: {
      Approved: { status: 'APPROVED' },
      'Enabled by user and administrator': { user_disabled: false, admin_disabled: false },
    },
  },
  reply: Identity,
  problems: ['not-found'],
  async run({ params, body, customerId, db }) {
    if (Object.keys(body).length === 0)
      throw problem.badRequest('at least one of status, user_disabled and admin_disabled is required')
    // The clock is read after the row is locked, so that updated_at never decreases.
    const { rows } = await db.query<IdentityRow>(
      `
      update identities
      set status = coalesce($3, status),
          user_disabled = coalesce($4, user_disabled),
          admin_disabled = coalesce($5, admin_disabled),
          updated_at = clock_timestamp()
      where customer_id = $1 and id = $2
      returning ${IDENTITY_COLUMNS}`,
      [customerId, params.id, body.status, body.user_disabled, body.admin_disabled],
    )
    if (rows[0] === undefined) throw problem.notFound('identity', params.id)
    return identityWritten(rows[0])
  },
})
