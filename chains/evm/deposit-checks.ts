import { getAddress, hexToBigInt } from 'viem/utils'
import type { Hex } from 'viem'
import { parseStoredAmount } from '../../src/contract/assets/amount.ts'
import { decimalsOf } from '../../src/contract/assets/catalogue.ts'
import { headersAt, isCursor, NATIVE_INDEX, numberOf } from './deposit-scan.ts'
import { noteHoldings } from './sweeps/holdings.ts'
import type { Database } from '../../src/db/database.ts'
import { grouped } from '../../src/db/rows.ts'
import { confirmedHead, depthText } from './confirmations.ts'
import { headOf, receiptsOf, type EvmNode, type Receipt } from './node.ts'
import { balancesAt, isNative, offChain, tokenMoveIn, type AssetMove, type EvmChain } from './chain.ts'
import { askSecondNode, requireSecondWord, wordIn } from './second-word.ts'
import { onceForEach } from '../kit/once-for-each.ts'
import { verdictOf, wordOf } from '../kit/second-word.ts'
import { logIndexOf } from './transaction.ts'
import { readCursor } from '../../src/networks/network-cursors.ts'
import type { CreditedStanding, DepositVerdict, FoundDeposit } from '../../src/networks/found-deposits.ts'

/** Checks found deposits against further evidence, and finds credited deposits that the chain has lost. */

const AGREES: DepositVerdict = { verdict: 'AGREES' }

/** Most transactions whose receipts are read together: the receipt of a batch payment may have a thousand logs. */
const TRANSACTIONS_MAX = 20

/**
 * Verifies each found deposit by its transaction's receipt; above the configured amount also by a second node, whose chain
 * must have the same confirmed block with the same transfer in it.
 */
export async function verifyDeposits(
  chain: EvmChain,
  found: readonly FoundDeposit[],
): Promise<DepositVerdict[]> {
  await chain.ready()
  const ask = onceForEach(
    ({ field, deposit }: Asked) => `${field} ${deposit.crypto_tx_hash} ${deposit.block!.hash}`,
    ({ node, deposit }) => askSecondNode({ ...chain, node }, deposit.block!, deposit.crypto_tx_hash),
  )
  const verdicts = new Map<FoundDeposit, DepositVerdict>()
  for await (const [deposit, receipt] of withReceipts(chain.node, found)) {
    const objection = objectionOf(chain, deposit, receipt)
    verdicts.set(
      deposit,
      objection === undefined
        ? await verifyBySecondNode(chain, deposit, ask)
        : { verdict: 'WAITS', detail: `the node ${objection}` },
    )
  }
  return found.map((deposit) => verdicts.get(deposit)!)
}

/** Each deposit with the receipt of its transaction, which is asked for once; null where the node has none. */
async function* withReceipts(
  node: EvmNode,
  deposits: readonly FoundDeposit[],
): AsyncGenerator<[FoundDeposit, Receipt | null]> {
  const byHash = [...grouped(deposits, ({ crypto_tx_hash }) => crypto_tx_hash)]
  for (let start = 0; start < byHash.length; start += TRANSACTIONS_MAX) {
    const some = byHash.slice(start, start + TRANSACTIONS_MAX)
    const receipts = await receiptsOf(
      node,
      some.map(([hash]) => hash),
    )
    for (const [index, [, own]] of some.entries())
      for (const deposit of own) yield [deposit, receipts[index]!]
  }
}

/** The objection of a receipt to a deposit; undefined where the two agree. */
function objectionOf(chain: EvmChain, deposit: FoundDeposit, receipt: Receipt | null): string | undefined {
  const { crypto_tx_hash: hash, crypto_tx_index: index, block } = deposit
  if (receipt === null) return `has no receipt of ${hash}`
  if (receipt.blockHash !== block?.hash) return `has ${hash} in block ${receipt.blockHash} now`
  if (hexToBigInt(receipt.status) !== 1n) return `says that ${hash} was reverted`
  if (isNative(chain, deposit.asset)) return undefined
  const log = receipt.logs.find((one) => logIndexOf(one) === index)
  const move = log && tokenMoveIn(chain, log)
  const isSame =
    move?.asset === deposit.asset && move.to === deposit.address && isAmount(chain, deposit, move.units)
  return isSame ? undefined : `has no such log in the receipt of ${hash}`
}

const isAmount = (chain: EvmChain, { asset, amount }: FoundDeposit, units: bigint) =>
  amountOf(asset, offChain(chain, asset, units)) === amountOf(asset, amount)

