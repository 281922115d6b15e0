import type { Transaction } from '../../src/db/database.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'
import { unknownSpends, unrecordedAmong } from '../kit/unknown-spends.ts'
import { fetchTransactions, heightsOf, historySince, known, type BitcoinWallet } from './wallet.ts'

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
  const unrecorded = await unrecordedAmong(tx, network, [...new Set(sent.map(({ txid }) => txid))])
  const [spend, ...others] = await unreviewed(tx, wallet, unrecorded)
  if (spend !== undefined) return reasonOf(spend, others)
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
 * The unknown spends among unrecorded transactions. Left out are those below `first_height`, which an operator has reviewed,
 * and those that conflict with a recorded transaction, such as a fee bump made by hand.
 */
async function unreviewed(tx: Transaction, wallet: BitcoinWallet, hashes: string[]): Promise<UnknownSpend[]> {
  const spends: UnknownSpend[] = []
  const found = await fetchTransactions(wallet, hashes)
  const blocks = new Set(found.flatMap(({ blockhash }) => blockhash ?? []))
  const heights = await heightsOf(wallet, [...blocks])
  for (const { txid, blockhash, walletconflicts } of found) {
    if ((await unrecordedAmong(tx, wallet.network, walletconflicts)).length < walletconflicts.length) continue
    const height = heights.get(blockhash ?? '')
    if (height === undefined || height >= wallet.firstHeight) spends.push({ txid, height })
  }
  return spends
}

function reasonOf(spend: UnknownSpend, others: UnknownSpend[]): WaitingReason {
  const top = Math.max(...[spend, ...others].map(({ height = Infinity }) => height))
  const reviewed = `first_height ${top === Infinity ? '(once all are mined)' : top + 1}`
  return unknownSpends(spend.txid, others.length, reviewed)
}
