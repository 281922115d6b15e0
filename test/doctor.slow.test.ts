import { once } from 'node:events'
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { checkConsole } from '../src/access/console/files.ts'
import { judgeBackups, judgeHorizon } from '../src/db/check-database.ts'
import { remedyForReaders } from '../src/keys/secret-file.ts'
import { judgeNetwork } from '../src/rails/wallets/configured-networks.ts'
import { createCustomer } from '../src/money/records/customer.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { momentAt } from '../src/db/ids.ts'
import { CLUSTER } from './cluster.ts'
import type { ChangeSubject } from '../src/governance/policy/policy-document.ts'
import { setPolicy } from './policies.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { requireScreening } from '../src/rails/screening/requirement.ts'
import { newSigningSecret } from '../src/money/records/webhook-secrets.ts'
import {
  ROW_MACS,
  asAdmin,
  everyTable,
  MASTER_KEY,
  MASTER_KEYS,
  runBursar,
  serveBursar,
  signerOf,
  TEST_ORIGIN,
  testSettings,
  ownDatabase,
} from './support.ts'
import { atEnd, ownFolder } from './at-end.ts'

// `bursar doctor` on sound and on broken deployments.

const database = await ownDatabase()
const folder = await ownFolder()

const bursar = (args: string[], environment: Record<string, string> = {}) =>
  runBursar(args, { BURSAR_DATA_DIR: folder, PORT: '0', ...environment })

interface Report {
  healthy: boolean
  settings: { name: string; value?: string; from: string }[]
  checks: { check: string; result: string; says: string; advice?: string }[]
}

/** Runs the doctor. Returns its report, with each finding as `RESULT check: says`. */
async function doctor(environment: Record<string, string>) {
  const { code, stdout, stderr } = await bursar(['doctor', '--json'], environment)
  expect(stderr).toBe('')
  const { healthy, settings, checks } = JSON.parse(stdout) as Report
  expect(code).toBe(healthy ? 0 : 1)
  expect(healthy).toBe(checks.every(({ result }) => result !== 'FAIL'))
  for (const { result, advice } of checks) expect(advice === undefined).toBe(result === 'OK')
  return { settings, stdout, found: checks.map(({ result, check, says }) => `${result} ${check}: ${says}`) }
}

/** The role of an address. Its name is not the same on each server. */
const roleOf = (address: string) => new URL(address).username

/** A server other than Bursar, which answers every request with this body. */
async function stranger(body: (address: string) => object) {
  const server = createServer((_request, reply) => reply.end(JSON.stringify(body(address)))).listen(
    0,
    '127.0.0.1',
  )
  await once(server, 'listening')
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  atEnd(async () => void server.close())
  return address
}

const expectFound = (found: string[], lines: RegExp[]) =>
  expect(found).toEqual(expect.arrayContaining(lines.map((line) => expect.stringMatching(line) as string)))

