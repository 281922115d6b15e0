import type { Queryable, Transaction } from '../../src/db/database.ts'
import { selectOpenTransactions, type OpenTransactionRow } from '../../src/networks/network-transactions.ts'
import { minorOf, sum } from './amounts.ts'
import { inputVbytes, type Coin } from './choose-coins.ts'
import { decode, hashIn, isAsked, outpointOf, splitOutpoint, type Outpoint } from './decode.ts'
import { unrecordedAmong } from '../kit/unknown-spends.ts'
import { fetchTransactions, isWatching, type BitcoinWallet } from './wallet.ts'

/** The wallet's coins, as signing counts them. Amounts are minor units. */
export interface Coins {
  spendable: Coin[]
  /** Deposits that need more confirmations. */
  unconfirmedDeposits: bigint
  /** Change of transactions that are signed and not broadcast. */
  unbroadcastChange: bigint
  /** The hashes of the open transactions. */
  open: ReadonlySet<string>
  /** The open transactions that a person has not signed. */
  unsigned: OpenTransaction[]
}

/** A transaction that is signed or asked, and whose withdrawals are not known to have ended. */
export interface OpenTransaction extends OpenTransactionRow {
  inputs: Outpoint[]
  outputs: bigint[]
  /** Whether an earlier open transaction spends the same coins. */
  replaces: boolean
}

interface Unspent {
  txid: string
  vout: string
  amount: string
  confirmations: string
  scriptPubKey: string
  spendable: boolean
  /** The wallet knows how to sign for it, with or without the keys. */
  solvable: boolean
  safe: boolean
}

/** The hashes of those outputs' transactions that are not on record. */
const foreignAmong = async (db: Queryable, { network }: BitcoinWallet, outputs: readonly Unspent[]) =>
  new Set(await unrecordedAmong(db, network, [...new Set(outputs.map(({ txid }) => txid))]))

/** The change in the mempool that an older node does not trust, because its wallet has no private keys. */
export async function untrustedChange(wallet: BitcoinWallet): Promise<bigint> {
  if (!isWatching(wallet)) return 0n
  const young = await wallet.rpc.call<Unspent[]>('listunspent', 0, 0)
  const untrusted = young.filter(({ safe }) => !safe)
  const foreign = await foreignAmong(wallet.db, wallet, untrusted)
  return sum(untrusted.flatMap(({ txid, amount }) => (foreign.has(txid) ? [] : minorOf(amount))))
}

/**
 * Brings the wallet's locks in line with the open transactions, and returns the coins that are left to spend.
 *
 * Locks keep two transactions from spending the same output. They are in the node's memory, and the node knows nothing of
 * Bursar's transactions. A crash between signing and commit leaves a lock that no transaction needs; a restart of the node
 * forgets all locks. Both are corrected before anything is signed: then the locked outputs are those that open transactions
 * of all customers spend.
 */
