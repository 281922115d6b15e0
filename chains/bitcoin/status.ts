import assert from 'node:assert/strict'
import { connectionLost } from '../../src/db/database.ts'
import type {
  BroadcastWithdrawal,
  Confirmations,
  PaymentStatus,
  SignedTransaction,
  Withdrawal,
} from '../../src/networks/network.ts'
import { judgeAlone } from '../../src/networks/judge-alone.ts'
import { selectPayees, type Payees } from '../../src/networks/network-transactions.ts'
import type { FeeShare } from '../kit/fee-share.ts'
import { decode, hashIn, isAsked, splitOutpoint, type Outpoint } from './decode.ts'
import {
  walletBytesOf,
  confirmedBy,
  paymentIndexes,
  paymentsOf,
  paymentsTo,
  shareAmong,
  WHOLE_FEE,
  type PaymentTarget,
} from './payments.ts'
import {
  fetchTransactions,
  known,
  type BitcoinWallet,
  type ListedOutput,
  type WalletTransaction,
} from './wallet.ts'

/** Where the node has a transaction. */
interface Location {
  /** Absent where the wallet does not know it: the wallet knows its own transactions once they were broadcast. */
  transaction: WalletTransaction | undefined
  /** Where negative, the confirmations of a conflicting transaction. */
  confirmations: number
  inMempool: boolean
}

/**
 * How far a transaction is. CONFLICTED: it can never be mined, since confirmed transactions have spent its inputs, or the
 * inputs of an ancestor. `spenders` are the wallet's transactions that may have done so.
 */
type TransactionProgress =
  | { state: 'PENDING' | 'UNKNOWN' }
  | { state: 'MINED'; confirmations?: Confirmations }
  | { state: 'CONFIRMED'; transaction: WalletTransaction }
  | { state: 'CONFLICTED'; spenders: WalletTransaction[] }

export async function locate({ rpc }: BitcoinWallet, hashes: string[]): Promise<Location[]> {
  // The mempool is asked first: where the transaction is mined between the two calls, the wallet knows it.
  const pooled = await rpc.batch<object>(hashes.map((hash) => ['getmempoolentry', hash]))
  const found = await rpc.batch<WalletTransaction>(hashes.map((hash) => ['gettransaction', hash]))
  return found.map((answer, index): Location => {
    const transaction = known(answer)
    return {
      transaction,
      confirmations: Number(transaction?.confirmations ?? 0),
      inMempool: known(pooled[index]!) !== undefined,
    }
  })
}

/** How far each withdrawal's transaction is. */
export async function checkStatus(
  wallet: BitcoinWallet,
  withdrawals: BroadcastWithdrawal[],
): Promise<PaymentStatus[]> {
  const byHash = new Map(withdrawals.map((withdrawal) => [withdrawal.crypto_tx_hash, withdrawal]))
  const locations = await locate(wallet, [...byHash.values()].map(networkHashOf))
  const progress = new Map<string, TransactionProgress>()
  for (const [index, [hash, withdrawal]] of [...byHash].entries())
    progress.set(hash, await progressAt(wallet, locations[index]!, withdrawal))
  const mined = [...progress].flatMap(([hash, { state }]) => (state === 'CONFIRMED' ? hash : []))
  const payees =
    mined.length === 0 ? new Map<string, Payees>() : await selectPayees(wallet.db, wallet.network, mined)
  const answers: PaymentStatus[] = []
  for (const withdrawal of withdrawals) {
    const hash = withdrawal.crypto_tx_hash
    const now = progress.get(hash)!
    answers.push(
      await judgeAlone(() => {
        if (now.state === 'CONFIRMED') return confirmed(wallet, now.transaction, withdrawal, payees.get(hash))
        if (now.state === 'CONFLICTED') return outcomeOfConflict(wallet, now.spenders, withdrawal)
        return now
      }),
    )
  }
  return answers
}

/** The hash by which the network knows a transaction: what a person is asked to sign is stored under another. */
const networkHashOf = ({ raw_transaction, crypto_tx_hash }: SignedTransaction): string =>
  isAsked(raw_transaction) ? decode(raw_transaction).txid : crypto_tx_hash

