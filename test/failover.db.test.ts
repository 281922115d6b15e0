/*
 * One node of a cluster is gone while customers pay. `npm run test:citus` runs it. The node refuses this
 * test's database alone, so that other tests go on.
 */
import { setTimeout as pause } from 'node:timers/promises'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RecordFailure } from '../src/db/each-alone.ts'
import { notSerializable, openDatabase, transaction, type Database } from '../src/db/database.ts'
import { momentAt, PLATFORM_ID, readClock } from '../src/db/ids.ts'
import { Cluster } from '../src/db/nodes.ts'
import { forCustomer, partOf, partsOf } from '../src/db/parts.ts'
import { ServerCheck } from '../src/db/server-check.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { RowMacs } from '../src/audit/sealed-rows.ts'
import { simulatedNetworks } from '../src/networks/simulated/adapter.ts'
import {
  freeze,
  freezesOfSigning,
  recordWaitingFreezes,
  selectFreezesOf,
  unfreeze,
} from '../src/money/records/freezes.ts'
import { Policies } from '../src/governance/policy/policy.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { generateStatements } from '../src/resources/statements/generate-statements.ts'
import { lastPeriod } from '../src/resources/statements/period.ts'
import { setRewardRate } from '../src/resources/statements/reward-rates.ts'
import { verify } from '../src/money/verify/verify.ts'
import { CLUSTER, onNode, refuseDatabase, takeDatabaseAgain } from './cluster.ts'
import { openMovement } from './history.ts'
import { startSilentProxy } from './silent-proxy.ts'
import {
  BASE_URL,
  cloneDatabase,
  credit,
  fetchToken,
  MASTER_KEYS,
  newCustomer,
  ROW_MACS,
  TEST_ORIGIN,
  testSettings,
  type TestCustomer,
  type TestDatabase,
  type TestService,
} from './support.ts'
import { governBy } from '../src/governance/policy/judge-payments.ts'
import { buildApp } from '../src/program/build-app.ts'

const onCluster = test.skipIf(CLUSTER.length === 0)

let database: TestDatabase
/** The way of the service to each worker node. The coordinator has its own. */
const proxies = new Map<string, Awaited<ReturnType<typeof startSilentProxy>>>()
let service: TestService
const closing: (() => Promise<unknown>)[] = []

beforeAll(async () => {
  if (CLUSTER.length === 0) return
  database = await cloneDatabase()
  const { db, url } = database
  const cluster = await Cluster.open(db, () => undefined)
  for (const address of CLUSTER.slice(1)) proxies.set(new URL(address).host, await startSilentProxy(address))
  const pools: Database[] = []
  const checks: ServerCheck[] = []
  cluster.connect(db, (node) => {
    const address = new URL(url)
    address.host = proxies.get(node)!.host
    const check = new ServerCheck(address.href, { silentMs: 2_000, onChange: () => undefined })
    checks.push(check)
    const pool = openDatabase(address.href, { max: 6, onError: () => undefined, socket: check.socket })
    pools.push(pool)
    return pool
  })
  const settings = testSettings()
  const networks = simulatedNetworks(db, { confirmationMs: 0, holdMs: 0 })
  const policies = new Policies(MASTER_KEYS, { sandbox: true })
  const ledger = new Ledger(db, { macs: new RowMacs(MASTER_KEYS), govern: governBy(policies) })
  const app = await buildApp({
    ...{ db, ledger, networks, settings },
    masterKeys: MASTER_KEYS,
    baseUrl: BASE_URL,
    log: pino({ level: 'silent' }),
  })
  await app.ready()
  service = {
    ...database,
    app,
    ledger,
    macs: ledger.macs!,
    networks,
    settings,
    close: () => Promise.resolve(),
  }
  closing.push(
    () => app.close(),
    () => ledger.drain(),
    () => cluster.close(),
    () => Promise.all(pools.map((pool) => pool.end())),
    () => Promise.all(checks.map((check) => check.stop())),
    () => Promise.all([...proxies.values()].map((proxy) => proxy.close())),
    () => database.drop(),
  )
})
afterAll(async () => {
  for (const close of closing) await close()
})

