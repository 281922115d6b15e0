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

/** Keeps everybody out of a template, which is copied only while nobody uses it. Citus' own daemon does. */
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
