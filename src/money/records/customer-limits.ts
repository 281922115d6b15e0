import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { Origin } from '../../contract/actor.ts'
import { problem } from '../../contract/problems.ts'
import type { Database, Queryable, Transaction } from '../../db/database.ts'
import { nodesOf, type Nodes } from '../../db/nodes.ts'
import { RefreshedOfNodes } from '../../db/refreshed-of-nodes.ts'
import { audited, recordNow } from '../../audit/audited.ts'

/** The limits of a customer's requests. Each process counts them for itself, and the settings have their defaults. */
const REQUEST_LIMITS = {
  client_requests_per_second: 'requests a second of each API client, in each process',
  requests_per_second: 'requests a second of all clients together, in each process',
  changes_per_day: 'requests that are not reads, in 24 hours, in each process',
} as const
export type RequestLimit = keyof typeof REQUEST_LIMITS

/**
 * The most records of a customer, deleted ones included, of the kinds that stay for ever or that cost work again and again. The
 * defaults stop a runaway client long before it fills a disk (a million profiles with their indexes take 0.3 GB).
 */
export const RECORD_LIMITS = {
  profiles: { table: 'profiles', most: 1_000_000 },
  identities: { table: 'identities', most: 1_000_000 },
  accounts: { table: 'accounts', most: 1_000_000 },
  deposit_addresses: { table: 'deposit_addresses', most: 1_000_000 },
  destination_addresses: { table: 'crypto_destination_addresses', most: 10_000 },
  fiat_accounts: { table: 'fiat_accounts', most: 1_000_000 },
  fiat_deposit_instructions: { table: 'fiat_deposit_instructions', most: 1_000_000 },
  orchestration_rules: { table: 'orchestration_rules', most: 1_000_000 },
  policy_versions: { table: 'policies', most: 10_000 },
  webhooks: { table: 'webhooks', most: 100 },
} as const
export type RecordLimit = keyof typeof RECORD_LIMITS

export type CustomerLimit = RequestLimit | RecordLimit
export const CUSTOMER_LIMITS = [
  ...Object.keys(REQUEST_LIMITS),
  ...Object.keys(RECORD_LIMITS),
] as readonly CustomerLimit[]
const isRecordLimit = (name: CustomerLimit): name is RecordLimit => name in RECORD_LIMITS

/** The defaults of the limits of requests, from the settings. 0: no limit. */
export type RequestDefaults = Record<RequestLimit, number>

export const requestDefaults = (settings: {
  rateLimitPerSecond: number
  customerRateLimitPerSecond: number
  customerChangesPerDay: number
}): RequestDefaults => ({
  client_requests_per_second: settings.rateLimitPerSecond,
  requests_per_second: settings.customerRateLimitPerSecond,
  changes_per_day: settings.customerChangesPerDay,
})

/** How often each process reads the limits that operators have set. */
const REFRESH_MS = 2_000
const COUNTS_MAX = 10_000
/** How long a count is used while there is room, and how long a full limit stays full without another count. */
const COUNTED_MS = 60_000
const FULL_MS = 1_000
/** Before it counts again, a process may make a sixteenth of the records that are left, but at most a thousandth of the limit. */
const SHARE_OF_ROOM = 16
const SHARE_OF_LIMIT = 1_000

/** The records that this process may make before it counts again. */
interface Allowance {
  left: number
  most: number
  isFull: boolean
  /** By `performance.now()`. */
  until: number
}

/**
 * The limits of each customer (API behaviour, Limits): what operators have set, else the defaults. The limits of requests cost no
 * query. The limits of records take counts of the database, which are rare. So each process may exceed such a limit by a
 * thousandth of it, and by the requests that are under way at once.
 */
export class CustomerLimits {
  #defaults: RequestDefaults
  #onRefusal: (limit: CustomerLimit) => void
  /** What operators have set, by customer. */
  #set: RefreshedOfNodes<LimitsSet>
  #allowances = new LRUCache<string, Allowance>({ max: COUNTS_MAX })

