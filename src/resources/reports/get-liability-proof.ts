import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Closed, NamedObject, Timestamp, Uuid } from '../../contract/fields.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { forAll } from '../../db/database.ts'
import { EVER, microsToTimestamp } from '../../http/time-bounds.ts'
import { readLiabilityProofs } from '../../money/books/liabilities.ts'
import { requireProfile } from '../../money/records/profile.ts'
import { operation } from '../operation.ts'
import { liabilityMoment } from './liability-moment.ts'
import { selectStatementBalances } from './read-statement.ts'

const LiabilityProof = NamedObject('LiabilityProof', {
  profile_id: Uuid('Profile id.'),
  asset: AssetSymbol,
  amount: Amount('Balance of the profile.'),
  salt: Type.String({ description: 'Hides the balance from who has other proofs: 64 hex digits.' }),
  index: Type.Integer({ description: 'Place of the balance among the leaves, from 0 on.' }),
  path: Type.Array(
    Type.Object({
      sum: Amount('Sum of the sibling.'),
      hash: Type.String({ description: 'Its hash, 64 hex digits.' }),
    }),
    { description: 'The siblings on the way to the root, from below.' },
  ),
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
  query: Closed({
    at: Type.Optional(Timestamp('The `at` that List Liabilities has answered; without it, now.')),
  }),
  reply: Type.Object({
    at: Timestamp('Moment of the balances.'),
    items: Type.Array(LiabilityProof, { description: 'By ticker.' }),
  }),
  problems: ['not-found'],
  async run({ params, query, customerId, db, rowMacs }) {
    await requireProfile(db, customerId, params.id)
    const micros = await liabilityMoment(db, query.at)
    const [at, next] = [micros, micros + 1].map(microsToTimestamp) as [string, string]
    const profileId = params.id.toLowerCase()
    const ever = microsToTimestamp(EVER.from)
    const held = await selectStatementBalances(db, { customerId, profileId, from: ever, to: next }, undefined)
    const balances = held.map(({ asset, closing }) => ({ asset, available: closing }))
    return {
      at,
      items: await readLiabilityProofs(forEverybody(forAll(db)), rowMacs, at, profileId, balances),
    }
  },
})
