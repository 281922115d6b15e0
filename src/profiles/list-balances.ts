import { Type } from 'typebox'
import { formatAmount, parseStoredAmount } from '../assets/amount.ts'
import { decimalsOf } from '../assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import { EXAMPLE } from '../contract/example-records.ts'
import { Amount, AssetSymbol, Filter, Uuid } from '../contract/fields.ts'
import { operation } from '../operation.ts'
import { requireProfile } from '../records/profile.ts'

/** A balance of a profile. */
export const Balance = Type.Object(
  {
    asset: AssetSymbol,
    available: Amount('Spendable amount.'),
    trading: Amount('Amount held by open orders. Always 0, because there are no orders.'),
  },
  { $id: 'Balance' },
)

/** Lists a profile's balances (API behaviour, Profiles): every asset it has ever held, by symbol. */
export const listBalances = operation({
  method: 'GET',
  url: '/v2/profiles/:id/balances',
  scope: 'funding:read_profile',
  tag: 'Profiles',
  summary: 'List Profile Balances',
  description: 'Lists the balances of every asset that the profile has ever held.',
  example: { params: { id: EXAMPLE.profile_id } },
  params: Type.Object({ id: Uuid('Profile id.') }),
  query: Type.Object({ assets: Filter(AssetSymbol, 'Filter by assets.') }, { additionalProperties: false }),
  reply: Type.Object({ items: Type.Array(Balance) }),
  problems: ['not-found'],
  async run({ params, query, customerId, db }) {
    await requireProfile(db, customerId, params.id)
    return { items: await selectBalances(db, customerId, params.id, query.assets) }
  },
})

/** Reads the stored balances of a profile, by symbol. */
export async function selectBalances(db: Database, customerId: string, profileId: string, assets?: string[]) {
  const { rows } = await db.query<{ asset: string; available: string }>(
    `
    select asset, available
    from balances
    where customer_id = $1 and profile_id = $2 and ($3::text[] is null or asset = any ($3))
    order by asset collate "C"`,
    [customerId, profileId, assets],
  )
  return rows.map(({ asset, available }) => ({
    asset,
    available: formatAmount(parseStoredAmount(available, decimalsOf(asset)), decimalsOf(asset)),
    trading: '0',
  }))
}
