import { Temporal } from 'temporal-polyfill'
import type { Database, Queryable } from '../../db/database.ts'
import type { BankWire } from '../../money/records/bank-wires.ts'
import { WIRE_ASSET } from '../../money/movements/fiat-withdrawal.ts'
import { listOpenWires, readTakenWire } from '../wires/outgoing-wires.ts'
import { memosAmong } from '../wires/record-wires.ts'
import { amountOf, centsIn } from './statement.ts'
import type { StoredLine } from './store.ts'

/**
 * Which transfer a line of a bank statement is. The text of a line is written by strangers. So it only proposes; what is a return
 * says the bank's code; what was recorded, the bank's reference; and the commands' own functions check everything again.
 */

/** DEPOSIT, SENT, RETURN: what would be recorded. RECORDED: an operator has recorded it already. */
export interface Candidate {
  kind: 'DEPOSIT' | 'SENT' | 'RETURN' | 'RECORDED'
  memo?: string
  transfer_id?: string
}
/** `isShared`: it is a candidate of another line, too. */
export type Ranked = Candidate & { isNamed?: boolean; isExact?: boolean; isShared?: boolean }

const MEMO_LENGTH = 16
/** Most words of a line that may be a memo. A line with more has no proposal. */
const WORDS_MAX = 200
export const EXACT_DAYS_MAX = 5

/** Letters and digits alone: a memo as it is kept, however banks print it. */
export const plainOf = (text: string) => text.toUpperCase().replace(/[^A-Z0-9]+/g, '')
const textsOf = ({ text, customer_reference = '' }: StoredLine) =>
  `${text} ${customer_reference}`.toUpperCase()
/** Days between two dates or times. */
export const daysBetween = (a: string, b: string) =>
  Math.abs(Temporal.PlainDate.from(a.slice(0, 10)).until(b.slice(0, 10)).total('days'))

/** Whole words that together have the length of a memo: banks break and space them. */
function memoWords(line: StoredLine): string[] {
  const words = line.text
    .toUpperCase()
    .split(/[^A-Z0-9]+/)
    .filter(Boolean)
  const found = new Set<string>()
  for (let first = 0; first < words.length; first++) {
    let joined = ''
    for (let next = first; next < words.length && joined.length < MEMO_LENGTH; next++) joined += words[next]!
    if (joined.length === MEMO_LENGTH) found.add(joined)
  }
  return found.size > WORDS_MAX ? [] : [...found]
}

/** Words that may be a bank's reference. */
const referenceWords = (line: StoredLine): string[] =>
  [
    ...new Set(
      textsOf(line)
        .split(/\s+/)
        .flatMap((word) => [word, ...word.split(/[^A-Z0-9]+/)]),
    ),
  ].slice(0, WORDS_MAX)

type KnownWire = Pick<BankWire, 'kind' | 'bank_reference' | 'memo_id' | 'transfer_id' | 'amount'> &
  Record<'is_matched' | 'is_returned', boolean>

async function knownWires(
  db: Queryable,
  lines: readonly StoredLine[],
  memos: string[],
): Promise<KnownWire[]> {
  const returns = lines.filter(({ is_return, is_reversal }) => is_return || is_reversal)
  const { rows } = await db.query<KnownWire>(
    `select w.kind, w.bank_reference, w.memo_id, w.transfer_id, trim_scale(w.amount) as amount,
            exists (select from bank_matches m where m.transfer_id = w.transfer_id) as is_matched,
            exists (select from bank_wires r where r.returned_transfer_id = w.transfer_id) as is_returned
     from bank_wires w
     where w.asset = $1
       and (w.bank_reference = any ($2) or w.memo_id = any ($3) or w.kind = 'SENT' and w.amount = any ($4::numeric[]))
     order by w.recorded_at`,
    [
      WIRE_ASSET,
      [...lines.map((line) => line.bank_reference), ...returns.flatMap(referenceWords)],
      memos,
      lines.filter(({ amount }) => amount < 0n).map(({ amount }) => amountOf(-amount)),
    ],
  )
  return rows
}

