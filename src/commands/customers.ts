import { InvalidArgumentError, type Command } from 'commander'
import { setAccountDisabled } from '../accounts/set-account-disabled.ts'
import { createCustomer } from '../customers/create-customer.ts'
import { listCustomers } from '../customers/list-customers.ts'
import { transaction, type Database, type Transaction } from '../db/database.ts'
import { SCOPES, scopesOf, type ClientScope } from '../contract/scopes.ts'
import { openMasterKeys } from '../keys/master-keys.ts'
import { withApprovedChange } from '../records/approved-change.ts'
import { Policies } from '../records/policy.ts'
import { freeze, unfreeze } from '../records/freezes.ts'
import type { Settings } from '../settings.ts'
import {
  createApiClient,
  disableApiClient,
  enableApiClient,
  GRACE_SECONDS_MAX,
  listApiClients,
  rotateSecret,
} from '../oauth/api-clients.ts'
import {
  logOperator,
  openRowMacs,
  originOfCommand,
  requireCustomer,
  uuid,
  wholeNumber,
  withDatabase,
  withMigratedDatabase,
} from './command-line.ts'
import { EXIT } from './exit.ts'
import { defineCustomerLimits } from './customer-limits.ts'
import { signingEnds, STILL_SIGNING } from './freezes.ts'
import { print, table } from './output.ts'
import { audited, recordNow } from '../records/audited.ts'

/** Defines `bursar customer`, `bursar client` and `bursar account`. */
export function customerCommands(program: Command): void {
  const customer = program
    .command('customer')
    .description('customers: the tenants, which own all other records')
  defineCreateCustomer(customer)
  defineListCustomers(customer)
  defineDisableCustomer(customer)
  defineEnableCustomer(customer)
  defineCustomerLimits(customer)

  const client = program.command('client').description('API clients: the credentials of a customer')
  defineCreateClient(client)
  defineListClients(client)
  defineRotateClient(client)
  defineClientChanges(client)

  const account = program.command('account').description('accounts: a disabled account cannot withdraw')
  defineAccountChanges(account)
}

function defineCreateCustomer(customer: Command): void {
  customer
    .command('create')
    .description('create a customer with its default profile')
    .requiredOption('--name <name>', 'name of the customer')
    .option('--json', 'print JSON')
    .action(({ name, json }: { name: string; json?: true }) =>
      withMigratedDatabase(async (db, settings) => {
        const made = await transaction(db, async (tx) => {
          const created = await createCustomer(tx, name)
          const { customer_id } = created
          await recordNow(tx, customer_id, audited(originOfCommand(), 'customer.create', customer_id))
          return created
        })
        logOperator(settings, 'created a customer', made)
        print(json ? made : `customer_id: ${made.customer_id}\nprofile_id:  ${made.profile_id}`)
      }),
    )
}

function defineListCustomers(customer: Command): void {
  customer
    .command('list')
    .description('list the customers, oldest first')
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withDatabase(async (db) => {
        const customers = await listCustomers(db)
        if (json) return print({ customers })
        const columns = ['customer_id', 'name', 'created_at', 'disabled_at', '>clients', '>profiles']
        print(
          table(
            columns,
            customers.map((one) => [
              ...[one.customer_id, one.name, one.created_at, one.disabled_at],
              ...[one.clients, one.profiles],
            ]),
          ),
        )
      }),
    )
}

function defineDisableCustomer(customer: Command): void {
  customer
    .command('disable')
    .description(
      'freeze a customer and refuse its access tokens within a second; deposits are still credited',
    )
    .argument('<customer_id>', 'customer', uuid)
    .option('--json', 'print JSON')
    .action((customer_id: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        await requireCustomer(db, customer_id)
        const target = { kind: 'CUSTOMER', customer_id } as const
        await freeze(
          db,
          originOfCommand(),
          target,
          'DISABLED',
          'its access tokens are refused, and no money leaves it',
        )
        logOperator(settings, 'disabled a customer', { customer_id })
        const signing_ended = await signingEnds(db)
        if (!signing_ended) process.exitCode = EXIT.failed
        print(
          json
            ? { customer_id, disabled: true, signing_ended }
            : `Customer ${customer_id} is disabled.${signing_ended ? '' : `\n${STILL_SIGNING}`}`,
        )
      }),
    )
}

