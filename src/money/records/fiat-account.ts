import { Type, type Static } from 'typebox'
import { inTransaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { presentOf } from '../../db/rows.ts'
import { insertOnce } from './insert-once.ts'
import { newId, readClock } from '../../db/ids.ts'
import { Wire } from '../../contract/bank-wire.ts'
import {
  Closed,
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
import { insertEvents, type NewEvent } from '../ledger/events.ts'
import { requireHolders } from './holders.ts'
import type { RecordKind } from './need.ts'
import { audited } from '../../audit/audited.ts'
import { requireRoom } from './record-limits.ts'
import { recordChanges } from '../../audit/audit.ts'
import type { Origin } from '../../contract/actor.ts'

const Name = Text(200, 'Name.', 1)

export const FiatAccountOwner = Type.Object(
  {
    person_details: Type.Optional(
      Type.Object({ first_name: Name, last_name: Name }, { additionalProperties: true }),
    ),
    institution_details: Type.Optional(Type.Object({ name: Name }, { additionalProperties: true })),
  },
  {
    ...Free,
    minProperties: 1,
    description:
      'Whose bank account it is: person_details or institution_details. Other members are kept, 8 KiB at most in all.',
  },
)
export const FiatNetworkInstructions = Closed(
  { wire: Wire },
  { description: 'How the bank account is reached.' },
)

export const FiatAccount = NamedObject('FiatAccount', {
  id: Uuid('Id of the fiat account.'),
  customer_id: Uuid('Customer.'),
  status: OneOf(['PENDING', 'APPROVED', 'REJECTED'], 'Status.'),
  fiat_account_owner: FiatAccountOwner,
  fiat_network_instructions: FiatNetworkInstructions,
  ref_id: Type.Optional(RefId),
  identity_id: Type.Optional(Uuid('Identity of the owner.')),
  account_id: Type.Optional(Uuid('Account of the owner.')),
  metadata: Type.Optional(Metadata),
  created_at: Timestamp('Creation time.'),
  updated_at: Timestamp('Last update time.'),
  deleted_at: Type.Optional(Timestamp('When it was deleted: nothing new is paid to it.')),
})
export type FiatAccount = Static<typeof FiatAccount>

export const FIAT_ACCOUNT_COLUMNS = `id, customer_id, status, fiat_account_owner, fiat_network_instructions, ref_id,
  identity_id, account_id, metadata, created_at, coalesce(updated_at, created_at) as updated_at, deleted_at`

export type FiatAccountRow = { [K in keyof FiatAccount]: FiatAccount[K] | null } & { id: string }

export const fiatAccountToWire = (row: FiatAccountRow) => presentOf(row) as FiatAccount

/**
 * Creates a fiat account. Throws already-exists for the ref_id, not-found for the records it names. Without `origin`,
 * the caller records the change.
 */
export async function insertFiatAccount(
  db: Database | Transaction,
  customerId: string,
  body: Omit<FiatAccount, 'id' | 'customer_id' | 'created_at' | 'updated_at' | 'deleted_at'>,
  origin?: Origin,
): Promise<FiatAccount> {
  return insertOnce({
    constraint: 'fiat_accounts_ref_id',
    find: () => selectByRefId(db, customerId, body.ref_id),
    async insert() {
      await requireHolders(db, customerId, body)
      return inTransaction(db, async (tx) => {
        await requireRoom(tx, customerId, 'fiat_accounts')
        const now = await readClock(tx)
        const { rows } = await tx.query<FiatAccountRow>(
          `
        insert into fiat_accounts (customer_id, id, created_at, status, fiat_account_owner, fiat_network_instructions,
                                   ref_id, identity_id, account_id, metadata)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        returning ${FIAT_ACCOUNT_COLUMNS}`,
          [
            customerId,
            newId(now),
            now.text,
            body.status,
            body.fiat_account_owner,
            body.fiat_network_instructions,
            body.ref_id,
            body.identity_id,
            body.account_id,
            body.metadata,
          ],
        )
        const account = fiatAccountToWire(rows[0]!)
        await insertEvents(tx, customerId, now, eventsOf(account))
        if (origin !== undefined)
          recordChanges(tx, customerId, now, [audited(origin, 'fiat_account.create', account.id)])
        return account
      })
    },
  })
}

/** Returns the event of a new fiat account. The bank decides before the account is inserted, so its status never changes. */
const eventsOf = ({ id, status }: FiatAccount): NewEvent[] =>
  status === 'PENDING'
    ? []
    : [{ type: `fiat_account.${status.toLowerCase()}`, object_id: id, object: { id, status } }]

async function selectByRefId(db: Queryable, customerId: string, refId: string | undefined) {
  if (refId === undefined) return undefined
  const { rows } = await db.query<FiatAccountRow>(
    `select ${FIAT_ACCOUNT_COLUMNS} from fiat_accounts where customer_id = $1 and ref_id = $2`,
    [customerId, refId],
  )
  return rows[0] && fiatAccountToWire(rows[0])
}

/**
 * Reads the customer's fiat account with this id. Throws not-found, also for a deleted account unless the caller
 * includes those.
 */
export async function requireFiatAccount(
  db: Queryable,
  customerId: string,
  id: string,
  { includeDeleted = false } = {},
): Promise<FiatAccount> {
  const { rows } = await db.query<FiatAccountRow>(
    `select ${FIAT_ACCOUNT_COLUMNS} from fiat_accounts
     where customer_id = $1 and id = $2 and (deleted_at is null or $3)`,
    [customerId, id, includeDeleted],
  )
  if (rows[0] === undefined) throw problem.notFound('fiat account', id)
  return fiatAccountToWire(rows[0])
}

/**
 * Requires a fiat account that can be paid, and prevents its deletion until the transaction ends. Throws like
 * `requirePayable`.
 */
export async function lockPayable(tx: Transaction, customerId: string, id: string): Promise<void> {
  requirePayable((await lockFiatAccounts(tx, customerId, [id])).get(id.toLowerCase()), id)
}

/** Reads the customer's fiat accounts with these ids, by id. Deleted ones are left out. */
export async function selectFiatAccounts(
  db: Queryable,
  customerId: string,
  ids: readonly string[],
  locked = false,
): Promise<Map<string, FiatAccount>> {
  if (ids.length === 0) return new Map()
  const { rows } = await db.query<FiatAccountRow>(
    `select ${FIAT_ACCOUNT_COLUMNS} from fiat_accounts
     where customer_id = $1 and id = any ($2::uuid[]) and deleted_at is null
     ${locked ? 'order by id for share' : ''}`,
    [customerId, ids],
  )
  return new Map(rows.map((row) => [row.id, fiatAccountToWire(row)]))
}

/** The same, and prevents their deletion until the transaction ends. */
const lockFiatAccounts = (tx: Transaction, customerId: string, ids: readonly string[]) =>
  selectFiatAccounts(tx, customerId, ids, true)

export const FIAT_ACCOUNTS: RecordKind<string, FiatAccount> = {
  read: lockFiatAccounts,
}

/** Returns the fiat account if it can be paid. Throws not-found if it does not exist, disabled if it is REJECTED. */
export function requirePayable(account: FiatAccount | undefined, id: string): FiatAccount {
  if (account === undefined) throw problem.notFound('fiat account', id)
  if (account.status === 'REJECTED') throw problem.disabled('fiat account', id, account.status)
  return account
}
