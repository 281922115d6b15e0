import { formatAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable, Transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'

/** The statements about amounts that were swept from deposit addresses and that no deposit was found for. */

export interface AtAddress {
  customer_id: string
  network: CryptoNetwork
  address: string
  asset: string
}

/** The amount swept from a deposit address beyond the deposits that were found there, a decimal string. */
export interface Unattributed extends AtAddress {
  amount: string
  /** The last sweep. */
  crypto_tx_hash: string
}

/**
 * The sum of recorded deposits of an asset at an address, in minor units: credited or waiting, up to a block if one is
 * given. A deposit whose index a reorganisation changed has two rows, and counts once.
 */
export async function sumAtAddress(db: Queryable, place: AtAddress, block: string | null): Promise<bigint> {
  const { rows } = await db.query<{ sum: string }>(
    `
    select coalesce(sum(amount), 0) as sum
    from (
      select distinct on (coalesce(transfer_id::text, crypto_tx_hash || ' ' || crypto_tx_index)) amount
      from incoming_transfers
      where customer_id = $1 and network = $2 and address = $3 and asset = $4 and state in ('WAITING', 'CREDITED')
        and ($5::bigint is null or block_number is null or block_number <= $5)
    ) deposits`,
    [place.customer_id, place.network, place.address, place.asset, block],
  )
  return parseStoredAmount(rows[0]!.sum, decimalsOf(place.asset))
}

/** The addresses and assets on a network with a swept amount that no deposit was found for. */
export async function selectUnattributed(db: Queryable, network: CryptoNetwork): Promise<Unattributed[]> {
  const { rows } = await db.query<Unattributed>(
    `
    select customer_id, network, address, asset, amount, crypto_tx_hash
    from incoming_transfers
    where network = $1 and state = 'UNATTRIBUTED'`,
    [network],
  )
  return rows
}

/**
 * Records the amount that was swept from an address without a deposit, with the transaction that swept last. It overwrites
 * the earlier amount; 0 deletes it.
 */
export async function recordUnattributed(
  tx: Transaction,
  { customer_id, network, address, asset }: AtAddress,
  { amount, crypto_tx_hash }: { amount: bigint; crypto_tx_hash: string },
): Promise<void> {
  const place = [customer_id, network, address, asset]
  await tx.query(
    `delete from incoming_transfers
     where customer_id = $1 and network = $2 and address = $3 and asset = $4 and state = 'UNATTRIBUTED'`,
    place,
  )
  if (amount <= 0n) return
  const now = await readClock(tx)
  await tx.query(
    `
    insert into incoming_transfers (customer_id, network, address, asset, crypto_tx_hash, crypto_tx_index, amount,
                                    state, detail, cleared, attempts, found_at, due_at)
    values ($1, $2, $3, $4, $5, $6, $7, 'UNATTRIBUTED', $8, false, 0, $9, $9)`,
    [
      ...place,
      ...[crypto_tx_hash, `swept-${asset}`, formatAmount(amount, decimalsOf(asset)), UNATTRIBUTED, now.text],
    ],
  )
}

const UNATTRIBUTED =
  "no deposit was found for it: look for a contract's payment to the address, and credit it with bursar deposits credit"
