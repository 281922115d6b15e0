import { PLATFORM_ID } from '../../db/ids.ts'
import type { Queryable } from '../../db/database.ts'
import { digestOf } from '../books/closing.ts'
import { SUMS } from '../books/sums.ts'

/** Closed days never change: the rules of each customer's sums, and of the digests of the days. */
export const CLOSED_DAY_RULES: Record<string, string> = {
  'every closed day has the sums of its entries': `
    select format('%s, %s %s: debit %s, credit %s, its entries say %s, %s', coalesce(k.day, e.day), coalesce(k.account, e.account),
                  coalesce(k.asset, e.asset), k.debit, k.credit, e.debit, e.credit) as detail
    from (select day, account, asset, debit, credit from day_sums where customer_id = $1) k
    full join (
      select day, account, asset, sum(debit) over days as debit, sum(credit) over days as credit
      from (
        select (created_at at time zone 'UTC')::date as day, account, asset, ${SUMS}
        from entries
        where customer_id = $1 and created_at < (select max(until) from closed_days where digest is not null)
        group by 1, 2, 3
      ) of_day
      window days as (partition by account, asset order by day)
    ) e on e.day = k.day and e.account = k.account and e.asset = k.asset
    where (k.debit, k.credit) is distinct from (e.debit, e.credit)`,
}

/** Finds closed days whose kept sums, digest and record in the audit log differ, and days that are missing between them. */
export async function changedDays(db: Queryable) {
  type Texts = Record<'day' | 'recorded', string> & { digest: string | null }
  const { rows } = await db.query<Texts & Record<'gap' | 'wrong_end', boolean | null>>(`
    select coalesce(c.day::text, r.day) as day, c.digest, coalesce(r.digests, 'none') as recorded,
           c.day - lag(c.day) over (order by c.day) > 1 as gap,
           c.until <> (c.day + 1)::timestamp at time zone 'UTC' as wrong_end
    from closed_days c
    full join (
      select subject_id as day, string_agg(changes #>> '{after,digest}', ' ') as digests
      from audit_log
      where customer_id = '${PLATFORM_ID}' and action = 'day.close'
      group by subject_id
    ) r on r.day = c.day::text
    order by 1`)
  const found: string[] = []
  for (const { day, digest, recorded, gap, wrong_end } of rows) {
    const kept = digest === null ? null : await digestOf(db, day)
    if (kept !== digest) found.push(`${day}: its sums have the digest ${kept}, closed with ${digest}`)
    const closedWith = digest ?? 'none'
    if (recorded !== closedWith)
      found.push(`${day}: closed with ${closedWith}, the audit log has ${recorded}`)
    if (wrong_end) found.push(`${day}: it ends at another time`)
    if (gap) found.push(`${day}: the day before it is not closed`)
  }
  const rule = 'every closed day is as it was closed'
  return found.map((detail) => ({ customer_id: PLATFORM_ID, rule, detail }))
}
