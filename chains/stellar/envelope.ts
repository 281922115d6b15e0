import { createHmac } from 'node:crypto'
import {
  Account,
  Asset,
  BASE_FEE,
  extractBaseAddress,
  FeeBumpTransaction,
  Keypair,
  Memo,
  MuxedAccount,
  Operation,
  StrKey,
  type Transaction,
  TransactionBuilder,
} from '@stellar/stellar-base'
import { stellarMemo } from '../../src/contract/addresses/destination-rules.ts'
import type { SignedTransaction } from '../../src/networks/network.ts'

/**
 * Transactions. Each has up to 100 payments of the hot wallet, is numbered by a lane and wrapped in a fee bump that the hot wallet
 * pays. The hash is that of the inner transaction, which stays the same whoever signs and wraps it: only one of its wrappings can
 * be made.
 */

export interface StellarPayment {
  destination: string
  /** `native`, or `CODE:ISSUER`. */
  asset: string
  /** A decimal string. */
  amount: string
  /** The destination does not exist yet. */
  creates: boolean
}
/** A number for a transaction: the account that gives it, and which. */
export interface Place {
  lane: string
  sequence: bigint
}
/** What a transaction pays, and until when it can be made. */
export interface StellarTransaction extends Place {
  /** In seconds: no ledger that closes later has it. */
  maxTime: bigint
  /** Of all payments: one with a memo is alone. */
  memo: string | undefined
  payments: StellarPayment[]
}

const keyOfAsset = (asset: Asset) => asset.toString()
const assetOf = (key: string): Asset => {
  const [code, issuer] = key.split(':')
  return issuer === undefined ? Asset.native() : new Asset(code!, issuer)
}

/** The lanes beside the hot wallet itself: keys that follow from its seed, so that there is no second secret to keep. */
export const laneKeys = (hotWallet: Keypair, count: number): Keypair[] =>
  Array.from({ length: count }, (_, index) =>
    Keypair.fromRawEd25519Seed(
      createHmac('sha256', hotWallet.rawSecretKey())
        .update(`bursar channel ${index + 1}`)
        .digest(),
    ),
  )

const memoOf = (memo: string): Memo => {
  const said = stellarMemo(memo)
  if (said === undefined) throw new Error(`the memo ${memo} is of no kind`)
  return Memo[said.kind](said.value)
}
/** The reverse. Text that reads as another kind is none that was asked for: it is marked as text, so that it differs. */
const saidBy = ({ type, value }: Memo): string | undefined => {
  if (type === 'none') return undefined
  if (type !== 'text') return `${type}:${Buffer.isBuffer(value) ? value.toString('hex') : String(value)}`
  const text = String(value)
  return ['id', 'hash'].includes(stellarMemo(text)?.kind ?? '') ? `text:${text}` : text
}

/** From which account it pays, the most that one operation costs, in stroops, and on which network. */
interface Terms {
  source: string
  fee: bigint
  passphrase: string
}

/** Writes payments from an account, and signs them. Without keys, they are what a signer process is to sign. */
export function writePayments(
  { lane, sequence, maxTime, memo, payments }: StellarTransaction,
  { source, fee, passphrase }: Terms,
  keys?: { signer: Keypair; laneKey: Keypair | undefined },
): SignedTransaction {
  const builder = new TransactionBuilder(new Account(lane, String(sequence - 1n)), {
    fee: BASE_FEE,
    networkPassphrase: passphrase,
    timebounds: { minTime: 0, maxTime: String(maxTime) },
    ...(memo !== undefined && { memo: memoOf(memo) }),
  })
  for (const { destination, asset, amount, creates } of payments)
    builder.addOperation(
      creates
        ? Operation.createAccount({ source, destination, startingBalance: amount })
        : Operation.payment({ source, destination, asset: assetOf(asset), amount }),
    )
  const inner = builder.build()
  if (keys !== undefined) inner.sign(...(keys.laneKey === undefined ? [] : [keys.laneKey]), keys.signer)
  const bump = TransactionBuilder.buildFeeBumpTransaction(source, String(fee), inner, passphrase)
  if (keys !== undefined) bump.sign(keys.signer)
  return {
    raw_transaction: bump.toEnvelope().toXDR(),
    crypto_tx_hash: inner.hash().toString('hex'),
    ...(keys === undefined && { isAsked: true }),
  }
}

/** The fee bump of our own bytes. Throws an Error for others. */
export function bumpIn(raw: Buffer, passphrase: string): FeeBumpTransaction {
  const parsed = TransactionBuilder.fromXDR(raw.toString('base64'), passphrase)
  if (!(parsed instanceof FeeBumpTransaction)) throw new Error('it is no fee bump')
  return parsed
}

export function innerOf(envelope: string, passphrase: string): Transaction {
  const parsed = TransactionBuilder.fromXDR(envelope, passphrase)
  return parsed instanceof FeeBumpTransaction ? parsed.innerTransaction : parsed
}

let last: { raw: Buffer; parsed: StellarTransaction } | undefined

/** What a transaction pays. Throws where it has an operation that is no payment. */
export function paymentsIn(raw: Buffer): StellarTransaction {
  // A hundred withdrawals have the same bytes, which take milliseconds to read.
  if (last?.raw.equals(raw) !== true) last = { raw, parsed: parse(raw) }
  return last.parsed
}

function parse(raw: Buffer): StellarTransaction {
  // The passphrase changes hashes only.
  const inner = innerOf(raw.toString('base64'), '')
  return {
    lane: extractBaseAddress(inner.source),
    sequence: BigInt(inner.sequence),
    maxTime: BigInt(inner.timeBounds!.maxTime),
    memo: saidBy(inner.memo),
    payments: inner.operations.map((operation): StellarPayment => {
      const { type } = operation
      if (type === 'createAccount') {
        const { destination, startingBalance: amount } = operation
        return { destination, asset: 'native', amount, creates: true }
      }
      if (type !== 'payment') throw new Error(`it is no payment but ${type}`)
      const { destination, asset, amount } = operation
      return { destination, asset: keyOfAsset(asset), amount, creates: false }
    }),
  }
}

/** Whether bytes are an envelope of a fee bump. Those of a simulated network are JSON. */
export const isOurs = (raw: Buffer): boolean => raw.length > 4 && raw.readUInt32BE(0) === 5

/** The account of an address, and the number in a muxed one. */
export function accountIn(address: string): { account: string; id: string | undefined } {
  if (!StrKey.isValidMed25519PublicKey(address)) return { account: address, id: undefined }
  return { account: extractBaseAddress(address), id: MuxedAccount.fromAddress(address, '0').id() }
}

export const muxed = (account: string, id: string): string =>
  new MuxedAccount(new Account(account, '0'), id).accountId()
