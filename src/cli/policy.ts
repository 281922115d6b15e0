import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { canonicalJson } from '../contract/canonical-json.ts'
import { Problem } from '../contract/problems.ts'
import { refusalOfJson } from '../http/duplicate-member.ts'
import { fileValidator } from '../http/validation.ts'
import { findMasterKeys, type MasterKeys } from '../keys/master-keys.ts'
import { replacePolicy } from '../resources/policy/put-policy.ts'
import {
  completeDocument,
  NewPolicyDocument,
  type PolicyDocument,
} from '../governance/policy/policy-document.ts'
import { Policies, type ExaminedVersion } from '../governance/policy/policy.ts'
import type { Settings } from '../settings.ts'
import { APPROVAL, uuid, wholeNumber } from './arguments.ts'
import { inDatabase, type AtDatabase } from './command-line.ts'
import { define, offline, type CommandOutput, type Subcommand } from './define.ts'
import { tableOf } from './table.ts'

/** The limit of a request's body, too. */
const FILE_BYTES_MAX = 64 * 1024
const VERSION_MAX = 2_147_483_647

export function policyCommands(program: Command): void {
  // Otherwise --version behind the command would be the program's own option.
  program.enablePositionalOptions()
  const policy = define(
    program,
    'policy',
    "customers' policies: the rules for their payments, and which changes need approval",
  )
  define(policy, 'show', 'list the newest version of each policy; with --customer, show it with its rules')
    .option('--customer <id>', 'customer', uuid)
    .option('--version <n>', 'an older version; needs --customer', wholeNumber(1, VERSION_MAX))
    .answer(inDatabase, async (at, { customer, version }: { customer?: string; version?: number }) => {
      const policies = new Policies(await requireMasterKeys(at.settings))
      if (customer !== undefined) return showOne(at, policies, customer, version)
      if (version !== undefined) throw new Error('--version: name the customer, too, with --customer')
      return showAll(at, policies)
    })
  defineSet(policy)
  define(policy, 'check', 'check a file with a policy, as bursar policy set does. Needs no database')
    .argument('<file>', 'the policy as JSON')
    .answer(offline, async (_, file: string) => {
      const document = await readPolicyFile(file)
      const rules = document.rules.length
      const text = `${file} is a valid policy with ${rules === 1 ? '1 rule' : `${rules} rules`}.`
      return [{ valid: true, policy: document }, text]
    })
}

async function showAll({ db }: AtDatabase, policies: Policies): Promise<CommandOutput> {
  const found: ExaminedVersion[] = []
  for await (const one of policies.newestOfAll(db)) found.push(one)
  const json = { policies: found.map(({ document, ...one }) => summaryOf(one, document)) }
  if (found.length === 0) return [json, 'No customer has a policy.']
  const trusted = ({ objection }: ExaminedVersion) => (objection === undefined ? 'yes' : `no: ${objection}`)
  const columns = [
    ...(['customer_id', '>version', 'created_at'] as const),
    ['>rules', ({ document }: ExaminedVersion) => document.rules.length] as const,
    ...(['master_key_id', ['trusted', trusted]] as const),
  ]
  return [json, tableOf(found, columns, undefined)]
}

async function showOne(
  { db }: AtDatabase,
  policies: Policies,
  customer_id: string,
  version: number | undefined,
): Promise<CommandOutput> {
  const found = await policies.examine(db, customer_id, version)
  if (found === undefined && version !== undefined)
    throw new Error(`the policy of customer ${customer_id} has no version ${version}`)
  if (found === undefined) return [{ customer_id, version: 0, policy: { rules: [] } }, 'There is no policy.']
  const { document, objection, ...about } = found
  const trust = objection === undefined ? '' : `\nIt cannot be trusted: ${objection}.`
  return [
    { ...about, ...trustOf(objection), policy: document },
    `Version ${found.version}, since ${found.created_at}.${trust}\n${JSON.stringify(document, null, 2)}`,
  ]
}

const trustOf = (objection: string | undefined) => ({
  trusted: objection === undefined,
  ...(objection !== undefined && { objection }),
})

const summaryOf = (
  { objection, ...about }: Omit<ExaminedVersion, 'document'>,
  { rules }: PolicyDocument,
) => ({
  ...about,
  rules: rules.length,
  ...trustOf(objection),
})

