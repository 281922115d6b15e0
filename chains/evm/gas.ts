import type { Hex } from 'viem'
import { hexToBigInt, numberToHex } from 'viem/utils'
import { isNative, transferOf, type EvmChain } from './chain.ts'
import { gasWithRoom, PLAIN_GAS, TOKEN_GAS, type Fees } from './fees.ts'
import { at, NodeError } from './node.ts'

/**
 * Most gas that the code of a destination may take, on top of the transfer's own. Wallets that are contracts take about
 * 10,000 to 60,000; a destination that takes more is a computation at the hot wallet's expense.
 */
const CODE_GAS_MAX = 100_000n

/** The most gas that a transfer of an asset may take. */
export interface GasLimit {
  most: bigint
  /** What a transfer to an address without code takes, with room. */
  own: bigint
  /** The node has estimated a transfer to the hot wallet itself: the limit fits this chain. */
  isMeasured: boolean
}

/**
 * The gas limit of each trial, estimate and transaction. Without a limit a node would spend its own (50 million gas and
 * more) on a destination that never returns, and 50 such calls in one request take longer than the request may. `toItself`
 * is the estimate of a transfer to the hot wallet itself: on some rollups gas pays for publishing, too.
 */
export function gasLimitOf(chain: EvmChain, asset: string, toItself: Hex | NodeError): GasLimit {
  const typical = isNative(chain, asset) ? PLAIN_GAS : TOKEN_GAS
  const isMeasured = !(toItself instanceof NodeError)
  const estimate = isMeasured ? gasWithRoom(hexToBigInt(toItself)) : 0n
  const own = estimate > typical ? estimate : typical
  return { most: own + CODE_GAS_MAX, own, isMeasured }
}

export async function gasLimits(
  chain: EvmChain,
  block: bigint,
  withdrawals: readonly { asset: string }[],
): Promise<(withdrawal: { asset: string }) => GasLimit> {
  const from = chain.hotWallet.address
  const assets = [...new Set(withdrawals.map(({ asset }) => asset))]
  const estimates = await chain.node.each<Hex>(
    assets.map((asset) => {
      const { value, ...call } = transferOf(chain, asset, from, 0n)
      return ['eth_estimateGas', { from, ...call, value: numberToHex(value) }, at(block)] as const
    }),
  )
  const limits = new Map(assets.map((asset, index) => [asset, gasLimitOf(chain, asset, estimates[index]!)]))
  return ({ asset }) => limits.get(asset)!
}

/** The transaction's price: without it, a contract that refuses every price but zero would deceive the estimate. */
export const priceFieldsOf = ({ offer, tip }: Fees) => ({
  maxFeePerGas: numberToHex(offer),
  maxPriorityFeePerGas: numberToHex(tip < offer ? tip : offer),
})
