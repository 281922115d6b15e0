import { NIL_UUID } from '../../contract/fields.ts'
import { transaction, type Transaction } from '../../db/database.ts'
import { pagesOf } from '../../db/rows.ts'
import type { Book, Time } from './book.ts'

/**
 * An account in an asset over a time, in decimal strings: `opening`, less `debit`, plus `credit` is `closing`. Negative: what
 * the platform has, such as money at its bank.
 */
export type Sums = Record<'asset' | 'opening' | 'debit' | 'credit' | 'closing', string>
/** All profiles are one account. */
export type AccountSums = Sums & { account: string }
export type ProfileSums = Sums & { customer_id: string; profile_id: string }

const DEBIT = 'coalesce(-sum(amount) filter (where amount < 0), 0)'
const CREDIT = 'coalesce(sum(amount) filter (where amount > 0), 0)'
/** Debits and credits of entries, as columns. */
export const SUMS = `${DEBIT} as debit, ${CREDIT} as credit`

/**
 * Sums the entries of each account within a time that is final, and those before it, from closed days and the entries since.
 * `sums` has all accounts of an asset together.
 */
export async function readSums({ db, customerId }: Book, { from, to }: Time) {
  const read = async (tx: Transaction) => {
    const closed = await tx.query<Record<'before_from' | 'before_to', string | null>>(
      `select max(until) filter (where until <= $1) as before_from, max(until) filter (where until <= $2) as before_to
       from closed_days where digest is not null`,
      [from.text, to.text],
    )
    const { before_from, before_to } = closed.rows[0]!
    const asked = [customerId, before_from, from.text, before_to, to.text]
    return tx.query<Sums & { account: string | null }>(SELECT_SUMS, asked)
  }
  const { rows } = await transaction(db, read, 'isolation level repeatable read read only')
  return {
    items: rows.filter((row): row is AccountSums => row.account !== null),
    sums: rows.flatMap(({ account, ...sums }) => (account === null ? [sums] : [])),
  }
}

/**
 * The sums of all entries before a moment: of the last day that was closed by then, and of what followed. The customer as
 * text, so that no index but that of the time serves: all of a customer's entries would be read.
 */
const sumsUntil = (closed: string, moment: string) => `
    select account, asset, sum(debit) as debit, sum(credit) as credit
    from (
      select account, asset, debit, credit
      from (
        select distinct on (customer_id, account, asset) account, asset, debit, credit
        from day_sums
        where ($1::uuid is null or customer_id = $1::uuid) and day < (${closed}::timestamptz at time zone 'UTC')::date
        order by customer_id, account, asset, day desc
      ) kept
      union all
      select account, asset, ${SUMS}
      from entries
      where ($1::uuid is null or customer_id::text = $1::uuid::text)
        and created_at >= coalesce(${closed}, '-infinity') and created_at < ${moment}
      group by account, asset
    ) parts
    group by account, asset`
const SELECT_SUMS = `
  with before as materialized (${sumsUntil('$2', '$3')}
  ), until as materialized (${sumsUntil('$4', '$5')}
  )
  select account, asset, trim_scale(sum(coalesce(b.credit - b.debit, 0))) as opening,
         trim_scale(sum(u.debit - coalesce(b.debit, 0))) as debit,
         trim_scale(sum(u.credit - coalesce(b.credit, 0))) as credit, trim_scale(sum(u.credit - u.debit)) as closing
  from until u
  left join before b using (account, asset)
  group by grouping sets ((asset, account), (asset))
  order by asset collate "C", account collate "C"`

const PAGE = 5_000

/**
 * Reads profiles' balances over a time that is final, a page at a time: of all assets, or of one, in which a profile had an
 * entry before its end. In the order of customers, profiles and assets.
 */
export const readProfileSums = (
  { db, customerId }: Book,
  { from, to, profileId, asset }: Time & { profileId?: string | undefined; asset?: string | undefined },
): AsyncGenerator<ProfileSums[]> =>
  pagesOf(PAGE, async (last) => {
    const after =
      last === undefined ? [NIL_UUID, NIL_UUID, ''] : [last.customer_id, last.profile_id, last.asset]
    const asked = [customerId, profileId, asset, from.text, to.text]
    return (await db.query<ProfileSums>(SELECT_PROFILES, [...asked, ...after])).rows
  })

const OF_BALANCE = 'e.customer_id = b.customer_id and e.profile_id = b.profile_id and e.asset = b.asset'
const balanceBefore = (time: string) => `
    case when b.updated_at < ${time} then b.available else (
      select e.balance_after from entries e
      where ${OF_BALANCE} and e.created_at < ${time}
      order by e.created_at desc, e.version desc
      limit 1
    ) end`
const sumWithin = (sum: string) =>
  `(select ${sum} from entries e where ${OF_BALANCE} and e.created_at >= $4 and e.created_at < $5)`
// Each look-up is a subquery of its own on a table: a cluster takes no other form.
const SELECT_PROFILES = `
  select customer_id, profile_id, asset, trim_scale(coalesce(opening, 0)) as opening, trim_scale(debit) as debit,
         trim_scale(credit) as credit, trim_scale(closing) as closing
  from (
    select b.customer_id, b.profile_id, b.asset, ${sumWithin(DEBIT)} as debit, ${sumWithin(CREDIT)} as credit,
           ${balanceBefore('$4')} as opening, ${balanceBefore('$5')} as closing
    from balances b
    where ($1::uuid is null or b.customer_id = $1) and ($2::uuid is null or b.profile_id = $2)
      and ($3::text is null or b.asset = $3) and (b.customer_id, b.profile_id, b.asset) > ($6::uuid, $7::uuid, $8::text)
  ) of_profile
  where closing is not null
  order by customer_id, profile_id, asset
  limit ${PAGE}`
