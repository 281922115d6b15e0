import { parse } from 'lossless-json'
import { NodeFailure, NodeRefusal } from '../../src/networks/node-failure.ts'

/** The address of a node, and the credentials for its wallet. */
export interface BitcoinRpcConfig {
  rpcUrl: string
  rpcUser: string
  rpcPassword: string
  /** The name of the wallet; not needed where the node has one only. */
  wallet?: string | undefined
}

export class RpcError extends NodeRefusal {
  readonly method: string
  readonly code: number
  /** The node's own message. */
  readonly reason: string

  constructor(method: string, code: number, reason: string) {
    super(`${method}: ${reason} (${code})`)
    this.name = 'RpcError'
    this.method = method
    this.code = code
    this.reason = reason
  }
}

/** The node does not answer, or answers with something else than JSON-RPC. The node may have done the work all the same. */
export class NodeUnreachable extends NodeFailure {
  constructor(host: string, why: string) {
    super(`the node at ${host} ${why}`)
    this.name = 'NodeUnreachable'
  }
}

/** A method's name and its parameters. Amounts among them are strings. */
export type RpcCall = readonly [method: string, ...params: unknown[]]

/** Calls to a node of the Bitcoin Core family. Every number in a reply is a string, as the node wrote it. */
export interface BitcoinRpc {
  /** Throws RpcError when the node refuses, NodeUnreachable when it does not answer. */
  call<T>(...call: RpcCall): Promise<T>
  /** Many calls in few requests: a result or an error for each, in their order. Throws NodeUnreachable. */
  batch<T>(calls: readonly RpcCall[]): Promise<(T | RpcError)[]>
}

// Listing a year of transactions takes seconds. Only a node in trouble takes this long.
const TIMEOUT_MS = 30_000
/** The largest reply that is read. A list of 100,000 transactions is some 60 MB. */
const REPLY_BYTES_MAX = 128 * 1024 * 1024
const BATCH_MAX = 100

interface Reply {
  id: string | null
  result: unknown
  error: { code: string; message: string } | null
}

/** A client of a node's JSON-RPC, over HTTP with a user and password. No error contains either. */
export function bitcoinRpc({ rpcUrl, rpcUser, rpcPassword, wallet }: BitcoinRpcConfig): BitcoinRpc {
  const authorization = `Basic ${Buffer.from(`${rpcUser}:${rpcPassword}`).toString('base64')}`
  return jsonRpc(rpcUrl, wallet, { authorization })
}

/** The same client for a node without user and password, which wants the version of the protocol in each call. */
export const plainRpc = (rpcUrl: string): BitcoinRpc => jsonRpc(rpcUrl, undefined, {}, { jsonrpc: '2.0' })

function jsonRpc(
  rpcUrl: string,
  wallet: string | undefined,
  headers: object,
  version: object = {},
): BitcoinRpc {
  const url = urlOf(rpcUrl)
  if (wallet !== undefined)
    url.pathname = `${url.pathname.replace(/\/$/, '')}/wallet/${encodeURIComponent(wallet)}`
  const unreachable = (why: string) => new NodeUnreachable(url.host, why)

  async function post(body: unknown, calls: readonly RpcCall[]): Promise<unknown> {
    let status: number, text: string
    try {
      const reply = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      status = reply.status
      text = await textOf(reply)
    } catch (error) {
      if (error instanceof TooLarge) throw unreachable(error.message)
      throw unreachable(`does not answer: ${causeOf(error)}`)
    }
    if (status === 401) throw unreachable('refuses this user and password')
    const methods = [...new Set(calls.map(([method]) => method))].join(', ')
    if (status === 403) throw unreachable(`does not let this user or address call all of ${methods} (403)`)
    try {
      // The node writes amounts as JSON numbers. Kept as strings, they stay exact.
      return parse(text, undefined, (number) => number)
    } catch {
      throw unreachable(`answers ${status}, and not in JSON`)
    }
  }

  function resultOf(reply: Reply | undefined, method: string): unknown {
    if (reply?.error) return new RpcError(method, Number(reply.error.code), reply.error.message)
    if (reply?.result === undefined) throw unreachable(`gives no reply to ${method}`)
    return reply.result
  }

  return {
    async call<T>(...[method, ...params]: RpcCall): Promise<T> {
      const result = resultOf(
        (await post({ ...version, id: 0, method, params }, [[method, ...params]])) as Reply,
        method,
      )
      if (result instanceof RpcError) throw result
      return result as T
    },
    async batch<T>(calls: readonly RpcCall[]): Promise<(T | RpcError)[]> {
      const results: unknown[] = []
      for (let start = 0; start < calls.length; start += BATCH_MAX) {
        const batch = calls.slice(start, start + BATCH_MAX)
        const body = batch.map(([method, ...params], id) => ({ ...version, id, method, params }))
        const replies = await post(body, batch)
        if (!Array.isArray(replies)) throw unreachable('gives one reply to many calls')
        const byId = new Map((replies as Reply[]).map((reply) => [reply.id, reply]))
        results.push(...batch.map(([method], id) => resultOf(byId.get(String(id)), method)))
      }
      return results as (T | RpcError)[]
    },
  }
}

class TooLarge extends Error {}

/** The text of a reply. Stops reading, and throws TooLarge, once it is larger than that. */
async function textOf(reply: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of reply.body ?? []) {
    bytes += (chunk as Uint8Array).length
    if (bytes > REPLY_BYTES_MAX) throw new TooLarge(`answers with more than ${REPLY_BYTES_MAX} bytes`)
    chunks.push(chunk as Uint8Array)
  }
  return Buffer.concat(chunks).toString('utf8')
}

function urlOf(rpcUrl: string): URL {
  const url = URL.canParse(rpcUrl) ? new URL(rpcUrl) : undefined
  // The URL is not shown: a password in it would get into the log.
  if (url === undefined || url.username !== '' || url.password !== '')
    throw new Error('the RPC URL must be a URL without a user and password in it')
  return url
}

/** The message of a failed `fetch` is only 'fetch failed': the cause says why. */
function causeOf(error: unknown): string {
  const { name, message, cause } = error as Error & { cause?: { code?: string; message?: string } }
  return cause?.code ?? cause?.message ?? (name === 'TimeoutError' ? `${TIMEOUT_MS} ms have passed` : message)
}
