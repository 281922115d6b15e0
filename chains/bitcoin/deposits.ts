import assert from 'node:assert/strict'
import type { NewAddress } from '../../src/networks/network.ts'
import type { DepositScan, DepositSight, FoundDeposit } from '../../src/networks/found-deposits.ts'
import { decimalOf, minorOf } from './amounts.ts'
import { openTransactions } from './coin-locks.ts'
import { decode, isAsked, outpointOf } from './decode.ts'
import { coinsWithTokens } from './tokens.ts'
import { fetchTransactions, historySince, isReceived, type BitcoinWallet } from './wallet.ts'
import { heightsOf, type ListedOutput } from './wallet.ts'

const BLOCK_HASH = /^[0-9a-f]{64}$/

export async function newDepositAddress(wallet: BitcoinWallet): Promise<NewAddress> {
  const { rpc, dialect, network, canonical } = wallet
  const written = await rpc.call<string>(...dialect.newAddress)
  const address = canonical(written)
  assert(address !== undefined, `the node of ${network} gave an address of another network: ${written}`)
  return { address }
}

/**
 * Every output that the wallet has received, once it is confirmed. Without a cursor the scan begins at the wallet's first
 * block, so that no deposit before the first scan is missed. The cursor is the newest block with enough confirmations: earlier
 * scans have returned the deposits in it and below.
 */
export async function scanDeposits(wallet: BitcoinWallet, cursor: string | null): Promise<DepositScan> {
  // A database that ran a simulated network before has a cursor of another kind.
  const from = cursor !== null && BLOCK_HASH.test(cursor) ? cursor : ''
  const { transactions, removed = [], lastblock } = await historySince(wallet, from)
  // An earlier scan returned these deposits, and the chain has dropped their blocks. Those that new blocks have confirmed again
  // stay.
  const dropped = await depositsIn(wallet, removed, (confirmations) => confirmations < wallet.depth)
  return {
    cursor: lastblock,
    found: await depositsIn(wallet, transactions),
    ...(dropped.length > 0 && { removed: dropped }),
  }
}

/**
 * The outputs in blocks without enough confirmations. Transactions in the mempool are left out, because the sender
 * can still replace them.
 */
export async function seeDeposits(wallet: BitcoinWallet, cursor: string): Promise<DepositSight> {
  // The cursor is a simulated network's: the node has not been scanned yet.
  if (!BLOCK_HASH.test(cursor)) return { seen: [], readUpTo: 0n, isBehind: true }
  const { height } = await wallet.rpc.call<{ height: string }>('getblockheader', cursor)
  const { transactions } = await historySince(wallet, cursor)
  const mined = transactions.filter(({ confirmations }) => Number(confirmations) >= 1)
  const shallow = await depositsIn(wallet, mined, (confirmations) => confirmations < wallet.depth)
  const hashes = shallow.map(({ crypto_tx_hash }) => crypto_tx_hash)
  const blocks = new Map(mined.map(({ txid, blockhash = '' }) => [txid, blockhash]))
  const heights = await heightsOf(wallet, [...new Set(hashes.map((hash) => blocks.get(hash)!))])
  const tokens = await coinsWithTokens(wallet, hashes)
  const seen = shallow.flatMap((deposit) => {
    const { crypto_tx_hash: txid, crypto_tx_index: vout } = deposit
    const hash = blocks.get(txid)!
    const number = heights.get(hash)
    if (number === undefined || tokens.has(outpointOf({ txid, vout }))) return []
    return [{ ...deposit, block: { number: BigInt(number), hash } }]
  })
  return { seen, readUpTo: BigInt(height) }
}

/** The confirmed deposits in this block and all later ones. The node has no way to limit the last block. */
export async function scanBlocks(wallet: BitcoinWallet, first: bigint): Promise<FoundDeposit[]> {
  const before = first <= 1n ? '' : await wallet.rpc.call<string>('getblockhash', Number(first - 1n))
  return depositsIn(wallet, (await historySince(wallet, before)).transactions)
}

/** The confirmations that these deposits have now; 0 where the wallet does not know them, or the chain has dropped them. */
export async function confirmationsOf(
  wallet: BitcoinWallet,
  found: readonly FoundDeposit[],
): Promise<number[]> {
  const hashes = [...new Set(found.map(({ crypto_tx_hash }) => crypto_tx_hash))]
  const known = await fetchTransactions(wallet, hashes)
  const depths = new Map(known.map(({ txid, confirmations }) => [txid, Math.max(0, Number(confirmations))]))
  return found.map(({ crypto_tx_hash }) => depths.get(crypto_tx_hash) ?? 0)
}

