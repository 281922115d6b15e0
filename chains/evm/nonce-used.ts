import type { Hex } from 'viem'
import { getAddress, hexToBigInt, hexToNumber, parseTransaction } from 'viem/utils'
import type { Queryable } from '../../src/db/database.ts'
import type { BroadcastWithdrawal, NonceEnd, PaymentStatus } from '../../src/networks/network.ts'
import { NOTHING_ELSE } from '../../src/networks/one-node.ts'
import { endedBy, hashesOf, mayBeMined, usedByUnseen } from '../kit/nonce-used.ts'
import type { EvmChain } from './chain.ts'
import { fetchBytes } from './claim.ts'
import { confirmedHead, standingsOf } from './confirmations.ts'
import { at, countAt, NodeError, type Block } from './node.ts'
import { wordOf } from '../kit/second-word.ts'
import { doubtOfReceipt } from './second-word.ts'
import { isOurs, parse, signerAddressOf } from './transaction.ts'

/**
 * The end of a withdrawal's signed bytes whose nonce another transaction has used: that of a tool, of another operator, or
 * of a worker that was thought dead. A node that does not find the bytes proves nothing: a payment that is signed anew for
 * that reason may be paid twice. Only the other transaction ends the bytes. It must have their nonce, be signed by the same
 * key, and be in a confirmed block, by the second node's word, too.
 */

/** The end of a withdrawal that no block seems to have. Undefined unless another has used its nonce, confirmed. */
export async function endOfNonce(
  db: Queryable,
  chain: EvmChain,
  withdrawal: BroadcastWithdrawal,
): Promise<NonceEnd | undefined> {
  if (!isOurs(withdrawal.raw_transaction)) return undefined
  const { nonce } = parse(withdrawal.raw_transaction)
  const sender = await signerAddressOf(withdrawal.raw_transaction)
  const head = await confirmedHead(chain)
  if ((await countAt(chain.node, sender, head)) <= nonce) return undefined
  const hash = await findUser(chain, { sender, nonce, head })
  if (hash !== undefined && hashesOf(withdrawal).includes(hash)) return undefined
  if (hash !== undefined) return usedBy(db, chain, withdrawal, hash)
  return usedByUnseen(`nonce ${nonce} of ${sender}`, withdrawal.transfer_id)
}

/**
 * The end of what a signer process was asked to sign: it can pay nothing once its nonce is used, confirmed. What the signer
 * has signed of it is judged by its own bytes.
 */
export async function endOfAsked(
  chain: EvmChain,
  { raw_transaction, crypto_tx_hash }: BroadcastWithdrawal,
): Promise<PaymentStatus> {
  const sender = await signerAddressOf(raw_transaction)
  const { nonce } = parse(raw_transaction)
  const head = await confirmedHead(chain)
  if ((await countAt(chain.node, sender, head)) <= nonce) return { state: 'UNKNOWN' }
  if (chain.verify === undefined && chain.mode === 'live')
    return mayBeMined(`the node says that nonce ${nonce} of ${sender} is used; ${NOTHING_ELSE}`)
  const word =
    chain.verify &&
    (await wordOf(chain.verify, async (node) => {
      const asked = { ...chain, node }
      const reached = await confirmedHead(asked)
      if ((await countAt(node, sender, reached)) > nonce) return undefined
      return reached < head ? { waits: 'is behind' } : { differs: 'has the nonce as free' }
    }))
  // A second node that is away, or says something else, delays the end of this payment, and the following of no other.
  if (word !== undefined) return { state: 'UNKNOWN' }
  return { state: 'VOID', usedBy: crypto_tx_hash }
}

/** Whether this transaction has used the nonce of a withdrawal's bytes in a confirmed block (`NetworkAdapter.usedBy`). */
export async function usedBy(
  db: Queryable,
  chain: EvmChain,
  withdrawal: BroadcastWithdrawal,
  hash: string,
): Promise<NonceEnd> {
  await chain.ready()
  const { raw_transaction, transfer_id } = withdrawal
  if (!isOurs(raw_transaction)) return mayBeMined('its transaction is of a simulated network')
  if (hashesOf(withdrawal).includes(hash)) return mayBeMined(`${hash} was signed for it, and may pay it`)
  const kept = parse(raw_transaction)
  const found = await fetchBytes(chain.node, hash as Hex)
  if (found === undefined) return mayBeMined(`the node of ${chain.network} has no transaction ${hash}`)
  const { nonce = 0, to, value = 0n, data, chainId = kept.chainId } = parseTransaction(found.raw)
  if (found.sender !== (await signerAddressOf(raw_transaction)))
    return mayBeMined(`${hash} was signed by ${found.sender}, and not by its wallet`)
  if (nonce !== kept.nonce) return mayBeMined(`${hash} has nonce ${nonce}, and not ${kept.nonce}`)
  if (chainId !== kept.chainId)
    return mayBeMined(`${hash} is of the chain ${chainId}, and not of ${kept.chainId}`)
  const sent = { raw_transaction, crypto_tx_hash: hash, replaced: [] }
  const [standing] = await standingsOf(chain, [sent])
  if (standing!.state !== 'MINED' || !standing!.isConfirmed)
    return mayBeMined(`${hash}, which has its nonce, is not confirmed yet`)
  const { receipt } = standing!
  const paysIt = to && getAddress(to) === getAddress(kept.to) && value === kept.value && data === kept.data
  return endedBy(
    db,
    { network: chain.network, transfer_id, hash },
    {
      isSamePayment: Boolean(paysIt) && hexToBigInt(receipt.status) === 1n,
      doubt: () => doubtOfReceipt(chain, receipt, NOTHING_ELSE),
    },
  )
}

/**
 * The hash of the transaction that used a nonce: the sender's count of transactions rises above the nonce in its block,
 * which a binary search finds. Undefined where the node has no counts of blocks that old.
 */
async function findUser(
  chain: EvmChain,
  { sender, nonce, head }: { sender: Hex; nonce: number; head: bigint },
): Promise<Hex | undefined> {
  const isUsedAt = async (block: bigint) => (await countAt(chain.node, sender, block)) > nonce
  let [before, after] = [head, head]
  try {
    for (let back = 1n; before > 0n && (await isUsedAt(before)); back *= 2n) {
      after = before
      before = before > back ? before - back : 0n
    }
    while (after - before > 1n) {
      const middle = (before + after) / 2n
      if (await isUsedAt(middle)) after = middle
      else before = middle
    }
  } catch (error) {
    if (error instanceof NodeError) return undefined
    throw error
  }
  const block = await chain.node.call<{
    transactions: (Block['transactions'][number] & { nonce: Hex })[]
  } | null>('eth_getBlockByNumber', at(after), true)
  const user = block?.transactions.find(
    (transaction) => getAddress(transaction.from) === sender && hexToNumber(transaction.nonce) === nonce,
  )
  return user?.hash
}
