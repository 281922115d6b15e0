import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { CLUSTER } from './cluster.ts'
import { CITUS_PROGRAMS, InstalledPostgres } from './installed-postgres.ts'

/** The settings of a cluster's nodes. No test cuts the power, so no write waits for the disk. */
const SETTINGS = {
  shared_preload_libraries: 'citus',
  'citus.node_conninfo': 'sslmode=disable',
  wal_level: 'logical',
  max_connections: '300',
  max_prepared_transactions: '200',
  max_locks_per_transaction: '512',
  // Each database of a cluster has a daemon of Citus.
  max_worker_processes: '64',
  fsync: 'off',
}

/**
 * Runs the tests that use a database, including those on real chains, on a Citus cluster: all of them, or the files that the
 * arguments name. The cluster is the one that TEST_CITUS_NODES names, or else a coordinator and two workers of an installed
 * PostgreSQL with Citus.
 */
async function main(): Promise<void> {
  if (CLUSTER.length > 0) return test(CLUSTER.join())
  if (CITUS_PROGRAMS === undefined) {
    console.log(
      'Skipped: no PostgreSQL with Citus is installed (TEST_CITUS_BIN names the folder of its programs), and TEST_CITUS_NODES names no cluster. It is a list of addresses of a superuser, separated by commas: the coordinator, then the workers.',
    )
    return
  }
  const nodes: InstalledPostgres[] = []
  try {
    while (nodes.length < 3)
      nodes.push(await InstalledPostgres.start(SETTINGS, { programs: CITUS_PROGRAMS, trust: true }))
    await test(nodes.map(({ adminUrl }) => adminUrl).join())
  } finally {
    await Promise.all(nodes.map((node) => node.remove()))
  }
}

async function test(nodes: string): Promise<void> {
  const projects = ['core', 'database', 'program', 'chains'].flatMap((name) => ['--project', name])
  // Its thief works and is undone in one transaction of one session, which on a cluster reaches the coordinator's tables alone.
  const leftOut = ['--exclude', 'test/thief.slow.test.ts']
  const args = ['vitest', 'run', ...projects, ...leftOut, ...process.argv.slice(2)]
  const tests = spawn('npx', args, { stdio: 'inherit', env: { ...process.env, TEST_CITUS_NODES: nodes } })
  const [code] = (await once(tests, 'exit')) as [number | null]
  process.exitCode = code ?? 1
}

await main()
