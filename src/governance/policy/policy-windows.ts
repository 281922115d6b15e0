import { inOrder, type Queryable, type Transaction } from '../../db/database.ts'
import { arrayLiteral } from '../../db/array-literal.ts'
import { momentAt } from '../../db/ids.ts'

/**
 * The windows of limits: what a rule has counted for one subject. A window is rolling and has at most 60 buckets. A bucket
 * counts in full until its latest payment is older than the period, so that no period ever holds more than the limit.
 */

const DAY_SECONDS = 86_400
const MICROS = 1_000_000

/** Buckets of a period. The oldest and the newest may count in part, so at most 60 buckets count. */
const BUCKETS_OF_PERIOD = 59

export interface WindowKey {
  rule_id: string
  asset: string
  /** `CUSTOMER`, or `PROFILE`, `IDENTITY` or `DESTINATION` and which one. */
  subject: string
}

/**
 * The time of a bucket's latest payment, in microseconds since 1970, and its sum in the limit's smallest units, as the
 * database stores it: a text of digits.
 */
type StoredBucket = readonly [latest: number, sum: string]

type WindowRow = WindowKey & { buckets: StoredBucket[] }
/** A row with its ctid, which cannot change while the row is locked. */
type LockedRow = WindowRow & { place: string }

/** A window that this transaction may change: its row is locked, or does not exist yet. */
export class Window {
  readonly key: WindowKey
  /** The ctid of its row; undefined for a new window. */
  place: string | undefined
  /** Whether its row, if there is one, was read and locked. */
  isLocked = false
  /** Ordered by time. The sums stay text: only those that count are parsed, and only once. */
  #buckets: StoredBucket[] = []
  /** The last result of `sumAt`: the sum of the payments after the moment `since`. */
  #known: { since: number; sum: bigint } | undefined
  #isChanged = false
  #periodMicros = 0

  constructor(key: WindowKey, stored?: { buckets: readonly StoredBucket[] }) {
    this.key = key
    if (stored !== undefined) this.load(stored)
  }

  load({ buckets, place }: { buckets: readonly StoredBucket[]; place?: string }): void {
    this.#buckets = [...buckets]
    this.place = place
  }

