/*
 * The Bursar process on real networks: orchestrations from a real deposit to a real payment, the output of `bursar
 * networks status`, and no secret in any output.
 */
import { originOfLoop } from '../src/contract/actor.ts'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parseAmount } from '../src/contract/assets/amount.ts'
import { decimalsOf } from '../src/contract/assets/catalogue.ts'
import { createCustomer } from '../src/money/records/customer.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { deposit } from '../src/money/movements/deposit.ts'
import type { TreasuryTransfer } from '../src/rails/treasury/orders.ts'
import { freeze } from '../src/money/records/freezes.ts'
import { verify } from '../src/money/verify/verify.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import type { NetworkReport } from '../src/rails/wallets/network-status.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { HAS_LITECOIND } from './bitcoin-node.ts'
import { evmWorld, litecoinWorld, networksFile, type World } from './real-networks.ts'
import {
  ROW_MACS,
  actionsOfCommands,
  type BursarProcess,
  cloneDatabase,
  type RemoteCaller,
  remoteCaller,
  runBursar,
  spawnBursar,
  TEST_ORIGIN,
  type TestDatabase,
  toldIn,
  withoutOperators,
  ownDatabase,
} from './support.ts'
import { hurry, mine } from './work-off.ts'
import { atEnd } from './at-end.ts'

if (!HAS_LITECOIND)
  console.warn(
    'skipped: the Litecoin part of test/real-networks-serve.chain.test.ts needs litecoind on the PATH',
  )

const LOW_MARK = '1'
const PATIENCE = { timeout: 60_000, interval: 100 }