function defineEnableCustomer(customer: Command): void {
  customer
    .command('enable')
    .description('undo disable; freezes with other causes stay')
    .argument('<customer_id>', 'customer', uuid)
    .option('--json', 'print JSON')
    .action((customer_id: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        await requireCustomer(db, customer_id)
        const target = { kind: 'CUSTOMER', customer_id } as const
        await unfreeze(db, await openRowMacs(settings), originOfCommand(), target, 'DISABLED')
        logOperator(settings, 'enabled a customer', { customer_id })
        print(json ? { customer_id, disabled: false } : `Customer ${customer_id} is enabled.`)
      }),
    )
}

function defineCreateClient(client: Command): void {
  client
    .command('create')
    .description('create an API client; its secret is shown only once')
    .requiredOption('--customer <id>', 'customer of the client', uuid)
    .requiredOption('--scopes <scopes>', `comma-separated, or "all": ${SCOPES.join(', ')}`, scopes)
    .option(...APPROVAL)
    .option('--json', 'print JSON')
    .action((options: CreateOptions) =>
      withMigratedDatabase(async (db, settings) => {
        const granted = grantableScopes(options.scopes, settings.mode)
        await requireCustomer(db, options.customer)
        const { customer: customer_id, approval } = options
        const change = { operation: 'bursar client create', values: { scopes: granted }, approval }
        const made = await approved(db, settings, { ...change, customer_id, id: 'new' }, async (tx) => {
          const created = await createApiClient(tx, await openRowMacs(settings), options.customer, granted)
          const changes = { after: { scopes: granted } }
          const record = audited(originOfCommand(), 'api_client.create', created.client_id, changes)
          await recordNow(tx, options.customer, record)
          return created
        })
        const { client_id } = made
        logOperator(settings, 'created a client', {
          client_id,
          customer_id: options.customer,
          scopes: granted,
        })
        print(options.json ? made : `client_id:     ${made.client_id}\nclient_secret: ${made.client_secret}`)
      }),
    )
}

function defineListClients(client: Command): void {
  client
    .command('list')
    .description('list the API clients, oldest first; secrets are not stored')
    .option('--customer <id>', 'only clients of this customer', uuid)
    .option('--json', 'print JSON')
    .action((options: { customer?: string; json?: true }) =>
      withDatabase(async (db, settings) => {
        if (options.customer !== undefined) await requireCustomer(db, options.customer)
        const clients = await listApiClients(db, options.customer)
        if (options.json) return print({ clients })
        const columns = ['client_id', 'customer_id', 'created_at', 'disabled_at', 'scopes']
        print(
          table(
            columns,
            clients.map((one) => [
              one.client_id,
              one.customer_id,
              one.created_at,
              one.disabled_at,
              scopesOf(settings.mode).every((scope) => one.scopes.includes(scope))
                ? 'all'
                : one.scopes.join(' '),
            ]),
          ),
        )
      }),
    )
}

const APPROVAL = ['--approval <id>', 'approval of this change, where the policy requires one', uuid] as const

interface CreateOptions {
  customer: string
  scopes: ClientScope[] | 'all'
  approval?: string
  json?: true
}

interface RotateOptions {
  grace: number
  approval?: string
  json?: true
}

interface AskedChange {
  customer_id: string
  /** The client, or `new`. */
  id: string
  operation: string
  values: object
  approval: string | undefined
}

/** Changes the credentials of a customer, after its approvers where its policy requires them. */
async function approved<T>(
  db: Database,
  settings: Settings,
  { customer_id, id, operation, values, approval }: AskedChange,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  const { rowCount } = await db.query('select 1 from policies where customer_id = $1 limit 1', [customer_id])
  // Without a policy, no change waits for approvers.
  if (rowCount === 0 && approval === undefined) return transaction(db, work)
  const policies = new Policies(await openMasterKeys(settings), { sandbox: settings.mode === 'sandbox' })
  const change = { subject: 'CREDENTIALS', operation, target: { type: 'api_client', id }, values } as const
  const asked = { ...change, customer_id, origin: originOfCommand(), approval_id: approval }
  return withApprovedChange(db, policies, asked, work)
}

/** The customer of a client. Throws an Error when there is no such client. */
async function customerOf(db: Database, clientId: string): Promise<string> {
  const { rows } = await db.query<{ customer_id: string }>(
    'select customer_id from api_clients where id = $1',
    [clientId],
  )
  if (rows[0] === undefined) throw new Error(`there is no client ${clientId}`)
  return rows[0].customer_id
}

