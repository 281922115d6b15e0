import { isDeepStrictEqual } from 'node:util'
import type { Address } from '@solana/addresses'
import type { Queryable, Transaction } from '../../src/db/database.ts'
import { doesNotPay } from '../kit/claims.ts'
import { requireWord, wordOf, type SecondWord } from '../kit/second-word.ts'
import { sum } from '../kit/units.ts'
import { unrecordedAmong } from '../kit/unknown-spends.ts'
import type { ClaimedTransaction, PaidWithdrawal } from '../../src/networks/network.ts'
import type { MovedOnChain } from '../../src/networks/moved-on-chain.ts'
import { nonceOf, readAccounts, tokenAccountOf } from './accounts.ts'
import { feeIn, GAS_ASSET, NETWORK, offChain, type Facts, type SolanaChain } from './chain.ts'
import { accountOf, assetOf } from './deposit-accounts.ts'
import { balancesOf, movesAt } from './deposit-scan.ts'
import { acknowledgeOn, laneAccounts, nonceAccounts, walletsOf } from './lanes.ts'
import { changesOf, madeTransaction, type MadeTransaction, type SolanaRpc } from './node.ts'
import { NOTHING_ELSE } from '../../src/networks/one-node.ts'
import { costOfOne, rentOf, samePayment, wantedOf } from './payment-status.ts'
import { parseSigned, paymentIn, type ParsedTransfer } from './transaction.ts'

/** A finalized transaction that the hot wallet has signed. Throws an Error that says why it is none. */
async function madeByWallet(chain: SolanaChain, hash: string) {
  const made = await madeTransaction(chain.rpc, hash)
  if (made === undefined) throw new Error(`the node of ${NETWORK} has no finalized transaction ${hash}`)
  return { made, shown: parseSigned(made.raw, hash) }
}

/** Throws an Error unless second nodes have the same effect of a transaction; in a sandbox, none is needed. */
async function requireSecond(
  { second, mode }: SolanaChain,
  made: MadeTransaction,
  hash: string,
): Promise<void> {
  if (second === undefined) {
    if (mode === 'live') throw new Error(`${hash}: ${NOTHING_ELSE}`)
    return
  }
  const ask = async (node: SolanaRpc): Promise<SecondWord> => {
    const there = await madeTransaction(node, hash)
    if (there === undefined) return { waits: `has no finalized transaction ${hash}` }
    return isDeepStrictEqual(there, made) ? undefined : { differs: 'says something else' }
  }
  requireWord(hash, await wordOf(second, ask))
}

/**
 * The hot wallet's transaction that, by an operator's word, has paid a withdrawal. `keep` acknowledges it on its lane. Throws
 * an Error where it does not pay the withdrawal, or the withdrawal's own transaction has another nonce and may be made, too.
 */
export async function claimTransaction(
  chain: SolanaChain,
  withdrawal: PaidWithdrawal,
  hash: string,
): Promise<ClaimedTransaction> {
  const { raw_transaction } = withdrawal
  const facts = await chain.facts()
  const { made } = await madeByWallet(chain, hash)
  const paid = paymentIn(made.raw)
  if (paid === undefined || !walletsOf(chain).includes(paid.from) || made.err !== null)
    throw new Error(`${hash} is no payment of the hot wallet on a nonce account, or has failed`)
  const own = raw_transaction === null ? undefined : paymentIn(raw_transaction)
  const isItsNonce = own?.nonceAccount === paid.nonceAccount && own.nonce === paid.nonce
  const wanted = wantedOf(facts, withdrawal)
  const transfer = wanted && samePayment(paid, wanted)
  if (transfer === undefined) throw doesNotPay(withdrawal, hash, isItsNonce)
  const { transfers } = paid
  const shared = transfers.length > 1 && { crypto_tx_index: transfer.index, payments: transfers.length }
  const claimed = { raw_transaction: made.raw, crypto_tx_hash: hash, ...shared }
  // While other payments of it are not on record, it stops all lanes: they would be made twice.
  if (raw_transaction === null)
    return {
      ...claimed,
      async keep(tx) {
        if ((await unrecordedAmong(tx, NETWORK, [hash])).length === 0)
          await acknowledgeOn(tx, chain, paid, { hash, slot: made.slot })
      },
    }
  if (!isItsNonce)
    throw new Error(`${hash} has another nonce, and the withdrawal's own transaction may still be made, too`)
  return claimed
}

/**
 * What one of the platform's own transactions has moved, for an operator: by the balances of the hot wallet and former ones,
 * of their token accounts and nonce accounts. A lane that it used signs again. Throws an Error where the transaction is known, is
 * not finalized, moves nothing of these wallets, or has the nonce of a stored transaction that has not ended.
 */
