import { hasCitus, transaction, WRITER, type Database, type Queryable, type Transaction } from './database.ts'
import { PLACES, type TablePlacement } from './tables.ts'

/*
 * Citus takes a statement about a customer, and sends it to one shard, where the statement keeps these rules:
 * 1. It names the customer as a parameter, in a subquery among its columns too: a reference to a column finds no shard.
 * 2. It inserts from one row of the customer (`insert ... select`), with `statement_timestamp()` and not `clock_timestamp()`.
 * 3. An UPDATE or a CASE has no function that is not immutable, and adds no interval to a time: the clock is read before, or is a
 *    column.
 * 4. An UPDATE is not the source of an INSERT, and returns nothing but columns.
 * 5. An INSERT with ON CONFLICT returns what it inserted: the count has the rows that were there already.
 * 6. No subquery is lateral or materialized.
 * `test/sql-rows.db.test.ts` runs each statement on a cluster.
 */

/** The table whose rows are the customers. All tables of a customer are distributed like it. */
const ANCHOR = 'customers'
const columnOf = (table: string) => (table === ANCHOR ? 'id' : 'customer_id')

/** Enough for two shards on each of eight nodes. Each statement about all customers costs one task per shard. */
export const SHARDS_DEFAULT = 16
/** More than such a cluster would need. */
export const SHARDS_MAX = 256

/** Why a database cannot be distributed. The message says what to do about it. */
class DistributionError extends Error {}

/** A distributed database as `bursar migrate --distribute` made or found it. */
export interface Distributed {
  shards: number
  /** The addresses of the nodes that hold shards, as `host:port`. */
  nodes: string[]
  /** The tables that were distributed now; empty where all were. */
  tables: string[]
}

export async function isDistributed(db: Queryable): Promise<boolean> {
  if (!(await hasCitus(db))) return false
  const { rowCount } = await db.query(
    'select 1 from pg_dist_partition where logicalrelid = to_regclass($1)',
    [ANCHOR],
  )
  return rowCount === 1
}

/**
 * Distributes a migrated database by customer over the nodes of its Citus cluster, as the role that owns the schema. It all
 * happens in one transaction: a half distributed database does not keep foreign keys. Nothing changes on a database that is
 * distributed already. Throws `DistributionError`: no Citus, no worker nodes, this is no coordinator, Bursar's programs are
 * connected, one role owns the tables and runs the service, or a table has no line in `PLACES`.
 */
export async function distribute(owner: Database, serviceRole: string, shards: number): Promise<Distributed> {
  return transaction(owner, async (tx) => {
    if (!(await hasCitus(tx)))
      throw new DistributionError(
        'this database has no Citus: run "create extension citus" in it on every node, as a superuser (docs/guides/scale-out.md)',
      )
    await requireCoordinator(tx)
    const nodes = await workerNodes(tx)
    if (nodes.length === 0)
      throw new DistributionError(
        'the cluster has no worker nodes: add them with citus_add_node (docs/guides/scale-out.md)',
      )
    if (await isDistributed(tx)) {
      const { rows } = await tx.query<{ count: number }>(
        'select count(*)::integer as count from pg_dist_shard where logicalrelid = $1::regclass',
        [ANCHOR],
      )
      return { shards: rows[0]!.count, nodes, tables: [] }
    }
    await requireSeparateOwner(tx, serviceRole)
    await requireNobodyElse(tx)
    const tables = await distributeNewTables(tx, shards)
    await setPlannerOptions(tx)
    return { shards, nodes, tables }
  })
}

/**
 * Places the tables that Citus does not know yet, parents before their children. It serves `distribute`, and migrations of a
 * distributed database. Returns the tables' names. Throws `DistributionError` for a table without a line in `PLACES`.
 */
