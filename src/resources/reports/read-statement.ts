import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { presentOf } from '../../db/rows.ts'
import type { Database } from '../../db/database.ts'

/** Whose statement it is, and its time: `from` <= t < `to`, which nothing can be added to any more. */
export interface StatementOf {
  db: Database
  customerId: string
  profileId: string
  from: string
  to: string
}

/** A balance at the beginning and the end, in decimal strings. */
export type StatementBalance = Record<'asset' | 'opening' | 'closing', string>

type EntryRow = Record<
  'created_at' | 'transfer_id' | 'type' | 'event' | 'asset' | 'amount' | 'balance' | 'version',
  string
> & { ref_id: string | null; memo: string | null }

const decimalOf = (stored: string, asset: string) =>
  formatAmount(parseStoredAmount(stored, decimalsOf(asset)), decimalsOf(asset))

/** Reads the balances of an asset, or of each that the profile has held, by ticker. Each costs two look-ups. */
export async function selectStatementBalances(
  { db, customerId, profileId, from, to }: StatementOf,
  asset: string | undefined,
): Promise<StatementBalance[]> {
  const { rows } = await db.query<StatementBalance>(
    `
    select held.asset, coalesce(min(e.balance_after) filter (where e.at = $4), 0) as opening,
           coalesce(min(e.balance_after) filter (where e.at = $5), 0) as closing
    from (
      select asset from balances where customer_id = $1 and profile_id = $2 and $3::text is null
      union all
      select $3::text where $3::text is not null
    ) held
    cross join unnest(array[$4, $5]::timestamptz[]) m (at)
    left join lateral (
      select m.at, balance_after from entries
      where customer_id = $1 and profile_id = $2 and asset = held.asset and created_at < m.at
      order by created_at desc, version desc
      limit 1
    ) e on true
    group by held.asset
    order by held.asset collate "C"`,
    [customerId, profileId, asset, from, to],
  )
  return rows.map(({ asset: held, opening, closing }) => ({
    ...{ asset: held, opening: decimalOf(opening, held), closing: decimalOf(closing, held) },
  }))
}

const PAGE = 1000

/** Reads the entries of one asset in their order, a page at a time. */
export async function* readStatement(
  { db, customerId, profileId, from, to }: StatementOf,
  asset: string,
): AsyncGenerator<ReturnType<typeof entryOf>[]> {
  let page: EntryRow[] = []
  do {
    const last = page.at(-1)
    const { rows } = await db.query<EntryRow>(
      `
      select e.created_at, e.transfer_id, t.type, e.event, e.asset, t.ref_id, t.memo, e.amount, e.balance_after as balance,
             e.version
      from entries e
      join transfers t on t.customer_id = $1 and t.id = e.transfer_id
      where e.customer_id = $1 and e.profile_id = $2 and e.asset = $3 and e.created_at >= $4 and e.created_at < $5
        and (e.created_at, e.version) > ($4, $6::bigint)
      order by e.created_at, e.version
      limit ${PAGE}`,
      [customerId, profileId, asset, last?.created_at ?? from, to, last?.version ?? 0],
    )
    page = rows
    yield rows.map(entryOf)
  } while (page.length === PAGE)
}

export type StatementEntry = ReturnType<typeof entryOf>

const entryOf = ({ version: _, ...row }: EntryRow) => ({
  ...presentOf(row),
  amount: decimalOf(row.amount, row.asset),
  balance: decimalOf(row.balance, row.asset),
})
