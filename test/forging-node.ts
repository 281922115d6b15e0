import type { Hex } from 'viem'
import { concatHex, hexToBigInt, keccak256, numberToHex, toRlp } from 'viem/utils'
import { at, type EvmNode, type Receipt } from '../chains/evm/node.ts'
import type { Answer, Call } from './lying-node.ts'

/** A receipt with the fields that go into the block's receipts root. */
type BlockReceipt = Receipt & { type: Hex; cumulativeGasUsed: Hex; logsBloom: Hex }

type Header = Partial<Record<(typeof HEADER)[number][0], Hex>>
type Transaction = { hash: Hex; from: Hex; blockHash: Hex }
type ForgedBlock = Header & { hash: Hex; number: Hex; transactions: Transaction[] }

/**
 * The lie of a node that makes up the blocks with a wallet's payments, and each block after them: the payments are reverted, and
 * receipts root, hash and parent hash of every block are right. Since the merge that costs no work.
 */
export function forgery(node: EvmNode, wallet: Hex) {
  const blocks: { forged: ForgedBlock; receipts: BlockReceipt[] }[] = []
  async function forgedAt(number: number) {
    for (let next = blocks.length; next <= number; next++) {
      const [block, receipts] = await node.all<unknown>([
        ['eth_getBlockByNumber', at(BigInt(next)), true],
        ['eth_getBlockReceipts', at(BigInt(next))],
      ])
      const real = block as ForgedBlock
      const isPayment = (hash: Hex) =>
        real.transactions.some((one) => one.hash === hash && one.from.toLowerCase() === wallet.toLowerCase())
      const told = (receipts as BlockReceipt[]).map((one) =>
        isPayment(one.transactionHash) ? { ...one, status: '0x0' as const } : one,
      )
      const { parentHash } = real
      const forged = {
        ...real,
        parentHash: blocks.at(-1)?.forged.hash ?? parentHash!,
        receiptsRoot: trieRoot(told.map(encoded)),
      }
      const hash = blockHashOf(forged)
      const transactions = real.transactions.map((one) => ({ ...one, blockHash: hash }))
      const all = told.map((one) => ({ ...one, blockHash: hash }))
      blocks.push({ forged: { ...forged, hash, transactions }, receipts: all })
    }
    return blocks[number]!
  }
  return async ({ method, params }: Call, { result }: Answer): Promise<Answer | undefined> => {
    if (result === null) return undefined
    if (method === 'eth_getBlockByNumber') {
      const { forged } = await forgedAt(Number((result as ForgedBlock).number))
      const hashes = forged.transactions.map(({ hash }) => hash)
      return { result: params[1] === true ? forged : { ...forged, transactions: hashes } }
    }
    if (method === 'eth_getBlockReceipts')
      return { result: (await forgedAt(Number(hexToBigInt(params[0] as Hex)))).receipts }
    const { blockNumber } = Object(result) as { blockNumber?: Hex | null }
    if (!method.startsWith('eth_getTransaction') || !blockNumber) return undefined
    const { forged, receipts } = await forgedAt(Number(blockNumber))
    return {
      result:
        method === 'eth_getTransactionReceipt'
          ? receipts.find(({ transactionHash }) => transactionHash === params[0])
          : forged.transactions.find(({ hash }) => hash === params[0]),
    }
  }
}

/** The header's fields in order. Those from baseFeePerGas on came with upgrades, and older blocks lack them. */
const HEADER = [
  ['parentHash', 'BYTES'],
  ['sha3Uncles', 'BYTES'],
  ['miner', 'BYTES'],
  ['stateRoot', 'BYTES'],
  ['transactionsRoot', 'BYTES'],
  ['receiptsRoot', 'BYTES'],
  ['logsBloom', 'BYTES'],
  ['difficulty', 'NUMBER'],
  ['number', 'NUMBER'],
  ['gasLimit', 'NUMBER'],
  ['gasUsed', 'NUMBER'],
  ['timestamp', 'NUMBER'],
  ['extraData', 'BYTES'],
  ['mixHash', 'BYTES'],
  ['nonce', 'BYTES'],
  ['baseFeePerGas', 'NUMBER'],
  ['withdrawalsRoot', 'BYTES'],
  ['blobGasUsed', 'NUMBER'],
  ['excessBlobGas', 'NUMBER'],
  ['parentBeaconBlockRoot', 'BYTES'],
  ['requestsHash', 'BYTES'],
] as const

function blockHashOf(header: Header): Hex {
  const values = HEADER.flatMap(([name, kind]) => {
    const value = header[name]
    if (value === undefined || value === null) return []
    return [kind === 'NUMBER' ? quantity(value) : value]
  })
  return keccak256(toRlp(values))
}

function encoded({ type, status, cumulativeGasUsed, logsBloom, logs }: BlockReceipt): Hex {
  const fields = toRlp([
    quantity(status),
    quantity(cumulativeGasUsed),
    logsBloom,
    logs.map(({ address, topics, data }) => [address, topics, data]),
  ])
  return hexToBigInt(type) === 0n ? fields : concatHex([numberToHex(hexToBigInt(type), { size: 1 }), fields])
}

/** A number as RLP has it: without leading zeros, and nothing for 0. */
function quantity(value: Hex | bigint): Hex {
  const digits = BigInt(value).toString(16)
  if (digits === '0') return '0x'
  return `0x${digits.length % 2 === 0 ? '' : '0'}${digits}`
}

// ---------------------------------------------------------------------------------------------- the trie

type Node = Hex | Node[]
/** The nibbles that are left of a key, and the key's value. */
type TrieEntry = [path: string, value: Hex]

/** The root of the Merkle Patricia trie of a list: each value's key is its index. */
function trieRoot(values: readonly Hex[]): Hex {
  const entries = values.map((value, index): TrieEntry => [toRlp(quantity(BigInt(index))).slice(2), value])
  return keccak256(toRlp(entries.length === 0 ? '0x' : nodeOf(entries)))
}

function nodeOf(entries: TrieEntry[]): Node[] {
  const [[first, value]] = entries as [TrieEntry]
  if (entries.length === 1) return [compact(first, 'LEAF'), value]
  let shared = 0
  while (entries.every(([path]) => path.length > shared && path[shared] === first[shared])) shared++
  const rest = (some: TrieEntry[], from: number) =>
    some.map(([path, its]): TrieEntry => [path.slice(from), its])
  if (shared > 0)
    return [compact(first.slice(0, shared), 'EXTENSION'), reference(nodeOf(rest(entries, shared)))]
  const children = Array.from({ length: 16 }, (_, nibble): Node => {
    const below = entries.filter(([path]) => path[0] === nibble.toString(16))
    return below.length === 0 ? '0x' : reference(nodeOf(rest(below, 1)))
  })
  return [...children, entries.find(([path]) => path === '')?.[1] ?? '0x']
}

/** A node as its parent has it: the node itself where it encodes to fewer than 32 bytes, else its hash. */
function reference(node: Node[]): Node {
  const bytes = toRlp(node)
  return bytes.length < 2 + 2 * 32 ? node : keccak256(bytes)
}

/** A path in hex-prefix encoding: a nibble for the kind and whether the path is odd, and a zero nibble where it is even. */
function compact(path: string, kind: 'LEAF' | 'EXTENSION'): Hex {
  const flag = (kind === 'LEAF' ? 2 : 0) + (path.length % 2)
  return `0x${flag}${path.length % 2 === 0 ? '0' : ''}${path}`
}
