import { Type } from 'typebox'
import { AssetSymbol, Closed, Timestamp, Uuid } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { forAll } from '../../db/database.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { HorizonUnknown } from '../../db/horizon.ts'
import { momentAt } from '../../db/ids.ts'
import { microsToTimestamp, timeBounds, timeRange } from '../../http/time-bounds.ts'
import { reusedAnswers } from '../../http/reused-answers.ts'
import { readLedgerBalances, type LedgerBalances } from '../../money/ledger/account-balances.ts'
import { operatorOperation } from '../operation.ts'

const AccountBalance = Type.Object({
  account: Type.String({ description: 'The account; `profile` is all profiles together.' }),
  asset: AssetSymbol,
  opening: Type.String({ description: 'Before the time; negative: what the platform has.' }),
  debit: Type.String({ description: 'What was taken in the time.' }),
  credit: Type.String({ description: 'What was added in the time.' }),
  closing: Type.String({ description: 'At the end of the time.' }),
})

const reused = reusedAnswers<LedgerBalances>()

/** The balances of the ledger's accounts for a time that ends now at the latest: of all customers, or of one. */
export const listLedgerBalances = operatorOperation({
  method: 'GET',
  url: '/v2/operators/ledger/balances',
  scope: 'operators:read_ledger',
  summary: 'List Ledger Balances',
  query: Closed({
    customer_id: Type.Optional(Uuid('Only the entries of this customer.')),
    ...timeBounds('created_at'),
  }),
  reply: Type.Object({
    from: Timestamp('The beginning of the time.'),
    to: Timestamp('Its end: now at the latest.'),
    items: Type.Array(AccountBalance),
    sums: Type.Array(AccountBalance, { description: 'All accounts together, by asset.' }),
  }),
  run({ query, db }) {
    const { from, to } = timeRange(query, 'created_at')
    const asked = { from: momentAt(microsToTimestamp(from)), to: momentAt(microsToTimestamp(to)) }
    return reused(JSON.stringify([query.customer_id, asked]), () =>
      readLedgerBalances(forEverybody(forAll(db)), asked, query.customer_id).catch((error: unknown) => {
        if (!(error instanceof HorizonUnknown)) throw error
        throw problem.unavailable(`balances are final at no moment: ${error.message}`, error)
      }),
    )
  },
})
