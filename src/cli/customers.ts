import { InvalidArgumentError, type Command } from 'commander'
import { setAccountDisabled } from '../resources/accounts/set-account-disabled.ts'
import { createCustomer } from '../access/customers/create-customer.ts'
import { listCustomers } from '../access/customers/list-customers.ts'
import { transaction, type Database, type Transaction } from '../db/database.ts'
import { SCOPES, scopesOf, type ClientScope } from '../contract/scopes.ts'
import { openMasterKeys } from '../keys/master-keys.ts'
import { withApprovedChange } from '../governance/approvals/approved-change.ts'
import { Policies } from '../governance/policy/policy.ts'
import { freeze, unfreeze } from '../money/records/freezes.ts'
import type { Settings } from '../settings.ts'
import {
  createApiClient,
  disableApiClient,
  enableApiClient,
  GRACE_SECONDS_MAX,
  listApiClients,
  rotateSecret,
} from '../access/tokens/api-clients.ts'
import { audited, recordNow } from '../money/records/audited.ts'
import {
  APPROVAL,
  inDatabase,
  inMigratedDatabase,
  logOperator,
  openRowMacs,
  originOfCommand,
  requireCustomer,
  uuid,
  wholeNumber,
} from './command-line.ts'
import { defineCustomerLimits } from './customer-limits.ts'
import { define, type Subcommand } from './define.ts'
import { EXIT } from './exit.ts'
import { signingEnds, STILL_SIGNING } from './freezes.ts'
import { linesOf } from './output.ts'
import { ownProcess } from './own-process.ts'

/** Defines `bursar customer`, `bursar client` and `bursar account`. */
export function customerCommands(program: Command): void {
  const customer = define(program, 'customer', 'customers: the tenants, which own all other records')
  defineCustomers(customer)
  defineCustomerLimits(customer)

  const client = define(program, 'client', 'API clients: the credentials of a customer')
  defineCreateClient(client)
  define(client, 'list', 'list the API clients, oldest first; secrets are not stored')
    .option('--customer <id>', 'only clients of this customer', uuid)
    .list(inDatabase, {
      key: 'clients',
      read: async ({ db }, { customer }: { customer?: string }) => {
        await requireCustomer(db, customer)
        return listApiClients(db, customer)
      },
      columns: [
        ...(['client_id', 'customer_id', 'created_at', 'disabled_at'] as const),
        ['scopes', ({ scopes }, { settings }) => scopesInShort(scopes, settings.mode)],
      ],
    })
  defineRotateClient(client)
  defineClientChanges(client)

  defineAccountChanges(define(program, 'account', 'accounts: a disabled account cannot withdraw'))
}

function defineCustomers(customer: Subcommand): void {
  define(customer, 'create', 'create a customer with its default profile')
    .requiredOption('--name <name>', 'name of the customer')
    .answer(inMigratedDatabase, async ({ db, settings }, { name }: { name: string }) => {
      const made = await transaction(db, async (tx) => {
        const created = await createCustomer(tx, name)
        const { customer_id } = created
        await recordNow(tx, customer_id, audited(originOfCommand(), 'customer.create', customer_id))
        return created
      })
      logOperator(settings, 'created a customer', made)
      return [made, `customer_id: ${made.customer_id}\nprofile_id:  ${made.profile_id}`]
    })
  define(customer, 'list', 'list the customers, oldest first').list(inDatabase, {
    key: 'customers',
    read: ({ db }) => listCustomers(db),
    columns: ['customer_id', 'name', 'created_at', 'disabled_at', '>clients', '>profiles'],
  })
  define(
    customer,
    'disable',
    'freeze a customer and refuse its access tokens within a second; deposits are still credited',
  )
    .argument('<customer_id>', 'customer', uuid)
    .answer(inDatabase, async ({ db, settings }, customer_id: string) => {
      await requireCustomer(db, customer_id)
      const target = { kind: 'CUSTOMER', customer_id } as const
      const detail = 'its access tokens are refused, and no money leaves it'
      await freeze(db, originOfCommand(), target, 'DISABLED', detail)
      logOperator(settings, 'disabled a customer', { customer_id })
      const signing_ended = await signingEnds(db)
      if (!signing_ended) ownProcess().exitCode = EXIT.failed
      const text = `Customer ${customer_id} is disabled.${signing_ended ? '' : `\n${STILL_SIGNING}`}`
      return [{ customer_id, disabled: true, signing_ended }, text]
    })
  define(customer, 'enable', 'undo disable; freezes with other causes stay')
    .argument('<customer_id>', 'customer', uuid)
    .answer(inDatabase, async ({ db, settings }, customer_id: string) => {
      await requireCustomer(db, customer_id)
      const target = { kind: 'CUSTOMER', customer_id } as const
      await unfreeze(db, await openRowMacs(settings), originOfCommand(), target, 'DISABLED')
      logOperator(settings, 'enabled a customer', { customer_id })
      return [{ customer_id, disabled: false }, `Customer ${customer_id} is enabled.`]
    })
}

interface CreateOptions {
  customer: string
  scopes: ClientScope[] | 'all'
  approval?: string
}

