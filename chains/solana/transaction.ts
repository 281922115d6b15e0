import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { base58 } from '@scure/base'
import type { Address } from '@solana/addresses'
import {
  appendTransactionMessageInstructions,
  compileTransaction,
  createTransactionMessage,
  decompileTransactionMessage,
  getCompiledTransactionMessageDecoder,
  getCompiledTransactionMessageEncoder,
  getTransactionDecoder,
  getTransactionEncoder,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  setTransactionMessageLifetimeUsingDurableNonce,
  type Blockhash,
  type Instruction,
  type Nonce,
  type SignatureBytes,
} from '@solana/kit'
import type { SignedTransaction } from '../../src/networks/network.ts'
import {
  ADVANCE_NONCE,
  ASSOCIATED,
  associatedOf,
  COMPUTE_BUDGET,
  createAssociated,
  MEMO,
  memoOf,
  SYSTEM,
  TRANSFER,
  TRANSFER_CHECKED,
  transferChecked,
  transferSol,
  UNIT_LIMIT,
  UNIT_PRICE,
  unitLimit,
  unitPrice,
  addressWithSeed,
  makeNonceAccount,
  seedAndRentIn,
  CREATE_IDEMPOTENT,
} from './instructions.ts'
import { isTokenProgram } from './accounts.ts'
import { isSignedBy, type SolanaSigner } from './keys.ts'

export interface TokenOf {
  mint: Address
  /** Token or Token-2022: the owner of the mint. */
  program: Address
  decimals: number
}

/** One of the payments of a transaction, in units of the chain. */
export interface SolanaPayment {
  from: Address
  /** The recipient's wallet. */
  to: Address
  units: bigint
  /** Absent for SOL. */
  token?: TokenOf | undefined
  memo: string | null
  /** The recipient's account of the token is made first, and the sender pays its rent. */
  makesAccount?: boolean
}

/** The fee that a transaction offers, and the lane that it takes. */
export interface Terms {
  unitPrice: bigint
  unitLimit: number
  nonceAccount: Address
  nonce: string
}

/** The instructions of a payment, without those about nonce and fee. */
export function instructionsOf({ from, to, units, token, memo, makesAccount }: SolanaPayment): Instruction[] {
  const memos = memo === null ? [] : [memoOf(memo)]
  if (token === undefined) return [...memos, transferSol(from, to, units)]
  const { mint, program, decimals } = token
  const account = associatedOf(to, mint, program)
  const source = associatedOf(from, mint, program)
  return [
    ...(makesAccount ? [createAssociated(program, { payer: from, account, owner: to, mint })] : []),
    // Directly before the transfer, where a recipient's account that requires a memo looks for it.
    ...memos,
    transferChecked(program, { source, mint, target: account, owner: from }, units, decimals),
  ]
}

const begin = (feePayer: Address) => {
  const message = createTransactionMessage({ version: 'legacy' })
  return setTransactionMessageFeePayer(feePayer, message)
}

/** The account that a payment goes to: the wallet for SOL, its account for a token. */
export const targetOf = ({ to, token }: Pick<SolanaPayment, 'to' | 'token'>): Address =>
  token === undefined ? to : associatedOf(to, token.mint, token.program)

/** Signs payments on a durable nonce: the bytes stay valid until the nonce is used. */
export const signPayments = (
  signer: SolanaSigner,
  payments: readonly SolanaPayment[],
  terms: Terms,
): SignedTransaction => signOnNonce(signer, payments.flatMap(instructionsOf), terms)

/** The most bytes of a transaction: one packet of the network. */
const BYTES_MAX = 1_232

/** Whether these payments fit into one transaction on a nonce account. */
export function fitTogether(payments: readonly SolanaPayment[]): boolean {
  const wallet = payments[0]!.from
  const lane = { nonceAccount: MEMO, nonce: MEMO, unitLimit: 0, unitPrice: 0n }
  const compiled = compileOnNonce(wallet, payments.flatMap(instructionsOf), lane)
  return getTransactionEncoder().encode(compiled).length <= BYTES_MAX
}

/** Signs instructions on a durable nonce of the first signer, who pays the fee. `others` sign, too. */
export function signOnNonce(
  signer: SolanaSigner,
  instructions: readonly Instruction[],
  terms: Terms,
  ...others: SolanaSigner[]
): SignedTransaction {
  return signed([signer, ...others], compileOnNonce(signer.address, instructions, terms))
}

