import { Type, type Static } from 'typebox'
import { newId, type Moment } from '../../db/ids.ts'
import type { Transaction } from '../../db/database.ts'
import { presentOf, type Present } from '../../db/rows.ts'
import { problem } from '../../contract/problems.ts'
import { Closed, Text, Uuid } from '../../contract/fields.ts'
import { MEMBERS_MAX } from './members.ts'

const Roles = Type.Array(
  Type.Enum(
    [
      'BENEFICIAL_OWNER',
      'ACCOUNT_OPENER',
      'AUTHORIZED_USER',
      'MANAGEMENT_CONTROL_PERSON',
      'TRUSTEE',
      'GRANTOR',
      'BENEFICIARY',
      'SOLE_PROPRIETOR',
    ],
    { type: 'string' },
  ),
  { minItems: 1, uniqueItems: true, description: 'Roles of the identity in the institution.' },
)

export const NewInstitutionMember = Closed({
  identity_id: Uuid('Identity that stands behind the institution.'),
  roles: Roles,
  ownership: Type.Optional(Text(100, 'Share of the institution that it owns.')),
  position: Type.Optional(Text(200, 'Position in the institution.')),
  name: Type.Optional(Text(200, 'Name.')),
})
export type NewInstitutionMember = Static<typeof NewInstitutionMember>

export const NewInstitutionMembers = Type.Array(NewInstitutionMember, {
  maxItems: MEMBERS_MAX,
  description: 'Identities that stand behind the institution.',
})

/** An identity that is a member of an institution, such as an owner (API behaviour, Identities). */
export const InstitutionMember = Type.Object({
  id: Uuid('Member id.'),
  ...NewInstitutionMember.properties,
})
type InstitutionMember = Static<typeof InstitutionMember>

type Nullable = 'ownership' | 'position' | 'name'
export type InstitutionMemberRow = Omit<InstitutionMember, Nullable> & { [K in Nullable]: string | null }

/**
 * In SQL: the members of the row of `identities` of the customer `$1`, in the order of creation, which is the order of their
 * ids. One JSON value: as an array of JSON values, which the driver parses slowly, eight full pages at once took 5.5 s
 * instead of 1.6 s.
 */
export const INSTITUTION_MEMBERS = `
  coalesce((select json_agg(json_build_object('id', m.id, 'identity_id', m.identity_id, 'roles', m.roles,
                                              'ownership', m.ownership, 'position', m.position, 'name', m.name)
                            order by m.id)
            from institution_members m
            where m.customer_id = $1 and m.institution_id = identities.id
              and m.removed_at is null
              and identities.type = 'INSTITUTION'), -- persons cost no look-up
           '[]')`

export const institutionMemberToWire = (row: InstitutionMemberRow): Present<InstitutionMemberRow> =>
  presentOf(row)

/** Inserts members. An identity that is a member already violates `institution_members_identity`. */
export async function insertInstitutionMembers(
  tx: Transaction,
  customerId: string,
  institutionId: string,
  members: readonly NewInstitutionMember[],
  now: Moment,
): Promise<InstitutionMember[]> {
  if (members.length === 0) return []
  const rows = members.map((member, index) => ({ id: newId(now, index), ...member }))
  await tx.query(
    `
    insert into institution_members (customer_id, id, institution_id, identity_id, roles, ownership, position, name)
    select $1, m.id, $2, m.identity_id, m.roles, m.ownership, m.position, m.name
    from json_to_recordset($3)
      as m (id uuid, identity_id uuid, roles text[], ownership text, position text, name text)`,
    [customerId, institutionId, JSON.stringify(rows)],
  )
  return rows
}

/**
 * Locks an institution for a change of its members, and updates its `updated_at`. An APPROVED institution becomes
 * PENDING, because the verification covered its members; no event is written. Returns its members. Throws not-found for an
 * unknown identity and bad-request for a person.
 */
export async function lockInstitution(
  tx: Transaction,
  customerId: string,
  id: string,
): Promise<InstitutionMemberRow[]> {
  const { rows } = await tx.query<{ type: string }>(
    `
    update identities
    set status = case status when 'APPROVED' then 'PENDING' else status end,
        sandbox_checks = case status when 'APPROVED' then null else sandbox_checks end,
        updated_at = (select clock_timestamp())
    where customer_id = $1 and id = $2
    returning type`,
    [customerId, id],
  )
  if (rows[0] === undefined) throw problem.notFound('identity', id)
  if (rows[0].type !== 'INSTITUTION')
    throw problem.badRequest(
      `institution_id ${id} is a person: only institutions have members`,
      'institution_id',
    )
  // A separate statement sees the changes that were committed before the lock.
  const { rows: members } = await tx.query<InstitutionMemberRow>(
    `
    select id, identity_id, roles, ownership, position, name
    from institution_members
    where customer_id = $1 and institution_id = $2 and removed_at is null
    order by id`,
    [customerId, id],
  )
  return members
}
