import { Type } from 'typebox'
import { Closed, Items, Lines, OneOf, Text, Uuid } from '../../contract/fields.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { forAll } from '../../db/database.ts'
import { Candidate, decideLine, importStatements, withProposals } from '../../rails/bank-statements/match.ts'
import { FILE_BYTES_MAX, readStatements } from '../../rails/bank-statements/read.ts'
import * as stored from '../../rails/bank-statements/store.ts'
import { Changed } from '../../rails/wires/outgoing-wires.ts'
import { operatorOperation } from '../operation.ts'
import { recordingOf } from './wires.ts'

/** Statements of the platform's bank account: what `bursar bank` does (docs/guides/live-without-a-bank-interface.md). */

const { Day, Kind, Line, Transfer } = stored
const Match = Type.Object({ line_id: Uuid('The line.'), transfer_id: Transfer, kind: Kind, changed: Changed })
/** A body of base64 is a third longer than the file. */
const FILE_TEXT_MAX = Math.ceil(FILE_BYTES_MAX / 3) * 4

export const importBankStatement = operatorOperation({
  method: 'POST',
  url: '/v2/bank/statements',
  scope: 'operators:write_wire',
  summary: 'Import Bank Statement',
  reply: Type.Object({
    account: Type.String({ description: 'The account of all statements: that of the first one.' }),
    items: Type.Array(Type.Object({ date: Day, lines: Type.Integer(), is_new: Changed })),
    matched: Type.Array(Match, { description: 'Lines that were matched without a person.' }),
    changed: Changed,
  }),
  bodyLimit: FILE_TEXT_MAX + 1024,
  body: Closed({
    file: Lines(FILE_TEXT_MAX, 'The file in base64: camt.053, MT940 or BAI2.'),
    exact: Type.Optional(Type.Boolean({ description: 'Match exact lines of camt.053 without a person.' })),
  }),
  run: async ({ body: { file, exact }, ...request }) =>
    importStatements(await recordingOf(request), await readStatements(Buffer.from(file, 'base64')), exact),
})

export const listBankLines = operatorOperation({
  method: 'GET',
  url: '/v2/bank/lines',
  scope: 'operators:read_wire',
  summary: 'List Bank Lines',
  description: `At most ${stored.LISTED_MAX}, newest first.`,
  query: Closed({
    state: Type.Optional(OneOf(['OPEN', 'MATCHED'], 'Lines that wait, or that have a transfer.')),
    date: Type.Optional(Day),
  }),
  reply: Items(
    Type.Object({
      ...Line.properties,
      state: OneOf(['PROPOSED', 'AMBIGUOUS', 'OPEN', 'MATCHED'], 'PROPOSED: it has one candidate.'),
      candidates: Type.Array(Candidate, { description: 'A memo, or transfers.' }),
    }),
  ),
  run: async ({ query, db }) => ({
    items: await withProposals(forAll(db), await stored.readLines(forAll(db), query)),
  }),
})

export const matchBankLine = operatorOperation({
  method: 'POST',
  url: '/v2/bank/lines/:id/match',
  scope: 'operators:write_wire',
  summary: 'Match Bank Line',
  reply: Match,
  params: Closed({ id: Uuid('The line.') }),
  body: Closed({ is: Type.Optional(Text(200, 'A memo, or a transfer. Without: the proposal.', 1)) }),
  run: async ({ params: { id }, body, ...request }) =>
    decideLine(await recordingOf(request), id, body.is?.toLowerCase()),
})

export const getReconciliation = operatorOperation({
  method: 'GET',
  url: '/v2/reports/bank-reconciliation',
  scope: 'operators:read_wire',
  summary: 'Get Bank Reconciliation',
  description: 'At the end of a date, in UTC; by default of today.',
  query: Closed({ date: Type.Optional(Day) }),
  reply: stored.Reconciliation,
  run: ({ query: { date }, db }) => stored.reconcile(forEverybody(forAll(db)), date),
})
