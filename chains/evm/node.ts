import type { Hex } from 'viem'
import { getHttpRpcClient, hexToBigInt, hexToNumber, numberToHex } from 'viem/utils'
import { NodeFailure, NodeRefusal } from '../../src/networks/node-failure.ts'

/** Most calls in one HTTP request: common providers accept as many. */
const BATCH_MAX = 50
const TIMEOUT_MS = 15_000
const REPLY_BYTES_MAX = 64 * 1024 * 1024

/** The error that the node answered instead of a result. */
export class NodeError extends NodeRefusal {
  readonly code: number

  constructor(method: string, { code, message }: { code: number; message: string }) {
    super(`${method}: ${message}`)
    this.code = code
  }
}

/**
 * When a block is confirmed: at a number of confirmations (1 is the newest block), or once the network itself calls it
 * `safe` or `finalized`, as proof-of-stake networks and rollups do.
 */
export type Finality = bigint | 'safe' | 'finalized'

export type Call = readonly [method: string, ...params: unknown[]]

export interface Block {
  number: Hex
  hash: Hex
  parentHash: Hex
  baseFeePerGas?: Hex
  logsBloom?: Hex
  transactions: { hash: Hex; from: Hex; to: Hex | null; value: Hex }[]
}

export interface EventLog {
  address: Hex
  topics: Hex[]
  data: Hex
  logIndex: Hex
  blockHash: Hex
  transactionHash: Hex
}

export interface Receipt {
  status: Hex
  from: Hex
  blockNumber: Hex
  blockHash: Hex
  transactionHash: Hex
  gasUsed: Hex
  effectiveGasPrice: Hex
  /** The fee for publishing to another chain (the OP stack), in addition to the gas. */
  l1Fee?: Hex | null
  logs: EventLog[]
}

/** A node, by JSON-RPC over HTTP. */
export interface EvmNode {
  /** Throws NodeError when the node refuses the call, NodeFailure when it does not answer. */
  call<T>(...call: Call): Promise<T>
  /** Answers in the order of the calls. Throws NodeFailure where one is missing, NodeError where the node refuses all. */
  each<T>(calls: readonly Call[]): Promise<(T | NodeError)[]>
  /** The same, and throws the first refusal. */
  all<T>(calls: readonly Call[]): Promise<T[]>
}

interface Answer {
  id?: unknown
  result?: unknown
  error?: { code: number; message: string }
}

/** The node at this URL. No error contains the URL, which may contain a provider's key. */
export function evmNode(rpcUrl: string): EvmNode {
  const client = getHttpRpcClient(rpcUrl, { timeout: TIMEOUT_MS, maxResponseBodySize: REPLY_BYTES_MAX })

  async function request(calls: readonly Call[]): Promise<unknown[]> {
    const body = calls.map(([method, ...params], id) => ({ jsonrpc: '2.0' as const, id, method, params }))
    let reply: unknown
    try {
      reply = await client.request({ body })
    } catch (error) {
      const { status, name } = error as { status?: number; name: string }
      throw new NodeFailure(`the node does not answer: ${status === undefined ? name : `HTTP ${status}`}`)
    }
    if (!Array.isArray(reply)) {
      const refusal = (reply as Answer | undefined)?.error
      throw refusal === undefined
        ? new NodeFailure('the node does not answer with JSON-RPC')
        : new NodeError('batch', refusal)
    }
    const byId = new Map((reply as Answer[]).map((answer) => [answer.id, answer]))
    return calls.map(([method], id) => {
      const answer = byId.get(id)
      if (answer === undefined) throw new NodeFailure(`the node does not answer ${method}`)
      return answer.error === undefined ? answer.result : new NodeError(method, answer.error)
    })
  }

  async function each<T>(calls: readonly Call[]): Promise<(T | NodeError)[]> {
    const answers: unknown[] = []
    for (let start = 0; start < calls.length; start += BATCH_MAX) {
      answers.push(...(await request(calls.slice(start, start + BATCH_MAX))))
    }
    return answers as (T | NodeError)[]
  }

  async function answersOf<T>(calls: readonly Call[]): Promise<T[]> {
    const answers = await each<T>(calls)
    for (const answer of answers) if (answer instanceof NodeError) throw answer
    return answers as T[]
  }

  return { each, all: answersOf, call: async <T>(...call: Call) => (await answersOf<T>([call]))[0]! }
}

/** Whether the answer to eth_syncing says so. Some providers do not have this method, and route around lagging nodes. */
export const isSyncing = (answer: unknown): boolean =>
  typeof answer === 'object' && !(answer instanceof NodeError)

/** The number of the newest block. */
export const headOf = async (node: EvmNode): Promise<bigint> =>
  hexToBigInt(await node.call<Hex>('eth_blockNumber'))

/** The receipts of transactions by their hashes; null where the node has none. */
export const receiptsOf = (node: EvmNode, hashes: readonly string[]): Promise<(Receipt | null)[]> =>
  node.all(hashes.map((hash) => ['eth_getTransactionReceipt', hash]))

/** How many transactions addresses have sent up to a block: the next nonce of each. */
export async function countsAt(
  node: EvmNode,
  addresses: readonly Hex[],
  block: bigint | 'latest',
): Promise<number[]> {
  const tag = block === 'latest' ? block : at(block)
  const counts = await node.all<Hex>(addresses.map((address) => ['eth_getTransactionCount', address, tag]))
  return counts.map((count) => hexToNumber(count))
}

/** The same of one address. */
export const countAt = async (node: EvmNode, address: Hex, block: bigint | 'latest'): Promise<number> =>
  (await countsAt(node, [address], block))[0]!

/** A block number as JSON-RPC takes it. */
export const at = (block: bigint): Hex => numberToHex(block)

/** Error messages of nodes, each in its own words: geth and its forks, reth, erigon, nethermind, anvil. */
const SAID = {
  /** The node has these bytes. */
  known: /already known|already imported|already in (?:the )?(?:mem|tx)?pool|known transaction|alreadyknown/i,
  /** The offered fee is too low for now, or too little above the fee of the transaction it would replace. */
  feeTooLow: /underpriced|(?:max fee per gas|fee ?cap|gas price)[^.]*(?:less than|below|too low)|feetoolow/i,
  /** The contract refuses or aborts: an unknown instruction, an invalid jump, a stack overflow or underflow. */
  reverted:
    /revert|invalid ?(?:fe)?opcode|opcode ?not ?found|(?:invalid|bad) ?jump|stack ?(?:under|over)flow/i,
  /** The call takes more gas than it was given. */
  outOfGas: /out ?of ?gas|gas (?:required|spent) exceed/i,
} as const

/** Whether a node's error has this meaning. */
export const says = (error: NodeError, what: keyof typeof SAID): boolean => SAID[what].test(error.message)
