import { parseAmount, parseStoredAmount } from '../../contract/assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../../contract/assets/catalogue.ts'
import { transaction, type Database, type Transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { takeLock } from '../../db/locks.ts'
import { updateWaiting, type IncomingTransfer, type Sifted } from './incoming-transfers.ts'

/**
 * Deposits below the minimum of their network (API behaviour, Deposit addresses). They wait without being due, whatever
 * their number. A further deposit at their place, or another minimum, makes them due once their sum reaches it. The sum is
 * compared before a second node is asked about them. Each keeps its row, because only the row of an output or log prevents a
 * second credit.
 */

/** The smallest amount of an asset that is credited, a decimal string. */
type MinimumOf = (asset: string) => string

/** How many deposits of a place become due each second, so that thousands of them delay no other deposit. */
const WOKEN_PER_SECOND = 50
/** Within this time all of them are due. */
const WAKING_SECONDS_MAX = 3_000

type DepositPlace = Pick<IncomingTransfer, 'customer_id' | 'address' | 'asset'>

const nameOf = ({ customer_id, address, asset }: DepositPlace) => `${customer_id} ${address} ${asset}`

/**
 * Lets those deposits pass that may be credited alone, or that reach the minimum together with the others of their place:
 * then all of these are cleared, for good. The others wait, and are recorded here.
 */
export async function aboveMinimum(
  db: Database,
  network: CryptoNetwork,
  due: IncomingTransfer[],
  minimumOf: MinimumOf | undefined,
): Promise<Sifted> {
  if (minimumOf === undefined) return { pass: due, wait: [] }
  const undecided = due.filter(({ cleared }) => !cleared)
  if (undecided.length === 0) return { pass: due, wait: [] }
  const small = undecided.filter(({ asset, amount }) => isBelow(minimumOf, asset, amount))
  const reached = await transaction(db, async (tx) => {
    await takeLock(tx, 'minimum', network)
    await keepSmall(tx, small, minimumOf)
    const sums = await selectSums(tx, network, undecided)
    const places = new Set(undecided.filter((deposit) => !small.includes(deposit)).map(nameOf))
    for (const { sum, ...place } of sums) if (!isBelow(minimumOf, place.asset, sum)) places.add(nameOf(place))
    await clear(
      tx,
      undecided.filter((deposit) => places.has(nameOf(deposit))),
    )
    for (const place of sums) if (places.has(nameOf(place))) await wake(tx, network, place)
    return places
  })
  return { pass: due.filter((deposit) => deposit.cleared || reached.has(nameOf(deposit))), wait: [] }
}

/**
 * Makes the small deposits due that reach the minimum together. The minimum may have been another before this process began.
 */
export async function wakeSmallDeposits(
  db: Database,
  network: CryptoNetwork,
  minimumOf: MinimumOf,
): Promise<void> {
  await transaction(db, async (tx) => {
    await takeLock(tx, 'minimum', network)
    for (const { sum, ...place } of await selectSums(tx, network))
      if (!isBelow(minimumOf, place.asset, sum)) await wake(tx, network, place)
  })
}

const isBelow = (minimumOf: MinimumOf, asset: string, amount: string) =>
  parseStoredAmount(amount, decimalsOf(asset)) < parseAmount(minimumOf(asset), decimalsOf(asset))!

const keepSmall = (
  tx: Transaction,
  small: readonly IncomingTransfer[],
  minimumOf: MinimumOf,
): Promise<void> =>
  updateWaiting(
    tx,
    {
      update: `update incoming_transfers i set reason = 'BELOW_MINIMUM', detail = u.detail, attempts = i.attempts + 1`,
      and: 'not i.cleared',
      columns: ['detail text'],
    },
    small.map((incoming) => ({
      incoming,
      detail: `below the minimum deposit of ${minimumOf(incoming.asset)} ${incoming.asset}`,
    })),
  )

/** The places where small deposits wait, with their sum: those of these deposits, or all of the network. */
async function selectSums(
  tx: Transaction,
  network: CryptoNetwork,
  among?: readonly DepositPlace[],
): Promise<(DepositPlace & { sum: string })[]> {
  const { rows } = await tx.query<DepositPlace & { sum: string }>(
    `
    select customer_id, address, asset, sum(amount) as sum
    from incoming_transfers
    where network = $1 and state = 'WAITING' and reason = 'BELOW_MINIMUM'
      and ($2::uuid[] is null or (customer_id = any ($2::uuid[]) and address = any ($3::text[])))
    group by customer_id, address, asset`,
    [
      network,
      among?.map(({ customer_id }) => customer_id) ?? null,
      among?.map(({ address }) => address) ?? null,
    ],
  )
  return rows
}

const clear = (tx: Transaction, deposits: readonly IncomingTransfer[]): Promise<void> =>
  updateWaiting(
    tx,
    {
      update: 'update incoming_transfers i set cleared = true, reason = null, detail = null',
      and: 'not i.cleared',
    },
    deposits.map((incoming) => ({ incoming })),
  )

/** Clears the deposits that wait at a place. They become due one after the other. */
async function wake(
  tx: Transaction,
  network: CryptoNetwork,
  { customer_id, address, asset }: DepositPlace,
): Promise<void> {
  const now = await readClock(tx)
  await tx.query(
    `
    update incoming_transfers i
    set cleared = true, reason = null, detail = null,
        due_at = to_timestamp(extract(epoch from $5::timestamptz)::float8 + least($6::int, w.before / $7::int))
    from (
      select crypto_tx_hash, crypto_tx_index,
             row_number() over (order by crypto_tx_hash, crypto_tx_index) - 1 as before
      from incoming_transfers
      where customer_id = $1 and network = $2 and address = $3 and asset = $4 and state = 'WAITING'
        and reason = 'BELOW_MINIMUM'
    ) w
    where i.customer_id = $1 and i.network = $2 and i.crypto_tx_hash = w.crypto_tx_hash
      and i.crypto_tx_index = w.crypto_tx_index`,
    [customer_id, network, address, asset, now.text, WAKING_SECONDS_MAX, WOKEN_PER_SECOND],
  )
}
