import { createHash } from 'node:crypto'
import { RawPSBTV0 } from '@scure/btc-signer/psbt.js'
import { RawOldTx, RawTx } from '@scure/btc-signer/script.js'
import type { SignedTransaction } from '../../src/networks/network.ts'

/** An output of a transaction, as 'txid:vout'. */
export type Outpoint = string

export const outpointOf = ({ txid, vout }: { txid: string; vout: string }): Outpoint => `${txid}:${vout}`

export function splitOutpoint(outpoint: Outpoint): { txid: string; vout: number } {
  const [txid, vout] = outpoint.split(':') as [string, string]
  return { txid, vout: Number(vout) }
}

export const hashIn = (outpoint: Outpoint): string => splitOutpoint(outpoint).txid

/** A raw transaction: its hash, the outputs that it spends, and its own. Amounts are minor units. */
export interface DecodedTransaction {
  txid: string
  inputs: Outpoint[]
  outputs: { amount: bigint; script: Uint8Array }[]
}

/** Begins a PSBT (BIP 174). No transaction begins so: its number of inputs would be above 2^32. */
const PSBT_MAGIC = Buffer.from('psbt\xff', 'latin1')

/** Whether stored bytes are what a person is asked to sign: a PSBT with the unsigned transaction alone. */
export const isAsked = (raw: Buffer): boolean => raw.subarray(0, PSBT_MAGIC.length).equals(PSBT_MAGIC)

/** What a person is asked to sign, as it is stored. It has a hash of its own, which the network never sees. */
export function asked(unsigned: Uint8Array): SignedTransaction {
  const unsignedTx = RawOldTx.decode(unsigned)
  const raw_transaction = Buffer.from(
    RawPSBTV0.encode({
      global: { unsignedTx },
      inputs: unsignedTx.inputs.map(() => ({})),
      outputs: unsignedTx.outputs.map(() => ({})),
    }),
  )
  return { raw_transaction, crypto_tx_hash: hashOf(raw_transaction), isAsked: true }
}

/** The transaction in raw or stored bytes. Throws on bytes that are no transaction. */
export const parse = (raw: Buffer): ParsedTransaction =>
  isAsked(raw) ? RawPSBTV0.decode(raw).global.unsignedTx! : RawTx.decode(raw)

export interface ParsedTransaction {
  version: number
  inputs: { txid: Uint8Array; index: number; finalScriptSig: Uint8Array; sequence: number }[]
  outputs: DecodedTransaction['outputs']
  lockTime: number
}

const withoutWitnesses = ({ version, inputs, outputs, lockTime }: ParsedTransaction): Buffer =>
  Buffer.from(RawOldTx.encode({ version, inputs, outputs, lockTime }))

export const txidOf = (transaction: ParsedTransaction): string => hashOf(withoutWitnesses(transaction))

/** The transaction that a person is asked to sign, in hex. */
export const unsignedHexOf = (raw: Buffer): string => withoutWitnesses(parse(raw)).toString('hex')

/** Decodes a raw transaction, signed or asked. Throws on bytes that are no transaction. */
export function decode(raw: Buffer): DecodedTransaction {
  const transaction = parse(raw)
  return {
    txid: txidOf(transaction),
    inputs: transaction.inputs.map(({ txid, index }) => `${Buffer.from(txid).toString('hex')}:${index}`),
    outputs: transaction.outputs,
  }
}

/** A hash as the network writes it: in reverse byte order. */
const hashOf = (bytes: Uint8Array): string => sha256(sha256(bytes)).reverse().toString('hex')

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()
