import { Type } from 'typebox'
import { findAsset } from '../../contract/assets/catalogue.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { AssetSymbol, Uuid } from '../../contract/fields.ts'
import { operation } from '../operation.ts'
import { problem } from '../../contract/problems.ts'
import { requireProfile } from '../../money/records/profile.ts'
import { Balance, selectBalances } from './list-balances.ts'

export const getBalance = operation({
  method: 'GET',
  url: '/v2/profiles/:id/balances/:asset',
  scope: 'funding:read_profile',
  tag: 'Profiles',
  summary: 'Get Profile Balance',
  description: 'Reads the balance of one asset: 0 if the profile never held it.',
  example: { params: { id: EXAMPLE.profile_id, asset: 'USD' } },
  params: Type.Object({ id: Uuid('Profile id.'), asset: AssetSymbol }),
  reply: Balance,
  problems: ['not-found'],
  async run({ params, customerId, db }) {
    await requireProfile(db, customerId, params.id)
    if (findAsset(params.asset) === undefined) throw problem.notFound('asset', params.asset)
    const [balance] = await selectBalances(db, customerId, params.id, [params.asset])
    return balance ?? { asset: params.asset, available: '0', trading: '0' }
  },
})
