import { Option, type Command } from 'commander'
import { requireBuiltConsole } from '../access/console/files.ts'
import { ROLES, type Role } from '../contract/roles.ts'
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
import { APPROVAL, uuid } from './arguments.ts'
import {
  approved,
  baseUrlOf,
  inDatabase,
  inMigratedDatabase,
  type AskedChange,
  type AtDatabase,
} from './command-line.ts'
import { define, type CommandOutput, type Subcommand } from './define.ts'
import { linesOf } from './output.ts'

export function operatorCommands(program: Command): void {
  const operator = define(program, 'operator', 'operators: the people who sign in')
  defineCreate(operator)
  define(operator, 'list', 'list the operators, oldest first').list(inDatabase, {
    key: 'operators',
    read: async ({ db }) => (await listOperators(db)).map(shownOf),
    columns: ['operator_id', 'name', 'role', 'customer_id', 'created_at', 'disabled_at'],
  })
  defineLink(operator)
  defineRole(operator)
  defineChanges(operator)
  defineWays(operator)
  defineRevoke(operator)
}

const shownOf = ({ id, name, role, customer_id, openid_subject, created_at, disabled_at }: Operator) => ({
  ...{ operator_id: id, name, role, customer_id, openid_subject, created_at, disabled_at },
})

function defineCreate(operator: Subcommand): void {
  define(operator, 'create', 'create an operator; give it a way to sign in with: bursar operator link')
    .requiredOption('--name <name>', 'name of the person')
    .addOption(new Option('--role <role>', 'what the operator may do').choices(ROLES).makeOptionMandatory())
    .option('--customer <id>', 'the only customer that the operator may act for (default: any)', uuid)
    .option('--openid-subject <subject>', 'its subject (sub) at the provider of BURSAR_OPENID_ISSUER')
    .option(...APPROVAL)
    .answer(inMigratedDatabase, async (at, options: CreateOptions) => {
      const { name, role, customer: customerId, openidSubject, approval } = options
      const openId = openIdOf(openidSubject, at.settings)
      const values = { name, role, openid_subject: openidSubject ?? null }
      const change = { approval, operation: 'operator create', values }
      const made = await ofCustomer(at, customerId, 'new', change, async (tx) => {
        const operator = await createOperator(tx, await at.rowMacs(), { name, role, customerId, openId })
        const after = { role, ...(customerId !== undefined && { customer_id: customerId }) }
        await recordOperatorChange(tx, operator, 'operator.create', { origin: at.origin, changes: { after } })
        return operator
      })
      at.did('created an operator', { operator_id: made.id, role, customer_id: customerId })
      return [shownOf(made), `operator_id: ${made.id}`]
    })
}

interface CreateOptions {
  name: string
  role: Role
  customer?: string
  openidSubject?: string
  approval?: string
}

/** The account of a subject at the configured provider. Throws `SettingsError` when no provider is configured. */
function openIdOf(subject: string | undefined, { openidIssuer }: Settings) {
  if (subject === undefined) return undefined
  if (openidIssuer === undefined)
    throw new SettingsError('BURSAR_OPENID_ISSUER: --openid-subject needs the provider to which it belongs')
  return { issuer: openidIssuer, subject }
}

function defineLink(operator: Subcommand): void {
  define(
    operator,
    'link',
    `print a link with which the operator signs in once, within ${LINK_SECONDS / 60} minutes; earlier links end`,
  )
    .argument('<operator_id>', 'operator', uuid)
    .answer(inDatabase, async (at, id: string) => {
      // The page behind the link is the console's.
      requireBuiltConsole()
      return linkOf(at, id, '/sign-in', 'made a sign-in link')
    })
}

/** Makes a link with which an operator signs in on a page. Throws where the operator is disabled. */
export async function linkOf(
  at: AtDatabase,
  operator_id: string,
  page: string,
  what: string,
): Promise<CommandOutput> {
  const { db, did, origin, rowMacs } = at
  const { secret, expires_at } = await changing(db, operator_id, async (tx, found) => {
    if (found.disabled_at !== null) throw new Error(`operator ${operator_id} is disabled`)
    await recordOperatorChange(tx, found, 'operator.link', { origin })
    return makeLink(tx, await rowMacs(), operator_id)
  })
  did(what, { operator_id, expires_at })
  // Browsers do not send the part after # to any server, so no log of a proxy has the secret.
  const shown = { link: `${await baseUrlOf(at)}${page}#${secret}`, expires_at }
  return [{ operator_id, ...shown }, linesOf(shown)]
}

