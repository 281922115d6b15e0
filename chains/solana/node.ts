import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { base58 } from '@scure/base'
import type { Address } from '@solana/addresses'
import { RpcError, type BitcoinRpc } from '../kit/json-rpc.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'

/** A node's JSON-RPC. Every number in a reply is a string, as the node wrote it: lamports stay exact. */
export type SolanaRpc = BitcoinRpc

/** How the network judged a transaction: null for success; else what failed, by its name, or an instruction with its error. */
export type TransactionError =
  | null
  | string
  | { [name: string]: unknown; InstructionError?: [index: string, error: string | { Custom?: string }] }

/**
 * What failed, by its name. Of an instruction also its index, and the number where its program gave one; of an account its place
 * in the transaction.
 */
export function failureIn(err: NonNullable<TransactionError>): {
  name: string
  index?: number
  code?: string
  account?: number
} {
  if (typeof err === 'string') return { name: err }
  if (err.InstructionError === undefined) {
    const [[name, what] = ['unknown']] = Object.entries(err)
    const place = (what as { account_index?: string } | undefined)?.account_index
    return { name, ...(place !== undefined && { account: Number(place) }) }
  }
  const [index, error] = err.InstructionError
  return typeof error === 'string'
    ? { name: error, index: Number(index) }
    : {
        name: 'Custom',
        index: Number(index),
        ...(error.Custom !== undefined && { code: String(error.Custom) }),
      }
}

export interface SignatureStatus {
  slot: string
  err: TransactionError
  confirmationStatus: 'processed' | 'confirmed' | 'finalized' | null
}

const STATUSES_MAX = 256

/** The standing of each signature, also of old ones; null where the node does not know it. */
export async function statusesOf(
  rpc: SolanaRpc,
  signatures: readonly string[],
): Promise<Map<string, SignatureStatus | null>> {
  const found = new Map<string, SignatureStatus | null>()
  const asked = [...new Set(signatures)]
  for (let start = 0; start < asked.length; start += STATUSES_MAX) {
    const wanted = asked.slice(start, start + STATUSES_MAX)
    const { value } = await rpc.call<{ value: (SignatureStatus | null)[] }>('getSignatureStatuses', wanted, {
      searchTransactionHistory: true,
    })
    for (const [index, signature] of wanted.entries()) found.set(signature, value[index] ?? null)
  }
  return found
}

/** The balances of a transaction's accounts before and after it. */
interface Changes {
  slot: string
  err: TransactionError
  before: string[]
  after: string[]
  tokensBefore: TokenBalance[]
  tokensAfter: TokenBalance[]
}

export interface MadeTransaction extends Changes {
  raw: Buffer
  fee: bigint
  /** The accounts of look-up tables, which come after those that its bytes name. */
  loaded: string[]
}

interface TokenBalance {
  accountIndex: string
  mint: string
  /** The wallet of the account. */
  owner?: string
  uiTokenAmount: { amount: string }
}

/** A transaction as the node shows it, alone or in a block. */
interface ShownTransaction {
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
}

const SHOWN = { commitment: 'finalized', encoding: 'base64', maxSupportedTransactionVersion: 0 }

/** The finalized transaction with this signature; undefined where the node does not show one. */
export async function madeTransaction(
  rpc: SolanaRpc,
  signature: string,
): Promise<MadeTransaction | undefined> {
  const found = await rpc.call<FoundTransaction>('getTransaction', signature, SHOWN)
  return found === null ? undefined : madeIn(found, found.slot)
}

type FoundTransaction = (ShownTransaction & { slot: string }) | null

/** The finalized transactions with these signatures, in few requests; undefined from the first on that the node does not show. */
export async function madeTransactions(
  rpc: SolanaRpc,
  signatures: readonly string[],
): Promise<(MadeTransaction | undefined)[]> {
  const found = await rpc.batch<FoundTransaction>(
    signatures.map((signature) => ['getTransaction', signature, SHOWN]),
  )
  return found.map((shown) =>
    shown === null || shown instanceof RpcError ? undefined : madeIn(shown, shown.slot),
  )
}

/**
 * By slot, the value that a nonce account has after a transaction of that slot has used it: it follows from the hash of the block
 * before, and an account's moves once in a slot. A slot is absent where the node does not have its block.
 */
export async function noncesLeftIn(
  rpc: SolanaRpc,
  slots: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const asked = [...new Set(slots)]
  if (asked.length === 0) return new Map()
  const options = { ...SHOWN, transactionDetails: 'none', rewards: false }
  const blocks = await rpc.batch<{ previousBlockhash: string } | null>(
    asked.map((slot) => ['getBlock', Number(slot), options]),
  )
  return new Map(
    blocks.flatMap((block, index) =>
      block === null || block instanceof RpcError
        ? []
        : [[asked[index]!, durableNonceOf(block.previousBlockhash)] as const],
    ),
  )
}

const durableNonceOf = (blockhash: string): string =>
  base58.encode(createHash('sha256').update('DURABLE_NONCE').update(base58.decode(blockhash)).digest())

