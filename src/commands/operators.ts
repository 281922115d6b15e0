import { Option, type Command } from 'commander'
import { requireBuiltConsole } from '../console/files.ts'
import { ROLES, type Role } from '../contract/roles.ts'
import { transaction, type Database, type Transaction } from '../db/database.ts'
import { readStamp } from '../deployment.ts'
import { openMasterKeys } from '../keys/master-keys.ts'
import {
  createOperator,
  disableOperator,
  enableOperator,
  LINK_SECONDS,
  listOperators,
  lockOperator,
  makeLink,
  record,
  setRole,
  type Operator,
} from '../operators/operators.ts'
import { listPasskeys, removePasskey } from '../operators/passkeys.ts'
import { endSession, listSessions } from '../operators/sessions.ts'
import { withApprovedChange } from '../records/approved-change.ts'
import { Policies } from '../records/policy.ts'
import { SettingsError, type Settings } from '../settings.ts'
import {
  logOperator,
  openRowMacs,
  originOfCommand,
  requireCustomer,
  uuid,
  withDatabase,
  withMigratedDatabase,
} from './command-line.ts'
import { print, table } from './output.ts'

/** Defines `bursar operator`. */
export function operatorCommands(program: Command): void {
  const operator = program.command('operator').description('operators: the people who sign in')
  defineCreate(operator)
  defineList(operator)
  defineLink(operator)
  defineRole(operator)
  defineChanges(operator)
  defineSessions(operator)
  definePasskeys(operator)
  defineRevoke(operator)
}

/** An operator as the commands show it. */
const shownOf = ({ id, name, role, customer_id, openid_subject, created_at, disabled_at }: Operator) => ({
  operator_id: id,
  name,
  role,
  customer_id,
  openid_subject,
  created_at,
  disabled_at,
})

const APPROVAL = [
  '--approval <id>',
  'the approval of this change, where the customer requires approvers',
] as const

const roleOption = (flags: string) => new Option(flags, 'what the operator may do').choices(ROLES)

function defineCreate(operator: Command): void {
  operator
    .command('create')
    .description('create an operator; give it a way to sign in with: bursar operator link')
    .requiredOption('--name <name>', 'name of the person')
    .addOption(roleOption('--role <role>').makeOptionMandatory())
    .option('--customer <id>', 'the only customer that the operator may act for (default: any)', uuid)
    .option('--openid-subject <subject>', 'its subject (sub) at the provider of BURSAR_OPENID_ISSUER')
    .option(...APPROVAL)
    .option('--json', 'print JSON')
    .action((options: CreateOptions) =>
      withMigratedDatabase(async (db, settings) => {
        const openId = openIdOf(options.openidSubject, settings)
        if (options.customer !== undefined) await requireCustomer(db, options.customer)
        const { name, role, customer: customerId } = options
        const change = {
          customerId,
          approval: options.approval,
          operation: 'operator create',
          id: 'new',
          values: { name, role, openid_subject: options.openidSubject ?? null },
        }
        const made = await approved(db, settings, change, async (tx) => {
          const operator = await createOperator(tx, await openRowMacs(settings), {
            name,
            role,
            customerId,
            openId,
          })
          const after = { role, ...(customerId !== undefined && { customer_id: customerId }) }
          await record(tx, operator, 'operator.create', { origin: originOfCommand(), changes: { after } })
          return operator
        })
        logOperator(settings, 'created an operator', { operator_id: made.id, role, customer_id: customerId })
        print(options.json ? shownOf(made) : `operator_id: ${made.id}`)
      }),
    )
}

interface CreateOptions {
  name: string
  role: Role
  customer?: string
  openidSubject?: string
  approval?: string
  json?: true
}

/** The account of a subject at the configured provider. Throws `SettingsError` when no provider is configured. */
function openIdOf(subject: string | undefined, { openidIssuer }: Settings) {
  if (subject === undefined) return undefined
  if (openidIssuer === undefined)
    throw new SettingsError('BURSAR_OPENID_ISSUER: --openid-subject needs the provider to which it belongs')
  return { issuer: openidIssuer, subject }
}

