/*
 * Invariants of a database and its mode:
 * 1. a database belongs to the mode of its stamp;
 * 2. a program in the other mode is refused with advice, and changes nothing;
 * 3. the records of a sandbox never count as real.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dropAll } from '../src/cli/reset-sandbox.ts'
import { createCustomer } from '../src/money/records/customer.ts'
import type { Database } from '../src/db/database.ts'
import { makeDemo } from '../src/program/demo/make-demo.ts'
import {
  changeIssuer,
  checkMode,
  prepareDatabase,
  readStamp,
  requireMode,
  stampDatabase,
} from '../src/program/deployment.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { simulatedNetworks } from '../src/networks/simulated/adapter.ts'
import { verify } from '../src/money/verify/verify.ts'
import {
  MASTER_KEY,
  ROW_MACS,
  cloneDatabase,
  everyTable,
  runBursar,
  spawnBursar,
  testSettings,
  toldIn,
  WEBHOOK_SECRETS,
  ownDatabase,
} from './support.ts'
import { ownFolder } from './at-end.ts'

const SANDBOX = testSettings()
const LIVE = testSettings({ BURSAR_MODE: 'live', BURSAR_MASTER_KEY: MASTER_KEY })
const liveAt = (BURSAR_BASE_URL: string) => testSettings({ BURSAR_MODE: 'live', BURSAR_BASE_URL })

async function newDatabase(): Promise<Database> {
  const own = await ownDatabase(3)
  return own.db
}

/** Expects a refusal with this message, and no change in the database. */
async function expectRefused(db: Database, work: () => Promise<unknown>, message: RegExp): Promise<void> {
  const before = await everyTable(db)
  await expect(work()).rejects.toThrow(message)
  expect(await everyTable(db)).toEqual(before)
}