const amountOf = (asset: string, amount: string) => parseStoredAmount(amount, decimalsOf(asset))

/** A second node, by the field that names it, and what it is asked about. */
interface Asked {
  node: EvmNode
  field: string
  deposit: FoundDeposit
}

/** A deposit waits for second nodes that lag or do not answer. One that disagrees stops the network. */
async function verifyBySecondNode(
  chain: EvmChain,
  deposit: FoundDeposit,
  ask: (asked: Asked) => ReturnType<typeof askSecondNode>,
): Promise<DepositVerdict> {
  const { verify } = chain
  if (verify === undefined) return AGREES
  const isSmall = amountOf(deposit.asset, deposit.amount) < verify.above(deposit.asset)
  if (isSmall && deposit.needsSecondNode !== true) return AGREES
  const { amount, asset, crypto_tx_hash } = deposit
  const word = await wordOf(verify, async (node, field) =>
    wordIn(await ask({ node, field, deposit }), (seen) => objectionOfSecond(chain, deposit, seen)),
  )
  if (word?.differs === undefined) return verdictOf(word)
  return verdictOf({
    differs: `${word.differs}, for a deposit of ${amount} ${asset} by ${crypto_tx_hash}`,
  })
}

function objectionOfSecond(
  chain: EvmChain,
  deposit: FoundDeposit,
  { receipt, transaction }: { receipt: Receipt; transaction: { to: Hex | null; value: Hex } },
): string | undefined {
  const objection = objectionOf(chain, deposit, receipt)
  if (objection !== undefined || chain.tokens.has(deposit.asset)) return objection
  const isSame =
    transaction.to !== null &&
    getAddress(transaction.to) === deposit.address &&
    isAmount(chain, deposit, hexToBigInt(transaction.value))
  return isSame ? undefined : 'has another amount or recipient'
}

/** The confirmations of these deposits' blocks; a deposit of a simulated network has all that are asked for. */
export async function confirmationsOf(chain: EvmChain, found: readonly FoundDeposit[]): Promise<number[]> {
  await chain.ready()
  const head = await headOf(chain.node)
  return found.map(({ block }) => (block === undefined ? Infinity : Number(head - block.number) + 1))
}

// ---------------------------------------------------------------------------------------------- reorganisations

/**
 * Checks whether credited deposits are still in the chain. MOVED: another confirmed block has their transaction. GONE: no
 * confirmed block has it, or the transaction makes another payment there.
 */
export async function checkCredited(
  chain: EvmChain,
  deposits: readonly FoundDeposit[],
): Promise<CreditedStanding[]> {
  await chain.ready()
  const numbers = [...new Set(deposits.flatMap(({ block }) => block?.number ?? []))]
  const head = await confirmedHead(chain)
  const reached = numbers.filter((number) => number <= head)
  const headers = await headersAt(chain, reached)
  const hashAt = new Map(reached.map((number, index) => [number, headers[index]!.hash]))
  const left = deposits.filter(({ block }) => block !== undefined && hashAt.get(block.number) !== block.hash)
  const standings = new Map<FoundDeposit, CreditedStanding>()
  for await (const [deposit, receipt] of withReceipts(chain.node, left))
    standings.set(deposit, standingAfter(chain, head, deposit, receipt))
  return deposits.map((deposit) => standings.get(deposit) ?? 'THERE')
}

/** The standing of a deposit whose block the chain has dropped, by its transaction's receipt. */
function standingAfter(
  chain: EvmChain,
  head: bigint,
  deposit: FoundDeposit,
  receipt: Receipt | null,
): CreditedStanding {
  if (receipt === null || hexToBigInt(receipt.blockNumber) > head) return 'GONE'
  const block = { number: hexToBigInt(receipt.blockNumber), hash: receipt.blockHash }
  const isThere =
    deposit.crypto_tx_index === NATIVE_INDEX && !chain.tokens.has(deposit.asset)
      ? objectionOf(chain, { ...deposit, block }, receipt) === undefined
      : // Log indexes count through the block: in another block the same log may have another index.
        receipt.logs.some(
          (log) =>
            objectionOf(chain, { ...deposit, block, crypto_tx_index: logIndexOf(log) }, receipt) ===
            undefined,
        )
  return isThere ? 'MOVED' : 'GONE'
}

