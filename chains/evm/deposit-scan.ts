import { setTimeout as pause } from 'node:timers/promises'
import { getAddress, hexToBigInt } from 'viem/utils'
import type { Hex } from 'viem'
import { CRYPTO_NETWORKS, NETWORKS } from '../../src/contract/assets/catalogue.ts'
import type { Database } from '../../src/db/database.ts'
import { bloomMayHave } from './bloom.ts'
import { confirmedHead, depthText } from './confirmations.ts'
import { noteHoldings } from './sweeps/holdings.ts'
import { at, receiptsOf, type Block, type EventLog } from './node.ts'
import { isNative, offChain, tokenMoveIn, walletAt, type AssetMove, type EvmChain } from './chain.ts'
import { larger, smaller } from '../kit/units.ts'
import { logIndexOf, TRANSFER_TOPIC } from './transaction.ts'
import {
  ChainReorganised,
  type DepositSight,
  type FoundDeposit,
  type DepositScan,
} from '../../src/networks/found-deposits.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'

/** Most blocks that are read together: 20 full blocks of Ethereum are some 10 MB of JSON. */
const BLOCKS_MAX = 20n
/** Enough attempts to halve 20 blocks down to one. */
const ATTEMPTS_MAX = 6
/** Most blocks at the tip that are read before they are confirmed. Ethereum's finalized block is some 64 behind the tip. */
const LOOKED_MAX = 128n
/** How often, and after how long, a missing block is asked for again: one backend may be on a fork. */
const CONFIRMATIONS_OF_REORGANISATION = 2
const CONFIRM_AFTER_MS = 1_000

/**
 * The log index of a native transfer. It collides with no log: a transfer to an account without code runs nothing that
 * could write a token's log.
 */
export const NATIVE_INDEX = '0'

/** A movement in a block, to an address that may be ours. */
type BlockMovement = FoundDeposit & { from: string }

type DepositsIn = (movements: BlockMovement[]) => Promise<FoundDeposit[]>

/** Makes a reader of blocks, which remembers how many of them the node could give at once. */
function blockReader(chain: EvmChain) {
  let size = BLOCKS_MAX
  /** Reads blocks from `first` on, and half as many after each failure: a reply may be too large, or take too long. */
  async function readFrom(first: bigint, last: bigint, depositsIn: DepositsIn) {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const end = smaller(first + size - 1n, last)
      try {
        const numbers = Array.from({ length: Number(end - first) + 1 }, (_, index) => first + BigInt(index))
        const blocks = await blocksByNumber<Block>(chain, numbers, true)
        const movements = [...nativeIn(chain, blocks), ...(await tokensIn(chain, blocks))]
        const found = await depositsIn(movements)
        size = smaller(size * 2n, BLOCKS_MAX)
        return { blocks, movements, found }
      } catch (error) {
        if (!(error instanceof NodeFailure) || end === first) throw error
        size = (end - first + 1n) / 2n
      }
    }
    throw new NodeFailure(`the node of ${chain.network} does not give block ${first}`)
  }
  /** Reads all these blocks in parts. `before` is the cursor of the block before them, where that is known. */
  async function* partsFrom(first: bigint, last: bigint, depositsIn: DepositsIn, before?: string) {
    let read = before
    for (let next = first; next <= last;) {
      const part = await readFrom(next, last, depositsIn)
      requireLinked([read, ...part.blocks.map(cursorOf)], part.blocks)
      read = cursorOf(part.blocks.at(-1)!)
      next += BigInt(part.blocks.length)
      yield { ...part, cursor: read }
    }
  }
  return { readFrom, partsFrom }
}

