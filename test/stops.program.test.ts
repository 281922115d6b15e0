import { userInfo } from 'node:os'
import { expect, test } from 'vitest'
import { createCustomer } from '../src/money/records/customer.ts'
import { selectFreezes } from '../src/money/records/freezes.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { CLUSTER } from './cluster.ts'
import {
  ROW_MACS,
  actionsOfCommands,
  asAdmin,
  cloneDatabase,
  credit,
  loggedIn,
  remoteCaller,
  runBursar,
  spawnBursar,
  toldIn,
  withdraw,
  withdrawalOf,
  ownDatabase,
  ownBursar,
} from './support.ts'
import { atEnd, ownFolder } from './at-end.ts'

// Commands that stop money movements, in processes of their own. The tests beside the code cover their effects.

const database = await ownDatabase()
const folder = await ownFolder()

/** Runs a command. Returns its output, its text lines on standard error, and the lines of its log. */
async function bursar(...args: string[]) {
  const ended = await runBursar(args, { DATABASE_URL: database.url, BURSAR_DATA_DIR: folder, PORT: '0' })
  return { code: ended.code, stdout: ended.stdout, told: toldIn(ended), log: loggedIn(ended) }
}

test('freezes are set, listed, found by doctor and lifted, and the log names the operator', async () => {
  const { customer_id, profile_id } = await createCustomer(database.db, 'Acme')
  const profile = await bursar('freeze', 'profile', profile_id, '--reason', 'a leak', '--json')
  expect({ ...profile, stdout: JSON.parse(profile.stdout) as object }).toMatchObject({
    code: 0,
    stdout: {
      kind: 'PROFILE',
      customer_id,
      profile_id,
      reason: 'OPERATOR',
      detail: 'a leak',
      signing_ended: true,
    },
    told: [],
    log: [{ msg: 'froze', user: userInfo().username, kind: 'PROFILE', profile_id, detail: 'a leak' }],
  })
  const network = await bursar('freeze', 'network', 'litecoin')
  expect(network.stdout).toBe(
    'Network LITECOIN is frozen (OPERATOR): no reason was given\n' +
      'Nothing more is signed. Withdrawals that are already signed are still broadcast and confirmed.\n',
  )
  const again = await bursar(
    'freeze',
    'profile',
    profile_id,
    '--customer',
    customer_id,
    '--reason',
    'another',
  )
  expect(again.code).toBe(0)

  const listed = await bursar('freeze', 'list', '--json')
  expect((JSON.parse(listed.stdout) as { freezes: object[] }).freezes).toMatchObject([
    { kind: 'PROFILE', subject: `${customer_id}/${profile_id}`, reason: 'OPERATOR', detail: 'a leak' },
    { kind: 'NETWORK', subject: 'LITECOIN', reason: 'OPERATOR' },
  ])
  expect((await bursar('freeze', 'list')).stdout).toMatch(
    /^kind +subject +reason +created_at +detail\nPROFILE /,
  )
  const doctor = await bursar('doctor', '--json')
  const { checks } = JSON.parse(doctor.stdout) as {
    checks: { check: string; result: string; says: string }[]
  }
  expect(checks.filter(({ check }) => check === 'freezes')).toMatchObject([
    {
      result: 'WARN',
      says: expect.stringContaining(`profile ${profile_id} is frozen (OPERATOR): a leak (since`) as string,
    },
    { result: 'WARN', says: expect.stringContaining('network LITECOIN is frozen (OPERATOR)') as string },
  ])

  await database.db.query(
    `insert into freezes values ('NETWORK', 'LITECOIN', 'REORGANISATION', 'a block is gone', clock_timestamp())`,
  )
  const unclear = await bursar('unfreeze', 'network', 'LITECOIN')
  expect(unclear).toMatchObject({ code: 1, stdout: '', log: [] })
  expect(unclear.told[0]).toBe('frozen for 2 causes: name one with --cause')
  const one = await bursar('unfreeze', 'network', 'LITECOIN', '--cause', 'operator')
  expect(one).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      new RegExp(
        `^The freeze for OPERATOR has ended: ${userInfo().username} placed it at 20\\S+Z \\(no reason was given\\)\\.\n` +
          'Still frozen: network LITECOIN is frozen \\(REORGANISATION\\): a block is gone\n$',
      ),
    ) as string,
    log: [{ msg: 'unfroze', user: userInfo().username, network: 'LITECOIN', reason: 'OPERATOR' }],
  })
  const last = JSON.parse((await bursar('unfreeze', 'network', 'LITECOIN', '--json')).stdout) as object
  expect(last).toMatchObject({ network: 'LITECOIN', reason: 'REORGANISATION', still_frozen_for: [] })
  expect((await bursar('unfreeze', 'profile', profile_id)).stdout).toMatch(
    new RegExp(`: ${userInfo().username} placed it at 20\\S+Z \\(a leak\\)\\.$`, 'm'),
  )
  expect(await bursar('unfreeze', 'all')).toMatchObject({ code: 1, told: ['not frozen'] })
  expect((await bursar('freeze', 'list')).stdout).toBe('Nothing is frozen.\n')
})

test.each([0, 1])('verify says why it fails where the database has %d connections', async (connections) => {
  const few = await cloneDatabase(1)
  await Promise.all([few.db.end(), few.owner.end()])
  const name = new URL(few.url).pathname.slice(1)
  atEnd(() => asAdmin(`drop database ${name} with (force)`))
  await asAdmin(`alter database ${name} connection limit ${connections}`)
  const ended = await runBursar(['verify'], { DATABASE_URL: few.url, BURSAR_DATA_DIR: folder })
  if (ended.code === 0) expect(ended.stdout).toMatch(/^Clean/)
  else
    expect(toldIn(ended).join(' ')).toMatch(
      CLUSTER.length > 0
        ? /too many connections for database/
        : /accepts no more connections: .*max_connections/,
    )
})

