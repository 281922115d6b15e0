import type { Hex } from 'viem'
import { hexToBigInt } from 'viem/utils'
import { ifAllAnswer, type Queryable, type Transaction } from '../../src/db/database.ts'
import { assetAt, balancesAt, isNative, offChain, onChain, type EvmChain } from './chain.ts'
import { feeMax, PLAIN_GAS, TOKEN_GAS, type Fees } from './fees.ts'
import { at, headOf, isSyncing } from './node.ts'
import { lockNonce, noncesBetween, readNonce } from './nonces.ts'
import { lostReason, transactionsOf } from './taken-back.ts'
import { amountIn, isAsked, parse, signedBy } from './transaction.ts'
import { deduct, type Money } from '../kit/owed-first.ts'
import { unknownSpends } from '../kit/unknown-spends.ts'
import type { LaneStatus } from '../../src/networks/wallet-status.ts'
import { selectOpenTransactions, type OpenTransactionRow } from '../../src/networks/network-transactions.ts'
import type { WaitingReason } from '../../src/networks/waiting.ts'

/** The hot wallet while one transaction signs from it. Its amounts go down as payments are decided. */
export interface HotWalletReservation {
  /** The block at which the balances were read. */
  block: bigint
  /** The nonce of the next transaction. */
  nonce: number
  /** By asset, in units of the chain: the balance, less signed transactions that are not mined. May be below zero. */
  spendable: Map<string, bigint>
  /** How many transactions of the wallet are signed and not mined. */
  inFlight: number
  /**
   * Why signing is blocked: the node catches up, the chain has lost nonces (nothing after them would be mined), the wallet
   * sent transactions that are not on record (they may have paid a withdrawal that is about to be paid), or its signer
   * cannot use its key.
   */
  blockedReason: WaitingReason | undefined
}

/**
 * Reserves the hot wallet until the transaction ends: the row of its nonce is locked, so that nobody else signs.
 * `writeNonce` writes the nonces that were taken; a rollback gives them back.
 *
 * Signed transactions are read before the balances. A transaction that is mined in between is in the balances by then.
 */
export async function openReservation(
  tx: Transaction,
  chain: EvmChain,
  assets: Iterable<string>,
): Promise<HotWalletReservation> {
  const { next: nonce, acknowledged } = await lockNonce(tx, chain)
  // Transactions of a former hot wallet have its nonces, and spend its funds.
  const open = await selectOpenTransactions(tx, chain.network)
  const own = await signedBy(chain.hotWallet.address, open)
  const signed = own.map(({ raw_transaction }) => raw_transaction)
  const { block, mined, sent, isSyncing: isBehind, spendable } = await readWallet(chain, assets)
  const inFlight = deductInFlight(chain, spendable, signed, mined)
  const lost = noncesBetween(mined, nonce).filter((used) => !inFlight.has(used))
  const unknown = noncesBetween(nonce, sent).filter((used) => !acknowledged.has(used))
  // A node of another chain has other nonces: then `ready` throws that reason.
  if (lost.length > 0 || unknown.length > 0) {
    chain.markStale()
    await chain.ready()
  }
  const blockedReason = isBehind
    ? ({ code: 'NODE_BEHIND', detail: 'the node is catching up with its chain' } as const)
    : (unknownNonces(unknown, sent) ??
      (await takenBack(tx, chain, lost)) ??
      unanswered(chain, own, mined) ??
      chain.signer?.keyFailure(chain.hotWallet.address))
  return { block, nonce, spendable, inFlight: inFlight.size, blockedReason }
}

/** How many of a wallet's transactions are mined, and how many it has sent, by the node. */
export type SeenNonces = Pick<Awaited<ReturnType<typeof readWallet>>, 'mined' | 'sent'>
export const seeNonces = (chain: EvmChain): Promise<SeenNonces> => readWallet(chain, [])

/**
 * What a wallet has in flight, and why it may not sign, for operators: nothing is locked. `signer` are the next nonces by
 * the journal of the signer process, where there is one. It was asked after the node, and before this: what is mined is in
 * the journal, and what is signed is on record here.
 */
export async function laneStatus(
  db: Queryable,
  chain: EvmChain,
  { mined, sent }: SeenNonces,
  signer?: ReadonlyMap<string, number | null> | Error,
): Promise<Pick<LaneStatus, 'in_flight' | 'journal' | 'blocked'>> {
  // The nonce comes last: what is signed and broadcast in between is on record by then.
  const { next, acknowledged } = await readNonce(db, chain)
  const own = await signedBy(chain.hotWallet.address, await selectOpenTransactions(db, chain.network))
  const nonces = new Set(own.map(({ raw_transaction }) => parse(raw_transaction).nonce))
  const ofSigner = signer instanceof Error ? undefined : signer?.get(chain.hotWallet.address)
  const unknown = noncesBetween(next, sent).filter((nonce) => !acknowledged.has(nonce))
  const blocked =
    unknownNonces(unknown, sent) ??
    blockedBySigner(chain, signer, { next, mined }) ??
    unanswered(chain, own, mined)
  return {
    in_flight: [...nonces].filter((nonce) => nonce >= mined).length,
    ...(ofSigner != null && { journal: { next_nonce: ofSigner, ahead: ofSigner - next } }),
    ...(blocked && { blocked }),
  }
}

/**
 * Why a wallet signs nothing by its signer: it does not answer, lacks the wallet, has signed what this database does not
 * know, or has lost what is mined.
 */