describe.each([
  { family: 'EVM', open: (): Promise<World> => evmWorld(), asset: 'ETH', skipped: false },
  { family: 'Bitcoin', open: (): Promise<World> => litecoinWorld(), asset: 'LTC', skipped: !HAS_LITECOIND },
])('on the $family family', ({ open, asset, skipped }) => {
  let world: World
  let file: Awaited<ReturnType<typeof networksFile>>
  let database: TestDatabase
  let bursar: BursarProcess
  let call: RemoteCaller
  let customer_id: string
  let profile_id: string
  let environment: Record<string, string>
  let atStart: { code: number | null; report: NetworkReport; said: string }

  beforeAll(async () => {
    if (skipped) return
    ;[world, database] = await Promise.all([open(), cloneDatabase()])
    file = await networksFile([world], { low_mark: LOW_MARK })
    environment = { ...file.environment, DATABASE_URL: database.url, BURSAR_WORKER_INTERVAL_MS: '100' }
    // With a customer in the database, the start makes no demo.
    const customer = await createCustomer(database.db, 'Test')
    customer_id = customer.customer_id
    profile_id = customer.profile_id
    const client = await createApiClient(database.db, ROW_MACS, customer.customer_id, SCOPES)
    bursar = await spawnBursar(environment)
    call = await remoteCaller(bursar.address, client)
    // The worker reads the chain for deposits from here on.
    const isRead = () => database.db.query('select from network_cursors where network = $1', [world.network])
    await vi.waitFor(async () => expect((await isRead()).rowCount).toBe(1), PATIENCE)
    atStart = { ...(await reported()), said: (await status()).said }
    // This deposit funds the payments of all tests, so that each of them also passes alone.
    await world.pay(await newDepositAddress(), asset, '3')
    // PENDING from its first confirmation.
    const deposits = '/v2/transfer/transfers?type=CRYPTO_DEPOSIT&statuses=COMPLETED'
    await until(async () =>
      expect((await call('GET', deposits)).body).toMatchObject({ items: [{ amount: '3' }] }),
    )
  })
  afterAll(async () => {
    await bursar?.end('SIGTERM')
    await database?.drop()
    await file?.remove()
    await world?.stop()
  })

  /** Returns the command's output and its exit code. */
  async function status(
    changes: Record<string, string> = {},
  ): Promise<{ code: number | null; said: string }> {
    const { code, stdout, stderr } = await runBursar(['networks', 'status'], { ...environment, ...changes })
    expect(stderr).toBe('')
    return { code, said: stdout }
  }
  const command = (args: string[]) => runBursar(args, environment)
  async function reported(): Promise<{ code: number | null; report: NetworkReport }> {
    const { code, stdout } = await runBursar(['networks', 'status', '--json'], environment)
    const { networks } = JSON.parse(stdout) as { networks: NetworkReport[] }
    expect(networks).toHaveLength(1)
    return { code, report: networks[0]! }
  }

  const transferOf = async (ref_id: string) =>
    (await call<{ items: Transfer[] }>('GET', `/v2/transfer/transfers?ref_ids=${ref_id}`)).body.items[0]!
  const newDepositAddress = async () =>
    (
      await call<{ address: string }>('POST', '/v2/transfer/deposit-addresses', {
        profile_id,
        crypto_network: world.network,
      })
    ).body.address
  const withdraw = async (ref_id: string, amount: string, destination_address: string) =>
    expect(
      await call('POST', '/v2/transfer/crypto-withdrawals', {
        profile_id,
        asset,
        amount,
        crypto_network: world.network,
        destination_address,
        ref_id,
      }),
    ).toMatchObject({ status: 200, body: { status: 'PENDING' } })
  /** Mines blocks and makes everything due, until the assertion holds. */
  const until = (holds: () => Promise<void>) =>
    vi.waitFor(async () => {
      await mine(world.mining)
      await hurry(database.db)
      await holds()
    }, PATIENCE)

  test.skipIf(skipped)(
    'an empty hot wallet is below its low mark, and status reports that with exit code 1',
    () => {
      const { code, report, said } = atStart
      expect({ code, report }).toMatchObject({
        code: 1,
        report: {
          crypto_network: world.network,
          reachable: true,
          below_low_mark: true,
          in_flight: {},
          waiting: [],
        },
      })
      expect(report.height).toBeGreaterThan(0)
      expect(said).toContain('THE HOT WALLET IS BELOW ITS LOW MARK')
    },
  )

  test.skipIf(skipped)('a deposit at the address of a rule becomes a payment on the chain', async () => {
    const destination = await world.newAddress()
    const rule = await call<{ rule: { id: string; source: { crypto: { address: string } } } }>(
      'POST',
      '/v2/orchestration/rules',
      {
        ref_id: 'rule',
        profile_id,
        source_asset: asset,
        destination_asset: asset,
        source: { crypto: { network: world.network } },
        destination: { crypto: { network: world.network, address: destination } },
      },
    )
    expect(rule.status).toBe(200)
    const paid = await world.pay(rule.body.rule.source.crypto.address, asset, '0.5')
    const list = `/v2/orchestration/orchestrations?orchestration_rule_id=${rule.body.rule.id}`
    await until(async () =>
      expect((await call(`GET`, list)).body).toMatchObject({
        items: [{ status: 'COMPLETED', source_amount: '0.5' }],
      }),
    )
    const { items: orchestrations } = (
      await call<{ items: { destination_transfer: { transfer_id: string } }[] }>('GET', list)
    ).body
    const { transfer_id } = orchestrations[0]!.destination_transfer
    const { body: payment } = await call<Transfer>('GET', `/v2/transfer/transfers/${transfer_id}`)
    const deposits = (await call<{ items: Transfer[] }>('GET', '/v2/transfer/transfers?type=CRYPTO_DEPOSIT'))
      .body.items
    expect(deposits.map(({ crypto_tx_hash }) => crypto_tx_hash)).toContain(paid.hash)
    expect(payment).toMatchObject({ status: 'COMPLETED', total: '0.5' })
    const { crypto_tx_hash: hash, crypto_tx_index: index, amount } = payment
    expect(await world.received(destination, asset)).toEqual([{ hash, index, amount }])
  })

  test.skipIf(skipped)(
    'withdrawals wait in order while the hot wallet is short, with the reason, and are paid after it is funded',
    async () => {
      await takeCustody('50')
      const addresses = [await world.newAddress(), await world.newAddress()] as const
      await withdraw('large', '20', addresses[0])
      await withdraw('behind', '0.25', addresses[1])
      const waiting = () =>
        database.db.query('select from outgoing_transfers where waiting_detail is not null')
      await vi.waitFor(async () => expect((await waiting()).rowCount).toBe(2), PATIENCE)
      const { report } = await reported()
      const since = expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string
      expect(report.waiting).toEqual(
        expect.arrayContaining([
          {
            code: 'HOT_WALLET_SHORT',
            detail: expect.stringMatching(/^the hot wallet has /) as string,
            count: 1,
            since,
          },
          { code: 'BEHIND_ANOTHER', detail: expect.any(String) as string, count: 1, since },
        ]),
      )
      expect(report.in_flight).toEqual({ HELD: 2 })
      const { code, said } = await status()
      expect(code).toBe(1)
      expect(said).toMatch(/^ {2}1 waiting since \S+: HOT_WALLET_SHORT: the hot wallet has /m)
      expect(said).toContain('  in flight: 2 HELD')
      expect([(await transferOf('large')).status, (await transferOf('behind')).status]).toEqual([
        'PENDING',
        'PENDING',
      ])

      // The missing amount comes back as a deposit that is credited to no customer again.
      await world.pay(await hotWallet(), asset, '50')
      await until(async () => expect((await transferOf('behind')).status).toBe('COMPLETED'))
      const [large, behind] = [await transferOf('large'), await transferOf('behind')]
      expect(large.status).toBe('COMPLETED')
      for (const [transfer, address] of [
        [large, addresses[0]],
        [behind, addresses[1]],
      ] as const) {
        const { crypto_tx_hash: hash, crypto_tx_index: index, amount } = transfer
        expect(await world.received(address, asset)).toEqual([{ hash, index, amount }])
      }
      // The blocks also let the sweeps complete.
      await until(async () => {
        const { code, report } = await reported()
        expect(report).toMatchObject({ in_flight: {}, waiting: [], below_low_mark: false })
        expect(report.custody.find((one) => one.asset === asset)!.difference).toBe('0')
        expect(code).toBe(0)
      })
    },
  )

  test.skipIf(skipped)(
    'commands order a move of coins to cold storage and back, and the running worker makes it once',
    async () => {
      const cold = await world.newAddress()
      const order = [
        'treasury',
        'send',
        '--network',
        world.network,
        '--asset',
        asset,
        '--amount',
        '0.2',
        '--to',
        cold,
      ]
      const [first, again] = [
        await command([...order, '--reference', 'cold 1', '--json']),
        await command([...order, '--reference', 'cold 1', '--json']),
      ]
      expect(first.code).toBe(0)
      const { id } = JSON.parse(first.stdout) as { id: string }
      expect(JSON.parse(first.stdout)).toMatchObject({ is_new: true, status: 'PENDING', amount: '0.2' })
      expect(JSON.parse(again.stdout)).toMatchObject({ is_new: false, id })
      expect(first.stderr).toMatch(/"msg":"ordered a treasury transfer"/)
      const listed = async () =>
        (
          JSON.parse((await command(['treasury', 'list', '--json'])).stdout) as {
            transfers: TreasuryTransfer[]
          }
        ).transfers
      await until(async () => expect(await listed()).toMatchObject([{ id, status: 'COMPLETED' }]))
      const [{ crypto_tx_hash: hash }] = (await listed()) as [TreasuryTransfer]
      expect(await world.received(cold, asset)).toMatchObject([{ hash, amount: '0.2' }])
      expect((await command(['treasury', 'list'])).stdout).toContain('cold 1')
      expect((await status()).said).toContain('in cold storage 0.2')

      for (const [args, reason] of [
        [[...order, '--reference', ''], 'reference must have 1 to 100 characters'],
        [['treasury', 'cancel', id], `withdrawal ${id} is COMPLETED`],
        [['wallet', 'acknowledge', '--network', world.network, '--tx-hash', hash!], `${hash} is known`],
        [
          ['wallet', 'consolidate', '--network', world.network],
          world.network === 'LITECOIN' ? 'there is nothing to merge' : 'no former wallet with a key',
        ],
      ] as const) {
        const refused = await command([...args])
        expect([args, refused.code, refused.stderr]).toEqual([args, 1, expect.stringContaining(reason)])
      }

      const back = await world.pay(await hotWallet(), asset, '0.2')
      await mine(world.mining)
      const acknowledge = ['wallet', 'acknowledge', '--network', world.network, '--tx-hash', back.hash]
      expect((await command(acknowledge)).stdout).toContain(`0.2 ${asset} from cold storage`)
      expect((await command(acknowledge)).stdout).toBe(`${back.hash} was already acknowledged.\n`)
      const { report } = await reported()
      expect(report.custody.find((one) => one.asset === asset)).toMatchObject({
        difference: '0',
        in_cold: '0',
      })
      expect((await verify(database.db)).disagreements).toEqual([])
      const actions = await actionsOfCommands(database.db)
      expect(actions).toEqual(expect.arrayContaining(['transfer.acknowledge', 'transfer.order']))
    },
  )

  test.skipIf(skipped)('commands list deposits, scan blocks again and resume deposits', async () => {
    const { network } = world
    const json = async <T>(...args: string[]) => {
      const { code, stdout, stderr } = await command(['deposits', ...args, '--json'])
      expect([args[0], code, withoutOperators(stderr)]).toEqual([args[0], 0, ''])
      return JSON.parse(stdout) as T
    }
    expect(await json('list')).toEqual({ deposits: [] })
    const waiting = {
      ...{ customer_id, network, crypto_tx_hash: 'aa', crypto_tx_index: '0' },
      ...{ address: 'here', asset, amount: '2' },
      ...{ state: 'WAITING', reason: 'FAILED', detail: null, cleared: false, attempts: 1 },
    }
    await database.owner.query(
      `insert into incoming_transfers (${Object.keys(waiting).join(', ')}, found_at, due_at)
       values (${Object.keys(waiting)
         .map((_, index) => `$${index + 1}`)
         .join(', ')}, now(), now())`,
      Object.values(waiting),
    )
    // Reported by the worker when no record has the address.
    const NO_ADDRESS = 'its deposit address is not there any more'
    await until(async () => expect(await json('list')).toMatchObject({ deposits: [{ detail: NO_ADDRESS }] }))
    const listed = { ...waiting, detail: NO_ADDRESS, found_at: expect.stringMatching(/^20.*Z$/) as string }
    const { cleared: _, attempts: __, ...shown } = listed
    for (const args of [['--waiting'], ['--network', network], []])
      expect(await json<{ deposits: object[] }>('list', ...args)).toMatchObject({ deposits: [shown] })
    expect(await json('list', '--reorganised')).toEqual({ deposits: [] })
    expect((await command(['deposits', 'list'])).stdout).toMatch(
      / 2 \S+  to here  by aa: FAILED \(its deposit address is not there any more\)\n$/,
    )
    await database.owner.query('delete from incoming_transfers where crypto_tx_hash = $1', ['aa'])

    await mine(world.mining)
    const { report } = await reported()
    const to = String(report.height! - (report.confirmations as number))
    const range = ['--network', network, '--from', '1', '--to', to]
    expect(await json('rescan', ...range)).toEqual({ network, found: 0, credited: 0 })

    const nothing = await command(['deposits', 'resume', '--network', network, '--json'])
    expect([nothing.code, nothing.stdout]).toEqual([1, ''])
    await freeze(database.db, TEST_ORIGIN, { kind: 'NETWORK', network }, 'REORGANISATION', 'as if')
    expect(await json('resume', '--network', network)).toEqual({
      network,
      cursor: world.network === 'LITECOIN' ? null : (expect.stringMatching(/^\d+:0x/) as string),
      gone: [],
    })
    expect((await reported()).report.frozen).toEqual([])
    const actions = await actionsOfCommands(database.db)
    expect(actions).toEqual(expect.arrayContaining(['network.rescan', 'network.resume']))

    const { body } = await call('GET', '/v2/transfer/transfers?type=CRYPTO_DEPOSIT')
    const { crypto_tx_hash: hash } = (body.items as Transfer[]).find(({ amount }) => amount === '3')!
    const said = ['--tx-hash', hash!, '--address', 'nowhere', '--asset', asset, '--amount', '1']
    const credit = await command(['deposits', 'credit', '--network', network, ...said, '--json'])
    expect([credit.code, credit.stdout]).toEqual([1, ''])
    expect(credit.stderr).toMatch(/nowhere is no address of|has no deposits that a scan cannot find/)
  })

  test.skipIf(skipped)('an unreachable node is reported with exit code 1', async () => {
    const gone = await networksFile([
      { ...world, section: { ...world.section, rpc_url: 'http://127.0.0.1:1' } },
    ])
    atEnd(gone.remove)
    const { code, said } = await status({ BURSAR_NETWORKS_FILE: gone.path })
    expect(code).toBe(1)
    expect(said).toMatch(new RegExp(`^${world.network}: NOT REACHABLE: .+`))
    expect(said).toMatch(new RegExp(`^  ${asset}: holds \\?, in custody [1-9]`, 'm'))
  })

  /** Credits the profile with a deposit that is not on the chain: the ledger has custody that the hot wallet lacks. */
  async function takeCustody(amount: string): Promise<void> {
    const arrived = deposit(
      customer_id,
      {
        profile_id,
        type: 'CRYPTO_DEPOSIT',
        asset,
        minor: parseAmount(amount, decimalsOf(asset))!,
        arrivedAt: `custody:${world.network}`,
        place: undefined,
        record: { crypto_network: world.network },
      },
      originOfLoop('test'),
    )
    await new Ledger(database.db).submit(customer_id, arrived)
  }
  /** Returns an address that funds the hot wallet and belongs to no customer. */
  async function hotWallet(): Promise<string> {
    if ('hotWallet' in world) return world.hotWallet as string
    const { node } = world as Awaited<ReturnType<typeof litecoinWorld>>
    return node.bursar.call<string>('getnewaddress', '', 'bech32')
  }
})

