import assert from 'node:assert/strict'
import type { NetworkFee } from '../../src/networks/moved-on-chain.ts'
import { decimalOf, larger, minorOf, smaller } from './amounts.ts'
import { DestinationRefused } from '../../src/networks/node-failure.ts'
import { RpcError, type RpcCall } from '../kit/json-rpc.ts'
import { hotWalletAddresses, isMine, OWN_ADDRESS, type AddressInfo, type BitcoinWallet } from './wallet.ts'

/** Where the node has no estimate, the rate is this many times the minimum of its mempool. */
const FALLBACK_FEE_FACTOR = 10n

/** The fee for a size in virtual bytes at a rate per 1,000 of them, rounded up. Minor units. */
export const feeAt = (rate: bigint, vbytes: bigint): bigint => (rate * vbytes + 999n) / 1000n

/** The current fee rate, in minor units per 1,000 virtual bytes: the node's estimate, and at least the minimum of its mempool. */
export async function feeRate(wallet: BitcoinWallet): Promise<bigint> {
  return rateIn(await wallet.rpc.batch<unknown>(questions(wallet)), wallet)
}

const questions = ({ dialect }: BitcoinWallet): RpcCall[] => [dialect.estimate, ['getmempoolinfo']]

function rateIn([estimated, mempool]: unknown[], { ceiling }: BitcoinWallet): bigint {
  if (mempool instanceof RpcError) throw mempool
  const { mempoolminfee } = mempool as { mempoolminfee: string }
  const floor = minorOf(mempoolminfee)
  const estimate = estimateIn(estimated)
  if (estimate !== undefined) return larger(estimate, floor)
  return larger(smaller(floor * FALLBACK_FEE_FACTOR, ceiling), floor)
}

/**
 * The fee of a typical withdrawal now, at the ceiling's rate at most. Throws DestinationRefused for an address of the hot
 * wallet itself.
 */
export async function estimateFee(
  wallet: BitcoinWallet,
  asset: string,
  destination?: string,
): Promise<NetworkFee> {
  const { network, coin, dialect, ceiling, db, canonical, rpc } = wallet
  assert(asset === coin, `${network} has ${coin} only`)
  const asked: RpcCall[] = destination === undefined ? [] : [['getaddressinfo', destination]]
  const [estimated, mempool, info] = await rpc.batch<unknown>([...questions(wallet), ...asked])
  if (destination !== undefined && isMine(wallet, info as AddressInfo)) {
    const address = canonical(destination) ?? destination
    if ((await hotWalletAddresses(db, [address])).has(address)) throw new DestinationRefused(OWN_ADDRESS)
  }
  const rate = smaller(rateIn([estimated, mempool], wallet), ceiling)
  return { asset: coin, amount: decimalOf(feeAt(rate, dialect.typicalVbytes)) }
}

/** The estimated rate in a node's answer; undefined where the node has none. */
function estimateIn(answer: unknown): bigint | undefined {
  if (answer instanceof RpcError) throw answer
  const text = typeof answer === 'string' ? answer : (answer as { feerate?: string }).feerate
  const rate = text === undefined ? -1n : minorOf(text)
  return rate > 0n ? rate : undefined
}
