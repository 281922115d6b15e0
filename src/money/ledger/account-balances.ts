import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { transaction } from '../../db/database.ts'
import { readHorizon } from '../../db/horizon.ts'
import type { Moment } from '../../db/ids.ts'
import type { Nodes } from '../../db/nodes.ts'

/** The balances of the ledger's accounts between two moments: what an accountant closes a month with. */

/** An account in one asset; all customers' profiles are one account. Amounts are decimal strings. */
export interface AccountBalance {
  account: string
  asset: string
  /** `opening`, less `debit`, plus `credit` is `closing`. Negative: what the platform has, such as money at its bank. */
  opening: string
  debit: string
  credit: string
  closing: string
}

const FIGURES = ['opening', 'debit', 'credit', 'closing'] as const

/** Balances for `from` <= time < `to`, and the sums of all accounts by asset. */
export interface LedgerBalances {
  from: string
  to: string
  items: AccountBalance[]
  sums: AccountBalance[]
}

/**
 * Sums the entries of each account within a time, and those before it: of all customers and of the platform, or of
 * one customer. The time ends at the horizon of all nodes at the latest, below which no entry can appear any more: so the answer
 * stays true. It reads every entry. Throws `HorizonUnknown`.
 */
export async function readLedgerBalances(
  { shared, list }: Pick<Nodes, 'shared' | 'list'>,
  asked: { from: Moment; to: Moment },
  customerId?: string,
): Promise<LedgerBalances> {
  const horizons = await Promise.all(list().map(({ db }) => readHorizon(db)))
  const earlier = (one: Moment, other: Moment) => (other.micros < one.micros ? other : one)
  const last = horizons.reduce(earlier, asked.to)
  const [from, to] = [earlier(asked.from, last).text, last.text]
  return transaction(
    shared,
    async (tx) => {
      // The only plan: no index has all accounts in the order of time, and each would cost every withdrawal.
      await tx.query('set local enable_seqscan = on')
      const { rows } = await tx.query<AccountBalance>(
        `
        select account, asset, coalesce(sum(amount) filter (where created_at < $1), 0) as opening,
               coalesce(-sum(amount) filter (where created_at >= $1 and amount < 0), 0) as debit,
               coalesce(sum(amount) filter (where created_at >= $1 and amount > 0), 0) as credit, sum(amount) as closing
        from entries
        where created_at < $2 and ($3::uuid is null or customer_id = $3)
        group by account, asset
        order by asset collate "C", account collate "C"`,
        [from, to, customerId],
      )
      const items = rows.map((row) => balanceOf(row.account, row.asset, minorOf(row)))
      return { from, to, items, sums: sumsOf(items) }
    },
    'isolation level repeatable read read only',
  )
}

/** The sums of all accounts by asset. Of all customers together each opening and closing is zero, and debit is credit. */
const sumsOf = (balances: readonly AccountBalance[]): AccountBalance[] =>
  [...new Set(balances.map(({ asset }) => asset))].map((asset) => {
    const own = balances.filter((one) => one.asset === asset).map(minorOf)
    return balanceOf(
      'all',
      asset,
      FIGURES.map((_, at) => own.reduce((sum, minor) => sum + minor[at]!, 0n)),
    )
  })

const minorOf = (row: AccountBalance): bigint[] =>
  FIGURES.map((name) => parseStoredAmount(row[name], decimalsOf(row.asset)))

const balanceOf = (account: string, asset: string, minor: readonly bigint[]): AccountBalance => {
  const [opening, debit, credit, closing] = minor.map((one) => formatAmount(one, decimalsOf(asset)))
  return { account, asset, opening: opening!, debit: debit!, credit: credit!, closing: closing! }
}
