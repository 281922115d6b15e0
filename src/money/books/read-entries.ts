import { momentAt, momentOfMicros } from '../../db/ids.ts'
import { presentOf } from '../../db/rows.ts'
import type { Book, Time } from './book.ts'

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
export interface AskedEntries extends Time {
  account?: string | undefined
  profileId?: string | undefined
  asset?: string | undefined
  withCounterAccounts?: boolean
}

const PAGE = 2000
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