/** The wires that an operator has taken and that pay one of these amounts, with their orders. */
async function takenWires(db: Database, lines: readonly StoredLine[]) {
  const amounts = new Set(lines.filter(({ amount }) => amount < 0n).map(({ amount }) => amountOf(-amount)))
  if (amounts.size === 0) return []
  const open = await listOpenWires(db)
  const taken = open.filter(
    ({ state, amount }) => state === 'TAKEN' && amounts.has(amountOf(centsIn(amount))),
  )
  return Promise.all(taken.map(({ transfer_id }) => readTakenWire(db, transfer_id)))
}
type TakenWire = Awaited<ReturnType<typeof takenWires>>[number]

/**
 * The candidates of lines that are not matched, in their order: one is a proposal, several are ambiguous. So is a transfer for
 * which two of the lines are candidates.
 */
export async function proposalsFor(db: Database, lines: readonly StoredLine[]): Promise<Ranked[][]> {
  const memos = await memosAmong(
    db,
    lines.flatMap((line) => (line.amount > 0n ? memoWords(line) : [])),
  )
  const [wires, taken] = [await knownWires(db, lines, memos), await takenWires(db, lines)]
  const found = lines.map((line) => {
    const recorded = wires.find(
      ({ kind, bank_reference }) =>
        bank_reference === line.bank_reference && (kind === 'SENT') === line.amount < 0n,
    )
    if (recorded !== undefined)
      return recorded.is_matched || recorded.kind === 'SENT_BACK' ? [] : [recordedAs(recorded)]
    return line.amount < 0n ? candidatesOut(line, wires, taken) : candidatesIn(line, wires, memos)
  })
  const targets = new Map<string | undefined, number>()
  for (const { transfer_id } of found.flat()) targets.set(transfer_id, (targets.get(transfer_id) ?? 0) + 1)
  const isShared = ({ transfer_id }: Ranked) => targets.get(transfer_id)! > 1
  return found.map((own) =>
    own.map((candidate) =>
      candidate.transfer_id && isShared(candidate)
        ? { ...candidate, isShared: true, isExact: false }
        : candidate,
    ),
  )
}

const recordedAs = ({ transfer_id }: KnownWire): Ranked => ({ kind: 'RECORDED', transfer_id })

function candidatesIn(line: StoredLine, wires: KnownWire[], memos: string[]): Ranked[] {
  if (line.is_return || line.is_reversal) {
    const words = referenceWords(line)
    return wires
      .filter((wire) => wire.kind === 'SENT' && !wire.is_returned && words.includes(wire.bank_reference))
      .filter(({ amount }) => centsIn(amount) >= line.amount)
      .map(({ transfer_id }) => ({ kind: 'RETURN', transfer_id }))
  }
  const own = memoWords(line)
  return memos
    .filter((memo) => own.includes(memo))
    .flatMap((memo): Ranked[] => [
      { kind: 'DEPOSIT', memo, isExact: true },
      // A person may have recorded it with another of its references: to credit it again needs a person.
      ...wires
        .filter(
          ({ kind, is_matched, memo_id, amount }) =>
            kind === 'DEPOSIT' && !is_matched && memo_id === memo && amount === amountOf(line.amount),
        )
        .map(recordedAs),
    ])
}

/** By what the platform or its bank has chosen, the id and the reference: memo and payee are the customer's words. */
function candidatesOut(line: StoredLine, wires: KnownWire[], taken: TakenWire[]): Ranked[] {
  if (line.is_reversal) return []
  const amount = amountOf(-line.amount)
  const [text, words] = [plainOf(textsOf(line)), referenceWords(line)]
  const orders = taken
    .filter((order) => amountOf(centsIn(order.amount)) === amount)
    .map(({ transfer_id, taken_at }): Ranked => {
      const isNamed = text.includes(plainOf(transfer_id))
      const isExact = isNamed && daysBetween(taken_at, line.date) <= EXACT_DAYS_MAX
      return { kind: 'SENT', transfer_id, isNamed, isExact }
    })
  const sent = wires
    .filter((wire) => wire.kind === 'SENT' && !wire.is_matched && wire.amount === amount)
    .map((wire) => {
      const isNamed = text.includes(plainOf(wire.transfer_id)) || words.includes(wire.bank_reference)
      return { ...recordedAs(wire), isNamed }
    })
  const candidates = [...orders, ...sent]
  const named = candidates.filter(({ isNamed }) => isNamed)
  return named.length > 0 ? named : candidates
}