/** How many customers are isolated or moved, and how many requests pay at once. */
const CHANGES = 3
const PAYERS = 8

let count = 0

/** One withdrawal of a customer: its status and its ref_id. */
async function withdraw(by: TestCustomer): Promise<{ status: number; ref_id: string }> {
  const ref_id = `failover-${++count}`
  const { status } = await by.call('POST', '/v2/transfer/crypto-withdrawals', {
    profile_id: by.profile_id,
    amount: '1',
    asset: 'ETH',
    crypto_network: 'ETHEREUM',
    destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
    ref_id,
  })
  return { status, ref_id }
}

const addressOf = (node: string) => CLUSTER.find((one) => new URL(one).host === node)!
const nameOfDatabase = () => new URL(database.url).pathname.slice(1)

const stopNode = (node: string) => refuseDatabase(node, database.url)
const startNode = (node: string) => takeDatabaseAgain(node, database.url)

/** How a node is gone for the service: it refuses all connections, or nothing comes back from it any more. */
const WAYS = {
  refuses: { stop: stopNode, start: startNode },
  'is silent': {
    stop: (node: string) => proxies.get(node)!.fallSilent(),
    start: (node: string) => proxies.get(node)!.speak(),
  },
}

test.skipIf(CLUSTER.length === 0).each(['refuses', 'is silent'] as const)(
  'while a node %s, its own customers get 503, and all others pay as before',
  async (way) => {
    // Customers of two nodes.
    const found = new Map<string, TestCustomer>()
    while (found.size < 2) {
      const customer = await newCustomer(service)
      found.set(nodeOf(customer.customer_id), customer)
    }
    const [[gone, itsOwn], [, other]] = [...found] as [[string, TestCustomer], [string, TestCustomer]]
    const acknowledged: { by: TestCustomer; ref_id: string }[] = []
    for (const by of [itsOwn, other]) {
      const funded = await by.call('POST', `/v2/sandbox/profiles/${by.profile_id}/deposit`, {
        asset: 'ETH',
        amount: '1000',
      })
      expect(funded.status).toBe(200)
    }
    const settle = (name: string) => {
      const { db } = partsOf(database.db).find((node) => node.name === name)!
      return settleWithdrawals(db, service.networks)
    }
    const expectSettled = async (withdrawals: { by: TestCustomer; ref_id: string }[]) => {
      for (const { by, ref_id } of withdrawals)
        await expect
          .poll(
            async () => {
              await settle(nodeOf(by.customer_id))
              const path = `/v2/transfer/transfers?ref_ids=${ref_id}`
              return (await by.call<{ items: { status: string }[] }>('GET', path)).body.items
            },
            { timeout: 30_000 },
          )
          .toMatchObject([{ status: 'COMPLETED' }])
    }
    const statusOf = async (by: TestCustomer) => {
      const { status, ref_id } = await withdraw(by)
      if (status === 200) acknowledged.push({ by, ref_id })
      return status
    }
    const underLoad = { isOver: false }
    const load = Promise.all(
      [itsOwn, other].map(async (by) => {
        // A refusal may need no input or output, and then nothing else would run.
        while (!underLoad.isOver) if ((await statusOf(by)) !== 200) await pause(10)
      }),
    )
    await WAYS[way].stop(gone)
    for (let one = 0; one < 5; one++) {
      expect(await statusOf(itsOwn)).toBe(503)
      expect(await statusOf(other)).toBe(200)
    }
    // The loops of the node that is gone fail, and the others settle what their customers are paid.
    await expect(settle(gone)).rejects.toThrow()
    await expectSettled([acknowledged.findLast(({ by }) => by === other)!])
    await fetchToken(service.app, other)
    await expect(fetchToken(service.app, itsOwn)).rejects.toThrow('no token')
    expect((await service.app.inject('/health/ready')).statusCode).toBe(200)
    await WAYS[way].start(gone)
    await expect.poll(() => statusOf(itsOwn), { timeout: 20_000 }).toBe(200)
    underLoad.isOver = true
    await load
    // What waited is caught up.
    await expectSettled(acknowledged.filter(({ by }) => by === itsOwn))
    // Nothing that was acknowledged is lost, and what was refused moved nothing twice.
    for (const { by, ref_id } of acknowledged) {
      const { body } = await by.call<{ items: unknown[] }>('GET', `/v2/transfer/transfers?ref_ids=${ref_id}`)
      expect(body.items).toHaveLength(1)
    }
    expect((await verify(database.db)).disagreements).toEqual([])
  },
  120_000,
)