function defineCreateClient(client: Subcommand): void {
  define(client, 'create', 'create an API client; its secret is shown only once')
    .requiredOption('--customer <id>', 'customer of the client', uuid)
    .requiredOption('--scopes <scopes>', `comma-separated, or "all": ${SCOPES.join(', ')}`, scopes)
    .option(...APPROVAL)
    .answer(inMigratedDatabase, async ({ db, settings }, options: CreateOptions) => {
      const granted = grantableScopes(options.scopes, settings.mode)
      await requireCustomer(db, options.customer)
      const { customer: customer_id, approval } = options
      const change = { operation: 'bursar client create', values: { scopes: granted }, approval }
      const made = await approved(db, settings, { ...change, customer_id, id: 'new' }, async (tx) => {
        const created = await createApiClient(tx, await openRowMacs(settings), customer_id, granted)
        const changes = { after: { scopes: granted } }
        const record = audited(originOfCommand(), 'api_client.create', created.client_id, changes)
        await recordNow(tx, customer_id, record)
        return created
      })
      const { client_id, client_secret } = made
      logOperator(settings, 'created a client', { client_id, customer_id, scopes: granted })
      return [made, `client_id:     ${client_id}\nclient_secret: ${client_secret}`]
    })
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

function defineRotateClient(client: Subcommand): void {
  define(client, 'rotate', 'give a client a new secret, which is shown only once; access tokens stay valid')
    .argument('<client_id>', 'client', uuid)
    .option(
      '--grace <seconds>',
      'how long the previous secret is accepted',
      wholeNumber(0, GRACE_SECONDS_MAX),
      24 * 60 * 60,
    )
    .option(...APPROVAL)
    .answer(
      inMigratedDatabase,
      async ({ db, settings }, client_id: string, options: { grace: number; approval?: string }) => {
        const { grace, approval } = options
        const change = { operation: 'bursar client rotate', values: { grace_seconds: grace }, approval }
        const of = { customer_id: await customerOf(db, client_id), id: client_id }
        const rotated = await approved(db, settings, { ...of, ...change }, async (tx) => {
          const macs = await openRowMacs(settings)
          const changed = await rotateSecret(tx, macs, client_id, grace, originOfCommand())
          if (changed === undefined) throw new Error(`there is no enabled client ${client_id}`)
          return changed
        })
        const { client_secret, previous_secret_expires_at } = rotated
        logOperator(settings, "rotated a client's secret", { client_id, previous_secret_expires_at })
        return [
          { client_id, client_secret, previous_secret_expires_at },
          `client_id:     ${client_id}\nclient_secret: ${client_secret}\nThe previous secret is accepted until ${previous_secret_expires_at}.`,
        ]
      },
    )
}

function defineClientChanges(client: Subcommand): void {
  define(client, 'disable', 'disable a client and refuse its access tokens within a second')
    .argument('<client_id>', 'client', uuid)
    .answer(inDatabase, async ({ db, settings }, client_id: string) => {
      if (!(await disableApiClient(db, client_id, originOfCommand())))
        throw new Error(`there is no client ${client_id}`)
      logOperator(settings, 'disabled a client', { client_id })
      return [{ client_id, disabled: true }, `Client ${client_id} is disabled.`]
    })
  define(client, 'enable', 'undo disable; access tokens that have not expired are accepted again')
    .argument('<client_id>', 'client', uuid)
    .option(...APPROVAL)
    .answer(inDatabase, async ({ db, settings }, client_id: string, { approval }: { approval?: string }) => {
      const change = { operation: 'bursar client enable', values: {}, approval }
      const of = { customer_id: await customerOf(db, client_id), id: client_id }
      await approved(db, settings, { ...of, ...change }, async (tx) =>
        enableApiClient(tx, await openRowMacs(settings), client_id, originOfCommand()),
      )
      logOperator(settings, 'enabled a client', { client_id })
      return [{ client_id, disabled: false }, `Client ${client_id} is enabled.`]
    })
}

function defineAccountChanges(account: Subcommand): void {
  for (const [name, disabled, description] of [
    ['disable', true, "stop an account's withdrawals, as the platform's administrator"],
    ['enable', false, 'undo disable; an account that its API user disabled stays disabled'],
  ] as const)
    define(account, name, description)
      .argument('<account_id>', 'account', uuid)
      .option('--user', 'act for the API user instead of the administrator')
      .answer(inDatabase, async ({ db, settings }, account_id: string, { user }: { user?: true }) => {
        const flags = user ? { user_disabled: disabled } : { admin_disabled: disabled }
        const changed = await setAccountDisabled(db, account_id, flags, originOfCommand())
        if (changed === undefined) throw new Error(`there is no account ${account_id}`)
        logOperator(settings, `${name}d an account`, { account_id, ...flags })
        const { admin_disabled, user_disabled, summary_status } = changed
        const shown = { admin_disabled, user_disabled, summary_status }
        return [{ account_id, ...shown }, linesOf(shown)]
      })
}

const scopesInShort = (scopes: readonly string[], mode: Settings['mode']): string =>
  scopesOf(mode).every((scope) => scopes.includes(scope)) ? 'all' : scopes.join(' ')

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
