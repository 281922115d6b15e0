import { InvalidArgumentError, type Command } from 'commander'
import { setAccountDisabled } from '../accounts/set-account-disabled.ts'
import { createCustomer } from '../customers/create-customer.ts'
import { transaction } from '../db/database.ts'
import { migrate } from '../db/migrate.ts'
import { SCOPES, type Scope } from '../http/scopes.ts'
import { createApiClient, disableApiClient } from '../oauth/api-clients.ts'
import { print, uuid, withDatabase } from './command-line.ts'

/** `bursar customer`, `bursar client` and `bursar account`. */
export function customerCommands(program: Command): void {
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

  const account = program.command('account').description('accounts: disabled ones cannot take money out')

  for (const [name, disabled, description] of [
    ['disable', true, "stop an account's withdrawals, as the platform's administrator"],
    ['enable', false, 'take that back; what the API user has disabled stays disabled'],
  ] as const) {
    account
      .command(name)
      .description(description)
      .argument('<account_id>', 'account', uuid)
      .option('--user', 'act for the API user instead of the administrator')
      .option('--json', 'print JSON')
      .action((account_id: string, { user, json }: { user?: true; json?: true }) =>
        withDatabase(async (db) => {
          const flags = user ? { user_disabled: disabled } : { admin_disabled: disabled }
          const changed = await setAccountDisabled(db, account_id, flags)
          if (changed === undefined) throw new Error(`there is no account ${account_id}`)
          const { admin_disabled, user_disabled, summary_status } = changed
          print(
            json
              ? { account_id, admin_disabled, user_disabled, summary_status }
              : `admin_disabled: ${admin_disabled}\nuser_disabled:  ${user_disabled}\nsummary_status: ${summary_status}`,
          )
        }),
      )
  }
}

function scopes(text: string): Scope[] {
  if (text === 'all') return [...SCOPES]
  const names = text.split(/[ ,]+/).filter((name) => name !== '')
  const unknown = names.filter((name) => !(SCOPES as readonly string[]).includes(name))
  if (names.length === 0 || unknown.length > 0)
    throw new InvalidArgumentError(names.length === 0 ? 'no scope.' : `unknown scope: ${unknown.join(', ')}.`)
  return names as Scope[]
}
