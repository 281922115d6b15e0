import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { formatTransaction, serializeTransaction, type Hex, type RpcTransaction } from 'viem'
import { getAddress, hexToBigInt, keccak256 } from 'viem/utils'
import { onChain, transferOf, type EvmChain } from './chain.ts'
import type { Receipt } from './node.ts'
import { acknowledgeNonce } from './nonces.ts'
import { isOurs, parse } from './transaction.ts'
import type { ClaimedTransaction, PaidWithdrawal, SignedTransaction } from '../network.ts'

/**
 * The transaction of the hot wallet that has paid a withdrawal, as an operator says. `keep` acknowledges its nonce.
 * Throws an Error where the transaction does not pay it, or the withdrawal's own transaction has another nonce and may be
 * mined, too.
 */
export async function claimTransaction(
  chain: EvmChain,
  { asset, amount, destination_address, raw_transaction }: PaidWithdrawal,
  hash: string,
): Promise<ClaimedTransaction> {
  await chain.ready()
  const claimed = await fetchSigned(chain, hash as Hex)
  if (claimed === undefined) throw new Error(`the hot wallet has sent no transaction ${hash}`)
  const { nonce, to, value, data } = parse(claimed.raw_transaction)
  const transfer = transferOf(chain, asset, destination_address as Hex, onChain(chain, asset, amount))
  const isSame =
    getAddress(to) === getAddress(transfer.to) && value === transfer.value && data === transfer.data
  if (!isSame) throw new Error(`${hash} does not pay ${amount} ${asset} to ${destination_address}`)
  if (raw_transaction === null) return { ...claimed, keep: (tx) => acknowledgeNonce(tx, chain, nonce) }
  if (!isOurs(raw_transaction) || parse(raw_transaction).nonce !== nonce)
    throw new Error(
      `${hash} has nonce ${nonce}, and the withdrawal's own transaction may still be mined, too`,
    )
  return claimed
}

/**
 * The hot wallet's transaction with this hash, in its signed bytes. Undefined where the node has none, another wallet
 * sent it, it is no EIP-1559 transaction, or it was reverted.
 */
async function fetchSigned({ node, hotWallet }: EvmChain, hash: Hex): Promise<SignedTransaction | undefined> {
  const [found, receipt] = [
    await node.call<RpcTransaction | null>('eth_getTransactionByHash', hash),
    await node.call<Receipt | null>('eth_getTransactionReceipt', hash),
  ]
  const isGood = receipt === null || hexToBigInt(receipt.status) === 1n
  if (found === null || !isGood || getAddress(found.from) !== getAddress(hotWallet.address)) return undefined
  const transaction = formatTransaction(found)
  if (transaction.type !== 'eip1559') return undefined
  const { chainId, nonce, to, value, input, gas, maxFeePerGas, maxPriorityFeePerGas, accessList } =
    transaction
  const raw = serializeTransaction(
    { chainId, nonce, to, value, data: input, gas, maxFeePerGas, maxPriorityFeePerGas, accessList },
    transaction,
  )
  assert(keccak256(raw) === hash, `the node's answer for ${hash} does not hash to it`)
  return { raw_transaction: Buffer.from(raw.slice(2), 'hex'), crypto_tx_hash: hash }
}
