import { Type, type Static } from 'typebox'
import { arrayLiteral } from '../../db/array-literal.ts'
import { inTransaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { presentOf } from '../../db/rows.ts'
import { newId, readClock } from '../../db/ids.ts'
import { readOfCustomer } from '../../db/shared-transaction.ts'
import { Lines, NamedObject, OneOf, Text, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'

export const Profile = NamedObject('Profile', {
  id: Uuid('Profile id.'),
  nickname: Text(100, 'Unique name of the profile.', 1),
  type: OneOf(
    ['NORMAL', 'DEFAULT'],
    'DEFAULT is the profile created with the customer; all others are NORMAL.',
  ),
  description: Type.Optional(Lines(500, 'Free-text description.')),
  account_id: Type.Optional(Uuid('Account that the profile belongs to.')),
  deactivated_at: Type.Optional(Timestamp('When it was deactivated.')),
})
export type Profile = Static<typeof Profile>

export const PROFILE_COLUMNS = 'id, nickname, type, description, account_id, deactivated_at'

export type ProfileRow = Pick<Profile, 'id' | 'nickname' | 'type'> & {
  description: string | null
  account_id: string | null
  deactivated_at: string | null
}

export const profileToWire = (row: ProfileRow): Profile => presentOf(row)

/** Creates a profile. A nickname that is taken violates `profiles_nickname`. */
export async function insertProfile(
  db: Database | Transaction,
  customerId: string,
  profile: Pick<Profile, 'type' | 'nickname' | 'description' | 'account_id'>,
): Promise<ProfileRow> {
  return inTransaction(db, async (tx) => {
    const now = await readClock(tx)
    const { rows } = await tx.query<ProfileRow>(
      `
      insert into profiles (customer_id, id, created_at, type, nickname, description, account_id)
      values ($1, $2, $3, $4, $5, $6, $7)
      returning ${PROFILE_COLUMNS}`,
      [
        customerId,
        newId(now),
        now.text,
        profile.type,
        profile.nickname,
        profile.description,
        profile.account_id,
      ],
    )
    return rows[0]!
  })
}

/** Reads the customer's profile with this id. Throws not-found. */
export async function requireProfile(db: Queryable, customerId: string, id: string): Promise<ProfileRow> {
  const { rows } = await db.query<ProfileRow>(
    `select ${PROFILE_COLUMNS} from profiles where customer_id = $1 and id = $2`,
    [customerId, id],
  )
  if (rows[0] === undefined) throw problem.notFound('profile', id)
  return rows[0]
}

/**
 * Requires a profile that may get addresses, instructions and rules, and prevents its deactivation until the transaction ends.
 * Throws not-found, or disabled if it is deactivated.
 */
export async function lockOpenProfile(tx: Transaction, customerId: string, id: string): Promise<void> {
  const profile = (await lockProfiles(tx, customerId, [id])).get(id.toLowerCase())
  if (profile === undefined) throw problem.notFound('profile', id)
  if (profile.deactivated_at !== null) throw problem.deactivated(id)
}

export async function useOfProfile(
  db: Queryable,
  customerId: string,
  id: string,
): Promise<string | undefined> {
  const { rows } = await db.query<{ use: string }>(
    `
    (select 'transfer ' || id || ' is PENDING' as use from transfers
     where customer_id = $1 and profile_id = $2 and status = 'PENDING'
     limit 1)
    union all
    (select 'orchestration ' || id || ' is PROCESSING' from orchestrations
     where customer_id = $1 and profile_id = $2 and status = 'PROCESSING'
     limit 1)
    union all
    (select 'orchestration ' || id || ' pays to it' from orchestrations
     where customer_id = $1 and status = 'PROCESSING' and destination_transfer_id is null
       and destination -> 'profile' ->> 'profile_id' = $2::uuid::text
     limit 1)
    union all
    (select 'orchestration rule ' || id || ' is ACTIVE; delete it first' from orchestration_rules
     where customer_id = $1 and status = 'ACTIVE'
       and (profile_id = $2 or destination -> 'profile' ->> 'profile_id' = $2::uuid::text)
     limit 1)
    limit 1`,
    [customerId, id],
  )
  return rows[0]?.use
}

type Standing = Pick<ProfileRow, 'id' | 'account_id' | 'deactivated_at'>

/** Reads which of `profileIds` belong to this customer, by id. */
export async function selectProfiles(
  db: Queryable,
  customerId: string,
  profileIds: string[],
  locked = false,
): Promise<Map<string, Standing>> {
  if (profileIds.length === 0) return new Map()
  const rows = await readOfCustomer<Standing>(db, {
    name: locked ? 'lock profiles' : 'profiles',
    isUnnamed: true,
    text: `select id, account_id, deactivated_at from profiles where customer_id = $1 and id = any ($2::uuid[])
           ${locked ? 'order by id for share' : ''}`,
    values: [customerId, arrayLiteral(profileIds)],
  })
  return new Map(rows.map((row) => [row.id, row]))
}

/** The same, and prevents their deactivation until the transaction ends: a deactivation locks the row before it looks. */
export const lockProfiles = (tx: Queryable, customerId: string, profileIds: string[]) =>
  selectProfiles(tx, customerId, profileIds, true)
