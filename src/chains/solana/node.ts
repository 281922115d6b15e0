import { Buffer } from 'node:buffer'
import type { Address } from '@solana/addresses'
import type { BitcoinRpc } from '../bitcoin/rpc.ts'

/** A node's JSON-RPC. Every number in a reply is a string, as the node wrote it: lamports stay exact. */
export type SolanaRpc = BitcoinRpc

/** How the network judged a transaction: null for success. */
export type TransactionError = unknown

/** A signature's standing. */
export interface SignatureStatus {
  slot: string
  err: TransactionError
  confirmationStatus: 'processed' | 'confirmed' | 'finalized' | null
}

/** Most signatures in one call. */
const STATUSES_MAX = 256

/** The standing of each signature, also of old ones; null where the node does not know it. */
export async function statusesOf(
  rpc: SolanaRpc,
  signatures: readonly string[],
): Promise<Map<string, SignatureStatus | null>> {
  const found = new Map<string, SignatureStatus | null>()
  for (let start = 0; start < signatures.length; start += STATUSES_MAX) {
    const some = signatures.slice(start, start + STATUSES_MAX)
    const { value } = await rpc.call<{ value: (SignatureStatus | null)[] }>('getSignatureStatuses', some, {
      searchTransactionHistory: true,
    })
    for (const [index, signature] of some.entries()) found.set(signature, value[index] ?? null)
  }
  return found
}

/** A finalized transaction, with what it did. */
export interface MadeTransaction {
  raw: Buffer
  slot: string
  err: TransactionError
  fee: bigint
  /** The accounts of `before` and `after`, those of look-up tables last. */
  loaded: string[]
  before: string[]
  after: string[]
  tokensBefore: TokenBalance[]
  tokensAfter: TokenBalance[]
}

interface TokenBalance {
  accountIndex: string
  mint: string
  uiTokenAmount: { amount: string }
}

/** The finalized transaction with this signature; undefined where the node does not show one. */
export async function madeTransaction(
  rpc: SolanaRpc,
  signature: string,
): Promise<MadeTransaction | undefined> {
  const found = await rpc.call<{
    slot: string
    transaction: [string, string]
    meta: {
      err: TransactionError
      fee: string
      preBalances: string[]
      postBalances: string[]
      preTokenBalances?: TokenBalance[] | null
      postTokenBalances?: TokenBalance[] | null
      loadedAddresses?: { writable: string[]; readonly: string[] } | null
    } | null
  } | null>('getTransaction', signature, {
    commitment: 'finalized',
    encoding: 'base64',
    maxSupportedTransactionVersion: 0,
  })
  if (found?.meta == null) return undefined
  const { meta } = found
  return {
    raw: Buffer.from(found.transaction[0], 'base64'),
    slot: found.slot,
    err: meta.err,
    fee: BigInt(meta.fee),
    loaded: [...(meta.loadedAddresses?.writable ?? []), ...(meta.loadedAddresses?.readonly ?? [])],
    before: meta.preBalances,
    after: meta.postBalances,
    tokensBefore: meta.preTokenBalances ?? [],
    tokensAfter: meta.postTokenBalances ?? [],
  }
}

/** How a transaction changed accounts: lamports, and units of tokens by the address of the account. */
export function changesOf(made: MadeTransaction, named: readonly Address[]) {
  const accounts = [...named, ...(made.loaded as Address[])]
  const lamports = new Map(
    accounts.map((one, index) => [one, BigInt(made.after[index] ?? 0) - BigInt(made.before[index] ?? 0)]),
  )
  const tokens = new Map<Address, bigint>()
  for (const [balances, sign] of [
    [made.tokensBefore, -1n],
    [made.tokensAfter, 1n],
  ] as const)
    for (const { accountIndex, uiTokenAmount } of balances) {
      const account = accounts[Number(accountIndex)]
      if (account !== undefined)
        tokens.set(account, (tokens.get(account) ?? 0n) + sign * BigInt(uiTokenAmount.amount))
    }
  return { lamports, tokens }
}

/** A signature that touched an account. */
export interface TouchingSignature {
  signature: string
  err: TransactionError
}

const SIGNATURES_MAX = 1_000

/**
 * The finalized signatures that touched an account after `until`, the newest first; undefined where there are more than
 * `pages` thousand.
 */
export async function signaturesOf(
  rpc: SolanaRpc,
  account: Address,
  until: string | null,
  pages: number,
): Promise<TouchingSignature[] | undefined> {
  const found: TouchingSignature[] = []
  for (let page = 0; page < pages; page++) {
    const last = found.at(-1)
    const some = await rpc.call<TouchingSignature[]>('getSignaturesForAddress', account, {
      commitment: 'finalized',
      limit: SIGNATURES_MAX,
      ...(until !== null && { until }),
      ...(last !== undefined && { before: last.signature }),
    })
    found.push(...some)
    if (some.length < SIGNATURES_MAX) return found
  }
  return undefined
}
