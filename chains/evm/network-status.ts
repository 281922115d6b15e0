import type { Hex } from 'viem'
import { hexToNumber } from 'viem/utils'
import type { Database } from '../../src/db/database.ts'
import { heldAtAddresses } from '../kit/holdings.ts'
import { balancesAt, lanesOf, offChain, onChain, walletsOf, type EvmChain } from './chain.ts'
import { laneStatus, seeNonces } from './hot-wallet.ts'
import { headOf, isSyncing, NodeError, type Block, type EvmNode } from './node.ts'
import { behindOf, type NodeLook } from '../kit/nodes.ts'
import { lostTransactions } from './taken-back.ts'
import type { LaneStatus, NetworkStatus } from '../../src/networks/wallet-status.ts'

/** The next nonces by the signer's journal, or why it does not answer; undefined where there is none. */
const signerStatus = async ({ signer, network }: EvmChain) => {
  const wallets = await signer?.status?.().catch((error: Error) => error)
  if (wallets === undefined || wallets instanceof Error) return wallets
  const own = wallets.filter((wallet) => wallet.network === network)
  return new Map(own.map(({ wallet, next_nonce }) => [wallet, next_nonce]))
}

/** How far a node is. */
export async function lookAt(node: EvmNode): Promise<NodeLook> {
  const [newest, syncing] = await node.each([['eth_getBlockByNumber', 'latest', false], ['eth_syncing']])
  if (newest instanceof NodeError) throw newest
  const { number, timestamp } = newest as Block & { timestamp: Hex }
  const lacks = isSyncing(syncing) ? 'it is catching up with its chain' : undefined
  return { height: hexToNumber(number), madeAt: hexToNumber(timestamp), lacks }
}

/** The balances of the hot wallets and of deposit addresses at one block, and the transactions that the chain has lost. */
export async function status(db: Database, chain: EvmChain): Promise<NetworkStatus> {
  await chain.ready()
  const block = await headOf(chain.node)
  const assets = [chain.gasAsset, ...chain.tokens.keys()]
  const wallets = walletsOf(chain)
  const [balances, atDepositAddresses, lost, behind] = await Promise.all([
    balancesAt(
      chain,
      block,
      wallets.flatMap(({ address }) => assets.map((asset) => ({ address, asset }))),
    ),
    heldAtAddresses(db, chain, assets, {
      read: (holdings) =>
        balancesAt(
          chain,
          block,
          holdings.map(({ address, asset }) => ({ address: address as Hex, asset })),
        ),
      unitsOf: (asset, amount) => onChain(chain, asset, amount),
    }),
    lostTransactions(db, chain),
    behindOf(chain.mode, [...chain.nodes, ...(chain.verify?.nodes ?? [])], lookAt),
  ])
  /** What the n-th wallet has of the n-th asset. */
  const has = (wallet: number, asset: number) => balances[wallet * assets.length + asset]!
  const amounts = (unitsOf: (asset: number) => bigint) =>
    Object.fromEntries(assets.map((asset, index) => [asset, offChain(chain, asset, unitsOf(index))]))
  const paying = chain.lanes.length
  const before = paying + (chain.gasWallet === undefined ? 0 : 1)
  const formerWallets = chain.formerWallets.map(({ address }, index) => {
    return { address, held: amounts((asset) => has(before + index, asset)) }
  })
  const views = paying > 1 || chain.signer !== undefined ? lanesOf(chain) : []
  const seen = await Promise.all(views.map(seeNonces))
  const signer = await signerStatus(chain)
  const lanes: LaneStatus[] = []
  for (const [index, lane] of views.entries()) {
    const held = amounts((asset) => has(index, asset))
    lanes.push({ lane: lane.hotWallet.address, held, ...(await laneStatus(db, lane, seen[index]!, signer)) })
  }
  const takenBack = lost.map(({ raw_transaction: _, ...transaction }) => transaction)
  return {
    height: Number(block),
    ...behind,
    held: amounts((asset) =>
      wallets.reduce(
        (sum, _, wallet) => sum + has(wallet, asset),
        atDepositAddresses.get(assets[asset]!) ?? 0n,
      ),
    ),
    hotWallet: amounts((asset) => chain.lanes.reduce((sum, _, lane) => sum + has(lane, asset), 0n)),
    ...(lanes.length > 0 && { lanes }),
    ...(signer !== undefined && {
      signer: signer instanceof Error ? { reachable: false, error: signer.message } : { reachable: true },
    }),
    ...(formerWallets.length > 0 && { formerWallets }),
    ...(takenBack.length > 0 && { takenBack }),
  }
}