onCluster(
  'while the node of the audit log of the platform is gone, everything and the customers of the others can be frozen',
  async () => {
    const gone = nodeOf(PLATFORM_ID)
    const found = new Map<string, TestCustomer>()
    while (found.size < 2) {
      const customer = await newCustomer(service)
      found.set(nodeOf(customer.customer_id), customer)
    }
    const itsOwn = found.get(gone)!
    const [, other] = [...found].find(([node]) => node !== gone)!
    const { db } = service
    const customer = ({ customer_id }: TestCustomer) => ({ kind: 'CUSTOMER', customer_id }) as const
    await credit(service.ledger, other, 'ETH', '10')
    await stopNode(gone)
    try {
      await expect(freeze(db, TEST_ORIGIN, customer(itsOwn), 'OPERATOR', 'a leak')).rejects.toThrow()
      await freeze(db, TEST_ORIGIN, customer(other), 'OPERATOR', 'a leak')
      expect((await withdraw(other)).status).toBe(403)
      expect(await unfreeze(db, ROW_MACS, TEST_ORIGIN, customer(other))).toBe(1)
      expect((await withdraw(other)).status).toBe(200)
      await freeze(db, TEST_ORIGIN, { kind: 'ALL' }, 'OPERATOR', 'a leak')
      await freeze(db, TEST_ORIGIN, { kind: 'ALL' }, 'OPERATOR', 'again')
      expect(await selectFreezesOf(db, { kind: 'ALL' })).toMatchObject([{ detail: 'a leak' }])
      const signing = await transaction(db, (tx) =>
        freezesOfSigning(tx, { network: 'ETHEREUM', customer_id: other.customer_id }),
      )
      expect(signing).toMatchObject([{ kind: 'ALL' }])
      await expect(recordWaitingFreezes(db)).rejects.toThrow()
    } finally {
      await startNode(gone)
    }
    const recorded = async () => {
      const { rows } = await db.query<{ action: string; actor_id: string }>(
        `select action, actor_id from audit_log where customer_id = $1 and action like 'platform.%' order by id`,
        [PLATFORM_ID],
      )
      return rows
    }
    expect(await recorded()).toEqual([])
    expect(await recordWaitingFreezes(db)).toBe(1)
    expect(await recordWaitingFreezes(db)).toBe(0)
    const froze = { action: 'platform.freeze', actor_id: TEST_ORIGIN.actor.id }
    expect(await recorded()).toEqual([froze])
    expect(await unfreeze(db, ROW_MACS, TEST_ORIGIN, { kind: 'ALL' })).toBe(1)
    expect(await recorded()).toEqual([froze, { ...froze, action: 'platform.unfreeze' }])
  },
  120_000,
)

