import type { Hex } from 'viem'
import { hexToBigInt, hexToNumber, numberToHex, serializeTransaction } from 'viem/utils'
import { balancesAt, lanesOf, onChain, transferOf, type EvmChain } from './chain.ts'
import { feesNow, gasWithRoom } from './fees.ts'
import { headOf, NodeError } from './node.ts'
import type { EvmTransaction } from './transaction.ts'
import type { Refill } from '../../src/networks/network.ts'

/**
 * The payment that fills up the wallet which has the least of an asset, from the address of cold storage that has the most
 * of it: its transaction as it is now, to be signed where the keys of cold storage are.
 */
export async function refill(
  chain: EvmChain,
  asset: string,
  amount: string,
  cold: readonly Hex[],
): Promise<Refill> {
  await chain.ready()
  const block = await headOf(chain.node)
  const wallets = lanesOf(chain).map(({ hotWallet }) => hotWallet.address)
  const addresses = [...wallets, ...cold]
  const balances = await balancesAt(
    chain,
    block,
    addresses.map((address) => ({ address, asset })),
  )
  const sorted = (addresses: readonly Hex[], from: number) =>
    addresses
      .map((address, index) => ({ address, units: balances[from + index]! }))
      .sort((a, b) => (a.units < b.units ? -1 : a.units > b.units ? 1 : 0))
  const to = sorted(wallets, 0)[0]!.address
  const source = sorted(cold, wallets.length).at(-1)
  if (source === undefined) return { to, lacks: 'cold_addresses names none that could pay it' }
  const { address: from } = source
  const call = transferOf(chain, asset, to, onChain(chain, asset, amount))
  const [[nonce], [gas], fees] = await Promise.all([
    chain.node.all<Hex>([['eth_getTransactionCount', from, 'pending']]),
    chain.node.each<Hex>([['eth_estimateGas', { from, ...call, value: numberToHex(call.value) }]]),
    feesNow(chain),
  ])
  if (gas === undefined || gas instanceof NodeError)
    return { to, from, lacks: `the node says that it would fail: ${gas?.message ?? 'no answer'}` }
  const transaction: EvmTransaction = {
    type: 'eip1559',
    chainId: chain.chainId,
    nonce: hexToNumber(nonce!),
    ...call,
    gas: gasWithRoom(hexToBigInt(gas)),
    maxFeePerGas: fees.offer,
    maxPriorityFeePerGas: fees.tip < fees.offer ? fees.tip : fees.offer,
  }
  const fields = Object.entries(transaction).map(([name, value]) => [name, String(value)] as const)
  return { to, from, unsigned: { ...Object.fromEntries(fields), bytes: serializeTransaction(transaction) } }
}
