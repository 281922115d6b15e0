import { Type, type Static } from 'typebox'
import type { Queryable } from '../db/database.ts'
import { Address } from '../contract/bank-wire.ts'
import { Free, Metadata, RefId, Text, Timestamp, Uuid } from '../contract/fields.ts'
import { problem } from '../contract/problems.ts'
import { identitySummary, STATUSES } from '../records/holders.ts'

/** Details of a person. Other members are kept. */
export const PersonDetails = Type.Object(
  {
    first_name: Text(200, 'First name.', 1),
    last_name: Text(200, 'Last name.', 1),
    date_of_birth: Type.Optional(Type.String({ format: 'date', description: 'Date of birth.' })),
    address: Type.Optional(Address),
    email: Type.Optional(Text(320, 'E-mail address.')),
    phone_number: Type.Optional(Text(100, 'Phone number.')),
    nationality: Type.Optional(Text(100, 'Nationality.')),
  },
  { ...Free, description: 'A person. Other members are kept, 8 KiB at most in all.' },
)

/** Details of an institution. Other members are kept. */
export const InstitutionDetails = Type.Object(
  {
    name: Text(200, 'Name.', 1),
    business_address: Type.Optional(Address),
    institution_type: Type.Optional(Text(100, 'Kind of institution.')),
    email: Type.Optional(Text(320, 'E-mail address.')),
  },
  { ...Free, description: 'An institution. Other members are kept, 8 KiB at most in all.' },
)

export const SummaryStatus = Type.Enum([...STATUSES], {
  type: 'string',
  description: 'DISABLED by either flag, else the status.',
})

/** A person or an institution that accounts belong to (API behaviour, Identities). */
export const Identity = Type.Object(
  {
    id: Uuid('Identity id.'),
    customer_id: Uuid('Customer id.'),
    ref_id: RefId,
    type: Type.Enum(['PERSON', 'INSTITUTION'], {
      type: 'string',
      description: 'Kind of identity, and of its details.',
    }),
    status: Type.Enum([...STATUSES], { type: 'string', description: 'Status of the verification.' }),
    summary_status: SummaryStatus,
    user_disabled: Type.Boolean({ description: 'True if disabled by the API user.' }),
    admin_disabled: Type.Boolean({ description: 'True if disabled by a platform administrator.' }),
    details: Type.Object(
      {},
      { additionalProperties: true, description: 'The same as person_details or institution_details.' },
    ),
    person_details: Type.Optional(PersonDetails),
    institution_details: Type.Optional(InstitutionDetails),
    metadata: Type.Optional(Metadata),
    created_at: Timestamp('Creation time.'),
    updated_at: Timestamp('Last update time.'),
  },
  { $id: 'Identity' },
)
export type Identity = Static<typeof Identity>

export const IDENTITY_COLUMNS = `id, customer_id, ref_id, type, status, user_disabled, admin_disabled, details, metadata,
  created_at, updated_at`

/** In SQL: an identity's summary_status, by the same rule as `identitySummary`. */
export const IDENTITY_SUMMARY = `case when user_disabled or admin_disabled then 'DISABLED' else status end`

type Derived = 'summary_status' | 'person_details' | 'institution_details'
export type IdentityRow = Omit<Identity, Derived | 'details' | 'metadata'> & {
  details: Static<typeof PersonDetails> & Static<typeof InstitutionDetails>
  metadata: Record<string, string> | null
}

/** The record as clients see it: the details appear under both of their names. */
export const identityToWire = ({ metadata, ...row }: IdentityRow): Identity => ({
  ...row,
  summary_status: identitySummary(row),
  ...(row.type === 'PERSON' ? { person_details: row.details } : { institution_details: row.details }),
  ...(metadata !== null && { metadata }),
})

/** Reads the customer's identity with this id. Throws not-found. */
export async function requireIdentity(db: Queryable, customerId: string, id: string): Promise<IdentityRow> {
  const { rows } = await db.query<IdentityRow>(
    `select ${IDENTITY_COLUMNS} from identities where customer_id = $1 and id = $2`,
    [customerId, id],
  )
  if (rows[0] === undefined) throw problem.notFound('identity', id)
  return rows[0]
}
