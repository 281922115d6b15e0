import { setTimeout as pause } from 'node:timers/promises'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { eachAlone } from '../../db/each-alone.ts'
import { newId, readClock } from '../../db/ids.ts'
import { ownCustomers, partOf, partsOf, type Part } from '../../db/parts.ts'
import { lastPeriod, monthsSince, type Period } from './period.ts'
import { holdRewardRates } from './reward-rates.ts'
import { rewardOf, SECONDS_OF_A_DAY, type Day } from './reward.ts'
import {
  CHANGED_STATEMENT_COLUMNS,
  insertStatementEvent,
  PRODUCT,
  REWARD_ASSET,
  STATEMENT_TYPE,
  type ChangedStatement,
} from './statement.ts'
import { audited } from '../../audit/audited.ts'
import { recordChanges } from '../../audit/audit.ts'
import { originOfLoop, type Origin } from '../../contract/actor.ts'

export interface Generated {
  customer_id: string
  ref_id: string
  total_amount: string
}

/** Progress: receives the total and returns a function that is called after each finished statement. */
export type OnStart = (count: number) => (() => void) | undefined

/**
 * Generates the statements of a period (API behaviour, Statements), for all customers that held the reward asset by its end,
 * or for one customer. A statement is INITIATED, then GENERATED, each in its own transaction. So the next run finishes a
 * statement after a crash. A GENERATED statement never changes. It goes through the parts of the database, because each has
 * the clock and the locks of its customers' movements. Returns the generated statements. Throws when the period has not
 * ended or no rate was in force in it; throws other failures after all other work is done.
 */
export async function generateStatements(
  db: Database,
  period: Period,
  customerId?: string,
  onStart: OnStart = () => undefined,
  origin: Origin = originOfLoop('statements'),
): Promise<Generated[]> {
  const asked = customerId === undefined ? partsOf(db) : [partOf(db, customerId)]
  const generated: Generated[] = []
  const failures: unknown[] = []
  for (const part of asked) {
    try {
      generated.push(...(await generateInPart(part, period, customerId, onStart, origin)))
    } catch (error) {
      if (asked.length === 1) throw error
      failures.push(error)
    }
  }
  const [first] = failures
  if (first instanceof TooEarly && failures.every((failure) => failure instanceof TooEarly)) throw first
  if (failures.length > 0)
    throw new AggregateError(
      failures,
      `statements of ${failures.length} parts of the database were not generated`,
    )
  return generated
}

/** The period has not ended or has no rate. All parts agree on that, unless their clocks differ. */
class TooEarly extends Error {}

async function generateInPart(
  part: Part,
  period: Period,
  customerId: string | undefined,
  onStart: OnStart,
  origin: Origin,
): Promise<Generated[]> {
  const { db } = part
  if ((await completeUntil(part)) < period.next) throw new TooEarly(`the period ${period.name} has not ended`)
  if (!(await hasRate(db, period)))
    throw new TooEarly(`no reward rate is in force in ${period.name}: bursar rewards rate set`)
  await waitForOpenPostings(db)
  const generated: Generated[] = []
  const customers = await customersWithout(db, period, customerId)
  const onDone = onStart(customers.length)
  await eachAlone(
    customers,
    (id) => `statement of customer ${id}`,
    async (id) => {
      try {
        await initiate(db, id, period)
        const made = await transaction(db, (tx) => generate(tx, id, period, origin))
        if (made !== undefined) generated.push(made)
      } finally {
        onDone?.()
      }
    },
    'statements were not generated',
  )
  return generated
}

/**
 * Generates the statements that the customers of a part of the database lack, oldest month first, unless the last ended
 * month equals `done`. So a worker that was down at the end of months, and a clock that jumped, lose none. Returns that
 * month's name and the statements.
 */
export async function generateEndedMonths(
  part: Part,
  done?: string,
): Promise<{ period: string; generated: Generated[] } | undefined> {
  const now = await completeUntil(part)
  const last = lastPeriod(now)
  if (last.name === done || !(await hasRate(part.db, last))) return undefined
  const { rows } = await ownCustomers(part.db).query<{ since: string | null }>(
    `select to_char(min(h.since), 'YYYY-MM') as since ${LACKING}`,
    [REWARD_ASSET, last.next],
  )
  const [since = last.next] = rows.flatMap((row) => row.since ?? []).sort()
  const generated: Generated[] = []
  await eachAlone(
    monthsSince(since, last),
    ({ name }) => `statements of ${name}`,
    async (month) => {
      const origin = originOfLoop('statements')
      generated.push(...(await generateInPart(part, month, undefined, () => undefined, origin)))
    },
    'months have no statements',
  )
  return { period: last.name, generated }
}

