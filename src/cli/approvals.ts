import type { JsonWebKey } from 'node:crypto'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { isIP } from 'node:net'
import { InvalidArgumentError, type Command } from 'commander'
import { approverKeyOf } from '../access/operators/approver-key.ts'
import { isGenuine, lockOperator } from '../access/operators/operators.ts'
import { listPasskeys } from '../access/operators/passkeys.ts'
import { transaction } from '../db/database.ts'
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
import { COMMON, textUpTo, uuid } from './arguments.ts'
import {
  approved,
  baseUrlOf,
  inDatabase,
  inOwnersDatabase,
  type AskedChange,
  type AtDatabase,
} from './command-line.ts'
import { group, offline, oneOf } from './define.ts'
import { print } from './output.ts'
import { APPROVAL_STATUSES } from '../contract/approval.ts'

/** A key file holds one JWK. */
const KEY_FILE_BYTES_MAX = 4_096
const NAME_LENGTH_MAX = 100

const WORDS = {
  ...COMMON,
  '<file>': ['key file, which must not exist'],
  '<approval_id>': ['approval', uuid],
  '--status <status>': [`only approvals that are ${APPROVAL_STATUSES.join(', ')}`, oneOf(APPROVAL_STATUSES)],
  '--approver <id>': ['your entry of bursar approvers list', uuid],
  '--key <file>': ['your key file'],
} as const

const WORDS_OF_APPROVERS = {
  ...COMMON,
  '<approver_id>': ['approver', uuid],
  '--name <name>': ['name of the person', textUpTo(NAME_LENGTH_MAX)],
  '--key <file>': ['public key, a JWK of Ed25519 or P-256; of a passkey with its credential_id and rp_id'],
  '--passkey <id>': [
    'in place of --key: a passkey with which --operator signs in, by its id on the page Your sign-in',
    uuid,
  ],
  '--role <role>': [
    'role that rules of the policy name; ADMIN decides wherever others do (default: APPROVER)',
    role,
  ],
  '--operator <id>': ['the same person as an operator', uuid],
  '--client <id>': ['the same person as an API client; with an external issuer, as it names the client'],
} as const

export function approvalCommands(program: Command): void {
  const about = 'withdrawals and changes that wait for the signatures of approvers'
  const approvals = group(program, ['approvals', about], inDatabase, WORDS)
  approvals.command('key <file>', {
    in: offline,
    about:
      "make an approver's key file, readable by its owner only, and <file>.pub with the public key. Needs no database",
    run: (_, { file }) => makeKey(file),
    says: ({ file, public_key_file, thumbprint }) =>
      `Made ${file} and ${public_key_file}, thumbprint ${thumbprint}.`,
  })
  approvals.list('list --customer <id> [--status <status>]', {
    about: "list a customer's newest approvals, at most 100",
    key: 'approvals',
    none: 'There are no approvals.',
    run: ({ db }, { customer, status }) => newestApprovals(db, customer, status),
    columns: [
      'id',
      ['subject', ({ subject }) => `${subject.type} ${subject.id}`],
      'status',
      ['>approved', ({ approvals }) => approvals],
      ...(['>required', 'role', 'deadline'] as const),
    ],
  })
  approvals.command('show <approval_id> --customer <id>', {
    about: 'show an approval and the text that an approver signs to approve it',
    async run({ db }, { approval_id, customer }) {
      const { approval, statements } = await readApproval(db, customer, approval_id)
      return { approval, to_sign: statements }
    },
    says: ({ approval: { status, approvals, required }, to_sign }) =>
      `${describe(to_sign.APPROVE)}\n\nIt is ${status}, ${approvals} of ${required}.`,
  })
  for (const [name, decision, about] of [
    ['approve', 'APPROVE', 'sign that you approve, and record it: read `bursar approvals show` first'],
    ['reject', 'REJECT', 'sign that you reject, and record it: a withdrawal fails and is refunded'],
  ] as const)
    approvals.command(`${name} <approval_id> --customer <id> --approver <id> --key <file>`, {
      about,
      async run({ db, origin }, { approval_id: id, customer, approver: approver_id, key: file, json }) {
        const key = await readKeyFile(file)
        const { statements } = await readApproval(db, customer, id)
        // The person sees what is signed, even when somebody else prepared the command.
        if (!json) print(describe(statements[decision]))
        const given = { approver_id, decision, signed: signStatement(statements[decision], key) }
        return decideApproval(db, { customerId: customer, id, origin }, given)
      },
      says: ({ status, approvals, required }, { approval_id }) =>
        `\nApproval ${approval_id} is ${status}, ${approvals} of ${required}.`,
      logs: `decided about an approval: ${decision}`,
    })
  approverCommands(program)
}