test('a sound deployment is reported as such, and nothing changes', async () => {
  const { ready: service } = await serveBursar({
    DATABASE_URL: database.url,
    BURSAR_DATA_DIR: folder,
    BURSAR_MODE: 'live',
    BURSAR_LOG_LEVEL: 'silent',
  })
  const { customer_id } = await createCustomer(database.db, 'Test')
  const client = await createApiClient(database.db, ROW_MACS, customer_id, SCOPES)
  const before = await everyTable(database.db)
  const environment = {
    DATABASE_URL: database.url,
    PORT: new URL(service.address).port,
    BURSAR_BASE_URL: service.address,
    BURSAR_MODE: 'live',
  }
  const { found, settings } = await doctor(environment)
  expect(found).toEqual([
    `OK node: ${process.versions.node}`,
    expect.stringMatching(/^(OK user: not root|WARN user: this process runs as root)$/),
    `OK data folder: ${folder} is not used: there is a DATABASE_URL, and no demo in live mode`,
    expect.stringMatching(
      new RegExp(
        `^OK database: PostgreSQL \\d+.* answers, database test_\\w+, role ${roleOf(database.url)}$`,
      ),
    ),
    expect.stringMatching(/^OK schema: version \d+, up to date$/),
    `OK mode: live, with the token issuer ${service.address}`,
    'OK database role: it owns no table, and cannot change ledger entries',
    'WARN verify: bursar verify has not run yet',
    expect.stringMatching(
      new RegExp(
        `^WARN clients: clients with sandbox scopes \\(transfer:write_sandbox_fiat_deposit, sandbox:write_sandbox\\): ${client.client_id}$`,
      ),
    ),
    'OK sessions: each session has a connection of its own',
    expect.stringMatching(/^OK clock: .* \d+ ms apart$/),
    ...CLUSTER.slice(1).map(
      () =>
        expect.stringMatching(/^OK nodes: node \S+ answers, \d+ ms from the coordinator's clock$/) as string,
    ),
    'OK ascending lists: they reach the present',
    'OK worker: no work is due',
    'OK freezes: nothing is frozen',
    'OK partitions: events, deliveries and attempts have their weekly partitions',
    'OK webhooks: none fails',
    'OK screening: not configured',
    'OK statements: no ended month is missing',
    'OK operators: there are none',
    'OK policies: no customer has a policy',
    'WARN backups: archive_mode is off: unless something else copies the log, a disaster loses everything since the last dump',
    `OK keys: master key ${MASTER_KEYS.current.id}`,
    'WARN networks: no network is configured: crypto withdrawals are refused',
    'OK bank: no bank account: deposit instructions and fiat withdrawals are refused',
    'OK transport: connections to other machines are encrypted',
    'OK limits: clients and addresses have limits',
    `OK console: operators sign in at ${service.address}/console`,
    `OK port: Bursar answers at 127.0.0.1:${environment.PORT}`,
    `OK tokens: issued by ${service.address}`,
  ])
  expect(settings).toContainEqual({ name: 'PORT', value: environment.PORT, from: 'environment' })
  expect(settings).toContainEqual({ name: 'BURSAR_WORKER', value: 'true', from: 'default' })
  expect(await everyTable(database.db)).toEqual(before)
})

test('screening without its settings, with a bad secret, and with payments that wait', async () => {
  const { customer_id } = await createCustomer(database.db, 'Screened')
  const screeningLines = async (environment: Record<string, string>) =>
    (await doctor({ DATABASE_URL: database.url, ...environment })).found.filter((line) =>
      line.includes(' screening: '),
    )
  const secret = join(folder, 'screening-secret')
  const on = { BURSAR_SCREENING_URL: 'https://screening.example', BURSAR_SCREENING_SECRET_FILE: secret }
  await writeFile(secret, 'whsec_c2hvcnQ=\n')
  expect(await screeningLines(on)).toEqual([
    expect.stringMatching(/^FAIL screening: BURSAR_SCREENING_SECRET_FILE: .* no secret of 24 to 64 bytes/),
  ])
  await writeFile(secret, `${newSigningSecret()}\n`)
  expect(await screeningLines(on)).toEqual(['OK screening: no payment waits long for its screening'])
  const network = 'ETHEREUM'
  await database.db.query(
    `insert into incoming_transfers (customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount, state,
                                     reason, cleared, attempts, found_at, due_at)
     values ($1, $2, '0xab', '0', '0x1', 'USDP', 1, 'WAITING', 'SCREENING', true, 1, clock_timestamp(), clock_timestamp())`,
    [customer_id, network],
  )
  await database.db.query(
    `insert into screenings (customer_id, kind, subject, id, created_at, state, attempts, due_at)
     values ($1, 'DEPOSIT', $2, gen_random_uuid(), clock_timestamp() - interval '1 hour', 'WAITING', 3, clock_timestamp())`,
    [customer_id, `${network}/0xab/0`],
  )
  expect(await screeningLines(on)).toEqual([
    expect.stringMatching(/^WARN screening: 1 payments wait for their screening, the first for 36\d\d s$/),
  ])
  await requireScreening(database.db, TEST_ORIGIN)
  expect(await screeningLines({})).toEqual([
    expect.stringMatching(
      /^FAIL screening: payments are screened since 20.*Z, and BURSAR_SCREENING_URL is not set here: a worker does not start$/,
    ),
  ])
  expect(await screeningLines({ BURSAR_SCREENING_SECRET_FILE: secret })).toEqual([
    'FAIL screening: BURSAR_SCREENING_SECRET_FILE: it needs BURSAR_SCREENING_URL',
  ])
})

test('webhooks that fail for ten minutes or are disabled, and an allow-list that opens this machine', async () => {
  const own = await ownDatabase()
  const { customer_id } = await createCustomer(own.db, 'Test')
  await own.owner.query(
    `insert into webhooks (customer_id, id, created_at, updated_at, name, url, event_types, payload, auth, rate_limit,
                           status, encrypted_secrets, cursor_id, failing_since, disabled_reason, next_at)
     select $1, gen_random_uuid(), now(), now(), name, 'https://example.com', '{*}', 'THIN', '{}', 10, status, '',
            gen_random_uuid(), now() - failing, reason, now()
     from (values ('dead', 'ACTIVE', interval '3 hours', null), ('gone', 'DISABLED', interval '2 hours', 'it answered 410'),
                  ('late', 'ACTIVE', interval '10 minutes 1 second', null), ('new', 'ACTIVE', interval '9 minutes', null), ('off', 'DISABLED', null, null)) v (name, status, failing, reason)`,
    [customer_id],
  )
  const { found } = await doctor({
    DATABASE_URL: own.url,
    BURSAR_MODE: 'live',
    BURSAR_WEBHOOK_ALLOWED_NETWORKS: '10.0.0.0/8,127.0.0.0/8',
    BURSAR_DATA_DIR: await ownFolder(),
  })
  expect(found.filter((line) => line.includes(' webhooks: '))).toEqual([
    'WARN webhooks: BURSAR_WEBHOOK_ALLOWED_NETWORKS lets customers reach 127.0.0.1',
    expect.stringMatching(
      new RegExp(
        `^WARN webhooks: deliveries to webhook "dead" of customer ${customer_id} have failed since 20`,
      ),
    ),
    expect.stringMatching(
      /^WARN webhooks: webhook "gone" of customer .* is disabled, because deliveries failed/,
    ),
    expect.stringMatching(/^WARN webhooks: deliveries to webhook "late" of customer .* have failed since 20/),
  ])
})

test('ascending lists that are not available, or end long ago', async () => {
  const untracked = await ownDatabase()
  await asAdmin(`alter database ${new URL(untracked.url).pathname.slice(1)} set track_activities = off`)
  const { found } = await doctor({ DATABASE_URL: untracked.url, BURSAR_DATA_DIR: await ownFolder() })
  expectFound(found, [/^FAIL ascending lists: track_activities is off in PostgreSQL: it must be on$/])

  const readAt = momentAt('2026-03-01T12:10:00.000000Z')
  const judge = (text: string) => judgeHorizon({ ...momentAt(text), readAt })
  expect(judge('2026-03-01T12:09:00.000000Z')).toEqual({ result: 'OK', says: 'they reach the present' })
  expect(judge('2026-03-01T12:00:00.000000Z')).toMatchObject({
    result: 'WARN',
    says: 'ascending lists and lists of events end 600 s ago, webhooks go on: a transaction has been open since 2026-03-01T12:00:00.000000Z',
  })
})

test('a missing week, and rows of weeks without a partition', async () => {
  const broken = await ownDatabase()
  const { rows } = await broken.owner.query<{ name: string }>(
    `select inhrelid::regclass::text as name from pg_inherits where inhparent = 'events'::regclass order by 1 limit 2`,
  )
  await broken.owner.query(`drop table ${rows[1]!.name}`)
  await broken.db.query(
    `insert into webhook_attempts (customer_id, webhook_id, event_id, id, created_at, attempt, duration_ms)
     select id, id, id, '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f', now(), 1, 1 from (select gen_random_uuid() as id) r`,
  )
  const { found } = await doctor({ DATABASE_URL: broken.url })
  expectFound(found, [
    /^WARN partitions: events: no partition for this week or the next$/,
    /^OK partitions: webhook_attempts: rows of weeks without a partition: 1; they are deleted by their age$/,
  ])
})

test('a master key that is missing, readable by others or different from the first', async () => {
  const broken = await ownDatabase()
  await signerOf(broken.db)
  const own = await ownFolder()
  const file = join(own, 'key')
  await writeFile(file, 'f0e1d2c3b4a5968778695a4b3c2d1e0f00112233445566778899aabbccddeeff', { mode: 0o644 })
  const live = { DATABASE_URL: broken.url, BURSAR_MODE: 'live', BURSAR_DATA_DIR: own, BURSAR_MASTER_KEY: '' }
  expectFound((await doctor(live)).found, [
    /^FAIL keys: live mode needs a master key, and none is set$/,
    ...(process.getuid!() === 0 ? [/^WARN user: this process runs as root$/] : []),
  ])
  expectFound((await doctor({ ...live, BURSAR_MASTER_KEY_FILE: file })).found, [
    /^OK keys: master key [0-9a-f]{8}, in /,
    /^WARN keys: other users may read .*key$/,
    new RegExp(
      `^FAIL keys: signing key \\S+ is encrypted with master key ${MASTER_KEYS.current.id}, which is not set$`,
    ),
  ])
  const { stdout, found } = await doctor({ ...live, BURSAR_MASTER_KEY: MASTER_KEY })
  expect(stdout).not.toContain(MASTER_KEY)
  expectFound(found, [/^OK keys: /])
})

test('the remedy for a readable secret never takes it from the service', () => {
  const remedyFor = (mode: number, uid: number, gid: number, me = 999) =>
    remedyForReaders('key', { mode: 0o100000 | mode, uid, gid }, { uid: me, groups: [999] })
  // As the guide to going live installs it: root:bursar, for the group alone.
  expect(remedyFor(0o440, 0, 999)).toBeUndefined()
  expect(remedyFor(0o440, 0, 999, 0)).toBeUndefined()
  expect(remedyFor(0o600, 999, 999)).toBeUndefined()
  expect(remedyFor(0o640, 999, 999)).toBe('chmod 600 key')
  expect(remedyFor(0o644, 0, 999)).toBe('chmod o= key')
  expect(remedyFor(0o644, 0, 999, 0)).toBe('chmod o= key')
  expect(remedyFor(0o644, 0, 0)).toBe('chown 999 key && chmod 600 key')
  expect(remedyFor(0o604, 0, 999)).toBe('chown 999 key && chmod 600 key')
})

test('a console without links that others can open, and one that is not built', async () => {
  const consoleLines = async (environment: Record<string, string>) =>
    (await doctor({ DATABASE_URL: database.url, ...environment })).found.filter((line) =>
      line.includes(' console: '),
    )
  expect(await consoleLines({ BURSAR_MODE: 'live' })).toEqual([
    'WARN console: its links name this machine, and its cookies may travel without TLS: BURSAR_BASE_URL is not set',
  ])
  expect(await consoleLines({ BURSAR_CONSOLE: 'false' })).toEqual(['OK console: switched off'])
  expect(checkConsole(testSettings(), false)).toMatchObject([
    { result: 'WARN', says: 'it is not built, so /console answers 404' },
  ])
})

test('operators without an ADMIN, and those who cannot sign in', async () => {
  const own = await ownDatabase()
  const ownData = await ownFolder()
  const operatorLines = async (environment: Record<string, string> = {}) =>
    (await doctor({ DATABASE_URL: own.url, BURSAR_DATA_DIR: ownData, ...environment })).found.filter((line) =>
      line.includes(' operators: '),
    )
  await own.db.query(
    `insert into operators (id, created_at, updated_at, name, role, openid_issuer, openid_subject, generation)
     values (gen_random_uuid(), now(), now(), 'Ada', 'VIEWER', 'https://id.example.com', 'ada', 1)`,
  )
  await own.db.query(
    `insert into operator_passkeys (id, operator_id, created_at, name, credential_id, public_key, signatures, transports)
     select gen_random_uuid(), id, now(), 'key', 'credential', '', 0, '{}' from operators`,
  )
  const [admin, passkeys, elsewhere] = [
    'WARN operators: none of 1 operators is an ADMIN',
    'WARN operators: 1 passkeys cannot sign in: BURSAR_BASE_URL is not set',
    'WARN operators: 1 operators have accounts at another OpenID provider than BURSAR_OPENID_ISSUER',
  ]
  expect(await operatorLines()).toEqual([admin, passkeys, elsewhere])
  const half = { BURSAR_OPENID_ISSUER: 'https://id.example.com', BURSAR_BASE_URL: 'http://127.0.0.1:8080' }
  expect(await operatorLines(half)).toEqual([
    'FAIL operators: BURSAR_OPENID_CLIENT_ID: needed with BURSAR_OPENID_ISSUER',
    admin,
    passkeys.replace('is not set', 'names an address'),
  ])
  await own.db.query(`update operators set role = 'ADMIN'`)
  const whole = {
    ...half,
    BURSAR_OPENID_CLIENT_ID: 'bursar',
    BURSAR_BASE_URL: 'http://localhost:8080',
  }
  expect(await operatorLines(whole)).toEqual(['OK operators: 1, of whom 1 are ADMIN'])
  await own.db.query('update operators set disabled_at = now()')
  expect(await operatorLines()).toEqual(['OK operators: there are none'])
})

test('policies that cannot be trusted, or not be checked', async () => {
  const broken = await ownDatabase()
  const own = await ownFolder()
  const policyLines = async (environment: Record<string, string> = {}) =>
    (await doctor({ DATABASE_URL: broken.url, BURSAR_DATA_DIR: own, ...environment })).found.filter((line) =>
      line.includes(' policies: '),
    )
  const sound = await createCustomer(broken.db, 'Sound')
  const other = await createCustomer(broken.db, 'Other')
  for (const { customer_id } of [sound, other]) await setPolicy(broken.db, customer_id, { rules: [] })
  expect(await policyLines()).toEqual(['OK policies: 2 can be trusted'])
  // Approvals that the maker of a client can go around.
  const changes = (...subjects: ChangeSubject[]) => ({ changes: { subjects, approvals: 1 } })
  const rules = [{ action: 'APPROVE' as const, approvals: 1 }]
  const open = [{ rules }, { rules: [], ...changes('POLICY') }]
  const closed = [{ rules, ...changes('POLICY', 'CREDENTIALS') }, { rules: [] }]
  for (const [documents, expected] of [
    [
      open,
      [sound, other].map(
        ({ customer_id }) =>
          `WARN policies: the policy of customer ${customer_id} requires approvals, and none of new API clients: one person can make one that orders`,
      ),
    ],
    [closed, ['OK policies: 2 can be trusted']],
  ] as const) {
    await setPolicy(broken.db, sound.customer_id, documents[0]!)
    await setPolicy(broken.db, other.customer_id, documents[1]!)
    expect(await policyLines()).toEqual(expected)
  }
  // As the service's role could: a version that asks for nothing, under the MAC of another one.
  await broken.db.query(
    `insert into policies (customer_id, version, document, mac, created_at)
     select customer_id, 4, document, mac, created_at from policies where customer_id = $1 and version = 3`,
    [other.customer_id],
  )
  const faulty = `version 4 of the policy of customer ${other.customer_id} cannot be trusted, so it pays nothing: its MAC does not match`
  expect(await policyLines()).toEqual([expect.stringMatching(`^FAIL policies: ${faulty}: `)])
  expect(await policyLines({ BURSAR_MASTER_KEY: '' })).toEqual([
    'FAIL policies: there are policies, and no master key to check them with: their customers pay nothing',
  ])
  const newKey = 'f0e1d2c3b4a5968778695a4b3c2d1e0f00112233445566778899aabbccddeeff'
  const lines = await policyLines({ BURSAR_MASTER_KEY: newKey })
  expect(lines).toHaveLength(2)
  for (const line of lines)
    expect(line).toMatch(`its MAC needs master key ${MASTER_KEYS.current.id}, which is not given`)
  // Later ones are counted.
  const all = await Promise.all(
    Array.from({ length: 22 }, async () => (await createCustomer(broken.db, 'More')).customer_id),
  )
  for (const id of all) await setPolicy(broken.db, id, { rules: [] })
  expect(await policyLines({ BURSAR_MASTER_KEY: newKey })).toHaveLength(6)
  expect(await policyLines({ BURSAR_MASTER_KEY: newKey })).toContain(
    'FAIL policies: 19 more policies cannot be trusted',
  )
  expect(await policyLines({ BURSAR_MASTER_KEY: `${newKey},${MASTER_KEY}` })).toEqual([
    expect.stringMatching(`^FAIL policies: ${faulty}: `),
  ])
})

test('a faulty bank file, and wires unsent for more than a day', async () => {
  const own = await ownFolder()
  const file = join(own, 'bank.json')
  const address = { country: 'US', address1: '1 Main Street', city: 'Springfield' }
  const account = {
    ...{ account_number: '000123456789', account_owner: 'Acme', account_owner_address: address },
    ...{ bank_name: 'First Example Bank', bank_address: address },
  }
  const about = async (content: object, mode = 'live') => {
    await writeFile(file, JSON.stringify(content))
    const environment = { DATABASE_URL: database.url, BURSAR_MODE: mode, BURSAR_BANK_FILE: file }
    return (await doctor(environment)).found.filter((line) => / bank: /.test(line))
  }
  expect(await about({ ...account, account_owner: ' ', routing_numbers: { ABA: '1' } })).toEqual([
    'FAIL bank: account_owner must not be blank',
  ])
  expect(await about({ ...account, routing_numbers: { ABA: '1' } })).toEqual([
    expect.stringMatching(/^FAIL bank: routing_numbers\.ABA /),
  ])
  const good = { ...account, routing_numbers: { ABA: '021000021' } }
  expect(await about(good)).toEqual([
    'OK bank: wires are received by Acme at First Example Bank; 0 wires to send, 0 taken and not marked',
  ])
  expect(await about(good, 'sandbox')).toEqual([
    "FAIL bank: a bank account is for live mode: a sandbox's bank is simulated",
  ])
  await database.owner.query(
    `insert into outgoing_transfers (customer_id, transfer_id, network, state, created_at, due_at, waiting_code, waiting_detail)
     select gen_random_uuid(), gen_random_uuid(), 'WIRE', 'HELD', now() - interval '30 hours', now() + interval '1 hour',
            'WIRE_TO_TAKE', 'an operator is to send it'`,
  )
  atEnd(
    async () => void (await database.owner.query("delete from outgoing_transfers where network = 'WIRE'")),
  )
  expect(await about(good)).toEqual([
    'WARN bank: 1 wires to send, 0 taken and not marked, the oldest for 30 hours',
  ])
})

test('wallet keys in a process that clients reach, and the public key to configure instead', async () => {
  const own = await ownFolder()
  const file = join(own, 'networks.json')
  const section = { adapter: 'evm', rpc_url: 'http://127.0.0.1:1', confirmations: 12, fee_ceiling: '200' }
  const keys = { hot_wallet_key: { env: 'HOT' }, deposit_key: { env: 'WORDS' } }
  await writeFile(file, JSON.stringify({ ETHEREUM: { ...section, ...keys } }))
  const HOT = '4f1c3b5d7e9a0b2c4d6f8192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6'
  const WORDS = 'test test test test test test test test test test test junk'
  const live = { DATABASE_URL: database.url, BURSAR_MODE: 'live', BURSAR_NETWORKS_FILE: file, HOT, WORDS }
  const has = 'WARN networks: ETHEREUM: this process holds the private hot_wallet_key and deposit_key'
  const inNetworks = async (environment: Record<string, string>) =>
    (await doctor({ ...live, ...environment })).found.filter((line) => line.includes('the private'))
  expect(await inNetworks({ HOST: '0.0.0.0' })).toEqual([`${has}, and serves requests at 0.0.0.0`])
  expect(await inNetworks({ BURSAR_WORKER: 'false' })).toEqual([`${has}, and runs no worker`])
  expect(await inNetworks({ HOST: '127.0.0.1' })).toEqual([])

  const { stdout } = await bursar(['networks', 'deposit-key', 'ETHEREUM', '--json'], live)
  const { deposit_public_key } = JSON.parse(stdout) as { deposit_public_key: string }
  expect(deposit_public_key).toMatch(/^xpub/)
  const without = await bursar(['networks', 'deposit-key', 'LITECOIN'], live)
  expect([without.code, without.stderr]).toEqual([
    1,
    'there is no section LITECOIN in BURSAR_NETWORKS_FILE\n',
  ])
  const watching = {
    hot_wallet_address: '0x52908400098527886E0F7030069857D2E4169EE7',
    deposit_key: { env: 'XPUB' },
  }
  await writeFile(file, JSON.stringify({ ETHEREUM: { ...section, ...watching } }))
  expect(await inNetworks({ BURSAR_WORKER: 'false', HOST: '0.0.0.0', XPUB: deposit_public_key })).toEqual([])
})

test('no output contains a password', async () => {
  const url = new URL(database.url)
  expect(url.password).not.toBe('')
  const { stdout } = await bursar(['doctor'], { DATABASE_URL: url.href })
  expect(stdout).not.toContain(url.password)
  expect(stdout).toMatch(
    new RegExp(`^DATABASE_URL +postgres://${roleOf(database.url)}:\\*{3}@\\S+ +environment$`, 'm'),
  )
  expect(stdout).toMatch(/^OK {3}database: PostgreSQL /m)
})

test.each<Record<string, string>>([
  { DATABASE_URL: 'u:secret-word@127.0.0.1:5432/x' },
  { DATABASE_URL: 'host=127.0.0.1 dbname=x user=u password=secret-word' },
  { DATABASE_URL: 'jdbc:postgresql://h/x?user=u&password=secret-word' },
  { DATABASE_URL: 'postgres://u:secret-word@/x' },
  { DATABASE_URL: 'postgres://u@h/x?password=secret-word&options=secret-word' },
  { BURSAR_MIGRATIONS_DATABASE_URL: 'secret-word' },
  { BURSAR_SCREENING_URL: 'https://screening.example/secret-word' },
  { BURSAR_OAUTH_ISSUER: 'https://u:secret-word@issuer.example' },
])('%j is not printed', async (environment) => {
  for (const more of [[], ['--json']])
    expect((await bursar(['doctor', ...more], environment)).stdout).not.toContain('secret-word')
})

test('the findings come first, the most severe at the top, then the settings', async () => {
  const issuer = 'http://127.0.0.1:1'
  const environment = { DATABASE_URL: database.url, BURSAR_MODE: 'live', BURSAR_OAUTH_ISSUER: issuer }
  const short = await bursar(['doctor'], environment)
  expect(short.code).toBe(1)
  const lines = short.stdout.trimEnd().split('\n')
  const findings = lines.slice(0, lines.indexOf(''))
  const results = findings.map((line) => line.split(' ')[0]!)
  const [fails, warns, oks] = ['FAIL', 'WARN', 'OK'].map((one) => results.filter((result) => result === one))
  expect(Math.min(fails!.length, warns!.length, oks!.length)).toBeGreaterThan(0)
  expect(results).toEqual([...fails!, ...warns!, ...oks!])
  const [counts, , heading, ...settings] = lines.slice(findings.length + 1)
  expect(counts).toBe(`${fails!.length} FAIL, ${warns!.length} WARN, ${oks!.length} OK`)
  expect(heading).toMatch(/^setting +value +from$/)
  expect(settings.at(-1)).toMatch(/^\d+ settings have their default: bursar doctor --all shows them$/)
  expect(settings.slice(0, -1).every((line) => line.endsWith(' environment'))).toBe(true)
  expect(short.stdout).not.toContain('BURSAR_STATEMENT_TIMEOUT_MS')

  const all = await bursar(['doctor', '--all'], environment)
  expect(all.stdout).toMatch(/^BURSAR_STATEMENT_TIMEOUT_MS +25000 +default$/m)
  expect(all.stdout).not.toContain('have their default')
})

test('live mode without TLS, and without limits', async () => {
  const { found, stdout } = await doctor({
    DATABASE_URL: 'postgres://u:secret-word@192.0.2.1:1/d?connect_timeout=1',
    BURSAR_BASE_URL: 'http://192.0.2.1',
    BURSAR_MODE: 'live',
  })
  expect(stdout).not.toContain('secret-word')
  const open = await doctor({
    DATABASE_URL: 'postgres://u:p@127.0.0.1:1/d',
    BURSAR_BASE_URL: 'https://127.0.0.1:1',
    BURSAR_MODE: 'live',
    BURSAR_DOCS: 'true',
    BURSAR_RATE_LIMIT_PER_SECOND: '0',
    BURSAR_CONNECTIONS_PER_ADDRESS: '0',
    BURSAR_TOKEN_FAILURES_PER_MINUTE: '0',
  })
  expectFound(open.found, [
    /^WARN limits: clients have no rate limit/,
    /^WARN limits: failed token requests have no limit$/,
    /^WARN limits: one address may take all connections$/,
    /^WARN limits: \/docs is public$/,
    /^WARN limits: all requests seem to come from the proxy/,
  ])
  expectFound(found, [
    /^WARN transport: BURSAR_BASE_URL begins with http: clients send their secrets and tokens unencrypted$/,
    /^WARN transport: the database is on another machine \(192\.0\.2\.1\), and DATABASE_URL asks for no TLS$/,
  ])
})

test('a database that is down hides no other fault', async () => {
  const other = await stranger(() => ({ status: 'something else' }))
  const own = await ownFolder()
  await writeFile(join(own, 'sandbox-credentials.json'), '{}', { mode: 0o644 })
  await writeFile(join(own, 'networks.json'), 'not JSON')
  const { found, stdout } = await doctor({
    DATABASE_URL: 'postgres://u:secret-word@127.0.0.1:1/d',
    BURSAR_DATA_DIR: own,
    BURSAR_NETWORKS_FILE: join(own, 'networks.json'),
    BURSAR_OAUTH_ISSUER: 'http://127.0.0.1:1',
    PORT: new URL(other).port,
  })
  expect(stdout).not.toContain('secret-word')
  expectFound(found, [
    /^FAIL database: .*ECONNREFUSED/,
    /^WARN data folder: other users may read .*sandbox-credentials\.json$/,
    /^FAIL networks: .*not.* JSON/,
    /^FAIL port: 127\.0\.0\.1:\d+ is in use by another program$/,
    /^FAIL tokens: http:\/\/127\.0\.0\.1:1 does not answer/,
  ])
})

test('a newer schema, overdue work, an unreachable node and a different issuer', async () => {
  const broken = await ownDatabase()
  await broken.db.query(
    `insert into outgoing_transfers (customer_id, transfer_id, network, state, due_at, created_at)
     values (gen_random_uuid(), gen_random_uuid(), 'ETHEREUM', 'HELD', now() - interval '1 hour', now())`,
  )
  const own = await ownFolder()
  const section = {
    adapter: 'bitcoin-core',
    rpc_url: 'http://127.0.0.1:1',
    rpc_user: 'u',
    rpc_password: { env: 'PASSWORD' },
    confirmations: 6,
    fee_ceiling: '0.001',
  }
  await writeFile(join(own, 'networks.json'), JSON.stringify({ LITECOIN: section }))
  const issuer = await stranger(() => ({ issuer: 'http://other.example', jwks_uri: '' }))
  const environment = {
    DATABASE_URL: broken.url,
    BURSAR_DATA_DIR: own,
    BURSAR_NETWORKS_FILE: join(own, 'networks.json'),
    BURSAR_OAUTH_ISSUER: issuer,
    PASSWORD: 'secret-word',
  }
  const { found, stdout } = await doctor(environment)
  expect(stdout).not.toContain('secret-word')
  expectFound(found, [
    /^FAIL worker: 1 items overdue by 36\d\d s: no worker is running$/,
    /^FAIL networks: LITECOIN: .*127\.0\.0\.1:1/,
    /^FAIL tokens: .* does not answer with its metadata: .* names another issuer, http:\/\/other\.example; /,
  ])
  await broken.owner.query(`insert into schema_version (version, name) values (999, 'later')`)
  expectFound((await doctor(environment)).found, [/^FAIL schema: version 999, this program only knows \d+$/])
})

test('in live mode, a network that trusts one node for deposits, and one with too few confirmations', async () => {
  const own = await ownFolder()
  const path = join(own, 'networks.json')
  const write = (confirmations: number) =>
    writeFile(
      path,
      JSON.stringify({
        ETHEREUM: {
          adapter: 'evm',
          rpc_url: 'http://127.0.0.1:1',
          hot_wallet_key: { env: 'HOT_WALLET_KEY' },
          confirmations,
          fee_ceiling: '100',
        },
      }),
    )
  const environment = {
    DATABASE_URL: database.url,
    BURSAR_MODE: 'live',
    BURSAR_NETWORKS_FILE: path,
    HOT_WALLET_KEY: '11'.repeat(32),
  }
  await write(12)
  expectFound((await doctor(environment)).found, [
    /^FAIL networks: ETHEREUM: no second node is configured: nothing is refunded and no large deposit is credited: /,
    /^WARN networks: ETHEREUM: the largest deposits need 12 confirmations, and 64 by default$/,
  ])
  await write(11)
  expectFound((await doctor(environment)).found, [
    /^FAIL networks: .*ETHEREUM\.confirmations must be at least 12 in live mode$/,
  ])
})

test('in live mode, two nodes on one host, plain http, a readable key file and no minimum deposit', async () => {
  const own = await ownFolder()
  const [path, key] = [join(own, 'networks.json'), join(own, 'key')]
  await writeFile(key, '11'.repeat(32), { mode: 0o644 })
  const section = {
    ...{ adapter: 'evm', rpc_url: 'http://192.0.2.1:1/secret-word', verify_rpc_url: { env: 'VERIFY' } },
    ...{
      hot_wallet_key: { file: key },
      confirmations: 12,
      fee_ceiling: '100',
      minimum_deposit: { ETH: '0.0' },
    },
  }
  await writeFile(path, JSON.stringify({ ETHEREUM: section }))
  const live = { DATABASE_URL: database.url, BURSAR_MODE: 'live', BURSAR_NETWORKS_FILE: path }
  const { found, stdout } = await doctor({ ...live, VERIFY: 'https://192.0.2.1:1/other' })
  expect(stdout).not.toMatch(/secret-word|(?:11){16}/)
  expectFound(found, [
    /^FAIL networks: ETHEREUM: verify_rpc_url has the same host as rpc_url, so it confirms nothing$/,
    /^WARN networks: ETHEREUM: rpc_url is on another machine and uses http: /,
    /^WARN networks: ETHEREUM: other users may read \S+key, which holds hot_wallet_key$/,
    /^WARN networks: ETHEREUM: the largest deposits need 12 confirmations, and 64 by default$/,
    /^WARN networks: ETHEREUM: deposits of ETH have no minimum: sweeping a small deposit can cost more than its amount$/,
  ])
  expect(found.filter((line) => line.includes('verify_rpc_url is on another machine'))).toEqual([])
})

test('in live mode, limits of a network that are too high to have an effect, and limits at the bound', async () => {
  const path = join(await ownFolder(), 'networks.json')
  const section = {
    ...{ adapter: 'evm', rpc_url: 'http://127.0.0.1:1', verify_rpc_url: 'http://127.0.0.1:2' },
    ...{ hot_wallet_key: { env: 'HOT' }, confirmations: 12, fee_ceiling: '100' },
  }
  const environment = {
    ...{ DATABASE_URL: database.url, BURSAR_MODE: 'live' },
    ...{ BURSAR_NETWORKS_FILE: path, HOT: '11'.repeat(32) },
  }
  const about = async (limits: object) => {
    await writeFile(path, JSON.stringify({ ETHEREUM: { ...section, ...limits } }))
    return (await doctor(environment)).found.filter((line) => line.includes('have no effect'))
  }
  const high = {
    ...{ fees_loss_factor: '20.1', fees_loss_minimum: '10.01', sweep_cost_max: '100' },
    verify_above: { ETH: '3000.1', LINK: '5' },
  }
  expect(await about(high)).toEqual([
    'WARN networks: ETHEREUM: limits so high that they have no effect: fees_loss_factor is 20.1, above 20; ' +
      'fees_loss_minimum is 10.01, above 10 ETH; sweep_cost_max is 100, above 99.9999 %; ' +
      'verify_above.ETH is 3000.1, above the largest withdrawal, 3000',
  ])
  const within = {
    ...{ fees_loss_factor: '20', fees_loss_minimum: '10', sweep_cost_max: '99.9' },
    verify_above: { ETH: '3000' },
  }
  expect(await about(within)).toEqual([])
})

test('a sandbox with a main network', async () => {
  const path = join(await ownFolder(), 'networks.json')
  const section = { adapter: 'evm', rpc_url: 'http://127.0.0.1:1', confirmations: 12, fee_ceiling: '100' }
  await writeFile(path, JSON.stringify({ ETHEREUM: { ...section, hot_wallet_key: { env: 'HOT' } } }))
  const node = await stranger(() => ({ result: { chain: 'main' }, error: null, id: 0 }))
  const litecoin = {
    ...{ adapter: 'bitcoin-core', rpc_url: node, rpc_user: 'u', rpc_password: { env: 'HOT' } },
    ...{ confirmations: 6, fee_ceiling: '0.001' },
  }
  const environment = {
    DATABASE_URL: (await sandbox()).url,
    BURSAR_NETWORKS_FILE: path,
    HOT: '11'.repeat(32),
  }
  expectFound((await doctor(environment)).found, [
    /^FAIL networks: ETHEREUM\.chain_id: 1 is the main network of ETHEREUM, and a sandbox's money is invented/,
  ])
  await writeFile(path, JSON.stringify({ LITECOIN: litecoin }))
  expectFound((await doctor(environment)).found, [
    /^FAIL networks: LITECOIN: the node of LITECOIN is on the main network, and a sandbox's money is invented: /,
  ])
})

/** A database without a recorded mode. */
async function sandbox() {
  const own = await ownDatabase(2)
  return own
}

test('an empty database of a superuser', async () => {
  await asAdmin('create database doctor_empty')
  atEnd(() => asAdmin('drop database doctor_empty with (force)'))
  const url = new URL(inject('adminUrl'))
  url.pathname = '/doctor_empty'
  const { found } = await doctor({ DATABASE_URL: url.href, BURSAR_MODE: 'live' })
  expectFound(found, [
    /^WARN database role: the database role \S+ is a superuser: ledger entries are not protected from it$/,
    /^WARN schema: there is no schema yet$/,
    /^OK worker: not checked until the schema is up to date$/,
    /^WARN networks: no network is configured: crypto withdrawals are refused$/,
  ])
})

test('a role that owns the schema, and a role with a privilege too many and one missing', async () => {
  const own = await ownDatabase()
  const [role, owner] = [roleOf(own.url), roleOf(own.ownerUrl)]
  expectFound((await doctor({ DATABASE_URL: own.ownerUrl })).found, [
    new RegExp(
      `^WARN database role: the database role ${owner} owns the schema: ledger entries are not protected from it$`,
    ),
  ])
  await own.owner.query(`grant update on entries to ${role}`)
  await own.owner.query(`revoke insert on transfers from ${role}`)
  expectFound((await doctor({ DATABASE_URL: own.url })).found, [
    new RegExp(`^WARN database role: the database role ${role} may change ledger entries$`),
    new RegExp(`^FAIL database role: the database role ${role} lacks insert on transfers$`),
  ])
})

test('a missing embedded PostgreSQL, and a folder that others may read; neither is started', async () => {
  const own = await ownFolder()
  expectFound((await doctor({ BURSAR_DATA_DIR: own })).found, [
    /^OK database: there is no embedded PostgreSQL yet: bursar serve creates it$/,
  ])
  expect(await readdir(own)).toEqual([])
  await mkdir(join(own, 'postgres'))
  await chmod(join(own, 'postgres'), 0o755)
  expectFound((await doctor({ BURSAR_DATA_DIR: own })).found, [
    /^OK database: the embedded PostgreSQL is stopped/,
    /^FAIL data folder: other users may read .*postgres: PostgreSQL refuses to start$/,
  ])
  expect(await readdir(join(own, 'postgres'))).toEqual([])
})

test('wrong settings, one line each', async () => {
  const { found } = await doctor({ PORT: 'http', BURSAR_PROT: '1' })
  expect(found).toEqual([
    expect.stringMatching(/^FAIL settings: BURSAR_PROT: no such setting$/),
    expect.stringMatching(/^FAIL settings: PORT: must be a whole number/),
  ])
})

test('confirmed transactions that a reorganisation removed are a WARN', () => {
  const report = {
    crypto_network: 'ETHEREUM' as const,
    reachable: true,
    height: 7,
    confirmations: 12,
    custody: [],
    fees: [],
    lanes: [],
    below_low_mark: false,
    asks: [],
    refills: [],
    in_flight: {},
    frozen: [],
    waiting: [],
    uncredited: [],
  }
  expect(judgeNetwork({ ...report, taken_back: [] })).toMatchObject({ result: 'OK' })
  const former_hot_wallets = ['0.5', '0'].map((held, index) => ({ address: `0x${index}`, held }))
  const amounts = { asset: 'ETH', held: '2', in_custody: '2', difference: '0', short: false }
  const rotated = { ...report, custody: [{ ...amounts, former_hot_wallets }], taken_back: [] }
  expect(judgeNetwork(rotated)).toEqual({
    result: 'OK',
    says: 'ETHEREUM: the node answers, at height 7; of the former hot wallets, 0x0 holds 0.5 ETH',
  })
  expect(judgeNetwork({ ...report, taken_back: [{ nonce: 4 }, { nonce: 5 }] })).toMatchObject({
    result: 'WARN',
    says: 'ETHEREUM: a reorganisation removed 2 confirmed transactions',
  })
  const blocked = { code: 'UNKNOWN_SPENDS' as const, detail: 'it sent others' }
  const lanes = [
    { lane: '0x1', in_flight: 3 },
    { lane: '0x2', in_flight: 0, blocked },
  ]
  expect(judgeNetwork({ ...report, taken_back: [], lanes })).toMatchObject({
    result: 'WARN',
    says: 'ETHEREUM: lane 0x2 signs nothing: it sent others',
  })
  const refill = { kind: 'REFILL' as const, asset: 'ETH', amount: '8' }
  expect(judgeNetwork({ ...report, taken_back: [], asks: [refill] })).toEqual({
    result: 'WARN',
    says: 'ETHEREUM: the hot wallet is below its low mark: 8 ETH fill it up',
    advice: 'bursar treasury refill --network ETHEREUM --asset ETH',
  })
  expect(judgeNetwork({ ...report, taken_back: [], asks: [{ ...refill, kind: 'SEND', to: '0x3' }] })).toEqual(
    {
      result: 'WARN',
      says: 'ETHEREUM: the hot wallet is above its high mark: 8 ETH should go to cold storage',
      advice: 'bursar treasury confirm --network ETHEREUM --asset ETH --amount 8',
    },
  )
  const found = { crypto_tx_hash: '0xa', since: '2026-01-01T00:00:00Z' }
  const refills = [
    { ...found, detail: null },
    { ...found, detail: 'no second node confirms it' },
  ]
  expect(judgeNetwork({ ...report, taken_back: [], refills })).toMatchObject({
    result: 'WARN',
    says: 'ETHEREUM: refill 0xa is not posted: no second node confirms it',
  })
  const locked = { code: 'WALLET_LOCKED' as const, detail: 'locked', count: 3, since: '2026-01-01T00:00:00Z' }
  expect(judgeNetwork({ ...report, taken_back: [], waiting: [locked] })).toMatchObject({
    result: 'WARN',
    says: 'ETHEREUM: 3 withdrawals wait because the wallet is locked',
  })
})

test.each([
  ['off', 'WARN', /^archive_mode is off: unless something else copies the log/, {}],
  ['on, nothing archived', 'WARN', /^archive_mode is on, but nothing has been archived yet$/, {}],
  [
    'on, the last attempt failed',
    'WARN',
    /^the log is not archived since a failure at 2026-11-22 12:05:00Z$/,
    { archived_at: '2026-11-22 12:00:00Z', failed_at: '2026-11-22 12:05:00Z' },
  ],
  [
    'on, archived again after a failure',
    'OK',
    /^the log is archived, last at 2026-11-22 12:10:00Z$/,
    { archived_at: '2026-11-22 12:10:00Z', failed_at: '2026-11-22 12:05:00Z', failed_last: false },
  ],
  [
    'always',
    'OK',
    /^the log is archived, last at 2026-11-22 12:00:00Z$/,
    { archive_mode: 'always', archived_at: '2026-11-22 12:00:00Z' },
  ],
])('log archiving that is %s', (archiving, result, says, stats) => {
  const archive_mode = archiving.startsWith('off') ? 'off' : 'on'
  const verdict = judgeBackups({
    archive_mode,
    archived_at: null,
    failed_at: null,
    failed_last: true,
    ...stats,
  })
  expect(verdict).toMatchObject({ result, says: expect.stringMatching(says) as string })
})
