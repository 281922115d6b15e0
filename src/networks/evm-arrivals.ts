import { getAddress, hexToBigInt } from 'viem/utils'
import type { Hex } from 'viem'
import { CRYPTO_NETWORKS, NETWORKS } from '../assets/catalogue.ts'
import type { Database } from '../db/database.ts'
import { confirmedHead, depthText } from './evm-confirmations.ts'
import { at, type Block, type Log, type Receipt } from './evm-node.ts'
import { addressIn, logIndexOf, offChain, TRANSFER_TOPIC, type EvmChain } from './evm-transactions.ts'
import type { Arrival } from './networks.ts'

/** Most blocks that one call reads: 20 full blocks of Ethereum are some 10 MB of JSON. */
const BLOCKS_MAX = 20n

/**
 * What a native transfer has for a log index. It collides with no log: a transfer to an account that has no code runs
 * nothing that could write one of a token.
 */
export const NATIVE_INDEX = '0'

/** A movement in a block, to an address that may be ours. */
type Movement = Arrival & { native: boolean; /** Of a native one. */ from?: string }

/**
 * What has arrived at deposit addresses in blocks that are deep enough to stay. The cursor is the last block that was
 * read, as `<number>:<hash>`; the next block must follow on it by its hash, or this throws: then more blocks were
 * rearranged than `confirmations` allows for, and what was credited from them must be looked at by somebody.
 *
 * Native transfers are those that a transaction itself makes. What a contract pays out while it runs is in no
 * transaction's value, and is not seen. Top-ups of gas for sweeping are our own and are left out.
 */
export async function arrivals(
  db: Database,
  chain: EvmChain,
  cursor: string | null,
): Promise<{ cursor: string; arrivals: Arrival[] }> {
  if (!isCursor(cursor)) return { cursor: await beginning(chain), arrivals: [] }
  await chain.ready()
  const deep = await confirmedHead(chain)
  const read = BigInt(cursor.slice(0, cursor.indexOf(':')))
  const [lastRead] = await blocksAt(chain, read, read)
  if (cursorOf(lastRead!) !== cursor) throw rearranged(chain, cursor, lastRead!.hash)
  const last = read + BLOCKS_MAX < deep ? read + BLOCKS_MAX : deep
  if (last <= read) return { cursor, arrivals: [] }
  const blocks = await blocksAt(chain, read + 1n, last)
  for (const [index, block] of blocks.entries()) {
    const before = index === 0 ? cursor : cursorOf(blocks[index - 1]!)
    if (!before.endsWith(block.parentHash)) throw rearranged(chain, before, block.parentHash)
  }
  const movements = [...nativeIn(chain, blocks), ...(await tokensIn(chain, blocks))]
  return { cursor: cursorOf(blocks.at(-1)!), arrivals: await ours(db, chain, movements) }
}

/** Where reading begins: the newest block that is deep enough. There are no addresses before it is kept. */
export async function beginning(chain: EvmChain): Promise<string> {
  await chain.ready()
  const deep = await confirmedHead(chain)
  const [block] = await blocksAt(chain, deep, deep)
  return cursorOf(block!)
}

/** What was simulated before has left a cursor of another kind. */
export const isCursor = (cursor: string | null): cursor is string => cursor !== null && CURSOR.test(cursor)
const CURSOR = /^\d+:0x[0-9a-f]{64}$/
const cursorOf = ({ number, hash }: Block) => `${hexToBigInt(number)}:${hash}`

async function blocksAt({ node }: EvmChain, first: bigint, last: bigint): Promise<Block[]> {
  const numbers = Array.from({ length: Number(last - first) + 1 }, (_, index) => first + BigInt(index))
  const blocks = await node.all<Block | null>(
    numbers.map((number) => ['eth_getBlockByNumber', at(number), true] as const),
  )
  return blocks.map((block, index) => {
    if (block === null) {
      throw new Error(`the node has no block ${numbers[index]!}: it is behind, or on another chain`)
    }
    return block
  })
}

function rearranged({ network, confirmations }: EvmChain, cursor: string, now: Hex): Error {
  const [number, hash] = cursor.split(':')
  return new Error(
    `${network} has rearranged its blocks deeper than ${depthText(confirmations)}: block ${number!} was ` +
      `${hash!} when it was read, and is ${now} now`,
  )
}

function nativeIn(chain: EvmChain, blocks: Block[]): Movement[] {
  return blocks.flatMap(({ transactions }) =>
    transactions.flatMap(({ hash, from, to, value }): Movement[] => {
      if (to === null || hexToBigInt(value) === 0n) return []
      const amount = offChain(chain, chain.gasAsset, hexToBigInt(value))
      const place = { crypto_tx_hash: hash, crypto_tx_index: NATIVE_INDEX }
      return [
        {
          from: getAddress(from),
          address: getAddress(to),
          asset: chain.gasAsset,
          amount,
          ...place,
          native: true,
        },
      ]
    }),
  )
}

