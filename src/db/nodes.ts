import { setCoordinator, type Database, type Queryable } from './database.ts'
import { isDistributed } from './distribution.ts'
import { setParts, setReader, type Part } from './parts.ts'
import { Refreshed } from './refreshed.ts'

/**
 * Which node has which customer. A plain PostgreSQL has everything in one place. On a cluster (Citus, distributed by
 * customer) each customer is on one node, and every node takes statements: a statement about a customer goes to the
 * customer's node.
 */

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
   * Reads which node has which customer, through the coordinator, and again each second. On a plain database it only asks
   * once whether there is a cluster. `onError` gets the first of several failures: the last known places stay in use.
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

  /**
   * Lets these connections to the coordinator find the node of a customer (`forCustomer`); `open` opens the pool of another
   * node at its first use.
   */
  connect(shared: Database, open: OpenNode): Database {
    const shards = this.#shards
    if (shards === undefined) return shared
    const nodes = new Map<string, Part>()
    const refresh = () => shards.read()
    const nodeNamed = (name: string): Part => {
      const opened = nodes.get(name)
      if (opened !== undefined) return opened
      const db = name === COORDINATOR ? shared : open(name)
      if (db !== shared) setCoordinator(db, shared)
      const own = () => shards.value.filter(({ node }) => node === name)
      setReader(db, new OwnShards(db, own, refresh))
      const node = { name, db }
      nodes.set(name, node)
      return node
    }
    let listed: { shards: readonly Shard[]; nodes: readonly Part[] } | undefined
    const list = () => {
      const now = shards.value
      if (listed?.shards !== now)
        listed = { shards: now, nodes: [...new Set(now.map(({ node }) => node))].map(nodeNamed) }
      return listed.nodes
    }
    const of = (customerId: string) => nodeNamed(shardOf(shards.value, customerId).node)
    setParts(shared, { of, list, refresh })
    return shared
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
