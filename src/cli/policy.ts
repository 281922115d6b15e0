import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import type { Database } from '../db/database.ts'
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
import { COMMON, wholeNumber } from './arguments.ts'
import { inDatabase, type AtDatabase } from './command-line.ts'
import { group, offline } from './define.ts'
import { tableOf } from './table.ts'

/** The limit of a request's body, too. */
const FILE_BYTES_MAX = 64 * 1024
const VERSION_MAX = 2_147_483_647

const WORDS = {
  ...COMMON,
  '<file>': ['the policy as JSON'],
  '--version <n>': ['an older version; needs --customer', wholeNumber(1, VERSION_MAX)],
  '--file <file>': ['the policy as JSON, as PUT /v2/policy takes it'],
  '--replace-untrusted': [
    'also replace a version whose MAC is wrong, after you have looked at it with bursar policy show',
  ],
} as const

export function policyCommands(program: Command): void {
  // Otherwise --version behind the command would be the program's own option.
  program.enablePositionalOptions()
  const about = "customers' policies: the rules for their payments, and which changes need approval"
  const policy = group(program, ['policy', about], inDatabase, WORDS)
  policy.command('show [--customer <id>] [--version <n>]', {
    about: 'list the newest version of each policy; with --customer, show it with its rules',
    async run({ db, settings }, { customer, version }) {
      const policies = new Policies(await requireMasterKeys(settings))
      if (customer !== undefined) return showOne(db, policies, customer, version)
      if (version !== undefined) throw new Error('--version: name the customer, too, with --customer')
      return showAll(db, policies)
    },
    says: (shown) => ('policies' in shown ? describeAll(shown) : describeOne(shown)),
  })
  policy.command('set --customer <id> --file <file> [--approval <id>] [--replace-untrusted]', {
    about: "make a new version of a customer's policy, which counts for every payment from then on",
    run: (at, { customer, ...given }) => setPolicy(at, customer, given),
    says({ version, created_at, changed, replaced_untrusted: untrusted }) {
      if (!changed) return `Version ${version} is this policy already: nothing was changed.`
      const told = untrusted
        ? `\nIt replaces version ${untrusted.version}, which could not be trusted: ${untrusted.objection}.`
        : ''
      return `Version ${version} counts since ${created_at}.${told}`
    },
    logs: 'set a policy',
    logged: ({ customer_id, version, replaced_untrusted }) => ({ customer_id, version, replaced_untrusted }),
  })
  policy.command('check <file>', {
    in: offline,
    about: 'check a file with a policy, as bursar policy set does. Needs no database',
    run: async (_, { file }) => ({ valid: true, policy: await readPolicyFile(file) }),
    says: ({ policy: { rules } }, { file }) =>
      `${file} is a valid policy with ${rules.length === 1 ? '1 rule' : `${rules.length} rules`}.`,
  })
}

async function showAll(db: Database, policies: Policies) {
  const found = []
  for await (const { document, objection, ...about } of policies.newestOfAll(db))
    found.push({ ...about, rules: document.rules.length, ...trustOf(objection) })
  return { policies: found }
}

function describeAll({ policies }: Awaited<ReturnType<typeof showAll>>): string {
  if (policies.length === 0) return 'No customer has a policy.'
  type Shown = (typeof policies)[number]
  const trusted = ({ objection }: Shown) => (objection === undefined ? 'yes' : `no: ${objection}`)
  const columns = [
    ...(['customer_id', '>version', 'created_at', '>rules', 'master_key_id'] as const),
    ['trusted', trusted] as const,
  ]
  return tableOf(policies, columns, undefined)
}

async function showOne(db: Database, policies: Policies, customer_id: string, version: number | undefined) {
  const found = await policies.examine(db, customer_id, version)
  if (found === undefined && version !== undefined)
    throw new Error(`the policy of customer ${customer_id} has no version ${version}`)
  if (found === undefined) return { customer_id, version: 0, policy: { rules: [] } }
  const { document, objection, ...about } = found
  return { ...about, ...trustOf(objection), policy: document }
}

function describeOne(shown: Awaited<ReturnType<typeof showOne>>): string {
  if (!('created_at' in shown)) return 'There is no policy.'
  const { version, created_at, objection, policy } = shown
  const trust = objection === undefined ? '' : `\nIt cannot be trusted: ${objection}.`
  return `Version ${version}, since ${created_at}.${trust}\n${JSON.stringify(policy, null, 2)}`
}

const trustOf = (objection: string | undefined): { trusted: boolean; objection?: string } => ({
  trusted: objection === undefined,
  ...(objection !== undefined && { objection }),
})

async function setPolicy(
  { db, settings, origin }: AtDatabase,
  customer_id: string,
  { file, approval: approval_id, replace_untrusted }: SetOptions,
) {
  const document = await readPolicyFile(file)
  const masterKeys = await requireMasterKeys(settings)
  const policies = new Policies(masterKeys)
  const newest = await policies.examine(db, customer_id)
  if (newest !== undefined && isSame(newest, document, masterKeys)) {
    const { version, created_at } = newest
    return { customer_id, version, created_at, changed: false }
  }
  const change = { customer_id, origin, approval_id, replace_untrusted }
  const { version, created_at, untrusted } = await replacePolicy(db, policies, document, change).catch(
    asError,
  )
  return {
    ...{ customer_id, version, created_at, changed: true },
    ...(untrusted && { replaced_untrusted: untrusted }),
  }
}

interface SetOptions {
  file: string
  approval?: string | undefined
  replace_untrusted?: true | undefined
}

/** Whether the newest version is this policy with a MAC by the current master key. After a change of key, it is made again. */
const isSame = (newest: ExaminedVersion, document: PolicyDocument, { current }: MasterKeys): boolean =>
  newest.objection === undefined &&
  newest.master_key_id === current.id &&
  canonicalJson(newest.document) === canonicalJson(document)

/** Throws a refusal as a failure of the command, with the next step for the person. */
function asError(error: unknown): never {
  const { slug, detail } = error as Partial<Problem>
  if (slug === 'already-exists')
    throw new Error(
      'another version was made at the same time: nothing was changed; look at it and try again',
    )
  if (slug === 'unavailable')
    throw new Error(
      `${detail}. Look at it with bursar policy show, then add --replace-untrusted to replace it`,
    )
  throw error
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
