import { Type, type Static } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Amount, AssetSymbol, Filter, NamedObject, OneOf, Timestamp, Uuid } from '../../contract/fields.ts'
import { requireKnownAssets } from '../../contract/known-assets.ts'
import type { Database } from '../../db/database.ts'
import { momentAt, momentOfMicros } from '../../db/ids.ts'
import { pageParameters, type PageRequest } from '../../http/lists.ts'
import { MICROS, type TimeRange } from '../../http/time-bounds.ts'
import { listOperation } from '../list-operation.ts'
import { requireProfile } from '../../money/records/profile.ts'

/** One change of a profile's balance, as the ledger has recorded it. Entries are never changed or deleted. */
const BalanceEntry = NamedObject('BalanceEntry', {
  transfer_id: Uuid('Transfer that changed the balance.'),
  event: OneOf(
    ['CREATED', 'SETTLED', 'REFUNDED'],
    'CREATED: the transfer was made. REFUNDED: it failed, and the money came back.',
  ),
  asset: AssetSymbol,
  amount: Type.String({
    description: 'Change of the balance: negative for a debit.',
    examples: ['-25.5'],
  }),
  balance_after: Amount('Available balance after the change.'),
  sequence: Type.Integer({
    minimum: 1,
    description:
      'Place among the changes of this balance, from 1 on. There is no gap, so a client can tell that it has all.',
  }),
  created_at: Timestamp('Time of the change.'),
})
type BalanceEntry = Static<typeof BalanceEntry>

export const listEntries = listOperation({
  url: '/v2/profiles/:id/entries',
  scope: 'funding:read_profile',
  tag: 'Profiles',
  summary: 'List Profile Entries',
  description:
    "Lists the changes of a profile's balances, newest first: the ledger's own history, with the balance after each change.",
  example: { params: { id: EXAMPLE.profile_id }, query: { assets: ['USD'], limit: 10 } },
  params: Type.Object({ id: Uuid('Profile id.') }),
  list: 'entries of',
  item: BalanceEntry,
  parameters: { assets: Filter(AssetSymbol, 'Filter by assets.') },
  page: pageParameters,
  problems: ['not-found'],
  check({ params, query, customerId, db }) {
    requireKnownAssets('assets', query.assets)
    return requireProfile(db, customerId, params.id)
  },
  read: ({ params, query, customerId, db }, page, created) =>
    selectEntries(db, customerId, params.id, { assets: query.assets, created }, page),
  key: {
    of: ({ created_at, asset, version }) => [String(momentAt(created_at).micros), asset, version],
    shape: [MICROS, /^[A-Z0-9]{1,16}$/, /^\d{1,19}$/],
  },
  toWire: entryToWire,
})

interface EntryRow extends Omit<BalanceEntry, 'sequence'> {
  version: string
}

function entryToWire({ version, amount, balance_after, ...row }: EntryRow): BalanceEntry {
  const decimals = decimalsOf(row.asset)
  const textOf = (stored: string) => formatAmount(parseStoredAmount(stored, decimals), decimals)
  return { ...row, amount: textOf(amount), balance_after: textOf(balance_after), sequence: Number(version) }
}

/**
 * Reads a page of entries plus one more. The index of each balance's history gives the next entries after the cursor, and the
 * page is merged from those. So the cost grows with the profile's assets, and not with its entries.
 */
async function selectEntries(
  db: Database,
  customerId: string,
  profileId: string,
  { assets, created }: { assets: string[] | undefined; created: TimeRange },
  { descending, after, limit }: PageRequest,
): Promise<EntryRow[]> {
  const direction = descending ? 'desc' : 'asc'
  const beyond = descending ? '<' : '>'
  const { rows } = await db.query<EntryRow>(
    `
    select e.transfer_id, e.event, b.asset, e.amount, e.balance_after, e.version, e.created_at
    from balances b
    cross join lateral (
      select transfer_id, event, amount, balance_after, version, created_at
      from entries
      where customer_id = $1 and profile_id = $2 and asset = b.asset
        and created_at >= $3 and created_at < $4
        -- The first condition is the index's; the second is about entries of the cursor's own microsecond.
        and ($6::timestamptz is null or created_at ${beyond}= $6
             and (created_at, b.asset collate "C", version) ${beyond} ($6, $7::text collate "C", $8::bigint))
      order by created_at ${direction}, version ${direction}
      limit $9
    ) e
    where b.customer_id = $1 and b.profile_id = $2 and ($5::text[] is null or b.asset = any ($5))
    order by e.created_at ${direction}, b.asset collate "C" ${direction}, e.version ${direction}
    limit $9`,
    [
      customerId,
      profileId,
      momentOfMicros(created.from).text,
      momentOfMicros(created.to).text,
      assets,
      after && momentOfMicros(Number(after[0])).text,
      after?.[1],
      after?.[2],
      limit + 1,
    ],
  )
  return rows
}
