/*
 * Hot and cold on a real chain: a refill is posted once and only by the word of two nodes, and nothing but what cold storage has
 * paid; a send is proposed, confirmed by a person, and paid once.
 */
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { createWalletClient, http, parseTransaction, type Hex } from 'viem'
import { afterAll, afterEach, expect, test } from 'vitest'
import { TOKEN_ABI, deployToken, ownAnvil } from '../../test/anvil.ts'
import { FAILURES, dieAtEachStep } from '../../test/failures.ts'
import { startLyingNode } from '../../test/lying-node.ts'
import { networksFile } from '../../test/real-networks.ts'
import { MASTER_KEY, MASTER_KEYS, runBursar, ownTestService, TEST_ORIGIN } from '../../test/support.ts'
import { hurryUnlocked } from '../../test/work-off.ts'
import { lookAt } from '../../src/rails/wallets/look.ts'
import type { Networks } from '../../src/networks/network.ts'
import { networkReports } from '../../src/rails/wallets/network-status.ts'
import { configuredNetworks } from '../../src/networks/open-networks.ts'
import { parseStoredAmount } from '../../src/contract/assets/amount.ts'
import { decimalsOf } from '../../src/contract/assets/catalogue.ts'
import type { Database } from '../../src/db/database.ts'
import { RowMacs } from '../../src/audit/sealed-rows.ts'
import { PLATFORM_ID } from '../../src/db/ids.ts'
import { verify } from '../../src/money/verify/verify.ts'
import { creditDepositsOn } from '../../src/rails/deposits/credit-deposits.ts'
import { settleWithdrawals } from '../../src/rails/payouts/settle-withdrawals.ts'
import { confirmSend, planRefill, postRefills } from '../../src/rails/treasury/refills.ts'
import { acknowledgeTransaction } from '../../src/rails/treasury/acknowledged.ts'
import { selectTreasuryTransfers } from '../../src/rails/treasury/orders.ts'
import { withdrawalReader } from '../../src/rails/payouts/withdrawal-reader.ts'

const CHAIN = 31337
const CONFIRMATIONS = 2
const ONE = 10n ** 18n
const NETWORK = 'ETHEREUM'

const files: { remove: () => Promise<void> }[] = []
const service = await ownTestService()
const anvil = await ownAnvil(CHAIN)
const USDG = await deployToken(anvil, 6)
const [first, second] = [await startLyingNode(anvil.rpcUrl), await startLyingNode(anvil.rpcUrl)]
afterAll(() => Promise.all([first.stop(), second.stop(), ...files.map((file) => file.remove())]))
afterEach(async () => {
  first.tellTheTruth()
  second.tellTheTruth()
  await service.owner.query('delete from refills')
})

const fund = (address: Hex, eth: bigint) => anvil.chain.setBalance({ address, value: eth * ONE })
const mine = () => anvil.chain.mine({ blocks: CONFIRMATIONS })

/** A new hot wallet with so much ETH, and cold storage with 100 ETH and 1,000 USDG, configured by a file. */
async function open(eth: bigint, changes: Record<string, unknown> = {}) {
  const key = generatePrivateKey()
  const hot = privateKeyToAccount(key).address
  const cold = privateKeyToAccount(generatePrivateKey())
  await fund(hot, eth)
  await fund(cold.address, 100n)
  const mint = { chain: null, address: USDG, abi: TOKEN_ABI, functionName: 'mint' } as const
  await anvil.chain.writeContract({ ...mint, args: [cold.address, 1_000_000_000n] })
  const section = {
    adapter: 'evm',
    rpc_url: first.rpcUrl,
    verify_rpc_url: second.rpcUrl,
    chain_id: CHAIN,
    hot_wallet_key: { env: 'HOT_WALLET_KEY' },
    confirmations: CONFIRMATIONS,
    fee_ceiling: '100',
    tokens: { USDG },
    low_mark: { ETH: '2', USDG: '10' },
    target: { ETH: '5', USDG: '50' },
    high_mark: { ETH: '20' },
    cold_addresses: [cold.address],
    ...changes,
  }
  const file = await networksFile([{ network: NETWORK, section, secrets: { HOT_WALLET_KEY: key } }])
  files.push(file)
  const openFor = async (db: Database) => {
    const configured = await configuredNetworks(file.path, file.environment, db, 'sandbox', {
      signs: true,
      withdrawals: withdrawalReader,
    })
    const adapter = configured.get(NETWORK)!.adapter
    return { configured, adapter, networks: new Map([[NETWORK, adapter]]) as Networks }
  }
  const environment = {
    ...file.environment,
    DATABASE_URL: service.url,
    BURSAR_MASTER_KEY: MASTER_KEY,
  }
  const opened = { hot, cold, environment, openFor, ...(await openFor(service.db)) }
  // Reading begins at the newest block.
  await service.owner.query('delete from network_cursors')
  await read(opened)
  return opened
}
type Opened = Awaited<ReturnType<typeof open>>

