import { poolOf } from '../../db/customer-pool.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { readHorizon } from '../../db/horizon.ts'
import { momentAt, momentOfMicros, type Moment } from '../../db/ids.ts'
import { partOf, partsOf } from '../../db/parts.ts'
import { pagesOf, presentOf } from '../../db/rows.ts'

/** Whose entries are read: of one customer, or of all and the platform. */
export interface Book {
  db: Database
  customerId: string | undefined
}

/** Whose rows of `day_sums` have all entries: a report of the whole ledger costs what its days do, and not its customers. */
export const WHOLE_LEDGER = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

/** `from` <= time < `to`. */
export interface Time {
  from: Moment
  to: Moment
}

/** How many entries or balances one statement reads. */
const PAGE = 2_000

const earlierOf = (a: Moment, b: Moment): Moment => (b.micros < a.micros ? b : a)

/** What of a time is final: it ends at the horizon at the latest, before which no entry can appear. Throws `HorizonUnknown`. */
export async function finalTime({ db, customerId }: Book, { from, to }: Time): Promise<Time> {
  const whole = poolOf(db)
  const parts = customerId === undefined ? partsOf(whole) : [partOf(whole, customerId)]
  const horizons = await Promise.all(parts.map((part) => readHorizon(part.db)))
  const end = horizons.reduce<Moment>(earlierOf, to)
  return { from: earlierOf(from, end), to: end }
}

/**
 * An account in an asset over a time, in decimal strings: `opening`, less `debit`, plus `credit` is `closing`. Negative: what
 * the platform has, such as money at its bank.
 */
export type Sums = Record<'asset' | 'opening' | 'debit' | 'credit' | 'closing', string>
/** All profiles are one account. */
export type AccountSums = Sums & { account: string }
export type ProfileSums = Sums & { customer_id: string; profile_id: string }

const DEBIT = 'coalesce(-sum(amount) filter (where amount < 0), 0)'
const CREDIT = 'coalesce(sum(amount) filter (where amount > 0), 0)'
/** Debits and credits of entries, as columns. */
export const SUMS = `${DEBIT} as debit, ${CREDIT} as credit`

/**
 * Sums the entries of each account within a time that is final, and those before it, from closed days and the entries since.
 * `sums` has all accounts of an asset together.
 */
export async function readSums({ db, customerId }: Book, { from, to }: Time) {
  const read = async (tx: Transaction) => {
    const closed = await tx.query<Record<'before_from' | 'before_to', string | null>>(
      `select max(until) filter (where until <= $1) as before_from, max(until) filter (where until <= $2) as before_to
       from closed_days where digest is not null`,
      [from.text, to.text],
    )
    const { before_from, before_to } = closed.rows[0]!
    const asked = [customerId, before_from, from.text, before_to, to.text]
    return tx.query<Sums & { account: string | null }>(SELECT_SUMS, asked)
  }
  const { rows } = await transaction(db, read, 'isolation level repeatable read read only')
  return {
    items: rows.filter((row): row is AccountSums => row.account !== null),
    sums: rows.flatMap(({ account, ...sums }) => (account === null ? [sums] : [])),
  }
}

/**
 * The sums of all entries before a moment: of the last day that was closed by then, and of what followed. The customer as
 * text, so that no index but that of the time serves: all of a customer's entries would be read.
 */
const sumsUntil = (closed: string, moment: string) => `
    select account, asset, sum(debit) as debit, sum(credit) as credit
    from (
      select account, asset, debit, credit
      from (
        select distinct on (account, asset) account, asset, debit, credit
        from day_sums
        where customer_id = coalesce($1::uuid, '${WHOLE_LEDGER}') and day < (${closed}::timestamptz at time zone 'UTC')::date
        order by account, asset, day desc
      ) kept
      union all
      select account, asset, ${SUMS}
      from entries
      where ($1::uuid is null or customer_id::text = $1::uuid::text)
        and created_at >= coalesce(${closed}, '-infinity') and created_at < ${moment}
      group by account, asset
    ) parts
    group by account, asset`
const SELECT_SUMS = `
  with before as materialized (${sumsUntil('$2', '$3')}
  ), until as materialized (${sumsUntil('$4', '$5')}
  )
  select account, asset, trim_scale(sum(coalesce(b.credit - b.debit, 0))) as opening,
         trim_scale(sum(u.debit - coalesce(b.debit, 0))) as debit,
         trim_scale(sum(u.credit - coalesce(b.credit, 0))) as credit, trim_scale(sum(u.credit - u.debit)) as closing
  from until u
  left join before b using (account, asset)
  group by grouping sets ((asset, account), (asset))
  order by asset collate "C", account collate "C"`

/**
 * Reads profiles' balances over a time that is final, a page at a time: of all assets, or of one, in which a profile had an
 * entry before its end. In the order of customers, profiles and assets.
 */
export const readProfileSums = (
  { db, customerId }: Book,
  { from, to, profileId, asset }: Time & { profileId?: string | undefined; asset?: string | undefined },
): AsyncGenerator<ProfileSums[]> =>
  pagesOf(PAGE, async (last) => {
    const after = [last?.customer_id, last?.profile_id, last?.asset]
    const asked = [customerId, profileId, asset, from.text, to.text]
    return (await db.query<ProfileSums>(SELECT_PROFILES, [...asked, ...after])).rows
  })

