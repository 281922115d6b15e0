import {
  lacksPrivilege,
  SANDBOX_CLOCK as SCHEMA,
  transaction,
  withOwner,
  type Database,
  type Transaction,
} from './database.ts'
import { isDistributed } from './distribution.ts'
import { momentAt, type Moment } from './ids.ts'

/**
 * The clock of a sandbox, which tests move forward (API behaviour, Sandbox). All times of records come from the database's
 * `clock_timestamp()`. The sessions of a sandbox look for functions in the schema `sandbox_clock` first. Until the clock is
 * moved, that schema does not exist, and in live mode no session looks there: the clock costs neither of them anything
 * (docs/decisions/running-it.md, "The clock of a sandbox").
 */

/** How long the change waits for transactions that have read the clock, in short turns: whoever reads the clock waits meanwhile. */
const WAIT_MS_MAX = 15_000
const LOCK_MS_MAX = 250
const LOCK_NOT_AVAILABLE = '55P03'
/** Another request makes the schema at the same moment: a duplicate schema, or its row in the catalogue. */
const MADE_MEANWHILE = ['42P06', '23505']
const YEARS_MAX = 10

/** Why the clock is not moved. The message says what to do. */
export class ClockNotMoved extends Error {}
/** Transactions that have read the clock did not end in time. */
export class ClockInUse extends Error {}

/**
 * Moves the clock of a sandbox forward by an ISO 8601 duration, as PostgreSQL adds it: `P1M` leads to the same day of the
 * next month. `ownerUrl` is the address for the role that owns the schema; without it, the service's role must be that role.
 * Returns the new time. Throws a RangeError for a time that is too far ahead, `ClockNotMoved` and `ClockInUse`.
 *
 * The transaction locks the table that every reading of the clock reads. So transactions that know the earlier time have
 * ended, and later ones wait for the new time: an ascending list never ends above a record that is still to come
 * (horizon.ts).
 */
export async function advanceClock(
  service: Database,
  ownerUrl: string | undefined,
  duration: string,
): Promise<Moment> {
  if (await isDistributed(service))
    throw new ClockNotMoved('the clock of a distributed database is not moved')
  return ownerUrl === undefined
    ? advance(service, duration)
    : withOwner(ownerUrl, (owner) => advance(owner, duration))
}

async function advance(owner: Database, duration: string): Promise<Moment> {
  // Plans of before are made again, because the schema changes the search path.
  await transaction(owner, async (tx) => {
    const { rows } = await tx.query<{ there: boolean }>(
      `select to_regclass('${SCHEMA}.advances') is not null as there`,
    )
    if (!rows[0]!.there) await tx.query(SETUP)
  }).catch((error: unknown) => {
    if (MADE_MEANWHILE.includes((error as { code?: string }).code ?? '')) return
    if (!lacksPrivilege(error)) throw error
    throw new ClockNotMoved(
      `start the service with BURSAR_MIGRATIONS_DATABASE_URL, the role that owns the database: it makes the schema ${SCHEMA}`,
    )
  })
  for (const until = performance.now() + WAIT_MS_MAX; ;) {
    const now = await transaction(owner, (tx) => advanceIn(tx, duration))
    if (now !== undefined) return now
    if (performance.now() > until) throw new ClockInUse('transactions under way keep the clock')
  }
}

/** Moves the clock in this transaction; undefined while transactions that have read the clock are under way. */
async function advanceIn(tx: Transaction, duration: string): Promise<Moment | undefined> {
  await tx.query(`set local lock_timeout = ${LOCK_MS_MAX}; savepoint before`)
  try {
    await tx.query(`lock table ${SCHEMA}.advances in access exclusive mode`)
  } catch (error) {
    if ((error as { code?: string }).code !== LOCK_NOT_AVAILABLE) throw error
    await tx.query('rollback to before')
    return undefined
  }
  const { rows } = await tx.query<{ now: string; too_far: boolean }>(
    `
      with real as (select pg_catalog.clock_timestamp() as now),
      moved as (select now as since, ${SCHEMA}.moved(now) + $1::interval as now from real),
      kept as (
        insert into ${SCHEMA}.advances (since, total)
        select since, (extract(epoch from now - since) * 1000000)::bigint * interval '1 microsecond' from moved
      )
      select now, now > since + make_interval(years => ${YEARS_MAX}) as too_far from moved`,
    [duration],
  )
  const { now, too_far } = rows[0]!
  if (too_far) throw new RangeError(`the clock would be more than ${YEARS_MAX} years ahead`)
  return momentAt(now)
}

/** SQL that forgets how far the clock was moved. For the owner of the schema. */
export const DROP_CLOCK = `drop schema if exists ${SCHEMA} cascade`

const SETUP = `
  create schema ${SCHEMA};
  create table ${SCHEMA}.advances (
    -- By the real clock.
    since timestamptz primary key,
    total interval not null
  );
  -- The time of the moved clock at a moment of the real one.
  create function ${SCHEMA}.moved(at timestamptz) returns timestamptz language sql stable as $$
    select at + coalesce((select total from ${SCHEMA}.advances where since <= at order by since desc limit 1), '0')
  $$;
  create function ${SCHEMA}.clock_timestamp() returns timestamptz language sql volatile as $$
    select pg_catalog.clock_timestamp()
           + coalesce((select total from ${SCHEMA}.advances order by since desc limit 1), '0')
  $$;
  create function ${SCHEMA}.now() returns timestamptz language sql stable as $$
    select ${SCHEMA}.moved(pg_catalog.now())
  $$;
  -- The horizon compares the beginnings of transactions with the times of records.
  create view ${SCHEMA}.pg_stat_activity as
    select datname, pid, usesysid, usename, application_name, backend_type, backend_start, backend_xid, state, query,
           ${SCHEMA}.moved(xact_start) as xact_start
    from pg_catalog.pg_stat_activity;
  grant usage on schema ${SCHEMA} to public;
  grant select on all tables in schema ${SCHEMA} to public;
  alter function public.keep_partitions(text, integer) set search_path = ${SCHEMA}, pg_catalog, public, pg_temp;`
