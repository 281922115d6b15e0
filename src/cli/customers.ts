import { InvalidArgumentError, type Command } from 'commander'
import { setAccountDisabled } from '../resources/accounts/set-account-disabled.ts'
import { registerCustomer } from '../access/customers/create-customer.ts'
import { listCustomers } from '../access/customers/list-customers.ts'
import { transaction, type Database } from '../db/database.ts'
import { SCOPES, scopesOf, type ClientScope } from '../contract/scopes.ts'
import { freeze, signingEnds, unfreeze } from '../money/records/freezes.ts'
import { GRACE_SECONDS_MAX } from '../contract/fields.ts'
import type { Settings } from '../settings.ts'
import {
  disableApiClient,
  enableApiClient,
  listApiClients,
  registerApiClient,
  renameApiClient,
  rotateSecret,
} from '../access/tokens/api-clients.ts'
import { APPROVAL, textUpTo, uuid, wholeNumber } from './arguments.ts'
import {
  approved,
  inDatabase,
  inMigratedDatabase,
  requireCustomer,
  type AskedChange,
} from './command-line.ts'
import { define, type Subcommand } from './define.ts'
import { EXIT } from './exit.ts'
import { SIGNING_WAIT_MS, STILL_SIGNING } from './freezes.ts'
import { linesOf } from './output.ts'
import { ownProcess } from './own-process.ts'

