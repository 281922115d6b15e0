import type { CryptoNetwork } from '../contract/assets/catalogue.ts'
import { NodeFailure } from './node-failure.ts'

/**
 * A sandbox takes test networks only, because its money is invented; live mode takes main networks only, because a test
 * network's coins are worth nothing.
 */
export type Mode = 'sandbox' | 'live'

/** The node is on a main network in a sandbox, or on a test network in live mode. */
export class WrongChain extends NodeFailure {}

/** Throws WrongChain unless the node is on a network of the mode. `test` names a test network; undefined for the main one. */
export function requireChainOfMode(network: CryptoNetwork, mode: Mode, test: string | undefined): void {
  if ((test === undefined) === (mode === 'live')) return
  throw new WrongChain(
    test === undefined
      ? `the node of ${network} is on the main network, and a sandbox's money is invented: connect a test network`
      : `the node of ${network} is on ${test}, and live mode needs the main network`,
  )
}
