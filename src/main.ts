#!/usr/bin/env node
import { readFileSync } from 'node:fs'
import { Command } from 'commander'
import { fail } from './commands/command-line.ts'
import { customerCommands } from './commands/customers.ts'
import { databaseCommands } from './commands/database.ts'
import { priceCommands } from './commands/prices.ts'
import { networkCommands } from './commands/networks.ts'
import { serveCommand } from './commands/serve.ts'
import { statementCommands } from './commands/statements.ts'

const packageFile = new URL('../package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }

const program = new Command('bursar')
  .description('Self-hosted financial platform API on a double-entry ledger')
  .version(version)
  .configureHelp({ showGlobalOptions: true })

serveCommand(program)
databaseCommands(program)
customerCommands(program)
statementCommands(program)
networkCommands(program)
priceCommands(program)

await program.parseAsync().catch(fail)