/** The first of these cursors whose block is confirmed and in the chain. */
export async function newestInChain(
  chain: EvmChain,
  cursors: readonly string[],
): Promise<string | undefined> {
  await chain.ready()
  const head = await confirmedHead(chain)
  const known = cursors.filter((cursor) => numberOf(cursor) <= head)
  const headers = await headersAt(chain, known.map(numberOf))
  return known.find((cursor, index) => cursor.endsWith(`:${headers[index]!.hash}`))
}

/** The cursor after this block: reading goes on with the next one. */
export async function cursorAt(chain: EvmChain, block: bigint): Promise<string> {
  await chain.ready()
  const [header] = await headersAt(chain, [block])
  return `${block}:${header!.hash}`
}

// ---------------------------------------------------------------------------------------------- claimed by an operator

/**
 * Throws an Error unless the address received at least this amount in the transaction's block. Its balances at that block and
 * at the one before must show so, at the second node, too. Nothing else shows an internal transfer, which a contract makes
 * while it runs: it is in no transaction's value and no log. Marks the address to be swept.
 */
export async function requireReceived(
  db: Database,
  chain: EvmChain,
  customerId: string,
  { crypto_tx_hash: hash, address, asset, amount }: FoundDeposit,
): Promise<void> {
  await chain.ready()
  if (asset !== chain.gasAsset && !chain.tokens.has(asset))
    throw new Error(`${chain.network} does not support ${asset}`)
  const receipt = await chain.node.call<Receipt | null>('eth_getTransactionReceipt', hash)
  if (receipt === null) throw new Error(`the node has no receipt of ${hash}`)
  if (hexToBigInt(receipt.status) !== 1n) throw new Error(`${hash} was reverted: it moved nothing`)
  const block = hexToBigInt(receipt.blockNumber)
  if (block > (await confirmedHead(chain)))
    throw new Error(`${hash} is not confirmed yet (${depthText(chain.confirmations)})`)
  await requireRead(db, chain, hash, block)
  await requireInternal(chain, receipt, { crypto_tx_hash: hash, address, asset })
  const place = [{ address: address as Hex, asset }]
  const shortAt = async (node: EvmNode) => {
    const asked = { ...chain, node }
    const [[before], [after]] = await Promise.all([
      balancesAt(asked, block - 1n, place),
      balancesAt(asked, block, place),
    ])
    const received = offChain(chain, asset, after! > before! ? after! - before! : 0n)
    if (amountOf(asset, received) >= amountOf(asset, amount)) return undefined
    return `says that ${address} has received ${received} ${asset} in the block of ${hash}, and not ${amount}`
  }
  await requireSecondWord(chain, receipt, (_, node) => shortAt(node))
  const short = await shortAt(chain.node)
  if (short !== undefined) throw new Error(`the node ${short}`)
  await noteHoldings(db, chain, [{ customer_id: customerId, address, asset }])
}

/**
 * Throws an Error for a payment that its block shows, as the value of the transaction or in a token's log: a rescan credits
 * such a payment, and would credit it a second time.
 */
async function requireInternal(
  chain: EvmChain,
  receipt: Receipt,
  { crypto_tx_hash: hash, address, asset }: Pick<FoundDeposit, 'crypto_tx_hash' | 'address' | 'asset'>,
): Promise<void> {
  const pays = (move: AssetMove | undefined) => move?.asset === asset && move.to === address
  const isShown = isNative(chain, asset)
    ? await paysByValue(chain, hash, address)
    : receipt.logs.some((log) => pays(tokenMoveIn(chain, log)))
  if (isShown)
    throw new Error(
      `${hash} pays ${address} in a way that a scan sees: bursar deposits rescan of block ${hexToBigInt(receipt.blockNumber)} credits it`,
    )
}

async function paysByValue({ node }: EvmChain, hash: string, address: string): Promise<boolean> {
  const paying = await node.call<{ to: Hex | null; value: Hex } | null>('eth_getTransactionByHash', hash)
  if (paying === null) throw new Error(`the node does not have ${hash}`)
  return paying.to !== null && getAddress(paying.to) === address && hexToBigInt(paying.value) > 0n
}

/** Throws an Error unless the blocks up to this one were read: a later scan of them may credit the deposit again. */
async function requireRead(db: Database, { network }: EvmChain, hash: string, block: bigint): Promise<void> {
  const { cursor = null } = await readCursor(db, network)
  if (isCursor(cursor) && numberOf(cursor) < block)
    throw new Error(
      `block ${block} with ${hash} is not read yet, only up to ${numberOf(cursor)}: a deposit in it may be credited by itself`,
    )
}
