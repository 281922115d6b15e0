import { failed, ok, warn, warnings, type Finding } from '../finding.ts'
import { inOrder, openDatabase, transaction, type Database } from './database.ts'
import { isDistributed } from './distribution.ts'
import { addressOn, Cluster } from './nodes.ts'
import { partsOf, type Part } from './parts.ts'
import { PRIVILEGES } from './tables.ts'

/**
 * Most milliseconds between the clocks of two nodes. No money depends on it: a customer's records have times of its node's
 * clock or the coordinator's. A larger difference delays ascending lists and deliveries of events by as much.
 */
export const NODE_SKEW_MS_MAX = 500

const GUIDE = 'see docs/guides/scale-out.md#what-to-watch'

/** The tables whose rows never change: the service may only insert. */
const APPEND_ONLY = Object.entries(PRIVILEGES).flatMap(([table, { insert, update, delete: deletes }]) =>
  insert === true && update === undefined && deletes === undefined ? table : [],
)

/**
 * Examines the nodes of a cluster: whether this process reaches each, how far its clock is from the coordinator's, whether
 * the service could change append-only rows there, and whether a tenant can be isolated. Returns no findings for a plain
 * database.
 */
export async function checkNodes(db: Database, databaseUrl: string): Promise<Finding[]> {
  if (!(await isDistributed(db))) return []
  const cluster = await Cluster.open(db, () => undefined)
  const opened: Database[] = []
  cluster.connect(db, (name) => {
    const pool = openDatabase(addressOn(databaseUrl, name), { max: 1, onError: () => undefined })
    opened.push(pool)
    return pool
  })
  try {
    return (await inOrder(partsOf(db).map((node) => checkNode(node, db)))).flat()
  } finally {
    await cluster.close()
    await Promise.all(opened.map((pool) => pool.end()))
  }
}

async function checkNode({ name, db }: Part, coordinator: Database): Promise<Finding[]> {
  try {
    const clocks = [msOf(coordinator), msOf(db)]
    const [here, there] = await inOrder(clocks)
    return [
      judgeNodeClock(name, Math.round(Math.abs(there! - here!))),
      ...judgeShards(name, await changeableShards(db)),
      ...judgePlugins(name, await pluginsOf(db)),
    ]
  } catch (error) {
    const says = `node ${name} does not answer: ${(error as Error).message}`
    return [failed(says, `its customers are not served; ${GUIDE}`)]
  }
}

/** Judges the difference of a node's clock from the coordinator's. */
export const judgeNodeClock = (node: string, skewMs: number): Finding =>
  skewMs > NODE_SKEW_MS_MAX
    ? warn(
        `the clock of node ${node} is ${skewMs} ms from the coordinator's`,
        'synchronise the clocks of all nodes with NTP',
      )
    : ok(`node ${node} answers, ${skewMs} ms from the coordinator's clock`)

/** Judges the append-only shards whose rows the service could change. */
export function judgeShards(node: string, shards: readonly string[]): Finding[] {
  if (shards.length === 0) return []
  const more = shards.length > 3 ? ` and ${shards.length - 3} more` : ''
  const says = `on node ${node} the service may change rows of ${shards.slice(0, 3).join(', ')}${more}`
  return [failed(says, 'bursar migrate as the role that owns the schema (docs/guides/database-roles.md)')]
}

/** Judges the node's `output_plugin_libraries`; undefined where that is unknown. */
export const judgePlugins = (node: string, libraries: string | undefined): Finding[] =>
  warnings([
    libraries !== undefined && !libraries.split(',').some((library) => library.trim() === 'citus'),
    `node ${node} lacks citus in output_plugin_libraries: a tenant cannot be isolated`,
    GUIDE,
  ])

/** How far a database's clock is ahead of this process's monotonic clock, in milliseconds, at the middle of the round trip. */
async function msOf(db: Database): Promise<number> {
  // The first query opens the connection, which takes too long to be part of the measurement.
  await db.query('select')
  const sentAt = performance.now()
  const { rows } = await db.query<{ ms: string }>('select extract(epoch from clock_timestamp()) * 1000 as ms')
  return Number(rows[0]!.ms) - (sentAt + performance.now()) / 2
}

/** The node's shards of append-only tables that this connection's role may change. */
const changeableShards = (db: Database): Promise<string[]> =>
  transaction(db, async (tx) => {
    // Otherwise Citus leaves the shards out of pg_class.
    await tx.query(`set local citus.show_shards_for_app_name_prefixes = '*'`)
    const { rows } = await tx.query<{ shard: string }>(
      `
      select relname as shard
      from pg_class
      where relnamespace = 'public'::regnamespace and relkind in ('r', 'p')
        and regexp_replace(relname, '_[0-9]{6,}$', '') = any ($1)
        and (has_table_privilege(oid, 'update, delete, truncate') or has_any_column_privilege(oid, 'update'))
      order by 1`,
      [APPEND_ONLY],
    )
    return rows.map(({ shard }) => shard)
  })

const INSUFFICIENT_PRIVILEGE = '42501'

/** The node's setting; undefined where it has none, or where this role may not read settings (`pg_read_all_settings`). */
async function pluginsOf(db: Database): Promise<string | undefined> {
  try {
    const { rows } = await db.query<{ libraries: string | null }>(
      `select current_setting('output_plugin_libraries', true) as libraries`,
    )
    return rows[0]!.libraries ?? undefined
  } catch (error) {
    if ((error as { code?: string }).code === INSUFFICIENT_PRIVILEGE) return undefined
    throw error
  }
}