function defineList(operator: Command): void {
  operator
    .command('list')
    .description('list the operators, oldest first')
    .option('--json', 'print JSON')
    .action(({ json }: { json?: true }) =>
      withDatabase(async (db) => {
        const operators = (await listOperators(db)).map(shownOf)
        if (json) return print({ operators })
        const columns = ['operator_id', 'name', 'role', 'customer_id', 'created_at', 'disabled_at'] as const
        print(
          table(
            [...columns],
            operators.map((one) => columns.map((name) => one[name])),
          ),
        )
      }),
    )
}

function defineLink(operator: Command): void {
  operator
    .command('link')
    .description(
      `print a link with which the operator signs in once, within ${LINK_SECONDS / 60} minutes; earlier links end`,
    )
    .argument('<operator_id>', 'operator', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        // The page behind the link is the console's.
        requireBuiltConsole()
        const baseUrl = await baseUrlOf(db, settings)
        const { secret, expires_at } = await changing(db, id, async (tx, found) => {
          if (found.disabled_at !== null) throw new Error(`operator ${id} is disabled`)
          await record(tx, found, 'operator.link', { origin: originOfCommand() })
          return makeLink(tx, await openRowMacs(settings), id)
        })
        logOperator(settings, 'made a sign-in link', { operator_id: id, expires_at })
        // Browsers do not send the part after # to any server, so no log of a proxy has the secret.
        const link = `${baseUrl}/sign-in#${secret}`
        print(json ? { operator_id: id, link, expires_at } : `link:       ${link}\nexpires_at: ${expires_at}`)
      }),
    )
}

/** The public URL of the service, as the link names it. */
export const baseUrlOf = async (db: Database, { baseUrl, host, port }: Settings): Promise<string> =>
  baseUrl ?? (await readStamp(db))?.issuer ?? `http://${host}:${port}`

function defineRole(operator: Command): void {
  operator
    .command('role')
    .description(
      'give an operator another role; its access tokens of the earlier role are refused within a second',
    )
    .argument('<operator_id>', 'operator', uuid)
    .addArgument(operator.createArgument('<role>', 'the new role').choices(ROLES))
    .option(...APPROVAL)
    .option('--json', 'print JSON')
    .action((id: string, role: Role, { approval, json }: { approval?: string; json?: true }) =>
      withDatabase(async (db, settings) => {
        const change = { approval, operation: 'operator role', id, values: { role } }
        const before = await changingWithApproval(db, settings, change, async (tx, found) => {
          if (found.role === role) return role
          await setRole(tx, await openRowMacs(settings), found, role, originOfCommand())
          return found.role
        })
        logOperator(settings, "changed an operator's role", { operator_id: id, before, role })
        print(json ? { operator_id: id, role } : `Operator ${id} is ${role}.`)
      }),
    )
}

function defineChanges(operator: Command): void {
  for (const [name, description] of [
    ['disable', 'disable an operator: its sessions and access tokens end within a second'],
    ['enable', 'undo disable; the operator has to sign in again'],
  ] as const) {
    operator
      .command(name)
      .description(description)
      .argument('<operator_id>', 'operator', uuid)
      .option(...APPROVAL)
      .option('--json', 'print JSON')
      .action((id: string, { approval, json }: { approval?: string; json?: true }) =>
        withDatabase(async (db, settings) => {
          const asked = {
            approval,
            operation: `operator ${name}`,
            id,
            values: { disabled: name === 'disable' },
          }
          const work = async (tx: Transaction, found: Operator) => {
            if ((found.disabled_at !== null) === (name === 'disable')) return
            if (name === 'disable') await disableOperator(tx, id)
            else await enableOperator(tx, await openRowMacs(settings), found)
            await record(tx, found, `operator.${name}`, { origin: originOfCommand() })
          }
          // Disabling is never delayed.
          if (name === 'disable') await changing(db, id, work)
          else await changingWithApproval(db, settings, asked, work)
          logOperator(settings, `${name}d an operator`, { operator_id: id })
          const disabled = name === 'disable'
          print(json ? { operator_id: id, disabled } : `Operator ${id} is ${name}d.`)
        }),
      )
  }
}