export function customerCommands(program: Command): void {
  const customer = define(program, 'customer', 'customers: the tenants, which own all other records')
  defineCustomers(customer)

  const client = define(program, 'client', 'API clients: the credentials of a customer')
  defineCreateClient(client)
  define(client, 'list', 'list the API clients, oldest first; secrets are not stored')
    .option('--customer <id>', 'only clients of this customer', uuid)
    .list(inDatabase, {
      key: 'clients',
      read: ({ db }, { customer }: { customer?: string }) => listApiClients(db, customer),
      columns: [
        ...(['client_id', 'name', 'customer_id', 'created_at', 'last_used_at', 'disabled_at'] as const),
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
    .answer(inMigratedDatabase, async ({ db, did, origin }, { name }: { name: string }) => {
      const made = await registerCustomer(db, name, origin)
      did('created a customer', made)
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
    .answer(inDatabase, async ({ db, did, origin }, customer_id: string) => {
      await requireCustomer(db, customer_id)
      const target = { kind: 'CUSTOMER', customer_id } as const
      const detail = 'its access tokens are refused, and no money leaves it'
      await freeze(db, origin, target, 'DISABLED', detail)
      did('disabled a customer', { customer_id })
      const signing_ended = await signingEnds(db, SIGNING_WAIT_MS)
      if (!signing_ended) ownProcess().exitCode = EXIT.failed
      const text = `Customer ${customer_id} is disabled.${signing_ended ? '' : `\n${STILL_SIGNING}`}`
      return [{ customer_id, disabled: true, signing_ended }, text]
    })
  define(customer, 'enable', 'undo disable; freezes with other causes stay')
    .argument('<customer_id>', 'customer', uuid)
    .answer(inDatabase, async ({ db, did, origin, rowMacs }, customer_id: string) => {
      await requireCustomer(db, customer_id)
      const target = { kind: 'CUSTOMER', customer_id } as const
      await unfreeze(db, await rowMacs(), origin, target, 'DISABLED')
      did('enabled a customer', { customer_id })
      return [{ customer_id, disabled: false }, `Customer ${customer_id} is enabled.`]
    })
}

/** In characters. */
const CLIENT_NAME_LENGTH_MAX = 100

interface CreateOptions {
  customer: string
  name?: string
  scopes: ClientScope[] | 'all'
  approval?: string
}

function defineCreateClient(client: Subcommand): void {
  define(client, 'create', 'create an API client; its secret is shown only once')
    .requiredOption('--customer <id>', 'customer of the client', uuid)
    .option('--name <name>', 'its name, for people', textUpTo(CLIENT_NAME_LENGTH_MAX))
    .requiredOption('--scopes <scopes>', `comma-separated, or "all": ${SCOPES.join(', ')}`, scopes)
    .option(...APPROVAL)
    .answer(
      inMigratedDatabase,
      async (at, { customer: customer_id, name, scopes: asked, approval }: CreateOptions) => {
        const granted = grantableScopes(asked, at.settings.mode)
        const values = { ...(name !== undefined && { name }), scopes: granted }
        const change = changeOf(customer_id, 'new', 'create', values, approval)
        const made = await approved(at, change, async (tx) => {
          return registerApiClient(tx, await at.rowMacs(), customer_id, values, at.origin)
        })
        const { client_id, client_secret } = made
        at.did('created a client', { client_id, customer_id, ...values })
        return [made, `client_id:     ${client_id}\nclient_secret: ${client_secret}`]
      },
    )
}

/** A change of the credentials of a customer. `id` is the client, or `new`. */
const changeOf = (
  customer_id: string,
  id: string,
  command: string,
  values: object,
  approval: string | undefined,
): AskedChange => ({
  subject: 'CREDENTIALS',
  customer_id,
  operation: `bursar client ${command}`,
  target: { type: 'api_client', id },
  values,
  approval,
})

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
      async (at, client_id: string, { grace, approval }: { grace: number; approval?: string }) => {
        const customer_id = await customerOf(at.db, client_id)
        const change = changeOf(customer_id, client_id, 'rotate', { grace_seconds: grace }, approval)
        const rotated = await approved(at, change, async (tx) => {
          const changed = await rotateSecret(tx, await at.rowMacs(), client_id, grace, at.origin)
          if (changed === undefined) throw new Error(`there is no enabled client ${client_id}`)
          return changed
        })
        const { client_secret, previous_secret_expires_at } = rotated
        at.did("rotated a client's secret", { client_id, previous_secret_expires_at })
        return [
          { client_id, client_secret, previous_secret_expires_at },
          `client_id:     ${client_id}\nclient_secret: ${client_secret}\nThe previous secret is accepted until ${previous_secret_expires_at}.`,
        ]
      },
    )
}

function defineClientChanges(client: Subcommand): void {
  define(client, 'rename', 'give a client another name, for people')
    .argument('<client_id>', 'client', uuid)
    .argument('<name>', 'the name', textUpTo(CLIENT_NAME_LENGTH_MAX))
    .answer(inMigratedDatabase, async ({ db, did, origin }, client_id: string, name: string) => {
      const customer_id = await customerOf(db, client_id)
      await transaction(db, (tx) => renameApiClient(tx, customer_id, client_id, name, origin))
      did('renamed a client', { client_id, name })
      return [{ client_id, name }, `Client ${client_id} is now ${name}.`]
    })
  define(client, 'disable', 'disable a client and refuse its access tokens within a second')
    .argument('<client_id>', 'client', uuid)
    .answer(inDatabase, async ({ db, did, origin }, client_id: string) => {
      if (!(await disableApiClient(db, client_id, origin))) throw new Error(`there is no client ${client_id}`)
      did('disabled a client', { client_id })
      return [{ client_id, disabled: true }, `Client ${client_id} is disabled.`]
    })
  define(client, 'enable', 'undo disable; access tokens that have not expired are accepted again')
    .argument('<client_id>', 'client', uuid)
    .option(...APPROVAL)
    .answer(inDatabase, async (at, client_id: string, { approval }: { approval?: string }) => {
      const change = changeOf(await customerOf(at.db, client_id), client_id, 'enable', {}, approval)
      await approved(at, change, async (tx) => enableApiClient(tx, await at.rowMacs(), client_id, at.origin))
      at.did('enabled a client', { client_id })
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
      .answer(inDatabase, async ({ db, did, origin }, account_id: string, { user }: { user?: true }) => {
        const flags = user ? { user_disabled: disabled } : { admin_disabled: disabled }
        const changed = await setAccountDisabled(db, account_id, flags, origin)
        if (changed === undefined) throw new Error(`there is no account ${account_id}`)
        did(`${name}d an account`, { account_id, ...flags })
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
