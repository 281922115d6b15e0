import type { CryptoNetwork } from '../../assets/catalogue.ts'
import type { Database, Queryable } from '../../db/database.ts'
import type { DepositScan, FoundDeposit } from '../network.ts'

/**
 * SQL condition: the transaction is confirmed, this many milliseconds after its broadcast. A broadcast in the future means
 * that the clock was set back; such a transaction counts as confirmed, or it would wait until the clock catches up.
 */
export const isConfirmed = (milliseconds: string) =>
  `(broadcast_at <= clock_timestamp() - make_interval(secs => ${milliseconds}::float8 / 1000)
    or broadcast_at > clock_timestamp() + interval '1 second')`

const DEPOSITS_MAX = 1_000
/** The cursor of the simulated chain. It never moves: each transaction is marked when its deposit is recorded. */
const SIMULATED_CURSOR = 'simulated'

/**
 * Finds withdrawals that pay one of Bursar's own deposit addresses: they arrive as deposits, as on a real chain. `arrives`
 * marks such a transaction at its broadcast, and the transaction that records the deposit clears the mark. So no deposit
 * is missed, whatever the clock does and in whichever order concurrent broadcasts commit.
 */
export async function scanDeposits(
  db: Database,
  network: CryptoNetwork,
  confirmationMs: number,
): Promise<DepositScan> {
  await markUnmarked(db, network)
  const { rows } = await db.query<FoundDeposit>({
    name: 'simulated deposits',
    text: `
      select hash as crypto_tx_hash, '0' as crypto_tx_index, sent ->> 'asset' as asset, sent ->> 'amount' as amount,
             sent ->> 'destination_address' as address
      from (
        select hash, convert_from(raw_transaction, 'UTF8')::json as sent
        from simulated_chain
        where crypto_network = $1 and arrives is not false and arrives and ${isConfirmed('$2')}
        limit ${DEPOSITS_MAX}
      ) c`,
    values: [network, confirmationMs],
  })
  return {
    cursor: SIMULATED_CURSOR,
    found: rows,
    isBehind: rows.length === DEPOSITS_MAX,
    keep: (tx) => setArrives(tx, network, { arrived: rows.map(({ crypto_tx_hash }) => crypto_tx_hash) }),
  }
}

/** Sets `arrives` for transactions that an earlier version, which did not know the column, broadcast. */
async function markUnmarked(db: Database, network: CryptoNetwork): Promise<void> {
  const { rows } = await db.query<{ hash: string; address: string | null }>(
    `
    select hash, convert_from(raw_transaction, 'UTF8')::json ->> 'destination_address' as address
    from simulated_chain
    where crypto_network = $1 and arrives is null
    limit ${DEPOSITS_MAX}`,
    [network],
  )
  if (rows.length === 0) return
  const depositAddresses = await selectDepositAddresses(
    db,
    rows.map(({ address }) => address ?? ''),
  )
  const arrives = ({ address }: { address: string | null }) => depositAddresses.has(address ?? '')
  await setArrives(db, network, {
    arrives: rows.filter(arrives).map(({ hash }) => hash),
    arrived: rows.filter((row) => !arrives(row)).map(({ hash }) => hash),
  })
}

async function setArrives(
  db: Queryable,
  network: CryptoNetwork,
  { arrives = [], arrived }: { arrives?: string[]; arrived: string[] },
): Promise<void> {
  if (arrives.length + arrived.length === 0) return
  await db.query(
    `
    update simulated_chain set arrives = hash = any ($2::text[])
    where crypto_network = $1 and hash = any ($2::text[] || $3::text[])`,
    [network, arrives, arrived],
  )
}

/** Reads which of these addresses are deposit addresses of Bursar. */
export async function selectDepositAddresses(db: Database, addresses: string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ address: string }>(
    'select distinct address from deposit_addresses where address = any ($1::text[])',
    [addresses],
  )
  return new Set(rows.map(({ address }) => address))
}
