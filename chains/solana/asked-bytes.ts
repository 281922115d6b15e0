import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import type { Address } from '@solana/addresses'
import type { Queryable } from '../../src/db/database.ts'
import type { AskedWithdrawal, SignedTransaction, SignerAnswer } from '../../src/networks/network.ts'
import { askSigner, type AskedBytes, type AskedSigner, type DepositPlace } from '../kit/remote-signer.ts'
import { NETWORK, type SolanaChain } from './chain.ts'
import type { SolanaDepositKeys, VouchedAddress } from './deposit-keys.ts'
import { remote } from './keys.ts'
import { keepReplaced } from './lanes.ts'
import { messageOf, parse, parsePayment } from './transaction.ts'

/** What a signer process is asked for on SOLANA. */
const askedBytes: AskedBytes = {
  unsignedIn: async (raw) => ({ wallet: parse(raw).feePayer, unsigned: `0x${raw.toString('hex')}` }),
  signedAs: async (what, signed) => signedAs(what.unsigned, signed),
}

function signedAs(unsigned: string, signed: string): SignedTransaction {
  const [asked, raw_transaction] = [unsigned, signed].map((hex) => Buffer.from(hex.slice(2), 'hex')) as [
    Buffer,
    Buffer,
  ]
  assert(messageOf(raw_transaction).equals(messageOf(asked)), 'the signer changed the transaction')
  const { isSigned, feePayer, hash } = parse(raw_transaction)
  assert(isSigned, `it is not signed by ${feePayer}`)
  return { raw_transaction, crypto_tx_hash: hash }
}

/** The signed bytes of what moves between a deposit address and the hot wallet, where a signer process has the keys. */
export async function signedMove(
  { signer, hotWallet }: SolanaChain,
  bytes: SignedTransaction,
  place: DepositPlace,
): Promise<SignedTransaction> {
  if (bytes.isAsked === undefined) return bytes
  const what = { wallet: hotWallet.address, unsigned: `0x${bytes.raw_transaction.toString('hex')}` }
  return signedAs(what.unsigned, await signer!.move!(NETWORK, what, place))
}

/** Asks for withdrawals, and writes down what has signed their values of nonces. */
export async function askFor(
  db: Queryable,
  signer: AskedSigner,
  asked: readonly AskedWithdrawal[],
): Promise<SignerAnswer[]> {
  const answers = await askSigner(db, { network: NETWORK, signer, bytes: askedBytes }, asked)
  for (const [{ raw_transaction }, answer] of answers)
    if ('signed' in answer)
      await keepReplaced(db, parsePayment(raw_transaction), answer.signed.crypto_tx_hash)
  return asked.map((one) => answers.get(one)!)
}

/** The keys of deposit addresses that a signer process has. */
export const remoteDepositKeys = (
  signer: AskedSigner,
): Pick<SolanaDepositKeys, 'signerOf' | 'answersTo'> => ({
  signerOf: (address) => remote(address as Address),
  answersTo: async (asked) => (await signer.addresses!(NETWORK, asked)) as VouchedAddress[],
})
