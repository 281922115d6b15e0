import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { address, type Address } from '@solana/addresses'
import type { Hex } from 'viem'
import { depositKeyIn, depositKeysOf, type SolanaDepositKeys } from '../chains/solana/deposit-keys.ts'
import { associatedOf } from '../chains/solana/instructions.ts'
import { sweepAccounts } from '../chains/solana/lanes.ts'
import { signerOfKey, type SolanaSigner } from '../chains/solana/keys.ts'
import { disagreementOf } from '../chains/solana/signed-payment.ts'
import {
  addSignature,
  feeOf,
  isPlain,
  messageOf,
  parse,
  parsePayment,
  rentOfMadeAccount,
  SIGNATURE_FEE,
  type ParsedPayment,
} from '../chains/solana/transaction.ts'
import type { MoveRequest, SignerFamily, SignerNetwork, UnsignedRead, Wallet } from './family.ts'
import { demand, requireDerived } from './refused.ts'

/** More than the rent of the largest account that a payment makes, of 300 bytes. */
const RENT_MAX = 3_000_000n

/** The wallets of SOLANA. Signatures of Ed25519 have no random part. */
export const solana: SignerFamily = {
  carriesMemo: true,
  feeUnit: 'lamports',
  addressOf: (text) => address(text),
  walletOf(field, key) {
    try {
      return walletBy(signerOfKey(key))
    } catch (error) {
      throw new Error(`${field} ${(error as Error).message}`, { cause: error })
    }
  },
  depositKeysOf(text) {
    const key = depositKeyIn(text)
    if ('publicKey' in key) throw new Error('it is a public key, with which nothing can be swept')
    return depositKeysOf(key.mnemonic)
  },
  read: readPayment,
  disagreementOf,
  judgeMove,
}

const bytesOf = (unsigned: Hex): Buffer => Buffer.from(unsigned.slice(2), 'hex')

const walletBy = (signer: SolanaSigner): Wallet => ({
  address: signer.address,
  sign: async (unsigned) => `0x${addSignature(bytesOf(unsigned), signer).toString('hex')}`,
})

/**
 * Reads a payment. Whether its lifetime is a nonce's value or a block's hash cannot be told here, so that two transactions of
 * one transfer might both be made, whatever they are named by: a transfer is signed as these bytes, and as no others.
 */
function readPayment(_network: SignerNetwork, unsigned: Hex, wallet: string): UnsignedRead {
  const raw = bytesOf(unsigned)
  const payment = parsePayment(raw)
  const { from, transfers } = payment
  demand(from === wallet && parse(raw).signers.length === 1, `it is not a payment of ${wallet} alone`)
  demand(transfers.length === 1, 'it has more than one payment: each is signed alone')
  requirePlain(raw, wallet, payment)
  const rent = transfers[0]!.madeFor === undefined ? 0n : RENT_MAX
  return { places: [nameOf(raw)], fee: feeOf(payment) + rent, payments: 1 }
}

/** Whoever adds to a payment gets what its signers have: a program that is called can call others with their signatures. */
function requirePlain(raw: Buffer, owner: string, payment: ParsedPayment): void {
  demand(isPlain(raw, owner as Address, payment), 'it is not written as a payment of Bursar')
}

const nameOf = (raw: Buffer) => createHash('sha256').update(messageOf(raw)).digest('hex').slice(0, 32)

/** What lies at an address goes to a wallet of the file, which pays the fee, and makes accounts for nonces. */
function judgeMove(network: SignerNetwork, request: MoveRequest): { signer: Wallet; read: UnsignedRead } {
  const { network: name, wallet, address: of, derivation, unsigned } = request
  const raw = bytesOf(unsigned)
  const hot = network.wallets.get(wallet)
  demand(hot !== undefined, `${wallet} is no wallet of ${name}`)
  const read = { places: [nameOf(raw)], payments: 1 }
  if (derivation === '') {
    const rent = rentOfMadeAccount(raw, wallet as Address, of as Address)
    demand(rent !== undefined, `it does not make the account ${of} for a nonce of ${wallet}`)
    return { signer: hot, read: { ...read, fee: rent + SIGNATURE_FEE } }
  }
  const keys = requireDerived(network, request) as unknown as SolanaDepositKeys
  const payment = parsePayment(raw)
  const { from, transfers } = payment
  const { signers } = parse(raw)
  const areOurs = signers.length === 2 && signers.includes(of as Address)
  demand(from === wallet && areOurs, `${wallet} and ${of} do not sign it, and nobody else`)
  for (const { target, mint, program, madeFor } of transfers) {
    const own = [...network.wallets.keys()].some(
      (one) => target === (mint === undefined ? one : associatedOf(one as Address, mint, program)),
    )
    const isKnown = mint === undefined || Object.values(network.tokenAddresses).includes(mint)
    demand(isKnown, `${mint} is no mint that is configured`)
    demand(own, `${target} is no wallet of ${name}: what lies at an address goes there`)
    demand(madeFor === undefined || network.wallets.has(madeFor), `it makes an account for ${madeFor}`)
  }
  demand(transfers.length === 1, 'it has more than one payment: each is signed alone')
  requirePlain(raw, of, payment)
  // On a nonce of payments, it would make a payment void.
  const isOfSweeps = sweepAccounts({ hotWallet: hot }).some(({ account }) => account === payment.nonceAccount)
  demand(isOfSweeps, `${payment.nonceAccount} is no nonce account of sweeps`)
  const rent = transfers[0]!.madeFor === undefined ? 0n : RENT_MAX
  const owner = walletBy(keys.signerOf(of, derivation)!)
  const both: Wallet = { ...hot, sign: async (bytes, kept) => owner.sign(await hot.sign(bytes, kept), kept) }
  return { signer: both, read: { ...read, fee: feeOf(payment) + SIGNATURE_FEE + rent } }
}
