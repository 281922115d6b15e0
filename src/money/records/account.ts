import { Type, type Static } from 'typebox'
import type { Queryable, Transaction } from '../../db/database.ts'
import { newId, type Moment } from '../../db/ids.ts'
import { presentOf } from '../../db/rows.ts'
import { Closed, Lines, Metadata, NamedObject, OneOf, RefId, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { requireDistinctMembers } from './members.ts'
import { accountSummary, STATUSES, type Flags, type HolderStatus } from './holders.ts'

export const AccountType = OneOf(
  ['BROKERAGE', 'TRADITIONAL_IRA', 'ROTH_IRA', 'SEP_IRA', 'FINANCIAL_ADVISOR'],
  'Account type.',
  { default: 'BROKERAGE' },
)

const Role = (description: string) =>
  OneOf(['BENEFICIAL_OWNER', 'AUTHORIZED_USER', 'FINANCIAL_ADVISOR', 'SOLE_PROPRIETOR'], description)
const Roles = Type.Array(Role('A role.'), {
  uniqueItems: true,
  default: [],
  description: 'Role of the identity in the account.',
})

export const Member = Type.Object({
  id: Uuid('Member id.'),
  identity_id: Uuid('Identity that has access to the account.'),
  type: Type.Optional(Role('The first of the roles. Absent without roles.')),
  roles: Roles,
})

/** A member as a request names it: with roles, with a type, or with both. */
export const NewMember = Closed({
  identity_id: Member.properties.identity_id,
  type: Type.Optional(Role('The first of the roles; without roles, the only one.')),
  roles: Type.Optional(Roles),
})
type NewMember = Static<typeof NewMember>
export type ReadMember = Required<Omit<NewMember, 'type'>>

/**
 * Reads the members that a request names, each with its roles, the `type` first. Throws bad-request, naming `field`,
 * for an identity that is a member twice and for a type that is not one of the roles.
 */
export function readMembers(members: NewMember[], field: string): ReadMember[] {
  requireDistinctMembers(members, field)
  return members.map(({ identity_id, type, roles = [] }, index) => {
    if (type === undefined) return { identity_id, roles }
    if (roles.length > 0 && !roles.includes(type))
      throw problem.badRequest(
        `${field}.${index}.type ${type} is not one of ${field}.${index}.roles`,
        `${field}.${index}.type`,
      )
    return { identity_id, roles: [type, ...roles.filter((role) => role !== type)] }
  })
}

/** An account of an identity (API behaviour, Accounts). */
export const Account = NamedObject('Account', {
  id: Uuid('Account id used in all other interactions.'),
  identity_id: Uuid('Primary identity of the account.'),
  description: Type.Optional(Lines(500, 'Free-text description.')),
  admin_disabled: Type.Boolean({ description: 'True if disabled by a platform administrator.' }),
  user_disabled: Type.Boolean({ description: 'True if disabled by the API user.' }),
  metadata: Type.Optional(Metadata),
  ref_id: Type.Optional(RefId),
  members: Type.Array(Member, { description: 'Additional identities with access to the account.' }),
  created_at: Timestamp('Creation time.'),
  updated_at: Timestamp('Last update time, of the account or of its primary identity.'),
  summary_status: OneOf(
    STATUSES,
    'DISABLED by either flag, else the summary_status of the primary identity.',
  ),
  profile_id: Type.Optional(Uuid('Profile created with the account. Absent if none was requested.')),
  type: AccountType,
})
export type Account = Static<typeof Account>

type MemberRow = Omit<Account['members'][number], 'type'>

type Absent = 'description' | 'metadata' | 'ref_id' | 'profile_id'
export type AccountRow = Omit<Account, Absent | 'summary_status'> & {
  [K in Absent]: NonNullable<Account[K]> | null
} & { identity: Flags & { status: HolderStatus } }

/** In SQL: an account's `updated_at`, with the names of `SELECT_ACCOUNTS`. */
export const ACCOUNT_UPDATED_AT = 'greatest(a.updated_at, i.updated_at)'

/**
 * Reads whole accounts; the caller appends `where a.customer_id = $1` and further conditions. summary_status and
 * updated_at depend on the primary identity too. Members are in the order of creation, which is the order of their
 * ids.
 */
export const SELECT_ACCOUNTS = `
  select a.id, a.identity_id, a.description, a.admin_disabled, a.user_disabled, a.metadata, a.ref_id, a.type,
         a.created_at, ${ACCOUNT_UPDATED_AT} as updated_at,
         json_build_object('status', i.status, 'user_disabled', i.user_disabled,
                           'admin_disabled', i.admin_disabled) as identity,
         array(select json_build_object('id', m.id, 'identity_id', m.identity_id, 'roles', m.roles)
               from account_members m
               where m.customer_id = $1 and m.account_id = a.id and m.removed_at is null
               order by m.id) as members,
         (select p.id from profiles p where p.customer_id = $1 and p.account_id = a.id) as profile_id
  from accounts a
  join identities i on i.customer_id = $1 and i.id = a.identity_id`

export function accountToWire({ identity, ...row }: AccountRow): Account {
  return {
    ...(presentOf(row) as Omit<Account, 'summary_status'>),
    members: row.members.map(memberToWire),
    summary_status: accountSummary(row, identity),
  }
}

export const memberToWire = ({ id, identity_id, roles }: MemberRow): Account['members'][number] => ({
  id,
  identity_id,
  ...(roles[0] !== undefined && { type: roles[0] }),
  roles,
})

/** Reads the customer's account with this id. Throws not-found. */
export async function requireAccount(db: Queryable, customerId: string, id: string): Promise<AccountRow> {
  const { rows } = await db.query<AccountRow>(`${SELECT_ACCOUNTS} where a.customer_id = $1 and a.id = $2`, [
    customerId,
    id,
  ])
  if (rows[0] === undefined) throw problem.notFound('account', id)
  return rows[0]
}

/**
 * Locks the identity of an account against changes, then the account for a change of its flags. Its summary_status
 * depends on both, and a change of the identity's status is an event of its accounts, too. Throws not-found.
 */
export async function lockAccount(tx: Transaction, customerId: string, id: string): Promise<AccountRow> {
  await tx.query(
    `
    select 1 from accounts a
    join identities i on i.customer_id = $1 and i.id = a.identity_id
    where a.customer_id = $1 and a.id = $2
    for share of i`,
    [customerId, id],
  )
  await tx.query('select 1 from accounts where customer_id = $1 and id = $2 for no key update', [
    customerId,
    id,
  ])
  // A separate statement sees the changes that were committed before the locks.
  return requireAccount(tx, customerId, id)
}

/** Locks an account for a change of its members, and updates its `updated_at`. Returns its members. Throws not-found. */
export async function lockMembers(tx: Transaction, customerId: string, id: string): Promise<MemberRow[]> {
  const { rows } = await tx.query<{ id: string }>(
    `
    update accounts
    set updated_at = (select clock_timestamp())
    where customer_id = $1 and id = $2
    returning id`,
    [customerId, id],
  )
  if (rows[0] === undefined) throw problem.notFound('account', id)
  // A separate statement sees the changes that were committed before the lock.
  const { rows: members } = await tx.query<MemberRow>(
    `
    select id, identity_id, roles
    from account_members
    where customer_id = $1 and account_id = $2 and removed_at is null
    order by id`,
    [customerId, id],
  )
  return members
}

export async function insertMembers(
  tx: Transaction,
  customerId: string,
  accountId: string,
  members: readonly ReadMember[],
  now: Moment,
): Promise<Account['members']> {
  const rows = members.map((member, index) => ({ id: newId(now, index), ...member }))
  await tx.query(
    `
    insert into account_members (customer_id, id, account_id, identity_id, roles)
    select $1, m.id, $2, m.identity_id, m.roles
    from json_to_recordset($3) as m (id uuid, identity_id uuid, roles text[])`,
    [customerId, accountId, JSON.stringify(rows)],
  )
  return rows.map(memberToWire)
}
