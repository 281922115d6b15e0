import type { Logger } from 'pino'
import { originOfLoop } from '../../contract/actor.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { transaction, type Database } from '../../db/database.ts'
import { readUnderWay } from '../../db/horizon.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { partsOf } from '../../db/parts.ts'
import { SUMS, WHOLE_LEDGER } from './book.ts'

/** A day ends so long after its midnight: a clock that is a little ahead and set back must not date entries at a later time. */
const ENDS_AFTER = '5 minutes'
/** Days of one round: a ledger without a worker for years is closed within minutes, and other work goes on between. */
const DAYS_MAX = 100

const LOOP = originOfLoop('closing')

/**
 * Returns the work of a loop, which closes the days of the ledger, in UTC, one after the other, and returns those of a round.
 * First a day is said to end, and from then on the clock of the ledger's transactions is never before its end, wherever it is set
 * (`LedgerTransaction.open`). Once all transactions have ended that may not have seen that, the sums of the day are final: they are
 * kept, and their SHA-256 is written into the audit log. A process that dies leaves either step to the next. In live mode alone:
 * sandboxes invent earlier history. `now`: the clock of the process, in milliseconds. A round throws `HorizonUnknown`.
 */
export function closingOf(db: Database, log?: Pick<Logger, 'info'>, now = () => Date.now()) {
  // The transactions that may not have seen the day's end, from round to round.
  let waiting = { day: '', sessions: [] as string[] }
  return async () => {
    const closed: { day: string; digest: string }[] = []
    while (closed.length < DAYS_MAX) {
      const day = await endedDay(db, now())
      if (day === undefined) break
      const underWay = await sessionsUnderWay(db)
      if (waiting.day !== day) waiting = { day, sessions: underWay }
      if (waiting.sessions.some((session) => underWay.includes(session))) break
      const digest = await keepSums(db, day)
      if (digest === undefined) continue
      closed.push({ day, digest })
      log?.info({ day, digest }, 'closed a day of the ledger')
    }
    return closed
  }
}

async function sessionsUnderWay(db: Database): Promise<string[]> {
  const ofParts = partsOf(db).map(async ({ name, db: part }) =>
    (await readUnderWay(part)).map((session) => name + session),
  )
  return (await Promise.all(ofParts)).flat()
}

/**
 * The day to close. Says that the day after the last closed one has ended, where it has by the clocks of the database and of the
 * process: nothing takes back what a clock that is years ahead has closed. The first day is that of the first entry.
 */
async function endedDay(db: Database, processNow: number): Promise<string | undefined> {
  const { rows } = await db.query<{ day: string }>(
    `
    select day::text
    from (
      select coalesce((select day from closed_days where digest is null), (select max(day) + 1 from closed_days),
                      (select min(created_at) at time zone 'UTC' from entries)::date) as day,
             least(clock_timestamp(), to_timestamp($1::float8 / 1000)) as now
    ) next
    where (day + 1)::timestamp at time zone 'UTC' <= now - interval '${ENDS_AFTER}'`,
    [processNow],
  )
  for (const { day } of rows)
    await db.query(
      `insert into closed_days (day, until) values ($1, ($1::date + 1)::timestamp at time zone 'UTC') on conflict do nothing`,
      [day],
    )
  return rows[0]?.day
}

/** Keeps the sums of a day, and returns their digest. Undefined where another process has. */
async function keepSums(db: Database, day: string): Promise<string | undefined> {
  return transaction(db, async (tx) => {
    const open = await tx.query(LOCK, [day])
    if (open.rowCount === 0) return undefined
    for (const customer of ['customer_id', `'${WHOLE_LEDGER}'::uuid`])
      await tx.query(insertSums(customer), [day])
    const sums = await tx.query<{ digest: string }>(SELECT_DIGEST, [day])
    const { digest } = sums.rows[0]!
    await tx.query(CLOSE, [day, digest])
    await recordNow(tx, PLATFORM_ID, audited(LOOP, 'day.close', day, { after: { digest } }))
    return digest
  })
}

const LOCK = 'select 1 from closed_days where day = $1 and digest is null for update'
const insertSums = (customer: string) => `
    insert into day_sums (customer_id, day, account, asset, debit, credit)
    select e.customer_id, $1::date, e.account, e.asset, e.debit + coalesce(b.debit, 0), e.credit + coalesce(b.credit, 0)
    from (
      select ${customer} as customer_id, account, asset, ${SUMS}
      from entries
      where created_at >= coalesce((select until from closed_days where day = $1::date - 1), '-infinity')
        and created_at < (select until from closed_days where day = $1)
      group by 1, account, asset
    ) e
    left join (
      select distinct on (customer_id, account, asset) customer_id, account, asset, debit, credit
      from day_sums
      where day < $1
      order by customer_id, account, asset, day desc
    ) b on b.customer_id = e.customer_id and b.account = e.account and b.asset = e.asset`

/** SHA-256 of a day's rows of customers in `day_sums`, a line each, in hex (docs/reference/audit-chain.md). */
export const DIGEST = `
    encode(sha256(convert_to(coalesce(string_agg(
      concat_ws(' ', customer_id, account, asset, trim_scale(debit), trim_scale(credit)) || e'\\n', ''
      order by customer_id, account collate "C", asset collate "C") filter (where customer_id <> '${WHOLE_LEDGER}'), ''), 'UTF8')), 'hex')`

const SELECT_DIGEST = `select ${DIGEST} as digest from day_sums where day = $1`
const CLOSE = 'update closed_days set digest = $2, closed_at = (select clock_timestamp()) where day = $1'