/**
 * In SQL: the customers that lack a statement of a month before `$2`, and `since`: the first month in which they held the
 * asset `$1` and a rate was in force.
 */
export const LACKING = `
    from (
      select b.customer_id, date_trunc('month', greatest(
               (select min(r.effective_from) from reward_rates r)::timestamptz,
               min((select min(e.created_at) from entries e
                    where e.customer_id = b.customer_id and e.profile_id = b.profile_id and e.asset = $1
                      and e.profile_id is not null)))) as since
      from balances b
      where b.asset = $1 and exists (select 1 from reward_rates r)
      group by b.customer_id
    ) h
    where (select count(*) from statements s
           where s.customer_id = h.customer_id and s.period_start >= h.since and s.period_start < $2
             and s.status <> 'STATEMENT_STATUS_INITIATED')
      < extract(year from age($2::timestamptz, h.since)) * 12 + extract(month from age($2::timestamptz, h.since))`

/** How far apart the clocks of the parts may be. `bursar doctor` warns long before. */
const SKEW_MAX = '1 minute'

/**
 * A moment before which no new movement can be dated: now, or a minute ago where there are several parts, because a
 * movement may come through another part and take its time from that part's clock.
 */
async function completeUntil({ name, db }: Part): Promise<string> {
  const { rows } = await db.query<{ until: string }>('select clock_timestamp() - $1::interval as until', [
    name === '' ? '0' : SKEW_MAX,
  ])
  return rows[0]!.until
}

async function hasRate(db: Database, { next }: Period): Promise<boolean> {
  const { rowCount } = await db.query('select 1 from reward_rates where effective_from < $1::date limit 1', [
    next.slice(0, 10),
  ])
  return rowCount === 1
}

const POLL_MS = 20
const POLLS_MAX = 1_500

/**
 * Waits until open movements have ended. A movement reads the clock after locking balances, and holds the lock until
 * it commits. Once the current lock holders are gone, every entry with an earlier time is visible. This wait blocks
 * no movement. Throws when a movement takes too long.
 */
async function waitForOpenPostings(db: Database): Promise<void> {
  const underWay = async (among: string[] | null) => {
    const { rows } = await db.query<{ transaction: string }>(
      `
      select distinct virtualtransaction as transaction
      from pg_locks
      -- A movement that came through another part of the database locks only pieces of the table.
      where locktype = 'relation' and relation::regclass::text ~ '^(public\\.)?balances(_[0-9]+)?$' and granted
        and database = (select oid from pg_database where datname = current_database())
        and mode in ('RowShareLock', 'RowExclusiveLock')
        and ($1::text[] is null or virtualtransaction = any ($1))`,
      [among],
    )
    return rows.map((row) => row.transaction)
  }
  let left = await underWay(null)
  for (let poll = 0; left.length > 0; poll++) {
    if (poll === POLLS_MAX) throw new Error('a movement has been under way for too long; try again')
    await pause(POLL_MS)
    left = await underWay(left)
  }
}

/** Finds the customers that held the asset by the period's end and have no generated statement for it yet. */
async function customersWithout(
  db: Database,
  { name, next }: Period,
  customerId: string | undefined,
): Promise<string[]> {
  const { rows } = await ownCustomers(db).query<{ customer_id: string }>(
    `
    select distinct b.customer_id
    from balances b
    where b.asset = $1
      and ($2::uuid is null or b.customer_id = $2)
      and not exists (
        select 1 from statements s
        where s.customer_id = b.customer_id and s.ref_id = concat_ws('-', $3::text, b.customer_id::text, $4::text)
          and s.status <> 'STATEMENT_STATUS_INITIATED'
      )
      and exists (
        select 1 from entries e
        where e.customer_id = b.customer_id and e.profile_id = b.profile_id and e.asset = $1
          and e.profile_id is not null and e.created_at < $5
      )
    order by b.customer_id`,
    [REWARD_ASSET, customerId, PRODUCT, name, next],
  )
  return rows.map((row) => row.customer_id)
}

export const refIdOf = (customerId: string, { name }: Period) => `${PRODUCT}-${customerId}-${name}`

