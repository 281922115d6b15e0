import { strict as assert } from 'node:assert'
import { Type, type Static } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, DOLLARS } from '../../contract/assets/catalogue.ts'
import { Amount, Items, Timestamp } from '../../contract/fields.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import type { Database } from '../../db/database.ts'
import { firstIdAt, momentOfMicros } from '../../db/ids.ts'
import { DEADLINE_SECONDS } from '../../governance/policy/policy-document.ts'
import { knownMoment } from '../../http/require-horizon.ts'
import { reusedAnswers } from '../../http/reused-answers.ts'
import { operatorOperation } from '../operation.ts'

const HOUR_MICROS = 3_600_000_000
const HOURS = 24
/** An approval ends at its deadline, so one that waited after a moment was created within this time before it. */
const APPROVAL_MICROS_MAX = DEADLINE_SECONDS.maximum * 1_000_000

const Activity = Type.Object({
  at: Timestamp('A full hour, or now.'),
  in_flight: Amount('In USD: the payments out that were PENDING then.'),
  waiting: Type.Integer({ description: 'How many records waited for a person then.' }),
  in: Amount('In USD: what came and was COMPLETED within the hour that ends then.'),
  out: Amount('In USD: what went and was COMPLETED within that hour.'),
})
type Activity = Static<typeof Activity>

const reused = reusedAnswers<{ items: Activity[] }>()

/** Sums the customer's payments and what waits for people, at each full hour of the last 24 hours and now. */
export const listActivity = operatorOperation({
  method: 'GET',
  url: '/v2/operators/activity',
  scope: 'operators:read_activity',
  summary: 'List Activity',
  reply: Items(Activity),
  run: ({ customerId, db, settings: { mode } }) =>
    reused(`${mode} ${customerId}`, () => readActivity(forEverybody(db), customerId, mode)),
})

async function readActivity(db: Database, customerId: string, mode: 'sandbox' | 'live') {
  const { micros: now } = await knownMoment(db, Infinity)
  // The last full hour before now.
  const lastHour = now - 1 - ((now - 1) % HOUR_MICROS)
  const fullHours = Array.from({ length: HOURS }, (_, ago) => lastHour - ago * HOUR_MICROS).reverse()
  const moments = [...fullHours, now]
  // Where an hour begins or ends. Records are summed between bounds first, so that few sums are joined with the moments.
  const bounds = [...new Set(moments.flatMap((end) => [end - HOUR_MICROS, end]))].sort((a, b) => a - b)
  const boundOf = (micros: number) => bounds.indexOf(micros) + 1
  const { rows } = await db.query<Omit<Activity, 'at'>>(
    `
    with records as (
      select case when t.type in ('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL') then v.value else 0 end as in_flight,
             case when $3 and t.type = 'WIRE_WITHDRAWAL' then 1 else 0 end as waiting,
             case when t.status = 'COMPLETED' and not starts_with(t.type, 'INTERNAL_') then v.value else 0 end as done,
             t.direction, t.created_at, case when t.status = 'PENDING' then 'infinity' else t.updated_at end as ended_at
      from (
        select * from transfers where customer_id = $1 and status = 'PENDING'
        union all
        select * from transfers where customer_id = $1 and status <> 'PENDING' and updated_at > ($2::timestamptz[])[1]
      ) t
      -- Of wires and rewards no value is recorded: they have dollars, or stablecoins that are worth as much.
      cross join lateral (select coalesce(t.notional_value, case when t.asset = any ($8) then t.total end, 0) as value) v
      union all
      select 0, 1, 0, null, a.created_at, d.ended_at
      from approvals a
      cross join lateral (
        select case when a.status = 'PENDING' then 'infinity' else coalesce(a.approved_at, a.ended_at) end as ended_at
      ) d
      where a.customer_id = $1 and a.id >= $4 and d.ended_at > ($2::timestamptz[])[1]
        -- In live mode a wire waits from its creation to its end. The plan of "not exists" reads all wires.
        and (not $3 or 'WIRE_WITHDRAWAL' is distinct from (
          select w.type from transfers w where w.customer_id = $1 and w.id = a.transfer_id))
    ), sums as (
      -- How many bounds are before the creation and the end.
      select width_bucket(created_at - interval '1 microsecond', $2::timestamptz[]) as created,
             width_bucket(ended_at - interval '1 microsecond', $2::timestamptz[]) as ended,
             sum(in_flight) as in_flight, sum(waiting) as waiting,
             sum(done) filter (where direction = 'CREDIT') as credited,
             sum(done) filter (where direction = 'DEBIT') as debited
      from records
      group by 1, 2
    )
    select round(coalesce(sum(in_flight) filter (where created < m.at and m.at <= ended), 0), $7) as in_flight,
           coalesce(sum(waiting) filter (where created < m.at and m.at <= ended), 0)::integer as waiting,
           round(coalesce(sum(credited) filter (where m.since <= ended and ended < m.at), 0), $7) as "in",
           round(coalesce(sum(debited) filter (where m.since <= ended and ended < m.at), 0), $7) as out
    from unnest($5::integer[], $6::integer[]) m (since, at)
    left join sums on true
    group by m.at
    order by m.at`,
    [
      ...[customerId, bounds.map((micros) => momentOfMicros(micros).text), mode === 'live'],
      firstIdAt(bounds[0]! - APPROVAL_MICROS_MAX),
      ...[moments.map((end) => boundOf(end - HOUR_MICROS)), moments.map(boundOf), decimalsOf('USD'), DOLLARS],
    ],
  )
  assert(rows.length === moments.length, 'every moment has its sums')
  const usd = (sum: string) => formatAmount(parseStoredAmount(sum, decimalsOf('USD')), decimalsOf('USD'))
  return {
    items: rows.map(({ in_flight, waiting, in: credited, out }, index) => ({
      at: momentOfMicros(moments[index]!).text,
      in_flight: usd(in_flight),
      waiting,
      in: usd(credited),
      out: usd(out),
    })),
  }
}
