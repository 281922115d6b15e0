/** In SQL: the types of customers' withdrawals. */
export const WITHDRAWAL_TYPES = `('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL')`

/** In SQL: the types of transfers that the worker signs. */
export const PAYOUT_TYPES = `('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL', 'TREASURY_SEND', 'TREASURY_CONSOLIDATION')`

/** In SQL: the network of such a transfer `t`. One that goes over no blockchain is a wire. */
export const PAYOUT_NETWORK = `coalesce(t.crypto_network, 'WIRE')`
