import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { signedIn } from './decide.ts'
import { daysBetween } from './match.ts'
import { presentOf } from '../../db/rows.ts'
import { amountOf, refuse } from './statement.ts'

/** Breaks that an answer names. All of them are summed. */
const BREAKS_MAX = 1_000

/** What only the bank has, also where it was recorded after the date; what only the ledger has; where the amounts differ. */
interface Row
  extends Record<'amount' | 'date', string>, Record<'line_id' | 'transfer_id' | 'text', string | null> {
  kind: 'ONLY_BANK' | 'ONLY_LEDGER' | 'DIFFERS'
}

/** The entries of the account. Their sign is the ledger's: negative is what the bank has. */
const OF_BANK = "e.account = 'bank' and e.asset = 'USD' and e.created_at"

/** What differs between the statements up to this one and the entries up to the end of the date. */
async function readBreaks(tx: Transaction, position: number, date: string): Promise<Row[]> {
  const ofBank = await tx.query<Row>(
    `select 'ONLY_BANK' as kind, l.amount, l.date::text as date, l.id as line_id, l.text, null::uuid as transfer_id
     from bank_lines l
     join bank_statements s on s.position = l.position and l.ordinal <= s.lines
     where l.position <= $1 and not exists (select from bank_matches m where m.line_id = l.id)
     order by l.position, l.ordinal`,
    [position],
  )
  const later = await tx.query<Row>(
    `select 'ONLY_BANK' as kind, m.amount, m.date::text as date, m.line_id, e.transfer_id, null as text
     from entries e
     join bank_matches m on m.transfer_id = e.transfer_id and m.position <= $1
     where ${OF_BANK} >= $2::date + 1
     order by m.line_id`,
    [position, date],
  )
  const ofLedger = await tx.query<Row>(
    `select case when m.line_id is null then 'ONLY_LEDGER' else 'DIFFERS' end as kind, coalesce(m.amount, 0) + e.amount as amount,
            e.created_at::date::text as date, m.line_id, e.transfer_id, null as text
     from entries e
     left join bank_matches m on m.transfer_id = e.transfer_id and m.position <= $1
     where ${OF_BANK} < $2::date + 1 and m.amount is distinct from -e.amount
     order by e.created_at, e.transfer_id`,
    [position, date],
  )
  return [...ofBank.rows, ...later.rows, ...ofLedger.rows]
}

/**
 * Compares the closing balance of the last statement until a date (default: today), with the ledger's account `bank` at the end of
 * that date in UTC, and explains the difference. Decimal strings. It reads every entry. Throws a Refusal where no statement is that
 * old.
 */
export async function reconcile(db: Database, asked?: string) {
  const read = async (tx: Transaction) => {
    // No index has the entries of an account in the order of time.
    await tx.query('set local enable_seqscan = on')
    const { rows: statements } = await tx.query<
      Record<'date' | 'statement_date' | 'opening' | 'closing', string> & { position: number }
    >(
      `select asked.date::text as date, s.position, s.date::text as statement_date, s.closing,
              (select opening from bank_statements where position = 1) as opening
       from (select coalesce($1::date, clock_timestamp()::date) as date) asked
       join bank_statements s on s.date <= asked.date
       order by s.position desc limit 1`,
      [asked],
    )
    const last = statements[0] ?? refuse(`no bank statement of ${asked ?? 'today'} or before was imported`)
    const sums = await tx.query<{ ledger: string }>(
      `select coalesce(-sum(e.amount), 0) as ledger from entries e where ${OF_BANK} < $1::date + 1`,
      [last.date],
    )
    return { ...last, ...sums.rows[0]!, rows: await readBreaks(tx, last.position, last.date) }
  }
  const { rows, date, statement_date, ...sums } = await transaction(
    db,
    read,
    'isolation level repeatable read read only',
  )
  const [bank, ledger, opening] = [sums.closing, sums.ledger, sums.opening].map(signedIn) as [
    bigint,
    bigint,
    bigint,
  ]
  const remainder = rows.reduce((left, { amount }) => left - signedIn(amount), bank - ledger - opening)
  const items = rows.slice(0, BREAKS_MAX).map((row) => ({
    ...presentOf(row),
    amount: amountOf(signedIn(row.amount)),
    age_days: daysBetween(row.date, date),
  }))
  return {
    ...{ date, statement_date, bank: amountOf(bank), ledger: amountOf(ledger), opening: amountOf(opening) },
    ...{ difference: amountOf(bank - ledger), items, left_off: rows.length - items.length },
    ...{ remainder: amountOf(remainder), explained: remainder === 0n },
  }
}
