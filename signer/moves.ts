import { NETWORKS } from '../src/contract/assets/catalogue.ts'
import type { SignerConfig } from './config.ts'
import type { MoveRequest, Wallet } from './family.ts'
import type { Journal } from './journal.ts'
import type { MoveLine } from './journal-lines.ts'
import { demand, demandFee, requireHex } from './refused.ts'
import { requireNotStopped, requireWithinWindows } from './rules.ts'

/**
 * Judges a move between a deposit address and the platform's wallets. Nobody has accepted it, and none can be paid twice: what
 * lies at an address goes to a wallet of the signer's file. What can be lost is the fees, which count in the windows. Throws
 * Refused with the rule that it breaks.
 */
export function judgeMove(
  config: SignerConfig,
  journal: Journal,
  request: MoveRequest,
  now: Date,
): { line: MoveLine; signer: Wallet } {
  requireHex(request.unsigned)
  requireNotStopped(config.stopFile)
  const network = config.networks.get(request.network)
  demand(network !== undefined, `${request.network} is not configured`)
  const { signer, read } = network.family.judgeMove(network, request)
  demandFee(network, read.fee)
  const asset = NETWORKS[network.network].gasAsset
  requireWithinWindows(request.network, journal, [{ asset, units: 0n, fee: read.fee }], now)
  const place = { network: request.network, wallet: signer.address, nonce: read.places[0]! }
  return { line: { kind: 'MOVE', at: now.toISOString(), ...place, fee: String(read.fee) }, signer }
}
