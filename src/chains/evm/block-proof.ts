import type { Hex, RpcTransaction } from 'viem'
import {
  concatHex,
  formatTransaction,
  hexToBigInt,
  keccak256,
  numberToHex,
  serializeTransaction,
  toRlp,
} from 'viem/utils'
import { at, NodeError, type EvmNode, type Receipt } from './node.ts'

/**
 * The block's own proof of a receipt. The block's hash is that of its header, and the header contains the roots of its
 * transactions and receipts. A node cannot falsify a single field: it would have to make up the whole block, and each
 * block after it.
 */

/** A receipt with the fields that go into the block's receipts root. */
type BlockReceipt = Receipt & { type: Hex; cumulativeGasUsed: Hex; logsBloom: Hex }

type Header = Partial<Record<(typeof HEADER)[number][0], Hex>>
type ProvenBlock = Header & { hash: Hex; transactions: RpcTransaction[] }

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

/** Why the block of a receipt does not prove that it contains the transaction with this status; undefined where it does. */
export async function objectionOfBlock(node: EvmNode, receipt: Receipt): Promise<string | undefined> {
  const { transactionHash, blockHash, blockNumber, status } = receipt
  const number = at(hexToBigInt(blockNumber))
  const [block, receipts] = await node.each<unknown>([
    ['eth_getBlockByNumber', number, true],
    ['eth_getBlockReceipts', number],
  ])
  for (const answer of [block, receipts])
    if (answer instanceof NodeError) return `the node does not give its block: ${answer.message}`
  if (block === null || receipts === null) return 'the node does not give its block'
  const { transactions, ...header } = block as ProvenBlock
  const all = receipts as BlockReceipt[]
  try {
    if (header.hash !== blockHash || blockHashOf(header) !== blockHash)
      return `the header of block ${number} does not hash to ${blockHash}`
    if (header.transactionsRoot !== trieRoot(transactions.map(signedBytesOf)))
      return `the transactions of block ${number} are not those of its header`
    if (header.receiptsRoot !== trieRoot(all.map(encoded)))
      return `the receipts of block ${number} are not those of its header`
  } catch (error) {
    return `block ${number} cannot be checked: ${(error as Error).message.split('\n')[0]}`
  }
  const index = transactions.findIndex(({ hash }) => hash === transactionHash)
  const isIts = index >= 0 && keccak256(signedBytesOf(transactions[index]!)) === transactionHash
  return isIts && all[index]!.status === status
    ? undefined
    : `block ${number} does not contain it with status ${status}`
}

/** The signed bytes of a transaction in a node's answer. Throws an Error for a type that only some chains have. */
export function signedBytesOf(found: RpcTransaction): Hex {
  const { input: data, ...transaction } = formatTransaction(found)
  return serializeTransaction({ ...transaction, data }, transaction)
}

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