function defineSessions(operator: Command): void {
  operator
    .command('sessions')
    .description("list an operator's sessions, newest first")
    .argument('<operator_id>', 'operator', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db) => {
        await changing(db, id, async () => undefined)
        const sessions = (await listSessions(db, id)).map((one) => ({
          session_id: one.id,
          method: one.method,
          status: one.is_open ? 'OPEN' : 'ENDED',
          created_at: one.created_at,
          last_used_at: one.used_at,
          expires_at: one.expires_at,
          ended_at: one.ended_at,
        }))
        if (json) return print({ sessions })
        const columns = [
          'session_id',
          'method',
          'status',
          'created_at',
          'last_used_at',
          'expires_at',
        ] as const
        print(
          table(
            [...columns],
            sessions.map((one) => columns.map((name) => one[name])),
          ),
        )
      }),
    )
}

function definePasskeys(operator: Command): void {
  operator
    .command('passkeys')
    .description("list an operator's passkeys, oldest first")
    .argument('<operator_id>', 'operator', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { json }: { json?: true }) =>
      withDatabase(async (db) => {
        await changing(db, id, async () => undefined)
        const passkeys = (await listPasskeys(db, id)).map((one) => ({
          passkey_id: one.id,
          name: one.name,
          created_at: one.created_at,
          last_used_at: one.used_at,
        }))
        if (json) return print({ passkeys })
        const columns = ['passkey_id', 'name', 'created_at', 'last_used_at'] as const
        print(
          table(
            [...columns],
            passkeys.map((one) => columns.map((name) => one[name])),
          ),
        )
      }),
    )
}

function defineRevoke(operator: Command): void {
  operator
    .command('revoke')
    .description(
      "end an operator's session, or remove its passkey with the sessions that it opened; access tokens are refused within a second",
    )
    .argument('<operator_id>', 'operator', uuid)
    .argument('<id>', 'session or passkey', uuid)
    .option('--json', 'print JSON')
    .action((operatorId: string, id: string, { json }: { json?: true }) =>
      withDatabase(async (db, settings) => {
        const kind = await changing(db, operatorId, async (tx, found) => {
          const origin = originOfCommand()
          if (await endSession(tx, operatorId, id)) {
            await record(tx, found, 'session.revoke', { origin, subject: { type: 'session', id } })
            return 'session'
          }
          if (!(await removePasskey(tx, operatorId, id)))
            throw new Error(
              `operator ${operatorId} has no session and no passkey ${id}: bursar operator sessions ${operatorId}`,
            )
          await record(tx, found, 'passkey.delete', { origin, subject: { type: 'passkey', id } })
          return 'passkey'
        })
        logOperator(settings, `revoked an operator's ${kind}`, {
          operator_id: operatorId,
          [`${kind}_id`]: id,
        })
        print(json ? { [`${kind}_id`]: id, revoked: true } : `The ${kind} ${id} is revoked.`)
      }),
    )
}

/** Runs a change of an operator, who is locked, in a transaction. Throws when there is no such operator. */
export const changing = <T>(
  db: Database,
  id: string,
  change: (tx: Transaction, operator: Operator) => Promise<T>,
): Promise<T> =>
  transaction(db, async (tx) => {
    const operator = await lockOperator(tx, id)
    if (operator === undefined) throw new Error(`there is no operator ${id}: bursar operator list`)
    return change(tx, operator)
  })

/** A change that gives an operator of a customer more rights. */
interface AskedChange {
  approval: string | undefined
  operation: string
  id: string
  values: object
}

/** Makes a change, after the approvers of the operator's customer where its policy requires them. */
async function approved<T>(
  db: Database,
  settings: Settings,
  { customerId, approval, operation, id, values }: AskedChange & { customerId: string | null | undefined },
  work: (tx: Transaction) => Promise<T>,
): Promise<T> {
  if (customerId == null) return transaction(db, work)
  const policies = new Policies(await openMasterKeys(settings), { sandbox: settings.mode === 'sandbox' })
  const change = {
    subject: 'OPERATORS',
    customer_id: customerId,
    origin: originOfCommand(),
    operation,
    target: { type: 'operator', id },
    values,
    approval_id: approval,
  } as const
  return withApprovedChange(db, policies, change, work)
}

/** As `changing`, for changes that may need approvers. The operator's customer never changes. */
async function changingWithApproval<T>(
  db: Database,
  settings: Settings,
  asked: AskedChange,
  change: (tx: Transaction, operator: Operator) => Promise<T>,
): Promise<T> {
  const { customer_id: customerId } = await changing(db, asked.id, async (_tx, found) => found)
  return approved(db, settings, { ...asked, customerId }, async (tx) =>
    change(tx, (await lockOperator(tx, asked.id))!),
  )
}
