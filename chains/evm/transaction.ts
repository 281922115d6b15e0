import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { LRUCache } from 'lru-cache'
import type { Hex, TransactionSerialized } from 'viem'
import {
  bytesToHex,
  getAddress,
  hexToBigInt,
  hexToNumber,
  keccak256,
  parseTransaction,
  serializeTransaction,
  toHex,
} from 'viem/utils'
import type { EventLog, Receipt } from './node.ts'
import type { SignedTransaction } from '../../src/networks/network.ts'

/** A transaction to sign (EIP-1559). Amounts in wei. */
export interface EvmTransaction {
  type: 'eip1559'
  chainId: number
  nonce: number
  to: Hex
  value: bigint
  data?: Hex
  gas: bigint
  maxFeePerGas: bigint
  maxPriorityFeePerGas: bigint
}

/** Signs for one address: a viem account, or a signer process that is asked later. */
export interface EvmSigner {
  address: Hex
  /** Whether this process lacks its key: `signTransaction` throws. */
  isWatched?: true
  /** An operator has looked at all that it has sent: what it sends further stops nothing. */
  isClosed?: true
  /** The signer process has the key: what it is to sign is stored first (`askedBytes`). */
  isRemote?: true | undefined
  /** Signs gas for a deposit address alone: the signer process has the key. */
  forDeposit?(place: { address: string; derivation: string }): EvmSigner
  /** The signed transaction, serialized as it is broadcast. */
  signTransaction(transaction: EvmTransaction): Promise<Hex>
}

/** A signed transaction that is stored, and may have been broadcast. */
export interface Sent extends SignedTransaction {
  /** The hashes of the transactions that it replaced, with the same nonce. */
  replaced: string[]
}

/** Signs, and compares the signed bytes with the transaction: the signer may be another machine. */
export async function signed(signer: EvmSigner, transaction: EvmTransaction): Promise<SignedTransaction> {
  if (signer.isRemote) {
    const raw_transaction = askedBytes(signer.address, transaction)
    return { raw_transaction, crypto_tx_hash: keccak256(raw_transaction), isAsked: true }
  }
  return signedAs(signer, transaction, await signer.signTransaction(transaction))
}

/** The signed bytes of a transaction. Throws an AssertionError where they are of another one. */
export function signedAs(
  signer: Pick<EvmSigner, 'address'>,
  transaction: EvmTransaction,
  raw: Hex,
): SignedTransaction {
  const back = parse(raw)
  for (const key of ['chainId', 'nonce', 'value', 'gas', 'maxFeePerGas', 'maxPriorityFeePerGas'] as const) {
    assert(back[key] === transaction[key], `the signer changed the ${key}`)
  }
  assert(getAddress(back.to) === getAddress(transaction.to), 'the signer changed the recipient')
  assert((back.data ?? '0x') === (transaction.data ?? '0x'), 'the signer changed the call')
  const raw_transaction = Buffer.from(raw.slice(2), 'hex')
  senders.set(keyOf(raw_transaction), getAddress(signer.address))
  return { raw_transaction, crypto_tx_hash: keccak256(raw) }
}

const EIP_1559 = 0x02
/** Begins what a signer process is asked to sign, followed by the wallet's address and the unsigned transaction. */
const ASKED = 0xa5
const ADDRESS_END = 21

/** What a signer process is asked to sign, as it is stored before it is asked. It is never broadcast. */
const askedBytes = (address: Hex, transaction: EvmTransaction): Buffer =>
  Buffer.concat([
    Buffer.from([ASKED]),
    Buffer.from(address.slice(2), 'hex'),
    Buffer.from(serializeTransaction(transaction).slice(2), 'hex'),
  ])

/** The unsigned transaction in what a signer process is asked to sign. */
export const unsignedOf = (raw: Buffer): Hex => bytesToHex(raw.subarray(ADDRESS_END))

/** Whether bytes are those of a transaction that a signer process was asked to sign. */
export const isAsked = (raw: Buffer) => raw[0] === ASKED

/** Whether bytes are an EIP-1559 transaction, the only type that Bursar signs. Those of a simulated network are not. */
export const isOurs = (raw: Buffer) => raw[0] === EIP_1559 || isAsked(raw)

