import { Type, type Static } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { Amount, AssetSymbol, Closed, NamedObject, OneOf, Timestamp } from '../../contract/fields.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { transaction, type Database } from '../../db/database.ts'
import { momentOfMicros, readClock } from '../../db/ids.ts'
import { fingerprintOf } from '../../http/lists.ts'
import { EVER, timeRange } from '../../http/time-bounds.ts'
import { reusedAnswers } from '../../http/reused-answers.ts'
import { TransferStatus } from '../../money/ledger/transfer.ts'
import { createdIn, selectWhere, type ListQuery } from '../list-operation.ts'
import { operation } from '../operation.ts'
import { filtered, transferFilters } from './transfer-filters.ts'

const DAY_MICROS = 86_400_000_000

const Volume = NamedObject('TransferVolume', {
  type: Type.String({ description: 'Type of the transfers.', examples: ['CRYPTO_WITHDRAWAL'] }),
  direction: OneOf(['CREDIT', 'DEBIT'], 'Direction of the transfers.'),
  asset: AssetSymbol,
  status: TransferStatus,
  count: Type.Integer({ description: 'Number of transfers.' }),
  amount: Amount('Sum of their amounts.'),
  fee: Amount('Sum of their fees.'),
  balance_asset: AssetSymbol,
  total: Amount('Sum of what they change the balance by, in `balance_asset`.'),
})

const ListVolumesReply = Type.Object({
  since: Timestamp('The beginning of the time that is summed.'),
  items: Type.Array(Volume),
})
type Volumes = Static<typeof ListVolumesReply>

/** The answers by customer and filters. */
const reused = reusedAnswers<Volumes>()

export const listVolumes = operation({
  method: 'GET',
  url: '/v2/transfer/volumes',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'List Transfer Volumes',
  description:
    "The number and sum of the customer's transfers by type, asset and status: of those that were created in the last 24 hours, unless the query bounds `created_at`. Filters combine, as in List Transfers. Some seconds old at most; older where the sums take long.",
  query: Closed(transferFilters),
  example: { query: { profile_ids: [EXAMPLE.profile_id], statuses: ['COMPLETED'] } },
  reply: ListVolumesReply,
  run: ({ query, customerId, db }) =>
    reused(fingerprintOf(customerId, query), () => readVolumes(forEverybody(db), customerId, query)),
})

function readVolumes(db: Database, customerId: string, query: ListQuery): Promise<Volumes> {
  const asked = timeRange(query, 'created_at')
  const isBounded = asked.from !== EVER.from || asked.to !== EVER.to
  return transaction(db, async (tx) => {
    const lastDay = async () => ({ from: (await readClock(tx)).micros - DAY_MICROS, to: EVER.to })
    const created = isBounded ? asked : await lastDay()
    const { joins, where, ids } = filtered(query)
    const rows = await selectWhere<Omit<Static<typeof Volume>, 'count'> & { count: string }>(
      tx,
      `select t.type, t.direction, t.asset, b.balance_asset, t.status, count(*), sum(t.amount) as amount, sum(t.fee) as fee,
             sum(t.total) as total
      from transfers t${joins}
      cross join lateral (select coalesce(t.balance_asset, t.asset) as balance_asset) b`,
      [
        ['t.customer_id = ?', customerId],
        ...['t.id', ...ids].flatMap((id) => createdIn(id, created)),
        ...where,
      ],
      `group by t.type, t.direction, t.asset, b.balance_asset, t.status
      order by t.type, t.asset, t.direction, t.status, b.balance_asset`,
    )
    const sumIn = (asset: string, sum: string) =>
      formatAmount(parseStoredAmount(sum, decimalsOf(asset)), decimalsOf(asset))
    const items = rows.map(({ count, amount, fee, total, ...row }) => ({
      ...row,
      count: Number(count),
      amount: sumIn(row.asset, amount),
      fee: sumIn(row.asset, fee),
      total: sumIn(row.balance_asset, total),
    }))
    return { since: momentOfMicros(created.from).text, items }
  })
}