function blockedBySigner(
  { hotWallet }: EvmChain,
  signer: ReadonlyMap<string, number | null> | Error | undefined,
  { next, mined }: { next: number; mined: number },
): WaitingReason | undefined {
  if (signer === undefined || !hotWallet.isRemote) return undefined
  if (signer instanceof Error) return { code: 'SIGNER_DOWN', detail: signer.message }
  const ofSigner = signer.get(hotWallet.address)
  if (ofSigner === undefined) return { code: 'SIGNER_REFUSES', detail: 'the signer does not have the wallet' }
  if (ofSigner === null)
    return { code: 'SIGNER_REFUSES', detail: "its journal is not opened: 'bursar signer open'" }
  if (ofSigner > next) {
    const detail = `the signer has signed up to nonce ${ofSigner - 1}, and this database has ${next - 1}: it was restored from an older backup`
    return { code: 'UNKNOWN_SPENDS', detail }
  }
  if (ofSigner >= mined) return undefined
  const detail =
    `the signer's journal ends at nonce ${ofSigner}, and the chain has ${mined} transactions of the wallet: it was lost or restored; ` +
    `'bursar signer open' opens it`
  return { code: 'SIGNER_REFUSES', detail }
}

/** How long the signer process may take for a nonce before no later one is given to it. */
const ANSWER_MS_MAX = 60_000

/**
 * Nothing is mined behind a nonce that the signer does not sign: what gets a later one could no longer be cancelled. People
 * who sign by hand take their time.
 */
function unanswered(
  { signer }: EvmChain,
  own: readonly Pick<OpenTransactionRow, 'raw_transaction' | 'age_ms'>[],
  mined: number,
): WaitingReason | undefined {
  const nonceOf = (transaction: { raw_transaction: Buffer }) => parse(transaction.raw_transaction).nonce
  if (signer?.status === undefined) return undefined
  // The last one of a nonce: what a replacement replaces may be too cheap for any block.
  const last = new Map(own.map((transaction) => [nonceOf(transaction), transaction]))
  const first = [...last.values()].find(
    (transaction) =>
      isAsked(transaction.raw_transaction) &&
      transaction.age_ms > ANSWER_MS_MAX &&
      nonceOf(transaction) >= mined,
  )
  if (first === undefined) return undefined
  const nonce = nonceOf(first)
  const detail = `the signer has not signed nonce ${nonce} for ${Math.round(first.age_ms / 1000)} s: allow it, or 'bursar signer fill' uses it up`
  return { code: 'SIGNER_REFUSES', detail }
}

/** The hot wallet as the node knows it: its balances, and the counts of its mined and of all its transactions. */
async function readWallet(chain: EvmChain, assets: Iterable<string>) {
  const { address } = chain.hotWallet
  const block = await headOf(chain.node)
  const wanted = [...new Set([chain.gasAsset, ...assets])]
  const [[count, pending], [syncing], balances] = await Promise.all([
    chain.node.all<Hex>([
      ['eth_getTransactionCount', address, at(block)],
      ['eth_getTransactionCount', address, 'pending'],
    ]),
    chain.node.each<unknown>([['eth_syncing']]),
    balancesAt(
      chain,
      block,
      wanted.map((asset) => ({ address, asset })),
    ),
  ])
  const mined = Number(hexToBigInt(count!))
  const sent = Math.max(mined, Number(hexToBigInt(pending!)))
  const spendable = new Map(wanted.map((asset, index) => [asset, balances[index]!]))
  return { block, mined, sent, isSyncing: isSyncing(syncing), spendable }
}

/** Deducts signed transactions that are not mined from the spendable amounts. Returns their nonces. */
function deductInFlight(
  chain: EvmChain,
  spendable: Map<string, bigint>,
  signed: readonly Buffer[],
  mined: number,
): Set<number> {
  // A replacement has the nonce of the transaction before it, and only one of the two is mined.
  const inFlight = new Map(signed.map((raw) => [parse(raw).nonce, parse(raw)]))
  for (const [nonce, transaction] of inFlight) {
    if (nonce < mined) {
      inFlight.delete(nonce)
      continue
    }
    deduct(spendable, chain.gasAsset, transaction.value + feeMax(transaction))
    if (transaction.data === undefined) continue
    deduct(spendable, assetAt(chain, transaction.to) ?? '', amountIn(transaction.data))
  }
  return new Set(inFlight.keys())
}

const unknownNonces = ([first, ...others]: readonly number[], sent: number): WaitingReason | undefined =>
  first === undefined
    ? undefined
    : unknownSpends(`transactions of nonce ${first}`, others.length, `first_nonce ${sent}`)

async function takenBack(
  tx: Transaction,
  chain: EvmChain,
  lost: readonly number[],
): Promise<WaitingReason | undefined> {
  if (lost.length === 0) return undefined
  const known = await ifAllAnswer(tx, () => transactionsOf(tx, chain, lost))
  return { code: 'TAKEN_BACK', detail: lostReason(known ?? lost.map((nonce) => ({ nonce }))) }
}

// ---------------------------------------------------------------------------------------------- payments from it

/** The money of a wallet at these fees; `spendable` are the amounts that are left of it. */
export const moneyOf = (chain: EvmChain, spendable: Map<string, bigint>, fees: Fees): Money => ({
  spendable,
  ownAsset: chain.gasAsset,
  unitsOf: (asset, amount) => onChain(chain, asset, amount),
  feeOf: (asset) => feeMax({ gas: isNative(chain, asset) ? PLAIN_GAS : TOKEN_GAS, maxFeePerGas: fees.offer }),
  text: (asset, units) => `${offChain(chain, asset, units)} ${asset}`,
  wallet: walletText(chain),
})

export const walletText = ({ hotWallet, lanes }: EvmChain): string =>
  lanes.length === 1 && lanes[0] === hotWallet ? 'the hot wallet' : `wallet ${hotWallet.address}`
