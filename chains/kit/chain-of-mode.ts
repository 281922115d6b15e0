import type { CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import { WrongChain, type Mode } from '../../src/networks/chain-of-mode.ts'

/** Throws WrongChain unless the node is on a network of the mode. `test` names a test network; undefined for the main one. */
export function requireChainOfMode(network: CryptoNetwork, mode: Mode, test: string | undefined): void {
  if ((test === undefined) === (mode === 'live')) return
  throw new WrongChain(
    test === undefined
      ? `the node of ${network} is on the main network, and a sandbox's money is invented: connect a test network`
      : `the node of ${network} is on ${test}, and live mode needs the main network`,
  )
}
