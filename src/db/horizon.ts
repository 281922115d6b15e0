import { coordinatorOf, inOrder, READER, WRITER, type Queryable } from './database.ts'
import { momentAt, type Moment } from './ids.ts'

/** The horizon cannot be read, so that an ascending list could miss records. The message says what an operator must do. */
export class HorizonUnknown extends Error {}

/** A moment below which no record can appear any more. */
export interface Horizon extends Moment {
  /** When the horizon was read. The horizon is the same moment, unless a transaction is under way. */
  readAt: Moment
}

/** Other programs that keep long transactions open. Such a transaction has written nothing while it has no transaction id. */
const OTHER_READERS = ['pg_dump', 'pg_basebackup']

/**
 * Reads the horizon: a moment such that every record with an earlier time is committed, or never will be. An ascending list
 * that ends there misses nothing, because nothing can appear below it later. While a transaction is under way, the horizon
 * stays at its beginning. Read the horizon in a statement BEFORE the statement that reads the records: the snapshot of one
 * statement is older than its view of the sessions, so a commit between the two would be missed.
 *
 * Why it holds. A record's time is `clock_timestamp()` read in the transaction that inserts it (`readClock`). A session
 * publishes the beginning of its transaction in pg_stat_activity before the transaction's first statement runs, and
 * withdraws it after its commit is visible. The horizon is the earliest of these beginnings, or `now()`: the beginning of
 * the reader's own transaction, before the reader looks at any session. At the moment when the reader looks at a session,
 * there are three cases.
 * - Its transaction is published: the records have times from its beginning on, which the horizon does not pass.
 * - Its transaction has ended: the records are visible to every later statement.
 * - Its transaction will begin, or is not published yet: it reads the clock later, after the reader's `now()`. PostgreSQL
 * collects the sessions once in a transaction and then repeats them; `now()` is before that, too.
 *
 * The sessions of Bursar's read-only transactions are left out by their name. Those of pg_dump are left out by its name, as
 * long as they have no transaction id. The proof needs one clock that is not set back: operators must slew it, not step it.
 *
 * On a cluster, a customer's records are written through its node or through the coordinator, each with its own clock. So
 * the horizon is the earlier one of both, each read on its own clock: a difference of the clocks only delays the reader.
 *
 * Throws `HorizonUnknown` where the beginnings cannot be seen: `track_activities` is off, the server is a standby, or
 * another role that may insert records runs Bursar and this role may not see its sessions (`pg_read_all_stats`).
 */
export async function readHorizon(db: Queryable): Promise<Horizon> {
  const coordinator = coordinatorOf(db)
  if (coordinator === undefined) return horizonOfNode(db)
  const [own, others] = await inOrder([horizonOfNode(db), horizonOfNode(coordinator)])
  const earlier = own.micros < others.micros ? own : others
  return { ...earlier, readAt: own.readAt.micros < others.readAt.micros ? own.readAt : others.readAt }
}

/** Whether a session may have a transaction under way that inserts records. */
const MAY_INSERT = `backend_type = 'client backend' and application_name <> $1
               and not (application_name = any ($3::text[]) and backend_xid is null)`

/**
 * Names the transactions under way, on the node and on the coordinator, by their sessions and beginnings. Once none of them is
 * under way any more, everything has ended that began before the call, whatever the clock did. Throws `HorizonUnknown`.
 */
export async function readUnderWay(db: Queryable): Promise<string[]> {
  const nodes = [db, coordinatorOf(db)].filter((node) => node !== undefined)
  const found = await inOrder(
    nodes.map((node, index) =>
      selectSessions<{ names: string[] | null }>(node, {
        name: 'read transactions under way',
        columns: `array_agg($4 || pid || ' ' || xact_start) filter (where xact_start is not null and pid <> pg_backend_pid()
               and ${MAY_INSERT}) as names`,
        values: [`${index} `],
      }),
    ),
  )
  return found.flatMap(({ names }) => names ?? [])
}

async function horizonOfNode(db: Queryable): Promise<Horizon> {
  const { horizon, now } = await selectSessions<{ horizon: string; now: string }>(db, {
    name: 'read horizon',
    columns: `least(now(), min(xact_start) filter (where ${MAY_INSERT})) as horizon, now() as now`,
  })
  return { ...momentAt(horizon), readAt: momentAt(now) }
}

/** Selects from the sessions of this database. Throws `HorizonUnknown` where it cannot see all of them. */
async function selectSessions<Row extends object>(
  db: Queryable,
  { name, columns, values = [] }: { name: string; columns: string; values?: string[] },
): Promise<Row> {
  const { rows } = await db.query<
    Row & {
      untracked: boolean | null
      hidden: string | null
      standby: boolean
    }
  >({
    name,
    text: `
      select ${columns},
             bool_or(state = 'disabled') as untracked,
             -- Sessions that a role may not see have no backend_start.
             min(usename) filter (where backend_start is null and application_name = $2
                                    and has_table_privilege(usesysid, to_regclass('transfers'), 'insert')) as hidden,
             pg_is_in_recovery() as standby
      from pg_stat_activity
      where datname = current_database()`,
    values: [READER, WRITER, OTHER_READERS, ...values],
  })
  const { untracked, hidden, standby } = rows[0]!
  if (standby)
    throw new HorizonUnknown('the database is a standby, which does not know the transactions under way')
  if (untracked === true) throw new HorizonUnknown('track_activities is off in PostgreSQL: it must be on')
  if (hidden !== null)
    throw new HorizonUnknown(
      `the database role ${hidden} runs Bursar too, and its transactions cannot be seen: use one role, or grant pg_read_all_stats`,
    )
  return rows[0]!
}
