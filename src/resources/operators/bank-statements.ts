import { Type } from 'typebox'
import { Closed, Items, OneOf, Text, Timestamp, Uuid } from '../../contract/fields.ts'
import { forAll } from '../../db/database.ts'
import type { Request } from '../../http/operation.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import {
  decideLine,
  importStatements,
  LISTED_MAX,
  onlyOf,
  readLines,
} from '../../rails/bank-statements/decide.ts'
import { proposalsFor } from '../../rails/bank-statements/match.ts'
import { FILE_BYTES_MAX, readStatements } from '../../rails/bank-statements/read.ts'
import { reconcile } from '../../rails/bank-statements/reconciliation.ts'
import { amountOf } from '../../rails/bank-statements/statement.ts'
import { isExactOn, listStatements, setExact } from '../../rails/bank-statements/store.ts'
import { openScreeningOfCommand } from '../../rails/screening/open-screening.ts'
import { operatorOperation, type OperatorContext } from '../operation.ts'
import { byOf, requireLive } from './wires.ts'

/** Statements of the platform's bank account: what `bursar bank` does (docs/guides/live-without-a-bank-interface.md). */

const Day = Type.String({ format: 'date', maxLength: 10, pattern: '^[12]', description: 'A date.' })
const Signed = Type.String({ description: 'An amount in USD; negative: it left, or is missing.' })
const Word = Type.String({ description: 'As the bank or an operator wrote it.' })
const Count = Type.Integer({ description: 'A number.' })
const Kind = OneOf(
  ['DEPOSIT', 'SENT', 'RETURN', 'RECORDED'],
  'A deposit, a sent wire, a return, or a wire that an operator has recorded.',
)
const Changed = Type.Boolean({ description: 'False when it was done before: then nothing changed.' })
const ItsTransfer = { transfer_id: Uuid('Its transfer.'), kind: Kind }
const Match = Type.Object({ line_id: Uuid('The line.'), ...ItsTransfer, changed: Changed })
const Rule = {
  exact: Type.Boolean({ description: 'Whether exact lines are matched at import, without a person.' }),
}
const Statement = { position: Count, statement_id: Word, date: Day, lines: Count }
/** Candidates that a line names: it may have as many as there are wires of its amount. */
const CANDIDATES_MAX = 20
/** A body of base64 is a third longer than the file. */
const FILE_TEXT_MAX = Math.ceil(FILE_BYTES_MAX / 3) * 4

type Asked = Pick<OperatorContext, 'db' | 'ledger' | 'settings'> & Pick<Request, 'origin'>
const matchingOf = async ({ ledger, settings, ...request }: Asked) => {
  requireLive(settings)
  const db = forAll(request.db)
  return { db, ledger, screening: await openScreeningOfCommand(db, settings), ...(await byOf(db, request)) }
}

export const importBankStatement = operatorOperation({
  method: 'POST',
  url: '/v2/bank/statements',
  scope: 'operators:write_wire',
  summary: 'Import Bank Statement',
  reply: Type.Object({
    account: Type.String({ description: 'The account of all statements: that of the first one.' }),
    items: Type.Array(
      Type.Object({ ...Statement, is_new: Type.Boolean({ description: 'False: it was imported before.' }) }),
    ),
    matched: Type.Array(Match, { description: 'Lines that were matched without a person.' }),
    changed: Changed,
  }),
  bodyLimit: FILE_TEXT_MAX + 1024,
  body: Closed({
    file: Type.String({
      minLength: 1,
      maxLength: FILE_TEXT_MAX,
      description: 'The file in base64: camt.053, MT940 or BAI2.',
    }),
  }),
  async run({ body, ...request }) {
    const matching = await matchingOf(request)
    const statements = await readStatements(Buffer.from(body.file, 'base64'))
    const imported = await importStatements(matching, statements)
    const changed = imported.matched.length > 0 || imported.items.some(({ is_new }) => is_new)
    return { account: statements[0]!.account, ...imported, changed }
  },
})

export const listBankStatements = operatorOperation({
  method: 'GET',
  url: '/v2/bank/statements',
  scope: 'operators:read_wire',
  summary: 'List Bank Statements',
  reply: Type.Object({
    items: Type.Array(
      Type.Object({
        ...{ ...Statement, format: Word, account: Word, opening: Signed, closing: Signed },
        ...{ imported_by: Word, imported_at: Timestamp('When it was imported.') },
      }),
    ),
    ...Rule,
  }),
  run: async ({ db }) => ({ items: await listStatements(forAll(db)), exact: await isExactOn(forAll(db)) }),
})

