/*
 * Every command that changes something leaves its records in the audit log, with the user of the operating system. The walk
 * holds a list of all commands, so that a new one says here what it records.
 */
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { Command } from 'commander'
import { expect, test } from 'vitest'
import { createCustomer } from '../src/money/records/customer.ts'
import { PLATFORM_ID } from '../src/db/ids.ts'
import { operatorName } from '../src/cli/command-line.ts'
import { fund, newCustomer, runBursar, withdrawalOf, ownTestService } from './support.ts'

const ids: Record<string, string> = {}
const service = await ownTestService()
const customer = await newCustomer(service)
const made = async (url: string, body: object) => {
  const answer = await customer.call<{ id: string }>('POST', url, body)
  expect(answer.status).toBe(200)
  return answer.body.id
}
const person_details = { first_name: 'Ada', last_name: 'Lovelace' }
ids.identity = await made('/v2/identity/identities', { ref_id: 'ada', person_details })
ids.account = await made('/v2/identity/accounts', { account: { identity_id: ids.identity } })
ids.customer = customer.customer_id
ids.profile = customer.profile_id
ids.client = customer.client_id
ids.other = (await createCustomer(service.db, 'Other')).customer_id
await fund(customer, '100')
ids.transfer = await made('/v2/transfer/crypto-withdrawals', withdrawalOf(customer))
await service.db.query(
  `insert into screenings (customer_id, kind, subject, id, created_at, state, attempts, detail)
     values ($1, 'WITHDRAWAL', $2, $3, clock_timestamp(), 'REJECTED', 1, 'it said REJECT')`,
  [customer.customer_id, ids.transfer, randomUUID()],
)
ids.file = join(tmpdir(), `${ids.other}.csv`)
ids.policy = join(tmpdir(), `${ids.other}.json`)
await writeFile(ids.policy, '{"rules":[{"action":"BLOCK","match":{"assets":["BTC"]}}]}')
await writeFile(ids.file, '1704067200,1,1,1,1,1,1\n1704067260,2,2,2,2,1,1\n')

/** Commands that change nothing. */
const READS = [
  ...['doctor', 'verify', 'deployment show', 'completion', 'customer list', 'client list', 'account list'],
  ...[
    'identity list',
    'keys list',
    'freeze list',
    'report trial-balance',
    'report accounts',
    'report general-ledger',
    'report activity',
    'report wires',
    'report closed-days',
    'export hledger',
    'export beancount',
    'statements list',
    'statements explain',
    'rewards rate list',
  ],
  ...[
    'networks status',
    'networks deposit-key',
    'psbt list',
    'treasury list',
    'treasury refill',
    'bank lines',
    'bank reconciliation',
    'wire list',
    'wire show',
    'deposits list',
  ],
  ...['prices status', 'events list', 'events show', 'events tail', 'listen', 'audit list', 'audit verify'],
  ...[
    'audit head',
    'transfer list',
    'transfer show',
    'balance list',
    'withdrawal list',
    'complete',
    'operator list',
    'operator sessions',
    'screening list',
    'approvals list',
  ],
  ...['approvals show', 'approvers list', 'approvals key', 'policy show', 'policy check'],
]
/** Commands that call the API: its operations record the changes, as their client. */
const API = [
  ...['api', 'trigger', 'events resend', 'webhooks create', 'webhooks list', 'webhooks test'],
  ...['webhooks rotate', 'webhooks recover', 'webhooks deliveries'],
]
/** Commands that change nothing themselves: the service's loops and its API's clients do, and record it. */
const PROGRAMS = ['serve']
/** Commands of the signer process, which has a journal of its own and no database. */
const SIGNER = [
  'signer start',
  'signer sign',
  'signer open',
  'signer allow',
  'signer void',
  'signer fill',
  'signer destination',
]
/** Commands that delete the audit log with everything else. */
const ENDS = ['sandbox reset']