async function tokensIn(chain: EvmChain, blocks: Block[]): Promise<Movement[]> {
  // No address at all would be every address.
  if (chain.tokens.size === 0) return []
  const assetAt = new Map([...chain.tokens].map(([asset, { address }]) => [address, asset]))
  const logs = await chain.node.call<Log[]>('eth_getLogs', {
    fromBlock: blocks[0]!.number,
    toBlock: blocks.at(-1)!.number,
    address: [...assetAt.keys()],
    topics: [TRANSFER_TOPIC],
  })
  const hashes = new Set(blocks.map(({ hash }) => hash))
  return logs.flatMap((log): Movement[] => {
    if (!hashes.has(log.blockHash)) throw new Error('the node tells of a log in another block than it gave')
    const [, , recipient] = log.topics
    const units = hexToBigInt(log.data)
    if (recipient === undefined || units === 0n) return []
    const asset = assetAt.get(getAddress(log.address))!
    const place = { crypto_tx_hash: log.transactionHash, crypto_tx_index: logIndexOf(log) }
    return [
      {
        address: addressIn(recipient),
        asset,
        amount: offChain(chain, asset, units),
        ...place,
        native: false,
      },
    ]
  })
}

const EVM_NETWORKS = CRYPTO_NETWORKS.filter((network) => NETWORKS[network].family === 'evm')

/** Those that arrive at addresses that we have the keys to, noted for sweeping. An address is good for every network. */
async function ours(db: Database, chain: EvmChain, movements: Movement[]): Promise<Arrival[]> {
  if (movements.length === 0) return []
  const { rows } = await db.query<{ customer_id: string; address: string; top_ups: Hex[] }>(
    `
    select d.customer_id, d.address, array(
      select unnest(s.crypto_tx_hash || s.replaced)
      from evm_sweeps s
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
  const made = await succeeded(chain, arrived)
  const found = arrived.filter(({ native, crypto_tx_hash }) => !native || made.has(crypto_tx_hash))
  await db.query(
    `
    insert into evm_holdings (customer_id, network, address, asset, balance, stale_at)
    -- The statement's time: clock_timestamp() differs for each row, so that distinct would leave several of a place.
    select distinct customer_id, $4, address, asset, 0, statement_timestamp()
    from unnest($1::uuid[], $2::text[], $3::text[]) as found (customer_id, address, asset)
    on conflict (customer_id, network, address, asset) do update set stale_at = excluded.stale_at`,
    [
      found.map(({ address }) => owners.get(address)!.customer_id),
      found.map(({ address }) => address),
      found.map(({ asset }) => asset),
      chain.network,
    ],
  )
  return found.map(({ native: _, from: __, ...arrival }) => arrival)
}

/**
 * Without what the hot wallet has sent as no withdrawal that is known: gas for sweeping, which a database that was
 * restored from an older backup does not know of.
 */
async function withoutOwn(db: Database, chain: EvmChain, movements: Movement[]): Promise<Movement[]> {
  const own = movements.filter(({ from }) => from === getAddress(chain.hotWallet.address))
  if (own.length === 0) return movements
  const { rows } = await db.query<{ crypto_tx_hash: string }>(
    `
    select crypto_tx_hash from broadcasts where network = $1 and crypto_tx_hash = any ($2)
    union all
    select crypto_tx_hash from replaced_transactions where crypto_tx_hash = any ($2)`,
    [chain.network, own.map(({ crypto_tx_hash }) => crypto_tx_hash)],
  )
  const known = new Set(rows.map(({ crypto_tx_hash }) => crypto_tx_hash))
  return movements.filter((one) => !own.includes(one) || known.has(one.crypto_tx_hash))
}

/** The transactions that did what they say: one that was reverted is in its block, too. */
async function succeeded({ node }: EvmChain, movements: Movement[]): Promise<Set<string>> {
  const hashes = movements.flatMap(({ native, crypto_tx_hash }) => (native ? [crypto_tx_hash] : []))
  const receipts = await node.all<Receipt | null>(
    hashes.map((hash) => ['eth_getTransactionReceipt', hash] as const),
  )
  return new Set(
    hashes.filter((hash, index) => {
      const receipt = receipts[index]
      if (receipt === null) throw new Error(`the node has no receipt of ${hash}`)
      return hexToBigInt(receipt!.status) === 1n
    }),
  )
}