test('in live mode, everything is frozen only with a reason', async () => {
  const live = await ownDatabase(2)
  const run = (...args: string[]) =>
    runBursar(args, { DATABASE_URL: live.url, BURSAR_MODE: 'live', BURSAR_DATA_DIR: folder })
  const bare = await run('freeze', 'all')
  expect(bare.code).toBe(1)
  expect(toldIn(bare)).toEqual([expect.stringMatching(/^freeze all stops .* say why, with --reason$/)])
  expect((await run('freeze', 'all', '--reason', 'a drill')).code).toBe(0)
  expect((await run('unfreeze', 'all')).stdout).toMatch(/ placed it at \S+ \(a drill\)\.$/m)
})

test.each([
  [['freeze', 'profile', crypto.randomUUID()], 1, /^there is no profile /],
  [
    ['freeze', 'profile', crypto.randomUUID(), '--customer', crypto.randomUUID()],
    1,
    /^there is no customer /,
  ],
  [['freeze', 'customer', crypto.randomUUID()], 1, /^there is no customer /],
  [['freeze', 'customer', 'Acme'], 2, /must be a UUID/],
  [['freeze', 'network', 'DOGECOIN'], 2, /must be one of BITCOIN, .*, WIRE/],
  [['freeze', 'all', '--reason', ' '], 2, /must have 1 to 500 characters/],
  [['unfreeze', 'all', '--cause', 'WHIM'], 2, /must be one of OPERATOR, /],
])('%s is refused and freezes nothing', async (args, code, says) => {
  const { stdout, told, code: ended } = await bursar(...args)
  expect({ stdout, ended }).toEqual({ stdout: '', ended: code })
  expect(told[0]).toMatch(says)
  expect(await selectFreezes(database.db)).toEqual([])
})

test('two processes refuse a disabled account or client within seconds of the command', async () => {
  const settings = {
    DATABASE_URL: database.url,
    BURSAR_BASE_URL: 'http://bursar.test',
    BURSAR_WORKER: 'false',
  }
  const processes = await Promise.all([spawnBursar(settings), spawnBursar(settings)])
  atEnd(async () => void (await Promise.all(processes.map((one) => one.end('SIGTERM')))))
  const { customer_id, profile_id } = await createCustomer(database.db, 'Acme')
  await credit(new Ledger(database.db), { customer_id, profile_id }, 'USD', '1000')
  const client = await createApiClient(database.db, ROW_MACS, customer_id, SCOPES)
  const calls = await Promise.all(processes.map(({ address }) => remoteCaller(address, client)))
  const statuses = () =>
    Promise.all(
      calls.map(
        async (call) =>
          (await call('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf({ profile_id }))).status,
      ),
    )
  const soon = { timeout: 10_000, interval: 100 }
  expect(await statuses()).toEqual([200, 200])

  const disabled = await bursar('client', 'disable', client.client_id, '--json')
  expect(disabled).toMatchObject({
    code: 0,
    stdout: `{"client_id":"${client.client_id}","disabled":true}\n`,
    log: [{ msg: 'disabled a client', user: userInfo().username, client_id: client.client_id }],
  })
  await expect.poll(statuses, soon).toEqual([401, 401])
  expect((await bursar('client', 'enable', client.client_id)).stdout).toBe(
    `Client ${client.client_id} is enabled.\n`,
  )
  await expect.poll(statuses, soon).toEqual([200, 200])

  const customer = await bursar('customer', 'disable', customer_id)
  expect(customer).toMatchObject({
    code: 0,
    stdout: `Customer ${customer_id} is disabled.\n`,
    log: [{ msg: 'disabled a customer', user: userInfo().username, customer_id }],
  })
  await expect.poll(statuses, soon).toEqual([401, 401])
  expect(await bursar('unfreeze', 'customer', customer_id)).toMatchObject({
    code: 1,
    told: [`the customer is disabled: bursar customer enable ${customer_id}`],
  })
  expect((await bursar('customer', 'enable', customer_id)).code).toBe(0)
  await expect.poll(statuses, soon).toEqual([200, 200])
})

test('a command cancels a withdrawal once, and the log names the operator', async () => {
  const { customer_id, profile_id } = await createCustomer(database.db, 'Acme')
  await credit(new Ledger(database.db), { customer_id, profile_id }, 'USD', '100')
  const service = await ownBursar({ DATABASE_URL: database.url, BURSAR_WORKER: 'false' })
  const client = await createApiClient(database.db, ROW_MACS, customer_id, SCOPES)
  const call = await remoteCaller(service.address, client)
  const { id } = await withdraw({ profile_id, call })
  await bursar('freeze', 'customer', customer_id)
  const cancelled = await bursar('withdrawal', 'cancel', id, '--json')
  expect({ ...cancelled, stdout: JSON.parse(cancelled.stdout) as object }).toMatchObject({
    code: 0,
    stdout: { customer_id, transfer_id: id, changed: true },
    log: [{ msg: 'cancelled a withdrawal', user: userInfo().username, transfer_id: id }],
  })
  expect(await bursar('withdrawal', 'cancel', id)).toMatchObject({
    code: 0,
    stdout: `Withdrawal ${id} is cancelled, and its total is back on the profile.\n`,
    log: [],
  })
  expect((await call('GET', `/v2/transfer/transfers/${id}`)).body).toMatchObject({ status: 'FAILED' })
  expect(await actionsOfCommands(database.db)).toContain('transfer.cancel')
  const balance = await call('GET', `/v2/profiles/${profile_id}/balances/USD`)
  expect(balance.body).toMatchObject({ available: '100' })
})
