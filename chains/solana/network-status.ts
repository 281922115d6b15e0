import type { Database } from '../../src/db/database.ts'
import type { NetworkStatus } from '../../src/networks/wallet-status.ts'
import { nonceOf, readAccounts } from './accounts.ts'
import { GAS_ASSET, offChain, type SolanaChain } from './chain.ts'
import { accountOf, assetsOf, unitsIn } from './deposit-accounts.ts'
import { nonceAccounts } from './lanes.ts'
import { RpcError } from '../kit/json-rpc.ts'
import { behindOf, type NodeLook } from '../kit/nodes.ts'
import type { SolanaRpc } from './node.ts'
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
  const wallet = chain.hotWallet.address
  const places = assetsOf(tokens).map((asset) => ({ asset, account: accountOf(tokens, wallet, asset)! }))
  const lanes = nonceAccounts(chain)
  const accounts = await readAccounts(chain.rpc, [...places.map(({ account }) => account), ...lanes])
  const rents = lanes.reduce((sum, lane) => {
    const account = accounts.get(lane)
    return nonceOf(account, wallet) === undefined ? sum : sum + account!.lamports
  }, 0n)
  const amounts = (more: (asset: string) => bigint) =>
    Object.fromEntries(
      places.map((place) => {
        const { asset } = place
        return [asset, offChain(asset, unitsIn(place, accounts) + more(asset))]
      }),
    )
  return {
    height: Number(accounts.slot),
    ...behind,
    held: amounts((asset) => (atAddresses.get(asset) ?? 0n) + (asset === GAS_ASSET ? rents : 0n)),
    hotWallet: amounts(() => 0n),
  }
}
