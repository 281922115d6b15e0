import type { Queryable } from '../../db/database.ts'
import { firstIdAt } from '../../db/ids.ts'
import { ok, orElse, warnings, type Finding } from '../../finding.ts'

const WEEK_MS = 7 * 86_400_000
/** Monday, 5 January 1970: weeks begin on Mondays, at midnight UTC. */
const FIRST_MONDAY_MS = 4 * 86_400_000

export interface PartitionStatus {
  table: string
  /** Whether there is no partition for this week or the next. */
  isBehind: boolean
  /** Rows in the default partition, whose week has no partition of its own; at most `STRAY_COUNTED_MAX`. */
  stray: number
}

/** Most rows of the default partition that are counted in each gap between partitions. */
const STRAY_COUNTED_MAX = 1_000

/** A table is partitioned by an id that begins with a time: the row's own, or the id of its event. */
const COUNTS: Readonly<Record<string, string>> = {
  events: `select count(*)::integer as count from (select 1 from events where id >= $1 and id < $2 limit $3) r`,
  webhook_attempts: `select count(*)::integer as count from (select 1 from webhook_attempts where id >= $1 and id < $2 limit $3) r`,
  webhook_deliveries: `select count(*)::integer as count from (select 1 from webhook_deliveries where event_id >= $1 and event_id < $2 limit $3) r`,
}

/**
 * Reads which weeks have partitions, and counts the rows of all other times: only the default partition can have those, so
 * PostgreSQL reads no other.
 */
export async function partitionStatus(db: Queryable): Promise<PartitionStatus[]> {
  const { rows } = await db.query<{ parent: string; week: string; now_ms: string }>(`
    select p.relname as parent, to_char(to_date(right(c.relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD') as week,
           floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now_ms
    from pg_class p
    join pg_inherits i on i.inhparent = p.oid
    join pg_class c on c.oid = i.inhrelid
    where p.relnamespace = 'public'::regnamespace and p.relkind = 'p' and c.relname ~ '_[0-9]{8}$'
    order by 1, 2`)
  const found: PartitionStatus[] = []
  for (const [table, count] of Object.entries(COUNTS)) {
    const weeks = rows.filter(({ parent }) => parent === table).map(({ week }) => Date.parse(week))
    const nowMs = rows.length === 0 ? Date.now() : Number(rows[0]!.now_ms)
    const thisWeek = nowMs - ((nowMs - FIRST_MONDAY_MS) % WEEK_MS)
    let stray = 0
    for (const [from, to] of gapsBetween(weeks)) {
      const { rows: counted } = await db.query<{ count: number }>(count, [
        from,
        to,
        STRAY_COUNTED_MAX - stray,
      ])
      stray += counted[0]!.count
    }
    const isBehind = [thisWeek, thisWeek + WEEK_MS].some((week) => !weeks.includes(week))
    found.push({ table, isBehind, stray })
  }
  return found
}

const LAST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** Returns the ranges of ids, from the first to the last possible one, that no weekly partition covers. */
function gapsBetween(weeks: readonly number[]): [from: string, to: string][] {
  const idAt = (ms: number) => firstIdAt(ms * 1000)
  const gaps: [string, string][] = []
  let from = idAt(0)
  for (const week of weeks) {
    if (idAt(week) !== from) gaps.push([from, idAt(week)])
    from = idAt(week + WEEK_MS)
  }
  return [...gaps, [from, LAST_ID]]
}

const MAKES_PARTITIONS =
  'run bursar serve with BURSAR_WORKER=true, and look for "weekly partitions" in its log (docs/guides/retention.md)'

/**
 * Whether events, deliveries and attempts have the partitions of this week and the next. Rows of past weeks, such as those
 * of the demo's history, stay in the default partition until they are deleted by their age. Nobody has to do anything.
 */
export async function checkPartitions(db: Queryable): Promise<Finding[]> {
  const found = (await partitionStatus(db)).flatMap(({ table, isBehind, stray }) => [
    ...warnings([isBehind, `${table}: no partition for this week or the next`, MAKES_PARTITIONS]),
    ...(stray === 0
      ? []
      : [
          ok(
            `${table}: rows of weeks without a partition: ${stray}${stray >= STRAY_COUNTED_MAX ? ' or more' : ''}; they are deleted by their age`,
          ),
        ]),
  ])
  return orElse(found, 'events, deliveries and attempts have their weekly partitions')
}
