import assert from 'node:assert/strict'
import type { Hex, TransactionSerialized } from 'viem'
import { serializeTransaction } from 'viem/utils'
import type { AskedBytes, AskedSigner, DepositPlace, Unsigned } from '../kit/remote-signer.ts'
import { parse, signedAs, signerAddressOf, signerOf, unsignedOf, type EvmSigner } from './transaction.ts'

/** What a signer process is asked for on EVM networks. */
export const askedBytes: AskedBytes = {
  unsignedIn: async (raw) => ({ wallet: await signerAddressOf(raw), unsigned: unsignedOf(raw) }),
  signedAs: async (what, signed) => {
    await requireSignedBy(what, signed)
    return signedAs({ address: what.wallet as Hex }, parse(what.unsigned as Hex), signed as Hex)
  },
}

async function requireSignedBy({ wallet }: Unsigned, signed: string): Promise<void> {
  assert((await signerOf(signed as TransactionSerialized)) === wallet, `it is not signed by ${wallet}`)
}

/** Signs what moves between a deposit address and the platform's wallets, by a signer process that does. */
export const remoteMover = (
  network: string,
  signer: AskedSigner,
  wallet: Hex,
  place: DepositPlace,
): EvmSigner => ({
  address: wallet,
  async signTransaction(transaction) {
    const what = { wallet, unsigned: serializeTransaction(transaction) }
    const signed = await signer.move!(network, what, place)
    await requireSignedBy(what, signed)
    return signed as Hex
  },
})
