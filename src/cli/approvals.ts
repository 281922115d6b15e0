import type { JsonWebKey } from 'node:crypto'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { InvalidArgumentError, Option, type Command } from 'commander'
import { approverKeyOf } from '../access/operators/approver-key.ts'
import { isGenuine, lockOperator } from '../access/operators/operators.ts'
import { listPasskeys } from '../access/operators/passkeys.ts'
import { Problem } from '../contract/problems.ts'
import { tookTooLong, transaction } from '../db/database.ts'
import {
  newPrivateKey,
  publicPartOf,
  readApproverKey,
  signStatement,
  thumbprintOf,
  type ApproverKey,
} from '../governance/approvals/approval-statement.ts'
import { addApprover, revokeApprover, selectApprovers } from '../governance/approvals/approver.ts'
import { decideApproval, newestApprovals, readApproval } from '../rails/payouts/decide-approval.ts'
import { APPROVAL, textUpTo, uuid } from './arguments.ts'
import {
  approved,
  baseUrlOf,
  inDatabase,
  inOwnersDatabase,
  type AskedChange,
  type AtDatabase,
} from './command-line.ts'
import { define, offline, type Subcommand, oneOf } from './define.ts'
import { print } from './output.ts'
import { APPROVAL_STATUSES, type ApprovalDecision } from '../contract/approval.ts'

/** A key file holds one JWK. */
const KEY_FILE_BYTES_MAX = 4_096
const NAME_LENGTH_MAX = 100

export function approvalCommands(program: Command): void {
  const approvals = define(
    program,
    'approvals',
    'withdrawals and changes that wait for the signatures of approvers',
  )
  defineKey(approvals)
  defineReading(approvals)
  defineDecision(approvals, 'approve', 'APPROVE')
  defineDecision(approvals, 'reject', 'REJECT')
  const approvers = define(
    program,
    'approvers',
    'the people who may approve; changed as the role that owns the schema',
  )
  defineAdd(approvers)
  define(approvers, 'list', "list a customer's approvers, with those who are revoked")
    .requiredOption('--customer <id>', 'customer', uuid)
    .list(inDatabase, {
      key: 'approvers',
      none: 'There are no approvers.',
      read: ({ db }, { customer }: { customer: string }) => selectApprovers(db, customer),
      columns: ['id', 'name', 'role', 'status', ['thumbprint', ({ key }) => thumbprintOf(key)]],
    })
  defineRevoke(approvers)
}

// ---------------------------------------------------------------------------------------------- approvals

function defineKey(approvals: Subcommand): void {
  define(
    approvals,
    'key',
    "make an approver's key file, readable by its owner only, and <file>.pub with the public key. Needs no database",
  )
    .argument('<file>', 'key file, which must not exist')
    .answer(offline, async (_, file: string) => {
      const key = newPrivateKey()
      const public_key = publicPartOf(key)
      await writeFile(file, `${JSON.stringify(key)}\n`, { mode: 0o600, flag: 'wx' })
      await chmod(file, 0o600)
      await writeFile(`${file}.pub`, `${JSON.stringify(public_key)}\n`, { flag: 'wx' })
      const made = { file, public_key_file: `${file}.pub`, thumbprint: thumbprintOf(public_key) }
      return [made, `Made ${file} and ${file}.pub, thumbprint ${made.thumbprint}.`]
    })
}

function defineReading(approvals: Subcommand): void {
  define(approvals, 'list', "list a customer's newest approvals, at most 100")
    .requiredOption('--customer <id>', 'customer', uuid)
    .option(
      '--status <status>',
      `only approvals that are ${APPROVAL_STATUSES.join(', ')}`,
      oneOf(APPROVAL_STATUSES),
    )
    .list(inDatabase, {
      key: 'approvals',
      none: 'There are no approvals.',
      read: ({ db }, { customer, status }: { customer: string; status?: string }) =>
        newestApprovals(db, customer, status),
      columns: [
        'id',
        ['subject', ({ subject }) => `${subject.type} ${subject.id}`],
        'status',
        ['>approved', ({ approvals }) => approvals],
        ...(['>required', 'role', 'deadline'] as const),
      ],
    })
  define(approvals, 'show', 'show an approval and the text that an approver signs to approve it')
    .argument('<approval_id>', 'approval', uuid)
    .requiredOption('--customer <id>', 'customer', uuid)
    .answer(inDatabase, async ({ db }, id: string, { customer }: { customer: string }) => {
      const { approval, statements } = await readApproval(db, customer, id).catch(asError)
      const { status, approvals, required } = approval
      return [
        { approval, to_sign: statements },
        `${describe(statements.APPROVE)}\n\nIt is ${status}, ${approvals} of ${required}.`,
      ]
    })
}

interface DecideOptions {
  customer: string
  approver: string
  key: string
  json?: true
}

