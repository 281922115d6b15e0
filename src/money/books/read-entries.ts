import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { momentAt, momentOfMicros, PLATFORM_ID, type Moment } from '../../db/ids.ts'
import { completeUntil, type Book } from './book.ts'

/** An entry of the ledger as books show it. */
export interface BookEntry extends EntryRow {
  /** Of the transfer. Absent where the entry belongs to none: sweeps and acknowledged transactions. */
  type: string | undefined
  ref_id: string | undefined
}

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
  /** The profile's balance after it; null on the platform's accounts. */
  balance_after: string | null
}

/** Which entries: `from` <= time < `to`. */
export interface AskedEntries {
  from: Moment
  to: Moment
  account?: string | undefined
  profileId?: string | undefined
  asset?: string | undefined
  /** Only what follows this entry, which is at `from` or later. */
  after?: Place | undefined
}

const PAGE = 2000
const FIRST_SLICE_MICROS = 60_000_000

/**
 * Reads the entries of a book in posting order: by time, customer, transfer, event and position. It ends at the horizon at
 * the latest, so reading again gives the same. Yields pages of at most 2,000 entries, none of them empty, and keeps no more in
 * memory: `created_at` has an index that finds a slice of time, not an order, so each page is a slice or a part of one.
 * Throws `HorizonUnknown`.
 */
export async function* readEntries(book: Book, asked: AskedEntries): AsyncGenerator<BookEntry[]> {
  const to = await completeUntil(book, asked.to)
  let after = asked.after ?? beginningOf(asked.from)
  let width = FIRST_SLICE_MICROS
  for (let begin = asked.from.micros; begin < to.micros;) {
    const end = Math.min(begin + width, to.micros)
    const page = await selectEntries(book, asked, after, end)
    if (page.length > 0) yield await withTransfers(book, page)
    if (page.length === PAGE) {
      after = page.at(-1)!
      const last = momentAt(after.created_at).micros
      // The next slice is as long as what this page covers.
      width = Math.max(1, Math.min(width, last - begin))
      begin = last
    } else {
      after = beginningOf(momentOfMicros(end))
      width = page.length > PAGE / 2 ? width : width * 2
      begin = end
    }
  }
}

/** The place of an entry in the posting order. */
export type Place = Pick<EntryRow, 'created_at' | 'customer_id' | 'transfer_id' | 'event' | 'position'>

/** A place before all entries of this moment. */
const beginningOf = ({ text }: Moment): Place => ({
  ...{ created_at: text, customer_id: PLATFORM_ID, transfer_id: PLATFORM_ID },
  ...{ event: '', position: -1 },
})

async function selectEntries(
  { db, customerId }: Book,
  { account, profileId, asset }: AskedEntries,
  after: Place,
  end: number,
): Promise<EntryRow[]> {
  const { rows } = await db.query<EntryRow>(
    `
    select created_at, customer_id, transfer_id, event, position, account, profile_id, asset, amount, balance_after
    from entries
    where created_at >= $1 and created_at < $2
      and (created_at, customer_id, transfer_id, event collate "C", position) > ($1, $3::uuid, $4::uuid, $5::text, $6::int)
      and ($7::uuid is null or customer_id = $7)
      and ($8::text is null or account = $8)
      and ($9::uuid is null or profile_id = $9)
      and ($10::text is null or asset = $10)
    order by created_at, customer_id, transfer_id, event collate "C", position
    limit $11`,
    [
      ...[
        after.created_at,
        momentOfMicros(end).text,
        after.customer_id,
        after.transfer_id,
        after.event,
        after.position,
      ],
      ...[customerId, account, profileId, asset, PAGE],
    ],
  )
  return rows
}

/** Adds what the transfers of the entries say. */
async function withTransfers({ db }: Book, page: EntryRow[]): Promise<BookEntry[]> {
  const asked = new Map(page.map((entry) => [entry.transfer_id, entry.customer_id]))
  const { rows } = await db.query<{ id: string; type: string; ref_id: string | null }>(
    `
    select t.id, t.type, t.ref_id
    from unnest($1::uuid[], $2::uuid[]) asked (customer_id, id)
    join transfers t on t.customer_id = asked.customer_id and t.id = asked.id`,
    [[...asked.values()], [...asked.keys()]],
  )
  const transfers = new Map(rows.map((row) => [row.id, row]))
  return page.map((entry) => {
    const decimals = decimalsOf(entry.asset)
    const transfer = transfers.get(entry.transfer_id)
    const written = (amount: string) => formatAmount(parseStoredAmount(amount, decimals), decimals)
    return {
      ...entry,
      amount: written(entry.amount),
      balance_after: entry.balance_after && written(entry.balance_after),
      type: transfer?.type,
      ref_id: transfer?.ref_id ?? undefined,
    }
  })
}