const CLI = 'test/cli.slow.test.ts'
const BANK = 'src/resources/operators/bank-statements.db.test.ts'
const WIRES = 'src/cli/wires.program.test.ts'
const PAYMENTS = 'src/rails/payouts/operator-commands.db.test.ts'
const REAL_NETWORKS = 'test/real-networks-serve.chain.test.ts'
const PSBTS = 'chains/bitcoin/psbt.chain.test.ts'
const APPROVALS = 'src/cli/approvals.db.test.ts'
/** Commands that need more than a database: the test that asserts the record of each, and how it names the action. */
const ELSEWHERE: Record<string, [file: string, named: string]> = {
  migrate: [CLI, '"deployment.migrate"'],
  'deployment change-issuer': ['test/deployment.program.test.ts', "'deployment.change_issuer'"],
  'prices follow': ['src/cli/prices.slow.test.ts', "'market.follow'"],
  'statements generate': [CLI, "'statement.generate'"],
  'statements pay': [CLI, "'statement.pay'"],
  'statements reverse': ['src/resources/statements/pay-statements.slow.test.ts', "'statement.reverse'"],
  'bank import': [BANK, "'bank_statement.import'"],
  'bank match': [BANK, "'bank_line.match'"],
  'wire take': [WIRES, "'transfer.take'"],
  'wire mark-sent': [WIRES, "'transfer.mark_sent'"],
  'wire mark-failed': [WIRES, "'transfer.mark_failed'"],
  'wire record-deposit': [WIRES, "'transfer.create'"],
  'wire send-back': [WIRES, "'transfer.fail'"],
  'wire record-return': [WIRES, "'transfer.create'"],
  'withdrawal cancel': [PAYMENTS, "'transfer.cancel'"],
  'withdrawal mark-paid': [PAYMENTS, "'transfer.mark_paid'"],
  'withdrawal resend': [PAYMENTS, "'transfer.resend'"],
  'withdrawal resolve': [PAYMENTS, "'transfer.resolve'"],
  'treasury send': [PAYMENTS, "'transfer.order'"],
  'treasury confirm': ['chains/evm/refills.chain.test.ts', "'transfer.order'"],
  'treasury cancel': [PAYMENTS, "'transfer.cancel'"],
  'wallet consolidate': [PAYMENTS, "'transfer.order'"],
  'wallet acknowledge': [REAL_NETWORKS, "'transfer.acknowledge'"],
  'psbt export': [PSBTS, "'transfer.export'"],
  'psbt import': [PSBTS, "'transfer.sign'"],
  'psbt replace': [PSBTS, "'transfer.replace'"],
  'deposits rescan': [PAYMENTS, "'network.rescan'"],
  'deposits resume': [REAL_NETWORKS, "'network.resume'"],
  'deposits credit': [PAYMENTS, "'transfer.create'"],
  'screening waive': [CLI, "'screening.waive'"],
  'operator create': [CLI, "'operator.create'"],
  'operator link': [CLI, "'operator.link'"],
  'console link': [CLI, "'operator.link'"],
  'operator role': [CLI, "'operator.set_role'"],
  'operator disable': [CLI, "'operator.disable'"],
  'operator enable': [CLI, "'operator.enable'"],
  'operator revoke': [CLI, "'session.revoke'"],
  'operator passkeys': [CLI, "'passkey.delete'"],
  'approvers add': [APPROVALS, "'approver.add'"],
  'approvers revoke': [APPROVALS, "'approver.revoke'"],
  'approvals approve': [APPROVALS, "'approval.approve'"],
  'approvals reject': [APPROVALS, "'approval.reject'"],
}

/** The commands that run here, in this order: the arguments, whose log has the record, and its action. */
const RUN: Record<string, [args: () => string[], owner: () => string, action: string]> = {
  'customer create': [() => ['--name', 'New'], () => ids.created!, 'customer.create'],
  'client create': [
    () => ['--customer', ids.other!, '--scopes', 'events:read_event'],
    () => ids.other!,
    'api_client.create',
  ],
  'client rotate': [() => [ids.client!], () => ids.customer!, 'api_client.rotate'],
  'client rename': [() => [ids.client!, 'Payouts'], () => ids.customer!, 'api_client.rename'],
  'client disable': [() => [ids.client!], () => ids.customer!, 'api_client.disable'],
  'client enable': [() => [ids.client!], () => ids.customer!, 'api_client.enable'],
  'customer disable': [() => [ids.other!], () => ids.other!, 'customer.disable'],
  'customer enable': [() => [ids.other!], () => ids.other!, 'customer.enable'],
  'account disable': [() => [ids.account!], () => ids.customer!, 'account.disable'],
  'account enable': [() => [ids.account!], () => ids.customer!, 'account.enable'],
  'identity deny': [() => [ids.identity!], () => ids.customer!, 'identity.deny'],
  'identity reopen': [() => [ids.identity!], () => ids.customer!, 'identity.reopen'],
  'identity approve': [() => [ids.identity!], () => ids.customer!, 'identity.approve'],
  'identity disable': [() => [ids.identity!], () => ids.customer!, 'identity.disable'],
  'identity enable': [() => [ids.identity!], () => ids.customer!, 'identity.enable'],
  'freeze customer': [() => [ids.customer!], () => ids.customer!, 'customer.freeze'],
  'unfreeze customer': [() => [ids.customer!], () => ids.customer!, 'customer.unfreeze'],
  'freeze profile': [() => [ids.profile!], () => ids.customer!, 'profile.freeze'],
  'unfreeze profile': [() => [ids.profile!], () => ids.customer!, 'profile.unfreeze'],
  'freeze network': [() => ['ETHEREUM'], () => PLATFORM_ID, 'network.freeze'],
  'unfreeze network': [() => ['ETHEREUM'], () => PLATFORM_ID, 'network.unfreeze'],
  'freeze all': [() => ['--reason', 'Grace Hopper called'], () => PLATFORM_ID, 'platform.freeze'],
  'unfreeze all': [() => [], () => PLATFORM_ID, 'platform.unfreeze'],
  'withdrawal seal': [() => [ids.transfer!], () => ids.customer!, 'transfer.seal'],
  'screening ask': [() => [ids.transfer!], () => ids.customer!, 'screening.ask'],
  'policy set': [() => ['--customer', ids.other!, '--file', ids.policy!], () => ids.other!, 'policy.set'],
  'rewards rate set': [
    () => ['--from', '2026-01-01', '--rate', '0.01'],
    () => PLATFORM_ID,
    'reward_rate.set',
  ],
  'prices import': [
    () => [ids.file!, '--market', 'BTCUSD', '--interval', '1m'],
    () => PLATFORM_ID,
    'market.import',
  ],
  // Last: they end the access token of this test.
  'keys rotate': [() => ['--now'], () => PLATFORM_ID, 'signing_key.create'],
  'keys seal': [() => [], () => PLATFORM_ID, 'master_key.replace'],
  'keys retire': [() => [ids.key!], () => PLATFORM_ID, 'signing_key.retire'],
}

