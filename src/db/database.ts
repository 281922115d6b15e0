import { strict as assert } from 'node:assert'
import type { Socket } from 'node:net'
import pg from 'pg'
import { CustomerPool, poolOf } from './customer-pool.ts'

/** The pool: operations use it for reads and single statements. */
export type Database = pg.Pool
/** An open transaction. Functions that move money take it first and have no access to the pool. */
export interface Transaction extends pg.PoolClient {
  /** The writes that the transaction sends with its commit; undefined where `begin` did not begin it, and once they are sent. */
  atCommit?: LastWrite[] | undefined
  /** Whether the commit was sent, or none began. Until the pool lends the connection again, it then takes nothing but a rollback. */
  isEnded?: boolean
  /** Called after a commit that sent such writes. */
  onChange?: (() => void) | undefined
}
/**
 * A write that a transaction sends together with its commit. Rows that many transactions lock are written there. Such a row is
 * locked after all other rows, which avoids deadlocks, and only while the commit runs.
 */
export interface LastWrite {
  send(tx: Transaction): Promise<unknown>
}
export type Queryable = Pick<pg.Pool, 'query'>

const TIMESTAMPTZ = 1184

/**
 * Converts PostgreSQL's `2026-11-21 06:46:26.1+00` to RFC 3339 with microseconds. No `Date`: it has only
 * milliseconds.
 */
function timestampOnTheWire(text: string): string {
  const [, day, time, fraction = ''] = /^(\S+) (\d\d:\d\d:\d\d)(?:\.(\d+))?\+00$/.exec(text) ?? []
  if (day === undefined) throw new Error(`unexpected timestamp from PostgreSQL: ${text}`)
  return `${day}T${time}.${fraction.padEnd(6, '0')}Z`
}

const types: pg.CustomTypesConfig = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    oid === TIMESTAMPTZ ? timestampOnTheWire : (pg.types.getTypeParser(oid, format) as () => unknown),
}

/** How long a pool's statements may take, and how long its transactions may be idle. */
export interface Limits {
  statementMs?: number
  idleInTransactionMs: number
}

/** The schema of a sandbox's moved clock (sandbox-clock.ts). */
export const SANDBOX_CLOCK = 'sandbox_clock'

const limitsOf = (limits: Limits | undefined) =>
  limits === undefined
    ? []
    : [
        `set statement_timeout = ${limits.statementMs ?? 0}`,
        `set idle_in_transaction_session_timeout = ${limits.idleInTransactionMs}`,
      ]

export const CONNECTION_MS_MAX = 10_000
/** How long a connection may be silent before TCP probes the other machine. */
const KEEP_ALIVE_MS = 10_000

/**
 * With these limits, the server ends the session of a vanished machine half a minute after its last statement, and frees its
 * locks. Otherwise an open transaction of the worker would keep the locks for 15 minutes.
 */
export const TCP_LIMITS =
  'set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3; set tcp_user_timeout = 25000'

/**
 * Opens a pool. Timestamps are read as RFC 3339 text with microseconds, `numeric` and `bigint` as text.
 *
 * Sequential scans are off: a plan made while a table was empty would scan for as long as the connection lives (measured: 83 ms
 * instead of 1). Every query here has its index. JIT compilation is off too: before PostgreSQL 18, an unavoidable sequential scan
 * then makes each plan look worth compiling (measured on PostgreSQL 15: a property test of the ledger takes 59 s instead of 21).
 */
