import { getAddress, isAddress } from 'viem/utils'
import type { Hex } from 'viem'
import type { EvmTransaction } from '../chains/evm/transaction.ts'
import { recipientOf } from '../chains/evm/signed-payment.ts'
import { NETWORKS } from '../src/contract/assets/catalogue.ts'
import type { Wallet } from './back-end.ts'
import type { SignerConfig } from './config.ts'
import type { Journal } from './journal.ts'
import type { MoveLine } from './journal-lines.ts'
import { demand, readTransaction, requireNotStopped, requireWithinWindows } from './rules.ts'

/**
 * Moves between deposit addresses and the platform's own wallets. Nobody has accepted them, and none can be paid twice: what
 * lies at an address goes to a hot wallet of the signer's file, and its gas wallet pays only addresses that its deposit key
 * gives. So what can be lost is their fees, which count in the windows.
 */

/** What a worker asks: to sign a sweep for a deposit address, or gas for it for the gas wallet. */
export interface MoveRequest {
  network: string
  /** Who signs: the address itself, or the gas wallet. */
  wallet: string
  /** The deposit address, and how it was derived. */
  address: string
  derivation: string
  unsigned: Hex
}

export interface AllowedMove {
  line: MoveLine
  transaction: EvmTransaction
  signer: Wallet
}

/** A fingerprint, and the steps of a path. */
const DERIVATION = /^[0-9a-f]{8}(\/\d{1,10}){1,8}$/

/** Judges a move by the signer's own configuration and windows. Throws Refused with the rule that it breaks. */
export function judgeMove(
  config: SignerConfig,
  journal: Journal,
  request: MoveRequest,
  now: Date,
): AllowedMove {
  const { network: name, wallet, address, derivation, unsigned } = request
  requireNotStopped(config.stopFile)
  const network = config.networks.get(name)
  demand(network !== undefined, `${name} is not configured`)
  const { depositKeys } = network
  demand(depositKeys !== undefined, `${name} has no deposit_key`)
  demand(DERIVATION.test(derivation) && isAddress(address), 'the deposit address cannot be read')
  demand(depositKeys.derives({ address, derivation }), `the deposit_key does not give ${address}`)
  const { transaction, fee } = readTransaction(network, unsigned)
  const to = recipientOf(network.tokens, transaction)
  demand(to !== undefined, 'it is no transfer of an asset that is configured')
  const signer: Wallet | undefined =
    getAddress(wallet) === address ? depositKeys.signerOf(address, derivation)! : network.gasWallet
  demand(
    signer !== undefined && signer.address === getAddress(wallet),
    `${wallet} is no gas_wallet of ${name}`,
  )
  if (signer === network.gasWallet) requireGasFor(address, to, transaction)
  else demand(network.wallets.has(to), `${to} is no wallet of ${name}: what lies at an address goes there`)
  const asset = NETWORKS[network.network].gasAsset
  requireWithinWindows(name, journal, [{ asset, units: 0n, fee }], now)
  const place = { network: name, wallet: signer.address, nonce: transaction.nonce }
  return { line: { kind: 'MOVE', at: now.toISOString(), ...place, fee: String(fee) }, transaction, signer }
}

function requireGasFor(address: string, to: Hex, { data }: EvmTransaction): void {
  demand(to === address && data === undefined, `the gas wallet pays gas to ${address}, and nothing else`)
}
