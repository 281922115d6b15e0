import type { Hex } from 'viem'
import { isDeepStrictEqual } from 'node:util'
import { getAddress, hexToBigInt, hexToNumber } from 'viem/utils'
import type { Queryable, Transaction } from '../../src/db/database.ts'
import { standingsOf } from './confirmations.ts'
import { acknowledgeNonce } from './nonces.ts'
import { offChain, tokenMoveIn, walletAt, walletsOf, type AssetMove, type EvmChain } from './chain.ts'
import { feePaid } from './fees.ts'
import { parse } from './transaction.ts'
import type { Receipt } from './node.ts'
import { requireSecondWord } from './second-word.ts'
import { underWayOf } from './taken-back.ts'
import { depositAddressesAmong } from '../../src/networks/deposit-addresses.ts'
import type { BroughtOnChain, MovedOnChain } from '../../src/networks/moved-on-chain.ts'

/** A transaction in a node's answer. */
interface FoundTransfers {
  from: Hex
  /** Null where it creates a contract. */
  to: Hex | null
  value: Hex
  nonce: Hex
}

/**
 * The amounts that one of the platform's own transactions has moved, for an operator: the native asset by its value, and the
 * configured tokens by their logs. Internal transfers, which a contract makes while it runs, are in neither. Acknowledges a
 * nonce of the hot wallet, so that the wallet signs on. Throws an Error where the transaction is known, is not confirmed,
 * differs at the second node, moves nothing of the hot wallet, or has the nonce of a stored transaction that has not ended.
 */
export async function movedBy(tx: Transaction, chain: EvmChain, hash: string): Promise<MovedOnChain> {
  const { found, effect } = await readEffect(tx, chain, hash)
  const hotWallet = walletAt(chain, found.from)
  if (hotWallet !== undefined) {
    const nonce = hexToNumber(found.nonce)
    await requireNotUnderWay(tx, { ...chain, hotWallet }, { hash, nonce })
    await acknowledgeNonce(tx, { ...chain, hotWallet }, nonce)
  }
  return effect
}

/** The same of a transaction by others, who are named. Throws an Error where no second node confirms it, too. */
export async function broughtBy(db: Queryable, chain: EvmChain, hash: string): Promise<BroughtOnChain> {
  if (chain.verify === undefined) throw new Error('no second node confirms it')
  const { effect, senders } = await readEffect(db, chain, hash)
  return { ...effect, from: [...senders] }
}

/** What a transaction has moved of the wallets', as both nodes have it. Writes nothing. */
async function readEffect(db: Queryable, chain: EvmChain, hash: string) {
  await chain.ready()
  if (await isKnown(db, chain, hash))
    throw new Error(`${hash} is known: it is a withdrawal's, a sweep's or of the platform's own`)
  const found = await chain.node.call<FoundTransfers | null>('eth_getTransactionByHash', hash)
  if (found === null) throw new Error(`the node of ${chain.network} has no transaction ${hash}`)
  const sent = { raw_transaction: Buffer.alloc(0), crypto_tx_hash: hash, replaced: [] }
  const [standing] = await standingsOf(chain, [sent])
  if (standing!.state !== 'MINED' || !standing!.isConfirmed) throw new Error(`${hash} is not confirmed yet`)
  const { receipt } = standing!
  const moves = movesOf(chain, found, receipt)
  await requireSecondWord(chain, receipt, (second) => {
    const isSame =
      getAddress(second.transaction.from) === getAddress(found.from) &&
      second.transaction.nonce === found.nonce &&
      isDeepStrictEqual(movesOf(chain, second.transaction, second.receipt), moves) &&
      isDeepStrictEqual(feePaid(chain, second.receipt), feePaid(chain, receipt))
    return isSame ? undefined : 'has another sender, nonce, amount or fee'
  })
  const own = await ownAmong(db, chain, [
    getAddress(found.from),
    ...moves.flatMap(({ from, to }) => [from, to]),
  ])
  const sums = new Map<string, bigint>()
  const senders = new Set<Hex>()
  for (const { from, to, asset, units } of moves) {
    const isOut = own.has(from) && !own.has(to)
    // A payment by somebody else to a deposit address is a deposit.
    const isIn = !own.has(from) && walletAt(chain, to) !== undefined
    if (!isOut && !isIn) continue
    senders.add(from)
    sums.set(asset, (sums.get(asset) ?? 0n) + (isOut ? -units : units))
  }
  const moved = [...sums]
    .filter(([, units]) => units !== 0n)
    .map(([asset, units]) => ({ asset, amount: offChain(chain, asset, units) }))
  const isPaidByUs = own.has(getAddress(found.from))
  if (moved.length === 0 && !isPaidByUs) throw new Error(`${hash} moves nothing of the hot wallet`)
  const payments = moves.map(({ to, asset, units }) => ({
    asset,
    amount: offChain(chain, asset, units),
    address: to,
  }))
  const effect = { moved, payments, ...(isPaidByUs && { networkFee: feePaid(chain, receipt) }) }
  return { found, senders, effect }
}

