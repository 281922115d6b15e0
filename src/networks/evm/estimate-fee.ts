import type { Hex } from 'viem'
import { hexToBigInt, numberToHex } from 'viem/utils'
import { isNative, offChain, transferOf, type EvmChain } from './chain.ts'
import { feesNow, gasWithRoom, PLAIN_GAS, publishingFee, TOKEN_GAS } from './fees.ts'
import { gasLimitOf } from './gas.ts'
import { NodeError, says, type Call } from './node.ts'
import { takesTooMuch } from './refusals.ts'
import type { NetworkFee } from '../network.ts'
import { DestinationRefused } from '../node-failure.ts'

/**
 * The network fee of a withdrawal at the current fees. The estimate for a transfer of nothing to the wallet itself shows
 * where gas counts differently. The estimate for a single unit to the destination shows how much gas its code takes,
 * whatever the hot wallet holds now. Throws DestinationRefused where that is more than is paid.
 */
export async function estimateFee(chain: EvmChain, asset: string, destination?: string): Promise<NetworkFee> {
  await chain.ready()
  const from = chain.hotWallet.address
  const estimate = (to: Hex, units: bigint, limit?: bigint): Call => {
    const { value, ...call } = transferOf(chain, asset, to, units)
    const gas = limit === undefined ? {} : { gas: numberToHex(limit) }
    return ['eth_estimateGas', { from, ...call, value: numberToHex(value), ...gas }]
  }
  const [fees, publishing, [toItself]] = await Promise.all([
    feesNow(chain),
    publishingFee(chain),
    chain.node.each<Hex>([estimate(from, 0n)]),
  ])
  const { most, isMeasured } = gasLimitOf(chain, asset, toItself!)
  const [toDestination] =
    destination === undefined ? [] : await chain.node.each<Hex>([estimate(destination as Hex, 1n, most)])
  if (isMeasured && toDestination instanceof NodeError && says(toDestination, 'outOfGas'))
    throw new DestinationRefused(takesTooMuch(most))
  // A destination without an estimate now (the wallet is empty, the token is paused) is assumed to be a typical one.
  const gasIn = (answer: Hex | NodeError | undefined) =>
    answer === undefined || answer instanceof NodeError ? 0n : hexToBigInt(answer)
  const [own, needed] = [gasIn(toItself), gasIn(toDestination)]
  const typical = isNative(chain, asset) ? PLAIN_GAS : TOKEN_GAS
  const larger = needed > own ? needed : own
  const gas = larger > typical ? gasWithRoom(larger) : typical
  return { asset: chain.gasAsset, amount: offChain(chain, chain.gasAsset, gas * fees.current + publishing) }
}