interface SetOptions {
  customer: string
  file: string
  approval?: string
  replaceUntrusted?: true
}

function defineSet(policy: Subcommand): void {
  define(
    policy,
    'set',
    "make a new version of a customer's policy, which counts for every payment from then on",
  )
    .requiredOption('--customer <id>', 'customer', uuid)
    .requiredOption('--file <file>', 'the policy as JSON, as PUT /v2/policy takes it')
    .option(...APPROVAL)
    .option(
      '--replace-untrusted',
      'also replace a version whose MAC is wrong, after you have looked at it with bursar policy show',
    )
    .answer(inDatabase, async ({ db, settings, did, origin }, options: SetOptions) => {
      const { customer: customer_id, approval: approval_id, replaceUntrusted: replace_untrusted } = options
      const document = await readPolicyFile(options.file)
      const masterKeys = await requireMasterKeys(settings)
      const policies = new Policies(masterKeys)
      const newest = await policies.examine(db, customer_id)
      if (newest !== undefined && isSame(newest, document, masterKeys)) {
        const { version, created_at } = newest
        return [
          { customer_id, version, created_at, changed: false },
          `Version ${version} is this policy already: nothing was changed.`,
        ]
      }
      const change = { customer_id, origin, approval_id, replace_untrusted }
      const replaced = await replacePolicy(db, policies, document, change).catch(asError)
      const { version, created_at, untrusted } = replaced
      did('set a policy', { customer_id, version, untrusted })
      const told = untrusted
        ? `\nIt replaces version ${untrusted.version}, which could not be trusted: ${untrusted.objection}.`
        : ''
      return [
        {
          customer_id,
          version,
          created_at,
          changed: true,
          ...(untrusted && { replaced_untrusted: untrusted }),
        },
        `Version ${version} counts since ${created_at}.${told}`,
      ]
    })
}

/** Whether the newest version is this policy with a MAC by the current master key. After a change of key, it is made again. */
const isSame = (newest: ExaminedVersion, document: PolicyDocument, { current }: MasterKeys): boolean =>
  newest.objection === undefined &&
  newest.master_key_id === current.id &&
  canonicalJson(newest.document) === canonicalJson(document)

/** Throws a refusal as a failure of the command, with the next step for the person. */
function asError(error: unknown): never {
  if (!(error instanceof Problem)) throw error
  if (error.slug === 'already-exists')
    throw new Error(
      'another version was made at the same time: nothing was changed; look at it and try again',
    )
  throw new Error(`${error.detail}${WAY_ON[error.slug] ?? ''}`)
}
const WAY_ON: Record<string, string> = {
  'approval-required': '. After they have approved, run the same command with --approval and its id',
  unavailable: '. Look at it with bursar policy show, then add --replace-untrusted to replace it',
}

const validate = fileValidator(NewPolicyDocument)

/** Reads a policy from a file and completes it. Throws an Error that names the file, the member and the rule. */
async function readPolicyFile(file: string): Promise<PolicyDocument> {
  const bytes = await readFile(file)
  if (bytes.length > FILE_BYTES_MAX)
    throw new Error(`${file}: the file must have at most ${FILE_BYTES_MAX} bytes`)
  const text = bytes.toString('utf8')
  try {
    if (!isUtf8(bytes)) throw new Error('the file is not UTF-8')
    const value = JSON.parse(text) as Record<string, unknown>
    const refusal = refusalOfJson(text, FILE_BYTES_MAX)
    if (refusal !== undefined) throw refusal
    const checked = validate(value)
    if ('error' in checked) throw checked.error
    return completeDocument(checked.value as NewPolicyDocument)
  } catch (error) {
    const why = error instanceof Problem ? error.detail : (error as Error).message
    throw new Error(`${file}: ${why}`, { cause: error })
  }
}

/** Reads the master keys. Generates none, because no service would trust a policy with the MAC of a new key. */
async function requireMasterKeys(settings: Settings): Promise<MasterKeys> {
  const keys = await findMasterKeys(settings)
  if (keys === undefined)
    throw new Error(
      "BURSAR_MASTER_KEY_FILE: the MAC of a policy needs the service's master key, and none is configured",
    )
  return keys
}
