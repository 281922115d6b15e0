#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { fail, setExitCodes } from './commands/exit.ts'

const packageFile = new URL('../package.json', import.meta.url)
const { version, engines } = JSON.parse(readFileSync(packageFile, 'utf8')) as {
  version: string
  engines: { node: string }
}

const program = setExitCodes(new Command('bursar'))
  .description('Self-hosted financial platform API on a double-entry ledger')
  .version(version)
  .configureHelp({ showGlobalOptions: true })

program.addHelpText(
  'after',
  `
Exit codes: 0 done; 1 failed, or found a fault (verify, audit verify, doctor, networks status, statements explain);
2 usage error.

Examples:
  bursar serve
  bursar customer create --name Acme
  bursar client create --customer <customer_id> --scopes all
  bursar doctor
  bursar verify --json`,
)

type Group = (program: Command) => void

/** Command groups by their first word. A group's code is loaded only when its command runs, which keeps the start fast. */
const GROUPS: [names: string[], load: () => Promise<Group>][] = [
  [['serve'], async () => (await import('./commands/serve.ts')).serveCommand],
  [['api'], async () => (await import('./commands/api.ts')).apiCommand],
  [['events'], async () => (await import('./commands/events.ts')).eventCommands],
  [['webhooks'], async () => (await import('./commands/webhooks.ts')).webhookCommands],
  [['listen'], async () => (await import('./commands/listen.ts')).listenCommand],
  [['trigger'], async () => (await import('./commands/trigger.ts')).triggerCommand],
  [
    ['doctor'],
    async () => {
      const { doctorCommand } = await import('./commands/doctor.ts')
      return (program) => doctorCommand(program, engines.node)
    },
  ],
  [
    ['migrate', 'verify', 'deployment'],
    async () => (await import('./commands/database.ts')).databaseCommands,
  ],
  [['audit'], async () => (await import('./commands/audit.ts')).auditCommands],
  [['customer', 'client', 'account'], async () => (await import('./commands/customers.ts')).customerCommands],
  [['operator'], async () => (await import('./commands/operators.ts')).operatorCommands],
  [['sandbox'], async () => (await import('./commands/sandbox.ts')).sandboxCommands],
  [['console'], async () => (await import('./commands/console.ts')).consoleCommands],
  [['identity'], async () => (await import('./commands/identities.ts')).identityCommands],
  [['statements', 'rewards'], async () => (await import('./commands/statements.ts')).statementCommands],
  [['transfer', 'balance'], async () => (await import('./commands/transfers.ts')).transferCommands],
  [['networks', 'withdrawal'], async () => (await import('./commands/networks.ts')).networkCommands],
  [['treasury', 'wallet'], async () => (await import('./commands/treasury.ts')).treasuryCommands],
  [['keys'], async () => (await import('./commands/keys.ts')).keyCommands],
  [['freeze', 'unfreeze'], async () => (await import('./commands/freezes.ts')).freezeCommands],
  [['approvals', 'approvers'], async () => (await import('./commands/approvals.ts')).approvalCommands],
  [['policy'], async () => (await import('./commands/policy.ts')).policyCommands],
  [['wire'], async () => (await import('./commands/wires.ts')).wireCommands],
  [['deposits'], async () => (await import('./commands/deposits.ts')).depositCommands],
  [['screening'], async () => (await import('./commands/screening.ts')).screeningCommands],
  [['prices'], async () => (await import('./commands/prices.ts')).priceCommands],
]

const asked = GROUPS.filter(([names]) => names.includes(process.argv[2] ?? ''))
const isVersion = ['-V', '--version'].includes(process.argv[2] ?? '')
// Help and completion list all commands, so they load all groups.
if (!isVersion) for (const [, load] of asked.length > 0 ? asked : GROUPS) (await load())(program)
if (asked.length === 0) (await import('./commands/completion.ts')).completionCommand(program)

await program.parseAsync().catch(fail)
