import type { Hex } from 'viem'
import { hexToBigInt, numberToHex } from 'viem/utils'
import { isNative, offChain, transferOf, type EvmChain } from './chain.ts'
import { feesNow, gasWithRoom, PLAIN_GAS, publishingFee, TOKEN_GAS, type Fees } from './fees.ts'
import { gasLimitOf } from './gas.ts'
import { NodeError, says, type Call } from './node.ts'
import { takesTooMuch } from './refusals.ts'
import type { NetworkFee } from '../../src/networks/moved-on-chain.ts'
import { DestinationRefused } from '../../src/networks/node-failure.ts'

/** An address that nobody has a key to. A transfer to it takes the gas of one to any address without code and balance. */
const NOBODY = '0x5b1f0d3c9a7e42868d0e6f1b37c2a4958e6d7b10'
/** Addresses below this one may belong to the chain itself, which has no code for them. */
const ORDINARY_FROM = 0x10000n

/** The part that all estimates of a block share. */
interface OfBlock {
  number: Hex
  fees: Promise<[Fees, publishing: bigint]>
  /** By asset: the gas of a transfer of nothing to the wallet itself, and of one unit to an address without code. */
  gas: Map<string, Promise<(Hex | NodeError)[]>>
}
const newest = new WeakMap<EvmChain, OfBlock>()

/** The part that all estimates of a block share: asked for once, and again after a failure. */
function ofBlock(chain: EvmChain, number: Hex): OfBlock {
  const known = newest.get(chain)
  if (known?.number === number) return known
  const fees = Promise.all([feesNow(chain), publishingFee(chain)])
  const made: OfBlock = { number, fees, gas: new Map() }
  newest.set(chain, made)
  fees.catch(() => newest.delete(chain))
  return made
}

/**
 * The network fee of a withdrawal at the current fees. The node estimates two transfers. That of nothing to the wallet itself
 * shows whether the chain counts gas differently. That of a single unit to the destination shows how much gas its code takes,
 * whatever the hot wallet holds now; destinations without code share one estimate. Throws DestinationRefused where the code
 * takes more gas than is paid.
 */
export async function estimateFee(chain: EvmChain, asset: string, destination?: string): Promise<NetworkFee> {
  await chain.ready()
  const from = chain.hotWallet.address
  const estimate = (to: Hex, units: bigint, limit?: bigint): Call => {
    const { value, ...call } = transferOf(chain, asset, to, units)
    const gas = limit === undefined ? {} : { gas: numberToHex(limit) }
    return ['eth_estimateGas', { from, ...call, value: numberToHex(value), ...gas }]
  }
  const [number, code] = await chain.node.all<Hex>([
    ['eth_blockNumber'],
    ...(destination === undefined ? [] : ([['eth_getCode', destination, 'latest']] as const)),
  ])
  const block = ofBlock(chain, number!)
  if (!block.gas.has(asset)) {
    const asking = chain.node.each<Hex>([estimate(from, 0n), estimate(NOBODY, 1n)])
    block.gas.set(asset, asking)
    asking.catch(() => block.gas.delete(asset))
  }
  const [[fees, publishing], [toItself, toNobody]] = await Promise.all([block.fees, block.gas.get(asset)!])
  const { most, isMeasured } = gasLimitOf(chain, asset, toItself!)
  const isPlain = destination === undefined || (code === '0x' && BigInt(destination) >= ORDINARY_FROM)
  const [toDestination] = isPlain
    ? [toNobody]
    : await chain.node.each<Hex>([estimate(destination as Hex, 1n, most)])
  if (!isPlain && isMeasured && toDestination instanceof NodeError && says(toDestination, 'outOfGas'))
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
