import type { Command } from 'commander'
import { requireBuiltConsole } from '../access/console/files.ts'
import { ROLES } from '../contract/roles.ts'
import { transaction, type Database, type Transaction } from '../db/database.ts'
import {
  createOperator,
  disableOperator,
  enableOperator,
  LINK_SECONDS,
  listOperators,
  lockOperator,
  makeLink,
  recordOperatorChange,
  setRole,
  type Operator,
} from '../access/operators/operators.ts'
import { listPasskeys, removePasskey } from '../access/operators/passkeys.ts'
import { endSession, listSessions } from '../access/operators/sessions.ts'
import { SettingsError, type Settings } from '../settings.ts'
import { COMMON, uuid } from './arguments.ts'
import {
  approved,
  baseUrlOf,
  inDatabase,
  inMigratedDatabase,
  type AskedChange,
  type AtDatabase,
} from './command-line.ts'
import { group, type Group } from './define.ts'
import { linesOf } from './output.ts'

const WORDS = {
  ...COMMON,
  '<operator_id>': ['operator', uuid],
  '<role>': ['the new role', ROLES],
  '<id>': ['session or passkey', uuid],
  '--name <name>': ['name of the person'],
  '--role <role>': ['what the operator may do', ROLES],
  '--customer <id>': ['the only customer that the operator may act for (default: any)', uuid],
  '--openid-subject <subject>': ['its subject (sub) at the provider of BURSAR_OPENID_ISSUER'],
} as const

export function operatorCommands(program: Command): void {
  const operator = group(program, ['operator', 'operators: the people who sign in'], inDatabase, WORDS)
  operator.command(
    'create --name <name> --role <role> [--customer <id>] [--openid-subject <subject>] [--approval <id>]',
    {
      in: inMigratedDatabase,
      about: 'create an operator; give it a way to sign in with: bursar operator link',
      async run(at, { name, role, customer: customerId, openid_subject, approval }) {
        const openId = openIdOf(openid_subject, at.settings)
        const values = { name, role, openid_subject: openid_subject ?? null }
        const change = { approval, operation: 'operator create', values }
        const made = await ofCustomer(at, customerId, 'new', change, async (tx) => {
          const operator = await createOperator(tx, await at.rowMacs(), { name, role, customerId, openId })
          const after = { role, ...(customerId !== undefined && { customer_id: customerId }) }
          await recordOperatorChange(tx, operator, 'operator.create', {
            origin: at.origin,
            changes: { after },
          })
          return operator
        })
        return shownOf(made)
      },
      says: ({ operator_id }) => `operator_id: ${operator_id}`,
      logs: 'created an operator',
      logged: ({ operator_id, role, customer_id }) => ({ operator_id, role, customer_id }),
    },
  )
  operator.list('list', {
    about: 'list the operators, oldest first',
    key: 'operators',
    run: async ({ db }) => (await listOperators(db)).map(shownOf),
    columns: ['operator_id', 'name', 'role', 'customer_id', 'created_at', 'disabled_at'],
  })
  defineChanges(operator)
  defineWays(operator)
}

function defineChanges(operator: Group<AtDatabase, typeof WORDS>): void {
  operator.command('link <operator_id>', {
    about: `print a link with which the operator signs in once, within ${LINK_SECONDS / 60} minutes; earlier links end`,
    async run(at, { operator_id }) {
      // The page behind the link is the console's.
      requireBuiltConsole()
      return linkOf(at, operator_id, '/sign-in')
    },
    says: describeLink,
    logs: 'made a sign-in link',
    logged: ofLink,
  })
  operator.command('role <operator_id> <role> [--approval <id>]', {
    about: 'give an operator another role; its access tokens of the earlier role are refused within a second',
    async run(at, { operator_id, role, approval }) {
      const change = { approval, operation: 'operator role', id: operator_id, values: { role } }
      await changingWithApproval(at, change, async (tx, found) => {
        if (found.role !== role) await setRole(tx, await at.rowMacs(), found, role, at.origin)
      })
      return { operator_id, role }
    },
    says: ({ operator_id, role }) => `Operator ${operator_id} is ${role}.`,
    logs: "changed an operator's role",
  })
  operator.command('disable <operator_id> [--approval <id>]', {
    about: 'disable an operator: its sessions and access tokens end within a second',
    // Disabling never waits for approvers.
    async run({ db, origin }, { operator_id }) {
      await changing(db, operator_id, async (tx, found) => {
        if (found.disabled_at === null) await disableOperator(tx, found, origin)
      })
      return { operator_id, disabled: true }
    },
    says: ({ operator_id }) => `Operator ${operator_id} is disabled.`,
    logs: 'disabled an operator',
  })
  operator.command('enable <operator_id> [--approval <id>]', {
    about: 'undo disable; the operator has to sign in again',
    async run(at, { operator_id: id, approval }) {
      const change = { approval, operation: 'operator enable', id, values: { disabled: false } }
      await changingWithApproval(at, change, async (tx, found) => {
        if (found.disabled_at === null) return
        await enableOperator(tx, await at.rowMacs(), found)
        await recordOperatorChange(tx, found, 'operator.enable', { origin: at.origin })
      })
      return { operator_id: id, disabled: false }
    },
    says: ({ operator_id }) => `Operator ${operator_id} is enabled.`,
    logs: 'enabled an operator',
  })
}

