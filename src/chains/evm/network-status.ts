import type { Database } from '../../db/database.ts'
import { balancesAt, offChain, walletsOf, type EvmChain } from './chain.ts'
import { headOf } from './node.ts'
import { unswept } from './sweeps/holdings.ts'
import { lostTransactions } from './taken-back.ts'
import type { NetworkStatus } from '../network.ts'

/** The balances of the hot wallets and of deposit addresses at one block, and the transactions that the chain has lost. */
export async function status(db: Database, chain: EvmChain): Promise<NetworkStatus> {
  await chain.ready()
  const block = await headOf(chain.node)
  const assets = [chain.gasAsset, ...chain.tokens.keys()]
  const wallets = walletsOf(chain)
  const [balances, atDepositAddresses, lost] = await Promise.all([
    balancesAt(
      chain,
      block,
      wallets.flatMap(({ address }) => assets.map((asset) => ({ address, asset }))),
    ),
    unswept(db, chain, block),
    lostTransactions(db, chain),
  ])
  /** What the n-th wallet has of the n-th asset. */
  const has = (wallet: number, asset: number) => balances[wallet * assets.length + asset]!
  const amounts = (unitsOf: (asset: number) => bigint) =>
    Object.fromEntries(assets.map((asset, index) => [asset, offChain(chain, asset, unitsOf(index))]))
  const formerWallets = chain.formerWallets.map(({ address }, index) => {
    return { address, held: amounts((asset) => has(index + 1, asset)) }
  })
  const takenBack = lost.map(({ raw_transaction: _, ...one }) => one)
  return {
    height: Number(block),
    held: amounts((asset) =>
      wallets.reduce(
        (sum, _, wallet) => sum + has(wallet, asset),
        atDepositAddresses.get(assets[asset]!) ?? 0n,
      ),
    ),
    hotWallet: amounts((asset) => has(0, asset)),
    ...(formerWallets.length > 0 && { formerWallets }),
    ...(takenBack.length > 0 && { takenBack }),
  }
}
