import { Type, type Static } from 'typebox'
import type { Queryable } from '../db/database.ts'
import { insertOnce } from '../records/insert-once.ts'
import { newId, readClock } from '../db/ids.ts'
import { Metadata, RefId } from '../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../contract/problems.ts'
import type { Status } from '../records/holders.ts'
import {
  Identity,
  IDENTITY_COLUMNS,
  identityToWire,
  InstitutionDetails,
  PersonDetails,
  type IdentityRow,
} from './identity.ts'

const CreateIdentityBody = Type.Object(
  {
    ref_id: RefId,
    person_details: Type.Optional(PersonDetails),
    institution_details: Type.Optional(InstitutionDetails),
    metadata: Type.Optional(Metadata),
  },
  { additionalProperties: false },
)

/** Creates an identity (API behaviour, Identities), PENDING until its verification ends. */
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
        metadata: { order: '1041' },
      },
      'An institution': {
        ref_id: 'identity-2026-0002',
        institution_details: {
          name: 'Example Ltd',
          business_address: { country: 'GB', city: 'London' },
          institution_type: 'LIMITED_COMPANY',
        },
      },
    },
  },
  reply: Identity,
  problems: ['already-exists'],
  async run({ body, customerId, db }) {
    requireOneOfDetails(body)
    return insertOnce({
      constraint: 'identities_ref_id',
      async find() {
        const { rows } = await db.query<IdentityRow>(
          `select ${IDENTITY_COLUMNS} from identities where customer_id = $1 and ref_id = $2`,
          [customerId, body.ref_id],
        )
        return rows[0] && identityToWire(rows[0])
      },
      insert: () => insertIdentity(db, customerId, body),
    })
  },
})

type Body = Static<typeof CreateIdentityBody>

/** Inserts an identity. A ref_id that is taken violates `identities_ref_id`. */
export async function insertIdentity(
  db: Queryable,
  customerId: string,
  { ref_id, person_details, institution_details, metadata }: Body,
  status: Status = 'PENDING',
): Promise<Identity> {
  const type = person_details === undefined ? 'INSTITUTION' : 'PERSON'
  const now = await readClock(db)
  const { rows } = await db.query<IdentityRow>(
    `
    insert into identities (customer_id, id, created_at, updated_at, ref_id, type, status, details, metadata)
    values ($1, $2, $3, $3, $4, $5, $6, $7, $8)
    returning ${IDENTITY_COLUMNS}`,
    [customerId, newId(now), now.text, ref_id, type, status, person_details ?? institution_details, metadata],
  )
  return identityToWire(rows[0]!)
}

function requireOneOfDetails({ person_details, institution_details }: Body): void {
  if (person_details !== undefined && institution_details !== undefined)
    throw problem.badRequest('exactly one of person_details and institution_details must be given, not both')
  if (person_details === undefined && institution_details === undefined)
    throw problem.badRequest('exactly one of person_details and institution_details must be given')
}
