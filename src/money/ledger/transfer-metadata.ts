import { inOrder, type Transaction } from '../../db/database.ts'
import { grouped } from '../../db/rows.ts'
import { bind, columnsOf, insertOf, sendTogether, type Bound } from '../../db/together.ts'
import type { Transfer } from './transfer.ts'

/** The pairs of transfers' metadata, a row for each, by which List Transfers finds the transfers. Metadata never changes. */

type Described = Pick<Transfer, 'customer_id' | 'id' | 'metadata'>

// Its name is short: those of joined parts have 63 characters at most.
const INSERT = insertOf(
  'insert into transfer_metadata',
  columnsOf<{ transfer_id: string; key: string; value: string }>({
    transfer_id: 'uuid',
    key: 'text',
    value: 'text',
  }),
  { name: '+pairs' },
)

/** The statement that stores the metadata of one customer's new transfers; none where they have none. */
export function metadataOf(transfers: readonly Described[]): Bound[] {
  const pairs = transfers.flatMap(({ id, metadata }) =>
    metadata === undefined
      ? []
      : Object.entries(metadata).map(([key, value]) => ({ transfer_id: id, key, value })),
  )
  return pairs.length === 0 ? [] : [bind(INSERT, pairs)]
}

/** Stores the metadata of new transfers of any customers. */
export const insertMetadata = (tx: Transaction, transfers: readonly Described[]): Promise<unknown> =>
  inOrder(
    [...grouped(transfers, ({ customer_id }) => customer_id)].map(([customerId, own]) =>
      sendTogether(tx, customerId, metadataOf(own)),
    ),
  )
