import { Command, CommanderError } from 'commander'
import { EXIT, fail } from './exit.ts'
import { ownProcess } from './own-process.ts'
import { version } from '../package.ts'

const HELP = `
Exit codes: 0 done; 1 failed, or found a fault (verify, audit verify, doctor, networks status, statements explain);
2 usage error.

Examples:
  bursar serve
  bursar customer create --name Acme
  bursar client create --customer <customer_id> --scopes all
  bursar doctor
  bursar verify --json`

type Group = (program: Command) => void

/** Command groups by their first word. A group's code is loaded only when its command runs, which keeps the start fast. */
const GROUPS: [names: string[], load: () => Promise<Group>][] = [
  [['serve'], async () => (await import('./serve.ts')).serveCommand],
  [['api'], async () => (await import('./api.ts')).apiCommand],
  [['events'], async () => (await import('./events.ts')).eventCommands],
  [['webhooks'], async () => (await import('./webhooks.ts')).webhookCommands],
  [['listen'], async () => (await import('./listen.ts')).listenCommand],
  [['trigger'], async () => (await import('./trigger/trigger.ts')).triggerCommand],
  [['doctor'], async () => (await import('./doctor/doctor.ts')).doctorCommand],
  [['migrate', 'verify', 'deployment'], async () => (await import('./database.ts')).databaseCommands],
  [['audit'], async () => (await import('./audit.ts')).auditCommands],
  [['customer', 'client', 'account'], async () => (await import('./customers.ts')).customerCommands],
  [['operator'], async () => (await import('./operators.ts')).operatorCommands],
  [['sandbox'], async () => (await import('./sandbox.ts')).sandboxCommands],
  [['console'], async () => (await import('./console.ts')).consoleCommands],
  [['identity'], async () => (await import('./identities.ts')).identityCommands],
  [['statements', 'rewards'], async () => (await import('./statements.ts')).statementCommands],
  [['report'], async () => (await import('./reports.ts')).reportCommands],
  [['transfer', 'balance'], async () => (await import('./transfers.ts')).transferCommands],
  [['networks', 'withdrawal'], async () => (await import('./networks.ts')).networkCommands],
  [['psbt'], async () => (await import('./psbt.ts')).psbtCommands],
  [['treasury', 'wallet'], async () => (await import('./treasury.ts')).treasuryCommands],
  [['keys'], async () => (await import('./keys.ts')).keyCommands],
  [['freeze', 'unfreeze'], async () => (await import('./freezes.ts')).freezeCommands],
  [['approvals', 'approvers'], async () => (await import('./approvals.ts')).approvalCommands],
  [['policy'], async () => (await import('./policy.ts')).policyCommands],
  [['wire'], async () => (await import('./wires.ts')).wireCommands],
  [['bank'], async () => (await import('./bank.ts')).bankCommands],
  [['deposits'], async () => (await import('./deposits.ts')).depositCommands],
  [['screening'], async () => (await import('./screening.ts')).screeningCommands],
  [['signer'], async () => (await import('./signer.ts')).signerCommands],
  [['export'], async () => (await import('./reports.ts')).exportCommands],
  [['prices'], async () => (await import('./prices.ts')).priceCommands],
]

/** Runs the command of these arguments. A usage error exits with 2, so that it differs from a failure (1). */
export async function runProgram(args: readonly string[]): Promise<void> {
  const own = ownProcess()
  const program = new Command('bursar')
    .description('Self-hosted financial platform API on a double-entry ledger')
    .version(version)
    .configureHelp({ showGlobalOptions: true })
    .configureOutput({
      writeOut: (text) => own.stdout.write(text),
      writeErr: (text) => own.stderr.write(text),
    })
    .exitOverride()
    .addHelpText('after', HELP)
  const first = args[0] ?? ''
  const asked = GROUPS.filter(([names]) => names.includes(first))
  try {
    // Help and completion list all commands, so they load all groups.
    for (const [, load] of asked.length > 0 ? asked : GROUPS) (await load())(program)
    if (asked.length === 0) (await import('./completion.ts')).completionCommand(program)
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) return fail(error)
    own.exit(error.exitCode === 0 ? EXIT.done : EXIT.usage)
  }
}
