import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, OneOf, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { readOperation } from '../operation.ts'
import { explainStatementOf } from './explain-statement.ts'
import { REWARD_ASSET } from './statement.ts'

const Derived = (description: string) => Type.String({ description, examples: ['12.345678901234'] })

export const getStatementExplanation = readOperation({
  url: '/v2/statements/:id/explanation',
  scope: 'statements:read_statement',
  tag: 'Statements',
  summary: 'Explain Statement',
  description:
    "Computes a generated statement again from the ledger's entries, day by day, and compares the result with the statement. 404 until it is generated.",
  id: 'Statement id.',
  example: EXAMPLE.statement_id,
  reply: Type.Object({
    statement_id: Uuid('Statement.'),
    holds: Type.Boolean({ description: 'Whether the result equals the amount of the statement.' }),
    asset: AssetSymbol,
    stated: Amount('The amount of the statement.'),
    computed: Amount('The amount computed again: the sum of the products by 86,400 and 365, rounded down.'),
    method: OneOf(['TIME_WEIGHTED'], 'Which balance of a day earns: its average.'),
    products: Derived('The sum of balance x seconds x rate over all days, exactly.'),
    days: Type.Array(
      Type.Object({
        day: Type.String({ description: 'Day, UTC.', examples: ['2026-01-31'] }),
        balance: Derived('The balance that earns, cut after 12 decimals.'),
        rate: Type.String({ description: 'The annual rate of the day.', examples: ['0.0376'] }),
        reward: Derived('The balance times the rate by 365, cut after 12 decimals.'),
      }),
    ),
  }),
  async run({ params, customerId, db }) {
    const explained = await explainStatementOf(db, customerId, params.id)
    if (explained === undefined) throw problem.notFound('statement', params.id)
    const { statement, derivation } = explained
    const stated = statement.metadata!.total_amount
    const { days, products, total } = derivation
    return {
      statement_id: statement.id,
      holds: stated === total,
      asset: REWARD_ASSET,
      stated,
      computed: total,
      method: 'TIME_WEIGHTED' as const,
      products,
      days: days.map(({ day, average_balance: balance, rate, reward }) => ({ day, balance, rate, reward })),
    }
  },
})