/** One round of the worker: reads blocks, and posts refills. Returns what it posted. */
async function read({ adapter, networks }: Pick<Opened, 'adapter' | 'networks'>, db: Database = service.db) {
  const { ledger, settings } = service
  const posted: (string | undefined)[] = []
  await creditDepositsOn({ db, ledger, settings }, NETWORK, adapter)
  await postRefills(db, networks, ({ crypto_tx_hash }) => posted.push(crypto_tx_hash))
  return posted
}

/** Signs what `treasury refill` printed, as cold storage does, and sends it. */
async function sendRefill({ cold, adapter }: Opened, asset: string): Promise<Hex> {
  const { unsigned, lacks } = await planRefill(service.db, adapter, { network: NETWORK, asset })
  expect(lacks).toBeUndefined()
  const serializedTransaction = await cold.signTransaction(
    parseTransaction(unsigned!.bytes as `0x02${string}`) as never,
  )
  return anvil.chain.sendRawTransaction({ serializedTransaction })
}

/** What an account pays by itself, beside the printed transaction. */
const pay = (account: Opened['cold'], to: Hex, value: bigint) =>
  createWalletClient({ account, transport: http(anvil.rpcUrl) }).sendTransaction({ chain: null, to, value })

/** By asset, what the platform's own ledger has in custody: what came from cold storage. */
async function inCustody(): Promise<Record<string, bigint>> {
  const { rows } = await service.db.query<{ asset: string; custody: string; cold: string }>(`
    select asset, coalesce(-sum(amount) filter (where account = 'custody:${NETWORK}'), 0) as custody,
           coalesce(sum(amount) filter (where account = 'cold:${NETWORK}'), 0) as cold
    from entries where customer_id = '${PLATFORM_ID}' group by asset`)
  return Object.fromEntries(
    rows.map(({ asset, custody, cold }) => {
      expect(custody).toBe(cold)
      return [asset, parseStoredAmount(custody, decimalsOf(asset))]
    }),
  )
}

/** Why a refill is not posted. */
const detailOf = async (hash: string) =>
  (
    await service.db.query<{ detail: string | null }>(
      'select detail from refills where crypto_tx_hash = $1',
      [hash],
    )
  ).rows[0]?.detail

/** Since `before`, the ledger has got exactly this. */
async function requirePosted(before: Record<string, bigint>, expected: Record<string, bigint>) {
  const now = await inCustody()
  for (const [asset, units] of Object.entries(expected))
    expect([asset, (now[asset] ?? 0n) - (before[asset] ?? 0n)]).toEqual([asset, units])
  const checked = await verify(service.db, { tokens: new Map([[NETWORK, { USDG }]]) })
  expect(checked.disagreements).toEqual([])
}

test.each(FAILURES)(
  'a refill of what is asked for is posted once, with a worker that dies %s each step',
  async (failure) => {
    await dieAtEachStep(failure, 15, async (failures) => {
      const opened = await open(1n)
      const before = await inCustody()
      const { asks } = await lookAt(service.db, NETWORK, opened.adapter)
      expect(asks).toEqual([
        { kind: 'REFILL', asset: 'ETH', amount: '4' },
        { kind: 'REFILL', asset: 'USDG', amount: '50' },
      ])
      const hashes = [await sendRefill(opened, 'ETH'), await sendRefill(opened, 'USDG')]
      await mine()
      const db = failures.database(service.db)
      await read(await opened.openFor(db), db).catch(() => undefined)
      await service.db.query('update network_cursors set leased_until = null')
      await read(opened)
      expect(await read(opened)).toEqual([])
      await requirePosted(before, { ETH: 4n * ONE, USDG: 50_000_000n })
      const { rows } = await service.db.query(
        `select from acknowledged_transactions where crypto_tx_hash = any ($1)`,
        [hashes],
      )
      expect(rows).toHaveLength(2)
      expect((await service.db.query('select from refills')).rows).toEqual([])
      expect((await lookAt(service.db, NETWORK, opened.adapter)).asks).toEqual([])
    })
  },
  240_000,
)

test('what anybody else pays is not posted, even where the database names it, and is acknowledged by a person', async () => {
  const opened = await open(1n)
  const before = await inCustody()
  const stranger = privateKeyToAccount(generatePrivateKey())
  await fund(stranger.address, 10n)
  const hash = await pay(stranger, opened.hot, 3n * ONE)
  await mine()
  expect(await read(opened)).toEqual([])
  expect((await service.db.query('select from refills')).rows).toEqual([])
  // The database's role in a thief's hands.
  await service.db.query(
    'insert into refills (network, crypto_tx_hash, found_at) values ($1, $2, clock_timestamp())',
    [NETWORK, hash],
  )
  expect(await read(opened)).toEqual([])
  expect(await detailOf(hash)).toBe(`${stranger.address} paid, which is not in cold_addresses`)
  await requirePosted(before, { ETH: 0n })
  const [report] = await networkReports(service.db, opened.configured)
  expect(report!.refills).toMatchObject([
    { crypto_tx_hash: hash, detail: expect.stringMatching(/ paid, which/) as string },
  ])
  // A transaction that a reorganisation removed would be looked for without end.
  await service.db.query(
    `insert into refills (network, crypto_tx_hash, found_at)
     values ($1, '0xgone', clock_timestamp() - interval '31 days')`,
    [NETWORK],
  )
  expect(await read(opened)).toEqual([])
  expect(await detailOf('0xgone')).toBeUndefined()
  await acknowledgeTransaction(service.db, opened.adapter, NETWORK, hash, { origin: TEST_ORIGIN })
  await requirePosted(before, { ETH: 3n * ONE })
  expect(await detailOf(hash)).toBeUndefined()
  // A scan of the same blocks again.
  await service.db.query(
    'insert into refills (network, crypto_tx_hash, found_at) values ($1, $2, clock_timestamp())',
    [NETWORK, hash],
  )
  expect(await read(opened)).toEqual([])
  expect(await detailOf(hash)).toBeUndefined()
  await requirePosted(before, { ETH: 3n * ONE })
})

