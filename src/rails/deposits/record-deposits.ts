import { parseAmount } from '../../contract/assets/amount.ts'
import { findAsset, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Queryable, Transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { lockRows } from '../../db/lock-rows.ts'
import { arraysOf } from '../../db/rows.ts'
import { sealOf, type RowMacs, type Seal } from '../../audit/sealed-rows.ts'
import { creditedAs, insertCredited } from '../../money/movements/credited-deposits.ts'
import type { FoundDeposit } from '../../networks/found-deposits.ts'
import type { RailsContext } from '../context.ts'
import { minorOf, type IncomingTransfer } from './incoming-transfers.ts'
import { selectOwners, oldestOwner } from './owners.ts'

/**
 * Records payments to addresses that were given out, and skips all others, because anybody may send anything anywhere. A
 * payment that was recorded before stays as it is, unless the chain had taken it back: then it is CREDITED again, under
 * its old index or a new one. A log's index counts through its block, and differs when the transaction moves to another block.
 * Returns how many are new.
 */
export async function recordIncoming(
  tx: Transaction,
  { macs }: Pick<RailsContext['ledger'], 'macs'>,
  network: CryptoNetwork,
  deposits: readonly FoundDeposit[],
): Promise<number> {
  const known = deposits.filter(({ asset, amount }) => {
    const decimals = findAsset(asset)?.decimals
    return decimals !== undefined && (parseAmount(amount, decimals) ?? 0n) > 0n
  })
  const owners = await selectOwners(tx, network, known)
  const owned = known.filter(({ address }) => owners.has(address))
  if (owned.length === 0) return 0
  const fresh: FoundDeposit[] = []
  const gone = await selectReorganised(tx, network, owned)
  for (const arrival of owned) {
    const same = gone.find((deposit) => isSameTransfer(deposit, arrival))
    if (same === undefined) fresh.push(arrival)
    else {
      gone.splice(gone.indexOf(same), 1)
      await restore(tx, same, arrival)
    }
  }
  if (fresh.length === 0) return 0
  const now = await readClock(tx)
  // What was inserted is counted by what is returned (rule 5 of src/db/distribution.ts).
  const { rows: made } = await tx.query<NewRow>(
    `
    insert into incoming_transfers
      (customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount,
       block_number, block_hash, state, cleared, attempts, found_at, due_at, sealed_at)
    select customer_id, $1, hash, index, address, asset, amount, block_number, block_hash, 'WAITING', false, 0, $2, $2, $2
    from unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[], $8::numeric[], $9::bigint[], $10::text[])
      as found (customer_id, hash, index, address, asset, amount, block_number, block_hash)
    on conflict (customer_id, network, crypto_tx_hash, crypto_tx_index) do nothing
    returning customer_id, crypto_tx_hash, crypto_tx_index`,
    [
      network,
      now.text,
      fresh.map(({ address }) => oldestOwner({ macs }, owners.get(address)!).customer_id),
      ...arraysOf(fresh, 'crypto_tx_hash', 'crypto_tx_index', 'address', 'asset', 'amount'),
      fresh.map(({ block }) => block?.number.toString() ?? null),
      fresh.map(({ block }) => block?.hash ?? null),
    ],
  )
  if (macs !== undefined && made.length > 0) await sealIncoming(tx, macs, network, made)
  return made.length
}

type NewRow = Pick<IncomingTransfer, 'customer_id' | 'crypto_tx_hash' | 'crypto_tx_index'>

async function sealIncoming(
  tx: Transaction,
  macs: RowMacs,
  network: CryptoNetwork,
  made: readonly NewRow[],
): Promise<void> {
  const { rows } = await tx.query<NewRow & Seal>(
    `
    select customer_id, crypto_tx_hash, crypto_tx_index, ${sealOf('incoming_transfers')}
    from incoming_transfers r
    where r.customer_id = any ($2::uuid[]) and r.network = $1
      and (r.customer_id, r.crypto_tx_hash, r.crypto_tx_index) in (select * from unnest($2::uuid[], $3::text[], $4::text[]))`,
    [network, ...arraysOf(made, 'customer_id', 'crypto_tx_hash', 'crypto_tx_index')],
  )
  await tx.query(
    `
    update incoming_transfers i set mac = m.mac
    from unnest($2::uuid[], $3::text[], $4::text[], $5::text[]) as m (customer_id, hash, index, mac)
    where i.customer_id = any ($2::uuid[]) and i.customer_id = m.customer_id and i.network = $1
      and i.crypto_tx_hash = m.hash and i.crypto_tx_index = m.index`,
    [
      network,
      ...arraysOf(rows, 'customer_id', 'crypto_tx_hash', 'crypto_tx_index'),
      rows.map(({ sealed }) => macs.macOf('incoming_transfers', sealed)),
    ],
  )
}

type Reorganised = Omit<
  IncomingTransfer,
  'block_number' | 'block_hash' | 'cleared' | 'attempts' | keyof Seal
> & {
  transfer_id: string
}

const isSameTransfer = (deposit: Reorganised, arrival: FoundDeposit) =>
  deposit.crypto_tx_hash === arrival.crypto_tx_hash &&
  deposit.address === arrival.address &&
  deposit.asset === arrival.asset &&
  minorOf(deposit) === minorOf(arrival)

const selectReorganised = (tx: Transaction, network: CryptoNetwork, deposits: FoundDeposit[]) =>
  lockRows<Reorganised>(
    tx,
    {
      columns: 'customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount, transfer_id',
      from: `incoming_transfers where network = $1 and state = 'REORGANISED' and crypto_tx_hash = any ($2)`,
      order: 'crypto_tx_hash, crypto_tx_index',
    },
    [network, deposits.map(({ crypto_tx_hash }) => crypto_tx_hash)],
  )

/** Marks a deposit whose transaction is in the chain again. Under a new index, a second row prevents a second credit. */
async function restore(tx: Transaction, gone: Reorganised, arrival: FoundDeposit): Promise<void> {
  const { customer_id, network, crypto_tx_hash, crypto_tx_index, transfer_id } = gone
  await tx.query(
    `
    update incoming_transfers set state = 'CREDITED', detail = null, block_number = $5, block_hash = $6
    where customer_id = $1 and network = $2 and crypto_tx_hash = $3 and crypto_tx_index = $4`,
    [
      customer_id,
      network,
      crypto_tx_hash,
      crypto_tx_index,
      arrival.block?.number.toString() ?? null,
      arrival.block?.hash ?? null,
    ],
  )
  if (arrival.crypto_tx_index === crypto_tx_index) return
  const again = { network, crypto_tx_hash, crypto_tx_index: arrival.crypto_tx_index }
  if ((await creditedAs(tx, customer_id, again)) === undefined)
    await insertCredited(tx, customer_id, [{ ...again, transfer_id }])
  await recordCredited(tx, { customer_id, network }, arrival, transfer_id)
}

/** Records a deposit that is credited already. Changes nothing where it is recorded. */
export async function recordCredited(
  db: Queryable,
  { customer_id, network }: Pick<IncomingTransfer, 'customer_id' | 'network'>,
  { crypto_tx_hash, crypto_tx_index, address, asset, amount, block }: FoundDeposit,
  transferId: string,
): Promise<void> {
  await db.query(
    `
    insert into incoming_transfers (customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount,
                                    block_number, block_hash, state, cleared, transfer_id, attempts, found_at, due_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'CREDITED', true, $10, 0, clock_timestamp(), clock_timestamp())
    on conflict (customer_id, network, crypto_tx_hash, crypto_tx_index) do nothing`,
    [
      customer_id,
      network,
      crypto_tx_hash,
      crypto_tx_index,
      address,
      asset,
      amount,
      block?.number.toString(),
      block?.hash,
      transferId,
    ],
  )
}
