import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { extractBaseAddress, Keypair } from '@stellar/stellar-base'
import type { AskedBytes } from '../kit/remote-signer.ts'
import type { StellarChain } from './chain.ts'
import { bumpIn } from './envelope.ts'

/** What a signer process is asked for on STELLAR. */
export const askedBytes = ({ passphrase }: Pick<StellarChain, 'passphrase'>): AskedBytes => ({
  unsignedIn: async (raw) => ({
    wallet: bumpIn(raw, passphrase).feeSource,
    unsigned: `0x${raw.toString('hex')}`,
  }),
  async signedAs(what, signed) {
    const raw_transaction = Buffer.from(signed.slice(2), 'hex')
    const [asked, made] = [Buffer.from(what.unsigned.slice(2), 'hex'), raw_transaction].map((raw) =>
      bumpIn(raw, passphrase),
    ) as [ReturnType<typeof bumpIn>, ReturnType<typeof bumpIn>]
    const inner = made.innerTransaction
    const hash = inner.hash()
    const isSame = hash.equals(asked.innerTransaction.hash()) && made.feeSource === asked.feeSource
    assert(isSame && made.fee === asked.fee, 'the signer changed the transaction')
    const lane = extractBaseAddress(inner.source)
    // The wallet's key may be another signer's of its account, which the network knows.
    const signers = [inner.signatures, made.signatures].map((signatures) => signatures.length)
    const isByLane = inner.signatures.some((one) => Keypair.fromPublicKey(lane).verify(hash, one.signature()))
    assert(isByLane, `it is not signed by ${lane}`)
    assert(signers[0] === (lane === made.feeSource ? 1 : 2) && signers[1] === 1, 'it lacks a signature')
    return { raw_transaction, crypto_tx_hash: hash.toString('hex') }
  },
})
