import { Type } from 'typebox'
import { Amount, AssetSymbol, Closed, NamedObject, Timestamp } from '../../contract/fields.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { forAll } from '../../db/database.ts'
import { EVER } from '../../http/time-bounds.ts'
import { completeUntil } from '../../money/books/book.ts'
import { readLiabilities } from '../../money/books/liabilities.ts'
import { operation } from '../operation.ts'
import { reported, reportTime, ReportTime } from './book.ts'

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
  query: Closed({ at: ReportTime('Balances before this moment (default: now).') }),
  reply: Type.Object({
    at: Timestamp('Balances before this moment: now at the latest.'),
    items: Type.Array(Liability, { description: 'By ticker.' }),
  }),
  async run({ query, db, rowMacs }) {
    const whole = { db: forEverybody(forAll(db)), customerId: undefined }
    const at = await reported(completeUntil(whole, reportTime(query, 'at', EVER.to)))
    return { at: at.text, items: await readLiabilities(whole.db, rowMacs, at) }
  },
})
