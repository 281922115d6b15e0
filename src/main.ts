#!/usr/bin/env node
import { AssertionError } from 'node:assert'
import { existsSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'
import { Command, InvalidArgumentError } from 'commander'
import { createCustomer } from './customers/create-customer.ts'
import { transaction, type Database } from './db/database.ts'
import { migrate } from './db/migrate.ts'
import { credentialsFile, curlSession } from './demo.ts'
import { SCOPES, type Scope } from './http/scopes.ts'
import { verify } from './ledger/verify.ts'
import { createApiClient, disableApiClient } from './oauth/api-clients.ts'
import { connect, openLog, serve } from './serve.ts'
import { readSettings, SETTINGS } from './settings.ts'

const packageFile = new URL('../package.json', import.meta.url)
const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }

const program = new Command('bursar')
  .description('Self-hosted financial platform API on a double-entry ledger')
  .version(version)
  .configureHelp({ showGlobalOptions: true })

program
  .command('serve')
  .description('run the API and the settlement worker')
  .option('--json', 'print one JSON line when ready, instead of text')
  .addHelpText('after', () => `\n${settingsHelp()}`)
  .action(async ({ json }: { json?: true }) => {
    const settings = readSettings(process.env)
    const starting = serve(settings, openLog(settings))
    stopOnSignal(async () => (await starting).close())
    const service = await starting
    const file = credentialsFile(settings.dataDir)
    if (json) {
      const { address } = service
      const { mode } = settings
      print({
        ready: true,
        address,
        mode,
        ...(mode === 'sandbox' && existsSync(file) && { credentials_file: file }),
      })
    } else {
      console.log(`Bursar is ready at ${service.address} (${settings.mode} mode)`)
      if (service.demo !== undefined) {
        console.log(`\nA demo customer was made; its credentials are in ${file}. To try it, paste:`)
        console.log(curlSession(relative(process.cwd(), file)))
      }
    }
  })

program
  .command('migrate')
  .description('bring the database schema up to date')
  .option('--json', 'print JSON')
  .action(({ json }: { json?: true }) =>
    withDatabase(async (db) => {
      const applied = await migrate(db)
      print(
        json
          ? { applied }
          : applied.length === 0
            ? 'The schema is up to date.'
            : `Applied: ${applied.join(', ')}`,
      )
    }),
  )

const customer = program
  .command('customer')
  .description('customers: the tenants, to whom everything else belongs')

customer
  .command('create')
  .description('make a customer with its default profile')
  .requiredOption('--name <name>', 'name of the customer')
  .option('--json', 'print JSON')
  .action(({ name, json }: { name: string; json?: true }) =>
    withDatabase(async (db) => {
      await migrate(db)
      const made = await transaction(db, (tx) => createCustomer(tx, name))
      print(json ? made : `customer_id: ${made.customer_id}\nprofile_id:  ${made.profile_id}`)
    }),
  )

const client = program.command('client').description('API clients: what a customer gets access tokens with')

client
  .command('create')
  .description('make an API client; its secret is shown this once')
  .requiredOption('--customer <id>', 'customer it belongs to', uuid)
  .requiredOption('--scopes <scopes>', `comma-separated, or "all": ${SCOPES.join(', ')}`, scopes)
  .option('--json', 'print JSON')
  .action((options: { customer: string; scopes: Scope[]; json?: true }) =>
    withDatabase(async (db) => {
      await migrate(db)
      const { rowCount } = await db.query('select 1 from customers where id = $1', [options.customer])
      if (rowCount === 0) throw new Error(`there is no customer ${options.customer}`)
      const made = await createApiClient(db, options.customer, options.scopes)
      print(options.json ? made : `client_id:     ${made.client_id}\nclient_secret: ${made.client_secret}`)
    }),
  )

client
  .command('disable')
  .description('stop a client from getting access tokens; those it has last until they expire')
  .argument('<client_id>', 'client', uuid)
  .option('--json', 'print JSON')
  .action((id: string, { json }: { json?: true }) =>
    withDatabase(async (db) => {
      if (!(await disableApiClient(db, id))) throw new Error(`there is no client ${id}`)
      print(json ? { client_id: id, disabled: true } : `Client ${id} is disabled.`)
    }),
  )

program
  .command('verify')
  .description(
    'recompute every balance and zero-sum from the ledger entries; exit code 1 when something disagrees',
  )
  .option('--json', 'print JSON')
  .action(({ json }: { json?: true }) =>
    withDatabase(async (db) => {
      const result = await verify(db)
      if (json) {
        print({ clean: result.disagreements.length === 0, ...result })
      } else {
        const { customers, transfers, entries, balances, disagreements } = result
        for (const { customer_id, rule, detail } of disagreements)
          console.log(`${customer_id}: not ${rule}: ${detail}`)
        const verdict = disagreements.length === 0 ? 'Clean' : `${disagreements.length} disagreements`
        console.log(
          `${verdict}: ${customers} customers, ${transfers} transfers, ${entries} entries, ${balances} balances.`,
        )
      }
      if (result.disagreements.length > 0) process.exitCode = 1
    }),
  )

function uuid(text: string): string {
  if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text))
    throw new InvalidArgumentError('must be a UUID.')
  return text.toLowerCase()
}

function scopes(text: string): Scope[] {
  if (text === 'all') return [...SCOPES]
  const names = text.split(/[ ,]+/).filter((name) => name !== '')
  const unknown = names.filter((name) => !(SCOPES as readonly string[]).includes(name))
  if (names.length === 0 || unknown.length > 0)
    throw new InvalidArgumentError(names.length === 0 ? 'no scope.' : `unknown scope: ${unknown.join(', ')}.`)
  return names as Scope[]
}

function print(value: unknown): void {
  console.log(typeof value === 'string' ? value : JSON.stringify(value))
}

function settingsHelp(): string {
  const lines = Object.entries(SETTINGS).map(([name, spec]) => {
    const { desc, default: fallback } = spec as { desc?: string; default?: string | number | boolean }
    return `  ${name.padEnd(34)}${desc}${fallback === undefined ? '' : ` [${fallback}]`}`
  })
  return `Settings, from the environment:\n${lines.join('\n')}`
}

/** Runs a command on the database, which is disconnected from (and stopped, if this started it) in the end. */
async function withDatabase(work: (db: Database) => Promise<void>): Promise<void> {
  const settings = { ...readSettings(process.env) }
  const log = openLog({ ...settings, logLevel: settings.logLevel === 'info' ? 'warn' : settings.logLevel })
  const { db, close } = await connect(settings, log)
  try {
    await work(db)
  } finally {
    await close()
  }
}

/** The first signal stops in order, if need be after the start; a second one ends at once. */
function stopOnSignal(close: () => Promise<void>): void {
  let stopping = false
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(130)
      stopping = true
      close().then(
        () => process.exit(0),
        (error: unknown) => fail(error),
      )
    })
  }
}

/** What only a mistake of ours throws. */
const BUGS = [TypeError, ReferenceError, RangeError, SyntaxError, AssertionError]

/** An error is told by its message. Its stack is for our own mistakes, and for who asks for it. */
const UNDEFINED_TABLE = '42P01'

function fail(error: unknown): never {
  const plain = error instanceof Error && !BUGS.some((bug) => error instanceof bug)
  const asked = ['debug', 'trace'].includes(process.env.BURSAR_LOG_LEVEL ?? '')
  if ((error as { code?: string }).code === UNDEFINED_TABLE)
    console.error('The schema is not there: bursar migrate')
  console.error(plain && !asked ? error.message : error)
  process.exit(1)
}

await program.parseAsync().catch(fail)