/** Makes a reader of one chain's deposits. */
export function depositReader(db: Database, chain: EvmChain) {
  const { readFrom, partsFrom } = blockReader(chain)
  /** The newest block that was read before it was confirmed, as a cursor. */
  let lastUnconfirmed: string | undefined
  const marked = (movements: BlockMovement[]) => markedDeposits(db, chain, movements)
  const arrived = async (movements: BlockMovement[]) =>
    (await arrivedAmong(db, chain, movements)).map(depositIn)

  return {
    /**
     * Finds deposits in confirmed blocks. The cursor is the last block that was read, as `<number>:<hash>`. Throws
     * ChainReorganised when the chain has lost that block: then a reorganisation went deeper than `confirmations`, and an
     * operator must review the deposits that were credited from its blocks.
     *
     * Native transfers are the values of transactions. Internal transfers, which a contract makes while it runs, are in no
     * transaction's value, and are not found. Top-ups of gas for sweeping are our own and are left out.
     */
    async scanDeposits(cursor: string | null): Promise<DepositScan> {
      if (!isCursor(cursor)) return { cursor: await initialCursor(chain), found: [] }
      await chain.ready()
      const head = await confirmedHead(chain)
      const read = numberOf(cursor)
      await requireInChain(chain, cursor)
      if (head <= read) return { cursor, found: [] }
      const { blocks, movements, found } = await readFrom(read + 1n, head, marked)
      requireLinked([cursor, ...blocks.map(cursorOf)], blocks)
      const last = blocks.at(-1)!
      const refills = await refillsAmong(chain, movements)
      return { cursor: cursorOf(last), found, refills, isBehind: hexToBigInt(last.number) < head }
    },
    newestBlock: () => newestBlock(chain),
    /** Finds deposits in these blocks. Throws when the last of them is not confirmed. */
    async scanBlocks(first: bigint, last: bigint): Promise<FoundDeposit[]> {
      await chain.ready()
      const head = await confirmedHead(chain)
      if (last > head)
        throw new Error(
          `block ${last} of ${chain.network} is not confirmed yet (${depthText(chain.confirmations)})`,
        )
      const found: FoundDeposit[] = []
      for await (const part of partsFrom(first, last, marked)) found.push(...part.found)
      return found
    },
    /**
     * Finds deposits in the blocks after the cursor whose deposits are not recorded yet, among the newest `LOOKED_MAX`.
     * If the chain has replaced a block that was read, all of them are read again.
     */
    async seeDeposits(cursor: string): Promise<DepositSight> {
      // The cursor is a simulated network's: the chain has not been scanned yet.
      if (!isCursor(cursor)) return { seen: [], readUpTo: 0n, isBehind: true }
      await chain.ready()
      const readUpTo = numberOf(cursor)
      const latest = hexToBigInt(await newestBlock(chain))
      const oldest = larger(latest - LOOKED_MAX, readUpTo)
      const goesOn =
        lastUnconfirmed !== undefined &&
        numberOf(lastUnconfirmed) >= oldest &&
        (await isInChain(chain, lastUnconfirmed, latest))
      let last = goesOn ? lastUnconfirmed : undefined
      const seen: FoundDeposit[] = []
      const next = (last === undefined ? oldest : numberOf(last)) + 1n
      for await (const part of partsFrom(next, latest, arrived, last)) {
        seen.push(...part.found)
        last = part.cursor
      }
      return {
        seen: seen.flatMap(({ block, ...deposit }) => (block ? { ...deposit, block } : [])),
        readUpTo,
        recorded: () => void (lastUnconfirmed = last),
      }
    },
  }
}

async function newestBlock({ node }: EvmChain): Promise<Hex> {
  const [number] = await node.all<Hex>([['eth_blockNumber']])
  return number!
}

/** Where reading begins: the newest confirmed block. The first address is given out after this cursor is stored. */
export async function initialCursor(chain: EvmChain): Promise<string> {
  await chain.ready()
  const head = await confirmedHead(chain)
  const [block] = await headersAt(chain, [head])
  return cursorOf(block!)
}

/** Whether a cursor is `<number>:<hash>`: that of a simulated network is not. */
export const isCursor = (cursor: string | null): cursor is string => cursor !== null && CURSOR.test(cursor)
const CURSOR = /^\d+:0x[0-9a-f]{64}$/
/** The number of a cursor's block. */
export const numberOf = (cursor: string) => BigInt(cursor.slice(0, cursor.indexOf(':')))
const cursorOf = ({ number, hash }: Pick<Block, 'number' | 'hash'>) => `${hexToBigInt(number)}:${hash}`

/** Blocks without their transactions. */
export const headersAt = (chain: EvmChain, numbers: readonly bigint[]) =>
  blocksByNumber<Omit<Block, 'transactions'>>(chain, numbers, false)

async function blocksByNumber<T>(
  { node }: EvmChain,
  numbers: readonly bigint[],
  full: boolean,
): Promise<T[]> {
  const blocks = await node.all<T | null>(
    numbers.map((number) => ['eth_getBlockByNumber', at(number), full] as const),
  )
  return blocks.map((block, index) => {
    if (block === null)
      throw new NodeFailure(`the node has no block ${numbers[index]!}: it is behind, or on another chain`)
    return block
  })
}