  private constructor(
    nodes: Nodes,
    log: Logger,
    defaults: RequestDefaults,
    onRefusal: (limit: CustomerLimit) => void,
  ) {
    this.#set = new RefreshedOfNodes<LimitsSet>(
      nodes,
      new Map(),
      ({ hints }) => readLimits(hints),
      (error) =>
        log.warn({ err: error }, 'the limits of customers cannot be read; the last ones stay in use'),
    )
    this.#defaults = defaults
    this.#onRefusal = onRefusal
  }

  /**
   * Reads the limits that operators have set, and again every two seconds until `stop`. While they cannot be read, the last ones
   * hold, or at first the defaults: a database that answers in part must not stop the requests that it can serve.
   */
  static async start(
    nodes: Database | Nodes,
    log: Logger,
    defaults: RequestDefaults,
    onRefusal: (limit: CustomerLimit) => void = () => undefined,
  ): Promise<CustomerLimits> {
    const limits = new CustomerLimits(nodesOf(nodes), log, defaults, onRefusal)
    await Promise.all([...limits.#set.parts.values()].map((part) => part.again()))
    limits.#set.follow(REFRESH_MS)
    return limits
  }

  /** Returns a limit of a customer; 0 is no limit. */
  of(customerId: string, name: CustomerLimit): number {
    return this.#set.of(customerId).value.get(customerId)?.get(name) ?? defaultOf(name, this.#defaults)
  }

  /** Notes a refused request, for metrics. */
  refused(name: CustomerLimit): void {
    this.#onRefusal(name)
  }

  /** Requires room for another record. Throws bad-request at the limit. Call it in the transaction of the insertion. */
  async requireRoom(tx: Transaction, customerId: string, name: RecordLimit): Promise<void> {
    const most = this.of(customerId, name)
    if (most === 0) return
    const key = `${customerId} ${name}`
    const now = performance.now()
    let allowance = this.#allowances.get(key)
    if (allowance?.most !== most || allowance.until <= now || (allowance.left === 0 && !allowance.isFull)) {
      allowance = allowanceOf(most, await countRecords(tx, customerId, name, most))
      this.#allowances.set(key, allowance)
    }
    if (allowance.isFull) {
      this.refused(name)
      throw problem.badRequest(
        `the customer has ${most} ${name.replaceAll('_', ' ')}, the most allowed; the operator can raise the limit ${name}`,
      )
    }
    allowance.left -= 1
  }

  stop(): Promise<void> {
    return this.#set.stop()
  }
}

export const defaultOf = (name: CustomerLimit, defaults: RequestDefaults): number =>
  isRecordLimit(name) ? RECORD_LIMITS[name].most : defaults[name]

/** Returns how many records may be made before the next count. */
function allowanceOf(most: number, count: number): Allowance {
  const room = most - count
  const now = performance.now()
  if (room <= 0) return { left: 0, most, isFull: true, until: now + FULL_MS }
  const left = Math.max(1, Math.floor(Math.min(room / SHARE_OF_ROOM, most / SHARE_OF_LIMIT)))
  return { left, most, isFull: false, until: now + COUNTED_MS }
}

async function countRecords(
  db: Queryable,
  customerId: string,
  name: RecordLimit,
  most: number,
): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    `select count(*)::int as count
     from (select 1 from ${RECORD_LIMITS[name].table} where customer_id = $1 limit $2) counted`,
    [customerId, most],
  )
  return rows[0]!.count
}

interface LimitRow {
  customer_id: string
  name: string
  value: string
}

type LimitsSet = ReadonlyMap<string, ReadonlyMap<string, number>>

async function readLimits(hints: Queryable): Promise<LimitsSet> {
  const { rows } = await hints.query<LimitRow>('select customer_id, name, value from customer_limits')
  const set = new Map<string, Map<string, number>>()
  for (const { customer_id, name, value } of rows) {
    const ofCustomer = set.get(customer_id) ?? new Map<string, number>()
    set.set(customer_id, ofCustomer.set(name, Number(value)))
  }
  return set
}

async function selectLimitsOf(db: Queryable, customerId: string): Promise<Map<string, number>> {
  const { rows } = await db.query<Omit<LimitRow, 'customer_id'>>(
    'select name, value from customer_limits where customer_id = $1',
    [customerId],
  )
  return new Map(rows.map(({ name, value }) => [name, Number(value)]))
}

export const LIMIT_VALUE_MAX = 1_000_000_000

export interface ShownLimit {
  limit: CustomerLimit
  value: number
  is_default: boolean
  /** Of a limit of records: how many the customer has. */
  records?: number
}

export async function shownLimitsOf(
  db: Queryable,
  defaults: RequestDefaults,
  customerId: string,
): Promise<ShownLimit[]> {
  const set = await selectLimitsOf(db, customerId)
  const shown: ShownLimit[] = []
  for (const limit of CUSTOMER_LIMITS) {
    const value = set.get(limit)
    shown.push({
      limit,
      value: value ?? defaultOf(limit, defaults),
      is_default: value === undefined,
      ...(isRecordLimit(limit) && { records: await countRecords(db, customerId, limit, LIMIT_VALUE_MAX) }),
    })
  }
  return shown
}

/** Sets a limit as `setLimit` does, and records the change. */
export async function changeLimit(
  tx: Transaction,
  customerId: string,
  limit: CustomerLimit,
  value: number | undefined,
  origin: Origin,
): Promise<void> {
  const before = await setLimit(tx, customerId, limit, value)
  if (before === value) return
  const changes = { before: { [limit]: before ?? null }, after: { [limit]: value ?? null } }
  await recordNow(tx, customerId, audited(origin, 'customer.set_limit', customerId, changes))
}

/** Sets a limit of a customer, or removes it, so that the default holds again. Returns the value before, if one was set. */
export async function setLimit(
  tx: Transaction,
  customerId: string,
  name: CustomerLimit,
  value: number | undefined,
): Promise<number | undefined> {
  const { rows } = await tx.query<{ value: string }>(
    'select value from customer_limits where customer_id = $1 and name = $2 for update',
    [customerId, name],
  )
  if (value === undefined)
    await tx.query('delete from customer_limits where customer_id = $1 and name = $2', [customerId, name])
  else
    await tx.query(
      `
      insert into customer_limits (customer_id, name, value, updated_at) values ($1, $2, $3, clock_timestamp())
      on conflict (customer_id, name) do update set value = excluded.value, updated_at = excluded.updated_at`,
      [customerId, name, value],
    )
  return rows[0] === undefined ? undefined : Number(rows[0].value)
}
