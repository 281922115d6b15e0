import { NETWORKS, type CryptoNetwork } from '../contract/assets/catalogue.ts'
import { NodeFailure } from './node-failure.ts'

/**
 * A sandbox takes test networks only, because its money is invented; live mode takes main networks only, because a test
 * network's coins are worth nothing.
 */
export type Mode = 'sandbox' | 'live'

/** The node is on a main network in a sandbox, or on a test network in live mode. */
export class WrongChain extends NodeFailure {}

const MAIN_CHAIN_IDS: ReadonlyMap<number, string> = new Map(
  Object.entries(NETWORKS).flatMap(([name, { chainId }]) => (chainId === undefined ? [] : [[chainId, name]])),
)

/** Throws an Error when the mode does not allow this chain id of an EVM network. */
export function requireChainId(network: CryptoNetwork, chainId: number, mode: Mode): void {
  const { chainId: main, testChainId } = NETWORKS[network]
  if (mode === 'live' && chainId !== main)
    throw new Error(`${chainId} is not the main network of ${network} (${main}), which live mode needs`)
  const named = MAIN_CHAIN_IDS.get(chainId)
  if (mode === 'sandbox' && named !== undefined)
    throw new Error(
      `${chainId} is the main network of ${named}, and a sandbox's money is invented: use a test network's chain id (of ${network}: ${testChainId})`,
    )
}
