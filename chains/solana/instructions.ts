import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import {
  address,
  getAddressDecoder,
  getAddressEncoder,
  isOffCurveAddress,
  type Address,
} from '@solana/addresses'
import { AccountRole, getU32Encoder, getU64Encoder, type Instruction } from '@solana/kit'

/**
 * The few instructions that payments take, as their programs define them. The clients of the programs have hundreds more.
 */

export const SYSTEM = address('11111111111111111111111111111111')
export const TOKEN = address('TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA')
export const TOKEN_2022 = address('TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb')
export const ASSOCIATED = address('ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL')
export const MEMO = address('MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr')
export const COMPUTE_BUDGET = address('ComputeBudget111111111111111111111111111111')
const RECENT_BLOCKHASHES = address('SysvarRecentB1ockHashes11111111111111111111')
const RENT = address('SysvarRent111111111111111111111111111111111')

const bytesOf = (account: Address): Buffer => Buffer.from(getAddressEncoder().encode(account))
const u32 = (value: number) => getU32Encoder().encode(value) as Uint8Array
const u64 = (value: bigint) => getU64Encoder().encode(value) as Uint8Array

/** The numbers of the instructions, as their data begins. */
export const TRANSFER = 2
export const ADVANCE_NONCE = 4
export const TRANSFER_CHECKED = 12
export const UNIT_LIMIT = 2
export const UNIT_PRICE = 3
const CREATE_WITH_SEED = 3
const INITIALIZE_NONCE = 6
export const CREATE_IDEMPOTENT = 1

const writable = (account: Address) => ({ address: account, role: AccountRole.WRITABLE }) as const
const readonly = (account: Address) => ({ address: account, role: AccountRole.READONLY }) as const
const signer = (account: Address) => ({ address: account, role: AccountRole.READONLY_SIGNER }) as const
const payer = (account: Address) => ({ address: account, role: AccountRole.WRITABLE_SIGNER }) as const

/** Moves lamports between accounts of the system program. */
export const transferSol = (from: Address, to: Address, lamports: bigint): Instruction => ({
  programAddress: SYSTEM,
  accounts: [payer(from), writable(to)],
  data: Buffer.concat([u32(TRANSFER), u64(lamports)]),
})

/** A transfer between token accounts. It fails unless mint and decimals are these. */
export const transferChecked = (
  program: Address,
  { source, mint, target, owner }: { source: Address; mint: Address; target: Address; owner: Address },
  units: bigint,
  decimals: number,
): Instruction => ({
  programAddress: program,
  accounts: [writable(source), readonly(mint), writable(target), signer(owner)],
  data: Buffer.concat([Buffer.of(TRANSFER_CHECKED), u64(units), Buffer.of(decimals)]),
})

/** Makes a wallet's account for a token, unless it is there. */
export const createAssociated = (
  program: Address,
  { payer: pays, account, owner, mint }: { payer: Address; account: Address; owner: Address; mint: Address },
): Instruction => ({
  programAddress: ASSOCIATED,
  accounts: [
    payer(pays),
    writable(account),
    readonly(owner),
    readonly(mint),
    readonly(SYSTEM),
    readonly(program),
  ],
  data: Buffer.of(CREATE_IDEMPOTENT),
})

export const memoOf = (text: string): Instruction => ({
  programAddress: MEMO,
  accounts: [],
  data: Buffer.from(text),
})

export const unitLimit = (units: number): Instruction => ({
  programAddress: COMPUTE_BUDGET,
  data: Buffer.concat([Buffer.of(UNIT_LIMIT), u32(units)]),
})

/** In millionths of a lamport for each compute unit. */
export const unitPrice = (price: bigint): Instruction => ({
  programAddress: COMPUTE_BUDGET,
  data: Buffer.concat([Buffer.of(UNIT_PRICE), u64(price)]),
})

export const NONCE_BYTES = 80

/** Makes the nonce account of a wallet at an address that the wallet and the seed give. Fails where it is there already. */
export const makeNonceAccount = (
  wallet: Address,
  account: Address,
  seed: string,
  lamports: bigint,
): Instruction[] => [
  {
    programAddress: SYSTEM,
    accounts: [payer(wallet), writable(account)],
    data: Buffer.concat([
      u32(CREATE_WITH_SEED),
      bytesOf(wallet),
      u64(BigInt(seed.length)),
      Buffer.from(seed),
      u64(lamports),
      u64(BigInt(NONCE_BYTES)),
      bytesOf(SYSTEM),
    ]),
  },
  {
    programAddress: SYSTEM,
    accounts: [writable(account), readonly(RECENT_BLOCKHASHES), readonly(RENT)],
    data: Buffer.concat([u32(INITIALIZE_NONCE), bytesOf(wallet)]),
  },
]

/** The seed of an account that is made with one, and its rent, in the data of the instruction; undefined in any other's. */
export function seedAndRentIn(data: Buffer | undefined): { seed: string; lamports: bigint } | undefined {
  if (data === undefined || data.length < 44 || data.readUInt32LE() !== CREATE_WITH_SEED) return undefined
  const end = 44 + Number(data.readBigUInt64LE(36))
  return end + 8 > data.length
    ? undefined
    : { seed: data.subarray(44, end).toString(), lamports: data.readBigUInt64LE(end) }
}

const sha256 = (...parts: Uint8Array[]) => createHash('sha256').update(Buffer.concat(parts)).digest()
const decode = (bytes: Uint8Array): Address => getAddressDecoder().decode(bytes)

/** The address that a wallet makes with a seed, for an account of the system program. */
export const addressWithSeed = (wallet: Address, seed: string): Address =>
  decode(sha256(bytesOf(wallet), Buffer.from(seed), bytesOf(SYSTEM)))

/** The associated token account of a wallet: the first of 256 candidates that is off the curve. */
export function associatedOf(wallet: Address, mint: Address, program: Address): Address {
  for (let bump = 255; bump >= 0; bump--) {
    const seeds = [bytesOf(wallet), bytesOf(program), bytesOf(mint), Buffer.of(bump)]
    const candidate = decode(sha256(...seeds, bytesOf(ASSOCIATED), Buffer.from('ProgramDerivedAddress')))
    if (isOffCurveAddress(candidate)) return candidate
  }
  throw new Error(`${wallet} has no associated account of ${mint}`)
}
