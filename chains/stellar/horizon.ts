import { NodeFailure, NodeRefusal } from '../../src/networks/node-failure.ts'
import { WrongChain } from '../../src/networks/chain-of-mode.ts'

/**
 * Horizon's REST interface: nine requests, each with the few fields that are read. The client of `@stellar/stellar-sdk`
 * brings axios, an event source and Soroban for the same requests, so this is `fetch`.
 */

const TIMEOUT_MS = 15_000
/** The largest answer that is read: a page of 200 payments with their transactions has some 600 kB. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024
export const PAGE = 200

interface Root {
  network_passphrase: string
  history_latest_ledger: number
  history_latest_ledger_closed_at: string
}
interface NewestLedger extends Root {
  /** In seconds. */
  closedAt: bigint
  /** For how long this process has seen no newer one; undefined while it has seen one only. By no clock that can be set. */
  unchangedMs: number | undefined
}
export interface Balance {
  asset_type: string
  asset_code?: string
  asset_issuer?: string
  balance: string
  limit?: string
  buying_liabilities?: string
  selling_liabilities?: string
  is_authorized?: boolean
}
export interface StellarAccount {
  sequence: string
  subentry_count: number
  num_sponsoring?: number
  num_sponsored?: number
  balances: Balance[]
  signers: { key: string; weight: number }[]
  thresholds: { low_threshold: number; med_threshold: number }
  data: Record<string, string>
}
export interface TransactionRecord {
  hash: string
  paging_token: string
  successful: boolean
  ledger: number
  source_account: string
  fee_account: string
  fee_charged: string
  envelope_xdr: string
  result_xdr: string
  memo_type: string
  memo?: string
}
export interface OperationRecord {
  id: string
  paging_token: string
  type: string
  transaction_hash: string
  transaction_successful: boolean
  source_account: string
  asset_type?: string
  asset_code?: string
  asset_issuer?: string
  amount?: string
  from?: string
  to?: string
  to_muxed_id?: string
  account?: string
  into?: string
  into_muxed_id?: string
  transaction?: TransactionRecord
}
/** What Horizon answered with an error: `codes` are the result codes of a refused transaction. */
export class HorizonRefusal extends NodeRefusal {
  readonly status: number
  readonly codes: string
  constructor(status: number, path: string, detail: string, codes = '') {
    super(`${path.split('?')[0]}: ${status} ${detail}`)
    this.status = status
    this.codes = codes
  }
}

export interface Horizon {
  /** The answer; undefined where Horizon has no such record. Throws NodeFailure. */
  find<T>(path: string): Promise<T | undefined>
  /** The same, with the ledger that the answer is of, where Horizon names it. */
  findAt<T>(path: string): Promise<{ record: T | undefined; ledger: number | undefined }>
  records<T>(path: string): Promise<T[]>
  /** Hands a transaction over. Throws HorizonRefusal with the codes, NodeFailure when nothing answers. */
  submit(envelope: string): Promise<void>
  /** The newest ledger. Throws WrongChain where the node is of another network. */
  root(): Promise<NewestLedger>
}

/** A Horizon at this URL, of the network with this passphrase. No error contains the URL, which may contain a key. */
export function horizon(url: string, passphrase: string): Horizon {
  const base = url.replace(/\/$/, '')

  const seen = { ledger: -1, isFirst: true, at: 0 }

  async function ask(path: string, init: RequestInit = {}): Promise<{ reply: Response; body: unknown }> {
    for (let attempt = 1; ; attempt++)
      try {
        const reply = await fetch(base + path, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
        const chunks: Uint8Array[] = []
        let bytes = 0
        for await (const chunk of reply.body ?? []) {
          bytes += (chunk as Uint8Array).length
          if (bytes > ANSWER_BYTES_MAX) throw new Error('the answer is too large')
          chunks.push(chunk as Uint8Array)
        }
        return { reply, body: JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown }
      } catch (error) {
        const { cause, name } = error as Error & { cause?: { code?: string } }
        // Horizon closes a connection that was idle for five seconds, maybe as the next request is on its way.
        if (attempt === 1 && init.method === undefined && cause?.code === 'UND_ERR_SOCKET') continue
        throw new NodeFailure(`Horizon does not answer: ${cause?.code ?? name}`)
      }
  }
  const refusal = (path: string, status: number, body: unknown) => {
    const { title, detail, extras, tx_status, error_result_xdr } = Object(body) as Record<string, string>
    const codes = error_result_xdr ?? JSON.stringify(Object(extras) ?? '')
    return new HorizonRefusal(status, path, tx_status ?? title ?? detail ?? 'an error', codes)
  }
  async function findAt<T>(path: string) {
    const { reply, body } = await ask(path)
    const header = reply.headers.get('latest-ledger')
    const ledger = header === null ? undefined : Number(header)
    if (reply.status === 404) return { record: undefined, ledger }
    if (reply.status >= 500) throw new NodeFailure(`Horizon answers ${reply.status}`)
    if (!reply.ok) throw refusal(path, reply.status, body)
    return { record: body as T, ledger }
  }
  return {
    findAt,
    find: async <T>(path: string) => (await findAt<T>(path)).record,
    async records<T>(path: string) {
      const { record } = await findAt<{ _embedded: { records: T[] } }>(path)
      return record?._embedded.records ?? []
    },
    async submit(envelope) {
      const path = '/transactions_async'
      const { reply, body } = await ask(path, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ tx: envelope }).toString(),
      })
      if (reply.status === 404)
        throw new NodeFailure('Horizon has no POST /transactions_async, which 2.31 and later have')
      // 409: it has these bytes.
      if (!reply.ok && reply.status !== 409) throw refusal(path, reply.status, body)
    },
    async root() {
      const root = await this.find<Root>('/')
      if (root?.network_passphrase === undefined) throw new NodeFailure('Horizon does not name its network')
      if (root.network_passphrase !== passphrase)
        throw new WrongChain(
          `Horizon is of the network '${root.network_passphrase}', and not '${passphrase}'`,
        )
      const closedAt = BigInt(Math.floor(Date.parse(root.history_latest_ledger_closed_at) / 1000))
      const ledger = root.history_latest_ledger
      if (ledger > seen.ledger)
        Object.assign(seen, { ledger, isFirst: seen.ledger < 0, at: performance.now() })
      return { ...root, closedAt, unchangedMs: seen.isFirst ? undefined : performance.now() - seen.at }
    },
  }
}
