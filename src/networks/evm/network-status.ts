import type { Database } from '../../db/database.ts'
import { balancesAt, offChain, type EvmChain } from './chain.ts'
import { headOf } from './node.ts'
import { unswept } from './sweeps/holdings.ts'
import { lostTransactions } from './taken-back.ts'
import type { NetworkStatus } from '../network.ts'

/** The balances of the hot wallet and of deposit addresses at one block, and the transactions that the chain has lost. */
export async function status(db: Database, chain: EvmChain): Promise<NetworkStatus> {
  await chain.ready()
  const block = await headOf(chain.node)
  const assets = [chain.gasAsset, ...chain.tokens.keys()]
  const { address } = chain.hotWallet
  const [balances, atDepositAddresses, lost] = await Promise.all([
    balancesAt(
      chain,
      block,
      assets.map((asset) => ({ address, asset })),
    ),
    unswept(db, chain, block),
    lostTransactions(db, chain),
  ])
  const amounts = (added: ReadonlyMap<string, bigint>) =>
    Object.fromEntries(
      assets.map((asset, index) => {
        return [asset, offChain(chain, asset, balances[index]! + (added.get(asset) ?? 0n))] as const
      }),
    )
  const takenBack = lost.map(({ raw_transaction: _, ...one }) => one)
  return {
    height: Number(block),
    held: amounts(atDepositAddresses),
    hotWallet: amounts(new Map()),
    ...(takenBack.length > 0 && { takenBack }),
  }
}
