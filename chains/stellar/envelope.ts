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
 * Signed payments. Each is one payment of the hot wallet, numbered by a lane and wrapped in a fee bump that the hot wallet
 * pays. The hash is that of the inner transaction, which stays the same whoever wraps it: only one of its wrappings can be
 * made.
 */

/** What signed bytes pay, and until when they can be made. */
export interface StellarPayment {
  /** The account that gives the sequence number. */
  lane: string
  sequence: bigint
  /** In seconds: no ledger that closes later has it. */
  maxTime: bigint
  destination: string
  /** `native`, or `CODE:ISSUER`. */
  asset: string
  /** A decimal string. */
  amount: string
  memo: string | undefined
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

/** Signs a payment. `feeMax` is the most that its one operation costs, in stroops. */
export function signPayment(
  { lane, sequence, maxTime, destination, asset, amount, memo }: StellarPayment,
  {
    hotWallet,
    laneKey,
    passphrase,
    creates,
    feeMax,
  }: {
    hotWallet: Keypair
    laneKey: Keypair
    passphrase: string
    /** The destination does not exist yet. */
    creates: boolean
    feeMax: bigint
  },
): SignedTransaction {
  const source = hotWallet.publicKey()
  const inner = new TransactionBuilder(new Account(lane, String(sequence - 1n)), {
    fee: BASE_FEE,
    networkPassphrase: passphrase,
    timebounds: { minTime: 0, maxTime: String(maxTime) },
    ...(memo !== undefined && { memo: memoOf(memo) }),
  })
    .addOperation(
      creates
        ? Operation.createAccount({ source, destination, startingBalance: amount })
        : Operation.payment({ source, destination, asset: assetOf(asset), amount }),
    )
    .build()
  inner.sign(...(lane === source ? [hotWallet] : [laneKey, hotWallet]))
  const bump = TransactionBuilder.buildFeeBumpTransaction(hotWallet, String(feeMax), inner, passphrase)
  bump.sign(hotWallet)
  return {
    raw_transaction: bump.toEnvelope().toXDR(),
    crypto_tx_hash: inner.hash().toString('hex'),
  }
}

export function innerOf(envelope: string, passphrase: string): Transaction {
  const parsed = TransactionBuilder.fromXDR(envelope, passphrase)
  return parsed instanceof FeeBumpTransaction ? parsed.innerTransaction : parsed
}

/** What kept bytes pay. Throws where they are no payment of Bursar. */
export function paymentIn(raw: Buffer): StellarPayment {
  // The passphrase changes hashes only.
  const inner = innerOf(raw.toString('base64'), '')
  const [operation, ...others] = inner.operations
  if (operation === undefined || others.length > 0) throw new Error('it is no single payment')
  if (operation.type !== 'payment' && operation.type !== 'createAccount')
    throw new Error(`it is no payment but ${operation.type}`)
  return {
    lane: extractBaseAddress(inner.source),
    sequence: BigInt(inner.sequence),
    maxTime: BigInt(inner.timeBounds!.maxTime),
    destination: operation.destination,
    asset: operation.type === 'payment' ? keyOfAsset(operation.asset) : 'native',
    amount: operation.type === 'payment' ? operation.amount : operation.startingBalance,
    memo: saidBy(inner.memo),
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
