import type { Queryable, Transaction } from '../../src/db/database.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'
import { fetchTransactions, heightsOf, historySince, known, type BitcoinWallet } from './wallet.ts'

/**
 * Unknown spends: transactions that the wallet has sent and this database has no record of. After an older backup was
 * restored, such a transaction may have paid a withdrawal that is about to be signed again.
 */

/** A transaction without a height is in no block yet. */
interface UnknownSpend {
  txid: string
  height: number | undefined
}

/**
 * Why signing is blocked: the node is behind, or there are unknown spends. When there are none, the next check begins at the
 * newest confirmed block.
 */
export async function signingBlockedReason(
  tx: Transaction,
  wallet: BitcoinWallet,
): Promise<WaitingReason | undefined> {
  const { network } = wallet
  const { rows } = await tx.query<{ checked_block: string }>(
    'select checked_block from wallet_checks where network = $1',
    [network],
  )
  const checkedBlock = rows[0]?.checked_block ?? ''
  const behind = await whyNodeIsBehind(wallet, checkedBlock)
  if (behind !== undefined) return { code: 'NODE_BEHIND', detail: behind }
  const { transactions, lastblock } = await historySince(wallet, checkedBlock)
  const sent = transactions.filter(
    ({ category, confirmations, abandoned }) =>
      category === 'send' && Number(confirmations) >= 0 && abandoned !== true,
  )
  const unrecorded = await unrecordedAmong(tx, wallet, [...new Set(sent.map(({ txid }) => txid))])
  const [spend, ...others] = await unreviewed(tx, wallet, unrecorded)
  if (spend !== undefined) return { code: 'UNKNOWN_SPENDS', detail: describe(spend, others) }
  if (lastblock === checkedBlock) return undefined
  await tx.query(
    `
    insert into wallet_checks (network, checked_block, updated_at) values ($1, $2, clock_timestamp())
    on conflict (network) do update set checked_block = excluded.checked_block, updated_at = excluded.updated_at`,
    [network, lastblock],
  )
  return undefined
}

/** A node that has not read the whole chain does not know yet what the wallet has sent. */
export async function whyNodeIsBehind(
  { rpc }: BitcoinWallet,
  checkedBlock = '',
): Promise<string | undefined> {
  const { blocks, headers, initialblockdownload } = await rpc.call<{
    blocks: string
    headers: string
    initialblockdownload: boolean
  }>('getblockchaininfo')
  if (initialblockdownload || Number(blocks) < Number(headers))
    return `the node is catching up with its chain: ${blocks} blocks of ${headers}`
  if (checkedBlock === '') return undefined
  const [header] = await rpc.batch<object>([['getblockheader', checkedBlock]])
  return known(header!) === undefined
    ? `the node does not know block ${checkedBlock}, which it had: it is behind, or on another chain`
    : undefined
}

/**
 * The hashes among these that are not on record: they belong to no withdrawal, not even as a replaced transaction, and no
 * operator has acknowledged them. A transaction that an operator marked as a withdrawal's is recorded once all its payments
 * are.
 */
export async function unrecordedAmong(
  db: Queryable,
  { network }: BitcoinWallet,
  hashes: string[],
): Promise<string[]> {
  if (hashes.length === 0) return []
  const { rows } = await db.query<{ crypto_tx_hash: string }>(
    `
    select crypto_tx_hash from network_transactions n
    where n.network = $1 and n.crypto_tx_hash = any ($2)
      and (n.kind <> 'MARKED' or n.payments <= (select count(distinct id) from unnest(n.transfer_ids) as id))
    union
    select crypto_tx_hash from acknowledged_transactions where network = $1 and crypto_tx_hash = any ($2)`,
    [network, hashes],
  )
  const recorded = new Set(rows.map(({ crypto_tx_hash }) => crypto_tx_hash))
  return hashes.filter((hash) => !recorded.has(hash))
}

/**
 * The unknown spends among unrecorded transactions. Left out are those below `first_height`, which an operator has reviewed,
 * and those that conflict with a recorded transaction, such as a fee bump made by hand.
 */
async function unreviewed(tx: Transaction, wallet: BitcoinWallet, hashes: string[]): Promise<UnknownSpend[]> {
  const spends: UnknownSpend[] = []
  const found = await fetchTransactions(wallet, hashes)
  const blocks = new Set(found.flatMap(({ blockhash }) => blockhash ?? []))
  const heights = await heightsOf(wallet, [...blocks])
  for (const { txid, blockhash, walletconflicts } of found) {
    if ((await unrecordedAmong(tx, wallet, walletconflicts)).length < walletconflicts.length) continue
    const height = heights.get(blockhash ?? '')
    if (height === undefined || height >= wallet.firstHeight) spends.push({ txid, height })
  }
  return spends
}

/** Unknown spends in a sentence for operators, with the commands that resolve them. */
function describe(spend: UnknownSpend, others: UnknownSpend[]): string {
  const heights = [spend, ...others].map(({ height = Infinity }) => height)
  const top = Math.max(...heights)
  return (
    `the wallet has sent ${spend.txid}${others.length > 0 ? ` and ${others.length} more` : ''}, which this ` +
    `database has no record of: it was restored from an older backup, or the wallet is used elsewhere. ` +
    `'bursar withdrawal mark-paid' records a withdrawal that was paid, 'bursar wallet acknowledge' a transaction of the ` +
    `platform's own; first_height ${top === Infinity ? '(once all are mined)' : top + 1} marks them all as reviewed`
  )
}
