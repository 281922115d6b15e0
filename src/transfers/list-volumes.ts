import { Type, type Static } from 'typebox'
import { formatAmount, parseStoredAmount } from '../assets/amount.ts'
import { decimalsOf } from '../assets/catalogue.ts'
import { Amount, AssetSymbol, Timestamp } from '../contract/fields.ts'
import { transaction } from '../db/database.ts'
import { firstIdAt, readClock } from '../db/ids.ts'
import { microsToTimestamp } from '../http/lists.ts'
import { TransferStatus } from '../ledger/transfer.ts'
import { operation } from '../operation.ts'

const DAY_MICROS = 86_400_000_000

const Volume = Type.Object(
  {
    type: Type.String({ description: 'Type of the transfers.', examples: ['CRYPTO_WITHDRAWAL'] }),
    direction: Type.Enum(['CREDIT', 'DEBIT'], { type: 'string', description: 'Direction of the transfers.' }),
    asset: AssetSymbol,
    status: TransferStatus,
    count: Type.Integer({ description: 'Number of transfers.' }),
    amount: Amount('Sum of their amounts.'),
  },
  { $id: 'TransferVolume' },
)

/** Sums the customer's transfers of the last 24 hours (API behaviour, Transfers). */
export const listVolumes = operation({
  method: 'GET',
  url: '/v2/transfer/volumes',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'List Transfer Volumes',
  description:
    "The number and sum of the customer's transfers that were created in the last 24 hours, by type, asset and status.",
  reply: Type.Object({
    since: Timestamp('The beginning of the 24 hours.'),
    items: Type.Array(Volume),
  }),
  async run({ customerId, db }) {
    return transaction(db, async (tx) => {
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
  },
})