function defineDecision(approvals: Subcommand, name: 'approve' | 'reject', decision: ApprovalDecision): void {
  define(
    approvals,
    name,
    name === 'approve'
      ? 'sign that you approve, and record it: read `bursar approvals show` first'
      : 'sign that you reject, and record it: a withdrawal fails and is refunded',
  )
    .argument('<approval_id>', 'approval', uuid)
    .requiredOption('--customer <id>', 'customer', uuid)
    .requiredOption('--approver <id>', 'your entry of bursar approvers list', uuid)
    .requiredOption('--key <file>', 'your key file')
    .answer(inDatabase, async ({ db, did, origin }, id: string, options: DecideOptions) => {
      const { customer, approver: approver_id } = options
      const key = await readKeyFile(options.key)
      const { statements } = await readApproval(db, customer, id).catch(asError)
      // The person sees what is signed, even when somebody else prepared the command.
      if (!options.json) print(describe(statements[decision]))
      const given = { approver_id, decision, signed: signStatement(statements[decision], key) }
      const approval = await decideApproval(db, { customerId: customer, id, origin }, given).catch(asError)
      did(`decided about an approval: ${decision}`, { approval_id: id })
      const { status, approvals: count, required } = approval
      return [approval, `\nApproval ${id} is ${status}, ${count} of ${required}.`]
    })
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

// ---------------------------------------------------------------------------------------------- approvers

interface AddOptions {
  customer: string
  name: string
  key?: string
  passkey?: string
  role: string
  operator?: string
  client?: string
  approval?: string
}

function defineAdd(approvers: Subcommand): void {
  define(
    approvers,
    'add',
    'add an approver with the public key that bursar approvals key has made, or with the passkey of an operator',
  )
    .requiredOption('--customer <id>', 'customer', uuid)
    .requiredOption('--name <name>', 'name of the person', textUpTo(NAME_LENGTH_MAX))
    .option(
      '--key <file>',
      'public key, a JWK of Ed25519 or P-256; of a passkey with its credential_id and rp_id',
    )
    .addOption(
      new Option(
        '--passkey <id>',
        'in place of --key: a passkey with which --operator signs in, by its id on the page Your sign-in',
      )
        .argParser(uuid)
        .conflicts('key'),
    )
    .option(
      '--role <role>',
      'role that rules of the policy name; ADMIN decides wherever others do',
      role,
      'APPROVER',
    )
    .option('--operator <id>', 'the same person as an operator', uuid)
    .option(
      '--client <id>',
      'the same person as an API client; with an external issuer, as it names the client',
    )
    .option(...APPROVAL)
    .answer(inOwnersDatabase, async (at, options: AddOptions) => {
      const { customer: customer_id, name, role, operator: operator_id, client: client_id } = options
      const key = await keyToAdd(at, options)
      const thumbprint = thumbprintOf(key)
      const approver = { name, role, key, operator_id, client_id }
      const change = changeOf(options, 'approvers add', thumbprint, { ...approver, key })
      const added = await approved(at, change, (tx) =>
        addApprover(tx, customer_id, approver, at.origin),
      ).catch(asError)
      at.did('added an approver', { approver_id: added.id, customer_id })
      const text = `Approver ${added.id}: ${added.name}, ${added.role}, thumbprint ${thumbprint}.`
      return [{ ...added, thumbprint }, text]
    })
}

/** Reads the public key from its file, or from the operator's passkey: one that may sign in. */
async function keyToAdd(at: AtDatabase, { key, passkey, operator }: AddOptions): Promise<ApproverKey> {
  if (key !== undefined) return readApproverKey(await readKeyFile(key))
  if (passkey === undefined || operator === undefined)
    throw new Error('name the key: --key <file>, or --passkey <id> with --operator <id>')
  const found = (await listPasskeys(at.db, operator)).find(({ id }) => id === passkey)
  if (found === undefined)
    throw new Error(`operator ${operator} has no passkey ${passkey}: bursar operator passkeys ${operator}`)
  const maySignIn = await transaction(at.db, async (tx) => {
    const person = await lockOperator(tx, operator)
    return person && isGenuine(tx, await at.rowMacs(), person, { table: 'operator_passkeys', row: found })
  })
  if (maySignIn !== true)
    throw new Error(`passkey ${passkey} is not as Bursar wrote it or has ended: it makes nobody an approver`)
  const { hostname } = new URL(await baseUrlOf(at))
  if (isIP(hostname.replaceAll(/[[\]]/g, '')) !== 0)
    throw new Error(`BURSAR_BASE_URL: passkeys belong to the host name of the console, not to ${hostname}`)
  return approverKeyOf(found, hostname)
}

function defineRevoke(approvers: Subcommand): void {
  define(
    approvers,
    'revoke',
    'revoke an approver: signatures of withdrawals that are not signed yet do not count any more',
  )
    .argument('<approver_id>', 'approver', uuid)
    .requiredOption('--customer <id>', 'customer', uuid)
    .option(...APPROVAL)
    .answer(inOwnersDatabase, async (at, id: string, options: { customer: string; approval?: string }) => {
      const change = changeOf(options, 'approvers revoke', id, {})
      const revoked = await approved(at, change, (tx) =>
        revokeApprover(tx, options.customer, id, at.origin),
      ).catch(asError)
      if (revoked.changed) at.did('revoked an approver', { approver_id: id })
      const when = revoked.changed ? '' : ` It was revoked before, at ${revoked.revoked_at}.`
      return [{ id, ...revoked }, `Approver ${id} is REVOKED.${when}`]
    })
}

const changeOf = (
  { customer, approval }: { customer: string; approval?: string },
  command: string,
  id: string,
  values: object,
): AskedChange => ({
  subject: 'APPROVERS',
  customer_id: customer,
  operation: `bursar ${command}`,
  target: { type: 'approver', id },
  values,
  approval,
})

function role(text: string): string {
  if (!/^[A-Z][A-Z0-9_]{0,31}$/.test(text))
    throw new InvalidArgumentError('must be capitals, digits and underscores.')
  return text
}