export async function progressOf(
  wallet: BitcoinWallet,
  withdrawal: BroadcastWithdrawal,
): Promise<TransactionProgress> {
  const [location] = await locate(wallet, [networkHashOf(withdrawal)])
  return progressAt(wallet, location!, withdrawal)
}

async function progressAt(
  wallet: BitcoinWallet,
  { transaction, confirmations, inMempool }: Location,
  withdrawal: BroadcastWithdrawal,
): Promise<TransactionProgress> {
  if (transaction !== undefined && confirmations >= wallet.depth) return { state: 'CONFIRMED', transaction }
  if (transaction !== undefined && confirmations <= -wallet.depth)
    return {
      state: 'CONFLICTED',
      spenders: await fetchTransactions(wallet, transaction.walletconflicts),
    }
  if (confirmations > 0)
    return { state: 'MINED', confirmations: { seen: confirmations, needed: wallet.depth } }
  if (confirmations < 0) return { state: 'MINED' }
  if (inMempool) return { state: 'PENDING' }
  return progressOfMissing(wallet, withdrawal)
}

/**
 * The status of a withdrawal that its own transaction has paid, as the stored bytes of that hash show. Several payments
 * share the fee, and their parts add up to it. A transaction signed by Bursar has its payments first. Of any other
 * transaction, the node says which outputs are payments.
 */
function confirmed(
  wallet: BitcoinWallet,
  transaction: WalletTransaction,
  withdrawal: BroadcastWithdrawal,
  kept: Payees | undefined,
): PaymentStatus {
  const { raw_transaction, crypto_tx_index } = withdrawal
  assert(decode(raw_transaction).txid === transaction.txid, 'the kept bytes are those of its transaction')
  const [paid] = paymentsOf(wallet, withdrawal)
  assert(paid !== undefined, 'the kept bytes pay its destination')
  if (crypto_tx_index === undefined) return confirmedBy(wallet, transaction, paid, WHOLE_FEE)
  const indexes =
    kept?.kind === 'WITHDRAWALS'
      ? Array.from({ length: kept.payments }, (_, index) => String(index))
      : paymentIndexes(transaction)
  return confirmedBy(wallet, transaction, paid, shareAmong(indexes, paid))
}

/**
 * The network does not have the transaction. It is conflicted when confirmed transactions of the wallet have spent its
 * inputs, or those of its parents: somebody has used the wallet while its locks were forgotten.
 */
async function progressOfMissing(
  wallet: BitcoinWallet,
  { raw_transaction }: BroadcastWithdrawal,
): Promise<TransactionProgress> {
  const { rpc, depth } = wallet
  for (const input of decode(raw_transaction).inputs) {
    const { txid, vout } = splitOutpoint(input)
    const [parent] = await fetchTransactions(wallet, [txid])
    const confirmations = Number(parent?.confirmations ?? 0)
    if (confirmations <= -depth) return { state: 'CONFLICTED', spenders: [] }
    if (confirmations < depth || (await rpc.call('gettxout', txid, vout, false)) !== null) continue
    const spender = await confirmedSpender(wallet, parent!.blockhash!, input)
    if (spender !== undefined) return { state: 'CONFLICTED', spenders: [spender] }
  }
  return { state: 'UNKNOWN' }
}

/** The wallet's confirmed transaction that has spent an output, in this block or later. */
async function confirmedSpender(
  wallet: BitcoinWallet,
  block: string,
  outpoint: Outpoint,
): Promise<WalletTransaction | undefined> {
  const { rpc, depth } = wallet
  const { previousblockhash } = await rpc.call<{ previousblockhash: string }>('getblockheader', block)
  const { transactions } = await rpc.call<{ transactions: ListedOutput[] }>(
    'listsinceblock',
    previousblockhash,
  )
  const sent = transactions.filter(
    ({ category, confirmations }) => category === 'send' && Number(confirmations) >= depth,
  )
  // The node lists no payment to addresses that it has not given out, such as change. Its outputs there are coins without a
  // label.
  const coins = await rpc.call<{ txid: string; label?: string }[]>('listunspent', depth)
  const change = coins.filter(({ label }) => label === undefined)
  const found = await fetchTransactions(wallet, [...new Set([...sent, ...change].map(({ txid }) => txid))])
  return found.find(
    (transaction) =>
      transaction.fee !== undefined && decode(walletBytesOf(transaction)).inputs.includes(outpoint),
  )
}

