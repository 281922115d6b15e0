import type { NetworkStatus } from '../wallet-status.ts'
import { nonceOf, readAccounts, tokenAccountOf } from './accounts.ts'
import { GAS_ASSET, lamportsText, offChain, type SolanaChain } from './chain.ts'
import { associatedOf } from './instructions.ts'
import { laneAccounts } from './lanes.ts'

/** The balances of the hot wallet at one slot, with the rent of its nonce accounts, which it can have back. */
export async function status(chain: SolanaChain): Promise<NetworkStatus> {
  const { tokens } = await chain.facts()
  const wallet = chain.hotWallet.address
  const sources = [...tokens].map(
    ([asset, { mint, program }]) => [asset, associatedOf(wallet, mint, program)] as const,
  )
  const lanes = laneAccounts(chain).map(({ account }) => account)
  const accounts = await readAccounts(chain.rpc, [wallet, ...sources.map(([, account]) => account), ...lanes])
  const lamports = accounts.get(wallet)?.lamports ?? 0n
  const rents = lanes.reduce((sum, lane) => {
    const account = accounts.get(lane)
    return nonceOf(account, wallet) === undefined ? sum : sum + account!.lamports
  }, 0n)
  const hotWallet = Object.fromEntries([
    [GAS_ASSET, lamportsText(lamports)],
    ...sources.map(([asset, account]) => [
      asset,
      offChain(asset, tokenAccountOf(accounts.get(account))?.units ?? 0n),
    ]),
  ]) as Record<string, string>
  return {
    height: Number(accounts.slot),
    held: { ...hotWallet, [GAS_ASSET]: lamportsText(lamports + rents) },
    hotWallet,
  }
}