export const listBankLines = operatorOperation({
  method: 'GET',
  url: '/v2/bank/lines',
  scope: 'operators:read_wire',
  summary: 'List Bank Lines',
  description: `At most ${LISTED_MAX}, oldest first.`,
  query: Closed({
    state: Type.Optional(OneOf(['OPEN', 'MATCHED'], 'Lines that wait, or that have a transfer.')),
    date: Type.Optional(Day),
  }),
  reply: Items(
    Type.Object({
      ...{ id: Uuid('The line.'), date: Day, amount: Signed, bank_reference: Word, text: Word, code: Word },
      ...{ is_return: Type.Boolean(), is_reversal: Type.Boolean(), customer_reference: Type.Optional(Word) },
      charges: Type.Optional(Signed),
      state: OneOf(['PROPOSED', 'AMBIGUOUS', 'OPEN', 'MATCHED'], 'PROPOSED: it has one candidate.'),
      candidates: Type.Array(Type.Partial(Type.Object({ ...ItsTransfer, memo: Word }))),
      ...Type.Partial(Type.Object({ ...ItsTransfer, rule: Word, matched_by: Word })).properties,
    }),
  ),
  async run({ query, db }) {
    const lines = await readLines(forAll(db), query)
    const open = lines.filter(({ transfer_id }) => transfer_id === undefined)
    const proposals = await proposalsFor(forAll(db), open)
    const items = lines.map(({ amount, charges, ...line }) => {
      const candidates = proposals[open.findIndex(({ id }) => id === line.id)] ?? []
      const unmatched = onlyOf(candidates) ? 'PROPOSED' : candidates.length > 0 ? 'AMBIGUOUS' : 'OPEN'
      const amounts = {
        amount: amountOf(amount),
        ...(charges !== undefined && { charges: amountOf(charges) }),
      }
      return {
        ...line,
        ...amounts,
        candidates: candidates.slice(0, CANDIDATES_MAX),
        state: line.transfer_id === undefined ? unmatched : 'MATCHED',
      } as const
    })
    return { items }
  },
})

export const matchBankLine = operatorOperation({
  method: 'POST',
  url: '/v2/bank/lines/:id/match',
  scope: 'operators:write_wire',
  summary: 'Match Bank Line',
  reply: Match,
  params: Closed({ id: Uuid('The line.') }),
  body: Closed({
    memo: Type.Optional(Text(200, 'It is a deposit with this memo.', 1)),
    transfer_id: Type.Optional(Uuid('It is this wire, or returns it. Without both, it is what is proposed.')),
  }),
  run: async ({ params: { id }, body, ...request }) => decideLine(await matchingOf(request), id, body),
})

export const setBankRule = operatorOperation({
  method: 'POST',
  url: '/v2/bank/rules',
  scope: 'operators:write_wire',
  summary: 'Set Bank Rule',
  reply: Type.Object({ ...Rule, changed: Changed }),
  body: Closed(Rule),
  async run({ body: { exact }, db, ...request }) {
    return { exact, changed: await setExact(forAll(db), exact, await byOf(db, request)) }
  },
})

export const getReconciliation = operatorOperation({
  method: 'GET',
  url: '/v2/reports/bank-reconciliation',
  scope: 'operators:read_wire',
  summary: 'Get Bank Reconciliation',
  description: 'At the end of a date, in UTC; by default of today.',
  query: Closed({ date: Type.Optional(Day) }),
  reply: Type.Object({
    ...{ date: Day, statement_date: Day, bank: Signed, ledger: Signed, difference: Signed, opening: Signed },
    items: Type.Array(
      Type.Object({
        kind: OneOf(['ONLY_BANK', 'ONLY_LEDGER', 'DIFFERS'], 'Which of the two has it.'),
        ...{ amount: Signed, date: Day, age_days: Count, text: Type.Optional(Word) },
        ...{ line_id: Type.Optional(Uuid('The line.')), transfer_id: Type.Optional(Uuid('The transfer.')) },
      }),
    ),
    left_off: Type.Integer({ description: 'How many more there are; the sums have them.' }),
    remainder: Signed,
    explained: Type.Boolean({ description: 'Whether the remainder is 0.' }),
  }),
  run: ({ query: { date }, db }) => reconcile(forEverybody(forAll(db)), date),
})
