import type { Queryable } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { DIGEST } from '../books/closing.ts'
import { SUMS, WHOLE_LEDGER } from '../books/book.ts'

const RULE = 'every closed day has the sums of its entries'
const wrongSums = (isOwn: string) => `
    with k as materialized (select day, account, asset, debit, credit from day_sums where customer_id = $1),
    e as materialized (
      select day, account, asset, sum(debit) over days as debit, sum(credit) over days as credit
      from (
        select (created_at at time zone 'UTC')::date as day, account, asset, ${SUMS}
        from entries
        where ${isOwn} and created_at < (select max(until) from closed_days where digest is not null)
        group by 1, 2, 3
      ) of_day
      window days as (partition by account, asset order by day)
    )
    select format('%s, %s %s: debit %s, credit %s, its entries say %s, %s', day, account, asset,
                  k.debit, k.credit, e.debit, e.credit) as detail
    from k full join e using (day, account, asset)
    where (k.debit, k.credit) is distinct from (e.debit, e.credit)`

/** Closed days never change: the rules of each customer's sums. */
export const CLOSED_DAY_RULES: Record<string, string> = { [RULE]: wrongSums('customer_id = $1') }

const CHANGED_DAYS = `
  select '${PLATFORM_ID}' as customer_id, 'every closed day is as it was closed' as rule,
         format('%s: closed with %s until %s, its sums have %s, the audit log has %s, the closed day before it is %s',
                coalesce(c.day::text, r.day), coalesce(c.digest, 'none'), c.until, k.digest, r.digest, c.before) as detail
  from (select day, digest, until, lag(day) over (order by day) as before from closed_days) c
  left join (select day, ${DIGEST} as digest from day_sums group by day) k using (day)
  full join (
    select subject_id as day, string_agg(changes #>> '{after,digest}', ' ') as digest
    from audit_log
    where customer_id = '${PLATFORM_ID}' and action = 'day.close'
    group by subject_id
  ) r on r.day = c.day::text
  where r.digest is distinct from c.digest or c.digest <> coalesce(k.digest, encode(sha256(''), 'hex'))
     or c.until <> (c.day + 1)::timestamp at time zone 'UTC' or c.day - c.before > 1
  union all
  select '${PLATFORM_ID}', '${RULE}', detail from (${wrongSums('true')}) of_whole_ledger
  order by detail`

/** Finds days that changed since they were closed, days that are missing between them, and wrong sums of the whole ledger. */
export async function changedDays(db: Queryable) {
  type Found = Record<'customer_id' | 'rule' | 'detail', string>
  return (await db.query<Found>(CHANGED_DAYS, [WHOLE_LEDGER])).rows
}