/**
 * The deposits among these outputs, without unknown spends of the wallet itself. Coins that somebody moved by hand to a
 * deposit address were in custody before: crediting them would owe them twice.
 */
async function depositsIn(
  wallet: BitcoinWallet,
  outputs: ListedOutput[],
  isWanted = (confirmations: number) => confirmations >= wallet.depth,
): Promise<FoundDeposit[]> {
  const found = outputs.flatMap((output) =>
    isReceived(output) && isWanted(Number(output.confirmations)) ? depositOf(wallet, output) : [],
  )
  const sent = new Set(outputs.flatMap(({ category, txid }) => (category === 'send' ? txid : [])))
  const own = new Set(found.flatMap(({ crypto_tx_hash }) => (sent.has(crypto_tx_hash) ? crypto_tx_hash : [])))
  if (own.size === 0) return found
  const isPayment = await recordedPayments(wallet, [...own])
  return found.filter((deposit) => !own.has(deposit.crypto_tx_hash) || isPayment(deposit))
}

function depositOf(
  { coin, canonical }: BitcoinWallet,
  { address: written, amount, txid, vout }: ListedOutput,
): FoundDeposit[] {
  const address = written === undefined ? undefined : canonical(written)
  if (address === undefined || vout === undefined) return []
  return [
    {
      address,
      asset: coin,
      amount: decimalOf(minorOf(amount)),
      crypto_tx_hash: txid,
      crypto_tx_index: vout,
    },
  ]
}

/**
 * Whether an output of these transactions of the wallet is a payment on record. A fee bump made by hand counts as the
 * transaction that it conflicts with. Of a transaction that an operator marked, only the marked outputs count.
 */
async function recordedPayments(
  wallet: BitcoinWallet,
  hashes: string[],
): Promise<(output: Pick<FoundDeposit, 'crypto_tx_hash' | 'crypto_tx_index'>) => boolean> {
  const recorded = await recordedOutputs(wallet, hashes)
  // A person may have broadcast what was asked for, and the worker has not looked for it since.
  for (const { raw_transaction: raw } of (await openTransactions(wallet.db, wallet)).all)
    if (isAsked(raw) && hashes.includes(decode(raw).txid)) recorded.set(decode(raw).txid, 'ALL')
  const others = hashes.filter((hash) => !recorded.has(hash))
  const unrecorded = others.length === 0 ? [] : await fetchTransactions(wallet, others)
  const conflicts = unrecorded.flatMap(({ walletconflicts }) => walletconflicts)
  const bumped = conflicts.length === 0 ? new Map() : await recordedOutputs(wallet, conflicts)
  const feeBumps = new Set(
    unrecorded.flatMap(({ txid, walletconflicts }) =>
      walletconflicts.some((hash) => bumped.has(hash)) ? txid : [],
    ),
  )
  return ({ crypto_tx_hash: hash, crypto_tx_index: index }) =>
    feeBumps.has(hash) || recorded.get(hash) === 'ALL' || recorded.get(hash)?.includes(index) === true
}

/** By hash, which outputs of a transaction on record are payments. Replaced transactions are on record, too. */
async function recordedOutputs(
  { db, network }: BitcoinWallet,
  hashes: string[],
): Promise<Map<string, 'ALL' | string[]>> {
  const { rows } = await db.query<{ crypto_tx_hash: string; outputs: string[] | null }>(
    `
    select b.crypto_tx_hash,
           case when bool_and(coalesce(n.kind, '') = 'MARKED') then array_agg(b.crypto_tx_index) end as outputs
    from outgoing_transfers b
    left join network_transactions n on n.network = b.network and n.crypto_tx_hash = b.crypto_tx_hash
    where b.network = '${network}' and b.crypto_tx_hash = any ($1)
    group by b.crypto_tx_hash
    union
    select crypto_tx_hash, null from replaced_transactions where crypto_tx_hash = any ($1)`,
    [hashes],
  )
  return new Map(rows.map(({ crypto_tx_hash, outputs }) => [crypto_tx_hash, outputs ?? 'ALL']))
}
