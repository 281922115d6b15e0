import { originOfLoop } from '../src/contract/actor.ts'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { pino } from 'pino'
import { createCustomer } from '../src/access/customers/create-customer.ts'
import { usualMs } from '../src/db/changes.ts'
import { openDatabase, transaction, type Database } from '../src/db/database.ts'
import { momentAt } from '../src/db/ids.ts'
import { Deliverer } from '../src/deliveries/deliver.ts'
import type { MasterKeys } from '../src/keys/master-keys.ts'
import { onPlatform, onProfile } from '../src/money/ledger/entries.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { WebhookSecrets } from '../src/money/records/webhook-secrets.ts'
import { readSettings } from '../src/settings.ts'
import { insertWebhook } from '../src/resources/webhooks/create-webhook.ts'
import { httpLoad, type Load } from './http-load.ts'

/** Measures deliveries of events: their cost for withdrawals, deliveries a second, and the time from commit to delivery. */

const CLIENTS = 32
/** The highest rate of an endpoint, in deliveries a second. */
const RATE_MAX = 100
const CUSTOMERS = 10
const ENDPOINTS_EACH = 10
/** Events of each customer before the deliveries to a hundred endpoints are counted. */
const BACKLOG = 2_000
/** Events a second while the time from commit to delivery is measured. */
const EVENTS_PER_SECOND = 100
/** The pause before the next figure, in which work under way ends. */
const SETTLE_MS = 1_000

export interface DeliveryFigure {
  what: string
  'per second': number
  times?: number | undefined
  'p50 ms'?: number | undefined
  'p99 ms'?: number | undefined
}

export interface DeliveryBench {
  api: Omit<Load, 'clients' | 'seconds' | 'prefix'> & { customerId: string }
  /** The database for the service's role: a deliverer must see the transactions of the service. */
  databaseUrl: string
  masterKeys: MasterKeys
  rounds: number
  seconds: number
}

/** Measures with a deliverer and receivers in this process, beside an API process without a worker. */
export async function measureDeliveries(bench: DeliveryBench): Promise<DeliveryFigure[]> {
  const db = openDatabase(bench.databaseUrl, { max: 10, onError: () => undefined })
  const receiver = await openReceiver()
  const secrets = new WebhookSecrets(bench.masterKeys)
  const deliverer = new Deliverer({ db, secrets, settings: readSettings({}), log: pino({ level: 'warn' }) })
  let isStopping = false
  const running = (async () => {
    while (!isStopping) await pause(usualMs(await deliverer.round()))
  })()
  const endpoint = (customerId: string, name: string): Promise<Endpoint> =>
    transaction(db, async (tx) => {
      const body = { name, url: receiver.url, event_types: ['*'], rate_limit: RATE_MAX }
      const { webhook } = await insertWebhook(tx, secrets, customerId, body)
      return { customerId, id: webhook.id }
    })
  const remove = (endpoints: Endpoint[]) =>
    Promise.all(
      endpoints.map(({ customerId, id }) =>
        db.query('delete from webhooks where customer_id = $1 and id = $2', [customerId, id]),
      ),
    )
  const means = { db, receiver, endpoint, remove, ...bench }
  try {
    return [...(await measureWithdrawals(means)), ...(await measureRates(means))]
  } finally {
    isStopping = true
    await running
    await deliverer.stop(SETTLE_MS)
    await receiver.close()
    await db.end()
  }
}

interface Endpoint {
  customerId: string
  id: string
}

interface Means extends DeliveryBench {
  db: Database
  receiver: Receiver
  endpoint: (customerId: string, name: string) => Promise<Endpoint>
  remove: (endpoints: Endpoint[]) => Promise<unknown>
}

/** Measures withdrawals a second over HTTP, with no endpoint and with one, in turns. */
async function measureWithdrawals({
  api,
  rounds,
  seconds,
  endpoint,
  remove,
}: Means): Promise<DeliveryFigure[]> {
  const seen = { none: [] as number[], one: [] as number[] }
  const measure = async (which: keyof typeof seen, prefix: string) => {
    const { perSecond } = await httpLoad({ ...api, clients: CLIENTS, seconds, prefix })
    seen[which].push(perSecond)
    await pause(SETTLE_MS)
  }
  await httpLoad({ ...api, clients: CLIENTS, seconds, prefix: 'warm' })
  for (let round = 1; round <= rounds; round++) {
    await measure('none', `none${round}`)
    const made = await endpoint(api.customerId, `Bench ${round}`)
    await measure('one', `one${round}`)
    await remove([made])
  }
  const [none, one] = [median(seen.none), median(seen.one)]
  return [
    { what: 'withdrawals, nobody subscribed', 'per second': Math.round(none), times: 1 },
    {
      what: 'withdrawals, one endpoint',
      'per second': Math.round(one),
      times: Number((one / none).toFixed(2)),
    },
  ]
}

