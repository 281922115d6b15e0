import { Type } from 'typebox'
import { Closed, Items } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { forAll } from '../../db/database.ts'
import { operatorOperation } from '../operation.ts'
import { Paid, payStatements } from './pay-statements.ts'
import { periodOf } from './period.ts'

/** Pays the generated statements of the token's customer, each once: all, or those of a month. */
export const payGenerated = operatorOperation({
  method: 'POST',
  url: '/v2/operators/statements/pay',
  scope: 'operators:pay_statement',
  summary: 'Pay Statements',
  body: Closed({
    period: Type.Optional(
      Type.String({ maxLength: 7, description: 'Only the statement of this month: YYYY-MM.' }),
    ),
  }),
  reply: Items(Paid),
  async run({ body, customerId, origin, db }) {
    const period = body.period === undefined ? undefined : periodOf(body.period)
    if (body.period !== undefined && period === undefined)
      throw problem.badRequest('period must be a month, YYYY-MM', 'period')
    return { items: await payStatements(forAll(db), { period, customerId, origin }) }
  },
})
