import { setCoordinator, type Database, type Queryable } from './database.ts'
import { isDistributed } from './distribution.ts'
import { Refreshed } from './refreshed.ts'

/**
 * Which node has which customer. A plain PostgreSQL has everything in one place. On a cluster (Citus, distributed by customer)
 * each customer is on one node, and every node takes statements: a statement about a customer goes to the customer's node.
 */

/** A database server that has customers. */
export interface Node {
  /** `<host>:<port>` as the cluster's metadata names it; empty for the only server of a plain database. */
  readonly name: string
  readonly db: Database
}

const readers = new WeakMap<Queryable, Queryable>()

/**
 * Reads the customers of this database and no others, for statements that look for work: those of the node on a cluster, all on a
 * plain database. Each joins within a customer, its answer is merely a hint, and it may run once for each of several parts of a
 * table. So it must name each table behind `from` or `join`, give it an alias where a column needs its name, and not need the
 * whole answer in order.
 */
export const ownCustomers = (db: Queryable): Queryable => readers.get(db) ?? db

/** Connections to all nodes for one use, such as requests. */
export interface Nodes {
  /** For records without a customer, and transactions over several: the coordinator. On a plain database, the pool. */
  readonly shared: Database
  /** The pool for the records of this customer. It takes no query: the customer's id determines the node. */
  readonly of: (customerId: string) => Database
  readonly nameOf: (customerId: string) => string
  /** The nodes that have customers now. */
  readonly list: () => readonly Node[]
  /** Reads at once which node has which customer. If that has changed, `list` returns another array. */
  readonly refresh: () => Promise<void>
}

/** A plain database: one pool for everything. */
export function onlyNode(db: Database): Nodes {
  const nodes = [{ name: '', db }]
  return { shared: db, of: () => db, nameOf: () => '', list: () => nodes, refresh: async () => undefined }
}

/** Makes `Nodes` of a pool, as for a plain database. */
export const nodesOf = (db: Database | Nodes): Nodes => ('shared' in db ? db : onlyNode(db))

/** One range of customers' hashes: its node, and the name of each table's shard there. */
export interface Shard {
  min: number
  max: number
  node: string
  tables: ReadonlyMap<string, string>
}

/** How often each process reads which node has which customer. Until then, a moved customer is reached through its old node. */
const REFRESH_MS = 1_000

/** Opens a pool to the node `<host>:<port>`. */
export type OpenNode = (address: string) => Database

/** Which node has which customer, read again each second. Close it before its pools. */
export class Cluster {
  /** Undefined on a plain database. A change gives another array. */
  readonly #shards: Refreshed<readonly Shard[]> | undefined

  private constructor(shards?: Refreshed<readonly Shard[]>) {
    this.#shards = shards
  }

  /**
   * Reads which node has which customer, through the coordinator, and again each second. On a plain database it only asks once
   * whether there is a cluster. `onError` gets the first of several failures: the last known places stay in use.
   */
  static async open(db: Database, onError: (error: unknown) => void): Promise<Cluster> {
    if (!(await isDistributed(db))) return new Cluster()
    let known = ''
    const read = async (last: readonly Shard[]) => {
      const places = await readPlaces(db)
      const placements = JSON.stringify(places)
      if (placements === known) return last
      const read = await withTables(db, places)
      known = placements
      return read
    }
    const shards = new Refreshed<readonly Shard[]>([], read, onError)
    await shards.read()
    shards.follow(REFRESH_MS)
    return new Cluster(shards)
  }

  /** Connections for one use: `shared` to the coordinator, and a pool for each other node, opened at its first use. */
  nodes(shared: Database, open: OpenNode): Nodes {
    const shards = this.#shards
    if (shards === undefined) return onlyNode(shared)
    const pools = new Map<string, Database>()
    const poolOf = (name: string): Database => {
      if (name === COORDINATOR) return shared
      const known = pools.get(name)
      if (known !== undefined) return known
      const made = open(name)
      pools.set(name, made)
      setCoordinator(made, shared)
      return made
    }
    const refresh = () => shards.read()
    let listed: { shards: readonly Shard[]; nodes: readonly Node[] } | undefined
    const list = () => {
      const now = shards.value
      if (listed?.shards === now) return listed.nodes
      const names = [...new Set(now.map(({ node }) => node))]
      const nodes = names.map((name): Node => {
        const db = poolOf(name)
        const own = () => shards.value.filter(({ node }) => node === name)
        readers.set(db, new OwnShards(db, own, refresh))
        return { name, db }
      })
      listed = { shards: now, nodes }
      return nodes
    }
    const nameOf = (customerId: string) => shardOf(shards.value, customerId).node
    return { shared, of: (customerId) => poolOf(nameOf(customerId)), nameOf, list, refresh }
  }

  async close(): Promise<void> {
    await this.#shards?.stop()
  }
}

const COORDINATOR = 'coordinator'

interface ShardPlace {
  shard_id: string
  min: number
  max: number
  node: string
}

async function readPlaces(db: Queryable): Promise<ShardPlace[]> {
  const { rows } = await db.query<ShardPlace>(
    `
    select s.shardid::text as shard_id, s.shardminvalue::int as min, s.shardmaxvalue::int as max,
           case when n.groupid = 0 then $1 else n.nodename || ':' || n.nodeport end as node
    from pg_dist_shard s
    join pg_dist_placement p on p.shardid = s.shardid
    join pg_dist_node n on n.groupid = p.groupid and n.noderole = 'primary'
    where s.logicalrelid = 'public.customers'::regclass
    order by 2`,
    [COORDINATOR],
  )
  if (rows.length === 0) throw new Error('the cluster names no node that has customers')
  return rows
}