function madeIn({ transaction, meta }: ShownTransaction, slot: string): MadeTransaction | undefined {
  if (meta === null) return undefined
  return {
    ...changesIn(meta, slot),
    raw: Buffer.from(transaction[0], 'base64'),
    fee: BigInt(meta.fee),
    loaded: [...(meta.loadedAddresses?.writable ?? []), ...(meta.loadedAddresses?.readonly ?? [])],
  }
}

const changesIn = (meta: NonNullable<ShownTransaction['meta']>, slot: string): Changes => ({
  ...{ slot, err: meta.err, before: meta.preBalances, after: meta.postBalances },
  tokensBefore: meta.preTokenBalances ?? [],
  tokensAfter: meta.postTokenBalances ?? [],
})

/** The finalized slots among these that have a block. */
export const finalizedSlots = (rpc: SolanaRpc, first: bigint, last: bigint): Promise<string[]> =>
  rpc.call<string[]>('getBlocks', Number(first), Number(last), { commitment: 'finalized' })

/** The changes of a transaction, with its accounts. */
export interface Balances extends Changes {
  hash: string
  /** Those of look-up tables last. */
  accounts: Address[]
  signers: Address[]
}

/** A finalized block, with the balances that its transactions have changed. */
export interface Block {
  slot: string
  parentSlot: string
  transactions: Balances[]
}

/** A transaction of a block, without its instructions: a block has thousands. */
interface ListedTransaction extends Pick<ShownTransaction, 'meta'> {
  transaction: { signatures: string[]; accountKeys: { pubkey: Address; signer: boolean }[] }
}

/** The block of a finalized slot. Throws a NodeFailure where the node does not have all of it. */
export async function blockAt(rpc: SolanaRpc, slot: string): Promise<Block> {
  const block = await rpc.call<{ parentSlot: string; transactions: ListedTransaction[] } | null>(
    'getBlock',
    Number(slot),
    { ...SHOWN, transactionDetails: 'accounts', rewards: false },
  )
  const lacking = new NodeFailure(`the node of SOLANA does not have all of slot ${slot}`)
  if (block === null) throw lacking
  const transactions = block.transactions.map(({ transaction: { signatures, accountKeys }, meta }) => {
    if (meta === null || signatures[0] === undefined) throw lacking
    return {
      ...changesIn(meta, slot),
      hash: signatures[0],
      accounts: accountKeys.map(({ pubkey }) => pubkey),
      signers: accountKeys.flatMap(({ pubkey, signer }) => (signer ? pubkey : [])),
    }
  })
  return { slot, parentSlot: block.parentSlot, transactions }
}

/** Blocks that are read at a time: each may be some megabytes. */
const BLOCKS_AT_ONCE = 4

/** The next finalized blocks after a slot, each after its parent. Throws a NodeFailure where the node lacks the next one. */
export async function* blocksAfter(rpc: SolanaRpc, slot: bigint, most: number): AsyncGenerator<Block> {
  const slots = await rpc.call<string[]>('getBlocksWithLimit', Number(slot) + 1, most, {
    commitment: 'finalized',
  })
  let before = String(slot)
  for (let start = 0; start < slots.length; start += BLOCKS_AT_ONCE) {
    const asked = slots.slice(start, start + BLOCKS_AT_ONCE).map((next) => blockAt(rpc, next))
    for (const answer of asked) answer.catch(() => undefined)
    for (const answer of asked) {
      const block = await answer
      if (block.parentSlot !== before)
        throw new NodeFailure(
          `the node of SOLANA leaves out blocks: it lists slot ${block.slot} after ${before}, and its block follows ${block.parentSlot}`,
        )
      yield block
      before = block.slot
    }
  }
}

/** How a transaction changed accounts: lamports, and units of tokens by the address of the account. */
export function changesOf(made: MadeTransaction, named: readonly Address[]) {
  const accounts = [...named, ...(made.loaded as Address[])]
  const lamports = new Map(
    accounts.map((address, index) => [
      address,
      BigInt(made.after[index] ?? 0) - BigInt(made.before[index] ?? 0),
    ]),
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

export interface TouchingSignature {
  signature: string
  err: TransactionError
}

const SIGNATURES_MAX = 1_000

/**
 * The finalized signatures that touched an account after `until`, the newest first; undefined where there are more than
 * `pages` thousand. A node may give fewer than were asked for: only an empty page is the last one.
 */
export async function signaturesOf(
  rpc: SolanaRpc,
  account: Address,
  until: string | null,
  pages: number,
): Promise<TouchingSignature[] | undefined> {
  const found: TouchingSignature[] = []
  for (let page = 0; page < pages; page++) {
    const before = found.at(-1)?.signature
    const signatures = await rpc.call<TouchingSignature[]>('getSignaturesForAddress', account, {
      commitment: 'finalized',
      limit: SIGNATURES_MAX,
      ...(until !== null && { until }),
      ...(before !== undefined && { before }),
    })
    found.push(...signatures)
    if (signatures.length === 0) return found
  }
  return undefined
}
