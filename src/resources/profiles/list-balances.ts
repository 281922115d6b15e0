import { Type, type Static } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import type { Database } from '../../db/database.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Closed, Filter, NamedObject, Timestamp } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { momentOfMicros } from '../../db/ids.ts'
import { microsOf } from '../../http/time-bounds.ts'
import { knownMoment } from '../../http/require-horizon.ts'
import { readOperation } from '../operation.ts'
import { requireProfile } from '../../money/records/profile.ts'

export const Balance = NamedObject('Balance', {
  asset: AssetSymbol,
  available: Amount('Spendable amount.'),
  trading: Amount('Amount held by open orders. Always 0, because there are no orders.'),
})

export const listBalances = readOperation({
  url: '/v2/profiles/:id/balances',
  scope: 'funding:read_profile',
  tag: 'Profiles',
  summary: 'List Profile Balances',
  description:
    'Lists the balances of every asset that the profile has ever held. With `at`, as they were at that moment, from the entries of the ledger.',
  id: 'Profile id.',
  example: EXAMPLE.profile_id,
  query: Closed({
    assets: Filter(AssetSymbol, 'Filter by assets.'),
    at: Type.Optional(
      Timestamp('Moment of the balances. It counts the entries up to it, its own microsecond included.'),
    ),
  }),
  reply: Type.Object({
    items: Type.Array(Balance),
    complete_until: Type.Optional(
      Timestamp(
        'With `at`, where later entries may still be of that time: the balances are those right before this moment.',
      ),
    ),
  }),
  async run({ params, query, customerId, db }) {
    const { assets, at } = query
    requireKnownAssets('assets', assets)
    await requireProfile(db, customerId, params.id)
    if (at === undefined) return { items: await selectBalances(db, customerId, params.id, assets) }
    const { micros, completeUntil } = await knownMoment(db, microsOf(at, 'at').floor)
    return {
      items: await selectBalancesAt(db, customerId, params.id, assets, momentOfMicros(micros).text),
      ...(completeUntil !== undefined && { complete_until: completeUntil }),
    }
  },
})

export async function selectBalances(db: Database, customerId: string, profileId: string, assets?: string[]) {
  const { rows } = await db.query<{ asset: string; available: string }>(
    `
    select asset, available
    from balances
    where customer_id = $1 and profile_id = $2 and ($3::text[] is null or asset = any ($3))
    order by asset collate "C"`,
    [customerId, profileId, assets],
  )
  return rows.map(balanceToWire)
}

/** Reads the stored balances of all profiles of a customer, or of one, by profile and symbol, with the nicknames. */
export async function listCustomerBalances(
  db: Database,
  customerId: string,
  profileId: string | undefined,
  limit: number,
) {
  const { rows } = await db.query<{
    profile_id: string
    nickname: string | null
    asset: string
    available: string
  }>(
    `
    select b.profile_id, p.nickname, b.asset, b.available
    from balances b
    join profiles p on p.customer_id = b.customer_id and p.id = b.profile_id
    where b.customer_id = $1 and ($2::uuid is null or b.profile_id = $2)
    order by b.profile_id, b.asset collate "C"
    limit $3`,
    [customerId, profileId, limit],
  )
  return rows.map(({ profile_id, nickname, ...row }) => ({ profile_id, nickname, ...balanceToWire(row) }))
}

const balanceToWire = ({
  asset,
  available,
}: {
  asset: string
  available: string
}): Static<typeof Balance> => ({
  asset,
  available: formatAmount(parseStoredAmount(available, decimalsOf(asset)), decimalsOf(asset)),
  trading: '0',
})

/**
 * Reads the balances after the last entry up to a moment, by ticker, of the assets that the profile had held by then. Each
 * balance costs one look-up in the index of its history.
 */
async function selectBalancesAt(
  db: Database,
  customerId: string,
  profileId: string,
  assets: string[] | undefined,
  at: string,
) {
  const { rows } = await db.query<{ asset: string; available: string }>(
    `
    select b.asset, e.balance_after as available
    from balances b
    cross join lateral (
      select balance_after
      from entries
      where customer_id = $1 and profile_id = $2 and asset = b.asset and created_at <= $4
      order by created_at desc, version desc
      limit 1
    ) e
    where b.customer_id = $1 and b.profile_id = $2 and ($3::text[] is null or b.asset = any ($3))
    order by b.asset collate "C"`,
    [customerId, profileId, assets, at],
  )
  return rows.map(balanceToWire)
}