function defineRotateClient(client: Command): void {
  client
    .command('rotate')
    .description('give a client a new secret, which is shown only once; access tokens stay valid')
    .argument('<client_id>', 'client', uuid)
    .option(
      '--grace <seconds>',
      'how long the previous secret is accepted',
      wholeNumber(0, GRACE_SECONDS_MAX),
      24 * 60 * 60,
    )
    .option(...APPROVAL)
    .option('--json', 'print JSON')
    .action((client_id: string, { grace, approval, json }: RotateOptions) =>
      withMigratedDatabase(async (db, settings) => {
        const change = { operation: 'bursar client rotate', values: { grace_seconds: grace }, approval }
        const of = { customer_id: await customerOf(db, client_id), id: client_id }
        const rotated = await approved(db, settings, { ...of, ...change }, async (tx) => {
          const macs = await openRowMacs(settings)
          const changed = await rotateSecret(tx, macs, client_id, grace, originOfCommand())
          if (changed === undefined) throw new Error(`there is no enabled client ${client_id}`)
          return changed
        })
        const { previous_secret_expires_at } = rotated
        logOperator(settings, "rotated a client's secret", { client_id, previous_secret_expires_at })
        print(
          json
            ? { client_id, client_secret: rotated.client_secret, previous_secret_expires_at }
            : `client_id:     ${client_id}\nclient_secret: ${rotated.client_secret}\nThe previous secret is accepted until ${previous_secret_expires_at}.`,
        )
      }),
    )
}

function defineClientChanges(client: Command): void {
  client
    .command('disable')
    .description('disable a client and refuse its access tokens within a second')
    .argument('<client_id>', 'client', uuid)
    .option('--json', 'print JSON')
    .action((client_id: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        if (!(await disableApiClient(db, client_id, originOfCommand())))
          throw new Error(`there is no client ${client_id}`)
        logOperator(settings, 'disabled a client', { client_id })
        print(json ? { client_id, disabled: true } : `Client ${client_id} is disabled.`)
      }),
    )
  client
    .command('enable')
    .description('undo disable; access tokens that have not expired are accepted again')
    .argument('<client_id>', 'client', uuid)
    .option(...APPROVAL)
    .option('--json', 'print JSON')
    .action((client_id: string, { approval, json }: { approval?: string; json?: true }) =>
      withDatabase(async (db, settings) => {
        const change = { operation: 'bursar client enable', values: {}, approval }
        const of = { customer_id: await customerOf(db, client_id), id: client_id }
        await approved(db, settings, { ...of, ...change }, async (tx) =>
          enableApiClient(tx, await openRowMacs(settings), client_id, originOfCommand()),
        )
        logOperator(settings, 'enabled a client', { client_id })
        print(json ? { client_id, disabled: false } : `Client ${client_id} is enabled.`)
      }),
    )
}

function defineAccountChanges(account: Command): void {
  for (const [name, disabled, description] of [
    ['disable', true, "stop an account's withdrawals, as the platform's administrator"],
    ['enable', false, 'undo disable; an account that its API user disabled stays disabled'],
  ] as const) {
    account
      .command(name)
      .description(description)
      .argument('<account_id>', 'account', uuid)
      .option('--user', 'act for the API user instead of the administrator')
      .option('--json', 'print JSON')
      .action((account_id: string, { user, json }: { user?: true; json?: true }) =>
        withDatabase(async (db, settings) => {
          const flags = user ? { user_disabled: disabled } : { admin_disabled: disabled }
          const changed = await setAccountDisabled(db, account_id, flags, originOfCommand())
          if (changed === undefined) throw new Error(`there is no account ${account_id}`)
          logOperator(settings, `${name}d an account`, { account_id, ...flags })
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

/** The scopes to grant a client. Throws for scopes of operations that the mode does not have. */
function grantableScopes(asked: ClientScope[] | 'all', mode: Settings['mode']): ClientScope[] {
  const known = scopesOf(mode)
  if (asked === 'all') return known
  const missing = asked.filter((scope) => !known.includes(scope))
  if (missing.length > 0)
    throw new Error(`--scopes: ${missing.join(', ')}: no operation of ${mode} mode has this scope`)
  return asked
}

function scopes(text: string): ClientScope[] | 'all' {
  if (text === 'all') return 'all'
  const names = text.split(/[ ,]+/).filter((name) => name !== '')
  const unknown = names.filter((name) => !(SCOPES as readonly string[]).includes(name))
  if (names.length === 0 || unknown.length > 0)
    throw new InvalidArgumentError(names.length === 0 ? 'no scope.' : `unknown scope: ${unknown.join(', ')}.`)
  return names as ClientScope[]
}