/** All commands of the program, by their words. */
async function allCommands(): Promise<string[]> {
  const folder = fileURLToPath(new URL('../src/cli', import.meta.url))
  const program = new Command('bursar')
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts') || file.includes('.test.')) continue
    const exported = (await import(join(folder, file))) as Record<string, unknown>
    for (const [name, define] of Object.entries(exported))
      if (/Commands?$/.test(name) && typeof define === 'function' && /^(?!origin)/.test(name))
        (define as (program: Command, node: string) => void)(program, '>=20.19')
  }
  const leaves = (command: Command, words: string[]): string[] =>
    command.commands.length === 0
      ? [words.join(' ')]
      : command.commands.flatMap((one) => leaves(one, [...words, one.name()]))
  return leaves(program, [])
}

test('every command is listed here', async () => {
  const listed = new Set([
    ...READS,
    ...API,
    ...PROGRAMS,
    ...SIGNER,
    ...ENDS,
    ...Object.keys(ELSEWHERE),
    ...Object.keys(RUN),
  ])
  const all = await allCommands()
  expect(all.filter((name) => !listed.has(name))).toEqual([])
  expect([...Object.keys(ELSEWHERE), ...Object.keys(RUN)].filter((name) => !all.includes(name))).toEqual([])
})

test.each(Object.entries(ELSEWHERE))('a test asserts the record of: %s', (command, [file, named]) => {
  const text = readFileSync(fileURLToPath(new URL(`../${file}`, import.meta.url)), 'utf8')
  // The words of the command are in it, too, where the test runs it as a command.
  expect(text).toContain(named)
  if (![PAYMENTS, APPROVALS].includes(file)) return
  for (const word of command.split(' ')) expect(text).toContain(word)
})

/** The operators that a log names. */
const toldBy = (log: string) =>
  log
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as { user?: string; sudo_user?: string })
    .map(({ user, sudo_user }) => sudo_user ?? user)

interface Row {
  customer_id: string
  actor_type: string
  actor_id: string
  action: string
  outcome: string
  row: string
}

test('each command leaves exactly its record, in the chain of its customer or the platform', async () => {
  const all = async () => {
    const { rows } = await service.db.query<Row>(
      `select customer_id, actor_type, actor_id, action, outcome, a::text as row from audit_log a`,
    )
    return rows
  }
  ids.key = (await service.db.query<{ id: string }>('select id from signing_keys')).rows[0]!.id
  const secrets: string[] = []
  let before = new Set((await all()).map(({ row }) => row))
  const listOwn = () =>
    customer.call<{ items: { action: string }[] }>('GET', '/v2/audit-log?actor_type=COMMAND_LINE&limit=100')
  let listed: Awaited<ReturnType<typeof listOwn>> | undefined
  for (const [command, [args, owner, action]] of Object.entries(RUN)) {
    if (command === 'keys rotate') listed = await listOwn()
    const { code, stdout, stderr } = await runBursar([...command.split(' '), ...args(), '--json'], {
      DATABASE_URL: service.url,
      ...(command === 'keys seal' && { BURSAR_MIGRATIONS_DATABASE_URL: service.ownerUrl }),
    })
    expect(code, `${command}: ${stderr}`).toBe(0)
    // The log names the operator, too. Records of prices name their origin.
    if (command !== 'prices import') expect(toldBy(stderr), command).toContain(operatorName())
    const { customer_id, client_secret } = JSON.parse(stdout) as Record<string, string | undefined>
    if (command === 'customer create') ids.created = customer_id!
    if (client_secret !== undefined) secrets.push(client_secret)
    const now = await all()
    const made = now.filter(({ row }) => !before.has(row))
    expect(made, command).toMatchObject([
      {
        ...{ customer_id: owner(), action, outcome: 'DONE' },
        ...{ actor_type: 'COMMAND_LINE', actor_id: operatorName() },
      },
    ])
    before = new Set(now.map(({ row }) => row))
  }
  expect(secrets).toHaveLength(2)
  const text = [...before].join('\n')
  for (const mark of [...secrets, 'Ada', 'Lovelace', 'Grace Hopper', '"New"', 'Other'])
    expect(text).not.toContain(mark)
  // The customer sees its own records, and nothing of the platform or of others.
  const { status, body } = listed!
  expect(status).toBe(200)
  const own = Object.values(RUN).filter(([, owner]) => owner() === ids.customer)
  expect(body.items.map(({ action }) => action).reverse()).toEqual(own.map(([, , action]) => action))
})
