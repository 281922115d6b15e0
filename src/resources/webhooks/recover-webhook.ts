import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { transaction, type Transaction } from '../../db/database.ts'
import { firstIdAt, readClock } from '../../db/ids.ts'
import { nextCursor, pageOf, pageParameters } from '../../http/lists.ts'
import { microsOf } from '../../http/time-bounds.ts'
import { operation } from '../operation.ts'
import { eventMatches, lockActiveWebhook } from '../../money/records/webhook.ts'
import { startDeliveries } from '../../money/records/webhook-delivery.ts'
import { audited, recordNow } from '../../audit/audited.ts'

/**
 * Most events that one request looks at. The request locks the endpoint's row meanwhile, so that the deliverer waits:
 * measured, 0.1 s for 5,000.
 */
const EVENTS_AT_ONCE = 5_000

/**
 * Delivers the events of a time span that were not delivered to an endpoint (API behaviour, Webhooks), each once. A request
 * looks at a limited number of events; the client continues at its cursor. So a million events hold no lock for long, and
 * the client decides how fast they become due.
 */
export const recoverWebhook = operation({
  method: 'POST',
  url: '/v2/webhooks/:id/recover',
  scope: 'webhooks:write_webhook',
  tag: 'Events and Webhooks',
  repeats: 'HARMLESS',
  summary: 'Recover Webhook',
  description:
    'Starts a delivery of each event of this time that the webhook gets and that was not delivered to it. Deliveries that wait for a later attempt are made due now. A request looks at up to 5,000 events: while the answer has a next_page_cursor, repeat the request with it.',
  params: Type.Object({ id: Uuid('Id of the webhook.') }),
  body: Closed({
    since: Timestamp('Events from then on.'),
    until: Type.Optional(Timestamp('Events before then (default: until now).')),
    page_cursor: pageParameters.page_cursor,
  }),
  example: {
    params: { id: EXAMPLE.webhook_id },
    bodies: {
      'A day of an outage': { since: '2026-01-31T00:00:00Z', until: '2026-02-01T00:00:00Z' },
    },
  },
  reply: Type.Object({
    recovered: Type.Integer({
      minimum: 0,
      description: 'Deliveries that are due now because of this request.',
    }),
    next_page_cursor: Type.Optional(
      Type.String({ description: 'Send it as page_cursor to continue. Absent: all events were looked at.' }),
    ),
  }),
  problems: ['not-found'],
  async run({ params: { id }, body, customerId, origin, db }) {
    const from = ceilingOf(body.since, 'since')
    const to = body.until === undefined ? undefined : ceilingOf(body.until, 'until')
    if (to !== undefined && to < from) throw problem.badRequest('until must not be before since', 'until')
    const page = pageOf(`webhook-recovery ${id}`, body)
    return transaction(db, async (tx) => {
      await lockActiveWebhook(tx, customerId, id)
      const { recovered, looked_at, last_id } = await recover(tx, customerId, id, {
        after: page.after?.[0] ?? null,
        from: firstIdAt(from),
        to: to === undefined ? null : firstIdAt(to),
      })
      await recordNow(tx, customerId, audited(origin, 'webhook.recover', id))
      const ends = looked_at < EVENTS_AT_ONCE
      return { recovered, ...(!ends && { next_page_cursor: nextCursor([last_id!], page) }) }
    })
  },
})

/** The first microsecond that is not before this time. */
function ceilingOf(text: string, field: string): number {
  const { floor, exact } = microsOf(text, field)
  return Math.max(0, exact ? floor : floor + 1)
}

/**
 * Makes the deliveries of the next events due. Events after the endpoint's cursor are left out: the deliverer will send them
 * anyway. The caller has locked the endpoint's row, so that the deliverer does not insert the same deliveries.
 */
async function recover(
  tx: Transaction,
  customerId: string,
  webhookId: string,
  bounds: { after: string | null; from: string; to: string | null },
): Promise<{ recovered: number; looked_at: number; last_id: string | null }> {
  const now = await readClock(tx)
  const { rows } = await tx.query<{
    event_ids: string[]
    object_ids: string[]
    looked_at: number
    last_id: string | null
  }>(
    `
    with event as materialized (
      select id, type, object_id, is_test
      from events
      where customer_id = $1 and id >= $3 and ($4::uuid is null or id > $4) and ($5::uuid is null or id < $5)
        and id <= (select cursor_id from webhooks where customer_id = $1 and id = $2)
      order by id
      limit $6
    ), matching as (
      select event.id, event.object_id
      from event, webhooks w
      where w.customer_id = $1 and w.id = $2 and ${eventMatches('event', 'w')}
    )
    select coalesce((select array_agg(id order by id) from matching), '{}') as event_ids,
           coalesce((select array_agg(object_id order by id) from matching), '{}') as object_ids,
           (select count(*)::int from event) as looked_at,
           (select id from event order by id desc limit 1) as last_id`,
    [customerId, webhookId, bounds.from, bounds.after, bounds.to, EVENTS_AT_ONCE],
  )
  const { event_ids, object_ids, looked_at, last_id } = rows[0]!
  const { rowCount } = await tx.query(
    startDeliveries(
      // From the customer's row, so that a distributed database inserts on the customer's node.
      `select c.id, $2::uuid, missing.*, $5::timestamptz
       from customers c cross join unnest($3::uuid[], $4::uuid[]) missing
       where c.id = $1`,
      "webhook_deliveries.status = 'FAILED' or webhook_deliveries.due_at > excluded.due_at",
    ),
    [customerId, webhookId, event_ids, object_ids, now.text],
  )
  return { recovered: rowCount!, looked_at, last_id }
}
