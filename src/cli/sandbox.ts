import type { Command } from 'commander'
import { problem } from '../contract/problems.ts'
import { dropAll, InUse, NotReset, requireResettable, type ToReset } from './reset-sandbox.ts'
import { prepareDatabase } from '../program/deployment.ts'
import { asOwner, inDatabase, withDatabase, type AtDatabase } from './command-line.ts'
import { group } from './define.ts'
import { EXIT } from './exit.ts'
import { ownProcess } from './own-process.ts'

export function sandboxCommands(program: Command): void {
  group(program, ['sandbox', 'a sandbox as a whole'], inDatabase, {
    '--confirm <database>': ['the name of the database; without it, the command says what it would delete'],
  }).command('reset [--confirm <database>]', {
    about:
      'delete everything in the database of a stopped sandbox; the next start makes the demo anew. Never in live mode, nor with a test network',
    async run(at, { confirm }) {
      const found = await requireResettable(at.db, at.settings)
      const reset = confirm === found.database
      if (reset) await empty(at)
      else ownProcess().exitCode = EXIT.usage
      return { reset, ...found }
    },
    says: (found, { confirm }) =>
      found.reset
        ? `Deleted ${found.customers} customers and ${found.transfers} transfers. The next start makes the demo: bursar serve`
        : wouldDelete(found, confirm),
    logs: 'reset the sandbox',
    logged: ({ reset, ...found }) => reset && found,
  })
}

/** Drops all tables, and creates them again. The next start makes the demo, whose API client keeps its id and secret. */
async function empty({ db, settings, ownerUrl: url }: AtDatabase): Promise<void> {
  await (url === undefined ? dropAll(db) : asOwner(url, dropAll))
  await prepareDatabase(db, settings, url)
}

/**
 * Throws forbidden for a sandbox that may not be emptied, and conflict while another process than this one uses it, with the
 * reason.
 */
export const requireMayBeEmptied = (): Promise<void> =>
  withDatabase({}, async ({ db, settings }) => {
    await requireResettable(db, settings).catch((error: unknown) => {
      if (error instanceof InUse) throw problem.conflict(error.message)
      throw error instanceof NotReset ? problem.forbidden(error.message) : error
    })
  })

/** Empties the sandbox of a service that has stopped. Throws as `requireResettable` does. */
export const emptyStopped = (): Promise<void> =>
  withDatabase({}, async (at) => {
    await requireResettable(at.db, at.settings)
    await empty(at)
  })

const wouldDelete = ({ database, customers, transfers }: ToReset, confirm: string | undefined): string =>
  `${confirm === undefined ? '' : `This database is not ${confirm}. `}` +
  `Nothing was deleted. ${customers} customers and ${transfers} transfers would be: bursar sandbox reset --confirm ${database}`