function compileOnNonce(wallet: Address, instructions: readonly Instruction[], terms: Terms) {
  const message = setTransactionMessageLifetimeUsingDurableNonce(
    {
      nonce: terms.nonce as Nonce,
      nonceAccountAddress: terms.nonceAccount,
      nonceAuthorityAddress: wallet,
    },
    begin(wallet),
  )
  const fees = [unitLimit(terms.unitLimit), unitPrice(terms.unitPrice)]
  return compileTransaction(appendTransactionMessageInstructions([...fees, ...instructions], message))
}

/** Signs instructions with a lifetime of some 150 blocks. */
export const signBriefly = (
  signer: SolanaSigner,
  instructions: readonly Instruction[],
  blockhash: string,
): SignedTransaction => signed([signer], compileBriefly(signer.address, instructions, blockhash))

const compileBriefly = (feePayer: Address, instructions: readonly Instruction[], blockhash: string) => {
  const lifetime = { blockhash: blockhash as Blockhash, lastValidBlockHeight: 0n }
  const message = setTransactionMessageLifetimeUsingBlockhash(lifetime, begin(feePayer))
  return compileTransaction(appendTransactionMessageInstructions(instructions, message))
}

/** The unsigned bytes of instructions without a nonce, to simulate them. */
export const trialOf = (feePayer: Address, instructions: readonly Instruction[]): string =>
  Buffer.from(getTransactionEncoder().encode(compileBriefly(feePayer, instructions, SYSTEM))).toString(
    'base64',
  )

type Compiled = ReturnType<typeof compileTransaction>

/**
 * The signature of the first signer, who pays the fee, is the transaction's hash. What a signer process is to sign has no
 * signature yet, and is named by the hash of its message.
 */
function signed(signers: readonly SolanaSigner[], compiled: Compiled): SignedTransaction {
  const message = compiled.messageBytes as unknown as Uint8Array
  if (signers.some(({ isRemote }) => isRemote))
    return {
      raw_transaction: Buffer.from(getTransactionEncoder().encode(compiled)),
      crypto_tx_hash: base58.encode(createHash('sha512').update(message).digest()),
      isAsked: true,
    }
  const made = signers.map((signer) => [signer.address, signer.sign(message) as SignatureBytes] as const)
  const signatures = { ...compiled.signatures, ...Object.fromEntries(made) }
  return {
    raw_transaction: Buffer.from(getTransactionEncoder().encode({ ...compiled, signatures })),
    crypto_tx_hash: base58.encode(made[0]![1]),
  }
}

/** The message in a transaction's bytes. Throws an Error where it is not written as Bursar writes it. */
export function messageOf(raw: Uint8Array): Buffer {
  const message = Buffer.from(getTransactionDecoder().decode(raw).messageBytes)
  const read = getCompiledTransactionMessageDecoder().decode(message)
  const isPlain =
    read.version === 'legacy' &&
    message.equals(Buffer.from(getCompiledTransactionMessageEncoder().encode(read)))
  if (!isPlain) throw new Error('its message is not written as Bursar writes it')
  return message
}

/** The transaction with the signature of one of its signers. Throws an Error where it is none of them. */
export function addSignature(raw: Uint8Array, signer: SolanaSigner): Buffer {
  const transaction = getTransactionDecoder().decode(raw)
  if (!(signer.address in transaction.signatures)) throw new Error(`${signer.address} does not sign it`)
  const signature = signer.sign(messageOf(raw)) as SignatureBytes
  const signatures = { ...transaction.signatures, [signer.address]: signature }
  return Buffer.from(getTransactionEncoder().encode({ ...transaction, signatures }))
}

/** The rent that a wallet pays for an account of its own for a nonce; undefined where the bytes do anything else. */
export function rentOfMadeAccount(raw: Uint8Array, wallet: Address, account: Address): bigint | undefined {
  const { instructions, signers } = parse(raw)
  const made = seedAndRentIn(instructions[0]?.data)
  if (made === undefined || signers.length > 1) return undefined
  const wanted = compileBriefly(wallet, makeNonceAccount(wallet, account, made.seed, made.lamports), SYSTEM)
  const same = parse(Buffer.from(getTransactionEncoder().encode(wanted)))
  const isMade = isDeepStrictEqual([same.accounts, same.instructions], [parse(raw).accounts, instructions])
  return isMade && addressWithSeed(wallet, made.seed) === account ? made.lamports : undefined
}

