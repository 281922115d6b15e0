import { momentAt, type Moment } from '../../db/ids.ts'
import { type Transaction } from '../../db/database.ts'
import { arrayLiteral } from '../../db/array-literal.ts'
import { insertEvents, type NewEvent } from '../ledger/events.ts'
import type { HolderStatus } from './holders.ts'

/** Most events of one statement: it numbers at most 16,384 ids (src/db/ids.ts). */
const EVENTS_MAX = 10_000

/** A record's summary_status before and after a change. A new record was PENDING. */
export interface SummaryChange {
  id: string
  before: HolderStatus
  after: HolderStatus
}

/** Returns the event of a change of summary_status. Becoming PENDING or ERROR is no event. */
function eventsOf(record: 'identity' | 'account', { id, before, after }: SummaryChange): NewEvent[] {
  if (before === after || after === 'PENDING' || after === 'ERROR') return []
  return [
    {
      type: `${record}.${after.toLowerCase()}`,
      object_id: id,
      object: { [`${record}_id`]: id, old_summary_status: before, new_summary_status: after },
    },
  ]
}

/** Writes the event of an account's change. The caller has locked its identity and the account, in this order. */
export async function insertAccountEvent(
  tx: Transaction,
  customerId: string,
  now: Moment,
  change: SummaryChange,
): Promise<void> {
  await insertInOrder(tx, customerId, now, eventsOf('account', change))
}

/** Writes the events at `now`, or right after an earlier event of their records: the database's clock may have been set back. */
async function insertInOrder(
  tx: Transaction,
  customerId: string,
  now: Moment,
  events: readonly NewEvent[],
): Promise<void> {
  if (events.length === 0) return
  const { rows } = await tx.query<{ at: string }>(
    `select greatest($3::timestamptz, max(created_at) + interval '1 microsecond') as at from events
     where customer_id = $1 and object is not null and object_id = any ($2::uuid[])`,
    [customerId, arrayLiteral(events.map(({ object_id }) => object_id)), now.text],
  )
  await insertEvents(tx, customerId, momentAt(rows[0]!.at), events)
}

/**
 * Writes the events of an identity's change, and of its accounts: their summary_status follows the identity's, except
 * where one of their own flags disables them. The caller has locked the identity. A change of an account locks its
 * identity, too, so the accounts stay as this function reads them.
 */
export async function insertIdentityEvents(
  tx: Transaction,
  customerId: string,
  now: Moment,
  { id, before, after }: SummaryChange,
): Promise<void> {
  if (before === after) return
  const { rows } = await tx.query<{ id: string }>(
    `
    select id from accounts
    where customer_id = $1 and identity_id = $2 and not user_disabled and not admin_disabled
    order by id`,
    [customerId, id],
  )
  const events = [
    ...eventsOf('identity', { id, before, after }),
    ...rows.flatMap((account) => eventsOf('account', { id: account.id, before, after })),
  ]
  for (let start = 0; start < events.length; start += EVENTS_MAX)
    await insertInOrder(tx, customerId, now, events.slice(start, start + EVENTS_MAX))
}
