/*
 * Shared by the tests of real networks: separate chains, a service that reads a BURSAR_NETWORKS_FILE for them, and
 * workers that die at a chosen step.
 */
import { spawn } from 'node:child_process'
import { randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { pino } from 'pino'
import { getAbiItem, type Hex } from 'viem'
import { english, generateMnemonic, generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { expect, vi } from 'vitest'
import { originOfLoop } from '../src/contract/actor.ts'
import { formatAmount, parseAmount, parseStoredAmount } from '../src/contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../src/contract/assets/catalogue.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { verifyAuditChains } from '../src/money/verify/audit-chains.ts'
import { verify } from '../src/money/verify/verify.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import { configuredNetworks } from '../src/networks/open-networks.ts'
import { bitcoinRpc } from '../chains/kit/json-rpc.ts'
import { networkReports } from '../src/rails/wallets/network-status.ts'
import type { Networks } from '../src/networks/network.ts'
import { orderTreasurySend } from '../src/rails/treasury/orders.ts'
import { bundle } from './bundle.ts'
import { deployToken, startAnvil, TOKEN_ABI } from './anvil.ts'
import { BitcoinNode, type NodeProgram } from './bitcoin-node.ts'
import { EVERY_STEP } from './every-step.ts'
import {
  cloneDatabase,
  ENVIRONMENT,
  MASTER_KEYS,
  newCustomer,
  testSettings,
  type TestCustomer,
} from './support.ts'
import { hurry, mine, workOff, type Mining } from './work-off.ts'
import { buildApp } from '../src/program/build-app.ts'
import { withdrawalReader } from '../src/rails/payouts/withdrawal-reader.ts'

/** A separate real chain, with the operations of a party outside of Bursar. */
export interface World {
  network: CryptoNetwork
  /** Its section of the networks file, and the environment variables with its secrets. */
  section: Record<string, unknown>
  secrets: Record<string, string>
  /** The request with which any process mines a block. */
  mining: Mining
  /**
   * Pays an address of Bursar, and mines until the payment is confirmed. Returns the hash and the index of the output
   * or log.
   */
  pay(address: string, asset: string, amount: string): Promise<{ hash: string; index: string }>
  /** Returns an unused address outside of Bursar. */
  newAddress(): Promise<string>
  /** Returns each transfer that this address has received. */
  received(address: string, asset: string): Promise<{ hash: string; index: string; amount: string }[]>
  /** Throws unless nothing waits or is locked in the node. */
  requireAtRest(): Promise<void>
  stop(): Promise<void>
}

const EVM_CONFIRMATIONS = 2
const ANVIL_CHAIN = 31337

/** Anvil, with a token in place of USDG, and an unused hot wallet. */
export async function evmWorld(network: CryptoNetwork = 'ETHEREUM') {
  const anvil = await startAnvil(ANVIL_CHAIN)
  const { chain, rpcUrl } = anvil
  const token = await deployToken(anvil, decimalsOf('USDG'))
  const key = generatePrivateKey()
  const hotWallet = privateKeyToAccount(key).address
  const mining = { url: rpcUrl, body: { jsonrpc: '2.0', id: 1, method: 'evm_mine', params: [] } }
  const transferEvent = getAbiItem({ abi: TOKEN_ABI, name: 'Transfer' })

  /** Native transfers by address, up to block `readTo`, so that each block is read only once. */
  const natives = new Map<string, { hash: string; index: string; amount: string }[]>()
  let readTo = -1n
  async function readNatives() {
    const head = await chain.getBlockNumber()
    for (; readTo < head; readTo++) {
      const { transactions } = await chain.getBlock({ blockNumber: readTo + 1n, includeTransactions: true })
      for (const { hash, to, value } of transactions) {
        if (to === null || value === 0n) continue
        const arrived = { hash, index: '0', amount: formatAmount(value, decimalsOf('ETH')) }
        natives.set(to.toLowerCase(), [...(natives.get(to.toLowerCase()) ?? []), arrived])
      }
    }
  }

  const world: World = {
    network,
    section: {
      adapter: 'evm',
      rpc_url: rpcUrl,
      chain_id: ANVIL_CHAIN,
      hot_wallet_key: { env: 'HOT_WALLET_KEY' },
      deposit_key: { env: 'DEPOSIT_KEY' },
      confirmations: EVM_CONFIRMATIONS,
      fee_ceiling: '100',
      // The deposits here are small. evm/deposits.chain.test.ts tests the minimum that is worth its fee.
      sweep_minimum: { ETH: '0.0001', USDG: '0.1' },
      tokens: { USDG: token },
    },
    secrets: { HOT_WALLET_KEY: key, DEPOSIT_KEY: generateMnemonic(english) },
    mining,
    async pay(address, asset, amount) {
      const units = parseAmount(amount, decimalsOf(asset))!
      const to = address as Hex
      const hash =
        asset === 'ETH'
          ? await chain.sendTransaction({ chain: null, to, value: units })
          : await chain.writeContract({
              chain: null,
              address: token,
              abi: TOKEN_ABI,
              functionName: 'mint',
              args: [to, units],
            })
      await mine(mining)
      return { hash, index: '0' }
    },
    newAddress: async () => privateKeyToAccount(generatePrivateKey()).address,
    async received(address, asset) {
      if (asset === 'ETH') {
        await readNatives()
        return natives.get(address.toLowerCase()) ?? []
      }
      const args = { to: address as Hex }
      const logs = await chain.getLogs({ address: token, event: transferEvent, args, fromBlock: 0n })
      return logs.map(({ args: { amount }, transactionHash, logIndex }) => {
        return {
          hash: transactionHash,
          index: String(logIndex),
          amount: formatAmount(amount!, decimalsOf(asset)),
        }
      })
    },
    async requireAtRest() {
      expect(await chain.getTxpoolStatus()).toEqual({ pending: 0, queued: 0 })
    },
    stop: () => anvil.stop(),
  }
  return { ...world, anvil, hotWallet }
}

export const litecoinWorld = () => bitcoinWorld('LITECOIN')

/**
 * A network of the Bitcoin family on regtest. The node is Litecoin Core, unless another program is given. With `signers`, its wallet is
 * watch-only.
 */
export async function bitcoinWorld(network: 'LITECOIN' | 'BITCOIN', program?: NodeProgram, signers = 0) {
  const node = await BitcoinNode.start(program, signers)
  const { rpcUrl, rpcUser, rpcPassword, wallet } = node.config
  const coinbase = await node.newAddress()
  const world: World = {
    network,
    section: {
      adapter: 'bitcoin-core',
      rpc_url: rpcUrl,
      rpc_user: rpcUser,
      rpc_password: { env: 'RPC_PASSWORD' },
      wallet,
      ...(signers > 0 && { signing: 'psbt' }),
      confirmations: 1,
      fee_ceiling: '0.01',
    },
    secrets: { RPC_PASSWORD: rpcPassword },
    mining: {
      url: `${rpcUrl}/wallet/miner`,
      authorization: `Basic ${btoa(`${node.owner.rpcUser}:${rpcPassword}`)}`,
      body: { id: 0, method: 'generatetoaddress', params: [1, coinbase] },
    },
    async pay(address, _asset, amount) {
      const hash = await node.pay(node.miner, { [address]: amount })
      await node.mine(1)
      return { hash, index: await outputOf(node, hash, address) }
    },
    newAddress: () => node.newAddress(),
    async received(address) {
      const found = await node.miner.call<{ txids: string[] }[]>(
        'listreceivedbyaddress',
        0,
        false,
        false,
        address,
      )
      const hashes = found.flatMap(({ txids }) => txids)
      return Promise.all(
        hashes.map(async (hash) => {
          const { details } = await node.miner.call<{ details: Detail[] }>('gettransaction', hash)
          const { vout, amount } = details.find(
            (one) => one.category === 'receive' && one.address === address,
          )!
          return { hash, index: vout, amount: formatAmount(parseStoredAmount(amount, 8), 8) }
        }),
      )
    },
    async requireAtRest() {
      expect(await node.bursar.call('listlockunspent')).toEqual([])
      expect(await node.bursar.call('getrawmempool')).toEqual([])
    },
    stop: () => node.stop(),
  }
  return { ...world, node }
}

interface Detail {
  category: string
  address: string
  vout: string
  amount: string
}

async function outputOf(node: BitcoinNode, hash: string, address: string): Promise<string> {
  const { details } = await node.miner.call<{ details: Detail[] }>('gettransaction', hash)
  return details.find((one) => one.category === 'send' && one.address === address)!.vout
}

// ---------------------------------------------------------------------------------------------- the service

/** Writes a networks file with the sections of these worlds. Returns the environment that names it. */
export async function networksFile(
  worlds: readonly Pick<World, 'network' | 'section' | 'secrets'>[],
  changes: Record<string, unknown> = {},
) {
  const folder = await mkdtemp(join(tmpdir(), 'bursar-networks-'))
  const path = join(folder, 'networks.json')
  const sections = worlds.map(({ network, section }) => [network, { ...section, ...changes }])
  await writeFile(path, JSON.stringify(Object.fromEntries(sections)))
  const secrets = Object.assign({}, ...worlds.map((world) => world.secrets)) as Record<string, string>
  return {
    path,
    folder,
    environment: { BURSAR_NETWORKS_FILE: path, ...secrets },
    remove: () => rm(folder, { recursive: true, force: true }),
  }
}

/** The service on real networks, with a healthy worker. Close it in `afterAll`. */
export async function startRealService(world: World) {
  const file = await networksFile([world])
  const { url, db, ownerUrl, owner, drop } = await cloneDatabase()
  const settings = testSettings({})
  const ledger = new Ledger(db, { macs: new RowMacs(MASTER_KEYS) })
  const configured = await configuredNetworks(file.path, file.environment, db, settings.mode, {
    signs: true,
    withdrawals: withdrawalReader,
  })
  const networks: Networks = new Map([...configured].map(([network, { adapter }]) => [network, adapter]))
  const app = await buildApp({
    db,
    ledger,
    networks,
    settings,
    masterKeys: MASTER_KEYS,
    baseUrl: 'http://127.0.0.1:8080',
    log: pino({ level: 'silent' }),
  })
  await app.ready()
  return {
    url,
    db,
    ownerUrl,
    owner,
    app,
    ledger,
    networks,
    settings,
    environment: { ...file.environment, DATABASE_URL: url },
    reports: () => networkReports(db, configured),
    async close() {
      await app.close()
      await ledger.drain()
      await drop()
      await file.remove()
    },
  }
}
/** What a process without the worker asks a node of Bitcoin's family, as the user that the guide gives it. */
export async function requireServedWithoutWorker(
  { node, ...world }: Awaited<ReturnType<typeof bitcoinWorld>>,
  asset: 'BTC' | 'LTC',
): Promise<void> {
  // Signing by hand asks for more than a wallet with keys does.
  const section = { ...world.section, rpc_user: node.apiConfig.rpcUser, signing: 'psbt' }
  const service = await startRealService({ ...world, section })
  try {
    const customer = await newCustomer(service)
    const about = { crypto_network: world.network, profile_id: customer.profile_id }
    expect(await customer.call('POST', '/v2/transfer/deposit-addresses', about)).toMatchObject({
      status: 200,
    })
    const asked = { asset, crypto_network: world.network, amount: '1' }
    const quote = { ...asked, destination_address: await world.newAddress() }
    const quoted = await customer.call('POST', '/v2/transfer/fees/crypto-withdrawal', quote)
    expect(quoted).toMatchObject({ status: 200 })
    expect(await service.reports()).toMatchObject([{ reachable: true }])
    await expect(bitcoinRpc(node.apiConfig).batch([['listsinceblock'], ['stop']])).rejects.toThrow(
      'does not let this user or address call all of listsinceblock, stop (403)',
    )
  } finally {
    await service.close()
  }
}
export type RealService = Awaited<ReturnType<typeof startRealService>>

const ROUNDS_MAX = 20

/** Runs a healthy worker until everything has ended, as the successor of a worker that died. */
export async function workToTheEnd(service: RealService, world: World): Promise<void> {
  const { db } = service
  const betweenRounds = async () => {
    await mine(world.mining)
    await hurry(db)
  }
  for (let round = 1; round <= ROUNDS_MAX; round++) {
    await betweenRounds()
    await workOff(service, betweenRounds)
    const { rowCount } = await db.query(`
      select 1 from transfers where status = 'PENDING'
      union all select 1 from orchestrations where status = 'PROCESSING'
      union all select 1 from sweeps where state in ('SIGNED', 'BROADCAST')`)
    if (rowCount === 0) return
  }
  throw new Error(`the worker does not come to an end: ${JSON.stringify(await service.reports())}`)
}

/** Throws if anything is in flight or locked. */
async function requireAtRest({ db }: RealService, world: World): Promise<void> {
  const { rowCount } = await db.query(`
    select 1 from outgoing_transfers where due_at is not null or state <> 'DONE'
    union all select 1 from transfers where status = 'PENDING'
    union all select 1 from sweeps where state in ('SIGNED', 'BROADCAST')`)
  expect(rowCount).toBe(0)
  await world.requireAtRest()
}

/** Throws unless the ledger agrees with the chain to the last unit. */
export async function requireAgreement(service: RealService, world: World): Promise<void> {
  const [report] = await service.reports()
  expect(report).toMatchObject({ crypto_network: world.network, reachable: true, in_flight: {}, waiting: [] })
  expect(report!.custody.some(({ in_custody }) => in_custody !== '0')).toBe(true)
  for (const { asset, difference } of report!.custody) expect([asset, difference]).toEqual([asset, '0'])
  const inFlight = await service.db.query(
    `select 1 from entries where account like 'in_flight:%' group by asset having sum(amount) <> 0`,
  )
  expect(inFlight.rowCount).toBe(0)
  const tokens = new Map([[world.network, (world.section.tokens ?? {}) as Record<string, string>]])
  expect((await verify(service.db, { tokens })).disagreements).toEqual([])
  expect((await verifyAuditChains(service.db)).faults).toEqual([])
}

const LOCKS = `
  select l.locktype, l.mode, a.query
  from pg_locks l join pg_stat_activity a using (pid)
  where a.datname = current_database() and a.pid <> pg_backend_pid()
    and (l.locktype in ('advisory', 'tuple', 'transactionid') or a.state like 'idle in transaction%')`

/** PostgreSQL notices the death of a client with a short delay. */
async function requireNoLocks({ db }: RealService): Promise<void> {
  await vi.waitFor(async () => expect((await db.query(LOCKS)).rows).toEqual([]), {
    timeout: 5_000,
    interval: 5,
  })
}

// ---------------------------------------------------------------------------------------------- workers that die

/** Number of started workers that wait for their turn, so that a turn spends no time on a start. */
const WAITING = 2

/** Starts workers that die. A bundled worker takes 0.2 s of CPU to start, instead of 2 s. */
async function killedWorkers(service: RealService, world: World) {
  const folder = await mkdtemp(join(tmpdir(), 'bursar-killed-'))
  const program = join(folder, 'killed-worker.mjs')
  await bundle(new URL('killed-worker.ts', import.meta.url), program)
  const start = () => {
    const child = spawn(process.execPath, [program], {
      env: {
        ...ENVIRONMENT,
        TEST_EVERY_STEP: EVERY_STEP ? '1' : undefined,
        ...service.environment,
        MINING: JSON.stringify(world.mining),
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    return { child, ended: once(child, 'exit'), output: text(child.stdout), errors: text(child.stderr) }
  }
  const waiting = Array.from({ length: WAITING }, start)
  return {
    /**
     * Lets a worker run until it dies at a place, or at a step with this text. Returns the place, or undefined if the
     * worker reached its end.
     */
    async run(place: number | string): Promise<string | undefined> {
      const { child, ended, output, errors } = waiting.shift()!
      waiting.push(start())
      child.stdin.write(`${place}\n`)
      const [code, signal] = (await ended) as [number | null, string | null]
      const [said, failure] = await Promise.all([output, errors])
      if (signal === 'SIGKILL') return /^DIES (.+)$/m.exec(said)![1]!
      expect({ place, code, failure }).toEqual({ place, code: 0, failure: '' })
      expect(said).toMatch(/^ENDED \d+$/m)
      return undefined
    },
    async stop() {
      for (const { child, ended } of waiting) {
        child.kill('SIGKILL')
        await ended
      }
      await rm(folder, { recursive: true, force: true })
    },
  }
}

// ---------------------------------------------------------------------------------------------- the workers' turns

/** The deposits and payments of each turn. Amounts are decimal strings. */
export interface Turn {
  /** Deposited to an address of the next customer, who withdraws some of it in the next turn. */
  deposit: { asset: string; amount: string }
  withdrawal: { asset: string; amount: string }
  /** Deposited to the address of a rule, which pays it out. */
  rule: { asset: string; amount: string }
}

interface Prepared {
  customer: TestCustomer
  address: string
}

/** Creates a customer with an address, and sends a deposit to the address. */
export async function prepare(
  service: RealService,
  world: World,
  deposit: Turn['deposit'],
): Promise<Prepared> {
  const customer = await newCustomer(service)
  const made = await customer.call<{ address: string }>('POST', '/v2/transfer/deposit-addresses', {
    profile_id: customer.profile_id,
    crypto_network: world.network,
  })
  const { address } = made.body
  const { hash, index } = await world.pay(address, deposit.asset, deposit.amount)
  expected.set(customer, [{ ...deposit, hash, index }])
  return { customer, address }
}

/** The payments made to each customer's addresses. */
const expected = new Map<TestCustomer, { asset: string; amount: string; hash: string; index: string }[]>()

/** Requests a withdrawal, and deposits to a rule that pays out. Returns both destinations. */
async function order(world: World, { customer }: Prepared, turn: Turn) {
  const { profile_id } = customer
  const crypto_network = world.network
  const [destination_address, ruleDestination] = [await world.newAddress(), await world.newAddress()]
  const rule = await customer.call<{ rule: { source: { crypto: { address: string } } } }>(
    'POST',
    '/v2/orchestration/rules',
    {
      ref_id: 'rule',
      profile_id,
      source_asset: turn.rule.asset,
      destination_asset: turn.rule.asset,
      source: { crypto: { network: crypto_network } },
      destination: { crypto: { network: crypto_network, address: ruleDestination } },
    },
  )
  const { hash, index } = await world.pay(
    rule.body.rule.source.crypto.address,
    turn.rule.asset,
    turn.rule.amount,
  )
  expected.get(customer)!.push({ ...turn.rule, hash, index })
  const { status, body } = await customer.call('POST', '/v2/transfer/crypto-withdrawals', {
    profile_id,
    ...turn.withdrawal,
    crypto_network,
    destination_address,
  })
  expect({ status, body }).toMatchObject({ status: 200 })
  return { destination_address, ruleDestination }
}

/** Throws unless each ordered payment is on the chain once, and each deposit is credited once. */
async function requireDone(
  world: World,
  { customer }: Prepared,
  { destination_address, ruleDestination }: Awaited<ReturnType<typeof order>>,
  turn: Turn,
): Promise<void> {
  const { body } = await customer.call<{ items: Transfer[] }>('GET', '/v2/transfer/transfers')
  const outcome = ({ asset, amount, crypto_tx_hash, crypto_tx_index }: Transfer) => ({
    asset,
    amount,
    hash: crypto_tx_hash,
    index: crypto_tx_index,
  })
  const ofType = (type: Transfer['type']) => body.items.filter((transfer) => transfer.type === type)

  expect(ofType('CRYPTO_DEPOSIT').map(outcome).sort(byHash)).toEqual(
    [...expected.get(customer)!].sort(byHash),
  )
  const withdrawals = ofType('CRYPTO_WITHDRAWAL')
  expect(withdrawals.map(({ status }) => status)).toEqual(['COMPLETED', 'COMPLETED'])
  for (const [address, { asset, amount }] of [
    [destination_address, turn.withdrawal],
    [ruleDestination, turn.rule],
  ] as const) {
    const withdrawal = withdrawals.find((one) => one.destination_address === address)!
    // A rule pays out the whole deposit; the fee is part of it.
    expect([withdrawal.amount, withdrawal.total]).toContain(amount)
    const { asset: _, ...paid } = outcome(withdrawal)
    expect([asset, await world.received(address, asset)]).toEqual([asset, [paid]])
  }
  const { body: all } = await customer.call('GET', '/v2/orchestration/orchestrations')
  expect(all).toMatchObject({ items: [{ status: 'COMPLETED' }] })
}

const byHash = (one: { hash?: string | undefined }, other: { hash?: string | undefined }) =>
  one.hash! < other.hash! ? -1 : 1

const PLACES_MAX = 500
/** How far apart the places of a run are, from a random first one: each turn takes a second. A treasury transfer has few. */
const PLACES_EVERY = { TURN: EVERY_STEP ? 1 : 16, TREASURY: EVERY_STEP ? 1 : 8 }
/** The whole ledger is compared with the chain after this many deaths. A harmful death is then among the last ones. */
const AGREEMENT_EVERY = 10

/** `dieAtEachPlace` with separate customers for each turn, who deposit and withdraw. */
export async function dieEverywhere(
  service: RealService,
  world: World,
  turn: Turn,
  steps: string[],
): Promise<string[]> {
  let now = await prepare(service, world, turn.deposit)
  await workToTheEnd(service, world)
  return dieAtEachPlace(
    service,
    world,
    PLACES_EVERY.TURN,
    async () => {
      const [its, next] = [now, await prepare(service, world, turn.deposit)]
      const orders = await order(world, its, turn)
      now = next
      return () => requireDone(world, its, orders, turn)
    },
    steps,
  )
}

/** `dieAtEachPlace` with a treasury transfer for each turn. The transfer is ordered again after it ended. */
export function dieInTreasury(
  service: RealService,
  world: World,
  { asset, amount }: { asset: string; amount: string },
): Promise<string[]> {
  const { db, networks } = service
  const adapter = networks.get(world.network)!
  const macs = new RowMacs(MASTER_KEYS)
  return dieAtEachPlace(service, world, PLACES_EVERY.TREASURY, async () => {
    const destination_address = await world.newAddress()
    const send = { network: world.network, asset, amount, destination_address, reference: randomUUID() }
    const { transfer } = await orderTreasurySend({ db, macs, origin: originOfLoop('test') }, adapter, send)
    return async () => {
      const again = await orderTreasurySend({ db, macs, origin: originOfLoop('test') }, adapter, send)
      expect(again).toMatchObject({ is_new: false, transfer: { id: transfer.id, status: 'COMPLETED' } })
      const arrived = await world.received(destination_address, asset)
      expect(arrived).toMatchObject([{ hash: again.transfer.crypto_tx_hash, amount }])
    }
  })
}

/**
 * In each turn a worker dies at the next place, a healthy worker does the rest, and the result is compared with the
 * chain. `begin` orders the payments of a turn, and returns the assertion for its end. The last turn is the one whose
 * worker does not die. Returns the places. `steps` are texts of steps at which a worker must have died, besides the places
 * that the run takes.
 */
async function dieAtEachPlace(
  service: RealService,
  world: World,
  every: number,
  begin: () => Promise<() => Promise<void>>,
  steps: string[] = [],
): Promise<string[]> {
  const workers = await killedWorkers(service, world)
  const places: string[] = []
  const first = randomInt(every)
  let isOver = false
  try {
    for (let turns = 1; turns <= PLACES_MAX; turns++) {
      const missing = isOver ? steps.find((words) => !places.join('\n').includes(words)) : undefined
      if (isOver && missing === undefined) return places
      const at = missing ?? first + places.length * every
      const requireIts = await begin()
      const place = await workers.run(at)
      try {
        await requireNoLocks(service)
        if (place !== undefined) await workToTheEnd(service, world)
        await requireIts()
        await requireAtRest(service, world)
        if (turns % AGREEMENT_EVERY === 0 || place === undefined) await requireAgreement(service, world)
      } catch (error) {
        throw new Error(`after a worker that died at ${at}: ${place}`, { cause: error })
      }
      if (place === undefined && isOver) throw new Error(`no worker comes to ${at}`)
      if (place === undefined) isOver = true
      else places.push(place)
    }
    throw new Error('the worker has more places to die at than is believed')
  } finally {
    await workers.stop()
  }
}
