import { rm } from 'node:fs/promises'
import type { Command } from 'commander'
import { OWNER, openDatabase, type Database } from '../db/database.ts'
import { credentialsFile } from '../demo/credentials.ts'
import { dropAll, requireResettable, type ToReset } from './reset-sandbox.ts'
import { prepareDatabase } from '../deployment.ts'
import type { Settings } from '../settings.ts'
import { logOperator, withBothRoles } from './command-line.ts'
import { EXIT } from './exit.ts'
import { print } from './output.ts'

/** Defines `bursar sandbox`. */
export function sandboxCommands(program: Command): void {
  program
    .command('sandbox')
    .description('a sandbox as a whole')
    .command('reset')
    .description(
      'delete everything in the database of a stopped sandbox; the next start makes the demo anew. Never in live mode, nor with a test network',
    )
    .option(
      '--confirm <database>',
      'the name of the database; without it, the command says what it would delete',
    )
    .option('--json', 'print JSON')
    .action(({ confirm, json }: { confirm?: string; json?: true }) =>
      withBothRoles(async (db, settings, ownerUrl) => {
        const found = await requireResettable(db, settings)
        if (confirm !== found.database) {
          process.exitCode = EXIT.usage
          print(json ? { reset: false, ...found } : wouldDelete(found, confirm))
          return
        }
        await empty(db, settings, ownerUrl)
        logOperator(settings, 'reset the sandbox', { ...found })
        print(
          json
            ? { reset: true, ...found }
            : `Deleted ${found.customers} customers and ${found.transfers} transfers. The next start makes the demo: bursar serve`,
        )
      }),
    )
}

/** Drops all tables, makes them anew, and removes the credentials of the demo's customer. The next start makes the demo. */
async function empty(db: Database, settings: Settings, ownerUrl: string | undefined): Promise<void> {
  const owner =
    ownerUrl === undefined
      ? undefined
      : openDatabase(ownerUrl, { max: 1, onError: () => undefined, applicationName: OWNER })
  try {
    await dropAll(owner ?? db)
  } finally {
    await owner?.end()
  }
  await prepareDatabase(db, settings, ownerUrl)
  await rm(credentialsFile(settings.dataDir), { force: true })
}

/** Empties the sandbox of a service that has stopped. Throws where it is not one to reset, or another process uses it. */
export const emptyStopped = (): Promise<void> =>
  withBothRoles(async (db, settings, ownerUrl) => {
    await requireResettable(db, settings)
    await empty(db, settings, ownerUrl)
  })

const wouldDelete = ({ database, customers, transfers }: ToReset, confirm: string | undefined): string =>
  `${confirm === undefined ? '' : `This database is not ${confirm}. `}` +
  `Nothing was deleted. ${customers} customers and ${transfers} transfers would be: bursar sandbox reset --confirm ${database}`
