import { secp256k1 } from '@noble/curves/secp256k1.js'
import { createPublicKey } from 'node:crypto'
import type { Hex } from 'viem'
import {
  bytesToHex,
  hexToBytes,
  keccak256,
  publicKeyToAddress,
  serializeTransaction,
  toHex,
} from 'viem/utils'
import { parse } from '../chains/evm/transaction.ts'
import type { Wallet } from './family.ts'

/**
 * A key that does not leave its device or service. A signature of it has a random part: the same transaction, signed twice,
 * has two hashes. So the first signature is kept, and every later question is answered with it.
 */
export interface BackEnd {
  /** For people: which device and key. */
  name: string
  /** Its public key, in DER (SubjectPublicKeyInfo). */
  publicKey(): Promise<Uint8Array>
  /** The signature of 32 bytes. Throws BackEndFailure where there is none now. */
  sign(digest: Uint8Array): Promise<Uint8Array>
  format: 'compact' | 'der'
}

/** A key cannot be used now. No signature has left, and the same question may be asked again. */
export class BackEndFailure extends Error {}

/** The most that an answer takes, with all attempts at it. The worker waits for ten seconds. */
export const BACK_END_MS_MAX = 5_000

/** Signed at the start, so that a wrong PIN, key or right is seen then. It is the hash of no transaction. */
const PROBE = keccak256(toHex('bursar signer: the key is there'))

/** The wallet of EVM networks of a key, once it has signed. Throws BackEndFailure where it cannot, or has signed with another key. */
export async function walletOf(backEnd: BackEnd): Promise<Wallet> {
  const publicKey = pointOf(backEnd, await backEnd.publicKey())
  const address = publicKeyToAddress(bytesToHex(publicKey))
  const sign = async (digest: Hex): Promise<Hex> => {
    const signature = signatureBy(publicKey, digest, await backEnd.sign(hexToBytes(digest)), backEnd.format)
    if (signature === undefined)
      throw new BackEndFailure(`${backEnd.name} gave no signature by the key of ${address}`)
    return signature
  }
  await sign(PROBE)
  const inTurn = turns()
  return {
    address,
    sign: (unsigned, kept) =>
      inTurn(async () => {
        const transaction = parse(unsigned)
        const digest = keccak256(serializeTransaction(transaction))
        const signature = (await kept.find(digest)) ?? (await kept.keep(digest, await sign(digest)))
        const { r, s, recovery } = secp256k1.Signature.fromHex(signature.slice(2), 'recovered')
        return serializeTransaction(transaction, {
          r: toHex(r, { size: 32 }),
          s: toHex(s, { size: 32 }),
          yParity: recovery!,
        })
      }),
  }
}

/** The point of a public key, uncompressed. Throws BackEndFailure for a key of another curve. */
function pointOf({ name }: BackEnd, der: Uint8Array): Uint8Array {
  try {
    const key = createPublicKey({ key: Buffer.from(der), format: 'der', type: 'spki' })
    const { crv, x, y } = key.export({ format: 'jwk' })
    if (crv === 'secp256k1')
      return Buffer.concat([Buffer.from([4]), Buffer.from(x!, 'base64url'), Buffer.from(y!, 'base64url')])
  } catch {
    // An unreadable key is no such key either.
  }
  throw new BackEndFailure(`${name} has no public key of secp256k1`)
}

/**
 * A signature as Ethereum takes it: s in the lower half, and with the recovery bit. Undefined where it is none by this key:
 * then it must not leave.
 */
function signatureBy(
  publicKey: Uint8Array,
  digest: Hex,
  given: Uint8Array,
  format: BackEnd['format'],
): Hex | undefined {
  try {
    const { Signature, Point } = secp256k1
    const raw = Signature.fromBytes(given, format)
    const low = raw.hasHighS() ? new Signature(raw.r, Point.Fn.neg(raw.s)) : raw
    const key = Point.fromBytes(publicKey)
    const whole = [0, 1]
      .map((bit) => low.addRecoveryBit(bit))
      .find((candidate) => candidate.recoverPublicKey(hexToBytes(digest)).equals(key))
    return whole && `0x${whole.toHex('recovered')}`
  } catch {
    return undefined
  }
}

/** One after the other. Who waits behind a key that failed gets its failure: each would take as long again. */
function turns(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return async (work) => {
    const mine = last.then(work, (error: Error) => {
      if (error instanceof BackEndFailure) throw error
      return work()
    })
    last = mine
    try {
      return await mine
    } finally {
      if (last === mine) last = Promise.resolve()
    }
  }
}
