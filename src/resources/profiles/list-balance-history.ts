import { Type, type Static } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { Amount, AssetSymbol, Closed, Filter, NamedObject, Timestamp } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import { problem } from '../../contract/problems.ts'
import type { Database } from '../../db/database.ts'
import { momentOfMicros } from '../../db/ids.ts'
import { knownMoment } from '../../http/require-horizon.ts'
import { operation } from '../operation.ts'

const DAY_MICROS = 86_400_000_000
const DAYS_DEFAULT = 30
const DAYS_MAX = 90
/** Most balances that an answer sums. Each day costs a look-up for each balance that changed since (measured: 6 us). */
const BALANCES_MAX = 10_000

const BalanceHistory = NamedObject('BalanceHistory', {
  asset: AssetSymbol,
  points: Type.Array(
    Type.Object({ at: Timestamp('Moment of the sum.'), available: Amount('Sum of the balances.') }),
    {
      description:
        'The oldest first. The last is now, or a little earlier: no entry of that time can follow.',
    },
  ),
})

export const listBalanceHistory = operation({
  method: 'GET',
  url: '/v2/balances/history',
  scope: 'funding:read_profile',
  tag: 'Profiles',
  summary: 'List Balance History',
  description:
    'The sum of the balances of all profiles, by asset: at the begin of each of the last days (UTC), and now. Each is what the entries of the ledger up to that moment left.',
  query: Closed({
    assets: Filter(AssetSymbol, 'Filter by assets.'),
    days: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: DAYS_MAX,
        default: DAYS_DEFAULT,
        description: 'Number of days, today included.',
      }),
    ),
  }),
  reply: Type.Object({ items: Type.Array(BalanceHistory, { description: 'By ticker.' }) }),
  async run({ query: { assets, days = DAYS_DEFAULT }, customerId, db }) {
    requireKnownAssets('assets', assets)
    const { micros: now } = await knownMoment(db, Infinity)
    const today = now - (now % DAY_MICROS)
    const begins = Array.from({ length: days }, (_, ago) => today - (days - 1 - ago) * DAY_MICROS)
    const moments = [...begins, now].map((micros) => momentOfMicros(micros).text)
    return { items: await sumsAt(db, customerId, assets, moments) }
  },
})

async function sumsAt(
  db: Database,
  customerId: string,
  assets: string[] | undefined,
  moments: readonly string[],
): Promise<Static<typeof BalanceHistory>[]> {
  // A balance that has not changed since a moment needs no look-up.
  const { rows } = await db.query<{ asset: string; balances: string; points: string[] }>(
    `
    select asset, min(balances) as balances, array_agg(available::text order by at) as points
    from (
      select b.asset, m.at, count(*) as balances, coalesce(sum(
        case when b.updated_at <= m.at then b.available else (
          select e.balance_after
          from entries e
          where e.customer_id = $1 and e.profile_id = b.profile_id and e.asset = b.asset and e.created_at <= m.at
          order by e.created_at desc, e.version desc
          limit 1
        ) end), 0) as available
      from (
        select profile_id, asset, available, updated_at
        from balances
        where customer_id = $1 and ($2::text[] is null or asset = any ($2))
        limit $4
      ) b
      cross join unnest($3::timestamptz[]) m (at)
      group by b.asset, m.at
    ) sums
    group by asset
    order by asset collate "C"`,
    [customerId, assets, moments, BALANCES_MAX + 1],
  )
  if (rows.reduce((sum, { balances }) => sum + Number(balances), 0) > BALANCES_MAX)
    throw problem.badRequest(
      `assets must name fewer: more than ${BALANCES_MAX} balances are too many for one answer; List Profile Balances has those of a profile at a moment`,
      'assets',
    )
  return rows.map(({ asset, points }) => {
    const decimals = decimalsOf(asset)
    const at = (index: number) => ({
      at: moments[index]!,
      available: formatAmount(parseStoredAmount(points[index]!, decimals), decimals),
    })
    return { asset, points: points.map((_, index) => at(index)) }
  })
}
