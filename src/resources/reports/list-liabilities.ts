import { Type } from 'typebox'
import { Amount, AssetSymbol, Closed, NamedObject, Timestamp } from '../../contract/fields.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { forAll } from '../../db/database.ts'
import { microsToTimestamp } from '../../http/time-bounds.ts'
import { readLiabilities } from '../../money/books/liabilities.ts'
import { operation } from '../operation.ts'
import { liabilityMoment } from './liability-moment.ts'

const Liability = NamedObject('Liability', {
  asset: AssetSymbol,
  decimals: Type.Integer({ description: 'Decimals of the smallest unit, in which the tree counts.' }),
  leaves: Type.Integer({ description: 'Number of balances, those of zero included.' }),
  total: Amount('Sum of the balances.'),
  root: Type.String({ description: 'It commits to the number, the total and each balance: 64 hex digits.' }),
})

/** What the platform owes all its profiles, in a form that it cannot change for one of them alone. */
export const listLiabilities = operation({
  method: 'GET',
  url: '/v2/reports/liabilities',
  scope: 'reports:read_report',
  tag: 'Reports',
  summary: 'List Liabilities',
  description:
    'What the platform owes the profiles of all customers, by asset, with the root of a Merkle sum tree: publish it, and each holder can check by Get Liability Proof that its balance is in the total. One moment has one root while the oldest master key is kept.',
  query: Closed({
    at: Type.Optional(Timestamp('Moment of the balances: now at the latest.')),
  }),
  reply: Type.Object({
    at: Timestamp('Moment of the balances.'),
    items: Type.Array(Liability, { description: 'By ticker.' }),
  }),
  async run({ query, db, rowMacs }) {
    const at = microsToTimestamp(await liabilityMoment(db, query.at))
    return { at, items: await readLiabilities(forEverybody(forAll(db)), rowMacs, at) }
  },
})
