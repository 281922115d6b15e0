import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import type { Database } from '../../db/database.ts'
import { presentOf } from '../../db/rows.ts'

/** Whose statement it is, and its time: `from` <= t < `to`, which nothing can be added to any more. */
export interface StatementOf {
  customerId: string
  profileId: string
  from: string
  to: string
}

/** A balance of the profile at the beginning and the end, in decimal strings. */
export interface StatementBalance {
  asset: string
  opening: string
  closing: string
}

export interface StatementEntry {
  created_at: string
  transfer_id: string
  type: string
  event: string
  asset: string
  ref_id?: string
  memo?: string
  amount: string
  balance: string
  /** Place among the changes of the balance. */
  version: string
}

/** Reads the balances of an asset, or of each that the profile has held, by ticker. Each costs two look-ups. */
export async function selectStatementBalances(
  db: Database,
  { customerId, profileId, from, to }: StatementOf,
  asset: string | undefined,
): Promise<StatementBalance[]> {
  const { rows } = await db.query<StatementBalance>(
    `
    select held.asset, coalesce(opening.balance_after, 0) as opening, coalesce(closing.balance_after, 0) as closing
    from (
      select asset from balances where customer_id = $1 and profile_id = $2 and $3::text is null
      union all
      select $3::text where $3::text is not null
    ) held
    left join lateral (
      select balance_after from entries
      where customer_id = $1 and profile_id = $2 and asset = held.asset and created_at < $4
      order by created_at desc, version desc
      limit 1
    ) opening on true
    left join lateral (
      select balance_after from entries
      where customer_id = $1 and profile_id = $2 and asset = held.asset and created_at < $5
      order by created_at desc, version desc
      limit 1
    ) closing on true
    order by held.asset collate "C"`,
    [customerId, profileId, asset, from, to],
  )
  return rows.map((row) => ({
    asset: row.asset,
    opening: decimalOf(row.opening, row.asset),
    closing: decimalOf(row.closing, row.asset),
  }))
}

/** Reads the next entries of one asset, oldest first. */
export async function selectStatementEntries(
  db: Database,
  { customerId, profileId, from, to }: StatementOf,
  asset: string,
  after: Pick<StatementEntry, 'created_at' | 'version'> | undefined,
  limit: number,
): Promise<StatementEntry[]> {
  const { rows } = await db.query<
    Omit<StatementEntry, 'ref_id' | 'memo'> & { ref_id: string | null; memo: string | null }
  >(
    `
    select e.created_at, e.transfer_id, t.type, e.event, e.asset, t.ref_id, t.memo, e.amount, e.balance_after as balance, e.version
    from entries e
    join transfers t on t.customer_id = $1 and t.id = e.transfer_id
    where e.customer_id = $1 and e.profile_id = $2 and e.asset = $3
      and e.created_at >= coalesce($6::timestamptz, $4) and e.created_at < $5
      and ($6::timestamptz is null or (e.created_at, e.version) > ($6, $7::bigint))
    order by e.created_at, e.version
    limit $8`,
    [customerId, profileId, asset, from, to, after?.created_at, after?.version, limit],
  )
  return rows.map((row) => ({
    ...presentOf(row),
    amount: decimalOf(row.amount, asset),
    balance: decimalOf(row.balance, asset),
  }))
}

const decimalOf = (stored: string, asset: string) =>
  formatAmount(parseStoredAmount(stored, decimalsOf(asset)), decimalsOf(asset))

const PAGE = 1000

/** Reads all entries of one asset, a page at a time. */
export async function* readStatement(
  db: Database,
  statement: StatementOf,
  asset: string,
): AsyncGenerator<StatementEntry[]> {
  let page: StatementEntry[] = []
  do {
    page = await selectStatementEntries(db, statement, asset, page.at(-1), PAGE)
    yield page
  } while (page.length === PAGE)
}
