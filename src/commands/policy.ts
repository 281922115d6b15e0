import { isUtf8 } from 'node:buffer'
import { readFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { Problem } from '../contract/problems.ts'
import type { Database } from '../db/database.ts'
import { duplicateMember } from '../http/duplicate-member.ts'
import { fileValidator } from '../http/validation.ts'
import { findMasterKeys, type MasterKeys } from '../keys/master-keys.ts'
import { replacePolicy } from '../policy/put-policy.ts'
import {
  canonicalJson,
  completeDocument,
  NewPolicyDocument,
  Policies,
  type ExaminedVersion,
  type PolicyDocument,
} from '../records/policy.ts'
import type { Settings } from '../settings.ts'
import {
  logOperator,
  originOfCommand,
  requireCustomer,
  uuid,
  wholeNumber,
  withDatabase,
} from './command-line.ts'
import { print, table } from './output.ts'

/** As large as the body of a request. */
const FILE_BYTES_MAX = 64 * 1024
const VERSION_MAX = 2_147_483_647

/** Defines `bursar policy`. */
export function policyCommands(program: Command): void {
  // Otherwise --version behind the command would be that of the program.
  program.enablePositionalOptions()
  const policy = program
    .command('policy')
    .description("customers' policies: the rules for their payments, and which changes need approval")
  defineShow(policy)
  defineSet(policy)
  defineCheck(policy)
}

function defineShow(policy: Command): void {
  policy
    .command('show')
    .description('list the newest version of each policy; with --customer, show it with its rules')
    .option('--customer <id>', 'customer', uuid)
    .option('--version <n>', 'an older version; needs --customer', wholeNumber(1, VERSION_MAX))
    .option('--json', 'print JSON')
    .action((options: { customer?: string; version?: number; json?: true }) =>
      withDatabase(async (db, settings) => {
        const { customer, version, json } = options
        const policies = new Policies(await requireMasterKeys(settings))
        if (customer !== undefined) return showOne(db, policies, customer, options)
        if (version !== undefined) throw new Error('--version: name the customer, too, with --customer')
        const found: ExaminedVersion[] = []
        for await (const one of policies.newestOfAll(db)) found.push(one)
        if (json) return print({ policies: found.map(({ document, ...one }) => summaryOf(one, document)) })
        if (found.length === 0) return print('No customer has a policy.')
        print(
          table(
            ['customer_id', '>version', 'created_at', '>rules', 'master_key_id', 'trusted'],
            found.map((one) => [
              ...[one.customer_id, one.version, one.created_at, one.document.rules.length],
              ...[one.master_key_id, one.objection === undefined ? 'yes' : `no: ${one.objection}`],
            ]),
          ),
        )
      }),
    )
}

async function showOne(
  db: Database,
  policies: Policies,
  customer: string,
  { version, json }: { version?: number; json?: true },
): Promise<void> {
  await requireCustomer(db, customer)
  const found = await policies.examine(db, customer, version)
  if (found === undefined && version !== undefined)
    throw new Error(`the policy of customer ${customer} has no version ${version}`)
  if (found === undefined)
    return print(json ? { customer_id: customer, version: 0, policy: { rules: [] } } : 'There is no policy.')
  const { document, objection, ...about } = found
  if (json) return print({ ...about, ...trustOf(objection), policy: document })
  const trust = objection === undefined ? '' : `\nIt cannot be trusted: ${objection}.`
  print(`Version ${found.version}, since ${found.created_at}.${trust}\n${JSON.stringify(document, null, 2)}`)
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
  json?: true
}

function defineSet(policy: Command): void {
  policy
    .command('set')
    .description("make a new version of a customer's policy, which counts for every payment from then on")
    .requiredOption('--customer <id>', 'customer', uuid)
    .requiredOption('--file <file>', 'the policy as JSON, as PUT /v2/policy takes it')
    .option('--approval <id>', 'approval of this change, where the policy requires one', uuid)
    .option(
      '--replace-untrusted',
      'also replace a version whose MAC is wrong, after you have looked at it with bursar policy show',
    )
    .option('--json', 'print JSON')
    .action((options: SetOptions) =>
      withDatabase(async (db, settings) => {
        const { customer, json } = options
        const document = await readPolicyFile(options.file)
        const masterKeys = await requireMasterKeys(settings)
        const policies = new Policies(masterKeys)
        await requireCustomer(db, customer)
        const newest = await policies.examine(db, customer)
        if (newest !== undefined && isSame(newest, document, masterKeys)) {
          const { version, created_at } = newest
          return print(
            json
              ? { customer_id: customer, version, created_at, changed: false }
              : `Version ${version} is this policy already: nothing was changed.`,
          )
        }
        const { version, created_at, untrusted } = await replacePolicy(db, policies, document, {
          customer_id: customer,
          origin: originOfCommand(),
          approval_id: options.approval,
          replace_untrusted: options.replaceUntrusted,
        }).catch(asError)
        logOperator(settings, 'set a policy', { customer_id: customer, version, untrusted })
        const replaced = untrusted && {
          replaced_untrusted: untrusted,
        }
        const told = untrusted
          ? `\nIt replaces version ${untrusted.version}, which could not be trusted: ${untrusted.objection}.`
          : ''
        print(
          json
            ? { customer_id: customer, version, created_at, changed: true, ...replaced }
            : `Version ${version} counts since ${created_at}.${told}`,
        )
      }),
    )
}

/** Whether the newest version is this policy, with a MAC by the current master key: after a change of key it is made again. */
const isSame = (newest: ExaminedVersion, document: PolicyDocument, { current }: MasterKeys): boolean =>
  newest.objection === undefined &&
  newest.master_key_id === current.id &&
  canonicalJson(newest.document) === canonicalJson(document)

/** Throws a refusal as a failure of the command, with the way on. */
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

function defineCheck(policy: Command): void {
  policy
    .command('check')
    .description('check a file with a policy, as bursar policy set does. Needs no database')
    .argument('<file>', 'the policy as JSON')
    .option('--json', 'print JSON')
    .action(async (file: string, { json }: { json?: true }) => {
      const document = await readPolicyFile(file)
      const rules = document.rules.length
      print(
        json
          ? { valid: true, policy: document }
          : `${file} is a valid policy with ${rules === 1 ? '1 rule' : `${rules} rules`}.`,
      )
    })
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
    const duplicate = duplicateMember(text, value)
    if (duplicate !== undefined) throw new Error(`${duplicate.join('.')} is given more than once`)
    const checked = validate(value)
    if ('error' in checked) throw checked.error
    return completeDocument(checked.value as NewPolicyDocument)
  } catch (error) {
    const why = error instanceof Problem ? error.detail : (error as Error).message
    throw new Error(`${file}: ${why}`, { cause: error })
  }
}

/** A new key in this process would make policies that no service trusts, so none is generated. */
async function requireMasterKeys(settings: Settings): Promise<MasterKeys> {
  const keys = await findMasterKeys(settings)
  if (keys === undefined)
    throw new Error(
      "BURSAR_MASTER_KEY_FILE: the MAC of a policy needs the service's master key, and none is configured",
    )
  return keys
}