/** Whether the block of a cursor is in the chain, whose newest block has this number. */
async function isInChain(chain: EvmChain, cursor: string, latest: bigint): Promise<boolean> {
  if (numberOf(cursor) > latest) return false
  const [block] = await headersAt(chain, [numberOf(cursor)])
  return cursorOf(block!) === cursor
}

/** Throws ChainReorganised unless the block of a cursor is in the chain. Asks more than once. */
async function requireInChain(chain: EvmChain, cursor: string): Promise<void> {
  const number = numberOf(cursor)
  for (let asked = 0; ; asked++) {
    const [block] = await headersAt(chain, [number])
    if (cursorOf(block!) === cursor) return
    // A node of another chain has other blocks, too: then `ready` throws that reason.
    chain.markStale()
    await chain.ready()
    if (asked === CONFIRMATIONS_OF_REORGANISATION) throw reorganised(chain, cursor, block!.hash)
    await pause(CONFIRM_AFTER_MS)
  }
}

/** Throws a NodeFailure where a block is not the parent of the next: two backends are on different forks. */
function requireLinked(before: readonly (string | undefined)[], blocks: readonly Block[]): void {
  for (const [index, { number, parentHash }] of blocks.entries()) {
    if (before[index]?.endsWith(parentHash) === false)
      throw new NodeFailure(
        `the node gave a block ${hexToBigInt(number)} that does not follow on the last one`,
      )
  }
}

function reorganised({ network, confirmations }: EvmChain, cursor: string, now: Hex): Error {
  const [number, hash] = cursor.split(':')
  return new ChainReorganised(
    `${network} has rearranged its blocks deeper than ${depthText(confirmations)}: block ${number!} was ` +
      `${hash!} when it was read, and is ${now} now`,
  )
}

/** The movement of a block as a deposit, which it is at an address of ours; none where it moves nothing. */
const movementIn = (
  chain: EvmChain,
  { number, hash }: Block,
  { from, to, asset, units }: AssetMove,
  place: Pick<FoundDeposit, 'crypto_tx_hash' | 'crypto_tx_index'>,
): BlockMovement[] =>
  units === 0n
    ? []
    : [
        {
          ...{ from, address: to, asset, amount: offChain(chain, asset, units) },
          ...place,
          block: { number: hexToBigInt(number), hash },
        },
      ]

function nativeIn(chain: EvmChain, blocks: Block[]): BlockMovement[] {
  const asset = chain.gasAsset
  return blocks.flatMap((block) =>
    block.transactions.flatMap(({ hash, from, to, value }): BlockMovement[] => {
      if (to === null) return []
      const move = { from: getAddress(from), to: getAddress(to), asset, units: hexToBigInt(value) }
      return movementIn(chain, block, move, { crypto_tx_hash: hash, crypto_tx_index: NATIVE_INDEX })
    }),
  )
}

/**
 * Asks for logs by the block's hash: a backend without the block then refuses, while it would answer a range of numbers
 * with an empty list. Skips blocks whose bloom filter rules the tokens out.
 */
async function tokensIn(chain: EvmChain, blocks: Block[]): Promise<BlockMovement[]> {
  const addresses = [...chain.tokens.values()].map(({ address }) => address)
  const asked = blocks.filter((block) => mayHaveTransfers(block, addresses))
  const logs = await chain.node.all<EventLog[]>(
    asked.map(({ hash: blockHash }) => [
      'eth_getLogs',
      { blockHash, address: addresses, topics: [TRANSFER_TOPIC] },
    ]),
  )
  return asked.flatMap((block, index) =>
    logs[index]!.flatMap((log): BlockMovement[] => {
      if (log.blockHash !== block.hash)
        throw new NodeFailure('the node gave a log of another block than asked for')
      const move = tokenMoveIn(chain, log)
      const place = { crypto_tx_hash: log.transactionHash, crypto_tx_index: logIndexOf(log) }
      return move === undefined ? [] : movementIn(chain, block, move, place)
    }),
  )
}

/** Some chains leave the filter empty though there are logs: an empty filter rules nothing out. */
function mayHaveTransfers({ logsBloom, transactions }: Block, tokens: readonly Hex[]): boolean {
  // Without an address the filter of eth_getLogs would match every address.
  if (tokens.length === 0 || transactions.length === 0) return false
  if (logsBloom === undefined || /^0x0*$/.test(logsBloom)) return true
  return bloomMayHave(logsBloom, TRANSFER_TOPIC) && tokens.some((token) => bloomMayHave(logsBloom, token))
}

const EVM_NETWORKS = CRYPTO_NETWORKS.filter((network) => NETWORKS[network].family === 'evm')

