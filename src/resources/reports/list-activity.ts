import { Type } from 'typebox'
import { DOLLARS } from '../../contract/assets/catalogue.ts'
import { AssetSymbol, OneOf } from '../../contract/fields.ts'
import { pagesOf } from '../../db/rows.ts'
import { Figure, OF_CUSTOMER, PERIOD, report } from './report.ts'

/** What activity is grouped by, in SQL. */
const KEYS = {
  day: `(e.created_at at time zone 'UTC')::date::text`,
  type: `coalesce(t.type, e.event)`,
  asset: 'e.asset',
  profile: `coalesce(t.profile_id::text, '')`,
}
type Key = keyof typeof KEYS

/** Lines that are read at once: each page reads the time again, and a report by profile may have a million. */
const PAGE = 20_000

/** Sums what was posted within a time. It reads the entries of that time, so that a time that has passed never changes. */
export const listActivityOfTime = report({
  url: '/v2/reports/activity',
  summary: 'List Activity Report',
  description:
    'What was posted within a time, by day, type, asset or profile: transfers, what came and went, fees, network fees, and the value in USD at the time.',
  query: {
    ...PERIOD,
    by: Type.Optional(OneOf(Object.keys(KEYS) as Key[], 'What each line is about.', { default: 'day' })),
    ...OF_CUSTOMER,
  },
  line: {
    key: Type.String({ description: 'The day, type, asset or profile.' }),
    asset: AssetSymbol,
    count: Type.Integer({ description: 'Transfers that have changed balances of profiles.' }),
    refunded: Type.Integer({ description: 'Transfers that were given back.' }),
    in: Figure('What was added to profiles, with what was given back.'),
    out: Figure('What was taken from profiles, with fees.'),
    fees: Figure('Fees charged, less those given back.'),
    network_fees: Figure('Network fees that the platform has paid.'),
    value_usd: Figure('The value of the transfers in USD when they were made.'),
    unpriced: Type.Integer({ description: 'Transfers whose value is not known.' }),
  },
  async read({ book, time: { from, to }, query: { by = 'day' } }) {
    const lines = pagesOf<Record<'key' | 'asset', string>>(PAGE, async (last) => {
      const values = [book.customerId, from.text, to.text, DOLLARS, last?.key, last?.asset]
      return (await book.db.query<Record<'key' | 'asset', string>>(selectActivity(KEYS[by]), values)).rows
    })
    return { lines }
  },
})

const selectActivity = (key: string) => `
  with posted as (
    select ${key} as key, e.asset, e.account, e.amount, e.account = 'profile' and e.event = 'CREATED' as made,
           e.account = 'profile' and e.event = 'REFUNDED' as refunded,
           coalesce(t.notional_value, case when t.asset = any ($4) then t.total end) as value
    from entries e
    left join transfers t on t.customer_id = e.customer_id and t.id = e.transfer_id
    where ($1::text is null or e.customer_id::text = $1) and e.created_at >= $2 and e.created_at < $3
  )
  select key, asset, (count(*) filter (where made))::int as count, (count(*) filter (where refunded))::int as refunded,
         trim_scale(coalesce(sum(amount) filter (where account = 'profile' and amount > 0), 0)) as "in",
         trim_scale(coalesce(-sum(amount) filter (where account = 'profile' and amount < 0), 0)) as out,
         trim_scale(coalesce(sum(amount) filter (where account = 'fees'), 0)) as fees,
         trim_scale(coalesce(-sum(amount) filter (where account like 'network\\_fees:%'), 0)) as network_fees,
         trim_scale(coalesce(sum(value) filter (where made), 0)) as value_usd,
         (count(*) filter (where made and value is null))::int as unpriced
  from posted
  where $5::text is null or (key, asset) > ($5, $6::text)
  group by key, asset
  order by key, asset
  limit ${PAGE}`
