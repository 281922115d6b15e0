import type { Buffer } from 'node:buffer'
import type { Hex } from 'viem'
import { hexToBigInt } from 'viem/utils'
import type { Database, Queryable } from '../../src/db/database.ts'
import { at, countAt, headOf, isSyncing, type Block, type Receipt } from './node.ts'
import { REBROADCAST_MAX, send } from './broadcast.ts'
import { walletsOf, type EvmChain } from './chain.ts'
import { noncesBetween } from './nonces.ts'
import { isOurs, parse, signedBy, signerAddressOf } from './transaction.ts'
import type { EndedTransaction } from '../../src/networks/network.ts'
import type { TakenBack } from '../../src/networks/wallet-status.ts'
import { freeWhatHasEnded, selectOpenTransactions } from '../../src/networks/network-transactions.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import { hashesOf } from '../kit/nonce-used.ts'
import { endedTopUpsIn } from '../kit/sweeps.ts'

/**
 * Ended transactions of the hot wallet that the chain has taken back: a reorganisation deeper than the confirmations removes
 * them. Their bytes are stored, and broadcast again. Nothing here is signed, so it goes on while the network is frozen.
 */

/** Most ended transactions that one call reads to find lost nonces, and how many at a time. */
const READ_MAX = 100_000
const PAYMENTS_PAGE = 1_000

/** A transaction of the hot wallet that had ended, with its bytes; without bytes where it must not be mined again. */
export interface LostTransaction extends TakenBack {
  raw_transaction: Buffer | undefined
}

/**
 * The ended transactions that the chain does not have any more, in the order of their nonces. A node that lags behind its
 * chain seems to have lost some, too.
 */
export async function lostTransactions(db: Database, chain: EvmChain): Promise<LostTransaction[]> {
  const found: LostTransaction[] = []
  for (const hotWallet of walletsOf(chain)) {
    const ofWallet = { ...chain, hotWallet }
    const lost = await transactionsOf(db, ofWallet, await lostNonces(db, ofWallet))
    found.push(...(lost.some(isUnknown) ? await withForgotten(db, ofWallet, lost) : lost))
  }
  return found
}

const isUnknown = ({ crypto_tx_hash }: LostTransaction): boolean => crypto_tx_hash === undefined

/**
 * Finds lost transactions whose customers' records are gone: a part of the database was restored from an older state.
 * The wallet's records have their bytes and no end of them, so nothing that they pay was refunded.
 */
async function withForgotten(
  db: Database,
  chain: EvmChain,
  lost: readonly LostTransaction[],
): Promise<LostTransaction[]> {
  if (!(await freeWhatHasEnded(db, chain.network, endedTopUpsIn(db)))) return [...lost]
  const open = await selectOpenTransactions(db, chain.network)
  const own = await signedBy(chain.hotWallet.address, open)
  // Of several with one nonce, the last has the highest fee.
  const byNonce = new Map(own.map((transaction) => [parse(transaction.raw_transaction).nonce, transaction]))
  return lost.map((transaction) => {
    const kept = isUnknown(transaction) ? byNonce.get(transaction.nonce) : undefined
    return kept === undefined
      ? transaction
      : { ...transaction, crypto_tx_hash: kept.crypto_tx_hash, raw_transaction: kept.raw_transaction }
  })
}

/** Broadcasts the transactions that the chain has taken back again, the first `REBROADCAST_MAX`, and returns all of them. */
export async function rebroadcastTakenBack(db: Database, chain: EvmChain): Promise<TakenBack[]> {
  await chain.ready()
  const lost = await lostTransactions(db, chain)
  if (lost.length > 0) {
    // A node of another chain has other nonces: then `ready` throws that reason.
    chain.markStale()
    await chain.ready()
  }
  const bytes = lost.flatMap(({ raw_transaction, crypto_tx_hash }) =>
    raw_transaction === undefined ? [] : [{ raw_transaction, crypto_tx_hash: crypto_tx_hash!, replaced: [] }],
  )
  const refusals = await send(chain, bytes.slice(0, REBROADCAST_MAX))
  const refused = new Map(bytes.map(({ crypto_tx_hash }, index) => [crypto_tx_hash, refusals[index]?.reason]))
  return lost.map(({ raw_transaction: _, ...transaction }) => {
    const refusal = refused.get(transaction.crypto_tx_hash ?? '')
    return { ...transaction, ...(refusal !== undefined && { refusal }) }
  })
}

