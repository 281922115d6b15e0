import { momentAt, momentOfMicros } from '../../db/ids.ts'
import { presentOf, type Present } from '../../db/rows.ts'
import type { Book, Time } from './book.ts'

interface EntryRow {
  created_at: string
  customer_id: string
  transfer_id: string
  event: string
  position: number
  account: string
  profile_id: string | null
  asset: string
  /** A signed decimal in units of the asset. */
  amount: string
  /** The profile's balance after it. */
  balance: string | null
  /** Of the transfer. Absent where the entry belongs to none: sweeps and acknowledged transactions. */
  type: string | null
  ref_id: string | null
  memo: string | null
  /** Where asked for: the other accounts of the event in the asset, or the same where there is no other. */
  counter_accounts: string[] | null
}

/** An entry of the ledger as books show it. */
export type BookEntry = Present<EntryRow>

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
export async function* readEntries(book: Book, asked: AskedEntries): AsyncGenerator<BookEntry[]> {
  const end = asked.to.micros
  let width = asked.profileId === undefined ? FIRST_SLICE_MICROS : Infinity
  // Entries of the microsecond `begin` that were read already.
  let skip = 0
  for (let begin = asked.from.micros; begin < end;) {
    const sliceEnd = Math.min(begin + width, end)
    const page = await selectEntries(book, asked, [begin, sliceEnd], skip)
    if (page.length > 0) yield page
    if (page.length === PAGE) {
      const { created_at } = page.at(-1)!
      const last = momentAt(created_at).micros
      const ofLast = page.filter((entry) => entry.created_at === created_at).length
      skip = last === begin ? skip + ofLast : ofLast
      // The next slice is as long as what this page covers.
      width = Math.max(1, Math.min(width, last - begin))
      begin = last
    } else {
      skip = 0
      width = page.length > PAGE / 2 ? width : width * 2
      begin = sliceEnd
    }
  }
}

async function selectEntries(
  { db, customerId }: Book,
  { account, profileId, asset, withCounterAccounts }: AskedEntries,
  slice: [number, number],
  skip: number,
): Promise<BookEntry[]> {
  const isOfProfile = profileId !== undefined
  const { rows } = await db.query<EntryRow>(
    `
    select e.created_at, e.customer_id, e.transfer_id, e.event, e.position, e.account, e.profile_id, e.asset,
           trim_scale(e.amount) as amount, trim_scale(e.balance_after) as balance, t.type, t.ref_id, t.memo,
           e.counter_accounts
    from (
      select i.*,
             case when $7 then (
               select coalesce(array_agg(distinct o.account) filter (where o.account <> i.account), array[i.account])
               from entries o
               where o.customer_id = i.customer_id and o.transfer_id = i.transfer_id and o.event = i.event and o.asset = i.asset
             ) end as counter_accounts
      from entries i
      where created_at >= $1 and created_at < $2
        and ($3::uuid is null or customer_id = $3)
        and ($4::text is null or account = $4)
        and ($5::uuid is null or profile_id = $5)
        and ($6::text is null or asset = $6)
      order by created_at, ${isOfProfile ? 'asset, version' : 'customer_id, transfer_id, event collate "C", position'}
      limit ${PAGE} offset $8
    ) e
    left join transfers t on t.customer_id = e.customer_id and t.id = e.transfer_id
    order by e.created_at, ${isOfProfile ? 'e.asset, e.version' : 'e.customer_id, e.transfer_id, e.event collate "C", e.position'}`,
    [
      ...slice.map((micros) => momentOfMicros(micros).text),
      ...[customerId, account, profileId, asset, withCounterAccounts === true, skip],
    ],
  )
  return rows.map((row) => presentOf(row))
}