test('an invalid file stops the start with a line that names the setting, section and field', async () => {
  const section = { adapter: 'evm', rpc_url: 'http://127.0.0.1:1', confirmations: 1, fee_ceiling: 'two' }
  const secrets = { KEY: '1f'.repeat(32) }
  const file = await networksFile([
    { network: 'BASE', section: { ...section, hot_wallet_key: { env: 'KEY' } }, secrets },
  ])
  atEnd(file.remove)
  const database = await ownDatabase()
  const run = async (args: string[], BURSAR_NETWORKS_FILE: string) => {
    const own = { DATABASE_URL: database.url, PORT: '0', BURSAR_NETWORKS_FILE }
    const ended = await runBursar(args, { ...file.environment, ...own })
    return { code: ended.code, out: ended.stdout, told: toldIn(ended) }
  }
  for (const args of [['serve'], ['networks', 'status']]) {
    expect(await run(args, file.path)).toEqual({
      code: 1,
      out: '',
      told: [expect.stringMatching(/^BURSAR_NETWORKS_FILE: BASE\.fee_ceiling must match pattern/)],
    })
  }
  const main = await networksFile([
    { network: 'BASE', section: { ...section, fee_ceiling: '2', hot_wallet_key: { env: 'KEY' } }, secrets },
  ])
  atEnd(main.remove)
  expect(await run(['serve'], main.path)).toEqual({
    code: 1,
    out: '',
    told: [
      expect.stringMatching(
        /^BURSAR_NETWORKS_FILE: BASE\.chain_id: 8453 is the main network of BASE, and a sandbox's money is invented/,
      ),
    ],
  })
  expect(await run(['networks', 'status'], '')).toEqual({
    code: 0,
    out: 'No real network is configured: set BURSAR_NETWORKS_FILE.\n',
    told: [],
  })
})

