import { Type, type Static } from 'typebox'
import { OneOf, Uuid } from '../../contract/fields.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { presentOf } from '../../db/rows.ts'
import { LINES, LISTED_MAX } from './match.ts'
import { refuse } from './statement.ts'

export const Day = Type.String({ format: 'date', maxLength: 10, pattern: '^[12]', description: 'A date.' })
export const Signed = Type.String({ description: 'An amount in USD; negative: it left, or is missing.' })
const Break = Type.Object({
  kind: OneOf(['ONLY_BANK', 'ONLY_LEDGER', 'DIFFERS'], 'Which of the two has it, until the date.'),
  ...{ amount: Signed, date: Day, age_days: Type.Integer(), text: Type.Optional(Type.String()) },
  ...{ line_id: Type.Optional(Uuid('The line.')), transfer_id: Type.Optional(Uuid('The transfer.')) },
})
export const Reconciliation = Type.Object({
  ...{ date: Day, statement_date: Day, bank: Signed, ledger: Signed, difference: Signed, opening: Signed },
  items: Type.Array(Break),
  left_off: Type.Integer({ description: 'How many more there are; the sums have them.' }),
  remainder: Signed,
  explained: Type.Boolean({ description: 'Whether the remainder is 0.' }),
})
type Sums = Omit<Static<typeof Reconciliation>, 'date' | 'items' | 'left_off' | 'explained'>

/** Entries of the ledger's account until the end of a date. Their sign is the ledger's: negative is what the bank has. */
const OF_BANK = "account = 'bank' and asset = 'USD' and created_at < $1::date + 1"

/**
 * Compares the closing balance of the last statement until a date (default: today), with the ledger's account `bank` at the end of
 * that date in UTC, and explains the difference: a line and the entry of its transfer are one, and what is left of them is a break.
 * Decimal strings. It reads every entry. Throws a Refusal where no statement is that old.
 */
export async function reconcile(db: Database, asked?: string) {
  const read = async (tx: Transaction) => {
    // No index has the entries of an account in the order of time.
    await tx.query('set local enable_seqscan = on')
    const date = asked ?? (await readClock(tx)).text.slice(0, 10)
    const { rows: sums } = await tx.query<Sums>(
      `select s.date::text as statement_date, s.closing as bank, first.opening, trim_scale(ledger) as ledger,
              trim_scale(s.closing - ledger) as difference, trim_scale(s.closing - ledger - first.opening) as remainder
       from bank_statements s
       join bank_statements first on first.position = 1
       cross join (select coalesce(-sum(amount), 0) as ledger from entries where ${OF_BANK}) of_bank
       where s.date <= $1::date
       order by s.position desc limit 1`,
      [date],
    )
    if (sums[0] === undefined) return refuse(`no bank statement of ${date} or before was imported`)
    const { rows } = await tx.query<Static<typeof Break> & { remainder: string; count: number }>(
      `select case when count(line_id) = 0 then 'ONLY_LEDGER' when count(line_id) = count(*) then 'ONLY_BANK' else 'DIFFERS' end as kind,
              trim_scale(sum(amount)) as amount, max(date)::text as date, $1::date - max(date) as age_days,
              max(line_id::text) as line_id, transfer_id, max(text) as text,
              trim_scale($2 - sum(sum(amount)) over ()) as remainder, (count(*) over ())::integer as count
       from (
         select l.id as line_id, m.transfer_id, l.date, l.amount, l.text
         from ${LINES} where r.date <= $1::date
         union all
         select null, transfer_id, created_at::date, amount, null from entries where ${OF_BANK}
       ) both_sides
       group by transfer_id, case when transfer_id is null then line_id end
       having sum(amount) <> 0
       order by max(date), line_id, transfer_id
       limit ${LISTED_MAX}`,
      [date, sums[0].remainder],
    )
    const { remainder, count } = rows[0] ?? { ...sums[0], count: 0 }
    const items = rows.map(({ remainder: _, count: __, ...row }) => presentOf(row))
    const left_off = count - items.length
    return { date, ...sums[0], items, left_off, remainder, explained: remainder === '0' }
  }
  return transaction(db, read, 'isolation level repeatable read read only')
}