export async function distributeNewTables(tx: Transaction, shards?: number): Promise<string[]> {
  await onePerNode(tx)
  await tx.query(`set local client_min_messages to 'error'`)
  const { rows } = await tx.query<{ name: string; parents: string[] }>(`
    select c.relname as name,
           array(select distinct p.relname::text from pg_constraint f join pg_class p on p.oid = f.confrelid
                 where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid) as parents
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and not exists (select 1 from pg_dist_partition where logicalrelid = c.oid)
      and not exists (select 1 from pg_depend where objid = c.oid and deptype = 'e')
    order by c.relname`)
  const unknown = rows.filter(({ name }) => PLACES[name] === undefined).map(({ name }) => name)
  if (unknown.length > 0)
    throw new DistributionError(
      `no place is known for ${unknown.join(', ')}: tables of other programs belong in a database of their own`,
    )
  const waiting = rows.filter(({ name }) => PLACES[name] !== 'COORDINATOR')
  const placed: string[] = []
  while (waiting.length > 0) {
    // The anchor is first: other tables are colocated with it.
    const next = waiting.findIndex(
      ({ name, parents }) =>
        (name === ANCHOR || placed.includes(ANCHOR) || !waiting.some((other) => other.name === ANCHOR)) &&
        !parents.some((parent) => waiting.some((other) => other.name === parent)),
    )
    const { name } = waiting.splice(next, 1)[0]!
    await place(tx, name, PLACES[name]!, shards)
    placed.push(name)
  }
  return placed
}

/**
 * Makes the transaction use one connection to each node. It can then make a foreign key on all shards, and distribute a
 * table after it has read others.
 */
export async function onePerNode(tx: Transaction): Promise<void> {
  await tx.query(`set local citus.multi_shard_modify_mode to 'sequential'`)
}

async function place(tx: Transaction, table: string, where: TablePlacement, shards?: number): Promise<void> {
  if (where === 'EVERYWHERE') await tx.query('select create_reference_table($1)', [table])
  else if (where === 'READABLE') await tx.query('select citus_add_local_table_to_metadata($1)', [table])
  else if (table === ANCHOR)
    await tx.query('select create_distributed_table($1, $2, shard_count => $3)', [
      table,
      columnOf(table),
      shards,
    ])
  else
    await tx.query('select create_distributed_table($1, $2, colocate_with => $3)', [
      table,
      columnOf(table),
      ANCHOR,
    ])
}

/**
 * Sets the options of the sessions that nodes open to each other, as `openDatabase` sets those of the service's sessions.
 * All nodes get them, new ones too. `openDatabase` gives the reasons.
 */
async function setPlannerOptions(tx: Transaction): Promise<void> {
  const { rows } = await tx.query<{ name: string; owns: boolean }>(
    `select quote_ident(datname) as name, pg_has_role(datdba, 'usage') as owns from pg_database where datname = current_database()`,
  )
  const { name, owns } = rows[0]!
  if (!owns)
    throw new DistributionError(
      `the role that owns the schema must own the database ${name}, too: "alter database ${name} owner to ..."`,
    )
  for (const option of ['enable_seqscan to off', 'jit to off', `timezone to 'UTC'`])
    await tx.query(`alter database ${name} set ${option}`)
}

async function requireCoordinator(tx: Transaction): Promise<void> {
  const { rows } = await tx.query<{ is: boolean }>(
    'select exists (select 1 from pg_dist_local_group where groupid = 0) as is',
  )
  if (!rows[0]!.is)
    throw new DistributionError(
      'this node is a worker: give the address of the coordinator in DATABASE_URL and BURSAR_MIGRATIONS_DATABASE_URL',
    )
}

async function workerNodes(tx: Transaction): Promise<string[]> {
  const { rows } = await tx.query<{ address: string }>(`
    select nodename || ':' || nodeport as address from pg_dist_node
    where groupid > 0 and isactive and shouldhaveshards and noderole = 'primary'
    order by nodeid`)
  return rows.map(({ address }) => address)
}

/** Throws where one role owns the tables and runs the service: each move of a shard would restore the owner's privileges. */
async function requireSeparateOwner(tx: Transaction, serviceRole: string): Promise<void> {
  const { rows } = await tx.query<{ owns: boolean }>(
    `select pg_has_role($1::name, relowner, 'member') as owns from pg_class where oid = $2::regclass`,
    [serviceRole, ANCHOR],
  )
  if (rows[0]!.owns)
    throw new DistributionError(
      `the database role ${serviceRole} owns the schema: on other nodes nothing would keep it from changing entries; let another role own it (docs/guides/database-roles.md)`,
    )
}

/** Throws while Bursar's programs are connected: their sessions would go on with plans for an undistributed database. */
async function requireNobodyElse(tx: Transaction): Promise<void> {
  const { rows } = await tx.query<{ count: number }>(
    `select count(*)::integer as count from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid() and application_name like $1 || '%'`,
    [WRITER],
  )
  const { count } = rows[0]!
  if (count > 0)
    throw new DistributionError(
      `${count} other ${count === 1 ? 'session' : 'sessions'} of Bursar's programs use the database: stop them first`,
    )
}