const OF_BALANCE = 'e.customer_id = b.customer_id and e.profile_id = b.profile_id and e.asset = b.asset'
const balanceBefore = (time: string) => `
    case when b.updated_at < ${time} then b.available else (
      select e.balance_after from entries e
      where ${OF_BALANCE} and e.created_at < ${time}
      order by e.created_at desc, e.version desc
      limit 1
    ) end`
const sumWithin = (sum: string) =>
  `(select ${sum} from entries e where ${OF_BALANCE} and e.created_at >= $4 and e.created_at < $5)`
// Each look-up is a subquery of its own on a table: a cluster takes no other form.
const SELECT_PROFILES = `
  select customer_id, profile_id, asset, trim_scale(coalesce(opening, 0)) as opening, trim_scale(debit) as debit,
         trim_scale(credit) as credit, trim_scale(closing) as closing
  from (
    select b.customer_id, b.profile_id, b.asset, ${sumWithin(DEBIT)} as debit, ${sumWithin(CREDIT)} as credit,
           ${balanceBefore('$4')} as opening, ${balanceBefore('$5')} as closing
    from balances b
    where ($1::uuid is null or b.customer_id = $1) and ($2::uuid is null or b.profile_id = $2)
      and ($3::text is null or b.asset = $3)
      and ($6::uuid is null or (b.customer_id, b.profile_id, b.asset) > ($6, $7::uuid, $8::text))
  ) of_profile
  where closing is not null
  order by customer_id, profile_id, asset
  limit ${PAGE}`

/** An entry of the ledger as books show it. */
export interface BookEntry {
  created_at: string
  customer_id: string
  transfer_id: string
  event: string
  position: number
  account: string
  profile_id?: string
  asset: string
  /** A signed decimal in units of the asset. */
  amount: string
  /** The profile's balance after it. */
  balance?: string
  /** Of the transfer. Absent where the entry belongs to none: sweeps and acknowledged transactions. */
  type?: string
  ref_id?: string
  memo?: string
  /** Where asked for: the other accounts of the event in the asset, or the same where there is no other. */
  counter_accounts?: string[]
}

/** Which entries, of a time that is final. */
interface AskedEntries extends Time {
  account?: string | undefined
  profileId?: string | undefined
  asset?: string | undefined
  withCounterAccounts?: boolean
}

const FIRST_SLICE_MICROS = 60_000_000

/**
 * Reads the entries of a book in posting order: by time, customer, transfer, event and position; those of one profile in the
 * order of its balances. Yields pages of at most 2,000 entries, none of them empty, and keeps no more in memory: `created_at`
 * has an index that finds a slice of time, not an order, so each page is a slice or a part of one.
 */
export async function* readEntries(
  { db, customerId }: Book,
  { account, profileId, asset, withCounterAccounts = false, from: begin, to: end }: AskedEntries,
): AsyncGenerator<BookEntry[]> {
  const isOfProfile = profileId !== undefined
  let from = begin
  let width = isOfProfile ? Infinity : FIRST_SLICE_MICROS
  // Entries of the microsecond `from` that were read already.
  let skip = 0
  while (from.micros < end.micros) {
    const to = momentOfMicros(Math.min(from.micros + width, end.micros))
    const values = [from.text, to.text, customerId, account, profileId, asset, withCounterAccounts, skip]
    const { rows } = await db.query<BookEntry>(isOfProfile ? OF_PROFILE : AS_POSTED, values)
    if (rows.length > 0) yield rows.map(presentOf)
    const next = rows.length < PAGE ? to : momentAt(rows.at(-1)!.created_at)
    const readOfNext = rows.filter(({ created_at }) => created_at === next.text).length
    skip = next.micros === from.micros ? skip + readOfNext : readOfNext
    // The next slice is as long as what a page covers.
    width = Math.max(1, next.micros - from.micros) * (rows.length > PAGE / 2 ? 1 : 2)
    from = next
  }
}

const selectBy = (order: string) => `
  select e.created_at, e.customer_id, e.transfer_id, e.event, e.position, e.account, e.profile_id, e.asset,
         trim_scale(e.amount) as amount, trim_scale(e.balance_after) as balance, t.type, t.ref_id, t.memo,
         e.counter_accounts
  from (
    select e.*,
           case when $7 then (
             select coalesce(array_agg(distinct o.account) filter (where o.account <> e.account), array[e.account])
             from entries o
             where o.customer_id = e.customer_id and o.transfer_id = e.transfer_id and o.event = e.event and o.asset = e.asset
           ) end as counter_accounts
    from entries e
    where created_at >= $1 and created_at < $2
      and ($3::uuid is null or customer_id = $3)
      and ($4::text is null or account = $4)
      and ($5::uuid is null or profile_id = $5)
      and ($6::text is null or asset = $6)
    order by ${order}
    limit ${PAGE} offset $8
  ) e
  left join transfers t on t.customer_id = e.customer_id and t.id = e.transfer_id
  order by ${order}`
const AS_POSTED = selectBy('e.created_at, e.customer_id, e.transfer_id, e.event collate "C", e.position')
const OF_PROFILE = selectBy('e.created_at, e.asset, e.version')
