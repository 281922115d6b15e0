import type { Database } from '../../src/db/database.ts'
import type { NetworkStatus } from '../../src/networks/wallet-status.ts'
import { nonceOf, readAccounts } from './accounts.ts'
import { GAS_ASSET, offChain, type SolanaChain } from './chain.ts'
import { accountOf, assetsOf, unitsIn } from './deposit-accounts.ts'
import { nonceAccounts } from './lanes.ts'
import { sumsAtAddresses } from './sweeps/holdings.ts'

/**
 * The balances of the hot wallet at one slot, with the rent of its nonce accounts, which it can have back, and those of
 * deposit addresses. These are read first: what a sweep moves meanwhile counts twice, and is never missing.
 */
export async function status(db: Database, chain: SolanaChain): Promise<NetworkStatus> {
  const { tokens } = await chain.facts()
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
    held: amounts((asset) => (atAddresses.get(asset) ?? 0n) + (asset === GAS_ASSET ? rents : 0n)),
    hotWallet: amounts(() => 0n),
  }
}
