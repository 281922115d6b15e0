import { randomBytes } from 'node:crypto'
import type { CryptoNetwork } from '../../contract/assets/catalogue.ts'
import type { Database, Queryable } from '../../db/database.ts'
import type { Moment } from '../../db/ids.ts'
import type { DepositScan, DepositSight, FoundDeposit } from '../found-deposits.ts'
import { formatHash } from './hash.ts'

/**
 * SQL condition: the transaction is confirmed, this many milliseconds after its broadcast. A broadcast in the future means
 * that the clock was set back; such a transaction counts as confirmed, or it would wait until the clock catches up.
 */
export const isConfirmed = (milliseconds: string) =>
  `(broadcast_at <= clock_timestamp() - make_interval(secs => ${milliseconds}::float8 / 1000)
    or broadcast_at > clock_timestamp() + interval '1 second')`

/** The confirmations that a simulated transaction needs. They come at equal intervals. */
export const CONFIRMATIONS = 4

/** The confirmations of a transaction that is not confirmed yet, as SQL. */
export const confirmationsOf = (milliseconds: string) =>
  `least(${CONFIRMATIONS - 1}, greatest(0, floor(
     extract(epoch from clock_timestamp() - broadcast_at) * 1000 * ${CONFIRMATIONS} / greatest(${milliseconds}::float8, 1)
   )))::integer`

const DEPOSITS_MAX = 1_000
/** The cursor of the simulated chain. It never moves: each transaction is marked when its deposit is recorded. */
const SIMULATED_CURSOR = 'simulated'

/**
 * Finds withdrawals that pay one of Bursar's own deposit addresses: they arrive as deposits, as on a real chain. `arrives`
 * marks such a transaction at its broadcast, and the database transaction that records the deposit clears the mark. So no
 * deposit is missed, whatever the clock does and in whichever order concurrent broadcasts commit.
 */
export async function scanDeposits(
  db: Database,
  network: CryptoNetwork,
  confirmationMs: number,
): Promise<DepositScan> {
  const { rows } = await db.query<FoundDeposit>({
    name: 'simulated deposits',
    text: `
      select hash as crypto_tx_hash, '0' as crypto_tx_index, sent ->> 'asset' as asset, sent ->> 'amount' as amount,
             sent ->> 'destination_address' as address
      from (
        select hash, convert_from(raw_transaction, 'UTF8')::json as sent
        from simulated_chain
        where crypto_network = $1 and arrives is not false and arrives and dropped_at is null and ${isConfirmed('$2')}
        limit ${DEPOSITS_MAX}
      ) c`,
    values: [network, confirmationMs],
  })
  return {
    cursor: SIMULATED_CURSOR,
    found: rows,
    isBehind: rows.length === DEPOSITS_MAX,
    keep: (tx) =>
      setArrived(
        tx,
        network,
        rows.map(({ crypto_tx_hash }) => crypto_tx_hash),
      ),
  }
}

/** In SQL: the block of a simulated transaction, which is the millisecond of its broadcast. */
const BLOCK = '(extract(epoch from broadcast_at) * 1000)::bigint'

/**
 * Finds deposits that are not confirmed yet. As on a real chain, nearly every deposit is confirmed in the end, and the
 * block of one that `newDeposit` marked is taken back. Blocks count as read up to the first deposit that is not
 * recorded yet.
 */
export async function seeDeposits(
  db: Database,
  network: CryptoNetwork,
  confirmationMs: number,
): Promise<DepositSight> {
  const { rows } = await db.query<Omit<FoundDeposit, 'block'> & { block: string }>({
    name: 'simulated sights',
    text: `
      select hash as crypto_tx_hash, '0' as crypto_tx_index, sent ->> 'asset' as asset, sent ->> 'amount' as amount,
             sent ->> 'destination_address' as address, block
      from (
        select hash, convert_from(raw_transaction, 'UTF8')::json as sent, ${BLOCK}::text as block
        from simulated_chain
        where crypto_network = $1 and arrives is not false and arrives and not ${isConfirmed('$2')}
        order by broadcast_at, hash
        limit ${DEPOSITS_MAX}
      ) c`,
    values: [network, confirmationMs],
  })
  const { rows: read } = await db.query<{ up_to: string }>({
    name: 'simulated blocks read',
    text: `
      select least(
        (extract(epoch from clock_timestamp()) * 1000 - $2::float8)::bigint,
        min(${BLOCK}) - 1
      )::text as up_to
      from simulated_chain
      where crypto_network = $1 and arrives is not false and dropped_at is null`,
    values: [network, confirmationMs],
  })
  return {
    seen: rows.map(({ block, ...found }) => ({ ...found, block: { number: BigInt(block), hash: block } })),
    readUpTo: BigInt(read[0]!.up_to),
    isBehind: rows.length === DEPOSITS_MAX,
  }
}

/** While a deposit is not broadcast yet, its block is taken to be this many milliseconds later. */
const BROADCAST_MS = 1_000n

/**
 * Makes a transaction from outside that pays a deposit address. With `takenBack`, its block is taken back before it is
 * confirmed. `amount` is a decimal string of the asset. `sight` is the deposit as it is seen at this moment, before `broadcast`
 * adds it to the chain.
 */
export function newDeposit(
  network: CryptoNetwork,
  paid: { asset: string; amount: string; address: string },
  { takenBack }: { takenBack: boolean },
): { sight: (now: Moment) => DepositSight['seen'][number]; broadcast: (db: Queryable) => Promise<void> } {
  const { asset, amount, address: destination_address } = paid
  const nonce = randomBytes(8).toString('hex')
  const raw = Buffer.from(JSON.stringify({ network, asset, amount, destination_address, nonce }))
  const crypto_tx_hash = formatHash(network, raw)
  return {
    sight: ({ micros }) => {
      const number = BigInt(micros) / 1_000n + BROADCAST_MS
      return { ...paid, crypto_tx_hash, crypto_tx_index: '0', block: { number, hash: `${number}` } }
    },
    broadcast: async (db) => {
      await db.query(
        `
        insert into simulated_chain (crypto_network, hash, raw_transaction, arrives, broadcast_at, dropped_at)
        select $1, $2, $3, true, at, case when $4::boolean then at end
        from (select clock_timestamp() as at) now`,
        [network, crypto_tx_hash, raw, takenBack],
      )
    },
  }
}

async function setArrived(db: Queryable, network: CryptoNetwork, hashes: string[]): Promise<void> {
  if (hashes.length === 0) return
  await db.query(
    'update simulated_chain set arrives = false where crypto_network = $1 and hash = any ($2::text[])',
    [network, hashes],
  )
}
