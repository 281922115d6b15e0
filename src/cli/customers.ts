import { InvalidArgumentError, type Command } from 'commander'
import { setAccountDisabled } from '../resources/accounts/set-account-disabled.ts'
import { listAllCustomers, makeCustomer } from '../resources/operators/customers.ts'
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
import { COMMON, textUpTo, uuid, wholeNumber } from './arguments.ts'
import {
  approved,
  inDatabase,
  inMigratedDatabase,
  requireCustomer,
  type AskedChange,
} from './command-line.ts'
import { group } from './define.ts'
import { SIGNING_WAIT_MS, STILL_SIGNING } from './freezes.ts'
import { linesOf } from './output.ts'

/** In characters. */
const CLIENT_NAME_LENGTH_MAX = 100
const GRACE_SECONDS = 24 * 60 * 60

const WORDS = {
  ...COMMON,
  '<customer_id>': ['customer', uuid],
  '<client_id>': ['client', uuid],
  '<account_id>': ['account', uuid],
  '<name>': ['the name', textUpTo(CLIENT_NAME_LENGTH_MAX)],
  '--name <name>': ['its name, for people', textUpTo(CLIENT_NAME_LENGTH_MAX)],
  '--scopes <scopes>': [`comma-separated, or "all": ${SCOPES.join(', ')}`, scopes],
  '--grace <seconds>': [
    `how long the previous secret is accepted (default: ${GRACE_SECONDS})`,
    wholeNumber(0, GRACE_SECONDS_MAX),
  ],
  '--user': ['act for the API user instead of the administrator'],
} as const

export function customerCommands(program: Command): void {
  const about = 'customers: the tenants, which own all other records'
  const customer = group(program, ['customer', about], inDatabase, WORDS)
  customer.operation('create --name <name>', makeCustomer, {
    in: inMigratedDatabase,
    about: 'create a customer with its default profile',
    says: linesOf,
    logs: 'created a customer',
  })
  customer.list('list', {
    about: 'list the customers, oldest first',
    key: 'customers',
    run: async (at, given) => (await at.operate(listAllCustomers, given)).items,
    columns: ['customer_id', 'name', 'created_at', 'disabled_at', '>clients', '>profiles'],
  })
  customer.command('disable <customer_id>', {
    about: 'freeze a customer and refuse its access tokens within a second; deposits are still credited',
    async run({ db, origin }, { customer_id }) {
      await requireCustomer(db, customer_id)
      const detail = 'its access tokens are refused, and no money leaves it'
      await freeze(db, origin, { kind: 'CUSTOMER', customer_id }, 'DISABLED', detail)
      return { customer_id, disabled: true, signing_ended: await signingEnds(db, SIGNING_WAIT_MS) }
    },
    says: ({ customer_id, signing_ended }) =>
      `Customer ${customer_id} is disabled.${signing_ended ? '' : `\n${STILL_SIGNING}`}`,
    fails: ({ signing_ended }) => !signing_ended,
    logs: 'disabled a customer',
  })
  customer.command('enable <customer_id>', {
    about: 'undo disable; freezes with other causes stay',
    async run({ db, origin, rowMacs }, { customer_id }) {
      await requireCustomer(db, customer_id)
      await unfreeze(db, await rowMacs(), origin, { kind: 'CUSTOMER', customer_id }, 'DISABLED')
      return { customer_id, disabled: false }
    },
    says: ({ customer_id }) => `Customer ${customer_id} is enabled.`,
    logs: 'enabled a customer',
  })
  clientCommands(program)
  accountCommands(program)
}

