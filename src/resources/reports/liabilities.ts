import { Type, type TSchema } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Closed, NamedObject, Timestamp, Uuid } from '../../contract/fields.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { forAll } from '../../db/database.ts'
import type { Request } from '../../http/operation.ts'
import { Shares } from '../../http/shares.ts'
import { readLiabilities, readLiabilityProofs, type Liabilities } from '../../money/books/liabilities.ts'
import { requireProfile } from '../../money/records/profile.ts'
import type { Context } from '../context.ts'
import { operation, readOperation } from '../operation.ts'
import { finalPeriod, ReportTime } from './report.ts'

const HexHash = Type.String({ description: '64 hex digits.' })
const Liability = NamedObject('Liability', {
  asset: AssetSymbol,
  decimals: Type.Integer({ description: 'Decimals of the smallest unit, in which the tree counts.' }),
  leaves: Type.Integer({ description: 'Number of balances, those of zero included.' }),
  total: Amount('Sum of the balances.'),
  root: HexHash,
})
const LiabilityProof = NamedObject('LiabilityProof', {
  profile_id: Uuid('Profile id.'),
  asset: AssetSymbol,
  amount: Amount('Balance of the profile.'),
  salt: HexHash,
  index: Type.Integer({ description: 'Place of the balance among the leaves, from 0 on.' }),
  path: Type.Array(Type.Object({ sum: Amount('Sum of the sibling.'), hash: HexHash }), {
    description: 'The siblings on the way to the root, from below.',
  }),
})

/** Each customer has one tree made at a time: every other moment has another, of all balances in memory. */
const turns = new Shares(1)

type Asking = Pick<Request & Context, 'db' | 'customerId' | 'asker' | 'rowMacs'> & { query: object }

/** Answers about the whole ledger, at the moment that is asked for or the last that is final. */
async function answerAt<Item>(request: Asking, read: (asked: Liabilities) => Promise<Item[]>) {
  const db = forEverybody(forAll(request.db))
  const { to: at } = await finalPeriod({ db, customerId: undefined }, request.query)
  const work = () => read({ db, at, macs: request.rowMacs })
  return { at: at.text, items: await turns.run(request.customerId, request.asker, work) }
}

const answerOf = (item: TSchema) =>
  Type.Object({
    at: Timestamp('Balances before this moment: now at the latest.'),
    items: Type.Array(item, { description: 'By ticker.' }),
  })

/** What the platform owes all its profiles, in a form that it cannot change for one of them alone. */
export const listLiabilities = operation({
  method: 'GET',
  url: '/v2/reports/liabilities',
  scope: 'reports:read_report',
  tag: 'Reports',
  summary: 'List Liabilities',
  description:
    'What the platform owes the profiles of all customers, by asset, with the root of a Merkle sum tree, which commits to the number of balances, the total and each balance: publish it, and each holder can check by Get Liability Proof that its balance is in the total. One moment has one root while the oldest master key is kept. Of millions of balances, ask with `at`, and after a 503 again.',
  query: Closed({ at: ReportTime('Balances before this moment (default: now).') }),
  reply: answerOf(Liability),
  run: (request) => answerAt(request, readLiabilities),
})

/** The proof that a profile's balances are in what the platform says it owes. */
export const getLiabilityProof = readOperation({
  url: '/v2/profiles/:id/liability-proof',
  scope: 'reports:read_report',
  tag: 'Reports',
  summary: 'Get Liability Proof',
  description:
    'For each asset that the profile has held: the path from its balance to the root of List Liabilities at the same moment. `verifyLiability` of `@bursar/client` checks it without the service.',
  id: 'Profile id.',
  example: EXAMPLE.profile_id,
  query: Closed({ at: ReportTime('The `at` that List Liabilities has answered (default: now).') }),
  reply: answerOf(LiabilityProof),
  async run(request) {
    const { id } = await requireProfile(request.db, request.customerId, request.params.id)
    return answerAt(request, (asked) => readLiabilityProofs(asked, request.customerId, id))
  },
})
