import type { CryptoNetwork } from '../../src/contract/assets/catalogue.ts'
import type { Mode } from '../../src/networks/chain-of-mode.ts'
import { requireChainOfMode } from '../kit/chain-of-mode.ts'
import type { NetworkAdapter } from '../../src/networks/network.ts'
import { checkedOnce } from '../../src/networks/genesis.ts'
import { staleAfterFailures } from '../kit/stale-after-failures.ts'
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
  requireWallet: () => Promise<void>,
): { adapter: NetworkAdapter; requireChain: () => Promise<void> } {
  const check = checkedOnce(async () => {
    const { chain } = await rpc.call<{ chain: string }>('getblockchaininfo')
    requireChainOfMode(network, mode, chain === 'main' ? undefined : `the test network '${chain}'`)
    await requireWallet()
  })
  const guarded = NEEDS_CHAIN.flatMap((name) => {
    const method = adapter[name]?.bind(adapter) as ((...asked: unknown[]) => Promise<unknown>) | undefined
    if (method === undefined) return []
    const afterCheck = async (...asked: unknown[]) => {
      await check.get()
      return method(...asked)
    }
    return [[name, afterCheck] as const]
  })
  const checked: Partial<NetworkAdapter> = staleAfterFailures(check, Object.fromEntries(guarded))
  return { adapter: { ...adapter, ...checked }, requireChain: () => check.get() }
}
