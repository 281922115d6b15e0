import { Type, type Static, type TObject } from 'typebox'
import { AssetSymbol, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import { pagesOf, presentOf } from '../../db/rows.ts'
import { Figure, PERIOD, report } from './report.ts'

const PAGE = 1_000
const LINE = {
  recorded_at: Timestamp('When an operator recorded it.'),
  kind: OneOf(['DEPOSIT', 'RETURN', 'SENT', 'SENT_BACK'], 'What the wire was.'),
  bank_reference: Type.String({ description: "The bank's reference." }),
  asset: AssetSymbol,
  amount: Figure('The amount.'),
  transfer_id: Uuid('The transfer that it made or completed.'),
  memo_id: Type.Optional(Type.String({ description: 'Of a deposit: its memo.' })),
  returned_transfer_id: Type.Optional(Uuid('Of a return: the withdrawal that came back.')),
  recorded_by: Type.String({ description: 'The operator.' }),
}
type Wire = Static<TObject<typeof LINE>> & { place: string }

export const listRecordedWires = report({
  url: '/v2/reports/wires',
  ...{ scope: 'operators:read_wire', tag: 'Operators', forOperators: true },
  summary: 'List Recorded Wires',
  description: "The wires that operators recorded in a time, with the bank's references.",
  query: PERIOD,
  line: LINE,
  async read({ book: { db }, time: { from, to } }) {
    const lines = pagesOf(PAGE, async (last?: Wire) => {
      const { rows } = await db.query<Wire>(
        `select recorded_at, kind, bank_reference, asset, trim_scale(amount) as amount, transfer_id, memo_id, returned_transfer_id,
                recorded_by, direction || bank_reference as place
         from bank_wires
         where (recorded_at, direction || bank_reference) > ($1, $2) and recorded_at < $3
         order by recorded_at, direction || bank_reference
         limit ${PAGE}`,
        [last?.recorded_at ?? from.text, last?.place ?? '', to.text],
      )
      return rows.map(presentOf)
    })
    return { lines }
  },
})
