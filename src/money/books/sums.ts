import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { NIL_UUID } from '../../contract/fields.ts'
import { transaction, type Transaction } from '../../db/database.ts'
import { type Moment } from '../../db/ids.ts'
import { earlierOf, completeUntil, type Book } from './book.ts'
import { SUMS } from './closing.ts'

/** What an account has taken and given up to a moment, in minor units. */
interface Sums {
  debit: bigint
  credit: bigint
}

/**
 * An account in an asset over a time, in decimal strings: `opening`, less `debit`, plus `credit` is `closing`. All profiles are
 * one account. Negative: what the platform has, such as money at its bank.
 */
interface AccountSums {
  account: string
  asset: string
  opening: string
  debit: string
  credit: string
  closing: string
}

export interface BookSums {
  /** The time: from `from` to before `to`. */
  from: string
  to: string
  items: AccountSums[]
  /** All accounts together, by asset; the account is `all`. */
  sums: AccountSums[]
}

/**
 * Sums the entries of each account within a time, and those before it, from closed days and the entries since. The time ends at
 * the horizon at the latest. Throws `HorizonUnknown`.
 */
export async function readSums(book: Book, asked: { from: Moment; to: Moment }): Promise<BookSums> {
  const to = await completeUntil(book, asked.to)
  const from = earlierOf(asked.from, to)
  const [before, until] = await transaction(
    book.db,
    async (tx) => [await sumsUntil(tx, book, from), await sumsUntil(tx, book, to)] as const,
    'isolation level repeatable read read only',
  )
  const all = new Map<string, { opening: bigint } & Sums>()
  const items = [...until]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, { debit, credit }]) => {
      const [asset, account] = key.split(' ') as [string, string]
      const earlier = before.get(key) ?? { debit: 0n, credit: 0n }
      const own = {
        opening: earlier.credit - earlier.debit,
        debit: debit - earlier.debit,
        credit: credit - earlier.credit,
      }
      const sum = all.get(asset) ?? { opening: 0n, debit: 0n, credit: 0n }
      const { opening } = sum
      all.set(asset, {
        opening: opening + own.opening,
        debit: sum.debit + own.debit,
        credit: sum.credit + own.credit,
      })
      return written(account, asset, own)
    })
  const sums = [...all].map(([asset, sum]) => written('all', asset, sum))
  return { from: from.text, to: to.text, items, sums }
}

function written(
  account: string,
  asset: string,
  { opening, debit, credit }: { opening: bigint } & Sums,
): AccountSums {
  const text = (units: bigint) => formatAmount(units, decimalsOf(asset))
  return {
    account,
    asset,
    opening: text(opening),
    debit: text(debit),
    credit: text(credit),
    closing: text(opening - debit + credit),
  }
}

/** By `asset account`, the sums of all entries before a moment: of the last day that was closed by then, and of what followed. */
async function sumsUntil(tx: Transaction, { customerId }: Book, moment: Moment): Promise<Map<string, Sums>> {
  const { rows: closed } = await tx.query<{ until: string | null }>(
    'select max(until) as until from closed_days where digest is not null and until <= $1',
    [moment.text],
  )
  const { rows } = await tx.query<{ account: string; asset: string; debit: string; credit: string }>(
    `
    select account, asset, sum(debit) as debit, sum(credit) as credit
    from (
      select account, asset, debit, credit
      from (
        select distinct on (customer_id, account, asset) account, asset, debit, credit
        from day_sums
        where ($1::uuid is null or customer_id = $1::uuid) and day < ($2::timestamptz at time zone 'UTC')::date
        order by customer_id, account, asset, day desc
      ) kept
      union all
      select account, asset, ${SUMS}
      from entries
      where ${OF_CUSTOMER} and created_at >= coalesce($2, '-infinity') and created_at < $3
      group by account, asset
    ) parts
    group by account, asset`,
    [customerId, closed[0]!.until, moment.text],
  )
  return new Map(
    rows.map(({ account, asset, debit, credit }) => {
      const units = (text: string) => parseStoredAmount(text, decimalsOf(asset))
      return [`${asset} ${account}`, { debit: units(debit), credit: units(credit) }]
    }),
  )
}

/** As text, so that no index but that of the time serves: all of a customer's entries would be read. */
const OF_CUSTOMER = `($1::uuid is null or customer_id::text = $1::uuid::text)`

/** A profile's balance in an asset over a time, as `AccountSums`. */
export type ProfileSums = Omit<AccountSums, 'account'> & { customer_id: string; profile_id: string }

const PAGE = 1_000

/** Reads each profile's balances over a time that is known (`completeUntil`), in the order of customers, profiles and assets. */
export async function* readProfileSums(
  { db, customerId }: Book,
  { from, to, asset }: { from: string; to: string; asset: string | undefined },
): AsyncGenerator<ProfileSums[]> {
  const customers = await db.query<{ customer_id: string }>(
    'select id as customer_id from customers where $1::uuid is null or id = $1 order by id',
    [customerId],
  )
  for (const { customer_id } of customers.rows) {
    let after: readonly [string, string] = [NIL_UUID, '']
    for (let page: ProfileSums[] | undefined; page === undefined || page.length === PAGE;) {
      const { rows } = await db.query<ProfileSums>(SELECT_PROFILES, [customer_id, ...after, from, to, asset])
      page = rows.map((row) => inDecimals(row))
      const last = page.at(-1)
      if (last !== undefined) after = [last.profile_id, last.asset]
      yield page
    }
  }
}

const balanceBefore = (time: string) => `
         coalesce((select balance_after from entries e
                   where e.customer_id = $1 and e.profile_id = b.profile_id and e.asset = b.asset and e.created_at < ${time}
                   order by e.created_at desc, e.version desc limit 1), 0)`
const sumWithin = (sum: string) => `
         coalesce((select ${sum} from entries e
                   where e.customer_id = $1 and e.profile_id = b.profile_id and e.asset = b.asset
                     and e.created_at >= $4 and e.created_at < $5), 0)`
const SELECT_PROFILES = `
  select $1::uuid as customer_id, b.profile_id, b.asset, ${balanceBefore('$4')} as opening,
         ${sumWithin('-sum(amount) filter (where amount < 0)')} as debit,
         ${sumWithin('sum(amount) filter (where amount > 0)')} as credit,
         ${balanceBefore('$5')} as closing
  from balances b
  where b.customer_id = $1 and (b.profile_id, b.asset) > ($2::uuid, $3) and ($6::text is null or b.asset = $6)
  order by b.profile_id, b.asset
  limit ${PAGE}`

const FIGURES = ['opening', 'debit', 'credit', 'closing'] as const

/** The figures as the API writes amounts. */
function inDecimals<Row extends Record<(typeof FIGURES)[number] | 'asset', string>>(row: Row): Row {
  const decimals = decimalsOf(row.asset)
  for (const name of FIGURES) row[name] = formatAmount(parseStoredAmount(row[name], decimals), decimals)
  return row
}
