import { RpcError } from '../kit/json-rpc.ts'
import { onceForEach } from '../kit/once-for-each.ts'
import type { BroadcastAnswer, BroadcastWithdrawal, SignedTransaction } from '../../src/networks/network.ts'
import type { NetworkFee } from '../../src/networks/moved-on-chain.ts'
import { DestinationRefused } from '../../src/networks/node-failure.ts'
import type { Transaction } from '../../src/db/database.ts'
import { feeIn, GAS_ASSET, type SolanaChain } from './chain.ts'
import { plansOf } from './destinations.ts'
import { larger, smaller } from '../kit/units.ts'
import { isAtCeiling, priceFor, priceMax, tooCheap, unitPriceNow, UNITS_TYPICAL } from './fees.ts'
import { keepReplaced } from './lanes.ts'
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
  const sendOnce = onceForEach<SignedTransaction, string>(
    ({ crypto_tx_hash }) => crypto_tx_hash,
    (sent) => send(chain, sent),
  )
  return Promise.all(
    withdrawals.map((sent) =>
      sendOnce(sent).then(
        (): BroadcastAnswer => ({ accepted: true, ...tooCheap(chain, sent) }),
        (error: unknown): BroadcastAnswer => {
          if (!(error instanceof RpcError)) throw error
          return { accepted: false, reason: { code: 'NODE_REFUSED', detail: error.message } }
        },
      ),
    ),
  )
}

/**
 * Signs the same payments again on the same values of their nonces, for half as much more or the present price of a unit, up to
 * the ceiling: whatever a node says of prices, no block has taken them for what they offer. At most one of the two can be made.
 */
export async function replace(
  tx: Transaction,
  chain: SolanaChain,
  withdrawals: BroadcastWithdrawal[],
): Promise<(SignedTransaction | undefined)[]> {
  await chain.facts()
  if (chain.hotWallet.isWatched || chain.hotWallet.isRemote) return withdrawals.map(() => undefined)
  const price = await unitPriceNow(chain)
  const replacements = new Map<string, SignedTransaction>()
  for (const { raw_transaction, crypto_tx_hash } of withdrawals) {
    const old = replacements.has(crypto_tx_hash) ? undefined : paymentIn(raw_transaction)
    // Another wallet's signature on the same nonce would be another payment.
    if (old?.from !== chain.hotWallet.address || isAtCeiling(chain, old)) continue
    const raised = larger(price, old.unitPrice + old.unitPrice / 2n + 1n)
    const unitPrice = smaller(raised, priceMax(chain, old.unitLimit, old.transfers.length))
    const signed = signAgain(chain.hotWallet, raw_transaction, unitPrice)
    await keepReplaced(tx, old, signed.crypto_tx_hash)
    replacements.set(crypto_tx_hash, signed)
  }
  return withdrawals.map(({ crypto_tx_hash, crypto_tx_index, payments }) => {
    const signed = replacements.get(crypto_tx_hash)
    // The accounts of the new bytes have the order of the old ones.
    return signed && { ...signed, ...(crypto_tx_index !== undefined && { crypto_tx_index, payments }) }
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
  const unitPrice = priceFor(chain, price, UNITS_TYPICAL)
  return feeIn(feeOf({ unitPrice, unitLimit: UNITS_TYPICAL }) + rent)
}