export function openDatabase(
  url: string,
  options: {
    max: number
    onError: (error: Error) => void
    limits?: Limits
    applicationName?: string
    /** Reads the clock of a sandbox, which tests move. */
    sandbox?: boolean
    /** Makes the sockets of the connections, for `ServerCheck` to end. */
    socket?: (() => Socket) | undefined
    /** Called after each commit that recorded a change. */
    onChange?: (() => void) | undefined
  },
): Database {
  let citus: Promise<boolean> | undefined
  // Not as options of the connection, which poolers refuse.
  const settings = [
    `set TimeZone = 'UTC'; set DateStyle = 'ISO'; set enable_seqscan = off; set jit = off`,
    TCP_LIMITS,
    ...limitsOf(options.limits),
    ...(options.sandbox ? [`set search_path = ${SANDBOX_CLOCK}, pg_catalog, public`] : []),
  ].join('; ')
  const pool = new pg.Pool({
    connectionString: url,
    max: options.max,
    pipeline: true,
    types,
    application_name: options.applicationName ?? WRITER,
    connectionTimeoutMillis: CONNECTION_MS_MAX,
    // A standby that took over a server's address answers a TCP probe with a reset. While a statement runs, only probes are sent.
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    ...(options.socket && { stream: options.socket }),
    verify: (client, done) => {
      beginSession(client, settings)
        .then(() => (citus ??= hasCitus(client)))
        .then((has) => (has ? beginCitusSession(client) : undefined))
        .then(
          () => done(),
          (error: Error) => {
            citus = undefined
            done(error)
          },
        )
    },
  })
  pool.on('error', options.onError)
  // While a connection is in use, the pool does not listen for its errors. Its statements fail, which is how we learn
  // of the loss. Without a listener, the event would end the process.
  pool.on('connect', (client: Transaction) => {
    client.on('error', () => undefined)
    client.onChange = options.onChange
    client.query = ((...args: Parameters<typeof client.query>) => {
      assert(client.isEnded !== true || args[0] === 'rollback', 'no statement may follow the commit')
      return pg.Client.prototype.query.apply(client, args)
    }) as typeof client.query
  })
  pool.on('acquire', (client: Transaction) => void (client.isEnded = false))
  return pool
}

/** Works in a session of the role that owns the schema, at this address. */
export async function withOwner<T>(url: string, work: (owner: Database) => Promise<T>): Promise<T> {
  const owner = openDatabase(url, { max: 1, onError: () => undefined, applicationName: OWNER })
  try {
    return await work(owner)
  } finally {
    await owner.end()
  }
}

const ownSessions = new Set<number>()

/** The sessions of this process, as PostgreSQL numbers them (`pg_stat_activity.pid`). */
export const sessionsOfProcess = (): number[] => [...ownSessions]

/** Sets a new session up, which is one of this process until it ends. */
export async function beginSession(client: pg.ClientBase, settings: string): Promise<void> {
  const results: unknown = await client.query(`${settings}; select pg_backend_pid() as pid`)
  const { pid } = (results as pg.QueryResult<{ pid: number }>[]).at(-1)!.rows[0]!
  ownSessions.add(pid)
  client.once('end', () => ownSessions.delete(pid))
}

const coordinators = new WeakMap<Queryable, Database>()

/** Records that a node's new pool, and its sessions, belong to this coordinator's cluster. */
export function setCoordinator(node: Database, coordinator: Database): void {
  coordinators.set(node, coordinator)
  node.on('connect', (session) => void coordinators.set(session, coordinator))
}

/** The pool of the coordinator, for a node's pool or session; undefined for the coordinator's own and for a plain database. */
export const coordinatorOf = (db: Queryable): Database | undefined => coordinators.get(poolOf(db))

/**
 * Where the records are that belong to no customer, such as prices and networks, and where a transaction may span customers: `db`
 * itself or, on a cluster, the coordinator. A transaction on `db` does not contain what is done there.
 */
export function forAll<Db extends Queryable>(db: Db): Db | Database {
  const coordinator = coordinatorOf(db)
  if (coordinator === undefined) return db
  return db instanceof CustomerPool ? db.partOf(coordinator) : coordinator
}

const citusSessions = new WeakSet<object>()

/** Asks whether the database has Citus. A pool asks with its first session, before it hands that session out. */
export async function hasCitus(db: Queryable): Promise<boolean> {
  const { rowCount } = await db.query(`select 1 from pg_extension where extname = 'citus'`)
  return rowCount === 1
}

/**
 * Makes the session plan every statement when it runs. Citus 13.2 adds the shard's plan to a generic plan at each run on the
 * shard's own node (measured: 24 to 44 kB each, 40 MB a second for batches of 8). A statement to all nodes waits five seconds,
 * not thirty, for a connection to a node that does not answer.
 */
async function beginCitusSession(session: Transaction): Promise<void> {
  citusSessions.add(session)
  await session.query('set plan_cache_mode = force_custom_plan; set citus.node_connection_timeout = 5000')
}

/**
 * Whether this session's database is one of a Citus cluster. Its planner refuses some statements that are the best ones on a
 * plain PostgreSQL (docs/decisions/distribution.md).
 */
