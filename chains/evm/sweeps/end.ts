import type { Hex } from 'viem'
import { hexToBigInt } from 'viem/utils'
import { transaction, type Database } from '../../../src/db/database.ts'
import { isNative, offChain, type EvmChain } from '../chain.ts'
import { feePaid } from '../fees.ts'
import type { Receipt } from '../node.ts'
import { parse } from '../transaction.ts'
import type { Sweep } from './under-way.ts'
import type { NetworkFee, SweepRound } from '../../../src/networks/network.ts'

/** How long the network must say that a transaction can never be mined before it ends as VOID. */
const LOST_SECONDS = 300

/**
 * Ends a sweep that can never be mined, once the network has said so for LOST_SECONDS: one answer may come from a node that
 * lags. The sweep has cost nothing. The balance is read again, and a new sweep is planned with a new nonce.
 */
export async function endLost(
  db: Database,
  chain: EvmChain,
  one: Sweep,
  round: SweepRound,
): Promise<boolean> {
  const { rows } = await db.query<{ isLost: boolean }>(
    `
    with lost as (
      update evm_sweeps set lost_since = coalesce(lost_since, (select clock_timestamp()))
      where customer_id = $1 and id = $2 and state = 'SIGNED' and crypto_tx_hash = $3
      returning lost_since
    )
    select lost_since <= clock_timestamp() - make_interval(secs => $4) as "isLost" from lost`,
    [one.customer_id, one.id, one.crypto_tx_hash, LOST_SECONDS],
  )
  if (rows[0]?.isLost !== true) return false
  const networkFee = { asset: chain.gasAsset, amount: '0' }
  const end = { state: 'VOID', from: 'SIGNED', hash: one.crypto_tx_hash, amount: null, networkFee } as const
  return endAs(db, chain, one, end, round)
}

/** Ends a sweep in a confirmed block: keeps and posts its fee, and has the balances read again. */
export async function endMined(
  db: Database,
  chain: EvmChain,
  one: Sweep,
  receipt: Receipt,
  round: SweepRound,
): Promise<boolean> {
  const state = hexToBigInt(receipt.status) === 1n ? 'DONE' : 'FAILED'
  const hash = receipt.transactionHash
  // A block may have a transaction that was replaced, with another amount.
  const { value } =
    hash === one.crypto_tx_hash
      ? parse(one.raw_transaction)
      : await chain.node.call<{ value: Hex }>('eth_getTransactionByHash', hash)
  const amount = isNative(chain, one.asset) ? offChain(chain, one.asset, BigInt(value)) : null
  const block = hexToBigInt(receipt.blockNumber)
  const networkFee = feePaid(chain, receipt)
  return endAs(db, chain, one, { state, from: 'BROADCAST', hash, amount, block, networkFee }, round)
}

interface SweepEnd {
  state: 'DONE' | 'FAILED' | 'VOID'
  from: Sweep['state']
  hash: string
  /** Null where it is the planned amount. */
  amount: string | null
  networkFee: NetworkFee
  block?: bigint
}

/** Ends a sweep, and posts its fee in the same transaction. False where another worker has ended it. */
async function endAs(
  db: Database,
  chain: EvmChain,
  one: Sweep,
  { state, from, hash, amount, block, networkFee }: SweepEnd,
  { post }: SweepRound,
): Promise<boolean> {
  return transaction(db, async (tx) => {
    // This locks the row: of two workers that end the sweep, the second finds it ended and posts nothing.
    const { rowCount } = await tx.query(
      `
      update evm_sweeps
      set state = $3, crypto_tx_hash = $4, network_fee = $5, amount = coalesce($6, amount),
          ended_at = (select clock_timestamp()), audit_block = $8
      where customer_id = $1 and id = $2 and state = $7`,
      [
        ...[one.customer_id, one.id, state, hash, networkFee.amount, amount, from],
        // The sweep's amount is compared with the deposits once they are read up to that block (`audit-sweeps.ts`).
        one.kind === 'SWEEP' && state === 'DONE' ? block?.toString() : null,
      ],
    )
    if (rowCount === 0) return false
    await tx.query(
      `update evm_holdings set stale_at = (select clock_timestamp())
       where customer_id = $1 and network = $2 and address = $3`,
      [one.customer_id, chain.network, one.address],
    )
    if (state !== 'VOID')
      await post(tx, { customer_id: one.customer_id, id: one.id, network: chain.network, networkFee })
    return true
  })
}
