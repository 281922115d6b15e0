import type { Command } from 'commander'
import type { Database } from '../db/database.ts'
import { requireBuiltConsole } from '../console/files.ts'
import { LINK_SECONDS, listOperators, makeLink, record } from '../operators/operators.ts'
import { SettingsError } from '../settings.ts'
import { logOperator, openRowMacs, originOfCommand, uuid, withDatabase } from './command-line.ts'
import { baseUrlOf, changing } from './operators.ts'
import { print } from './output.ts'

/** Defines `bursar console`. */
export function consoleCommands(program: Command): void {
  program
    .command('console')
    .description('the console: the page for operators at /console')
    .command('link')
    .description(
      `print a link that opens the console, once and within ${LINK_SECONDS / 60} minutes; earlier links of the operator end`,
    )
    .argument('[operator_id]', 'who signs in (default: the only operator that is enabled)', uuid)
    .option('--json', 'print JSON')
    .action((id: string | undefined, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        if (!settings.console) throw new SettingsError('BURSAR_CONSOLE: the console is switched off')
        requireBuiltConsole()
        const baseUrl = await baseUrlOf(db, settings)
        const operatorId = id ?? (await onlyOperator(db))
        const { secret, expires_at } = await changing(db, operatorId, async (tx, found) => {
          if (found.disabled_at !== null) throw new Error(`operator ${operatorId} is disabled`)
          await record(tx, found, 'operator.link', { origin: originOfCommand() })
          return makeLink(tx, await openRowMacs(settings), operatorId)
        })
        logOperator(settings, 'made a link to the console', { operator_id: operatorId, expires_at })
        const link = `${baseUrl}/console/sign-in#${secret}`
        print(
          json
            ? { operator_id: operatorId, link, expires_at }
            : `link:       ${link}\nexpires_at: ${expires_at}`,
        )
      }),
    )
}

/** The only enabled operator. Throws an Error where there is none or more than one. */
async function onlyOperator(db: Database): Promise<string> {
  const enabled = (await listOperators(db)).filter(({ disabled_at }) => disabled_at === null)
  if (enabled.length === 1) return enabled[0]!.id
  throw new Error(
    enabled.length === 0
      ? 'there is no operator yet: bursar operator create --name <name> --role <role>'
      : 'there are several operators: name one of them (bursar operator list)',
  )
}
