import { type Transaction } from '../../db/database.ts'
import { arrayLiteral } from '../../db/array-literal.ts'
import { idsAt, type Moment } from '../../db/ids.ts'
import { insertOf, sendTogether } from '../../db/together.ts'

/** An event to write: the change of a record's status (API behaviour, Events). */
export interface NewEvent {
  type: string
  /** The record whose status changed. */
  object_id: string
  /** Absent for transfers and orchestrations, whose objects are read from their records. */
  object?: object
}

/** The columns of new events that differ by row, with their types. */
export const NEW_EVENT_COLUMNS = { id: 'uuid', type: 'text', object_id: 'uuid' }

/** Formats new events of one moment column by column. Their ids are in the order of the events. */
export function eventColumns(events: readonly NewEvent[], at: Moment): string[] {
  const newId = idsAt(at)
  // None of these values needs quotes.
  return [
    `{${events.map(() => newId()).join()}}`,
    `{${events.map(({ type }) => type).join()}}`,
    `{${events.map(({ object_id }) => object_id).join()}}`,
  ]
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
  const objects = arrayLiteral(events.map(({ object }) => object && JSON.stringify(object)))
  await sendTogether(tx, customerId, [[INSERT, [now.text, ...eventColumns(events, now), objects]]])
}

// The ledger's own events have no objects, and their statement has the plain name.
const INSERT = insertOf(
  'insert into events',
  { at: ['created_at'], columns: { ...NEW_EVENT_COLUMNS, object: 'jsonb' }, fixed: { is_test: 'false' } },
  'new events with objects',
)
