import type { Hex } from 'viem'
import { numberToHex } from 'viem/utils'
import { isNative, onChain, transferOf, type EvmChain } from './chain.ts'
import { feeMax, type Fees } from './fees.ts'
import { gasLimits, priceFieldsOf } from './gas.ts'
import type { HotWalletReservation } from './hot-wallet.ts'
import { at, NodeError, says, type Call } from './node.ts'
import { isFalse, takesTooMuch, WOULD_REVERT } from './refusals.ts'
import type { Reserved } from '../../src/networks/withdrawal-reader.ts'
import type { PaymentRefusal } from '../../src/networks/network.ts'
import { refusedDestination } from '../../src/networks/waiting.ts'

/**
 * The refusals, by transfer id, of those reserved withdrawals that would be refused once the hot wallet has enough for them.
 * The node tries the native asset as if the wallet had enough, by a state override of eth_call, which not every node has. It
 * tries a token with the amount that the wallet has. Otherwise the wallet would keep its money for a withdrawal to a contract
 * that reverts: it would block all others and never be paid.
 */
export async function refusedAmong(
  chain: EvmChain,
  { block, spendable }: Pick<HotWalletReservation, 'block' | 'spendable'>,
  fees: Fees,
  reserved: readonly Reserved[],
): Promise<Map<string, { outcome: 'REFUSED'; refusal: PaymentRefusal }>> {
  const from = chain.hotWallet.address
  const known = reserved.filter(({ asset }) => spendable.has(asset))
  if (known.length === 0) return new Map()
  const limitOf = await gasLimits(chain, block, known)
  const trialTo = (to: Hex, withdrawal: Reserved): Call => {
    const { asset, amount } = withdrawal
    const [asked, left] = [onChain(chain, asset, amount), spendable.get(asset)!]
    const most = left < 0n ? 0n : left
    const units = isNative(chain, asset) || asked < most ? asked : most
    const { value, ...call } = transferOf(chain, asset, to, units)
    const gas = limitOf(withdrawal).most
    const enough = value + feeMax({ gas, maxFeePerGas: fees.offer })
    const override = { [from]: { balance: numberToHex(enough) } }
    const move = { from, ...call, value: numberToHex(value), gas: numberToHex(gas) }
    return ['eth_call', { ...move, ...priceFieldsOf(fees) }, at(block), override]
  }
  const answers = await chain.node.each<Hex>(
    known.flatMap((payment) => [
      trialTo(payment.destination_address as Hex, payment),
      trialTo(from, payment),
    ]),
  )
  return new Map(
    known.flatMap((withdrawal, index) => {
      const [toDestination, toItself] = [answers[2 * index]!, answers[2 * index + 1]!]
      // A transfer that fails to the wallet itself, too, says nothing about the destination.
      if (toItself instanceof NodeError || isFalse(toItself)) return []
      const { most, isMeasured } = limitOf(withdrawal)
      const ranOut = toDestination instanceof NodeError && says(toDestination, 'outOfGas')
      if (ranOut && !isMeasured) return []
      const reverts =
        toDestination instanceof NodeError ? says(toDestination, 'reverted') : isFalse(toDestination)
      if (!ranOut && !reverts) return []
      const refusal = refusedDestination(withdrawal, ranOut ? takesTooMuch(most) : WOULD_REVERT)
      return [[withdrawal.transfer_id, { outcome: 'REFUSED', refusal }] as const]
    }),
  )
}
