import type { JsonWebKey } from 'node:crypto'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { InvalidArgumentError, type Command } from 'commander'
import { Problem } from '../contract/problems.ts'
import { tookTooLong } from '../db/database.ts'
import { openMasterKeys } from '../keys/master-keys.ts'
import { APPROVAL_STATUSES } from '../records/approval.ts'
import {
  newPrivateKey,
  publicPartOf,
  readApproverKey,
  signStatement,
  thumbprintOf,
  type ApprovalDecision,
} from '../records/approval-statement.ts'
import { withApprovedChange, type RequestedChange } from '../records/approved-change.ts'
import { addApprover, revokeApprover, selectApprovers } from '../records/approver.ts'
import { Policies } from '../records/policy.ts'
import type { Settings } from '../settings.ts'
import { decideApproval, listApprovals, readApproval } from '../settlement/decide-approval.ts'
import {
  logOperator,
  originOfCommand,
  requireCustomer,
  uuid,
  withDatabase,
  withOwnersDatabase,
} from './command-line.ts'
import { print, table } from './output.ts'

/** A key file holds one JWK. */
const KEY_FILE_BYTES_MAX = 4_096
const NAME_LENGTH_MAX = 100

/** Defines `bursar approvals` and `bursar approvers`. */
export function approvalCommands(program: Command): void {
  const approvals = program
    .command('approvals')
    .description('withdrawals and changes that wait for the signatures of approvers')
  defineKey(approvals)
  defineList(approvals)
  defineShow(approvals)
  defineDecision(approvals, 'approve', 'APPROVE')
  defineDecision(approvals, 'reject', 'REJECT')
  const approvers = program
    .command('approvers')
    .description('the people who may approve; changed as the role that owns the schema')
  defineAdd(approvers)
  defineApprovers(approvers)
  defineRevoke(approvers)
}

// ---------------------------------------------------------------------------------------------- approvals

function defineKey(approvals: Command): void {
  approvals
    .command('key')
    .description(
      "make an approver's key file, readable by its owner only, and <file>.pub with the public key. Needs no database",
    )
    .argument('<file>', 'key file, which must not exist')
    .option('--json', 'print JSON')
    .action(async (file: string, { json }: { json?: true }) => {
      const key = newPrivateKey()
      const public_key = publicPartOf(key)
      await writeFile(file, `${JSON.stringify(key)}\n`, { mode: 0o600, flag: 'wx' })
      await chmod(file, 0o600)
      await writeFile(`${file}.pub`, `${JSON.stringify(public_key)}\n`, { flag: 'wx' })
      const made = { file, public_key_file: `${file}.pub`, thumbprint: thumbprintOf(public_key) }
      print(json ? made : `Made ${file} and ${file}.pub, thumbprint ${made.thumbprint}.`)
    })
}

function defineList(approvals: Command): void {
  approvals
    .command('list')
    .description("list a customer's newest approvals, at most 100")
    .requiredOption('--customer <id>', 'customer', uuid)
    .option('--status <status>', `only approvals that are ${APPROVAL_STATUSES.join(', ')}`, status)
    .option('--json', 'print JSON')
    .action((options: { customer: string; status?: string; json?: true }) =>
      withDatabase(async (db) => {
        await requireCustomer(db, options.customer)
        const found = await listApprovals(db, options.customer, options.status)
        if (options.json) return print({ approvals: found })
        if (found.length === 0) return print('There are no approvals.')
        print(
          table(
            ['id', 'subject', 'status', '>approved', '>required', 'role', 'deadline'],
            found.map((one) => [
              ...[one.id, `${one.subject.type} ${one.subject.id}`, one.status],
              ...[String(one.approvals), String(one.required), one.role, one.deadline],
            ]),
          ),
        )
      }),
    )
}

