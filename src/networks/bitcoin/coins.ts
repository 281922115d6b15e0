import assert from 'node:assert/strict'
import type { Transaction } from '../../db/database.ts'
import { minorOf, sum } from './amounts.ts'
import { inputVbytes, type Coin } from './batch.ts'
import { decode, hashIn, outpointOf, splitOutpoint, type Outpoint } from './decode.ts'
import { unrecordedAmong } from './unknown-spends.ts'
import type { BitcoinWallet } from './wallet.ts'

/** The wallet's coins, as signing counts them. Amounts are minor units. */
export interface Coins {
  spendable: Coin[]
  /** Deposits that need more confirmations. */
  unconfirmedDeposits: bigint
  /** Change of transactions that are signed and not broadcast. */
  unbroadcastChange: bigint
  /** The hashes of the open transactions. */
  open: ReadonlySet<string>
}

/** An open transaction: it is signed, and its withdrawals have not ended. */
export interface OpenTransaction {
  crypto_tx_hash: string
  isBroadcast: boolean
  raw_transaction: Buffer
  /** How many of its outputs, from the first, are payments; unknown for a transaction that the wallet itself built. */
  payments: number | undefined
}

/** A database that ran a simulated network before has JSON as its bytes: those are no transactions of this network. */
const OPEN = `
  select crypto_tx_hash, bool_and(state = 'SIGNED') as unsent, (array_agg(raw_transaction))[1] as raw_transaction
  from outgoing_transfers
  where network = $1 and due_at is not null and state in ('SIGNED', 'BROADCAST')
    and (raw_transaction is null or get_byte(raw_transaction, 0) <> ascii('{'))
  group by crypto_tx_hash`
/** The bytes of transactions that pay several withdrawals, kept once. */
const SHARED_BYTES = `
  select crypto_tx_hash, raw_transaction, payments
  from network_transactions
  where network = $1 and crypto_tx_hash = any ($2)`

/** The transactions that open ones have replaced. */
const REPLACED = `
  select distinct r.crypto_tx_hash
  from outgoing_transfers b
  join replaced_transactions r on r.customer_id = b.customer_id and r.transfer_id = b.transfer_id
  where b.network = $1 and b.due_at is not null`

interface Unspent {
  txid: string
  vout: string
  amount: string
  confirmations: string
  scriptPubKey: string
  spendable: boolean
  safe: boolean
}

/**
 * Brings the wallet's locks in line with the open transactions, and gives the coins that are left to spend.
 *
 * Locks keep two transactions from spending the same output. They are in the node's memory, and the node knows nothing of
 * Bursar's transactions. A crash between signing and commit leaves a lock that no transaction needs; a restart of the node
 * forgets all locks. So both are corrected before anything is signed: the locked outputs are those that open transactions
 * spend, of every customer.
 */
export async function reconcileLocks(tx: Transaction, wallet: BitcoinWallet): Promise<Coins> {
  const { rpc, network, depth } = wallet
  const open = await openTransactions(tx, wallet)
  const taken = new Set(open.flatMap(({ raw_transaction }) => decode(raw_transaction).inputs))
  // Until a replacement is broadcast, the wallet would spend the change of the transaction that it replaces.
  const { rows } = await tx.query<{ crypto_tx_hash: string }>(REPLACED, [network])
  const replaced = new Set(rows.map(({ crypto_tx_hash }) => crypto_tx_hash))
  const isTaken = (outpoint: Outpoint) => taken.has(outpoint) || replaced.has(hashIn(outpoint))
  const locked = await rpc.call<{ txid: string; vout: string }[]>('listlockunspent')
  await setLocks(
    wallet,
    'unlock',
    locked.map(outpointOf).filter((outpoint) => !isTaken(outpoint)),
  )

  const unspent = await rpc.call<Unspent[]>('listunspent', 0)
  // An output that is spent already cannot be locked, and needs no lock.
  await setLocks(wallet, 'lock', unspent.map(outpointOf).filter(isTaken))
  const free = unspent.filter((output) => output.spendable && !isTaken(outpointOf(output)))
  // A reorganisation may drop a deposit, and every transaction that spends it. Our own change is as good as its inputs.
  const young = free.filter(({ confirmations }) => Number(confirmations) < depth)
  const foreign = new Set(await unrecordedAmong(tx, wallet, [...new Set(young.map(({ txid }) => txid))]))
  const isUnconfirmed = ({ txid, confirmations }: Unspent) =>
    Number(confirmations) < depth && foreign.has(txid)
  return {
    spendable: free.filter((output) => output.safe && !isUnconfirmed(output)).map(coinOf),
    unconfirmedDeposits: sum(free.filter(isUnconfirmed).map(({ amount }) => minorOf(amount))),
    unbroadcastChange: sum(open.flatMap((one) => (one.isBroadcast ? [] : changeOf(one)))),
    open: new Set(open.map(({ crypto_tx_hash }) => crypto_tx_hash)),
  }
}

const coinOf = (output: Unspent): Coin => ({
  outpoint: outpointOf(output),
  amount: minorOf(output.amount),
  vbytes: inputVbytes(output.scriptPubKey),
  isMined: Number(output.confirmations) > 0,
})

const changeOf = ({ raw_transaction, payments }: OpenTransaction): bigint[] =>
  payments === undefined ? [] : decode(raw_transaction).outputs.slice(payments)

/** Every open transaction of the network, once. */
export async function openTransactions(
  tx: Transaction,
  { network }: BitcoinWallet,
): Promise<OpenTransaction[]> {
  const { rows } = await tx.query<{
    crypto_tx_hash: string
    unsent: boolean
    raw_transaction: Buffer | null
  }>(OPEN, [network])
  const shared = rows.filter(({ raw_transaction }) => raw_transaction === null)
  const bytes =
    shared.length === 0
      ? []
      : (
          await tx.query<{ crypto_tx_hash: string; raw_transaction: Buffer; payments: number }>(
            SHARED_BYTES,
            [network, shared.map(({ crypto_tx_hash }) => crypto_tx_hash)],
          )
        ).rows
  const byHash = new Map(bytes.map((row) => [row.crypto_tx_hash, row]))
  return rows.map(({ crypto_tx_hash, unsent, raw_transaction: own }) => {
    const kept = byHash.get(crypto_tx_hash)
    const raw_transaction = own ?? kept?.raw_transaction
    assert(raw_transaction !== undefined, `the database has no bytes of ${crypto_tx_hash} on ${network}`)
    return { crypto_tx_hash, isBroadcast: !unsent, raw_transaction, payments: kept?.payments }
  })
}

/** Locks outputs of the wallet, or unlocks them. */
export async function setLocks(
  { rpc }: BitcoinWallet,
  change: 'lock' | 'unlock',
  outpoints: Outpoint[],
): Promise<void> {
  if (outpoints.length === 0) return
  await rpc.call('lockunspent', change === 'unlock', outpoints.map(splitOutpoint))
}