/** The deposits among these movements. Their addresses are marked for sweeping. */
async function markedDeposits(
  db: Database,
  chain: EvmChain,
  movements: BlockMovement[],
): Promise<FoundDeposit[]> {
  const found = await arrivedAmong(db, chain, movements)
  await noteHoldings(
    db,
    chain,
    found.map(({ customer_id, address, asset }) => ({ customer_id, address, asset })),
  )
  return found.map(depositIn)
}

type Arrived = BlockMovement & { customer_id: string }

const depositIn = ({ from: _, customer_id: __, ...deposit }: Arrived): FoundDeposit => deposit

/** The movements to deposit addresses that we have keys to. An address is valid on every EVM network. */
async function arrivedAmong(db: Database, chain: EvmChain, movements: BlockMovement[]): Promise<Arrived[]> {
  if (movements.length === 0) return []
  const { rows } = await db.query<{ customer_id: string; address: string; top_ups: Hex[] }>(
    `
    select d.customer_id, d.address, array(
      select unnest(s.crypto_tx_hash || s.replaced)
      from sweeps s
      where s.customer_id = d.customer_id and s.network = $3 and s.address = d.address and s.kind = 'TOP_UP'
    ) as top_ups
    from deposit_addresses d
    where d.address = any ($1::text[]) and d.crypto_network = any ($2::text[]) and d.derivation is not null`,
    [[...new Set(movements.map(({ address }) => address))], EVM_NETWORKS, chain.network],
  )
  const owners = new Map(rows.map((row) => [row.address, row]))
  const topUps = new Set(rows.flatMap(({ top_ups }) => top_ups))
  const arrived = await withoutOwn(
    db,
    chain,
    movements.filter(
      ({ address, crypto_tx_hash }) => owners.has(address) && !topUps.has(crypto_tx_hash as Hex),
    ),
  )
  return (await madeAmong(chain, arrived)).map((movement) => {
    return { ...movement, customer_id: owners.get(movement.address)!.customer_id }
  })
}

/**
 * Leaves out transfers by the hot wallet without a recorded withdrawal: top-ups that a database restored from an older
 * backup does not have, and transfers by hand, whose funds were in custody before.
 */
async function withoutOwn(
  db: Database,
  chain: EvmChain,
  movements: BlockMovement[],
): Promise<BlockMovement[]> {
  const own = movements.filter(({ from }) => walletAt(chain, from) !== undefined)
  if (own.length === 0) return movements
  const { rows } = await db.query<{ crypto_tx_hash: string }>(
    `
    select crypto_tx_hash from outgoing_transfers where network = $1 and crypto_tx_hash = any ($2)
    union all
    select crypto_tx_hash from replaced_transactions where crypto_tx_hash = any ($2)`,
    [chain.network, own.map(({ crypto_tx_hash }) => crypto_tx_hash)],
  )
  const known = new Set(rows.map(({ crypto_tx_hash }) => crypto_tx_hash))
  return movements.filter((movement) => !own.includes(movement) || known.has(movement.crypto_tx_hash))
}

/** The transactions with which cold storage has paid a wallet. With one node alone, an operator acknowledges them. */
async function refillsAmong(chain: EvmChain, movements: BlockMovement[]): Promise<string[]> {
  if (chain.verify === undefined || chain.coldAddresses.length === 0) return []
  const cold = new Set<string>(chain.coldAddresses)
  const paid = movements.filter(
    ({ from, address }) => cold.has(from) && walletAt(chain, address) !== undefined,
  )
  const made = await madeAmong(chain, paid)
  return [...new Set(made.map(({ crypto_tx_hash }) => crypto_tx_hash))]
}

/** The movements without those of native coins by a reverted transaction: such are in blocks as well. */
async function madeAmong(chain: EvmChain, movements: BlockMovement[]): Promise<BlockMovement[]> {
  const hashes = movements.flatMap(({ asset, crypto_tx_hash }) =>
    isNative(chain, asset) ? crypto_tx_hash : [],
  )
  const receipts = await receiptsOf(chain.node, hashes)
  const reverted = hashes.filter((hash, index) => {
    const receipt = receipts[index]!
    if (receipt === null) throw new NodeFailure(`the node has no receipt of ${hash}`)
    return hexToBigInt(receipt.status) !== 1n
  })
  return movements.filter(
    ({ asset, crypto_tx_hash }) => !isNative(chain, asset) || !reverted.includes(crypto_tx_hash),
  )
}