test('a live database is refused in sandbox mode, and a sandbox in live mode', async () => {
  for (const [own, other, message] of [
    [SANDBOX, LIVE, /^BURSAR_MODE: this database is a sandbox's since 20.* empty database of its own/],
    [LIVE, SANDBOX, /^BURSAR_MODE: this database is live since 20.*: set BURSAR_MODE=live, or /],
  ] as const) {
    const db = await newDatabase()
    await stampDatabase(db, own)
    await createCustomer(db, 'Test')
    expect(await readStamp(db)).toMatchObject({ mode: own.mode, issuer: null })
    for (const work of [stampDatabase, prepareDatabase])
      await expectRefused(db, () => work(db, other), message)
    await expectRefused(db, () => requireMode(db, other.mode), message)
    // A start in the database's own mode changes nothing either.
    const before = await everyTable(db)
    await stampDatabase(db, own)
    expect(await prepareDatabase(db, own)).toEqual([])
    await requireMode(db, own.mode)
    expect(await everyTable(db)).toEqual(before)
  }
})

test('an unused database changes its mode', async () => {
  const db = await newDatabase()
  for (const settings of [SANDBOX, LIVE, SANDBOX, LIVE]) {
    await prepareDatabase(db, settings)
    await requireMode(db, settings.mode)
    expect(await readStamp(db)).toMatchObject({ mode: settings.mode })
    // The check of `bursar doctor` allows what the service does.
    for (const next of [SANDBOX, LIVE]) expect((await checkMode(db, next)).result).not.toBe('FAIL')
  }
})

describe('a database of an older version, which has no stamp', () => {
  test('and has customers, is stamped by the service and not by commands', async () => {
    const db = await newDatabase()
    await createCustomer(db, 'Test')
    await prepareDatabase(db, SANDBOX)
    expect(await readStamp(db)).toBeUndefined()
    await stampDatabase(db, LIVE)
    expect(await readStamp(db)).toMatchObject({ mode: 'live' })
  })

  test('does not become live with the demo', async () => {
    const db = await newDatabase()
    const dataDir = await ownFolder()
    const networks = simulatedNetworks(db, { confirmationMs: 0, holdMs: 0 })
    await makeDemo(
      { db, ledger: new Ledger(db), networks, rowMacs: ROW_MACS, webhookSecrets: WEBHOOK_SECRETS },
      { dataDir, baseUrl: 'http://127.0.0.1' },
    )
    await expectRefused(db, () => stampDatabase(db, LIVE), /it has the demo customer; begin live mode on/)
    await stampDatabase(db, SANDBOX)
    expect(await readStamp(db)).toMatchObject({ mode: 'sandbox' })
  })

  const TRANSFER = `insert into transfers (customer_id, id, profile_id, type, direction, status, asset, amount, fee, total,
      created_at, updated_at, destination_address)
    select customer_id, gen_random_uuid(), id, $1, 'CREDIT', 'COMPLETED', 'USD', 1, 0, 1, now(), now(), $2 from profiles`
  test.each<[string, string, unknown[], RegExp]>([
    [
      'transactions of simulated networks',
      `insert into simulated_chain values ('WIRE', 'hash', '\\x7b', now(), null)`,
      [],
      /it has transactions of simulated networks;/,
    ],
    [
      'simulated prices',
      `update markets set source = 'SIMULATED' where market = 'BTCUSD'`,
      [],
      /it has simulated prices;/,
    ],
    ['a wire of the simulated bank', TRANSFER, ['WIRE_DEPOSIT', null], /it has simulated deposits;/],
    ['a deposit to a profile', TRANSFER, ['CRYPTO_DEPOSIT', null], /it has simulated deposits;/],
  ])('does not become live with %s', async (_, statement, values, message) => {
    const db = await newDatabase()
    await createCustomer(db, 'Test')
    await db.query(statement, values)
    await expectRefused(db, () => stampDatabase(db, LIVE), message)
  })

  test('becomes live with the records of a live service: deposits on a real chain, real prices', async () => {
    const db = await newDatabase()
    await createCustomer(db, 'Demo')
    await db.query(TRANSFER, ['CRYPTO_DEPOSIT', '0x52908400098527886E0F7030069857D2E4169EE7'])
    await db.query(`update markets set source = 'REAL' where market = 'BTCUSD'`)
    await stampDatabase(db, LIVE)
    expect(await readStamp(db)).toMatchObject({ mode: 'live' })
  })
})

test('a live database keeps its issuer until an operator changes the issuer', async () => {
  const db = await newDatabase()
  await createCustomer(db, 'Test')
  await stampDatabase(db, LIVE)
  expect(await readStamp(db)).toMatchObject({ issuer: null })
  await stampDatabase(db, liveAt('https://one.example/'))
  expect(await readStamp(db)).toMatchObject({ mode: 'live', issuer: 'https://one.example' })
  await stampDatabase(db, liveAt('https://one.example'))

  const refusal =
    /^BURSAR_BASE_URL: this live database belongs to the token issuer https:\/\/one.example, .*bursar deployment change-issuer/
  await expectRefused(db, () => stampDatabase(db, liveAt('https://two.example')), refusal)
  await expectRefused(db, () => stampDatabase(db, LIVE), /and the settings name none/)
  expect(await checkMode(db, LIVE)).toMatchObject({
    result: 'FAIL',
    says: 'the database belongs to the token issuer https://one.example, the settings name none',
  })
  const external = testSettings({ BURSAR_MODE: 'live', BURSAR_OAUTH_ISSUER: 'https://two.example' })
  await expectRefused(db, () => stampDatabase(db, external), /^BURSAR_OAUTH_ISSUER: /)
  // Commands need no issuer.
  await prepareDatabase(db, LIVE)

  expect(await changeIssuer(db, 'https://two.example/')).toMatchObject({ issuer: 'https://two.example' })
  await stampDatabase(db, liveAt('https://two.example'))
  await stampDatabase(db, external)
})

test('a stamp that was changed in the database starts nothing, and verify finds it', async () => {
  const db = await newDatabase()
  await stampDatabase(db, LIVE)
  await createCustomer(db, 'Test')
  await db.query(`update deployment set mode = 'sandbox'`)
  const changed = /is not what Bursar wrote: its MAC does not match/
  await expectRefused(db, () => stampDatabase(db, SANDBOX), changed)
  await expect(dropAll(db)).rejects.toThrow(changed)
  const { disagreements } = await verify(db, { rowMacs: ROW_MACS })
  expect(disagreements.map(({ rule }) => rule)).toEqual(['every row of deployment matches its MAC'])
  await db.query(`update deployment set mode = 'live'`)
  await stampDatabase(db, LIVE)
})

test('a sandbox has no fixed issuer: its port and address may change', async () => {
  const db = await newDatabase()
  await stampDatabase(db, testSettings({ BURSAR_BASE_URL: 'http://127.0.0.1:8080' }))
  await createCustomer(db, 'Test')
  await stampDatabase(db, testSettings({ BURSAR_BASE_URL: 'http://127.0.0.1:9090' }))
  expect(await readStamp(db)).toMatchObject({ mode: 'sandbox', issuer: null })
  await expect(changeIssuer(db, 'https://one.example')).rejects.toThrow('not a live one')
})

test('one mode gets the database when services start in both modes at the same time', async () => {
  const db = await newDatabase()
  await createCustomer(db, 'Test')
  const outcomes = await Promise.allSettled(
    Array.from({ length: 6 }, (_, n) => stampDatabase(db, n % 2 === 0 ? LIVE : SANDBOX)),
  )
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
  const { mode } = (await readStamp(db))!
  expect(outcomes[mode === 'live' ? 0 : 1]!.status).toBe('fulfilled')
})

describe('the program', () => {
  let database: Awaited<ReturnType<typeof cloneDatabase>>
  let folder: string
  beforeAll(async () => {
    database = await cloneDatabase()
    folder = await mkdtemp(join(tmpdir(), 'bursar-deployment-'))
    const service = await spawnBursar({
      DATABASE_URL: database.url,
      BURSAR_DATA_DIR: folder,
      BURSAR_MODE: 'live',
      BURSAR_BASE_URL: 'https://one.example',
    })
    await service.end('SIGTERM')
    await createCustomer(database.db, 'Test')
  })
  afterAll(async () => {
    await database.drop()
    await rm(folder, { recursive: true, force: true })
  })

  async function bursar(args: string[], environment: Record<string, string> = {}) {
    const own = { DATABASE_URL: database.url, BURSAR_DATA_DIR: folder, PORT: '0' }
    const ended = await runBursar(args, { ...own, ...environment })
    return { code: ended.code, out: ended.stdout, told: toldIn(ended) }
  }

  test('every kind of command that opens a live database is refused in sandbox mode', async () => {
    const before = await everyTable(database.db)
    for (const args of [['serve'], ['migrate'], ['customer', 'list']])
      expect({ args, ...(await bursar(args)) }).toEqual({
        args,
        code: 1,
        out: '',
        told: [
          expect.stringMatching(/^BURSAR_MODE: this database is live since .*: set BURSAR_MODE=live, or /),
        ],
      })
    expect(await everyTable(database.db)).toEqual(before)
    const doctor = await bursar(['doctor'])
    expect(doctor.code).toBe(1)
    expect(doctor.out).toMatch(/^FAIL mode: this database is live since /m)
  })

  test('the stamp is shown, and a live service moves to another issuer by command', async () => {
    const live = { BURSAR_MODE: 'live' }
    const moved = { ...live, BURSAR_BASE_URL: 'https://two.example' }
    expect((await bursar(['deployment', 'show'], live)).out).toMatch(
      /^mode: {3}live, since 20\S+\nissuer: https:\/\/one\.example\n$/,
    )
    expect((await bursar(['doctor'], moved)).out).toMatch(
      /^FAIL mode: the database belongs to the token issuer https:\/\/one\.example, the settings name https:\/\/two\.example -> /m,
    )
    expect(await bursar(['serve'], moved)).toMatchObject({
      code: 1,
      told: [expect.stringMatching(/^BURSAR_BASE_URL: this live database belongs to the token issuer /)],
    })
    expect((await bursar(['deployment', 'change-issuer', 'two.example'], live)).code).toBe(2)
    expect(await bursar(['deployment', 'change-issuer', 'https://two.example'], live)).toMatchObject({
      code: 0,
      out: 'The issuer is https://two.example from the next start on.\n',
    })
    const { out } = await bursar(['deployment', 'show', '--json'], live)
    expect(JSON.parse(out)).toMatchObject({ mode: 'live', issuer: 'https://two.example' })
    const { rows } = await database.db.query(
      `select actor_type, changes from audit_log where action = 'deployment.change_issuer'`,
    )
    expect(rows).toEqual([
      {
        actor_type: 'COMMAND_LINE',
        changes: { before: { issuer: 'https://one.example' }, after: { issuer: 'https://two.example' } },
      },
    ])
  })
})