function approverCommands(program: Command): void {
  const about = 'the people who may approve; changed as the role that owns the schema'
  const approvers = group(program, ['approvers', about], inOwnersDatabase, WORDS_OF_APPROVERS)
  approvers.command(
    'add --customer <id> --name <name> [--key <file>] [--passkey <id>] [--role <role>] [--operator <id>] [--client <id>] [--approval <id>]',
    {
      about:
        'add an approver with the public key that bursar approvals key has made, or with the passkey of an operator',
      async run(at, { customer, approval, ...given }) {
        const { name, role = 'APPROVER', operator: operator_id, client: client_id } = given
        const key = await keyToAdd(at, given)
        const thumbprint = thumbprintOf(key)
        const approver = { name, role, key, operator_id, client_id }
        const change = changeOf(customer, approval, 'approvers add', thumbprint, { ...approver, key })
        const added = await approved(at, change, (tx) => addApprover(tx, customer, approver, at.origin))
        return { ...added, thumbprint }
      },
      says: ({ id, name, role, thumbprint }) => `Approver ${id}: ${name}, ${role}, thumbprint ${thumbprint}.`,
      logs: 'added an approver',
      logged: ({ id }, { customer }) => ({ approver_id: id, customer_id: customer }),
    },
  )
  approvers.list('list --customer <id>', {
    in: inDatabase,
    about: "list a customer's approvers, with those who are revoked",
    key: 'approvers',
    none: 'There are no approvers.',
    run: ({ db }, { customer }) => selectApprovers(db, customer),
    columns: ['id', 'name', 'role', 'status', ['thumbprint', ({ key }) => thumbprintOf(key)]],
  })
  approvers.command('revoke <approver_id> --customer <id> [--approval <id>]', {
    about: 'revoke an approver: signatures of withdrawals that are not signed yet do not count any more',
    async run(at, { approver_id: id, customer, approval }) {
      const change = changeOf(customer, approval, 'approvers revoke', id, {})
      const revoked = await approved(at, change, (tx) => revokeApprover(tx, customer, id, at.origin))
      return { id, ...revoked }
    },
    says: ({ id, changed, revoked_at }) =>
      `Approver ${id} is REVOKED.${changed ? '' : ` It was revoked before, at ${revoked_at}.`}`,
    logs: 'revoked an approver',
  })
}

async function makeKey(file: string) {
  const key = newPrivateKey()
  const public_key = publicPartOf(key)
  await writeFile(file, `${JSON.stringify(key)}\n`, { mode: 0o600, flag: 'wx' })
  await chmod(file, 0o600)
  await writeFile(`${file}.pub`, `${JSON.stringify(public_key)}\n`, { flag: 'wx' })
  return { file, public_key_file: `${file}.pub`, thumbprint: thumbprintOf(public_key) }
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

/** Reads the public key from its file, or from the operator's passkey: one that may sign in. */
async function keyToAdd(
  at: AtDatabase,
  { key, passkey, operator }: Partial<Record<'key' | 'passkey' | 'operator', string | undefined>>,
): Promise<ApproverKey> {
  if (key !== undefined && passkey === undefined) return readApproverKey(await readKeyFile(key))
  if (passkey === undefined || operator === undefined || key !== undefined)
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

const changeOf = (
  customer_id: string,
  approval: string | undefined,
  command: string,
  id: string,
  values: object,
): AskedChange => ({
  subject: 'APPROVERS',
  customer_id,
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