/** The transaction in stored bytes. viem leaves out the fields that are zero. */
export function parse(raw: Buffer | Hex): EvmTransaction {
  const bytes = typeof raw === 'string' ? raw : bytesToHex(isAsked(raw) ? raw.subarray(ADDRESS_END) : raw)
  const { chainId, nonce, to, value, data, gas, maxFeePerGas, maxPriorityFeePerGas } = parseTransaction(
    bytes as `0x02${string}`,
  )
  return {
    type: 'eip1559',
    chainId,
    nonce: nonce ?? 0,
    to: to!,
    value: value ?? 0n,
    ...(data !== undefined && { data }),
    gas: gas ?? 0n,
    maxFeePerGas: maxFeePerGas ?? 0n,
    maxPriorityFeePerGas: maxPriorityFeePerGas ?? 0n,
  }
}

/** The signers of bytes: to recover one takes about a millisecond. Nodes keep far fewer transactions of one wallet. */
const senders = new LRUCache<string, Hex>({ max: 10_000 })
const keyOf = (raw: Buffer) => raw.toString('latin1')

/** The address that signed these bytes, or is to sign them. */
export async function signerAddressOf(raw: Buffer): Promise<Hex> {
  if (isAsked(raw)) return getAddress(bytesToHex(raw.subarray(1, ADDRESS_END)))
  const known = senders.get(keyOf(raw))
  if (known !== undefined) return known
  const sender = await signerOf(bytesToHex(raw) as `0x02${string}`)
  senders.set(keyOf(raw), sender)
  return sender
}

/** Who signed a transaction. Only this loads the rest of viem (a tenth of a second), which a simulated sandbox never needs. */
export async function signerOf(serializedTransaction: TransactionSerialized): Promise<Hex> {
  const { recoverTransactionAddress } = await import('viem')
  return getAddress(await recoverTransactionAddress({ serializedTransaction }))
}

/** Those of the bytes that this address signed. */
export async function signedBy<Of extends { raw_transaction: Buffer }>(
  address: Hex,
  kept: readonly Of[],
): Promise<Of[]> {
  const own = kept.filter(({ raw_transaction }) => isOurs(raw_transaction))
  const signers = await Promise.all(own.map(({ raw_transaction }) => signerAddressOf(raw_transaction)))
  return own.filter((_, index) => signers[index] === getAddress(address))
}

// ---------------------------------------------------------------------------------------------- logs

export const TRANSFER_TOPIC = keccak256(toHex('Transfer(address,address,uint256)'))

const topicOf = (address: Hex): Hex => `0x${'0'.repeat(24)}${address.slice(2).toLowerCase()}`
/** The address in a log's topic, with its checksum. */
export const addressIn = (topic: Hex): Hex => getAddress(`0x${topic.slice(-40)}`)

/** The log that a token's contract wrote for a transfer, and the amount in it, in units of the chain. */
interface LoggedTransfer {
  log: EventLog
  amount: bigint
}

/**
 * The log of a signed transfer(to, amount): from the sender to the recipient, by the token's contract. Of several such
 * logs, the one with the signed amount. Undefined where the receipt has none.
 */
export function loggedTransfer(
  { to, data = '0x' }: EvmTransaction,
  receipt: Receipt,
): LoggedTransfer | undefined {
  const [from, recipient] = [topicOf(receipt.from), `0x${data.slice(10, 74)}`]
  const logs = receipt.logs.flatMap((log): LoggedTransfer[] => {
    const [event, sender, into] = log.topics
    const isIts =
      getAddress(log.address) === getAddress(to) &&
      event === TRANSFER_TOPIC &&
      sender === from &&
      into === recipient
    return isIts ? [{ log, amount: hexToBigInt(log.data) }] : []
  })
  return logs.find(({ amount }) => amount === amountIn(data)) ?? logs[0]
}

/** The amount in a call of transfer(address,uint256): its second word. */
export const amountIn = (data: Hex): bigint => hexToBigInt(`0x${data.slice(74, 138)}`)

/** The index of a log in its block, as `crypto_tx_index` has it. */
export const logIndexOf = ({ logIndex }: EventLog): string => String(hexToNumber(logIndex))
