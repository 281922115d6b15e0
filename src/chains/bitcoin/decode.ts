import { createHash } from 'node:crypto'
import { RawOldTx, RawTx } from '@scure/btc-signer/script.js'

/** An output of a transaction, as 'txid:vout'. */
export type Outpoint = string

export const outpointOf = ({ txid, vout }: { txid: string; vout: string }): Outpoint => `${txid}:${vout}`

/** The parts of an outpoint. */
export function splitOutpoint(outpoint: Outpoint): { txid: string; vout: number } {
  const [txid, vout] = outpoint.split(':') as [string, string]
  return { txid, vout: Number(vout) }
}

/** The hash of the transaction that an outpoint belongs to. */
export const hashIn = (outpoint: Outpoint): string => splitOutpoint(outpoint).txid

/** A raw transaction: its hash, the outputs that it spends, and its own. Amounts are minor units. */
export interface DecodedTransaction {
  txid: string
  inputs: Outpoint[]
  outputs: { amount: bigint; script: Uint8Array }[]
}

/** Decodes a raw transaction, signed or not. Throws on bytes that are no transaction. */
export function decode(raw: Buffer): DecodedTransaction {
  const { version, inputs, outputs, lockTime } = RawTx.decode(raw)
  // The hash leaves the witnesses out, and is written in reverse byte order.
  const hashed = sha256(sha256(RawOldTx.encode({ version, inputs, outputs, lockTime })))
  return {
    txid: hashed.reverse().toString('hex'),
    inputs: inputs.map(({ txid, index }) => `${Buffer.from(txid).toString('hex')}:${index}`),
    outputs,
  }
}

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()