/** The nonces that the database has as used and the chain as free, without those of transactions under way. */
async function lostNonces(db: Database, chain: EvmChain): Promise<number[]> {
  const { address } = chain.hotWallet
  const { rows } = await db.query<{ next_nonce: string }>(
    'select next_nonce from evm_nonces where network = $1 and address = $2',
    [chain.network, address],
  )
  // Most of the time nothing is lost or under way, and these two numbers are enough.
  const next = Number(rows[0]?.next_nonce ?? 0)
  if ((await countAt(chain.node, address, 'latest')) >= next) return []
  // The count comes second: a transaction that is mined in between is under way, or already in the count.
  const underWay = await underWayOf(db, chain)
  const nonces = new Set(underWay.map(({ raw_transaction }) => parse(raw_transaction).nonce))
  const first = await countAt(chain.node, address, 'latest')
  return noncesBetween(first, next).filter((nonce) => !nonces.has(nonce))
}

/** The hot wallet's transactions that are signed and have not ended; without a transfer's id for gas for sweeping. */
export async function underWayOf(db: Queryable, { network, hotWallet }: EvmChain) {
  const { rows } = await db.query<{ transfer_id: string | null; raw_transaction: Buffer }>(
    `
    select transfer_id, raw_transaction from outgoing_transfers
    where network = $1 and due_at is not null and state in ('ASKED', 'SIGNED', 'BROADCAST')
    union all
    select null, raw_transaction from sweeps
    where network = $1 and kind = 'TOP_UP' and state in ('SIGNED', 'BROADCAST')`,
    [network],
  )
  return signedBy(hotWallet.address, rows)
}

// ---------------------------------------------------------------------------------------------- by their nonces

interface Candidate {
  customer_id: string
  /** The withdrawal's; null for a top-up of gas for sweeping. */
  transfer_id: string | null
  address: string | null
  crypto_tx_hash: string
  raw_transaction: Buffer
}

/** The ended transactions with these nonces; only the nonce where no transaction with it is known. */
export async function transactionsOf(
  db: Queryable,
  chain: EvmChain,
  nonces: readonly number[],
): Promise<LostTransaction[]> {
  if (nonces.length === 0) return []
  const wanted = new Set(nonces)
  const found = new Map<number, LostTransaction>()
  for (const ended of [ENDED_WITHDRAWALS, ENDED_TOP_UPS]) {
    let before: string | null = null
    for (let looked = 0; looked < READ_MAX && found.size < wanted.size; looked += PAYMENTS_PAGE) {
      const page: (Candidate & { created_at: string })[] = await endedBefore(db, chain, ended, before)
      const lost = page.filter(({ raw_transaction: raw }) => isOurs(raw) && wanted.has(parse(raw).nonce))
      for (const transaction of await signedBy(chain.hotWallet.address, lost)) {
        const { nonce } = parse(transaction.raw_transaction)
        if (!found.has(nonce)) found.set(nonce, await lostOf(db, chain, nonce, transaction))
      }
      if (page.length < PAYMENTS_PAGE) break
      before = page.at(-1)!.created_at
    }
  }
  return nonces.map((nonce) => found.get(nonce) ?? { nonce, raw_transaction: undefined })
}

const ENDED_WITHDRAWALS = `
  select customer_id, transfer_id, null as address, crypto_tx_hash, raw_transaction, created_at
  from outgoing_transfers
  where state = 'DONE' and raw_transaction is not null`

const ENDED_TOP_UPS = `
  select customer_id, null as transfer_id, address, crypto_tx_hash, raw_transaction, created_at
  from sweeps
  where kind = 'TOP_UP' and state in ('DONE', 'FAILED')`

// The network's name is a literal, as in the partial indexes. Rows of a page's last microsecond are read again: none is
// missed.
async function endedBefore(db: Queryable, { network }: EvmChain, ended: string, before: string | null) {
  const { rows } = await db.query<Candidate & { created_at: string }>(
    `${ended} and network = '${network}' and ($1::timestamptz is null or created_at <= $1)
    order by created_at desc
    limit ${PAYMENTS_PAGE}`,
    [before],
  )
  return rows
}

