import type { Queryable } from '../db/database.ts'
import type { Kind } from './need.ts'

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

/** A withdrawal that used a quote. */
interface UsedQuote {
  id: string
  transfer_id: string
}

/** Quotes by id. Reading locks them, so that each is used once. */
export const FEE_QUOTES: Kind<string, FeeQuote, UsedQuote> = {
  async read(tx, customerId, ids) {
    const { rows } = await tx.query<FeeQuote>({
      text: `
      select id, asset, crypto_network, destination_address, fee, amount, total, expires_at, transfer_id
      from fee_quotes
      where customer_id = $1 and id = any ($2::uuid[])
      order by id
      for update`,
      values: [customerId, ids],
    })
    const quotes = new Map(rows.map((row) => [row.id, row]))
    return {
      get: (id) => quotes.get(id),
      note: ({ id, transfer_id }) => void quotes.set(id, { ...quotes.get(id)!, transfer_id }),
    }
  },
  async write(tx, customerId, used) {
    await tx.query({
      text: `
      update fee_quotes q set transfer_id = used.transfer_id
      from unnest($2::uuid[], $3::uuid[]) as used (id, transfer_id)
      where q.customer_id = $1 and q.id = used.id and q.transfer_id is null`,
      values: [customerId, used.map(({ id }) => id), used.map(({ transfer_id }) => transfer_id)],
    })
  },
}

/** For how long an expired quote is still distinguished from an unknown one. */
const EXPIRED_KEPT_MINUTES = 60

/**
 * Deletes the quotes that expired unused, and returns their number. Used quotes are kept: they record the fee that a
 * withdrawal was promised.
 */
export async function deleteExpiredQuotes(db: Queryable): Promise<number> {
  const { rowCount } = await db.query(
    `delete from fee_quotes
     where transfer_id is null and expires_at < clock_timestamp() - make_interval(mins => $1)`,
    [EXPIRED_KEPT_MINUTES],
  )
  return rowCount ?? 0
}