function defineShow(approvals: Command): void {
  approvals
    .command('show')
    .description('show an approval and the text that an approver signs to approve it')
    .argument('<approval_id>', 'approval', uuid)
    .requiredOption('--customer <id>', 'customer', uuid)
    .option('--json', 'print JSON')
    .action((id: string, { customer, json }: { customer: string; json?: true }) =>
      withDatabase(async (db) => {
        const { approval, statements } = await readApproval(db, customer, id).catch(asError)
        if (json) return print({ approval, to_sign: statements })
        print(
          `${describe(statements.APPROVE)}\n\nIt is ${approval.status}, ${approval.approvals} of ${approval.required}.`,
        )
      }),
    )
}

function defineDecision(approvals: Command, name: 'approve' | 'reject', decision: ApprovalDecision): void {
  approvals
    .command(name)
    .description(
      name === 'approve'
        ? 'sign that you approve, and record it: read `bursar approvals show` first'
        : 'sign that you reject, and record it: a withdrawal fails and is refunded',
    )
    .argument('<approval_id>', 'approval', uuid)
    .requiredOption('--customer <id>', 'customer', uuid)
    .requiredOption('--approver <id>', 'your entry of bursar approvers list', uuid)
    .requiredOption('--key <file>', 'your key file')
    .option('--json', 'print JSON')
    .action((id: string, options: { customer: string; approver: string; key: string; json?: true }) =>
      withDatabase(async (db, settings) => {
        const key = await readKeyFile(options.key)
        const { statements } = await readApproval(db, options.customer, id).catch(asError)
        // The person sees what is signed, also where somebody has prepared the command.
        if (!options.json) print(describe(statements[decision]))
        const given = {
          approver_id: options.approver,
          decision,
          signed: signStatement(statements[decision], key),
        }
        const approval = await decideApproval(db, options.customer, id, given, originOfCommand()).catch(
          asError,
        )
        logOperator(settings, `decided about an approval: ${decision}`, { approval_id: id })
        print(
          options.json
            ? approval
            : `\nApproval ${id} is ${approval.status}, ${approval.approvals} of ${approval.required}.`,
        )
      }),
    )
}

/** A statement for people: each member on its line. */
const describe = (text: string): string => JSON.stringify(JSON.parse(text), null, 2)

async function readKeyFile(file: string): Promise<JsonWebKey> {
  const text = await readFile(file, 'utf8')
  if (text.length > KEY_FILE_BYTES_MAX) throw new Error(`${file} is no key file: it is too long`)
  try {
    return JSON.parse(text) as JsonWebKey
  } catch {
    // The parser's message would quote the key.
    throw new Error(`${file} is no key file: it must have one JSON Web Key`)
  }
}

/** Throws a refusal as a failure of the command. */
function asError(error: unknown): never {
  if (error instanceof Problem) throw new Error(error.detail)
  if (tookTooLong(error)) throw new Error('a worker holds the withdrawal: nothing was changed; try again')
  throw error
}

function status(text: string): string {
  if (!APPROVAL_STATUSES.includes(text as (typeof APPROVAL_STATUSES)[number]))
    throw new InvalidArgumentError(`must be one of ${APPROVAL_STATUSES.join(', ')}.`)
  return text
}

// ---------------------------------------------------------------------------------------------- approvers

interface AddOptions {
  customer: string
  name: string
  key: string
  role: string
  operator?: string
  client?: string
  approval?: string
  json?: true
}

