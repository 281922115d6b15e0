import { Type, type Static } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { csvIn } from '../../contract/csv.ts'
import { Amount, AssetSymbol, Closed, Items, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import { forAll, type Database } from '../../db/database.ts'
import { operatorOperation } from '../operation.ts'
import { reportPeriod, ReportTime } from './book.ts'

const Wire = Type.Object({
  recorded_at: Timestamp('When an operator recorded it.'),
  kind: OneOf(['DEPOSIT', 'RETURN', 'SENT', 'SENT_BACK'], 'What the wire was.'),
  bank_reference: Type.String({ description: "The bank's reference." }),
  asset: AssetSymbol,
  amount: Amount('The amount.'),
  transfer_id: Uuid('The transfer that it made or completed.'),
  memo_id: Type.Optional(Type.String({ description: 'Of a deposit: its memo.' })),
  returned_transfer_id: Type.Optional(Uuid('Of a return: the withdrawal that came back.')),
  recorded_by: Type.String({ description: 'The operator.' }),
})
type Wire = Static<typeof Wire>

const PAGE = 1_000
/** Wires of an answer in JSON; a file has all of them. */
const WIRES_MAX = 10_000

/** Reads the wires that operators recorded in a time, in the order of their recording. */
async function* readWires(db: Database, query: Record<string, unknown>): AsyncGenerator<Wire[]> {
  const { from, to } = reportPeriod(query)
  let after: [string, string] = [from.text, '']
  for (let page: Wire[] | undefined; page === undefined || page.length === PAGE;) {
    const { rows } = await forAll(db).query<Wire>(
      `
      select recorded_at, kind, bank_reference, asset, amount, transfer_id, memo_id, returned_transfer_id, recorded_by
      from bank_wires
      where (recorded_at, direction || bank_reference) > ($1, $2) and recorded_at < $3
      order by recorded_at, direction || bank_reference
      limit ${PAGE}`,
      [...after, to.text],
    )
    page = rows.map(({ amount, asset, ...wire }) => {
      const given = Object.entries(wire).filter(([, value]) => value !== null)
      const decimals = decimalsOf(asset)
      return {
        ...Object.fromEntries(given),
        asset,
        amount: formatAmount(parseStoredAmount(amount, decimals), decimals),
      } as Wire
    })
    const last = page.at(-1)
    if (last !== undefined)
      after = [last.recorded_at, (last.kind === 'SENT' ? 'OUT' : 'IN') + last.bank_reference]
    yield page
  }
}

/** The wires of a day, to be held against the bank's statement. */
export const listRecordedWires = operatorOperation({
  method: 'GET',
  url: '/v2/reports/wires',
  scope: 'operators:read_wire',
  summary: 'List Recorded Wires',
  query: Closed({
    from: ReportTime('The beginning of the time.'),
    to: ReportTime('Its end, not included (default: now).'),
  }),
  reply: Items(Wire),
  async run({ db, query }) {
    const items: Wire[] = []
    for await (const wires of readWires(db, query)) if (items.push(...wires) > WIRES_MAX) break
    return { items: items.slice(0, WIRES_MAX) }
  },
  forms: {
    async 'text/csv'({ db, query }) {
      return csvIn(Object.keys(Wire.properties), readWires(db, query), ['amount'])
    },
  },
})
