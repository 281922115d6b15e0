import { type Transaction } from '../../db/database.ts'
import { idsAt, type Moment } from '../../db/ids.ts'
import { bind, columnsOf, insertOf, sendTogether } from '../../db/together.ts'

/** An event to write: the change of a record's status (API behaviour, Events). */
export interface NewEvent {
  type: string
  /** The record whose status changed. */
  object_id: string
  /** Absent for transfers and orchestrations, whose objects are read from their records. */
  object?: object | undefined
}

export interface EventRow extends NewEvent {
  id: string
  created_at: string
}

export const EVENT_COLUMNS = [
  ...columnsOf<EventRow>({ created_at: 'timestamptz' }, true),
  ...columnsOf<EventRow>({ id: 'uuid', type: 'text', object_id: 'uuid' }),
]

/** The rows of new events of one moment. Their ids are in the order of the events. */
export function eventRows(events: readonly NewEvent[], at: Moment): EventRow[] {
  const newId = idsAt(at)
  return events.map(({ type, object_id, object }) => ({
    type,
    object_id,
    object,
    id: newId(),
    created_at: at.text,
  }))
}

/**
 * Writes the events of changes, in the transaction that makes them: `now` is the moment of the changes, read in this
 * transaction, so that readers of events miss none (ARCHITECTURE, "Events").
 */
export async function insertEvents(
  tx: Transaction,
  customerId: string,
  now: Moment,
  events: readonly NewEvent[],
): Promise<void> {
  if (events.length === 0) return
  await sendTogether(tx, customerId, [bind(INSERT, eventRows(events, now))])
}

// The ledger's own events have no objects, and their statement has the plain name.
const INSERT = insertOf<EventRow>(
  'insert into events',
  [...EVENT_COLUMNS, { name: 'object', type: 'jsonb', of: ({ object }) => object && JSON.stringify(object) }],
  { fixed: { is_test: 'false' }, name: 'new events with objects' },
)
