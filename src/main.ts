#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { exitCodes, fail } from './commands/command-line.ts'
import { completionCommand } from './commands/completion.ts'
import { customerCommands } from './commands/customers.ts'
import { databaseCommands } from './commands/database.ts'
import { doctorCommand } from './commands/doctor.ts'
import { priceCommands } from './commands/prices.ts'
import { networkCommands } from './commands/networks.ts'
import { serveCommand } from './commands/serve.ts'
import { statementCommands } from './commands/statements.ts'

const packageFile = new URL('../package.json', import.meta.url)
const { version, engines } = JSON.parse(readFileSync(packageFile, 'utf8')) as {
  version: string
  engines: { node: string }
}

const program = exitCodes(new Command('bursar'))
  .description('Self-hosted financial platform API on a double-entry ledger')
  .version(version)
  .configureHelp({ showGlobalOptions: true })

program.addHelpText(
  'after',
  `
Exit codes: 0 done; 1 failed, or found something wrong (verify, doctor, networks status, statements explain);
2 the command line makes no sense.

Examples:
  bursar serve
  bursar customer create --name Acme
  bursar client create --customer <customer_id> --scopes all
  bursar doctor
  bursar verify --json`,
)

serveCommand(program)
doctorCommand(program, engines.node)
databaseCommands(program)
customerCommands(program)
statementCommands(program)
networkCommands(program)
priceCommands(program)
completionCommand(program)

await program.parseAsync().catch(fail)
