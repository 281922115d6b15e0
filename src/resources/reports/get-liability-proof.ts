import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Closed, NamedObject, Timestamp, Uuid } from '../../contract/fields.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { forAll } from '../../db/database.ts'
import { EVER } from '../../http/time-bounds.ts'
import { completeUntil } from '../../money/books/book.ts'
import { readLiabilityProofs } from '../../money/books/liabilities.ts'
import { requireProfile } from '../../money/records/profile.ts'
import { operation } from '../operation.ts'
import { reported, reportTime, ReportTime } from './book.ts'
import { selectStatementBalances } from './read-statement.ts'

const HexHash = Type.String({ description: '64 hex digits.' })
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

/** The proof that a profile's balances are in what the platform says it owes. */
export const getLiabilityProof = operation({
  method: 'GET',
  url: '/v2/profiles/:id/liability-proof',
  scope: 'reports:read_report',
  tag: 'Reports',
  summary: 'Get Liability Proof',
  description:
    'For each asset that the profile has held: the path from its balance to the root of List Liabilities at the same moment. `verifyLiability` of `@bursar/client` checks it without the service.',
  example: { params: { id: EXAMPLE.profile_id } },
  params: Type.Object({ id: Uuid('Profile id.') }),
  query: Closed({ at: ReportTime('The `at` that List Liabilities has answered (default: now).') }),
  reply: Type.Object({
    at: Timestamp('Balances before this moment: now at the latest.'),
    items: Type.Array(LiabilityProof, { description: 'By ticker.' }),
  }),
  problems: ['not-found'],
  async run({ params, query, customerId, db, rowMacs }) {
    const profileId = params.id.toLowerCase()
    await requireProfile(db, customerId, profileId)
    const whole = { db: forEverybody(forAll(db)), customerId: undefined }
    const at = await reported(completeUntil(whole, reportTime(query, 'at', EVER.to)))
    const held = { db, customerId, profileId, from: at.text, to: at.text }
    const balances = await selectStatementBalances(held, undefined)
    return { at: at.text, items: await readLiabilityProofs(whole.db, rowMacs, at, profileId, balances) }
  },
})
