import type { Queryable } from '../../src/db/database.ts'
import { selectPaying } from '../../src/networks/network-transactions.ts'
import type { BroadcastWithdrawal, NonceEnd } from '../../src/networks/network.ts'
import { decode, type Outpoint } from './decode.ts'
import { paymentsTo, walletBytesOf } from './payments.ts'
import { fetchTransactions, type BitcoinWallet } from './wallet.ts'

/**
 * Whether a transaction of the wallet has spent a coin of a withdrawal's bytes in a confirmed block, and pays it nothing:
 * then the bytes can never be mined (`NetworkAdapter.usedBy`).
 */
export async function usedBy(
  wallet: BitcoinWallet,
  withdrawal: BroadcastWithdrawal,
  hash: string,
): Promise<NonceEnd> {
  const [other] = await fetchTransactions(wallet, [hash])
  if (other === undefined) return unresolved(`the wallet of ${wallet.network} has no transaction ${hash}`)
  const raw = walletBytesOf(other)
  const { txid, inputs } = decode(withdrawal.raw_transaction)
  if (other.txid === txid || paymentsTo(wallet, raw, withdrawal).length > 0)
    return unresolved(`${hash} pays it`)
  const ending = endingOf(wallet, inputs)
  if (!decode(raw).inputs.some((input) => ending.includes(input)))
    return unresolved(
      `${hash} spends none of its coins${wallet.signer ? `: it is over with ${ending[0]}` : ''}`,
    )
  if (Number(other.confirmations) < wallet.depth)
    return unresolved(`${hash}, which spends its coins, is not confirmed yet`)
  return { state: 'VOID', usedBy: hash }
}

/**
 * The coins of which each one's spend ends a transaction's payments. All that a signer process signs for a transfer has the same
 * first coin, and whoever had the worker may have more of it than the database knows.
 */
const endingOf = ({ signer }: BitcoinWallet, inputs: readonly Outpoint[]): readonly Outpoint[] =>
  signer === undefined ? inputs : inputs.slice(0, 1)

const unresolved = (detail: string): NonceEnd => ({
  state: 'UNRESOLVED',
  reason: { code: 'UNRESOLVED', detail },
  mayBeMined: true,
})

/**
 * The transactions that were signed or asked for these withdrawals and spend the coins of theirs, the newest last; `other`
 * is one that spends different coins and may be mined beside them. `network_transactions` keeps the payees, which the
 * service's database role cannot remove; what it says of an end (`used_by`) the chain must say, too, and for each of the
 * withdrawals.
 */
export async function transactionsFor(
  db: Queryable,
  wallet: BitcoinWallet,
  together: readonly BroadcastWithdrawal[],
) {
  const inputsOf = (raw: Buffer) => [...decode(raw).inputs].sort().join()
  const inputs = inputsOf(together[0]!.raw_transaction)
  const ids = together.map(({ transfer_id }) => transfer_id)
  const rows = await selectPaying(db, wallet.network, ids)
  const same = rows.filter((row) => inputsOf(row.raw_transaction) === inputs)
  for (const row of rows) {
    if (same.includes(row)) continue
    const { raw_transaction, used_by, transfer_ids } = row
    for (const withdrawal of together.filter(({ transfer_id }) => transfer_ids.includes(transfer_id))) {
      const end =
        used_by === null ? undefined : await usedBy(wallet, { ...withdrawal, raw_transaction }, used_by)
      if (end?.state !== 'VOID') return { same, other: { ...row, transfer_id: withdrawal.transfer_id } }
    }
  }
  return { same }
}