function defineRole(operator: Subcommand): void {
  define(
    operator,
    'role',
    'give an operator another role; its access tokens of the earlier role are refused within a second',
  )
    .argument('<operator_id>', 'operator', uuid)
    .addArgument(operator.createArgument('<role>', 'the new role').choices(ROLES))
    .option(...APPROVAL)
    .answer(inDatabase, async (at, id: string, role: Role, { approval }: { approval?: string }) => {
      const change = { approval, operation: 'operator role', id, values: { role } }
      const before = await changingWithApproval(at, change, async (tx, found) => {
        if (found.role === role) return role
        await setRole(tx, await at.rowMacs(), found, role, at.origin)
        return found.role
      })
      at.did("changed an operator's role", { operator_id: id, before, role })
      return [{ operator_id: id, role }, `Operator ${id} is ${role}.`]
    })
}

function defineChanges(operator: Subcommand): void {
  for (const [name, description] of [
    ['disable', 'disable an operator: its sessions and access tokens end within a second'],
    ['enable', 'undo disable; the operator has to sign in again'],
  ] as const) {
    const disabled = name === 'disable'
    define(operator, name, description)
      .argument('<operator_id>', 'operator', uuid)
      .option(...APPROVAL)
      .answer(inDatabase, async (at, id: string, { approval }: { approval?: string }) => {
        const asked = { approval, operation: `operator ${name}`, id, values: { disabled } }
        const work = async (tx: Transaction, found: Operator) => {
          if ((found.disabled_at !== null) === disabled) return
          if (disabled) return disableOperator(tx, found, at.origin)
          await enableOperator(tx, await at.rowMacs(), found)
          await recordOperatorChange(tx, found, 'operator.enable', { origin: at.origin })
        }
        // Disabling never waits for approvers.
        if (disabled) await changing(at.db, id, work)
        else await changingWithApproval(at, asked, work)
        at.did(`${name}d an operator`, { operator_id: id })
        return [{ operator_id: id, disabled }, `Operator ${id} is ${name}d.`]
      })
  }
}

function defineWays(operator: Subcommand): void {
  define(operator, 'sessions', "list an operator's sessions, newest first")
    .argument('<operator_id>', 'operator', uuid)
    .list(inDatabase, {
      key: 'sessions',
      read: async ({ db }, id: string) => {
        await changing(db, id, async () => undefined)
        return (await listSessions(db, id)).map(({ id: session_id, method, is_open, used_at, ...one }) => ({
          ...{ session_id, method, status: is_open ? 'OPEN' : 'ENDED', created_at: one.created_at },
          ...{ last_used_at: used_at, expires_at: one.expires_at, ended_at: one.ended_at },
        }))
      },
      columns: ['session_id', 'method', 'status', 'created_at', 'last_used_at', 'expires_at'],
    })
  define(operator, 'passkeys', "list an operator's passkeys, oldest first")
    .argument('<operator_id>', 'operator', uuid)
    .list(inDatabase, {
      key: 'passkeys',
      read: async ({ db }, id: string) => {
        await changing(db, id, async () => undefined)
        return (await listPasskeys(db, id)).map(({ id: passkey_id, name, created_at, used_at }) => ({
          ...{ passkey_id, name, created_at, last_used_at: used_at },
        }))
      },
      columns: ['passkey_id', 'name', 'created_at', 'last_used_at'],
    })
}

function defineRevoke(operator: Subcommand): void {
  define(
    operator,
    'revoke',
    "end an operator's session, or remove its passkey with the sessions that it opened; access tokens are refused within a second",
  )
    .argument('<operator_id>', 'operator', uuid)
    .argument('<id>', 'session or passkey', uuid)
    .answer(inDatabase, async ({ db, did, origin }, operator_id: string, id: string) => {
      const kind = await changing(db, operator_id, async (tx, found) => {
        if (await endSession(tx, found, id, origin)) return 'session'
        if (!(await removePasskey(tx, found, id, origin)))
          throw new Error(
            `operator ${operator_id} has no session and no passkey ${id}: bursar operator sessions ${operator_id}`,
          )
        return 'passkey'
      })
      did(`revoked an operator's ${kind}`, { operator_id, [`${kind}_id`]: id })
      return [{ [`${kind}_id`]: id, revoked: true }, `The ${kind} ${id} is revoked.`]
    })
}

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