export const onCitus = (tx: Transaction): boolean => citusSessions.has(tx)

/** Plans the statements of this transaction for their values, or once for all. On Citus each is planned when it runs. */
export async function planWith(tx: Transaction, plan: 'custom' | 'generic'): Promise<void> {
  if (!onCitus(tx)) await tx.query(`set local plan_cache_mode = force_${plan}_plan`)
}

/**
 * SQL that fails its statement, and with it the transaction, unless the condition holds: the SQL divides by zero. It is for
 * statements that the commit follows at once, when no answer can be checked in between.
 */
export const mustHold = (condition: string): string => `1 / (${condition})::int`

/** The name by which PostgreSQL knows the sessions of Bursar's programs. */
export const WRITER = 'bursar'
/** The sessions' name during a read-only transaction, which holds up no list (horizon.ts). */
export const READER = 'bursar reader'
/** The name of the sessions that ask whether a server answers. */
export const CHECKER = 'bursar server check'
/** The name of sessions of the schema's owner, which insert no record that a list shows. */
export const OWNER = 'bursar owner'

/** Runs `work` in a transaction: commits its result, or rolls back when it throws. */
export async function transaction<T>(
  db: Database,
  work: (tx: Transaction) => Promise<T>,
  mode: '' | 'isolation level repeatable read read only' = '',
): Promise<T> {
  const tx: Transaction = await db.connect()
  let broken: Error | undefined
  try {
    // Behind a begin that fails, each statement would commit by itself.
    await begin(tx, `begin ${mode}${mode && `; set local application_name = '${READER}'`}`)
    const result = await work(tx)
    await commit(tx)
    return result
  } catch (error) {
    // A connection that cannot roll back is in an unknown state, so the pool discards it.
    await tx.query('rollback').catch((failure: Error) => (broken = failure))
    throw error
  } finally {
    tx.atCommit = undefined
    tx.release(broken)
  }
}

/**
 * Reads from all nodes, in a transaction that must go on when a node is unreachable. Then it returns undefined, and rolls the
 * transaction back to its state before the read. Use it for hints only, never for checks.
 */
export async function ifAllAnswer<T>(tx: Transaction, read: () => Promise<T>): Promise<T | undefined> {
  if (!onCitus(tx)) return read()
  await tx.query('savepoint all_nodes')
  try {
    const result = await read()
    await tx.query('release savepoint all_nodes')
    return result
  } catch (error) {
    if (!connectionLost(error)) throw error
    await tx.query('rollback to savepoint all_nodes')
    return undefined
  }
}

// The newest placement of a shard when a transaction of a cluster begins: splits and moves of shards make newer ones. A setting
// keeps it, so that the later check has no parameters and is planned once. Planning is nearly all that the check costs.
const PLACEMENT_SQL = `
  select set_config('bursar.placement', coalesce(max(placementid), 0)::text, true) from pg_dist_placement`

// All tables of customers are split and moved together. Placements that this transaction made itself do not count.
const SAME_PLACES_SQL = `
  select ${mustHold('count(*) = 0')}
  from pg_dist_placement p
  join pg_dist_shard s on s.shardid = p.shardid
  where p.placementid > current_setting('bursar.placement')::bigint and s.logicalrelid = to_regclass('public.customers')
    and p.xmin is distinct from pg_current_xact_id_if_assigned()::xid`

/**
 * Begins a transaction with this statement. The transaction may collect last writes; those of the connection's earlier
 * transaction are gone. `commit` ends it.
 */
export async function begin(tx: Transaction, statement: string): Promise<void> {
  tx.atCommit = []
  tx.isEnded = false
  const begun = tx.query(statement)
  begun.catch(() => (tx.isEnded = true))
  if (!onCitus(tx)) return void (await begun)
  await inOrder([begun, tx.query({ name: 'newest placement', text: PLACEMENT_SQL })])
}

/**
 * Begins a transaction whose named statements are planned once for each connection, because each has one sensible plan. Those
 * without a name are planned for the tables' current size. On a distributed database all are: a generic plan has no shard.
 */
export const beginPlanned = (tx: Transaction, settings = ''): Promise<void> =>
  begin(tx, onCitus(tx) ? 'begin' : `begin; set local plan_cache_mode = force_generic_plan${settings}`)

