import { mustHold, type Transaction } from '../../db/database.ts'
import { momentAt } from '../../db/ids.ts'
import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf } from '../../contract/assets/catalogue.ts'
import { transferEventType } from '../../contract/event-types.ts'
import { insertEvents } from '../ledger/events.ts'
import type { Transfer } from '../ledger/transfer.ts'
import type { PayoutNetwork } from '../../networks/network.ts'
import type { RecordKind } from '../records/need.ts'
import { arraysOf } from '../../db/rows.ts'

/** The output or log of a deposit. Of a wire: the bank's reference as the hash, and the index 0. */
export interface Arrival {
  network: PayoutNetwork
  crypto_tx_hash: string
  crypto_tx_index: string
}

/** The PENDING transfer of a deposit that was seen before it had enough confirmations. */
export type SeenTransfer = Pick<
  Transfer,
  'id' | 'profile_id' | 'asset' | 'balance_asset' | 'amount' | 'created_at'
>

/** The members that the credit of a seen deposit sets on its PENDING transfer. */
export type CompletedTransfer = Pick<Transfer, 'id' | 'type' | 'group_id' | 'notional_value' | 'updated_at'>

/** An arrived deposit differs from its PENDING transfer, which must fail before another transfer is created. */
export class SeenOtherwise extends Error {
  readonly transfer_id: string

  constructor(transfer_id: string) {
    super(`the deposit differs from its pending transfer ${transfer_id}`)
    this.transfer_id = transfer_id
  }
}

const keyOfOutput = ({ network, crypto_tx_hash, crypto_tx_index }: Arrival) =>
  `${network} ${crypto_tx_hash} ${crypto_tx_index}`

/**
 * The PENDING transfers of deposits. The rows are locked, so that the transfers cannot fail while they are completed.
 */
export const SEEN_DEPOSITS: RecordKind<Arrival, SeenTransfer, CompletedTransfer> = {
  async read(tx, customerId, arrivals) {
    const { rows } = await tx.query<SeenTransfer & Arrival>(
      `
      select t.id, t.profile_id, t.asset, t.balance_asset, t.amount, t.created_at,
             s.network, s.crypto_tx_hash, s.crypto_tx_index
      from seen_deposits s
      join transfers t on t.customer_id = $1 and t.id = s.transfer_id
      where s.customer_id = $1 and s.state = 'PENDING'
        and (s.network, s.crypto_tx_hash, s.crypto_tx_index) in
            (select * from unnest($2::text[], $3::text[], $4::text[]))
      order by s.transfer_id
      for update of s`,
      [customerId, ...arraysOf(arrivals, 'network', 'crypto_tx_hash', 'crypto_tx_index')],
    )
    const seen = new Map(
      rows.map(({ network, crypto_tx_hash, crypto_tx_index, ...transfer }) => [
        keyOfOutput({ network, crypto_tx_hash, crypto_tx_index }),
        { ...transfer, amount: canonicalAmount(transfer) },
      ]),
    )
    return { get: (arrival) => seen.get(keyOfOutput(arrival)) }
  },
  write: completeSeen,
}

const canonicalAmount = ({ asset, amount }: { asset: string; amount: string }) =>
  formatAmount(parseStoredAmount(amount, decimalsOf(asset)), decimalsOf(asset))

/** Completes the transfers. Fails the transaction where one is not PENDING any more. */
function completeSeen(
  tx: Transaction,
  customerId: string,
  completed: readonly CompletedTransfer[],
): Promise<unknown>[] {
  const now = momentAt(completed[0]!.updated_at)
  const complete = tx.query(
    `
    with c as (
      select * from unnest($2::uuid[], $3::uuid[], $4::numeric[], $5::timestamptz[])
        as c (id, group_id, notional_value, updated_at)
    ), ended as (
      update seen_deposits s set state = 'COMPLETED', ended_at = c.updated_at
      from c
      where s.customer_id = $1 and s.transfer_id = c.id and s.state = 'PENDING'
      returning 1
    ), credited as (
      update transfers t
      set status = 'COMPLETED', group_id = c.group_id, notional_value = c.notional_value, updated_at = c.updated_at
      from c
      where t.customer_id = $1 and t.id = c.id and t.status = 'PENDING' and t.type in ('CRYPTO_DEPOSIT', 'WIRE_DEPOSIT')
      returning 1
    )
    select ${mustHold('(select count(*) from ended) = $6 and (select count(*) from credited) = $6')}`,
    [
      customerId,
      completed.map(({ id }) => id),
      completed.map(({ group_id }) => group_id ?? null),
      completed.map(({ notional_value }) => notional_value ?? null),
      completed.map(({ updated_at }) => updated_at),
      completed.length,
    ],
  )
  const events = completed.map(({ id, type }) => ({
    type: transferEventType(type, 'COMPLETED'),
    object_id: id,
  }))
  return [complete, insertEvents(tx, customerId, now, events)]
}
