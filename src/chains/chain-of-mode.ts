import { NETWORKS, type CryptoNetwork } from '../contract/assets/catalogue.ts'
import type { BitcoinRpc } from './bitcoin/rpc.ts'
import type { NetworkAdapter } from './network.ts'
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

/** The methods that need the chain of the mode. */
const NEEDS_CHAIN = [
  'sign',
  'replace',
  'claimTransaction',
  'resend',
  'movedBy',
  'isOwnAddress',
  'planConsolidation',
  'newDepositAddress',
  'scanDeposits',
  'seeDeposits',
  'estimateFee',
  'status',
] as const

/**
 * Wraps an adapter of the Bitcoin family: before it signs, gives out an address or reads the chain, it asks the node for its
 * chain, once and again after each failure of the node. Signed transactions are broadcast and followed without that check.
 */
export function onChainOf(
  mode: Mode,
  network: CryptoNetwork,
  rpc: Pick<BitcoinRpc, 'call'>,
  adapter: NetworkAdapter,
): { adapter: NetworkAdapter; requireChain: () => Promise<void> } {
  let isRight = false
  async function requireChain(): Promise<void> {
    if (isRight) return
    const { chain } = await rpc.call<{ chain: string }>('getblockchaininfo')
    if ((chain === 'main') !== (mode === 'live'))
      throw new WrongChain(
        mode === 'live'
          ? `the node of ${network} is on the test network '${chain}', and live mode needs the main network`
          : `the node of ${network} is on the main network, and a sandbox's money is invented: connect a test network`,
      )
    isRight = true
  }
  const guarded = NEEDS_CHAIN.flatMap((name) => {
    const method = adapter[name]?.bind(adapter) as ((...asked: unknown[]) => Promise<unknown>) | undefined
    if (method === undefined) return []
    const afterCheck = async (...asked: unknown[]) => {
      await requireChain()
      return method(...asked).catch((error: unknown) => {
        // Another node may answer at the same address by then.
        if (error instanceof NodeFailure) isRight = false
        throw error
      })
    }
    return [[name, afterCheck] as const]
  })
  const checked = Object.fromEntries(guarded) as Partial<NetworkAdapter>
  return { adapter: { ...adapter, ...checked }, requireChain }
}
