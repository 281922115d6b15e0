import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'

/**
 * The nodes of the Citus cluster that TEST_CITUS_NODES names: addresses of a superuser, separated by commas, the
 * coordinator's first. Empty: the tests run on one plain PostgreSQL.
 */
export const CLUSTER: readonly string[] = (process.env.TEST_CITUS_NODES ?? '').split(',').filter(Boolean)

/** Options of all sessions, which a copy of a database loses. `migrate --distribute` sets them. */
const OPTIONS = ['enable_seqscan to off', 'jit to off', `timezone to 'UTC'`]

/** Runs statements on one node: in the database of the address, unless another one is named. */
export async function onNode(address: string, statements: string[], database?: string): Promise<void> {
  const url = new URL(address)
  if (database !== undefined) url.pathname = `/${database}`
  const client = new pg.Client({ connectionString: url.href })
  // A dropped database ends its sessions.
  client.on('error', () => undefined)
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

/** Runs statements on each worker node, if there is a cluster. */
export async function onWorkers(statements: string[]): Promise<void> {
  for (const address of CLUSTER.slice(1)) await onNode(address, statements, 'postgres')
}

/** Runs statements on the worker node with this name, in its default database. */
const onNamed = (node: string, statements: string[]) =>
  onNode(
    CLUSTER.find((address) => new URL(address).host === node)!,
    statements,
    'postgres',
  )

/** Lets one node refuse the database of this address alone, as if the node were gone: other tests go on. */
export async function refuseDatabase(node: string, url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  await onNamed(node, [
    `alter database ${name} connection limit 0`,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and usename <> current_user`,
  ])
}

/** Ends what `refuseDatabase` began. */
export const takeDatabaseAgain = (node: string, url: string): Promise<void> =>
  onNamed(node, [`alter database ${new URL(url).pathname.slice(1)} connection limit -1`])

/** Opens a connection to this database on each node: as a superuser on a cluster. The caller ends the connections. */
async function connectToNodes(url: string): Promise<pg.Client[]> {
  const { pathname } = new URL(url)
  const addresses =
    CLUSTER.length === 0 ? [url] : CLUSTER.map((node) => Object.assign(new URL(node), { pathname }).href)
  return Promise.all(
    addresses.map(async (connectionString) => {
      const client = new pg.Client({ connectionString })
      client.on('error', () => undefined)
      await client.connect()
      return client
    }),
  )
}

/** Runs a query on every node, in the database of this address. Returns the rows of all. */
export async function queryNodes<Row extends pg.QueryResultRow>(url: string, query: string): Promise<Row[]> {
  const clients = await connectToNodes(url)
  try {
    return (await Promise.all(clients.map((client) => client.query<Row>(query)))).flatMap(({ rows }) => rows)
  } finally {
    await Promise.all(clients.map((client) => client.end()))
  }
}

const WAIT_MS_MAX = 120_000

/**
 * Starts the action, and waits until a session of this database waits for a lock, on any node. The servers themselves check
 * each millisecond, because a session may wait for a few milliseconds only.
 */
export async function untilOneWaits(url: string, action: () => unknown): Promise<void> {
  const clients = await connectToNodes(url)
  let isOver = false
  const look = async (client: pg.Client) => {
    const until = performance.now() + WAIT_MS_MAX
    while (!isOver && performance.now() < until) {
      try {
        await client.query(ONE_WAITS)
        return
      } catch (error) {
        if ((error as { code?: string }).code !== 'P0002') throw error
      }
    }
    throw new Error('no session waits for a lock')
  }
  const looks = clients.map(look)
  try {
    action()
    await Promise.any(looks)
  } finally {
    isOver = true
    await Promise.allSettled(looks)
    await Promise.all(clients.map((client) => client.end()))
  }
}

const ONE_WAITS = `
  do $$
  begin
    for look in 1..100 loop
      perform pg_stat_clear_snapshot();
      if exists (
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
      ) then
        return;
      end if;
      perform pg_sleep(0.001);
    end loop;
    raise no_data_found;
  end $$`

const OBJECT_IN_USE = '55006'
const DROPS_MAX = 5

/** Drops a database of one node. Tries again where a busy machine takes more than five seconds to end its sessions. */
export async function dropOnNode(address: string, database: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await onNode(address, [`drop database if exists ${database} with (force)`])
    } catch (error) {
      if ((error as { code?: string }).code !== OBJECT_IN_USE || tries === DROPS_MAX) throw error
      await pause(200)
    }
  }
}

/** Creates a database with Citus on every node. `joinNodes` makes a cluster of them. */
export async function createOnNodes(database: string, owner: string): Promise<void> {
  for (const address of CLUSTER) {
    await onNode(address, [`create database ${database} owner ${owner}`], 'postgres')
    await onNode(address, ['create extension citus'], database)
  }
}

/** Makes the nodes one cluster in this database. */
export async function joinNodes(database: string): Promise<void> {
  const [coordinator, ...workers] = CLUSTER.map((address) => new URL(address))
  const join = [
    `select citus_set_coordinator_host('${coordinator!.hostname}', ${coordinator!.port})`,
    ...workers.map(({ hostname, port }) => `select citus_add_node('${hostname}', ${port})`),
  ]
  await onNode(coordinator!.href, join, database)
}

/** Closes a template to all sessions. PostgreSQL copies a template only while no session uses it, and Citus's daemon does. */
export async function closeTemplate(name: string): Promise<void> {
  const close = [
    `alter database ${name} allow_connections false`,
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`,
  ]
  for (const address of CLUSTER) await onNode(address, close, 'postgres')
}

/**
 * Copies the template on every node: the copies are a cluster, because no node knows the names of the others'
 * databases.
 */
export const copyOnWorkers = (name: string, create: string): Promise<void> =>
  onWorkers([create, ...OPTIONS.map((option) => `alter database ${name} set ${option}`)])

/** The statements that give a copy on the coordinator its options. */
export const optionsOf = (name: string): string[] =>
  CLUSTER.length === 0 ? [] : OPTIONS.map((option) => `alter database ${name} set ${option}`)
