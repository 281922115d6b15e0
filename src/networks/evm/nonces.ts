import type { Hex } from 'viem'
import { hexToBigInt } from 'viem/utils'
import type { Transaction } from '../../db/database.ts'
import { at, headOf, NodeError } from './node.ts'
import { bytesUnderWay, lostReason, noncesBetween, transactionsOf } from './taken-back.ts'
import { amountIn, balancesAt, feeMax, parse, type EvmChain } from './transactions.ts'
import type { WaitingReason } from '../waiting.ts'

/** What the hot wallet has left for one transaction more. Its amounts go down as transactions are decided. */
export interface HotWalletReservation {
  /** The block that it was read at. */
  block: bigint
  /** The nonce of the next transaction. */
  nonce: number
  /** By asset, in units of the chain: what is there, less what is signed and not yet made. May be below zero. */
  spendable: Map<string, bigint>
  /** How many transactions of the wallet are signed and not mined. */
  inFlight: number
  /**
   * Why nothing may be signed: a transaction with a nonce behind one that nobody will ever use would never be made, and
   * what the wallet made without our knowing may be what is about to be paid.
   */
  blockedReason: WaitingReason | undefined
}

/**
 * Opens the hot wallet for whoever is about to sign from it. From here to the commit, nobody else does: the row of its
 * nonce is locked. `closePurse` writes the nonces that were taken; a rollback gives them back.
 *
 * What is signed and not yet made is read from the kept bytes, and before the balances: what has been made in between
 * is then in the balances.
 */
export async function openReservation(
  tx: Transaction,
  chain: EvmChain,
  assets: Iterable<string>,
): Promise<HotWalletReservation> {
  const { next: kept, noted } = await lockNonce(tx, chain)
  const signed = await bytesUnderWay(tx, chain)
  const { address } = chain.hotWallet
  const block = await headOf(chain.node)
  const wanted = [...new Set([chain.gasAsset, ...assets])]
  const [[count, pending], [syncing], balances] = await Promise.all([
    chain.node.all<Hex>([
      ['eth_getTransactionCount', address, at(block)],
      ['eth_getTransactionCount', address, 'pending'],
    ]),
    // Some providers do not have it; they see to it themselves.
    chain.node.each<unknown>([['eth_syncing']]),
    balancesAt(
      chain,
      block,
      wanted.map((asset) => ({ address, asset })),
    ),
  ])
  const made = Number(hexToBigInt(count!))
  const sent = Math.max(made, Number(hexToBigInt(pending!)))
  const spendable = new Map(wanted.map((asset, index) => [asset, balances[index]!]))
  const assetAt = new Map([...chain.tokens].map(([asset, token]) => [token.address.toLowerCase(), asset]))
  const underWay = new Set<number>()
  for (const raw of signed) {
    const transaction = parse(raw)
    if (transaction.nonce < made) continue
    underWay.add(transaction.nonce)
    spend(spendable, chain.gasAsset, transaction.value + feeMax(transaction))
    if (transaction.data === undefined) continue
    spend(spendable, assetAt.get(transaction.to.toLowerCase()) ?? '', amountIn(transaction.data))
  }
  const lost = noncesBetween(made, kept).filter((nonce) => !underWay.has(nonce))
  const unknown = noncesBetween(kept, sent).filter((nonce) => !noted.has(nonce))
  const [first] = unknown
  // A node of another chain knows other nonces: then that is the reason, and nothing else.
  if (lost.length > 0 || first !== undefined) {
    chain.markStale()
    await chain.ready()
  }
  const blockedReason: WaitingReason | undefined =
    typeof syncing === 'object' && !(syncing instanceof NodeError)
      ? { code: 'NODE_BEHIND', detail: 'the node is catching up with its chain' }
      : first !== undefined
        ? { code: 'UNKNOWN_SPENDS', detail: unknownTo(first, unknown.length - 1, sent) }
        : lost.length === 0
          ? undefined
          : { code: 'TAKEN_BACK', detail: lostReason(await transactionsOf(tx, chain, lost)) }
  return { block, nonce: kept, spendable, inFlight: underWay.size, blockedReason }
}

/** A database that was restored from an older backup would pay again what these have paid. */
const unknownTo = (first: number, others: number, sent: number) =>
  `the wallet has sent transactions that this database does not know, of nonce ${first}` +
  `${others > 0 ? ` and ${others} more` : ''}: it was restored from an older backup, or the wallet is used elsewhere; ` +
  `'bursar withdrawal mark-paid' says what was paid, 'bursar wallet acknowledge' what was the platform's own, first_nonce ${sent} that all the others were looked at`

/** Takes units of an asset out of what is left. */
export function spend(spendable: Map<string, bigint>, asset: string, units: bigint): void {
  const before = spendable.get(asset)
  if (before !== undefined) spendable.set(asset, before - units)
}

/** Writes the next nonce. */
export async function closeReservation(
  tx: Transaction,
  chain: EvmChain,
  { nonce }: Pick<HotWalletReservation, 'nonce'>,
): Promise<void> {
  await tx.query(
    `
    update evm_nonces
    set next_nonce = $3, acknowledged_nonces = array(select noted from unnest(acknowledged_nonces) as noted where noted >= $3)
    where network = $1 and address = $2`,
    [chain.network, chain.hotWallet.address, nonce],
  )
}

/** Takes note of a withdrawal's transaction that was made without this database. */
export async function acknowledgeNonce(tx: Transaction, chain: EvmChain, nonce: number): Promise<void> {
  await lockNonce(tx, chain)
  await tx.query(
    `
    update evm_nonces set acknowledged_nonces = array_append(acknowledged_nonces, $3::bigint)
    where network = $1 and address = $2 and next_nonce <= $3`,
    [chain.network, chain.hotWallet.address, nonce],
  )
}

/** The next nonce, locked, and those behind it that are known. */
async function lockNonce(
  tx: Transaction,
  { network, hotWallet: { address }, firstNonce }: EvmChain,
): Promise<{ next: number; noted: ReadonlySet<number> }> {
  const wallet = [network, address]
  await tx.query(
    `insert into evm_nonces (network, address, next_nonce) values ($1, $2, 0)
     on conflict (network, address) do nothing`,
    wallet,
  )
  const { rows } = await tx.query<{ next_nonce: string; acknowledged_nonces: string[] }>(
    'select next_nonce, acknowledged_nonces from evm_nonces where network = $1 and address = $2 for update',
    wallet,
  )
  const { next_nonce, acknowledged_nonces } = rows[0]!
  const noted = new Set(acknowledged_nonces.map(Number))
  let next = Math.max(Number(next_nonce), firstNonce)
  while (noted.has(next)) next += 1
  return { next, noted }
}
