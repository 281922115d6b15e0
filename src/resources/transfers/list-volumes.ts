import { LRUCache } from 'lru-cache'
import { Type, type Static } from 'typebox'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { Amount, AssetSymbol, NamedObject, OneOf, Timestamp } from '../../contract/fields.ts'
import { forEverybody } from '../../db/customer-pool.ts'
import { transaction, type Database } from '../../db/database.ts'
import { firstIdAt, readClock } from '../../db/ids.ts'
import { microsToTimestamp } from '../../http/lists.ts'
import { TransferStatus } from '../../money/ledger/transfer.ts'
import { operation } from '../operation.ts'

const DAY_MICROS = 86_400_000_000

const Volume = NamedObject('TransferVolume', {
  type: Type.String({ description: 'Type of the transfers.', examples: ['CRYPTO_WITHDRAWAL'] }),
  direction: OneOf(['CREDIT', 'DEBIT'], 'Direction of the transfers.'),
  asset: AssetSymbol,
  status: TransferStatus,
  count: Type.Integer({ description: 'Number of transfers.' }),
  amount: Amount('Sum of their amounts.'),
})

const ListVolumesReply = Type.Object({
  since: Timestamp('The beginning of the 24 hours.'),
  items: Type.Array(Volume),
})
type Volumes = Static<typeof ListVolumesReply>

/** How long an answer is reused, at least and at most. */
const KEPT_MS = 2_000
const KEPT_MS_MAX = 60_000
/** In between, it is reused for this multiple of the time that it took: 0.3 to 1.7 s for a day's 400,000 transfers. */
const KEPT_TIMES = 10
/** Most customers whose answers are kept. */
const KEPT_MAX = 1_000
/** The answers of the customers, also those that are still being made. */
const kept = new LRUCache<string, Promise<Volumes>>({ max: KEPT_MAX })

/** Sums the customer's transfers of the last 24 hours (API behaviour, Transfers). */
export const listVolumes = operation({
  method: 'GET',
  url: '/v2/transfer/volumes',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'List Transfer Volumes',
  description:
    "The number and sum of the customer's transfers that were created in the last 24 hours, by type, asset and status. Some seconds old at most; older where the sums take long.",
  reply: ListVolumesReply,
  run({ customerId, db }) {
    const known = kept.get(customerId)
    if (known !== undefined) return known
    const began = performance.now()
    const volumes = readVolumes(forEverybody(db), customerId)
    kept.set(customerId, volumes)
    volumes.then(
      () => {
        const took = performance.now() - began
        kept.set(customerId, volumes, { ttl: Math.min(KEPT_MS_MAX, Math.max(KEPT_MS, KEPT_TIMES * took)) })
      },
      // The next caller reads again.
      () => kept.delete(customerId),
    )
    return volumes
  },
})

const readVolumes = (db: Database, customerId: string): Promise<Volumes> =>
  transaction(db, async (tx) => {
    const since = (await readClock(tx)).micros - DAY_MICROS
    // Ids sort by creation time: the primary key reads this day alone, however many transfers there are.
    const { rows } = await tx.query<Omit<Static<typeof Volume>, 'count'> & { count: string }>(
      `
      select type, direction, asset, status, count(*), sum(amount) as amount
      from transfers
      where customer_id = $1 and id >= $2
      group by type, direction, asset, status
      order by type, asset, direction, status`,
      [customerId, firstIdAt(since)],
    )
    const items = rows.map(({ count, amount, ...row }) => {
      const decimals = decimalsOf(row.asset)
      const sum = formatAmount(parseStoredAmount(amount, decimals), decimals)
      return { ...row, count: Number(count), amount: sum }
    })
    return { since: microsToTimestamp(since), items }
  })
