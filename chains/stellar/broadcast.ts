import type { BroadcastAnswer, BroadcastWithdrawal, EndedTransaction } from '../../src/networks/network.ts'
import { NodeFailure } from '../../src/networks/node-failure.ts'
import { reasonOfFailure } from '../../src/networks/waiting.ts'
import { onceForEach } from '../kit/once-for-each.ts'
import type { StellarChain } from './chain.ts'
import { HorizonRefusal } from './horizon.ts'
import { findTransaction } from './status.ts'

/**
 * Broadcasts kept bytes, those of a shared transaction once. None is refused for good: what cannot be made any more is VOID by
 * evidence of the ledger.
 */
export async function broadcast(
  chain: StellarChain,
  withdrawals: readonly BroadcastWithdrawal[],
): Promise<BroadcastAnswer[]> {
  await chain.horizon.root()
  const submitted = onceForEach(
    ({ crypto_tx_hash }: BroadcastWithdrawal) => crypto_tx_hash,
    ({ raw_transaction }): Promise<BroadcastAnswer> =>
      chain.horizon.submit(raw_transaction.toString('base64')).then(
        () => ({ accepted: true }),
        (error: unknown) => {
          if (!(error instanceof NodeFailure)) throw error
          return { accepted: false, reason: reasonOfFailure(error) }
        },
      ),
  )
  return Promise.all(withdrawals.map((withdrawal) => submitted(withdrawal)))
}

/** Broadcasts the bytes of a completed withdrawal again. A ledger is never taken back, so there is a reason only after a lie. */
export async function resend(chain: StellarChain, ended: EndedTransaction): Promise<void> {
  if ((await findTransaction(chain, ended.crypto_tx_hash)) !== undefined)
    throw new Error('the network has the transaction')
  await chain.horizon.submit(ended.raw_transaction.toString('base64')).catch((error: unknown) => {
    throw error instanceof HorizonRefusal ? new Error(`it can never be made: ${error.message}`) : error
  })
}
