import type { Queryable, Transaction } from '../../src/db/database.ts'
import type { PaidWithdrawal, SignedTransaction } from '../../src/networks/network.ts'
import type { MovedOnChain } from '../../src/networks/moved-on-chain.ts'
import { decimalOf, larger, minorOf, sum } from './amounts.ts'
import { decode, hashIn, outpointOf } from './decode.ts'
import { walletBytesOf, paymentIndexes, paymentsTo, shareAmong } from './payments.ts'
import { partOf } from '../kit/fee-share.ts'
import { coinsWithTokens } from './tokens.ts'
import { unrecordedAmong } from '../kit/unknown-spends.ts'
import { fetchTransactions, isReceived, type BitcoinWallet, type WalletTransaction } from './wallet.ts'
import { depositAddressesAmong } from '../../src/networks/deposit-addresses.ts'

/** Unknown spends that an operator accounts for: as a withdrawal's payment, or as the platform's own. */

async function requireTransaction(wallet: BitcoinWallet, hash: string): Promise<WalletTransaction> {
  const [transaction] = await fetchTransactions(wallet, [hash])
  if (transaction === undefined) throw new Error(`the wallet of ${wallet.network} has no transaction ${hash}`)
  return transaction
}

/** The wallet's output that has paid a withdrawal. Throws an Error where none has, or the withdrawal may be paid twice. */
export async function claimTransaction(
  from: Queryable,
  wallet: BitcoinWallet,
  withdrawal: PaidWithdrawal,
  hash: string,
): Promise<SignedTransaction> {
  // Where another transaction replaces the withdrawal's own, `checkStatus` finds the other one once it is confirmed.
  if (withdrawal.raw_transaction !== null)
    throw new Error(
      `withdrawal ${withdrawal.transfer_id} has a transaction of its own, which may still be mined`,
    )
  const transaction = await requireTransaction(wallet, hash)
  const { amount, destination_address } = withdrawal
  const raw_transaction = walletBytesOf(transaction)
  const paying = paymentsTo(wallet, raw_transaction, withdrawal)
  if (paying.length === 0)
    throw new Error(`${hash} does not pay ${amount} ${wallet.coin} to ${destination_address}`)
  if (Number(transaction.confirmations) < 0)
    throw new Error(`another transaction was mined instead of ${hash}`)
  const rows = (await wallet.withdrawals.paidBy(from, wallet.network, hash)).filter(
    ({ transfer_id }) => transfer_id !== withdrawal.transfer_id,
  )
  const owner = (index: string) => rows.find(({ crypto_tx_index }) => crypto_tx_index === index)
  const free = paying.find((index) => owner(index) === undefined)
  if (free === undefined)
    throw new Error(`${hash} is the transaction of withdrawal ${owner(paying[0]!)!.transfer_id}`)
  return {
    raw_transaction,
    crypto_tx_hash: transaction.txid,
    crypto_tx_index: free,
    payments: new Set([...paymentIndexes(transaction), free]).size,
  }
}

/**
 * The effect of an unrecorded transaction on the platform's own money. Outputs marked as withdrawals' payments count for the
 * withdrawals, with their part of the fee; deposits count as deposits. Throws an Error where the transaction is not confirmed,
 * is recorded already, or is not the wallet's alone.
 */
export async function movedBy(tx: Transaction, wallet: BitcoinWallet, hash: string): Promise<MovedOnChain> {
  const { coin, depth, canonical } = wallet
  const transaction = await requireTransaction(wallet, hash)
  const { fee, confirmations } = transaction
  if (Number(confirmations) < depth)
    throw new Error(`${hash} has ${confirmations} confirmations, and needs ${depth}`)
  if ((await unrecordedAmong(tx, wallet.network, [hash])).length === 0)
    throw new Error(`${hash} is known: it is a withdrawal's, or the platform's own`)
  if (fee === undefined) return { moved: await receivedIn(tx, wallet, transaction), payments: [] }
  if (minorOf(fee) > 0n) throw new Error(`the wallet owns only some of the inputs of ${hash}`)
  const rows = await wallet.withdrawals.paidBy(tx, wallet.network, hash)
  const indexes = paymentIndexes(transaction)
  const withdrawn = sum(rows.map(({ amount }) => minorOf(amount)))
  const withdrawalFees = sum(
    rows.map(({ crypto_tx_index }) => partOf(-minorOf(fee), shareAmong(indexes, crypto_tx_index))),
  )
  // Coins with tokens are in no custody: what a person returns of them moves nothing, and pays the fee first.
  const inputs = wallet.dialect.hasTokens ? decode(walletBytesOf(transaction)).inputs : []
  const coins = await coinsWithTokens(wallet, inputs.map(hashIn))
  const tokens = sum(inputs.map((input) => coins.get(input) ?? 0n))
  const ownFee = larger(-minorOf(fee) - tokens, 0n)
  // Negative: what others have received beyond the withdrawals.
  const moved = minorOf(transaction.amount) + withdrawn + tokens + minorOf(fee) + ownFee
  const marked = new Set(rows.map(({ crypto_tx_index }) => crypto_tx_index))
  const unmarked = transaction.details.filter(
    ({ category, vout }) => category === 'send' && !marked.has(vout),
  )
  return {
    payments: unmarked.flatMap(({ address: written, amount }) => {
      const address = written === undefined ? undefined : canonical(written)
      return address === undefined ? [] : { asset: coin, amount: decimalOf(-minorOf(amount)), address }
    }),
    moved: moved === 0n ? [] : [{ asset: coin, amount: decimalOf(moved) }],
    networkFee: { asset: coin, amount: decimalOf(ownFee - withdrawalFees) },
  }
}

/** What somebody else's transaction has paid to the hot wallet, without deposits and tokens. Throws an Error where it is zero. */
async function receivedIn(
  tx: Transaction,
  wallet: BitcoinWallet,
  { txid, details, generated }: WalletTransaction,
): Promise<MovedOnChain['moved']> {
  const { coin, canonical } = wallet
  const tokens = await coinsWithTokens(wallet, [txid])
  const received = details.flatMap(({ category, address, amount, vout }) =>
    isReceived({ category, generated }) && !tokens.has(outpointOf({ txid, vout }))
      ? [{ address: canonical(address ?? '') ?? '', amount: minorOf(amount) }]
      : [],
  )
  const depositAddresses = await depositAddressesAmong(
    tx,
    received.map(({ address }) => address),
  )
  const beside = sum(
    received.filter(({ address }) => !depositAddresses.has(address)).map(({ amount }) => amount),
  )
  if (beside === 0n)
    throw new Error(
      `${txid} has paid nothing to the hot wallet except deposits, which are credited without a command`,
    )
  return [{ asset: coin, amount: decimalOf(beside) }]
}
