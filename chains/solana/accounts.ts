import { Buffer } from 'node:buffer'
import { base58 } from '@scure/base'
import type { Address } from '@solana/addresses'
import type { SolanaRpc } from './node.ts'
import { NONCE_BYTES, SYSTEM, TOKEN, TOKEN_2022 } from './instructions.ts'

/** Accounts as the node has them at the newest finalized slot, decoded. */

export interface Account {
  lamports: bigint
  owner: Address
  executable: boolean
  /** The first bytes of its data: enough for tokens with their extensions. */
  data: Buffer
}

export interface Accounts {
  /** The lowest slot of the answers. Up to 100 accounts are of one. */
  slot: bigint
  get(address: Address): Account | undefined
}

const ACCOUNTS_MAX = 100
/** A token's account with all extensions has some 700 bytes, a mint with text in it more: its extensions end before. */
const DATA_BYTES_MAX = 1_024

interface Reply {
  context: { slot: string }
  value: ({ lamports: string; owner: string; executable: boolean; data: [string, string] } | null)[]
}

/**
 * Reads accounts. Throws a NodeFailure where the node does not answer.
 */
export async function readAccounts(rpc: SolanaRpc, addresses: readonly Address[]): Promise<Accounts> {
  const wanted = [...new Set(addresses)]
  const found = new Map<Address, Account>()
  let lowest: bigint | undefined
  for (let start = 0; start < wanted.length; start += ACCOUNTS_MAX) {
    const addresses = wanted.slice(start, start + ACCOUNTS_MAX)
    const options = {
      commitment: 'finalized',
      encoding: 'base64',
      dataSlice: { offset: 0, length: DATA_BYTES_MAX },
    }
    const { context, value } = await rpc.call<Reply>('getMultipleAccounts', addresses, options)
    const slot = BigInt(context.slot)
    if (lowest === undefined || slot < lowest) lowest = slot
    for (const [index, read] of value.entries()) {
      const address = addresses[index]!
      if (read === null) continue
      found.set(address, {
        lamports: BigInt(read.lamports),
        owner: read.owner as Address,
        executable: read.executable,
        data: Buffer.from(read.data[0], 'base64'),
      })
    }
  }
  return { slot: lowest ?? 0n, get: (address) => found.get(address) }
}

const addressAt = (data: Buffer, offset: number) =>
  base58.encode(data.subarray(offset, offset + 32)) as Address

/** The value of a nonce account of this wallet; undefined where it is none. */
export function nonceOf(account: Account | undefined, wallet: Address): string | undefined {
  if (account?.owner !== SYSTEM || account.data.length !== NONCE_BYTES) return undefined
  // Its version and state (1: initialized), then the authority and the value.
  const isInitialized = account.data.readUInt32LE(4) === 1
  return isInitialized && addressAt(account.data, 8) === wallet ? addressAt(account.data, 40) : undefined
}

/** The wallet and the value of its nonce account that a transaction uses up. */
export interface NonceUse {
  from: Address
  nonceAccount: Address
  nonce: string
}

/** Whether a nonce has moved. While it has its value, or the node shows no account, what was signed on it may be made yet. */
export function hasMoved(accounts: Accounts, { from, nonceAccount, nonce }: NonceUse): boolean {
  const value = nonceOf(accounts.get(nonceAccount), from)
  return value !== undefined && value !== nonce
}

/** Reads whether a nonce has moved. */
export const readHasMoved = async (rpc: SolanaRpc, use: NonceUse): Promise<boolean> =>
  hasMoved(await readAccounts(rpc, [use.nonceAccount]), use)

export const isTokenProgram = (program: Address): boolean => program === TOKEN || program === TOKEN_2022

const ACCOUNT_BYTES = 165
const MINT_BYTES = 82

/** A token account; undefined where an account is none. */
export function tokenAccountOf(account: Account | undefined) {
  if (account === undefined || !isTokenProgram(account.owner) || account.data.length < ACCOUNT_BYTES)
    return undefined
  const { data } = account
  // Longer data says what it is: 2 for a token account, 1 for a mint.
  if (data.length > ACCOUNT_BYTES && data[ACCOUNT_BYTES] !== 2) return undefined
  return {
    mint: addressAt(data, 0),
    owner: addressAt(data, 32),
    units: data.readBigUInt64LE(64),
    isFrozen: data[108] === 2,
    requiresMemo: extensionOf(data, MEMO_TRANSFER)?.[0] === 1,
  }
}

const TRANSFER_FEE = 1
const MEMO_TRANSFER = 8
const TRANSFER_HOOK = 14

/** A token's mint; undefined where an account is none. */
export function mintOf(account: Account | undefined) {
  if (account === undefined || !isTokenProgram(account.owner)) return undefined
  const { data } = account
  const isMint =
    data.length === MINT_BYTES ||
    (account.owner === TOKEN_2022 && data.length > ACCOUNT_BYTES && data[165] === 1)
  if (!isMint) return undefined
  const fee = extensionOf(data, TRANSFER_FEE)
  const hook = extensionOf(data, TRANSFER_HOOK)
  return {
    program: account.owner,
    decimals: data[44]!,
    /** A part of each transfer stays behind, now or from a later epoch on: basis points of the older and the newer rule. */
    takesFee: fee !== undefined && (fee.readUInt16LE(88) > 0 || fee.readUInt16LE(106) > 0),
    /** A program that each transfer calls, with accounts of its own. */
    hasHook: hook !== undefined && hook.subarray(32, 64).some((byte) => byte !== 0),
  }
}

/** The value of an extension of Token-2022: type and length of two bytes each stand before it. */
function extensionOf(data: Buffer, wanted: number): Buffer | undefined {
  for (let offset = ACCOUNT_BYTES + 1; offset + 4 <= data.length;) {
    const [type, length] = [data.readUInt16LE(offset), data.readUInt16LE(offset + 2)]
    if (type === 0) return undefined
    if (type === wanted) return data.subarray(offset + 4, offset + 4 + length)
    offset += 4 + length
  }
  return undefined
}