/**
 * Throws an Error where a stored transaction with this nonce has not ended. The chain mines only one of the two: where it has
 * mined the other, the stored one must be ended first.
 */
async function requireNotUnderWay(
  tx: Transaction,
  chain: EvmChain,
  { hash, nonce }: { hash: string; nonce: number },
): Promise<void> {
  const own = await underWayOf(tx, chain)
  const underWay = own.find(({ raw_transaction }) => parse(raw_transaction).nonce === nonce)
  if (underWay === undefined) return
  const { transfer_id } = underWay
  throw new Error(
    transfer_id === null
      ? `${hash} has nonce ${nonce}, with which gas for sweeping is under way: wait until that has ended`
      : `${hash} has nonce ${nonce}, which is that of withdrawal ${transfer_id}, and that has not ended: ` +
          `'bursar withdrawal mark-paid ${transfer_id} --tx-hash ${hash}' says that it was paid so; if it was not, the worker signs it anew ` +
          `once ${hash} is confirmed, or 'bursar withdrawal resolve ${transfer_id} --outcome sign-anew --used-by ${hash}' does: then acknowledge it`,
  )
}

/** Each part uses an index: signing waits for this query, and sweeps are many and never deleted. */
async function isKnown(db: Queryable, { network }: EvmChain, hash: string): Promise<boolean> {
  const { rowCount } = await db.query(
    `
    select 1 from outgoing_transfers where network = $1 and crypto_tx_hash = $2
    union all select 1 from replaced_transactions r
      join outgoing_transfers b on b.customer_id = r.customer_id and b.transfer_id = r.transfer_id
      where b.network = $1 and r.crypto_tx_hash = $2
    union all select 1 from sweeps where network = $1 and crypto_tx_hash = $2
    union all select 1 from sweeps where network = $1 and replaced <> '{}' and replaced @> array[$2]
    union all select 1 from acknowledged_transactions where network = $1 and crypto_tx_hash = $2`,
    [network, hash],
  )
  return rowCount !== 0
}

/** The movements in a transaction: none where the chain reverted it. */
function movesOf(chain: EvmChain, { from, to, value }: FoundTransfers, receipt: Receipt): AssetMove[] {
  if (hexToBigInt(receipt.status) !== 1n) return []
  const units = hexToBigInt(value)
  const native: AssetMove[] =
    to === null || units === 0n
      ? []
      : [{ from: getAddress(from), to: getAddress(to), asset: chain.gasAsset, units }]
  return [...native, ...receipt.logs.flatMap((log) => tokenMoveIn(chain, log) ?? [])]
}

/** The hot wallets, and the deposit addresses among these addresses. */
async function ownAmong(db: Queryable, chain: EvmChain, addresses: readonly Hex[]): Promise<Set<Hex>> {
  const deposits = await depositAddressesAmong(db, addresses)
  const wallets = walletsOf(chain).map(({ address }) => getAddress(address))
  return new Set([...wallets, ...addresses.filter((address) => deposits.has(address))])
}