/** Records that a statement is INITIATED, unless it exists. */
async function initiate(db: Database, customerId: string, period: Period): Promise<void> {
  await transaction(db, async (tx) => {
    const now = await readClock(tx)
    await tx.query(
      `
      insert into statements (customer_id, id, created_at, ref_id, type, product, status, asset, period_start, period_end)
      values ($1, $2, $3, $4, $5, $6, 'STATEMENT_STATUS_INITIATED', $7, $8, $9)
      on conflict on constraint statements_ref_id do nothing`,
      [
        customerId,
        newId(now),
        now.text,
        refIdOf(customerId, period),
        STATEMENT_TYPE,
        PRODUCT,
        REWARD_ASSET,
        period.start,
        period.end,
      ],
    )
  })
}

/** Computes an initiated statement; undefined when another worker has generated it. */
async function generate(
  tx: Transaction,
  customerId: string,
  period: Period,
  origin: Origin,
): Promise<Generated | undefined> {
  const ref_id = refIdOf(customerId, period)
  const { rowCount } = await tx.query(
    `
    select 1 from statements
    where customer_id = $1 and ref_id = $2 and status = 'STATEMENT_STATUS_INITIATED'
    for update`,
    [customerId, ref_id],
  )
  if (rowCount === 0) return undefined
  await holdRewardRates(tx)
  const now = await readClock(tx)
  const { total } = rewardOf(await selectDays(tx, customerId, period, now.text))
  const { rows } = await tx.query<ChangedStatement>(
    `
    update statements
    set status = 'STATEMENT_STATUS_GENERATED', generated_at = $3, total_amount_owed = $4, amount_paid = 0,
        reward_method = 'TIME_WEIGHTED'
    where customer_id = $1 and ref_id = $2
    returning ${CHANGED_STATEMENT_COLUMNS}`,
    [customerId, ref_id, now.text, total],
  )
  await insertStatementEvent(tx, now, 'statement.generated', rows[0]!)
  recordChanges(tx, customerId, now, [audited(origin, 'statement.generate', rows[0]!.id)])
  return { customer_id: customerId, ref_id, total_amount: total }
}

/**
 * Reads each day of a period: the balance of all profiles over the day, from the ledger's entries, and the rate in
 * force, as set by `asOf`. One look-up finds a profile's balance before the period. Each change in the period is then
 * weighted by the seconds of its day that it lasted. So the cost grows with the changes in the period, not with the
 * history before it.
 */
export async function selectDays(
  tx: Transaction,
  customerId: string,
  period: Pick<Period, 'start' | 'next'>,
  asOf: string,
): Promise<Day[]> {
  const { rows } = await tx.query<Day>(
    `
    with held as (
      select profile_id from balances where customer_id = $1 and asset = $2
    ), opening as (
      select coalesce(sum(last.balance_after), 0) as balance
      from held
      cross join lateral (
        select balance_after
        from entries
        where customer_id = $1 and profile_id = held.profile_id and asset = $2 and profile_id is not null
          and created_at < $3
        order by created_at desc, version desc
        limit 1
      ) last
    ), changes as (
      -- A PostgreSQL interval has microseconds, so the seconds of its day that a change counts for are exact.
      select at::date as day, sum(amount) as amount, sum(amount * extract(epoch from at::date + 1 - at)) as weighted
      from held
      cross join lateral (
        select created_at at time zone 'UTC' as at, amount
        from entries
        where customer_id = $1 and profile_id = held.profile_id and asset = $2 and profile_id is not null
          and created_at >= $3 and created_at < $4
        offset 0
      ) e
      group by 1
    ), days as (
      select generate_series($3::timestamptz at time zone 'UTC', ($4::timestamptz at time zone 'UTC') - interval '1 day',
                             '1 day')::date as day
    )
    select d.day::text,
           trim_scale(
             (opening.balance + coalesce(sum(c.amount) over (order by d.day) - coalesce(c.amount, 0), 0)) * ${SECONDS_OF_A_DAY}
             + coalesce(c.weighted, 0)
           )::text as balance_seconds,
           coalesce((
             select trim_scale(r.rate)::text
             from reward_rates r
             where r.effective_from <= d.day and r.set_at <= $5
             order by r.effective_from desc, r.set_at desc
             limit 1
           ), '0') as rate
    from days d
    cross join opening
    left join changes c on c.day = d.day
    order by d.day`,
    [customerId, REWARD_ASSET, period.start, period.next, asOf],
  )
  return rows
}