/** Adds the names of the shards of all tables: the shards of one range are on one node. */
async function withTables(db: Queryable, places: readonly ShardPlace[]): Promise<Shard[]> {
  const { rows } = await db.query<{ table: string; shard_id: string; min: number }>(`
    select c.relname as table, s.shardid::text as shard_id, s.shardminvalue::int as min
    from pg_dist_shard s
    join pg_dist_partition p on p.logicalrelid = s.logicalrelid and p.partmethod = 'h'
    join pg_class c on c.oid = s.logicalrelid
    where not c.relispartition`)
  return places.map(({ min, max, node }) => ({
    min,
    max,
    node,
    tables: new Map(
      rows.flatMap((row) => (row.min === min ? [[row.table, `${row.table}_${row.shard_id}`] as const] : [])),
    ),
  }))
}

/** The shard that has a customer. Every id has one: the ranges cover all hashes. */
export function shardOf(shards: readonly Shard[], customerId: string): Shard {
  const hash = hashOfUuid(customerId)
  const shard = shards.find(({ min, max }) => hash >= min && hash <= max)
  if (shard === undefined) throw new Error(`no shard of the cluster has the customer ${customerId}`)
  return shard
}

/** Reads one node's shards one by one, as plain tables. Other nodes are not asked. */
class OwnShards implements Queryable {
  readonly #db: Database
  readonly #shards: () => readonly Shard[]
  readonly #refresh: () => Promise<void>

  constructor(db: Database, shards: () => readonly Shard[], refresh: () => Promise<void>) {
    this.#db = db
    this.#shards = shards
    this.#refresh = refresh
  }

  readonly query = (async (asked: string | { text: string; values?: unknown[] }, values?: unknown[]) => {
    const { text, values: bound = values } = typeof asked === 'string' ? { text: asked } : asked
    return this.#onEach(text, bound).catch(async (error: unknown) => {
      if ((error as { code?: string }).code !== UNDEFINED_TABLE) throw error
      // A shard was split or moved away.
      await this.#refresh()
      return this.#onEach(text, bound)
    })
  }) as Queryable['query']

  async #onEach(text: string, bound: unknown[] | undefined): Promise<unknown> {
    const rows: unknown[] = []
    let last
    for (const shard of this.#shards()) {
      last = await this.#db.query(onShard(text, shard), bound)
      for (const row of last.rows) rows.push(row)
    }
    return { ...last, rows, rowCount: rows.length }
  }
}

const UNDEFINED_TABLE = '42P01'

/** The statement about one shard alone: behind `from` and `join`, each distributed table is replaced by its shard. */
export const onShard = (text: string, { tables }: Pick<Shard, 'tables'>): string =>
  text.replaceAll(/\b(from|join)(\s+)(\w+)\b/gi, (found, word: string, space: string, table: string) => {
    const shard = tables.get(table)
    return shard === undefined ? found : word + space + shard
  })

const rotate = (value: number, bits: number) => (value << bits) | (value >>> (32 - bits))

/**
 * PostgreSQL's hash of a uuid (`uuid_hash`), by which Citus distributes: Jenkins' lookup3 over 16 bytes. PostgreSQL does not
 * promise to keep this hash, but Citus stores rows by it, so it stays. A test compares the two.
 */
export function hashOfUuid(uuid: string): number {
  const bytes = Buffer.from(uuid.replaceAll('-', ''), 'hex')
  if (bytes.length !== 16) throw new Error(`not a uuid: ${uuid}`)
  let a = (0x9e3779b9 + 16 + 3923095) | 0
  let b = a
  let c = a
  a = (a + bytes.readInt32LE(0)) | 0
  b = (b + bytes.readInt32LE(4)) | 0
  c = (c + bytes.readInt32LE(8)) | 0
  // mix
  a = ((a - c) ^ rotate(c, 4)) | 0
  c = (c + b) | 0
  b = ((b - a) ^ rotate(a, 6)) | 0
  a = (a + c) | 0
  c = ((c - b) ^ rotate(b, 8)) | 0
  b = (b + a) | 0
  a = ((a - c) ^ rotate(c, 16)) | 0
  c = (c + b) | 0
  b = ((b - a) ^ rotate(a, 19)) | 0
  a = (a + c) | 0
  c = ((c - b) ^ rotate(b, 4)) | 0
  b = (b + a) | 0
  a = (a + bytes.readInt32LE(12)) | 0
  // final
  c = ((c ^ b) - rotate(b, 14)) | 0
  a = ((a ^ c) - rotate(c, 11)) | 0
  b = ((b ^ a) - rotate(a, 25)) | 0
  c = ((c ^ b) - rotate(b, 16)) | 0
  a = ((a ^ c) - rotate(c, 4)) | 0
  b = ((b ^ a) - rotate(a, 14)) | 0
  return ((c ^ b) - rotate(b, 24)) | 0
}

/** The address of the same database on another node of its cluster. */
export function addressOn(databaseUrl: string, node: string | undefined): string {
  if (node === undefined) return databaseUrl
  const url = new URL(databaseUrl)
  url.host = node
  url.searchParams.delete('host')
  return url.href
}