/**
 * Shards were split or moved while a transaction was open. Its statements for one customer may have gone to different shards: one
 * that waited for a split writes to the old shard, which is dropped. So the transaction is rolled back.
 */
class PlacesChanged extends Error {
  readonly code = SERIALIZATION_FAILURE
  constructor() {
    super('the places of customers changed while the transaction was open; nothing was changed')
  }
}

/** Fails the transaction if shards were split or moved since it began. Its own writes make later splits wait. */
async function requirePlaces(tx: Transaction): Promise<void> {
  await tx.query({ name: 'same places', text: SAME_PLACES_SQL }).catch((error: pg.DatabaseError) => {
    throw error.code === DIVISION_BY_ZERO ? new PlacesChanged() : error
  })
}

/** Sends the last writes and the commit, behind which no statement may follow. If a write fails, the commit is a rollback. */
export async function commit(tx: Transaction): Promise<void> {
  const writes = (tx.atCommit ?? []).map((write) => write.send(tx))
  const sent = [...writes, ...(onCitus(tx) ? [requirePlaces(tx)] : []), tx.query('commit')]
  tx.atCommit = undefined
  tx.isEnded = true
  await inOrder(sent)
  if (writes.length > 0) tx.onChange?.()
}

/** Runs `work` in the transaction that `db` is, or in a transaction of its own if `db` is the pool. */
export const inTransaction = <T>(
  db: Database | Transaction,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> => ('release' in db ? work(db) : transaction(db, work))

/**
 * Waits for statements that were sent together. After a failed statement the later ones fail too, so the first
 * failure in order is the cause.
 */
export async function inOrder<const T extends readonly unknown[]>(
  sent: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  return Promise.all(sent).catch(async () => {
    const outcomes = await Promise.allSettled(sent)
    throw outcomes.find((outcome) => outcome.status === 'rejected')!.reason
  })
}

/** Returns the name of the unique constraint that refused a statement; undefined for other errors. */
export function violatedConstraint(error: unknown): string | undefined {
  const { code, constraint, message } = error as pg.DatabaseError
  if (code !== '23505') return undefined
  // A distributed database adds the shard's id to the name. Other nodes' errors have the name in the message only.
  const name = constraint ?? /unique constraint "([^"]+)"/.exec(message)?.[1]
  return name?.replace(/_\d{6,}$/, '')
}

const SERIALIZATION_FAILURE = '40001'
const DIVISION_BY_ZERO = '22012'

/** Citus' messages when a split has dropped the shard that a statement was planned for. Their code is that of any internal error. */
const SHARD_DROPPED = /^(could not find valid entry for shard \d+|shard for the given value does not exist)$/

/** Whether the database ended a transaction because of concurrent ones. The transaction changed nothing and may be retried. */
export function notSerializable(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string }
  return code === SERIALIZATION_FAILURE || (code === 'XX000' && SHARD_DROPPED.test(message ?? ''))
}

/** Whether the database ended a statement that ran, or waited for a lock, too long. The transaction changed nothing. */
export function tookTooLong(error: unknown): boolean {
  const { code } = error as { code?: string }
  // query_canceled, lock_not_available
  return code === '57014' || code === '55P03'
}

export const lacksPrivilege = (error: unknown): boolean => (error as { code?: string }).code === '42501'

/** Whether the server lacks disk, memory or another resource (class 53), or its system failed (58). Nothing was changed. */
export const lacksResources = (error: unknown): boolean =>
  /^5[38]...$/.test((error as { code?: string }).code ?? '')

/** Whether the database ended a transaction because of a deadlock. The transaction changed nothing and may be retried. */
export const deadlocked = (error: unknown): boolean => (error as { code?: string }).code === '40P01'

/** The last two: no descriptor for a connection, because this process, or the machine, has reached its limit. */
const CONNECTION_LOST =
  /^(08(000|001|003|004|006)|25P03|53300|57P0[1-5]|ECONNREFUSED|ECONNRESET|EPIPE|ETIMEDOUT|EHOSTUNREACH|EAI_AGAIN|EMFILE|ENFILE)$/

/** Whether the connection to the database was lost, so that the caller may retry later. */
export function connectionLost(error: unknown): boolean {
  const { code, message } = error as { code?: string; message?: string }
  return (
    CONNECTION_LOST.test(code ?? '') ||
    /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error)/.test(
      message ?? '',
    )
  )
}
