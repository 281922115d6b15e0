import { Buffer } from 'node:buffer'
import { Keypair, Networks, StrKey } from '@stellar/stellar-base'
import type { Hex } from 'viem'
import { bumpIn, laneKeys, paymentsIn, writePayments } from '../chains/stellar/envelope.ts'
import { disagreementOf } from '../chains/stellar/signed-payment.ts'
import type { SignerFamily, SignerNetwork, UnsignedRead, Wallet } from './family.ts'
import { demand } from './refused.ts'

/** The most channel accounts of a key. */
const LANES_MAX = 100

interface StellarWallet extends Wallet {
  /** Whether the key signs for transactions that this account numbers. */
  numbers: (lane: string) => boolean
}

/** The wallets of STELLAR on the network of a passphrase. Signatures of Ed25519 have no random part. */
export function stellarOn(passphrase: string = Networks.PUBLIC): SignerFamily {
  const questionOf = (unsigned: Hex, source: string) => {
    const raw = Buffer.from(unsigned.slice(2), 'hex')
    const asked = paymentsIn(raw)
    const all = BigInt(bumpIn(raw, passphrase).fee)
    // The fee bump counts as an operation.
    const terms = { source, fee: all / BigInt(asked.payments.length + 1), passphrase }
    return { raw, asked, all, terms }
  }

  function walletOf(field: string, seed: string, account?: string): StellarWallet {
    if (!StrKey.isValidEd25519SecretSeed(seed)) throw new Error(`${field} is no seed of Stellar (S...)`)
    const signer = Keypair.fromSecret(seed)
    const address = account ?? signer.publicKey()
    if (!StrKey.isValidEd25519PublicKey(address)) throw new Error(`${field}.address is no account (G...)`)
    const lanes = new Map(laneKeys(signer, LANES_MAX).map((key) => [key.publicKey(), key]))
    return {
      address,
      numbers: (lane) => lanes.has(lane) || (lane === address && signer.publicKey() === address),
      async sign(unsigned) {
        const { asked, terms } = questionOf(unsigned, address)
        const signed = writePayments(asked, terms, { signer, laneKey: lanes.get(asked.lane) })
        return `0x${signed.raw_transaction.toString('hex')}`
      },
    }
  }

  /**
   * Reads payments, which must be what the worker's own code writes for them: then nothing else is in their transaction. How
   * long it can be made cannot be judged here, and need not be: of all with one number, the network makes one.
   */
  function read({ wallets }: SignerNetwork, unsigned: Hex, source: string): UnsignedRead {
    const { raw, asked, all, terms } = questionOf(unsigned, source)
    const { lane, sequence, maxTime, payments } = asked
    const { numbers } = wallets.get(source) as StellarWallet
    demand(numbers(lane), `${lane}, which numbers it, is no account of the key of ${source}`)
    demand(maxTime > 0n && sequence > 0n, 'it has no time bound, or no number')
    demand(
      writePayments(asked, terms).raw_transaction.equals(raw),
      `it is not written as payments of ${source} by Bursar`,
    )
    return { places: [`${lane}:${sequence}`], fee: all, payments: payments.length }
  }

  return {
    carriesMemo: true,
    paysMany: true,
    placesStay: true,
    feeUnit: 'stroops',
    addressOf(text) {
      const isOne = StrKey.isValidEd25519PublicKey(text) || StrKey.isValidMed25519PublicKey(text)
      if (!isOne) throw new Error(`${text} is no account of Stellar`)
      return text
    },
    walletOf,
    depositKeysOf() {
      throw new Error("deposit addresses are the hot wallet's own account, which is not swept")
    },
    read,
    disagreementOf,
    judgeMove() {
      demand(false, 'nothing is swept on STELLAR')
    },
  }
}
