import type { Queryable } from '../../db/database.ts'
import { momentAt, type Moment } from '../../db/ids.ts'

/** The span of the request that created a transfer. */
export interface NewTrace {
  transfer_id: string
  traceparent: string
}

/** Keeps the traces of new transfers, in the transaction that posts them. */
export async function insertTraces(
  tx: Queryable,
  customerId: string,
  now: Moment,
  traces: readonly NewTrace[],
): Promise<void> {
  await tx.query({
    name: 'insert traces',
    text: `insert into traces (customer_id, transfer_id, created_at, traceparent)
     select $1::uuid, t.transfer_id, $2::timestamptz, t.traceparent
     from unnest($3::uuid[], $4::text[]) as t (transfer_id, traceparent)
     on conflict do nothing`,
    values: [
      customerId,
      now.text,
      traces.map((trace) => trace.transfer_id),
      traces.map((trace) => trace.traceparent),
    ],
  })
}

/** A transfer that is traced, with the times of its steps so far in milliseconds since 1970. */
export interface TracedTransfer extends NewTrace {
  createdMs: number
  signedMs: number | undefined
  broadcastMs: number | undefined
  updatedMs: number
}

/** Those of the customer's transfers that are traced. */
export async function readTraces(
  db: Queryable,
  customerId: string,
  ids: readonly string[],
): Promise<TracedTransfer[]> {
  const { rows } = await db.query<
    NewTrace &
      Record<'created_at' | 'updated_at', string> &
      Record<'signed_at' | 'broadcast_at', string | null>
  >(
    `select r.transfer_id, r.traceparent, t.created_at, t.updated_at, o.signed_at, o.broadcast_at
     from traces r
     join transfers t on t.customer_id = $1 and t.id = r.transfer_id
     left join outgoing_transfers o on o.customer_id = $1 and o.transfer_id = r.transfer_id
     where r.customer_id = $1 and r.transfer_id = any ($2::uuid[])`,
    [customerId, ids],
  )
  const msOf = (text: string) => momentAt(text).micros / 1000
  return rows.map(({ transfer_id, traceparent, created_at, updated_at, signed_at, broadcast_at }) => ({
    transfer_id,
    traceparent,
    createdMs: msOf(created_at),
    updatedMs: msOf(updated_at),
    signedMs: signed_at === null ? undefined : msOf(signed_at),
    broadcastMs: broadcast_at === null ? undefined : msOf(broadcast_at),
  }))
}

const KEPT_DAYS = 30

/** Deletes the first `max` traces that are older than 30 days, and returns their number. */
export async function deleteOldTraces(db: Queryable, max: number): Promise<number> {
  const { rows } = await db.query<{ customer_id: string; transfer_id: string }>(
    `select customer_id, transfer_id from traces
     where created_at < clock_timestamp() - make_interval(days => $1)
     order by created_at
     limit $2`,
    [KEPT_DAYS, max],
  )
  if (rows.length === 0) return 0
  const { rowCount } = await db.query(
    `delete from traces t
     using unnest($1::uuid[], $2::uuid[]) as old (customer_id, transfer_id)
     where t.customer_id = old.customer_id and t.transfer_id = old.transfer_id`,
    [rows.map((row) => row.customer_id), rows.map((row) => row.transfer_id)],
  )
  return rowCount ?? 0
}