/** The status of a withdrawal whose own transaction can never be mined: one of the spenders may have paid it. */
export async function outcomeOfConflict(
  wallet: BitcoinWallet,
  spenders: WalletTransaction[],
  withdrawal: BroadcastWithdrawal,
): Promise<PaymentStatus> {
  const isConfirmed = ({ confirmations }: WalletTransaction) => Number(confirmations) >= wallet.depth
  for (const spender of spenders.filter(isConfirmed)) {
    const paid = await paymentByOther(wallet, spender, withdrawal).catch((error: unknown) => {
      if (!connectionLost(error)) throw error
      return 'NOT_KNOWN' as const
    })
    // A part of the database that holds another payee of the transaction does not answer.
    if (paid === 'NOT_KNOWN') return { state: 'MINED' }
    if (paid !== undefined) return confirmedBy(wallet, spender, paid.index, paid.share)
  }
  const spender = spenders.find(isConfirmed)
  const [first] = decode(withdrawal.raw_transaction).inputs as [Outpoint]
  const isOver = async () =>
    spenders.some((one) => isConfirmed(one) && decode(walletBytesOf(one)).inputs.includes(first)) ||
    (await fetchTransactions(wallet, [hashIn(first)])).some(
      ({ confirmations }) => Number(confirmations) <= -wallet.depth,
    )
  if (wallet.signer !== undefined && !(await isOver())) {
    const detail = `another of its coins is spent, and whoever had the worker may have it signed with ${first} yet: spend that by hand`
    return { state: 'UNRESOLVED', reason: { code: 'UNRESOLVED', detail }, mayBeMined: true }
  }
  const message =
    spender === undefined
      ? 'an ancestor of its transaction can never be mined'
      : `transaction ${spender.txid} has spent its coins, and does not pay it`
  return { state: 'FAILED', refusal: { status_details: { conflicting_transaction: { message } } } }
}

/**
 * Finds the output of another transaction that pays a withdrawal: a transaction that its own replaced, an operator's fee
 * bump, or its own transaction when that was mined a moment ago. If a transaction pays several withdrawals, each output
 * counts for one of them. A transaction recorded for another withdrawal does not count.
 */
async function paymentByOther(
  wallet: BitcoinWallet,
  other: WalletTransaction,
  withdrawal: BroadcastWithdrawal,
): Promise<{ index: string; share: FeeShare } | undefined> {
  const { db, network } = wallet
  const payees = await selectPayees(db, network, [withdrawal.crypto_tx_hash, other.txid])
  const together = await withdrawalsPaidWith(wallet, withdrawal, payees.get(withdrawal.crypto_tx_hash))
  const ids = new Set(together.map(({ transfer_id }) => transfer_id))
  if (payees.get(other.txid)?.transfer_ids.some((id) => !ids.has(id))) return undefined
  const used = new Set<string>()
  const paid = together.flatMap((withdrawal) => {
    const index = paymentsTo(wallet, walletBytesOf(other), withdrawal).find((output) => !used.has(output))
    if (index === undefined) return []
    used.add(index)
    return [{ transfer_id: withdrawal.transfer_id, index }]
  })
  const rank = paid.findIndex(({ transfer_id }) => transfer_id === withdrawal.transfer_id)
  return rank < 0 ? undefined : { index: paid[rank]!.index, share: { of: paid.length, rank } }
}

/**
 * The withdrawals that the same transaction pays, in the order of its outputs. Only the parts of the database with its
 * payees are asked, or all where an older version of Bursar stored it without payees.
 */
async function withdrawalsPaidWith(
  { db, network, canonical, withdrawals }: BitcoinWallet,
  withdrawal: BroadcastWithdrawal,
  payees: Payees | undefined,
): Promise<(PaymentTarget & Pick<Withdrawal, 'transfer_id'>)[]> {
  if (withdrawal.crypto_tx_index === undefined) return [withdrawal]
  const customerIds = [...new Set(payees?.customer_ids)]
  const known = customerIds.length > 0 ? customerIds : undefined
  const rows = await withdrawals.paidBy(db, network, withdrawal.crypto_tx_hash, known)
  return rows.map((row) => ({
    ...row,
    destination_address: canonical(row.destination_address) ?? row.destination_address,
  }))
}