test.skipIf(CLUSTER.length === 0).each(['the node of the customer', 'the coordinator'])(
  'statements wait for a payment that is under way through %s',
  async (way) => {
    const { customer_id, profile_id } = await newCustomer(service)
    const period = lastPeriod(await transaction(database.db, readClock).then(({ text }) => text))
    await setRewardRate(database.db, period.start.slice(0, 10), '1', TEST_ORIGIN)
    const at = momentAt(`${period.name}-15T12:00:00.000000Z`)
    const minor = 1_000_000n
    const [opened, isOpen] = signal()
    const [ended, end] = signal()
    const db = way === 'the coordinator' ? database.db : forCustomer(database.db, customer_id)
    const payment = transaction(db, async (tx) => {
      const post = await openMovement(tx, customer_id, at, { to: profile_id, minor })
      isOpen()
      await ended
      await post()
    })
    await opened
    const generating = generateStatements(database.db, period)
    expect(await Promise.race([generating, pause(1_000, 'waits')])).toBe('waits')
    end()
    await payment
    expect(await generating).toMatchObject([{ customer_id }])
  },
)

function signal(): [Promise<void>, () => void] {
  let give = () => {}
  return [new Promise((resolve) => (give = resolve)), give]
}

function causesOf(error: unknown): unknown[] {
  if (error instanceof AggregateError) return error.errors.flatMap(causesOf)
  return error instanceof RecordFailure ? causesOf(error.cause) : [error]
}

/** The name of the node that has the customer. */
const nodeOf = (customerId: string) => partOf(database.db, customerId).name

/** The statement that moves the shard of a customer to the other worker. */
function moveOf(customerId: string): string {
  const from = nodeOf(customerId)
  const to = new URL(CLUSTER.slice(1).find((address) => new URL(address).host !== from)!)
  const { hostname, port } = new URL(addressOf(from))
  return `select citus_move_shard_placement(get_shard_id_for_distribution_column('customers', '${customerId}'),
    '${hostname}', ${port}, '${to.hostname}', ${to.port}, 'block_writes')`
}
const isolationOf = (customerId: string) =>
  `select isolate_tenant_to_new_shard('customers', '${customerId}', 'CASCADE', shard_transfer_mode => 'block_writes')`

test.skipIf(CLUSTER.length === 0).each([
  ['gets a shard of its own', isolationOf],
  ['is moved to another node', moveOf],
])(
  'a customer %s while it pays, and no payment is lost or made by halves',
  async (_, changeOf) => {
    const superuser = new URL(CLUSTER[0]!)
    superuser.pathname = `/${nameOfDatabase()}`
    const failures: unknown[] = []
    for (let change = 0; change < CHANGES; change++) {
      const by = await newCustomer(service)
      await credit(service.ledger, by, 'ETH', '1000')
      const acknowledged: string[] = []
      // A payment that meets the split is made again by the ledger: nobody sees it.
      const refused: number[] = []
      const underLoad = { isOver: false }
      const load = Promise.all(
        Array.from({ length: PAYERS }, async () => {
          while (!underLoad.isOver) {
            const { status, ref_id } = await withdraw(by)
            if (status === 200) acknowledged.push(ref_id)
            else refused.push(status)
          }
        }),
      )
      const settling = (async () => {
        while (!underLoad.isOver)
          for (const { db } of partsOf(database.db))
            await settleWithdrawals(db, service.networks).catch((error: unknown) => void failures.push(error))
      })()
      await expect.poll(() => acknowledged.length).toBeGreaterThan(PAYERS)
      await onNode(superuser.href, [changeOf(by.customer_id)])
      const then = acknowledged.length
      await expect.poll(() => acknowledged.length, { timeout: 20_000 }).toBeGreaterThan(then + PAYERS)
      underLoad.isOver = true
      await Promise.all([load, settling])
      expect(refused).toEqual([])
      // What a round of settlement could not do, the next one does.
      for (const failure of failures.flatMap(causesOf)) expect(failure).toSatisfy(notSerializable)
      const { disagreements } = await verify(database.db)
      expect(disagreements).toEqual([])
      const { rows } = await database.db.query<{ made: number }>(
        'select count(*)::int as made from transfers where customer_id = $1 and ref_id = any ($2)',
        [by.customer_id, acknowledged],
      )
      expect(rows[0]!.made).toBe(acknowledged.length)
    }
  },
  600_000,
)
