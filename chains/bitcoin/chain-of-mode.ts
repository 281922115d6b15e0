import type { CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import { WrongChain, type Mode } from '../../src/networks/chain-of-mode.ts'
import type { NetworkAdapter } from '../../src/networks/network.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import type { BitcoinRpc } from '../kit/json-rpc.ts'

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
