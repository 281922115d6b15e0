import { Type, type Static } from 'typebox'
import { transaction, type Queryable, type Transaction } from '../../db/database.ts'
import { insertOnce } from '../../money/records/insert-once.ts'
import { newId, readClock } from '../../db/ids.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { operation } from '../operation.ts'
import { MEMBERS_MAX, requireIdentities } from '../../money/records/members.ts'
import { insertProfile } from '../../money/records/profile.ts'
import { insertAccountEvent } from '../../money/records/summary-status.ts'
import {
  Account,
  AccountType,
  accountToWire,
  insertMembers,
  NewMember,
  readMembers,
  requireAccount,
  SELECT_ACCOUNTS,
  type AccountRow,
  type ReadMember,
} from '../../money/records/account.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { Closed } from '../../contract/fields.ts'
import { requireRoom } from '../../money/records/record-limits.ts'

const NewAccount = Closed(
  {
    identity_id: Account.properties.identity_id,
    ref_id: Account.properties.ref_id,
    type: Type.Optional(AccountType),
    description: Account.properties.description,
    metadata: Account.properties.metadata,
    members: Type.Optional(
      Type.Array(NewMember, {
        maxItems: MEMBERS_MAX,
        description: 'Additional identities with access to the account.',
      }),
    ),
  },
  { description: 'The account.' },
)
type NewAccount = Static<typeof NewAccount>

export const createAccount = operation({
  method: 'POST',
  url: '/v2/identity/accounts',
  scope: 'identity:write_account',
  tag: 'Accounts',
  summary: 'Create Account',
  description:
    'Creates an account of an identity, with its members and, on request, its profile. Its ref_id is unique among the accounts of the same API client.',
  body: Closed({
    account: NewAccount,
    create_profile: Type.Optional(
      Type.Boolean({ default: false, description: 'Also create a NORMAL profile for the account.' }),
    ),
  }),
  example: {
    bodies: {
      'An account with a profile': {
        account: {
          identity_id: EXAMPLE.identity_id,
          ref_id: 'account-2026-0001',
          type: 'BROKERAGE',
          description: 'Savings',
          metadata: { order: '1041' },
        },
        create_profile: true,
      },
    },
  },
  reply: Account,
  problems: ['already-exists', 'not-found'],
  async run({ body: { account, create_profile }, customerId, clientId, origin, db }) {
    const members = readMembers(account.members ?? [], 'account.members')
    return insertOnce({
      constraint: 'accounts_ref_id',
      async find() {
        const known = await selectByRefId(db, customerId, clientId, account.ref_id)
        return known && accountToWire(known)
      },
      async insert() {
        await requireIdentities(db, customerId, [
          account.identity_id,
          ...members.map(({ identity_id }) => identity_id),
        ])
        return transaction(db, async (tx) => {
          await requireRoom(tx, customerId, 'accounts')
          if (create_profile) await requireRoom(tx, customerId, 'profiles')
          const made = await insertAccount(tx, customerId, clientId, { ...account, members }, create_profile)
          await recordNow(
            tx,
            customerId,
            audited(origin, 'account.create', made.id),
            ...(made.profile_id === undefined ? [] : [audited(origin, 'profile.create', made.profile_id)]),
          )
          return made
        })
      },
    })
  },
})

/** Inserts an account, its members and its profile. A ref_id that the client has used violates `accounts_ref_id`. */
export async function insertAccount(
  tx: Transaction,
  customerId: string,
  clientId: string,
  account: Omit<NewAccount, 'members'> & { members?: ReadMember[] },
  createProfile = false,
): Promise<Account> {
  const { identity_id, ref_id, type = 'BROKERAGE', description, metadata, members = [] } = account
  // Locks the identity's status until the account exists, so that the account gets the event of the next change.
  await tx.query('select 1 from identities where customer_id = $1 and id = $2 for share', [
    customerId,
    identity_id,
  ])
  const now = await readClock(tx)
  const id = newId(now)
  await tx.query(
    `
    insert into accounts (customer_id, id, created_at, updated_at, client_id, identity_id, ref_id, type, description,
                          metadata)
    values ($1, $2, $3, $3, $4, $5, $6, $7, $8, $9)`,
    [customerId, id, now.text, clientId, identity_id, ref_id, type, description, metadata],
  )
  await insertMembers(tx, customerId, id, members, now)
  if (createProfile) {
    const profile = { type: 'NORMAL' as const, nickname: `Account ${id}`, description, account_id: id }
    await insertProfile(tx, customerId, profile)
  }
  const made = accountToWire(await requireAccount(tx, customerId, id))
  await insertAccountEvent(tx, customerId, now, { id, before: 'PENDING', after: made.summary_status })
  return made
}

async function selectByRefId(
  db: Queryable,
  customerId: string,
  clientId: string,
  refId: string | undefined,
): Promise<AccountRow | undefined> {
  if (refId === undefined) return undefined
  const { rows } = await db.query<AccountRow>(
    `${SELECT_ACCOUNTS} where a.customer_id = $1 and a.client_id = $2 and a.ref_id = $3`,
    [customerId, clientId, refId],
  )
  return rows[0]
}
