import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import type { Hex, RpcTransaction } from 'viem'
import { formatTransaction, getAddress, hexToBigInt, keccak256, serializeTransaction } from 'viem/utils'
import { onChain, transferOf, walletAt, type EvmChain } from './chain.ts'
import type { EvmNode, Receipt } from './node.ts'
import { acknowledgeNonce } from './nonces.ts'
import { isOurs, parse, signerAddressOf, signerOf } from './transaction.ts'
import { doesNotPay } from '../kit/claims.ts'
import type { ClaimedTransaction, PaidWithdrawal, SignedTransaction } from '../../src/networks/network.ts'

/**
 * The hot wallet's transaction that, by an operator's word, has paid a withdrawal. `keep` acknowledges its nonce. Throws an
 * Error where the transaction does not pay the withdrawal, or the withdrawal's own transaction has another nonce and may be
 * mined, too.
 */
export async function claimTransaction(
  chain: EvmChain,
  withdrawal: PaidWithdrawal,
  hash: string,
): Promise<ClaimedTransaction> {
  const { asset, amount, destination_address, raw_transaction } = withdrawal
  await chain.ready()
  const claimed = await fetchSigned(chain, hash as Hex)
  if (claimed === undefined) throw new Error(`the hot wallet has sent no transaction ${hash}`)
  const { nonce, to, value, data } = parse(claimed.raw_transaction)
  const transfer = transferOf(chain, asset, destination_address as Hex, onChain(chain, asset, amount))
  const isSame =
    getAddress(to) === getAddress(transfer.to) && value === transfer.value && data === transfer.data
  const isItsNonce =
    raw_transaction !== null &&
    isOurs(raw_transaction) &&
    parse(raw_transaction).nonce === nonce &&
    (await signerAddressOf(raw_transaction)) === (await signerAddressOf(claimed.raw_transaction))
  if (!isSame) throw doesNotPay(withdrawal, hash, isItsNonce)
  if (raw_transaction === null) {
    const hotWallet = walletAt(chain, await signerAddressOf(claimed.raw_transaction))!
    return { ...claimed, keep: (tx) => acknowledgeNonce(tx, { ...chain, hotWallet }, nonce) }
  }
  if (!isItsNonce)
    throw new Error(
      `${hash} has nonce ${nonce}, and the withdrawal's own transaction may still be mined, too`,
    )
  return claimed
}

/**
 * The transaction of the hot wallet, or of a former one, with this hash, in its signed bytes. Undefined where the node has
 * none, another wallet sent it, it is no EIP-1559 transaction, or it was reverted.
 */
async function fetchSigned(chain: EvmChain, hash: Hex): Promise<SignedTransaction | undefined> {
  const { node } = chain
  const receipt = await node.call<Receipt | null>('eth_getTransactionReceipt', hash)
  const found = await fetchBytes(node, hash)
  const isGood = receipt === null || hexToBigInt(receipt.status) === 1n
  if (found === undefined || !isGood || walletAt(chain, found.sender) === undefined) return undefined
  const raw_transaction = Buffer.from(found.raw.slice(2), 'hex')
  return isOurs(raw_transaction) ? { raw_transaction, crypto_tx_hash: hash } : undefined
}

/**
 * The signed bytes of a transaction, and who signed them, as the bytes show: nothing else in the node's answer is
 * believed. Undefined where the node does not have the transaction. Throws an Error for a type that only some chains have.
 */
export async function fetchBytes(node: EvmNode, hash: Hex): Promise<{ raw: Hex; sender: Hex } | undefined> {
  const found = await node.call<RpcTransaction | null>('eth_getTransactionByHash', hash)
  if (found === null) return undefined
  const { input: data, ...transaction } = formatTransaction(found)
  const raw = serializeTransaction({ ...transaction, data }, transaction)
  assert(keccak256(raw) === hash, `the node's answer for ${hash} does not hash to it`)
  return { raw, sender: await signerOf(raw) }
}
