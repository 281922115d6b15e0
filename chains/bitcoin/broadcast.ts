import type { BroadcastAnswer, BroadcastWithdrawal, EndedTransaction } from '../../src/networks/network.ts'
import { RpcError } from '../kit/json-rpc.ts'
import { locate } from './status.ts'
import type { BitcoinWallet } from './wallet.ts'

/** By Bitcoin Core's rpc/protocol.h. */
const VERIFY_ALREADY_IN_CHAIN = -27

/**
 * Broadcasts each transaction once. The adapter refuses no withdrawal here, because no refusal of the node is certain to
 * last: a reorganisation has dropped the parent of an input for now, a conflict is not confirmed, or the fee is too low
 * today. The withdrawal waits with the node's reason, and the same bytes are sent again. `checkStatus` finds transactions
 * that are mined already or can never be mined.
 */
export async function broadcast(
  { rpc, dialect }: BitcoinWallet,
  withdrawals: BroadcastWithdrawal[],
): Promise<BroadcastAnswer[]> {
  const bytes = new Map(withdrawals.map(({ crypto_tx_hash: hash, raw_transaction: raw }) => [hash, raw]))
  const sent = await rpc.batch<string>(
    [...bytes.values()].map((raw) => ['sendrawtransaction', raw.toString('hex'), dialect.anyFee]),
  )
  const answers = new Map([...bytes.keys()].map((hash, index) => [hash, sent[index]!]))
  return withdrawals.map(({ crypto_tx_hash }) => {
    const answer = answers.get(crypto_tx_hash)!
    return answer instanceof RpcError && answer.code !== VERIFY_ALREADY_IN_CHAIN
      ? {
          accepted: false,
          reason: { code: 'NODE_REFUSED', detail: `the node does not accept it yet: ${answer.message}` },
        }
      : { accepted: true }
  })
}

/**
 * Broadcasts the transaction of a completed withdrawal again, after a reorganisation has dropped its block: the mempool may
 * have dropped the transaction, too. It pays the same withdrawals with the same outputs as before. Throws an Error where the
 * network has the transaction, the node refuses it, or it can never be mined.
 */
export async function resend(
  wallet: BitcoinWallet,
  { raw_transaction, crypto_tx_hash, replaced }: EndedTransaction,
): Promise<void> {
  const hashes = [crypto_tx_hash, ...replaced]
  for (const [index, location] of (await locate(wallet, hashes)).entries()) {
    const hash = hashes[index]!
    const { transaction, confirmations, inMempool } = location
    if (confirmations > 0) throw new Error(`the chain has ${hash}, with ${confirmations} confirmations`)
    if (inMempool) throw new Error(`the node has ${hash}, and it waits for a block`)
    if (confirmations < 0 && hash === crypto_tx_hash)
      throw new Error(
        `${hash} can never be mined: the chain has ${transaction!.walletconflicts.join(', ')} in its place`,
      )
  }
  const [sent] = await wallet.rpc.batch<string>([
    ['sendrawtransaction', raw_transaction.toString('hex'), wallet.dialect.anyFee],
  ])
  if (sent instanceof RpcError) throw new Error(`the node does not accept it: ${sent.message}`)
}
