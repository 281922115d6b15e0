import type { BroadcastWithdrawal, NonceEnd } from '../network.ts'
import { decode } from './decode.ts'
import { paymentsTo, walletBytesOf } from './payments.ts'
import { fetchTransactions, type BitcoinWallet } from './wallet.ts'

/**
 * Whether a transaction of the wallet has spent a coin of a withdrawal's bytes in a confirmed block, and pays it nothing: then the
 * bytes can never be mined (`NetworkAdapter.usedBy`).
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
  if (!decode(raw).inputs.some((input) => inputs.includes(input)))
    return unresolved(`${hash} spends none of its coins`)
  if (Number(other.confirmations) < wallet.depth)
    return unresolved(`${hash}, which spends its coins, is not confirmed yet`)
  return { state: 'VOID', usedBy: hash }
}

const unresolved = (detail: string): NonceEnd => ({
  state: 'UNRESOLVED',
  reason: { code: 'UNRESOLVED', detail },
  mayBeMined: true,
})
