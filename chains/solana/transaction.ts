import { Buffer } from 'node:buffer'
import { base58 } from '@scure/base'
import type { Address } from '@solana/addresses'
import {
  appendTransactionMessageInstructions,
  compileTransaction,
  createTransactionMessage,
  decompileTransactionMessage,
  getCompiledTransactionMessageDecoder,
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
} from './instructions.ts'
import { isSignedBy, type SolanaSigner } from './keys.ts'

export interface TokenOf {
  mint: Address
  /** Token or Token-2022: the owner of the mint. */
  program: Address
  decimals: number
}

/** What one transaction pays, in units of the chain. */
export interface SolanaPayment {
  from: Address
  /** The recipient's wallet. */
  to: Address
  units: bigint
  /** Absent for SOL. */
  token?: TokenOf
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

/** Signs a payment on a durable nonce: its bytes stay valid until the nonce is used. */
export function signPayment(signer: SolanaSigner, payment: SolanaPayment, terms: Terms): SignedTransaction {
  return signOnNonce(signer, instructionsOf(payment), terms)
}

/** Signs instructions on a durable nonce of the first signer, who pays the fee. `others` sign, too. */
export function signOnNonce(
  signer: SolanaSigner,
  instructions: readonly Instruction[],
  terms: Terms,
  ...others: SolanaSigner[]
): SignedTransaction {
  const message = setTransactionMessageLifetimeUsingDurableNonce(
    {
      nonce: terms.nonce as Nonce,
      nonceAccountAddress: terms.nonceAccount,
      nonceAuthorityAddress: signer.address,
    },
    begin(signer.address),
  )
  const fees = [unitLimit(terms.unitLimit), unitPrice(terms.unitPrice)]
  return signed(
    [signer, ...others],
    compileTransaction(appendTransactionMessageInstructions([...fees, ...instructions], message)),
  )
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

/** The signature of the first signer, who pays the fee, is the transaction's hash. */
function signed(signers: readonly SolanaSigner[], compiled: Compiled): SignedTransaction {
  const message = compiled.messageBytes as unknown as Uint8Array
  const made = signers.map((signer) => [signer.address, signer.sign(message) as SignatureBytes] as const)
  const signatures = { ...compiled.signatures, ...Object.fromEntries(made) }
  return {
    raw_transaction: Buffer.from(getTransactionEncoder().encode({ ...compiled, signatures })),
    crypto_tx_hash: base58.encode(made[0]![1]),
  }
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

/** A payment of Bursar on a lane, as its bytes show it. */
export interface ParsedPayment extends Terms {
  from: Address
  /** The wallet for SOL, the account for a token. */
  target: Address
  units: bigint
  mint: Address | undefined
  program: Address
  decimals: number
  memo: string | null
  /** The wallet whose account is made, where one is. */
  madeFor: Address | undefined
}

/** Reads the bytes of a payment. Throws an Error where they are no payment of Bursar. */
export function parsePayment(raw: Uint8Array): ParsedPayment {
  const { feePayer, nonceAccount, lifetime, instructions } = parse(raw)
  if (nonceAccount === undefined) throw new Error('it uses no durable nonce')
  let [limit, price, memo]: [number, bigint, string | null] = [0, 0n, null]
  let madeFor: Address | undefined
  let payment: Pick<ParsedPayment, 'target' | 'units' | 'mint' | 'program' | 'decimals'> | undefined
  for (const { program, accounts, data } of instructions.slice(1)) {
    if (program === COMPUTE_BUDGET && data[0] === UNIT_LIMIT) limit = data.readUInt32LE(1)
    else if (program === COMPUTE_BUDGET && data[0] === UNIT_PRICE) price = data.readBigUInt64LE(1)
    else if (program === MEMO && memo === null) memo = data.toString()
    else if (program === ASSOCIATED && madeFor === undefined) madeFor = accounts[2]
    else if (payment !== undefined) throw new Error('it has more than one payment')
    else if (program === SYSTEM && data.length === 12 && data.readUInt32LE() === TRANSFER)
      payment = {
        target: accounts[1]!,
        units: data.readBigUInt64LE(4),
        mint: undefined,
        program,
        decimals: 9,
      }
    else if (data.length === 10 && data[0] === TRANSFER_CHECKED)
      payment = {
        target: accounts[2]!,
        units: data.readBigUInt64LE(1),
        mint: accounts[1]!,
        program,
        decimals: data[9]!,
      }
    else throw new Error('it has an instruction that is no part of a payment')
  }
  if (payment === undefined) throw new Error('it has no payment')
  return {
    from: feePayer,
    nonceAccount,
    nonce: lifetime,
    unitLimit: limit,
    unitPrice: price,
    ...payment,
    memo,
    madeFor,
  }
}

/** Signs the same payment on the same nonce at another price: at most one of the two can ever be made. */
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

/** The payment in these bytes; undefined where they are none of Bursar: those of a simulated network are JSON. */
export function paymentIn(raw: Uint8Array): ParsedPayment | undefined {
  try {
    return parsePayment(raw)
  } catch {
    return undefined
  }
}
