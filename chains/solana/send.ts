import { RpcError } from '../kit/json-rpc.ts'
import type { BroadcastAnswer, BroadcastWithdrawal, SignedTransaction } from '../../src/networks/network.ts'
import type { NetworkFee } from '../../src/networks/moved-on-chain.ts'
import { DestinationRefused } from '../../src/networks/node-failure.ts'
import { feeIn, GAS_ASSET, type SolanaChain } from './chain.ts'
import { plansOf } from './destinations.ts'
import { priceMax, unitPriceNow, UNITS_TYPICAL } from './fees.ts'
import { feeOf, paymentIn, signAgain } from './transaction.ts'

/** Sends bytes to the network, which leaves it to the sender to repeat them. Throws RpcError where the node refuses them. */
export const send = ({ rpc }: SolanaChain, { raw_transaction }: SignedTransaction): Promise<string> =>
  rpc.call<string>('sendTransaction', raw_transaction.toString('base64'), {
    encoding: 'base64',
    skipPreflight: true,
    maxRetries: 0,
  })

/** Broadcasts signed withdrawals. None is ever refused for good: its bytes are valid as long as the nonce has its value. */
export async function broadcast(
  chain: SolanaChain,
  withdrawals: BroadcastWithdrawal[],
): Promise<BroadcastAnswer[]> {
  await chain.facts()
  return Promise.all(
    withdrawals.map((sent) =>
      send(chain, sent).then(
        () => ({ accepted: true }) as const,
        (error: unknown): BroadcastAnswer => {
          if (!(error instanceof RpcError)) throw error
          return { accepted: false, reason: { code: 'NODE_REFUSED', detail: error.message } }
        },
      ),
    ),
  )
}

/**
 * Signs the same payments again on the same values of their nonces, at the present price of a unit, where their own is lower.
 * At most one of the two can be made. At least an eighth more is offered: less would be no reason to prefer it.
 */
export async function replace(
  chain: SolanaChain,
  withdrawals: BroadcastWithdrawal[],
): Promise<(SignedTransaction | undefined)[]> {
  await chain.facts()
  if (chain.hotWallet.isWatched) return withdrawals.map(() => undefined)
  const price = await unitPriceNow(chain)
  return withdrawals.map(({ raw_transaction }) => {
    const old = paymentIn(raw_transaction)
    // Another wallet's signature on the same nonce would be another payment.
    if (old?.from !== chain.hotWallet.address || old.unitPrice >= price) return undefined
    const raised = old.unitPrice + old.unitPrice / 8n + 1n
    const unitPrice = price > raised ? price : raised
    if (unitPrice > priceMax(chain, old.unitLimit)) return undefined
    return signAgain(chain.hotWallet, raw_transaction, unitPrice)
  })
}

/**
 * The network fee of a withdrawal at the current price, with the rent of the account that it makes for the recipient. Throws
 * DestinationRefused for a destination that the network does not pay.
 */
export async function estimateFee(
  chain: SolanaChain,
  asset: string,
  destination?: string,
): Promise<NetworkFee> {
  const facts = await chain.facts()
  const price = await unitPriceNow(chain)
  let rent = 0n
  if (destination !== undefined) {
    const [plan] = await plansOf(chain, facts, [{ asset, destination_address: destination }])
    if ('outcome' in plan! && plan.outcome === 'REFUSED') throw new DestinationRefused(plan.why)
    if ('payment' in plan!) rent = plan.rent
  } else if (asset !== GAS_ASSET) {
    const token = facts.tokens.get(asset)
    if (token !== undefined) rent = facts.rentOfToken(token.program)
  }
  return feeIn(feeOf({ unitPrice: price, unitLimit: UNITS_TYPICAL }) + rent)
}