/** The ways in which an operator signs in. */
function defineWays(operator: Group<AtDatabase, typeof WORDS>): void {
  operator.list('sessions <operator_id>', {
    about: "list an operator's sessions, newest first",
    key: 'sessions',
    async run({ db }, { operator_id }) {
      await requireOperator(db, operator_id)
      return (await listSessions(db, operator_id)).map(({ id, is_open, used_at, ...session }) => ({
        ...{ session_id: id, method: session.method, status: is_open ? 'OPEN' : 'ENDED' },
        ...{ created_at: session.created_at, last_used_at: used_at },
        ...{ expires_at: session.expires_at, ended_at: session.ended_at },
      }))
    },
    columns: ['session_id', 'method', 'status', 'created_at', 'last_used_at', 'expires_at'],
  })
  operator.list('passkeys <operator_id>', {
    about: "list an operator's passkeys, oldest first",
    key: 'passkeys',
    async run({ db }, { operator_id }) {
      await requireOperator(db, operator_id)
      return (await listPasskeys(db, operator_id)).map(({ id, name, created_at, used_at }) => ({
        ...{ passkey_id: id, name, created_at, last_used_at: used_at },
      }))
    },
    columns: ['passkey_id', 'name', 'created_at', 'last_used_at'],
  })
  operator.command('revoke <operator_id> <id>', {
    about:
      "end an operator's session, or remove its passkey with the sessions that it opened; access tokens are refused within a second",
    run: ({ db, origin }, { operator_id, id }) =>
      changing(db, operator_id, async (tx, found) => {
        if (await endSession(tx, found, id, origin)) return { session_id: id, revoked: true }
        if (await removePasskey(tx, found, id, origin)) return { passkey_id: id, revoked: true }
        throw new Error(
          `operator ${operator_id} has no session and no passkey ${id}: bursar operator sessions ${operator_id}`,
        )
      }),
    says: (revoked, { id }) => `The ${'session_id' in revoked ? 'session' : 'passkey'} ${id} is revoked.`,
    logs: (revoked) => `revoked an operator's ${'session_id' in revoked ? 'session' : 'passkey'}`,
  })
}

const shownOf = ({ id, name, role, customer_id, openid_subject, created_at, disabled_at }: Operator) => ({
  ...{ operator_id: id, name, role, customer_id, openid_subject, created_at, disabled_at },
})

/** The account of a subject at the configured provider. Throws `SettingsError` when no provider is configured. */
function openIdOf(subject: string | undefined, { openidIssuer }: Settings) {
  if (subject === undefined) return undefined
  if (openidIssuer === undefined)
    throw new SettingsError('BURSAR_OPENID_ISSUER: --openid-subject needs the provider to which it belongs')
  return { issuer: openidIssuer, subject }
}

/** A link with which an operator signs in on a page. */
interface SignInLink {
  operator_id: string
  link: string
  expires_at: string
}

/** Makes a link with which an operator signs in on a page. Throws where the operator is disabled. */
export async function linkOf(at: AtDatabase, operator_id: string, page: string): Promise<SignInLink> {
  const { secret, expires_at } = await changing(at.db, operator_id, async (tx, found) => {
    if (found.disabled_at !== null) throw new Error(`operator ${operator_id} is disabled`)
    await recordOperatorChange(tx, found, 'operator.link', { origin: at.origin })
    return makeLink(tx, await at.rowMacs(), operator_id)
  })
  // Browsers do not send the part after # to any server, so no log of a proxy has the secret.
  return { operator_id, link: `${await baseUrlOf(at)}${page}#${secret}`, expires_at }
}

export const describeLink = ({ link, expires_at }: SignInLink) => linesOf({ link, expires_at })
export const ofLink = ({ operator_id, expires_at }: SignInLink) => ({ operator_id, expires_at })

/** Runs a change of an operator, who is locked, in a transaction. Throws when there is no such operator. */
const changing = <T>(
  db: Database,
  id: string,
  change: (tx: Transaction, operator: Operator) => Promise<T>,
): Promise<T> =>
  transaction(db, async (tx) => {
    const operator = await lockOperator(tx, id)
    if (operator === undefined) throw new Error(`there is no operator ${id}: bursar operator list`)
    return change(tx, operator)
  })

/** As `changing`, for a change that may need the approvers of the operator's customer. That customer never changes. */
async function changingWithApproval<T>(
  at: AtDatabase,
  { id, ...asked }: { id: string; operation: string; values: object; approval: string | undefined },
  change: (tx: Transaction, operator: Operator) => Promise<T>,
): Promise<T> {
  const { customer_id } = await changing(at.db, id, async (_tx, found) => found)
  return ofCustomer(at, customer_id, id, asked, async (tx) => change(tx, (await lockOperator(tx, id))!))
}

/** Makes a change that gives an operator more rights, once its customer's approvers have approved it where required. */
const ofCustomer = <T>(
  at: AtDatabase,
  customer_id: string | null | undefined,
  id: string,
  asked: Pick<AskedChange, 'operation' | 'values' | 'approval'>,
  work: (tx: Transaction) => Promise<T>,
): Promise<T> =>
  customer_id == null
    ? transaction(at.db, work)
    : approved(at, { ...asked, subject: 'OPERATORS', customer_id, target: { type: 'operator', id } }, work)

/** Throws when there is no such operator. */
const requireOperator = (db: Database, id: string): Promise<void> => changing(db, id, async () => undefined)
