import { arrayLiteral, onCitus, type Transaction } from '../db/database.ts'
import { insertRows } from '../db/distributed-insert.ts'
import { idsAt, type Moment } from '../db/ids.ts'

/** An event to write: the change of a record's status (API behaviour, Events). */
export interface NewEvent {
  type: string
  /** The record whose status changed. */
  object_id: string
  /** Absent for transfers and orchestrations, whose objects are read from their records. */
  object?: object
}

/** The columns of new events that differ by row, with their types. */
export const EVENT_COLUMNS = { id: 'uuid', type: 'text', object_id: 'uuid' }

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
  await tx.query({
    ...(onCitus(tx) ? insertDistributed(events.length) : INSERT),
    values: [
      customerId,
      now.text,
      ...eventColumns(events, now),
      arrayLiteral(events.map(({ object }) => object && JSON.stringify(object))),
    ],
  })
}

const INSERT = {
  name: 'insert events',
  text: `
      insert into events (customer_id, created_at, is_test, id, type, object_id, object)
      select $1, $2, false, * from unnest($3::uuid[], $4::text[], $5::uuid[], $6::jsonb[])`,
}

function insertDistributed(count: number): { name: string; text: string } {
  const { name, text } = insertRows(
    {
      table: 'events',
      fixed: { created_at: '$2', is_test: 'false' },
      columns: { ...EVENT_COLUMNS, object: 'jsonb' },
      first: 3,
    },
    count,
  )
  // The ledger's own events have no objects, and their statement has the plain name.
  return { name: `${name} with objects`, text }
}
