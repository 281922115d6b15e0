/** In SQL: the types of customers' withdrawals. */
export const WITHDRAWAL_TYPES = `('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL')`

/** In SQL: the types of transfers that the worker signs. */
export const PAYOUT_TYPES = `('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL', 'TREASURY_SEND', 'TREASURY_CONSOLIDATION')`

/** In SQL: the network of such a transfer `t`. One that goes over no blockchain is a wire. */
export const PAYOUT_NETWORK = `coalesce(t.crypto_network, 'WIRE')`

/** In SQL: whether the transfer `t` is for the worker to sign and no worker has begun it. */
export const IS_NOT_BEGUN = `
  t.status = 'PENDING' and t.type in ${PAYOUT_TYPES}
    and not exists (select 1 from outgoing_transfers b where b.customer_id = t.customer_id and b.transfer_id = t.id)`
