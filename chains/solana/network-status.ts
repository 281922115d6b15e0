import type { Address } from '@solana/addresses'
import type { Database } from '../../src/db/database.ts'
import type { NetworkStatus } from '../../src/networks/wallet-status.ts'
import { nonceOf, readAccounts } from './accounts.ts'
import { GAS_ASSET, offChain, type SolanaChain } from './chain.ts'
import { accountOf, assetsOf, unitsIn } from './deposit-accounts.ts'
import { nonceAccounts, walletsOf } from './lanes.ts'
import { RpcError } from '../kit/json-rpc.ts'
import { behindOf, type NodeLook } from '../kit/nodes.ts'
import type { SolanaRpc } from './node.ts'
import { sum } from '../kit/units.ts'
import { sumsAtAddresses } from './sweeps/holdings.ts'

/** How far a node is. Where it is behind, the error of getHealth (-32005) says how many slots. */
export async function lookAt(rpc: SolanaRpc): Promise<NodeLook> {
  const slot = await rpc.call<string>('getSlot', { commitment: 'finalized' })
  const [health, time] = await rpc.batch([['getHealth'], ['getBlockTime', Number(slot)]])
  const lacks = health instanceof RpcError && health.code === -32_005 ? health.reason : undefined
  return { height: Number(slot), madeAt: typeof time === 'string' ? Number(time) : undefined, lacks }
}

/**
 * The balances of the hot wallet at one slot, with the rent of its nonce accounts, which it can have back, and those of
 * deposit addresses. These are read first: what a sweep moves meanwhile counts twice, and is never missing.
 */
export async function status(db: Database, chain: SolanaChain): Promise<NetworkStatus> {
  const { tokens } = await chain.facts()
  const nodes = [{ field: 'rpc_url', node: chain.rpc }, ...(chain.second?.nodes ?? [])]
  const behind = await behindOf(chain.mode, nodes, lookAt)
  const atAddresses = await sumsAtAddresses(db, chain)
  const wallets = walletsOf(chain)
  const lanes = nonceAccounts(chain)
  const places = wallets.flatMap((wallet) =>
    assetsOf(tokens).map((asset) => ({ wallet, asset, account: accountOf(tokens, wallet, asset)! })),
  )
  const named = [...places, ...lanes].map(({ account }) => account)
  const accounts = await readAccounts(chain.rpc, named)
  const rentsOf = (owner: Address) =>
    sum(
      lanes.map(({ wallet, account: lane }) => {
        const account = accounts.get(lane)
        return wallet !== owner || nonceOf(account, owner) === undefined ? 0n : account!.lamports
      }),
    )
  /** What wallets have, in their own accounts and in those of nonces. */
  const amounts = (of: readonly Address[], more: (asset: string) => bigint) =>
    Object.fromEntries(
      assetsOf(tokens).map((asset) => {
        const own = places.filter((place) => place.asset === asset && of.includes(place.wallet))
        return [asset, offChain(asset, sum(own.map((place) => unitsIn(place, accounts))) + more(asset))]
      }),
    )
  const rents = (of: readonly Address[], asset: string) => (asset === GAS_ASSET ? sum(of.map(rentsOf)) : 0n)
  const formerWallets = chain.formerWallets.map((address) => ({
    address,
    held: amounts([address], (asset) => rents([address], asset)),
  }))
  return {
    height: Number(accounts.slot),
    ...behind,
    held: amounts(wallets, (asset) => (atAddresses.get(asset) ?? 0n) + rents(wallets, asset)),
    hotWallet: amounts(wallets.slice(0, 1), () => 0n),
    ...(formerWallets.length > 0 && { formerWallets }),
  }
}
