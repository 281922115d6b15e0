import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { transaction, type Database } from '../../db/database.ts'
import { readHorizon } from '../../db/horizon.ts'
import type { Moment } from '../../db/ids.ts'
import { partsOf } from '../../db/parts.ts'

const FIGURES = ['opening', 'debit', 'credit', 'closing'] as const

/**
 * An account in one asset; all customers' profiles are one account, and `all` is the sum of all accounts. Decimal strings:
 * `opening`, less `debit`, plus `credit` is `closing`. Negative: what the platform has, such as money at its bank.
 */
type AccountBalance = Record<'account' | 'asset' | (typeof FIGURES)[number], string>

/** Balances for `from` <= time < `to`. */
export type LedgerBalances = Record<'from' | 'to', string> & Record<'items' | 'sums', AccountBalance[]>

/**
 * Sums the entries of each account within a time, and those before it: of all customers and of the platform, or of one
 * customer. The time ends at the horizon of the whole database at the latest, below which no entry can appear any more: so
 * the answer stays true. It reads every entry. Throws `HorizonUnknown`.
 */
export async function readLedgerBalances(
  db: Database,
  asked: { from: Moment; to: Moment },
  customerId?: string,
): Promise<LedgerBalances> {
  const horizons = await Promise.all(partsOf(db).map((part) => readHorizon(part.db)))
  const earlier = (a: Moment, b: Moment) => (b.micros < a.micros ? b : a)
  const last = horizons.reduce(earlier, asked.to)
  const [from, to] = [earlier(asked.from, last).text, last.text]
  const rows = await transaction(
    db,
    async (tx) => {
      // The only plan: no index has all accounts in the order of time, and each would cost every withdrawal.
      await tx.query('set local enable_seqscan = on')
      const sums = await tx.query<AccountBalance>(
        `
        with balanced as (
          select account, asset, coalesce(sum(amount) filter (where created_at < $1), 0) as opening,
                 coalesce(-sum(amount) filter (where created_at >= $1 and amount < 0), 0) as debit,
                 coalesce(sum(amount) filter (where created_at >= $1 and amount > 0), 0) as credit, sum(amount) as closing
          from entries
          where created_at < $2 and ($3::uuid is null or customer_id = $3)
          group by account, asset
        )
        select * from balanced
        union all
        select 'all', asset, sum(opening), sum(debit), sum(credit), sum(closing) from balanced group by asset
        order by asset, account`,
        [from, to, customerId],
      )
      return sums.rows
    },
    'isolation level repeatable read read only',
  )
  for (const row of rows)
    for (const name of FIGURES)
      row[name] = formatAmount(parseStoredAmount(row[name], decimalsOf(row.asset)), decimalsOf(row.asset))
  const itemsWhere = (isSum: boolean) => rows.filter(({ account }) => (account === 'all') === isSum)
  return { from, to, items: itemsWhere(false), sums: itemsWhere(true) }
}
