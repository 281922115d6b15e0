import { LRUCache } from 'lru-cache'
import { problem } from '../../contract/problems.ts'
import type { Queryable } from '../../db/database.ts'

/**
 * The most records of a customer, deleted ones included, of the kinds that stay for ever or that cost work again and again.
 * They stop a runaway client long before it fills a disk (a million profiles with their indexes take 0.3 GB).
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
}
export type RecordLimit = keyof typeof RECORD_LIMITS

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
  isFull: boolean
  /** By `performance.now()`. */
  until: number
}

const allowances = new LRUCache<string, Allowance>({ max: COUNTS_MAX })

/**
 * Requires room for another record (API behaviour, Limits). Throws bad-request at the limit. Call it in the transaction of
 * the insertion, where it has one. Counts are rare, so each process may exceed a limit by a thousandth of it, and by the
 * requests under way at once.
 */
export async function requireRoom(
  db: Queryable,
  customerId: string,
  name: RecordLimit,
  known = allowances,
): Promise<void> {
  const { most } = RECORD_LIMITS[name]
  const key = `${customerId} ${name}`
  let allowance = known.get(key)
  if (
    allowance === undefined ||
    allowance.until <= performance.now() ||
    (allowance.left === 0 && !allowance.isFull)
  ) {
    allowance = allowanceOf(most, await countRecords(db, customerId, name, most))
    known.set(key, allowance)
  }
  if (allowance.isFull)
    throw problem.badRequest(`the customer has ${most} ${name.replaceAll('_', ' ')}, the most allowed`)
  allowance.left -= 1
}

/** Returns how many records may be made before the next count. */
function allowanceOf(most: number, count: number): Allowance {
  const room = most - count
  const now = performance.now()
  if (room <= 0) return { left: 0, isFull: true, until: now + FULL_MS }
  const left = Math.max(1, Math.floor(Math.min(room / SHARE_OF_ROOM, most / SHARE_OF_LIMIT)))
  return { left, isFull: false, until: now + COUNTED_MS }
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