  /** Returns the sum of the payments of the period that ends at this moment. */
  sumAt(nowMicros: number, periodMicros: number): bigint {
    const since = nowMicros - periodMicros
    if (this.#known?.since === since) return this.#known.sum
    let sum = 0n
    for (const [latest, amount] of this.#buckets) if (latest > since) sum += BigInt(amount)
    this.#known = { since, sum }
    return sum
  }

  /**
   * Counts a payment at this moment. If the clock was set back, the payment counts at the time of the latest payment, so
   * that buckets stay in order and none ends early.
   */
  add(nowMicros: number, periodMicros: number, amount: bigint): void {
    const since = nowMicros - periodMicros
    const sum = this.sumAt(nowMicros, periodMicros)
    const time = Math.max(nowMicros, this.#buckets.at(-1)?.[0] ?? 0)
    const width = Math.ceil(periodMicros / BUCKETS_OF_PERIOD)
    if ((this.#buckets[0]?.[0] ?? time) <= since) this.#buckets = this.#buckets.filter(([at]) => at > since)
    const open = this.#buckets.at(-1)
    if (open !== undefined && Math.floor(open[0] / width) === Math.floor(time / width))
      this.#buckets[this.#buckets.length - 1] = [time, String(BigInt(open[1]) + amount)]
    else this.#buckets.push([time, String(amount)])
    this.#known = { since, sum: sum + amount }
    this.#isChanged = true
    this.#periodMicros = periodMicros
  }

  get isChanged(): boolean {
    return this.#isChanged
  }

  get stored(): readonly StoredBucket[] {
    return this.#buckets
  }

  /**
   * The first midnight (UTC, in seconds since 1970) from which no payment of the window counts any more. It stays the same
   * for a day, so that updates of the row do not touch its indexes (heap-only tuples).
   */
  get endsAtSeconds(): number {
    const micros = this.#buckets.at(-1)![0] + this.#periodMicros
    return Math.ceil(micros / MICROS / DAY_SECONDS) * DAY_SECONDS
  }
}

const nameOf = ({ rule_id, asset, subject }: WindowKey) => `${rule_id} ${asset} ${subject}`

export class Windows {
  readonly #windows = new Map<string, Window>()
  #wanted = new Map<string, Window>()

  /** Returns the window with this key. It can be used after `lock`. */
  want(key: WindowKey): Window {
    const name = nameOf(key)
    const known = this.#windows.get(name)
    if (known !== undefined) return known
    const window = new Window(key)
    this.#windows.set(name, window)
    this.#wanted.set(name, window)
    return window
  }

  /**
   * Reads and locks the wanted windows that are not locked yet, in key order and after the balances, so that no two batches
   * deadlock. A window without a row is new: of two processes that insert it, the second violates `policy_windows_pkey` and
   * decides again.
   */
  async lock(tx: Transaction, customerId: string): Promise<void> {
    if (this.#wanted.size === 0) return
    const sorted = [...this.#wanted].sort(([a], [b]) => (a < b ? -1 : 1))
    this.#wanted = new Map()
    const { rows } = await tx.query<LockedRow>({
      name: 'lock policy windows',
      // Lateral forces one index look-up per key, in key order.
      text: `
      select locked.*
      from unnest($2::text[], $3::text[], $4::text[]) as wanted (rule_id, asset, subject)
      cross join lateral (
        select rule_id, asset, subject, buckets, ctid::text as place
        from policy_windows
        where customer_id = $1 and rule_id = wanted.rule_id and asset = wanted.asset and subject = wanted.subject
        for update
      ) locked`,
      values: [customerId, ...columnsOf(sorted.map(([, { key }]) => key))],
    })
    for (const row of rows) this.#windows.get(nameOf(row))!.load(row)
    for (const [, window] of sorted) window.isLocked = true
  }

  /** Takes the wanted windows as empty, for payments that are judged and not made. */
  beginEmpty(): void {
    for (const window of this.#wanted.values()) window.isLocked = true
    this.#wanted = new Map()
  }

  /** Sends the statements that write the changed windows: one for new windows, one for known ones. */
  async write(tx: Transaction, customerId: string): Promise<void> {
    const changed = [...this.#windows.values()].filter(({ isChanged }) => isChanged)
    const made = changed.filter(({ place }) => place === undefined)
    const updated = changed.filter(({ place }) => place !== undefined)
    const sent: Promise<unknown>[] = []
    if (made.length > 0)
      sent.push(
        tx.query({
          name: 'insert policy windows',
          text: `
      insert into policy_windows (customer_id, rule_id, asset, subject, buckets, ends_at)
      select $1, rule_id, asset, subject, buckets, to_timestamp(ends_at)
      from unnest($2::text[], $3::text[], $4::text[], $5::jsonb[], $6::bigint[])
        as made (rule_id, asset, subject, buckets, ends_at)`,
          values: [customerId, ...columnsOf(made.map(({ key }) => key)), ...valuesOf(made)],
        }),
      )
    if (updated.length > 0)
      sent.push(
        tx.query({
          name: 'update policy windows',
          text: `
      update policy_windows w
      set buckets = changed.buckets, ends_at = to_timestamp(changed.ends_at)
      from unnest($2::tid[], $3::jsonb[], $4::bigint[]) as changed (place, buckets, ends_at)
      where w.customer_id = $1 and w.ctid = changed.place`,
          values: [customerId, `{${updated.map(({ place }) => `"${place!}"`).join()}}`, ...valuesOf(updated)],
        }),
      )
    await inOrder(sent)
  }
}

const columnsOf = (keys: readonly WindowKey[]): string[] => [
  arrayLiteral(keys.map(({ rule_id }) => rule_id)),
  arrayLiteral(keys.map(({ asset }) => asset)),
  arrayLiteral(keys.map(({ subject }) => subject)),
]

/**
 * Formats buckets as an element of an array of jsonb. Buckets hold digits alone, so only the quotes around the sums are
 * escaped: JSON.stringify and `arrayLiteral` took four times as long.
 */
const bucketsLiteral = (buckets: readonly StoredBucket[]): string =>
  `"[${buckets.map(([latest, sum]) => `[${latest},\\"${sum}\\"]`).join()}]"`

const valuesOf = (windows: readonly Window[]): string[] => [
  `{${windows.map(({ stored }) => bucketsLiteral(stored)).join()}}`,
  arrayLiteral(windows.map(({ endsAtSeconds }) => endsAtSeconds)),
]

/** A window as it is now, outside the transactions of payments. */
export interface CountedWindow {
  key: WindowKey
  window: Window
  /** The database's time when it was read. */
  nowMicros: number
}

/** Reads the windows of these rules, at most `max`, in the order of their keys. */
export async function selectWindows(
  db: Queryable,
  customerId: string,
  ruleIds: readonly string[],
  max: number,
): Promise<CountedWindow[]> {
  const { rows } = await db.query<WindowRow & { now: string }>(
    `select rule_id, asset, subject, buckets, clock_timestamp() as now from policy_windows
     where customer_id = $1 and rule_id = any ($2::text[])
     order by rule_id, asset, subject
     limit $3`,
    [customerId, arrayLiteral(ruleIds), max],
  )
  return rows.map(({ buckets, now, ...key }) => ({
    key,
    window: new Window(key, { buckets }),
    nowMicros: momentAt(now).micros,
  }))
}

/** How long a window in which nothing counts is kept: the clock may be set back. */
const ENDED_KEPT_DAYS = 1

/** Deletes the first `max` windows in which nothing counts any more, and returns their number. */
export async function deleteEndedWindows(db: Queryable, max: number): Promise<number> {
  const { rows } = await db.query<WindowKey & { customer_id: string }>(
    `select customer_id, rule_id, asset, subject from policy_windows
     where ends_at < clock_timestamp() - make_interval(days => $1)
     order by ends_at
     limit $2`,
    [ENDED_KEPT_DAYS, max],
  )
  if (rows.length === 0) return 0
  // A payment may have counted in a window meanwhile: the condition holds when the row is locked, too.
  const { rowCount } = await db.query(
    `delete from policy_windows w
     using unnest($1::uuid[], $2::text[], $3::text[], $4::text[]) as old (customer_id, rule_id, asset, subject)
     where w.customer_id = old.customer_id and w.rule_id = old.rule_id and w.asset = old.asset
       and w.subject = old.subject and w.ends_at < (select clock_timestamp()) - make_interval(days => $5)`,
    [arrayLiteral(rows.map(({ customer_id }) => customer_id)), ...columnsOf(rows), ENDED_KEPT_DAYS],
  )
  return rowCount ?? 0
}
