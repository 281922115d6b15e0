import type { Hex } from 'viem'
import { decodeFunctionData, encodeFunctionData, getAddress, parseAbi } from 'viem/utils'
import { parseAmount } from '../../src/contract/assets/amount.ts'
import { findAsset } from '../../src/contract/assets/catalogue.ts'
import { canonicalOf, differences, type PaymentOn } from '../../src/networks/signed-payment.ts'
import type { Token } from './chain.ts'
import { isOurs, parse, type EvmTransaction } from './transaction.ts'

const ERC20 = parseAbi(['function transfer(address to, uint256 amount) returns (bool)'])

/** Who a transfer of the native asset or of one of these tokens pays; undefined for any other transaction. */
export function recipientOf(
  tokens: ReadonlyMap<string, Token>,
  { to, value, data }: EvmTransaction,
): Hex | undefined {
  if (data === undefined) return getAddress(to)
  const isToken = [...tokens.values()].some(({ address }) => address === getAddress(to))
  if (!isToken || value !== 0n) return undefined
  try {
    const { functionName, args } = decodeFunctionData({ abi: ERC20, data })
    return encodeFunctionData({ abi: ERC20, functionName, args }) === data ? getAddress(args[0]) : undefined
  } catch {
    return undefined
  }
}

/** How signed bytes differ from the payment that was asked for (`Family.disagreementOf`). */
export function disagreementOf(
  payment: PaymentOn,
  tokens: Readonly<Record<string, string>> = {},
): string | undefined {
  const { network, raw_transaction, asset, amount } = payment
  if (!isOurs(raw_transaction)) return 'its bytes are no transaction of Bursar (EIP-1559)'
  const { to, value, data } = parse(raw_transaction)
  const { contractAddress, decimals } = findAsset(asset)!.networks[network]!
  const units = parseAmount(amount, decimals)
  const token = tokens[asset] ?? contractAddress
  const wanted = canonicalOf(payment)
  if (token === undefined)
    return differences([
      ['to', getAddress(to), wanted],
      ['value', value, units],
      ['data', data ?? 'none', 'none'],
    ])
  const [recipient, moved] = decodeFunctionData({ abi: ERC20, data: data ?? '0x' }).args as [Hex, bigint]
  return differences([
    ['contract', getAddress(to), getAddress(token)],
    ['value', value, 0n],
    ['recipient', getAddress(recipient), wanted],
    ['amount', moved, units],
  ])
}