/** One instruction of a transaction, with its accounts named. */
interface Parsed {
  program: Address
  accounts: Address[]
  data: Buffer
}

export interface ParsedTransaction {
  hash: string
  feePayer: Address
  /** The fee payer's key has signed these bytes. */
  isSigned: boolean
  /** The value of the durable nonce, or a block's hash. */
  lifetime: string
  /** The nonce account, where the first instruction uses one up. */
  nonceAccount: Address | undefined
  /** All accounts that the message itself names, the fee payer first. */
  accounts: Address[]
  signers: Address[]
  instructions: Parsed[]
}

/** Reads the bytes of a transaction. Throws an Error where they are none. */
export function parse(raw: Uint8Array): ParsedTransaction {
  const { messageBytes, signatures } = getTransactionDecoder().decode(raw)
  const message = getCompiledTransactionMessageDecoder().decode(messageBytes)
  if (message.version !== 'legacy' && message.version !== 0) throw new Error('a version that is not known')
  const accounts = [...message.staticAccounts]
  const [feePayer] = accounts
  const signature = signatures[feePayer!]
  const instructions = message.instructions.map(({ programAddressIndex, accountIndices, data }) => ({
    program: accounts[programAddressIndex]!,
    // An account of a look-up table has no name here. None of Bursar's transactions has one.
    accounts: (accountIndices ?? []).map((index) => accounts[index] ?? SYSTEM),
    data: Buffer.from(data ?? []),
  }))
  const [first] = instructions
  const usesNonce =
    first?.program === SYSTEM && first.data.length === 4 && first.data.readUInt32LE() === ADVANCE_NONCE
  return {
    hash: base58.encode((signature as Uint8Array | null | undefined) ?? new Uint8Array()),
    feePayer: feePayer!,
    isSigned:
      signature !== null &&
      signature !== undefined &&
      isSignedBy(feePayer!, messageBytes as unknown as Uint8Array, signature),
    lifetime: message.lifetimeToken,
    nonceAccount: usesNonce ? first.accounts[0] : undefined,
    accounts,
    signers: accounts.slice(0, message.header.numSignerAccounts),
    instructions,
  }
}

/** Reads the bytes that a node shows for a hash. Throws an Error where they are not signed as it. */
export function parseSigned(raw: Uint8Array, hash: string): ParsedTransaction {
  const shown = parse(raw)
  if (shown.hash !== hash || !shown.isSigned)
    throw new Error(`the node's answer for ${hash} is not signed as ${hash}`)
  return shown
}

/** One of the payments of a transaction, as its bytes show it. */
export interface ParsedTransfer {
  /** The wallet for SOL, the account for a token. */
  target: Address
  /** The place of the target among the transaction's accounts: no two payments of a transaction have the same. */
  index: string
  units: bigint
  mint: Address | undefined
  program: Address
  decimals: number
  memo: string | null
  /** The wallet whose account is made, where one is. */
  madeFor: Address | undefined
  /** The first and the last of its instructions, by their places. */
  instructions: readonly [first: number, last: number]
}

/** A transaction of Bursar on a lane, as its bytes show it. */
export interface ParsedPayment extends Terms {
  from: Address
  transfers: ParsedTransfer[]
}

const isCreation = (data: Buffer) => data.length === 1 && data[0] === CREATE_IDEMPOTENT

