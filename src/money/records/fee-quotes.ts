import type { Queryable } from '../../db/database.ts'
import type { RecordKind } from './need.ts'
import { ownRowMacs, sealOf, type Seal } from '../../audit/sealed-rows.ts'

/**
 * A guaranteed fee (API behaviour, Withdrawal fees): good until it expires, for one withdrawal of at most the quoted
 * amount.
 */
export interface FeeQuote {
  id: string
  asset: string
  crypto_network: string
  destination_address: string
  fee: string
  amount: string | null
  total: string | null
  expires_at: string
  /** The withdrawal that used it. */
  transfer_id: string | null
}

interface UsedQuote {
  id: string
  transfer_id: string
}

/** Quotes by id, without unused ones that no Bursar with the master key made. Reading locks them, so that each is used once. */
export const FEE_QUOTES: RecordKind<string, FeeQuote, UsedQuote> = {
  async read(tx, customerId, ids) {
    const { rows } = await tx.query<FeeQuote & Seal>({
      text: `
      select id, asset, crypto_network, destination_address, fee, amount, total, expires_at, transfer_id, ${sealOf('fee_quotes')}
      from fee_quotes r
      where customer_id = $1 and id = any ($2::uuid[])
      order by id
      for update`,
      values: [customerId, ids],
    })
    const macs = await ownRowMacs()
    const quotes = new Map<string, FeeQuote>(
      rows
        .filter((row) => row.transfer_id !== null || macs.isGenuine('fee_quotes', row.id, row))
        .map((row) => [row.id, row]),
    )
    return {
      get: (id) => quotes.get(id),
      note: ({ id, transfer_id }) => void quotes.set(id, { ...quotes.get(id)!, transfer_id }),
    }
  },
  write: (tx, customerId, used) => [
    tx.query({
      text: `
      update fee_quotes q set transfer_id = used.transfer_id
      from unnest($2::uuid[], $3::uuid[]) as used (id, transfer_id)
      where q.customer_id = $1 and q.id = used.id and q.transfer_id is null`,
      values: [customerId, used.map(({ id }) => id), used.map(({ transfer_id }) => transfer_id)],
    }),
  ],
}

type UsedQuoteRow = Pick<FeeQuote, 'id' | 'fee' | 'expires_at'> & { created_at: string }

/** Reads the quote that a withdrawal used. Undefined without one, and when it is deleted. */
export async function selectQuoteOf(
  db: Queryable,
  customerId: string,
  transferId: string,
): Promise<UsedQuoteRow | undefined> {
  const { rows } = await db.query<UsedQuoteRow>(
    `select id, fee, created_at, expires_at
     from fee_quotes
     where customer_id = $1 and transfer_id = $2`,
    [customerId, transferId],
  )
  return rows[0]
}

/** For how long an expired quote is still distinguished from an unknown one. */
const EXPIRED_KEPT_MINUTES = 60

/** For how long a used quote is still distinguished from an unknown one. The withdrawal's `fee` is kept for ever. */
const USED_KEPT_DAYS = 30

/** Deletes the first `max` quotes that expired unused an hour ago, and returns their number. */
export async function deleteExpiredQuotes(db: Queryable, max: number): Promise<number> {
  const { rows } = await db.query<QuoteKey>(
    `select customer_id, id from fee_quotes
     where transfer_id is null and expires_at < clock_timestamp() - make_interval(mins => $1)
     order by expires_at
     limit $2`,
    [EXPIRED_KEPT_MINUTES, max],
  )
  return deleteQuotes(db, rows)
}

/** Deletes the first `max` quotes that were used and expired 30 days ago, and returns their number. */
export async function deleteUsedQuotes(db: Queryable, max: number): Promise<number> {
  const { rows } = await db.query<QuoteKey>(
    `select customer_id, id from fee_quotes
     where transfer_id is not null and expires_at < clock_timestamp() - make_interval(days => $1)
     order by expires_at
     limit $2`,
    [USED_KEPT_DAYS, max],
  )
  return deleteQuotes(db, rows)
}

interface QuoteKey {
  customer_id: string
  id: string
}

async function deleteQuotes(db: Queryable, quotes: readonly QuoteKey[]): Promise<number> {
  if (quotes.length === 0) return 0
  const { rowCount } = await db.query(
    `delete from fee_quotes q
     using unnest($1::uuid[], $2::uuid[]) as old (customer_id, id)
     where q.customer_id = old.customer_id and q.id = old.id`,
    [quotes.map(({ customer_id }) => customer_id), quotes.map(({ id }) => id)],
  )
  return rowCount ?? 0
}
