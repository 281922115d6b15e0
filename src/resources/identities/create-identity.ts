import { Type, type Static } from 'typebox'
import { transaction, type Transaction } from '../../db/database.ts'
import { insertOnce } from '../../money/records/insert-once.ts'
import { newId, readClock } from '../../db/ids.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Metadata, RefId } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import type { HolderStatus } from '../../money/records/holders.ts'
import { insertIdentityEvents } from '../../money/records/summary-status.ts'
import { requireDistinctMembers, requireIdentities } from '../../money/records/members.ts'
import { insertInstitutionMembers, NewInstitutionMembers } from '../../money/records/institution-member.ts'
import {
  Identity,
  IDENTITY_COLUMNS,
  identityWritten,
  InstitutionDetails,
  PersonDetails,
  requireIdentity,
  type IdentityRow,
} from '../../money/records/identity.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { requireRoom } from '../../money/records/record-limits.ts'

const CreateIdentityBody = Closed({
  ref_id: RefId,
  person_details: Type.Optional(PersonDetails),
  institution_details: Type.Optional(InstitutionDetails),
  institution_members: Type.Optional(NewInstitutionMembers),
  tax_details: Identity.properties.tax_details,
  tax_details_not_required: Identity.properties.tax_details_not_required,
  customer_due_diligence: Identity.properties.customer_due_diligence,
  is_merchant: Identity.properties.is_merchant,
  metadata: Type.Optional(Metadata),
})

export const createIdentity = operation({
  method: 'POST',
  url: '/v2/identity/identities',
  scope: 'identity:write_identity',
  tag: 'Identities',
  summary: 'Create Identity',
  description:
    'Creates a person or an institution: exactly one of person_details and institution_details is given.',
  body: CreateIdentityBody,
  example: {
    bodies: {
      'A person': {
        ref_id: 'identity-2026-0001',
        person_details: {
          first_name: 'Ada',
          last_name: 'Lovelace',
          date_of_birth: '1985-12-10',
          address: { country: 'GB', address1: '12 St James Square', city: 'London', zip_code: 'SW1Y 4JH' },
          email: 'ada@example.com',
        },
        tax_details: [{ tax_payer_id: '999999999', tax_payer_country: 'GB' }],
        customer_due_diligence: { source_of_wealth: 'EMPLOYMENT_INCOME', employment_status: 'FULL_TIME' },
        metadata: { order: '1041' },
      },
      'An institution': {
        ref_id: 'identity-2026-0002',
        institution_details: {
          name: 'Example Ltd',
          business_address: { country: 'GB', city: 'London' },
          institution_type: 'LIMITED_COMPANY',
        },
        institution_members: [
          {
            identity_id: EXAMPLE.identity_id,
            roles: ['BENEFICIAL_OWNER'],
            ownership: '60',
            position: 'Director',
          },
        ],
      },
    },
  },
  reply: Identity,
  problems: ['already-exists', 'not-found'],
  async run({ body, customerId, origin, db }) {
    requireOneOfDetails(body)
    requireMembersOfInstitution(body)
    return insertOnce({
      constraint: 'identities_ref_id',
      async find() {
        const { rows } = await db.query<IdentityRow>(
          `select ${IDENTITY_COLUMNS} from identities where customer_id = $1 and ref_id = $2`,
          [customerId, body.ref_id],
        )
        return rows[0] && identityWritten(rows[0])
      },
      async insert() {
        const members = body.institution_members ?? []
        await requireIdentities(
          db,
          customerId,
          members.map(({ identity_id }) => identity_id),
        )
        return transaction(db, async (tx) => {
          await requireRoom(tx, customerId, 'identities')
          const made = await insertIdentity(tx, customerId, body)
          await recordNow(tx, customerId, audited(origin, 'identity.create', made.id))
          return made
        })
      },
    })
  },
})

type CreateIdentityBody = Static<typeof CreateIdentityBody>

/** Inserts an identity and its members. A ref_id that is taken violates `identities_ref_id`. */
export async function insertIdentity(
  tx: Transaction,
  customerId: string,
  body: CreateIdentityBody,
  status: HolderStatus = 'PENDING',
): Promise<Identity> {
  const type = body.person_details === undefined ? 'INSTITUTION' : 'PERSON'
  const now = await readClock(tx)
  const id = newId(now)
  await tx.query(
    `
    insert into identities (customer_id, id, created_at, updated_at, ref_id, type, status, details, metadata,
                            tax_details, tax_details_not_required, customer_due_diligence, is_merchant)
    values ($1, $2, $3, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
    [
      customerId,
      id,
      now.text,
      body.ref_id,
      type,
      status,
      body.person_details ?? body.institution_details,
      body.metadata,
      // The driver would write an array as a PostgreSQL array.
      body.tax_details && JSON.stringify(body.tax_details),
      body.tax_details_not_required,
      body.customer_due_diligence,
      body.is_merchant,
    ],
  )
  await insertInstitutionMembers(tx, customerId, id, body.institution_members ?? [], now)
  await insertIdentityEvents(tx, customerId, now, { id, before: 'PENDING', after: status })
  return identityWritten(await requireIdentity(tx, customerId, id))
}

function requireOneOfDetails({ person_details, institution_details }: CreateIdentityBody): void {
  if (person_details !== undefined && institution_details !== undefined)
    throw problem.badRequest(
      'exactly one of person_details and institution_details must be given, not both',
      'person_details',
      'institution_details',
    )
  if (person_details === undefined && institution_details === undefined)
    throw problem.badRequest(
      'exactly one of person_details and institution_details must be given',
      'person_details',
      'institution_details',
    )
  if (person_details && (person_details.first_name ?? person_details.last_name) === undefined)
    throw problem.badRequest('person_details must have a first_name or a last_name', 'person_details')
}

function requireMembersOfInstitution({ person_details, institution_members }: CreateIdentityBody): void {
  if (institution_members === undefined) return
  if (person_details !== undefined)
    throw problem.badRequest(
      'institution_members must not be given with person_details: a person has none',
      'institution_members',
    )
  requireDistinctMembers(institution_members, 'institution_members')
}