test('a node that lies invents no custody: what both nodes have is posted', async () => {
  const opened = await open(1n)
  const before = await inCustody()
  const hash = await pay(opened.cold, opened.hot, ONE)
  await mine()
  const lieOf =
    (fields: object) => (call: { method: string; params: unknown[] }, answer: { result?: unknown }) =>
      call.method === 'eth_getTransactionByHash' && call.params[0] === hash
        ? { result: { ...(answer.result as object), ...fields } }
        : undefined
  first.lie = lieOf({ value: '0x56bc75e2d63100000' })
  expect(await read(opened)).toEqual([])
  expect(await detailOf(hash)).toBe(`${hash}: the second node has another sender, nonce, amount or fee`)
  // A payment by a stranger that the first node says cold storage has made.
  const stranger = privateKeyToAccount(generatePrivateKey())
  await fund(stranger.address, 10n)
  first.lie = lieOf({ from: stranger.address })
  expect(await read(opened)).toEqual([])
  // The second node is away: the refill waits, and no deposit does.
  first.tellTheTruth()
  second.lie = () => ({ error: { code: -32_000, message: 'away' } })
  expect(await read(opened).catch(() => [])).toEqual([])
  await requirePosted(before, { ETH: 0n })
  second.tellTheTruth()
  expect(await read(opened)).toEqual([hash])
  await requirePosted(before, { ETH: ONE })
})

test('without a second node, a refill waits for a person', async () => {
  const opened = await open(1n, { verify_rpc_url: undefined })
  const before = await inCustody()
  const hash = await pay(opened.cold, opened.hot, ONE)
  await mine()
  expect(await read(opened)).toEqual([])
  await service.db.query(
    'insert into refills (network, crypto_tx_hash, found_at) values ($1, $2, clock_timestamp())',
    [NETWORK, hash],
  )
  expect(await read(opened)).toEqual([])
  expect(await detailOf(hash)).toBe('no second node confirms it')
  await requirePosted(before, { ETH: 0n })
})

test('above the high mark a send is proposed; a person confirms it, and it is paid once', async () => {
  const opened = await open(30n)
  const { adapter, networks, hot, cold, environment } = opened
  const look = async () =>
    (await lookAt(service.db, NETWORK, adapter)).asks.filter(({ kind }) => kind === 'SEND')
  expect(await look()).toEqual([{ kind: 'SEND', asset: 'ETH', amount: '25', to: cold.address }])
  const confirm = (amount: string) =>
    runBursar(
      ['treasury', 'confirm', '--network', NETWORK, '--asset', 'ETH', '--amount', amount, '--json'],
      environment,
    )
  expect(await confirm('25.1')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('25 ETH at most is proposed') as string,
  })
  // Two people at once.
  const ordering = { db: service.db, macs: new RowMacs(MASTER_KEYS), origin: TEST_ORIGIN }
  const asked = { network: NETWORK, asset: 'ETH', amount: '25' } as const
  const both = await Promise.all([
    confirmSend(ordering, adapter, asked),
    confirmSend(ordering, adapter, asked),
  ])
  expect(both.map(({ is_new }) => is_new).sort()).toEqual([false, true])
  expect(await look()).toEqual([])
  expect(await confirm('25')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('nothing of ETH is proposed') as string,
  })
  for (let round = 1; round <= 12; round++) {
    await hurryUnlocked(service.db, { endLeases: true })
    await settleWithdrawals(service.db, networks)
    await mine()
  }
  expect(await selectTreasuryTransfers(service.db, NETWORK, 10)).toMatchObject([{ status: 'COMPLETED' }])
  expect(await anvil.chain.getBalance({ address: cold.address })).toBe(125n * ONE)
  expect(await look()).toEqual([])
  // The next proposal is another order, and the audit log has who confirmed it.
  await fund(hot, 21n)
  const { stdout, code } = await confirm('6')
  expect(code).toBe(0)
  const { id } = JSON.parse(stdout) as { id: string }
  const { rows } = await service.db.query(
    'select action, actor_type from audit_log where customer_id = $1 and coalesce(subject_id, subject_ids[1]::text) = $2',
    [PLATFORM_ID, id],
  )
  expect(rows).toEqual([{ action: 'transfer.order', actor_type: 'COMMAND_LINE' }])
})
