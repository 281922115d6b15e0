import type { Command } from 'commander'
import type { Database } from '../db/database.ts'
import { requireBuiltConsole } from '../access/console/files.ts'
import { LINK_SECONDS, listOperators } from '../access/operators/operators.ts'
import { SettingsError } from '../settings.ts'
import { uuid } from './arguments.ts'
import { inDatabase } from './command-line.ts'
import { group } from './define.ts'
import { describeLink, linkOf, ofLink } from './operators.ts'

export function consoleCommands(program: Command): void {
  group(program, ['console', 'the console: the page for operators at /console'], inDatabase, {
    '<operator_id>': ['who signs in (default: the only operator that is enabled)', uuid],
  }).command('link [operator_id]', {
    about: `print a link that opens the console, once and within ${LINK_SECONDS / 60} minutes; earlier links of the operator end`,
    async run(at, { operator_id }) {
      if (!at.settings.console) throw new SettingsError('BURSAR_CONSOLE: the console is switched off')
      requireBuiltConsole()
      return linkOf(at, operator_id ?? (await onlyOperator(at.db)), '/console/sign-in')
    },
    says: describeLink,
    logs: 'made a link to the console',
    logged: ofLink,
  })
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
