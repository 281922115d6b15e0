import { spawnSync } from 'node:child_process'
import { CLUSTER } from './cluster.ts'

/**
 * Runs the tests that use a database on the cluster that TEST_CITUS_NODES names; all of them, or the files that the
 * arguments name.
 */
if (CLUSTER.length === 0) {
  console.log(
    'Skipped: TEST_CITUS_NODES names no Citus cluster. It is a list of addresses of a superuser, separated by commas: the coordinator, then the workers.',
  )
} else {
  const args = ['vitest', 'run', '--project', 'database', '--project', 'program', ...process.argv.slice(2)]
  process.exitCode = spawnSync('npx', args, { stdio: 'inherit' }).status ?? 1
}