/**
 * A COMPLETED withdrawal is broadcast again with the bytes that were mined. A withdrawal that was reverted is refunded: its
 * bytes might pay this time, and are not broadcast.
 */
async function lostOf(
  db: Queryable,
  chain: EvmChain,
  nonce: number,
  { customer_id, transfer_id, address, crypto_tx_hash, raw_transaction }: Candidate,
): Promise<LostTransaction> {
  // A top-up stays in custody, whichever transaction with its nonce is mined.
  if (transfer_id === null) return { nonce, crypto_tx_hash, top_up: address!, raw_transaction }
  const transfer = await chain.withdrawals.endOf(db, customer_id, transfer_id)
  if (transfer?.status !== 'COMPLETED')
    return { nonce, crypto_tx_hash, transfer_id, refunded: true, raw_transaction: undefined }
  // A transaction that it had replaced may be the mined one.
  const { raw_transaction: mined } = transfer
  if (mined === null) return { nonce, crypto_tx_hash, transfer_id, raw_transaction }
  return { nonce, crypto_tx_hash: transfer.crypto_tx_hash!, transfer_id, raw_transaction: mined }
}

/** Why signing is blocked after nonces that the chain has lost. */
export function lostReason([first, ...others]: readonly TakenBack[]): string {
  const { nonce, transfer_id, top_up, refunded } = first!
  if (refunded === true)
    return (
      `the chain does not have nonce ${nonce} of the hot wallet any more, of withdrawal ${transfer_id!}, which failed and was ` +
      `refunded: send another transaction with that nonce from the hot wallet (0 to itself), so that it can never be paid`
    )
  if (transfer_id === undefined && top_up === undefined)
    return (
      `nonce ${nonce} of the hot wallet was used, and neither the node nor this database knows by what: the node is behind, ` +
      `or on another chain`
    )
  const what = transfer_id === undefined ? `gas for sweeping ${top_up!}` : `withdrawal ${transfer_id}`
  return (
    `the chain does not have nonce ${nonce} of the hot wallet any more, of ${what}` +
    `${others.length > 0 ? `, and ${others.length} more` : ''}: the node is behind, or blocks were taken back; ` +
    `the same bytes are broadcast again`
  )
}

// ---------------------------------------------------------------------------------------------- one withdrawal

/**
 * Broadcasts the bytes of an ended transaction again. Throws an Error when the chain or the node's mempool has it, or when
 * it can never be mined because another transaction has its nonce; NodeFailure when the node cannot tell.
 */
export async function resend(chain: EvmChain, ended: EndedTransaction): Promise<void> {
  await chain.ready()
  const { raw_transaction, crypto_tx_hash } = ended
  const [syncing] = await chain.node.each<unknown>([['eth_syncing']])
  if (isSyncing(syncing))
    throw new NodeFailure('the node is catching up with its chain: it cannot tell what the chain has')
  for (const hash of hashesOf(ended)) {
    const block = await canonicalBlockOf(chain, hash as Hex)
    if (block !== undefined) throw new Error(`the chain has ${hash} in block ${block}`)
    const known = await chain.node.call<{ blockHash: Hex | null } | null>('eth_getTransactionByHash', hash)
    if (known !== null && known.blockHash === null)
      throw new Error(`the node has ${hash}, and it waits for a block`)
  }
  const { nonce } = parse(raw_transaction)
  const sender = await signerAddressOf(raw_transaction)
  const block = await headOf(chain.node)
  if ((await countAt(chain.node, sender, block)) > nonce)
    throw new Error(
      `another transaction of ${sender} has nonce ${nonce}, so that ${crypto_tx_hash} can never be made: look for it in an explorer`,
    )
  const [refusal] = await send(chain, [{ raw_transaction, crypto_tx_hash, replaced: [] }])
  if (refusal !== undefined) throw new Error(refusal.reason)
}

/** The block of a transaction, if the canonical chain has that block. */
async function canonicalBlockOf({ node }: EvmChain, hash: Hex): Promise<bigint | undefined> {
  const receipt = await node.call<Receipt | null>('eth_getTransactionReceipt', hash)
  if (receipt === null) return undefined
  const number = hexToBigInt(receipt.blockNumber)
  const block = await node.call<Block | null>('eth_getBlockByNumber', at(number), false)
  return block?.hash === receipt.blockHash ? number : undefined
}
