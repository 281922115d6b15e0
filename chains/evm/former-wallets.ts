import { formatAmount, parseAmount } from '../../src/contract/assets/amount.ts'
import type { Transaction } from '../../src/db/database.ts'
import type { ConsolidationPlan, Withdrawal } from '../../src/networks/network.ts'
import { isNative, offChain, type EvmChain } from './chain.ts'
import { feeMax, GWEI, publishingFee } from './fees.ts'
import { gasLimits } from './gas.ts'
import { openReservation } from './hot-wallet.ts'

/**
 * A consolidation moves the holdings of former wallets to the hot wallet: one transfer for each asset, tokens first, since
 * the native asset pays for them.
 */

/** The former wallets whose key this process has. */
export const formerLanesOf = (chain: EvmChain): EvmChain[] =>
  chain.formerWallets.flatMap((hotWallet) => (hotWallet.isWatched ? [] : [{ ...chain, hotWallet }]))

/** The most that a consolidation offers for a unit of gas, in wei; undefined for any other withdrawal. */
export const gasPriceMaxOf = ({ consolidation_fee_max }: Withdrawal): bigint | undefined =>
  consolidation_fee_max == null ? undefined : parseAmount(consolidation_fee_max, GWEI)

/**
 * Plans the next transfer from a former wallet to the hot wallet: all of a token, or the native asset less the fee at
 * `maxFeeRate` gwei, by default the ceiling. From here to the commit, nobody else signs. Throws an Error where the rate is
 * no amount, a wallet may not sign or lacks gas, or there is nothing to move.
 */
export async function planMove(
  tx: Transaction,
  chain: EvmChain,
  maxFeeRate: string | undefined,
): Promise<ConsolidationPlan> {
  await chain.ready()
  const asked = maxFeeRate === undefined ? chain.feeCeiling : parseAmount(maxFeeRate, GWEI)
  if (asked === undefined || asked <= 0n) throw new Error('the fee rate must be an amount in gwei')
  const maxFeePerGas = asked < chain.feeCeiling ? asked : chain.feeCeiling
  const assets = [...chain.tokens.keys(), chain.gasAsset]
  for (const lane of formerLanesOf(chain)) {
    const { block, spendable, blockedReason } = await openReservation(tx, lane, assets)
    if (blockedReason !== undefined) throw new Error(blockedReason.detail)
    const gasOf = await gasLimits(
      lane,
      block,
      assets.map((asset) => ({ asset })),
    )
    const publishing = await publishingFee(lane)
    for (const asset of assets) {
      const fee = feeMax({ gas: gasOf({ asset }).own, maxFeePerGas }) + publishing
      const units = isNative(chain, asset) ? spendable.get(asset)! - fee : spendable.get(asset)!
      if (units <= 0n) continue
      const text = (wei: bigint) => `${offChain(chain, chain.gasAsset, wei)} ${chain.gasAsset}`
      if (spendable.get(chain.gasAsset)! < fee)
        throw new Error(
          `the former wallet ${lane.hotWallet.address} has ${asset}, and too little gas to move it: send it ${text(fee)}`,
        )
      return {
        asset,
        destination_address: chain.hotWallet.address,
        amount: offChain(chain, asset, units),
        coins: 1,
        fee_max: offChain(chain, chain.gasAsset, fee),
        max_fee_rate: formatAmount(maxFeePerGas, GWEI),
      }
    }
  }
  throw new Error('no former wallet with a key holds more than the fee of moving it')
}
