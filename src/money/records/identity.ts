import { Type, type Static } from 'typebox'
import { inOrder, type Queryable, type Transaction } from '../../db/database.ts'
import { Address } from '../../contract/bank-wire.ts'
import { presentOf } from '../../db/rows.ts'
import {
  BirthDate,
  Free,
  Metadata,
  NamedObject,
  OneOf,
  RefId,
  Text,
  Timestamp,
  Uuid,
} from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { identitySummary, STATUSES } from './holders.ts'
import {
  INSTITUTION_MEMBERS,
  InstitutionMember,
  institutionMemberToWire,
  type InstitutionMemberRow,
} from './institution-member.ts'

/** Details of a person. Other members are kept. */
export const PersonDetails = Type.Object(
  {
    first_name: Type.Optional(Text(200, 'First name.', 1)),
    last_name: Type.Optional(Text(200, 'Last name.', 1)),
    date_of_birth: Type.Optional(BirthDate),
    address: Type.Optional(Address),
    email: Type.Optional(Text(320, 'E-mail address.')),
    phone_number: Type.Optional(Text(100, 'Phone number.')),
    nationality: Type.Optional(Text(100, 'Nationality.')),
  },
  { ...Free, description: 'A person, by one name or both. Other members are kept, 8 KiB at most in all.' },
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

const TAX_DETAILS_MAX = 20
const TaxDetails = Type.Array(
  Type.Object(
    {
      tax_payer_id: Type.Optional(Text(100, 'Tax id.')),
      tax_payer_country: Type.Optional(Text(100, 'Country that issued the tax id.')),
    },
    { additionalProperties: true, maxBytes: 1024 },
  ),
  {
    maxItems: TAX_DETAILS_MAX,
    description: 'Tax ids. Answered to the requests that write them, and with `include_details=true`.',
  },
)

const CustomerDueDiligence = Type.Object(
  {
    estimated_yearly_income: Type.Optional(Text(100, 'Estimated yearly income.')),
    expected_transfer_value: Type.Optional(Text(100, 'Expected value of transfers.')),
    source_of_wealth: Type.Optional(Text(100, 'Source of wealth.')),
    employment_status: Type.Optional(Text(100, 'Employment status.')),
    employment_industry_sector: Type.Optional(Text(100, 'Sector of employment.')),
  },
  {
    ...Free,
    description:
      'Due diligence. Other members are kept, 8 KiB at most in all. Answered to the requests that write it, and with `include_details=true`.',
  },
)

export const SummaryStatus = OneOf(STATUSES, 'DISABLED by either flag, else the status.')

/** A person or an institution that accounts belong to (API behaviour, Identities). */
export const Identity = NamedObject('Identity', {
  id: Uuid('Identity id.'),
  customer_id: Uuid('Customer id.'),
  ref_id: RefId,
  type: OneOf(['PERSON', 'INSTITUTION'], 'Kind of identity, and of its details.'),
  status: OneOf(STATUSES, 'Status of the verification.'),
  summary_status: SummaryStatus,
  user_disabled: Type.Boolean({ description: 'True if disabled by the API user.' }),
  admin_disabled: Type.Boolean({ description: 'True if disabled by a platform administrator.' }),
  details: Type.Optional(
    Type.Object(
      {},
      {
        additionalProperties: true,
        description:
          'The same as person_details or institution_details. Absent only with `include_details=false`.',
      },
    ),
  ),
  person_details: Type.Optional(PersonDetails),
  institution_details: Type.Optional(InstitutionDetails),
  tax_details: Type.Optional(TaxDetails),
  tax_details_not_required: Type.Optional(
    Type.Boolean({ description: 'True if the law requires no tax details.' }),
  ),
  customer_due_diligence: Type.Optional(CustomerDueDiligence),
  institution_members: Type.Optional(
    Type.Array(InstitutionMember, {
      description:
        'Identities that stand behind an institution. Answered to the requests that write them, and with `include_institution_members=true`.',
    }),
  ),
  is_merchant: Type.Optional(Type.Boolean({ description: 'True if the identity is a merchant.' })),
  last_kyc_refresh_date: Type.Optional(Timestamp('Time of the last periodic verification.')),
  metadata: Type.Optional(Metadata),
  created_at: Timestamp('Creation time.'),
  updated_at: Timestamp('Last update time.'),
})
export type Identity = Static<typeof Identity>

const OWN_COLUMNS = `id, customer_id, ref_id, type, status, user_disabled, admin_disabled, tax_details_not_required,
  is_merchant, last_kyc_refresh_date, metadata, created_at, updated_at`
const DETAILS = 'details'
const SENSITIVE = 'tax_details, customer_due_diligence'
const NO_SENSITIVE = 'null::jsonb as tax_details, null::jsonb as customer_due_diligence'
const MEMBERS = `${INSTITUTION_MEMBERS} as institution_members`
const NO_MEMBERS = `'[]'::json as institution_members`

/** The columns of an identity, in statements that call the table by its name. The customer is `$1`. */
export const IDENTITY_COLUMNS = `${OWN_COLUMNS}, ${DETAILS}, ${SENSITIVE}, ${MEMBERS}`

/** The columns that an answer without `include_` parameters needs. The others are empty. */
export const IDENTITY_COLUMNS_SHOWN = `${OWN_COLUMNS}, ${DETAILS}, ${NO_SENSITIVE}, ${NO_MEMBERS}`

/**
 * Returns the columns that an answer needs; the others are empty. A page of a thousand institutions, each with its most
 * members and due diligence, took 5 s to read in full, and the answer had 0.4 MB.
 */
export const identityColumns = ({ include_details, include_institution_members }: Shown): string =>
  [
    OWN_COLUMNS,
    include_details === false ? "'{}'::jsonb as details" : DETAILS,
    include_details === true ? SENSITIVE : NO_SENSITIVE,
    include_institution_members === true ? MEMBERS : NO_MEMBERS,
  ].join(', ')

/** In SQL: an identity's summary_status, by the same rule as `identitySummary`. */
export const IDENTITY_SUMMARY = `case when user_disabled or admin_disabled then 'DISABLED' else status end`

type Nullable =
  | 'tax_details'
  | 'tax_details_not_required'
  | 'customer_due_diligence'
  | 'is_merchant'
  | 'last_kyc_refresh_date'
  | 'metadata'
type Derived = 'summary_status' | 'person_details' | 'institution_details'
export type IdentityRow = Omit<Identity, Derived | Nullable | 'details' | 'institution_members'> & {
  [K in Nullable]: NonNullable<Identity[K]> | null
} & {
  details: Static<typeof PersonDetails> & Static<typeof InstitutionDetails>
  institution_members: InstitutionMemberRow[]
}

/** Which parts of an identity an answer has. */
interface Shown {
  /** If absent: the details without tax_details and customer_due_diligence. */
  include_details?: boolean
  include_institution_members?: boolean
}

/** The parameters of the reads. Data that only some clients need is returned on request only. */
export const includeParameters = {
  include_details: Type.Optional(
    Type.Boolean({
      description:
        'True: with tax_details and customer_due_diligence. False: without details. Absent: with details, without those two.',
    }),
  ),
  include_institution_members: Type.Optional(
    Type.Boolean({ default: false, description: 'True: with the members of institutions.' }),
  ),
}

/** The record as clients see it: the details appear under both of their names. */
export function identityToWire(row: IdentityRow, shown: Shown = {}): Identity {
  const { details, tax_details, customer_due_diligence, institution_members, ...rest } = row
  const named = row.type === 'PERSON' ? { person_details: details } : { institution_details: details }
  return {
    ...presentOf({
      ...rest,
      ...(shown.include_details !== false && { details, ...named }),
      ...(shown.include_details === true && { tax_details, customer_due_diligence }),
    }),
    summary_status: identitySummary(row),
    ...(shown.include_institution_members === true &&
      row.type === 'INSTITUTION' && {
        institution_members: institution_members.map(institutionMemberToWire),
      }),
  }
}

/** The whole record, as the answer of requests that write it. Members are absent if there are none. */
export const identityWritten = (row: IdentityRow): Identity =>
  identityToWire(row, {
    include_details: true,
    include_institution_members: row.institution_members.length > 0,
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

/** Reads the customer's identity and locks it for a change. Throws not-found. */
export async function lockIdentity(tx: Transaction, customerId: string, id: string): Promise<IdentityRow> {
  // A distributed database locks no rows in a statement that reads another table, too.
  const [, identity] = await inOrder([
    tx.query('select 1 from identities where customer_id = $1 and id = $2 for no key update', [
      customerId,
      id,
    ]),
    requireIdentity(tx, customerId, id),
  ])
  return identity
}