function defineAdd(approvers: Command): void {
  approvers
    .command('add')
    .description('add an approver with the public key that bursar approvals key has made, or of a passkey')
    .requiredOption('--customer <id>', 'customer', uuid)
    .requiredOption('--name <name>', 'name of the person', name)
    .requiredOption(
      '--key <file>',
      'public key, a JWK of Ed25519 or P-256; of a passkey with its credential_id and rp_id',
    )
    .option(
      '--role <role>',
      'role that rules of the policy name; ADMIN decides wherever others do',
      role,
      'APPROVER',
    )
    .option('--operator <id>', 'the same person as an operator', uuid)
    .option('--client <id>', 'the same person as an API client', uuid)
    .option('--approval <id>', 'approval of this change, where the policy requires one', uuid)
    .option('--json', 'print JSON')
    .action((options: AddOptions) =>
      withOwnersDatabase(async (owner, settings) => {
        await requireCustomer(owner, options.customer)
        const key = readApproverKey(await readKeyFile(options.key))
        const { name, role } = options
        const approver = { name, role, key, operator_id: options.operator, client_id: options.client }
        const change = changeOf(options, 'approvers add', thumbprintOf(key), { ...approver, key })
        const origin = originOfCommand()
        const added = await withApprovedChange(owner, await policiesOf(settings), change, (tx) =>
          addApprover(tx, options.customer, approver, origin),
        ).catch(asError)
        logOperator(settings, 'added an approver', { approver_id: added.id, customer_id: options.customer })
        print(options.json ? added : `Approver ${added.id}: ${added.name}, ${added.role}.`)
      }),
    )
}

function defineApprovers(approvers: Command): void {
  approvers
    .command('list')
    .description("list a customer's approvers, with those who are revoked")
    .requiredOption('--customer <id>', 'customer', uuid)
    .option('--json', 'print JSON')
    .action(({ customer, json }: { customer: string; json?: true }) =>
      withDatabase(async (db) => {
        await requireCustomer(db, customer)
        const found = await selectApprovers(db, customer)
        if (json) return print({ approvers: found })
        if (found.length === 0) return print('There are no approvers.')
        print(
          table(
            ['id', 'name', 'role', 'status', 'thumbprint'],
            found.map((one) => [one.id, one.name, one.role, one.status, thumbprintOf(one.key)]),
          ),
        )
      }),
    )
}

function defineRevoke(approvers: Command): void {
  approvers
    .command('revoke')
    .description(
      'revoke an approver: signatures of withdrawals that are not signed yet do not count any more',
    )
    .argument('<approver_id>', 'approver', uuid)
    .requiredOption('--customer <id>', 'customer', uuid)
    .option('--approval <id>', 'approval of this change, where the policy requires one', uuid)
    .option('--json', 'print JSON')
    .action((id: string, options: { customer: string; approval?: string; json?: true }) =>
      withOwnersDatabase(async (owner, settings) => {
        await requireCustomer(owner, options.customer)
        const change = changeOf(options, 'approvers revoke', id, {})
        const origin = originOfCommand()
        const revoked = await withApprovedChange(owner, await policiesOf(settings), change, (tx) =>
          revokeApprover(tx, options.customer, id, origin),
        ).catch(asError)
        if (revoked.changed) logOperator(settings, 'revoked an approver', { approver_id: id })
        const when = revoked.changed ? '' : ` It was revoked before, at ${revoked.revoked_at}.`
        print(options.json ? { id, ...revoked } : `Approver ${id} is REVOKED.${when}`)
      }),
    )
}

const changeOf = (
  { customer, approval }: { customer: string; approval?: string },
  command: string,
  id: string,
  values: object,
): RequestedChange => ({
  subject: 'APPROVERS',
  customer_id: customer,
  operation: `bursar ${command}`,
  target: { type: 'approver', id },
  values,
  origin: originOfCommand(),
  approval_id: approval,
})

const policiesOf = async (settings: Settings) => new Policies(await openMasterKeys(settings))

function name(text: string): string {
  if (text.trim() === '' || text.length > NAME_LENGTH_MAX)
    throw new InvalidArgumentError(`must have 1 to ${NAME_LENGTH_MAX} characters.`)
  return text.trim()
}

function role(text: string): string {
  if (!/^[A-Z][A-Z0-9_]{0,31}$/.test(text))
    throw new InvalidArgumentError('must be capitals, digits and underscores.')
  return text
}