function clientCommands(program: Command): void {
  const about = 'API clients: the credentials of a customer'
  const client = group(program, ['client', about], inDatabase, WORDS)
  client.command('create --customer <id> [--name <name>] --scopes <scopes> [--approval <id>]', {
    in: inMigratedDatabase,
    about: 'create an API client; its secret is shown only once',
    async run(at, { customer: customer_id, name, scopes: asked, approval }) {
      const values = { ...(name !== undefined && { name }), scopes: grantableScopes(asked, at.settings.mode) }
      return approved(at, changeOf(customer_id, 'new', 'create', values, approval), async (tx) =>
        registerApiClient(tx, await at.rowMacs(), customer_id, values, at.origin),
      )
    },
    says: ({ client_id, client_secret }) => linesOf({ client_id, client_secret }),
    logs: 'created a client',
  })
  client.list('list [--customer <id>]', {
    about: 'list the API clients, oldest first; secrets are not stored',
    key: 'clients',
    run: ({ db }, { customer }) => listApiClients(db, customer),
    columns: [
      ...(['client_id', 'name', 'customer_id', 'created_at', 'last_used_at', 'disabled_at'] as const),
      ['scopes', ({ scopes }, { settings }) => scopesInShort(scopes, settings.mode)],
    ],
  })
  client.command('rotate <client_id> [--grace <seconds>] [--approval <id>]', {
    in: inMigratedDatabase,
    about: 'give a client a new secret, which is shown only once; access tokens stay valid',
    async run(at, { client_id, grace = GRACE_SECONDS, approval }) {
      const customer_id = await customerOf(at.db, client_id)
      const change = changeOf(customer_id, client_id, 'rotate', { grace_seconds: grace }, approval)
      const rotated = await approved(at, change, async (tx) => {
        const changed = await rotateSecret(tx, await at.rowMacs(), client_id, grace, at.origin)
        if (changed === undefined) throw new Error(`there is no enabled client ${client_id}`)
        return changed
      })
      const { client_secret, previous_secret_expires_at } = rotated
      return { client_id, client_secret, previous_secret_expires_at }
    },
    says: ({ previous_secret_expires_at, ...shown }) =>
      `${linesOf(shown)}\nThe previous secret is accepted until ${previous_secret_expires_at}.`,
    logs: "rotated a client's secret",
  })
  client.command('rename <client_id> <name>', {
    in: inMigratedDatabase,
    about: 'give a client another name, for people',
    async run({ db, origin }, { client_id, name }) {
      const customer_id = await customerOf(db, client_id)
      await transaction(db, (tx) => renameApiClient(tx, customer_id, client_id, name, origin))
      return { client_id, name }
    },
    says: ({ client_id, name }) => `Client ${client_id} is now ${name}.`,
    logs: 'renamed a client',
  })
  client.command('disable <client_id>', {
    about: 'disable a client and refuse its access tokens within a second',
    async run({ db, origin }, { client_id }) {
      if (!(await disableApiClient(db, client_id, origin))) throw new Error(`there is no client ${client_id}`)
      return { client_id, disabled: true }
    },
    says: ({ client_id }) => `Client ${client_id} is disabled.`,
    logs: 'disabled a client',
  })
  client.command('enable <client_id> [--approval <id>]', {
    about: 'undo disable; access tokens that have not expired are accepted again',
    async run(at, { client_id, approval }) {
      const change = changeOf(await customerOf(at.db, client_id), client_id, 'enable', {}, approval)
      await approved(at, change, async (tx) => enableApiClient(tx, await at.rowMacs(), client_id, at.origin))
      return { client_id, disabled: false }
    },
    says: ({ client_id }) => `Client ${client_id} is enabled.`,
    logs: 'enabled a client',
  })
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

function accountCommands(program: Command): void {
  const about = 'accounts: a disabled account cannot withdraw'
  const account = group(program, ['account', about], inDatabase, WORDS)
  for (const [name, disabled, about] of [
    ['disable', true, "stop an account's withdrawals, as the platform's administrator"],
    ['enable', false, 'undo disable; an account that its API user disabled stays disabled'],
  ] as const)
    account.command(`${name} <account_id> [--user]`, {
      about,
      async run({ db, origin }, { account_id, user }) {
        const flags = user ? { user_disabled: disabled } : { admin_disabled: disabled }
        const changed = await setAccountDisabled(db, account_id, flags, origin)
        if (changed === undefined) throw new Error(`there is no account ${account_id}`)
        const { admin_disabled, user_disabled, summary_status } = changed
        return { account_id, admin_disabled, user_disabled, summary_status }
      },
      says: ({ account_id: _, ...shown }) => linesOf(shown),
      logs: `${name}d an account`,
      logged: (changed) => changed,
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