export async function movedBy(tx: Transaction, chain: SolanaChain, hash: string): Promise<MovedOnChain> {
  const facts = await chain.facts()
  if (await isKnown(tx, hash))
    throw new Error(`${hash} is known: it is a withdrawal's, a nonce account's or of the platform's own`)
  const { made, shown } = await madeByWallet(chain, hash)
  await requireSecond(chain, made, hash)
  const wallets = walletsOf(chain)
  await requireNotUnderWay(tx, chain, hash, shown.nonceAccount, shown.lifetime)
  const { lamports, tokens } = changesOf(made, shown.accounts)
  const isPaidByUs = wallets.includes(shown.feePayer)
  // Payments that are marked as withdrawals' count for those, with their rents and their parts of the fee.
  const paid = paymentIn(made.raw)
  const rows = await chain.withdrawals.paidBy(tx, NETWORK, hash)
  const isMarked = ({ index }: ParsedTransfer) =>
    rows.some(({ crypto_tx_index }) => crypto_tx_index === index)
  const marked = paid?.transfers.filter(isMarked) ?? []
  const others = paid?.transfers.filter((transfer) => !isMarked(transfer)) ?? []
  const rents = sum(marked.map((transfer) => rentOf(transfer, lamports)))
  const fee = isPaidByUs ? made.fee : 0n
  const lanes = nonceAccounts(chain).map(({ account }) => account)
  // What the hot wallet moves between itself and deposit addresses stays in custody. Others pay deposits to those.
  const isOurs = wallets.some((wallet) => shown.signers.includes(wallet))
  const addresses = isOurs
    ? (await movesAt(tx, chain, facts.tokens, [balancesOf(made, hash)])).map(({ place }) => place)
    : []
  const atAddresses = (asset: string, changes: ReadonlyMap<Address, bigint>) =>
    sum(addresses.flatMap((held) => (held.asset === asset ? (changes.get(held.account) ?? 0n) : [])))
  const ownLamports =
    sum([...wallets, ...lanes].map((address) => lamports.get(address) ?? 0n)) +
    atAddresses(GAS_ASSET, lamports) +
    sum(marked.map(({ mint, units }) => (mint === undefined ? units : 0n))) +
    rents +
    fee
  const ofTokens = [...facts.tokens].map(([asset, { mint }]) => {
    const change = sum(wallets.map((wallet) => tokens.get(accountOf(facts.tokens, wallet, asset)!) ?? 0n))
    const paid = sum(marked.map((transfer) => (transfer.mint === mint ? transfer.units : 0n)))
    return [asset, change + atAddresses(asset, tokens) + paid] as const
  })
  const moved = [[GAS_ASSET, ownLamports] as const, ...ofTokens]
    .filter(([, units]) => units !== 0n)
    .map(([asset, units]) => ({ asset, amount: offChain(asset, units) }))
  if (moved.length === 0 && !isPaidByUs) throw new Error(`${hash} moves nothing of the hot wallet`)
  if (laneAccounts(chain).some(({ account }) => account === shown.nonceAccount))
    await acknowledgeOn(
      tx,
      chain,
      { nonceAccount: shown.nonceAccount!, nonce: shown.lifetime },
      { hash, slot: made.slot },
    )
  const payments = [...lamports]
    .filter(([address, units]) => units > 0n && !wallets.includes(address) && !lanes.includes(address))
    .filter(([address]) => !marked.some(({ target }) => target === address))
    .map(([address, units]) => ({ asset: GAS_ASSET, amount: offChain(GAS_ASSET, units), address }))
  const tokenPayments = made.err === null ? await paidTokens(chain, facts.tokens, others) : []
  const sharesOfMarked = sum(marked.map((transfer) => costOfOne(paid!, transfer, lamports))) - rents
  return {
    moved,
    payments: [...payments, ...tokenPayments],
    ...(isPaidByUs && { networkFee: feeIn(made.fee - sharesOfMarked) }),
  }
}

/** The payments of tokens, each by the wallet whose account got it. */
async function paidTokens(chain: SolanaChain, tokens: Facts['tokens'], transfers: readonly ParsedTransfer[]) {
  const owners = await readAccounts(
    chain.rpc,
    transfers.map(({ target }) => target),
  )
  return transfers.flatMap(({ mint, units, target }) => {
    const asset = mint && assetOf(tokens, mint)
    const owner = tokenAccountOf(owners.get(target))?.owner
    return asset === undefined || owner === undefined
      ? []
      : [{ asset, amount: offChain(asset, units), address: owner }]
  })
}

async function isKnown(tx: Queryable, hash: string): Promise<boolean> {
  if ((await unrecordedAmong(tx, NETWORK, [hash])).length === 0) return true
  const { rowCount } = await tx.query(`select 1 from sweeps where network = $1 and crypto_tx_hash = $2`, [
    NETWORK,
    hash,
  ])
  return rowCount !== 0
}

/** Throws an Error where a stored transaction with this nonce has not ended: it must be ended first. */
async function requireNotUnderWay(
  tx: Queryable,
  chain: SolanaChain,
  hash: string,
  nonceAccount: Address | undefined,
  nonce: string,
): Promise<void> {
  if (nonceAccount === undefined) return
  const { rows } = await tx.query<{ crypto_tx_hash: string; raw_transaction: Buffer }>(
    `select crypto_tx_hash, raw_transaction from network_transactions
     where network = $1 and ended_at is null and used_by is null`,
    [NETWORK],
  )
  for (const { crypto_tx_hash, raw_transaction } of rows) {
    // Some of its payments are marked as withdrawals'.
    if (crypto_tx_hash === hash) continue
    const open = paymentIn(raw_transaction)
    if (open?.nonceAccount === nonceAccount && open.nonce === nonce)
      throw new Error(
        `${hash} has the nonce of ${crypto_tx_hash}, whose withdrawal has not ended: end it first`,
      )
  }
  const { wallet } = nonceAccounts(chain).find(({ account }) => account === nonceAccount) ?? {}
  const accounts = await readAccounts(chain.rpc, [nonceAccount])
  if (wallet !== undefined && nonceOf(accounts.get(nonceAccount), wallet) === nonce)
    throw new Error(`the node does not show yet that ${hash} has used its nonce`)
}
