#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { fail, setExitCodes } from './cli/exit.ts'

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
  [['serve'], async () => (await import('./cli/serve.ts')).serveCommand],
  [['api'], async () => (await import('./cli/api.ts')).apiCommand],
  [['events'], async () => (await import('./cli/events.ts')).eventCommands],
  [['webhooks'], async () => (await import('./cli/webhooks.ts')).webhookCommands],
  [['listen'], async () => (await import('./cli/listen.ts')).listenCommand],
  [['trigger'], async () => (await import('./cli/trigger/trigger.ts')).triggerCommand],
  [
    ['doctor'],
    async () => {
      const { doctorCommand } = await import('./cli/doctor/doctor.ts')
      return (program) => doctorCommand(program, engines.node)
    },
  ],
  [['migrate', 'verify', 'deployment'], async () => (await import('./cli/database.ts')).databaseCommands],
  [['audit'], async () => (await import('./cli/audit.ts')).auditCommands],
  [['customer', 'client', 'account'], async () => (await import('./cli/customers.ts')).customerCommands],
  [['operator'], async () => (await import('./cli/operators.ts')).operatorCommands],
  [['sandbox'], async () => (await import('./cli/sandbox.ts')).sandboxCommands],
  [['console'], async () => (await import('./cli/console.ts')).consoleCommands],
  [['identity'], async () => (await import('./cli/identities.ts')).identityCommands],
  [['statements', 'rewards'], async () => (await import('./cli/statements.ts')).statementCommands],
  [['transfer', 'balance'], async () => (await import('./cli/transfers.ts')).transferCommands],
  [['networks', 'withdrawal'], async () => (await import('./cli/networks.ts')).networkCommands],
  [['treasury', 'wallet'], async () => (await import('./cli/treasury.ts')).treasuryCommands],
  [['keys'], async () => (await import('./cli/keys.ts')).keyCommands],
  [['freeze', 'unfreeze'], async () => (await import('./cli/freezes.ts')).freezeCommands],
  [['approvals', 'approvers'], async () => (await import('./cli/approvals.ts')).approvalCommands],
  [['policy'], async () => (await import('./cli/policy.ts')).policyCommands],
  [['wire'], async () => (await import('./cli/wires.ts')).wireCommands],
  [['deposits'], async () => (await import('./cli/deposits.ts')).depositCommands],
  [['screening'], async () => (await import('./cli/screening.ts')).screeningCommands],
  [['prices'], async () => (await import('./cli/prices.ts')).priceCommands],
]

const asked = GROUPS.filter(([names]) => names.includes(process.argv[2] ?? ''))
const isVersion = ['-V', '--version'].includes(process.argv[2] ?? '')
// Help and completion list all commands, so they load all groups.
if (!isVersion) for (const [, load] of asked.length > 0 ? asked : GROUPS) (await load())(program)
if (asked.length === 0) (await import('./cli/completion.ts')).completionCommand(program)

await program.parseAsync().catch(fail)