export async function reconcileLocks(tx: Transaction, wallet: BitcoinWallet): Promise<Coins> {
  const { rpc, depth } = wallet
  // Until a replacement is broadcast, the wallet would spend the change of the transaction that it replaces.
  const { open, replaced } = await openTransactions(tx, wallet)
  const taken = new Set(open.flatMap(({ inputs }) => inputs))
  const isTaken = (outpoint: Outpoint) => taken.has(outpoint) || replaced.has(hashIn(outpoint))
  const locked = await rpc.call<{ txid: string; vout: string }[]>('listlockunspent')
  await setLocks(
    wallet,
    'unlock',
    locked.map(outpointOf).filter((outpoint) => !isTaken(outpoint)),
  )

  const unspent = await rpc.call<Unspent[]>('listunspent', 0)
  const unspentOutpoints = new Set([...locked, ...unspent].map(outpointOf))
  // An output that is spent already cannot be locked, and needs no lock.
  await setLocks(wallet, 'lock', unspent.map(outpointOf).filter(isTaken))
  const free = unspent.filter((output) => isSpendable(wallet, output) && !isTaken(outpointOf(output)))
  // A reorganisation may drop a deposit and all that spends it. Our own change is as safe as the inputs of its transaction.
  const young = free.filter(({ confirmations }) => Number(confirmations) < depth)
  const foreign = await foreignAmong(tx, wallet, young)
  const isUnconfirmed = ({ txid, confirmations }: Unspent) =>
    Number(confirmations) < depth && foreign.has(txid)
  const replacements = open.flatMap(({ replaces, crypto_tx_hash }) => (replaces ? crypto_tx_hash : []))
  const broadcast = new Set((await fetchTransactions(wallet, replacements)).map(({ txid }) => txid))
  // The outputs that a broadcast transaction spends are neither locked nor unspent.
  const isUnbroadcast = ({ inputs, replaces, crypto_tx_hash }: OpenTransaction) =>
    replaces ? !broadcast.has(crypto_tx_hash) : inputs.some((input) => unspentOutpoints.has(input))
  return {
    spendable: free.filter((output) => output.safe && !isUnconfirmed(output)).map(coinOf),
    unconfirmedDeposits: sum(free.filter(isUnconfirmed).map(({ amount }) => minorOf(amount))),
    unbroadcastChange: sum(open.filter(isUnbroadcast).flatMap((sent) => sent.outputs.slice(sent.payments))),
    open: new Set(open.map(({ crypto_tx_hash }) => crypto_tx_hash)),
    unsigned: open.filter(({ raw_transaction }) => isAsked(raw_transaction)),
  }
}

/**
 * A transaction that others sign spends only outputs of native segregated witness, so that its hash is known before it is
 * signed. A person takes long: only a spend of its own confirmed coins shall make it void. Older nodes call no output that they
 * only watch spendable.
 */
const isSpendable = ({ signing, signer, depth }: BitcoinWallet, output: Unspent): boolean =>
  signer !== undefined
    ? output.solvable && output.scriptPubKey.startsWith('0014')
    : signing === 'psbt'
      ? output.solvable &&
        Number(output.confirmations) >= depth &&
        /^(00(14|20)|5120)/.test(output.scriptPubKey)
      : output.spendable

const coinOf = (output: Unspent): Coin => ({
  outpoint: outpointOf(output),
  amount: minorOf(output.amount),
  vbytes: inputVbytes(output.scriptPubKey),
  isMined: Number(output.confirmations) > 0,
})

/**
 * The transactions of the network that have not ended, each once: all of them, those that no later one replaces, and the
 * hashes of those that one replaces. A replacement spends the same coins. What can never be mined holds none: its
 * withdrawals are signed anew.
 */
export async function openTransactions(
  db: Queryable,
  { network }: BitcoinWallet,
): Promise<{ all: OpenTransaction[]; open: OpenTransaction[]; replaced: ReadonlySet<string> }> {
  const newest = new Map<Outpoint, string>()
  const selected = (await selectOpenTransactions(db, network)).map((row): OpenTransaction => {
    const { inputs, outputs } = decode(row.raw_transaction)
    const replaces = inputs.some((input) => newest.has(input))
    if (row.used_by === null) for (const input of inputs) newest.set(input, row.crypto_tx_hash)
    return { ...row, inputs, outputs: outputs.map(({ amount }) => amount), replaces }
  })
  const mineable = selected.filter(({ used_by }) => used_by === null)
  const isReplaced = ({ inputs, crypto_tx_hash }: OpenTransaction) =>
    inputs.some((input) => newest.get(input) !== crypto_tx_hash)
  return {
    all: selected,
    open: mineable.filter((transaction) => !isReplaced(transaction)),
    replaced: new Set(mineable.filter(isReplaced).map(({ crypto_tx_hash }) => crypto_tx_hash)),
  }
}

export async function setLocks(
  { rpc }: BitcoinWallet,
  change: 'lock' | 'unlock',
  outpoints: Outpoint[],
): Promise<void> {
  if (outpoints.length === 0) return
  await rpc.call('lockunspent', change === 'unlock', outpoints.map(splitOutpoint))
}