/** Reads the bytes of payments. Throws an Error where they are no payments of Bursar. */
export function parsePayment(raw: Uint8Array): ParsedPayment {
  const { feePayer, nonceAccount, lifetime, instructions, accounts: all } = parse(raw)
  if (nonceAccount === undefined) throw new Error('it uses no durable nonce')
  const terms = { nonceAccount, nonce: lifetime, unitLimit: 0, unitPrice: 0n }
  const transfers: ParsedTransfer[] = []
  let before: { memo: string | null; madeFor: Address | undefined } = { memo: null, madeFor: undefined }
  let first = 1
  for (const [place, { program, accounts, data }] of instructions.entries()) {
    const add = (target: Address, paid: Pick<ParsedTransfer, 'units' | 'mint' | 'decimals'>) => {
      const index = String(all.indexOf(target))
      transfers.push({ ...paid, target, index, program, ...before, instructions: [first, place] })
      before = { memo: null, madeFor: undefined }
      first = place + 1
    }
    if (place === 0) continue
    if (program === COMPUTE_BUDGET && data[0] === UNIT_LIMIT) terms.unitLimit = data.readUInt32LE(1)
    else if (program === COMPUTE_BUDGET && data[0] === UNIT_PRICE) terms.unitPrice = data.readBigUInt64LE(1)
    else if (program === MEMO && before.memo === null) before.memo = data.toString()
    else if (program === ASSOCIATED && isCreation(data) && before.madeFor === undefined)
      before.madeFor = accounts[2]
    else if (program === SYSTEM && data.length === 12 && data.readUInt32LE() === TRANSFER)
      add(accounts[1]!, { units: data.readBigUInt64LE(4), mint: undefined, decimals: 9 })
    else if (isTokenProgram(program) && data.length === 10 && data[0] === TRANSFER_CHECKED)
      add(accounts[2]!, { units: data.readBigUInt64LE(1), mint: accounts[1]!, decimals: data[9]! })
    else throw new Error('it has an instruction that is no part of a payment')
  }
  if (transfers.length === 0 || before.memo !== null || before.madeFor !== undefined)
    throw new Error('it has no payment, or a part of one')
  if (new Set(transfers.map(({ target }) => target)).size < transfers.length)
    throw new Error('it has more than one payment to an account')
  return { ...terms, from: feePayer, transfers }
}

/**
 * Whether bytes are what Bursar writes for their payments of an owner, and nothing more: an account that a program is called with
 * beside its own, a program that makes an account or a limit that is left out can cost all that their signers have.
 */
export function isPlain(
  raw: Uint8Array,
  owner: Address,
  { from, transfers, ...terms }: ParsedPayment,
): boolean {
  const written = transfers.flatMap(({ target, units, mint, program, decimals, memo, madeFor }) => [
    ...(mint && madeFor
      ? [createAssociated(program, { payer: from, account: target, owner: madeFor, mint })]
      : []),
    ...(memo === null ? [] : [memoOf(memo)]),
    mint === undefined
      ? transferSol(owner, target, units)
      : transferChecked(
          program,
          { source: associatedOf(owner, mint, program), mint, target, owner },
          units,
          decimals,
        ),
  ])
  return messageOf(raw).equals(Buffer.from(compileOnNonce(from, written, terms).messageBytes))
}

/** Signs the same payments on the same nonce at another price: at most one of the two can ever be made. */
export function signAgain(signer: SolanaSigner, raw: Uint8Array, unitPriceNow: bigint): SignedTransaction {
  const { messageBytes } = getTransactionDecoder().decode(raw)
  const { instructions } = decompileTransactionMessage(
    getCompiledTransactionMessageDecoder().decode(messageBytes),
  )
  // Those about nonce and fee are made anew.
  const payment = instructions.slice(1).filter(({ programAddress }) => programAddress !== COMPUTE_BUDGET)
  return signOnNonce(signer, payment, { ...parsePayment(raw), unitPrice: unitPriceNow })
}

export const SIGNATURE_FEE = 5_000n
const PRICE_UNITS = 1_000_000n

/** The most that a transaction with one signature costs, in lamports, without rent. */
export const feeOf = ({
  unitPrice: price,
  unitLimit: limit,
}: Pick<Terms, 'unitPrice' | 'unitLimit'>): bigint =>
  SIGNATURE_FEE + (price * BigInt(limit) + PRICE_UNITS - 1n) / PRICE_UNITS

/** The highest price of a compute unit with which a transaction costs this many lamports at most. */
export const priceWithin = (lamports: bigint, limit: number): bigint =>
  ((lamports - SIGNATURE_FEE) * PRICE_UNITS) / BigInt(limit)

/** The payments in these bytes; undefined where they are none of Bursar: those of a simulated network are JSON. */
export function paymentIn(raw: Uint8Array): ParsedPayment | undefined {
  try {
    return parsePayment(raw)
  } catch {
    return undefined
  }
}