test('no secret is logged or returned, even when the node repeats it', async () => {
  const secrets = {
    URL: 'provider-key-0123456789',
    PASSWORD: 'a-password-nobody-guesses',
    KEY: '1f'.repeat(32),
    WORDS: 'legal winner thank year wave sausage worth useful legal winner thank yellow',
  }
  // A failing node, whose errors repeat the request and its password.
  let failures = 0
  const node = createServer((request, reply) => {
    void text(request).then((body) => {
      const echo = JSON.stringify({ body, url: request.url, auth: request.headers.authorization })
      const [status, answer] = [
        [500, echo],
        [200, 'no JSON'],
        [401, echo],
      ][failures++ % 3] as [number, string]
      reply.writeHead(status, { 'content-type': 'application/json' }).end(answer)
    })
  }).listen(0, '127.0.0.1')
  await once(node, 'listening')
  atEnd(async () => void node.close())
  const url = `http://127.0.0.1:${(node.address() as AddressInfo).port}`
  const limits = { confirmations: 1, fee_ceiling: '1' }
  const file = await networksFile([
    {
      network: 'ETHEREUM',
      section: {
        adapter: 'evm',
        rpc_url: { env: 'URL' },
        chain_id: 31337,
        hot_wallet_key: { env: 'KEY' },
        deposit_key: { env: 'WORDS' },
        ...limits,
      },
      secrets: { ...secrets, URL: `${url}/v3/${secrets.URL}` },
    },
    {
      network: 'LITECOIN',
      section: {
        adapter: 'bitcoin-core',
        rpc_url: url,
        rpc_user: 'bursar',
        rpc_password: { env: 'PASSWORD' },
        ...limits,
      },
      secrets: {},
    },
  ])
  atEnd(file.remove)
  const database = await ownDatabase()
  const environment = { ...file.environment, DATABASE_URL: database.url, BURSAR_LOG_LEVEL: 'trace' }
  await createCustomer(database.db, 'Test')
  const bursar = await spawnBursar(environment)
  // The worker tries to read deposits and to sweep.
  await vi.waitFor(() => expect(failures).toBeGreaterThan(12), PATIENCE)
  await bursar.end('SIGTERM')
  const { stdout: out, stderr: err } = await runBursar(['networks', 'status'], environment)
  expect(out.match(/NOT REACHABLE/g)).toHaveLength(2)
  const said = [bursar.log(), out, err].join('\n')
  expect(said).toContain('a round of the worker failed')
  const basic = btoa(`bursar:${secrets.PASSWORD}`)
  for (const secret of [...Object.values(secrets), basic]) expect(said.includes(secret)).toBe(false)
  // No table keeps a secret either.
  const kept = await database.db.query<{ name: string }>(
    `select relname as name from pg_class
     where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition`,
  )
  for (const { name } of kept.rows) {
    const { rows } = await database.db.query<{ row: string }>(`select t::text as row from ${name} t`)
    for (const secret of [...Object.values(secrets), basic])
      expect(rows.some(({ row }) => row.includes(secret))).toBe(false)
  }
})