/** Measures deliveries a second of a backlog, to one endpoint and to a hundred, and the time from commit to delivery. */
async function measureRates({ db, receiver, seconds, endpoint, remove }: Means): Promise<DeliveryFigure[]> {
  const ledger = new Ledger(db)
  const customers = await Promise.all(
    Array.from({ length: CUSTOMERS }, async (_, n) => await createCustomer(db, `Bench ${n}`)),
  )
  const makeEvents = (owner: Owner, count: number) =>
    Promise.all(Array.from({ length: count }, () => ledger.submit(owner.customer_id, depositTo(owner))))
  const rate = async (endpoints: Endpoint[]) => {
    await pause(SETTLE_MS)
    receiver.take()
    await pause(seconds * 1000)
    const count = receiver.take().length
    await remove(endpoints)
    return Math.round(count / seconds)
  }

  const [first] = customers
  const one = [await endpoint(first!.customer_id, 'One')]
  await makeEvents(first!, (seconds + 3) * RATE_MAX)
  const toOne = await rate(one)

  const hundred = await Promise.all(
    customers.flatMap(({ customer_id }) =>
      Array.from({ length: ENDPOINTS_EACH }, (_, n) => endpoint(customer_id, `Hundred ${n}`)),
    ),
  )
  for (const owner of customers) await makeEvents(owner, BACKLOG)
  const toHundred = await rate(hundred)

  const healthy = [await endpoint(first!.customer_id, 'Healthy')]
  await pause(SETTLE_MS)
  receiver.take()
  const start = performance.now()
  for (let n = 0; n < seconds * EVENTS_PER_SECOND; n++) {
    await pause(Math.max(0, start + (n * 1000) / EVENTS_PER_SECOND - performance.now()))
    void ledger.submit(first!.customer_id, depositTo(first!))
  }
  await ledger.drain()
  await pause(2 * SETTLE_MS)
  const waits = receiver.take().sort((a, b) => a - b)
  await remove(healthy)
  const at = (share: number) => Math.round(waits[Math.floor(waits.length * share)] ?? NaN)
  return [
    { what: 'deliveries of a backlog to one endpoint', 'per second': toOne },
    { what: 'deliveries of a backlog to 100 endpoints', 'per second': toHundred },
    {
      what: 'from commit to delivery',
      'per second': Math.round(waits.length / seconds),
      'p50 ms': at(0.5),
      'p99 ms': at(0.99),
    },
  ]
}

interface Owner {
  customer_id: string
  profile_id: string
}

/** A deposit, which makes one event. */
const depositTo = ({ customer_id, profile_id }: Owner): Parameters<Ledger['submit']>[1] => ({
  origin: originOfLoop('bench'),
  balances: [{ profile_id, asset: 'USDP' }],
  decide: ({ now, newId }) => ({
    transfer: {
      id: newId(),
      customer_id,
      profile_id,
      type: 'WIRE_DEPOSIT',
      direction: 'CREDIT',
      status: 'COMPLETED',
      asset: 'USDP',
      amount: '1',
      fee: '0',
      total: '1',
      created_at: now.text,
      updated_at: now.text,
    },
    entries: [onPlatform('bank', 'USDP', -(10n ** 18n)), onProfile(profile_id, 'USDP', 10n ** 18n)],
  }),
})

interface Receiver {
  url: string
  /** Returns the milliseconds from event to delivery of each delivery since the last call. */
  take(): number[]
  close(): Promise<void>
}

/** Opens an HTTP server that answers each delivery at once. The database has the clock of this machine. */
export async function openReceiver(): Promise<Receiver> {
  let waits: number[] = []
  const server = createServer((request, reply) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      reply.statusCode = 204
      reply.end()
      const { time } = JSON.parse(Buffer.concat(parts).toString()) as { time: string }
      waits.push(performance.timeOrigin + performance.now() - momentAt(time).micros / 1000)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    take() {
      const taken = waits
      waits = []
      return taken
    },
    async close() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function median(values: number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!
}
