import type { NetworkAdapter, Signing } from '../../networks/network.ts'
import { NodeFailure } from '../../networks/node-failure.ts'
import { SIGNER_RECHECK_MS } from '../../networks/waiting.ts'
import { evidenceOfEach } from './ask-network.ts'

/**
 * Wraps an adapter with a signer process so that only what the signer would take gets a nonce: bytes that it refuses would hold
 * up all later nonces of their wallet.
 */
export function signOnlyWhatSignerTakes(adapter: NetworkAdapter): NetworkAdapter {
  if (adapter.checkWithSigner === undefined) return adapter
  return {
    ...adapter,
    async sign(tx, withdrawals) {
      const evidence = await evidenceOfEach(tx, withdrawals)
      const refused = await adapter.checkWithSigner!(
        withdrawals.map(({ transfer_id }) => evidence.get(transfer_id)!),
      ).catch((error: unknown) => {
        if (error instanceof NodeFailure) return error
        throw error
      })
      if (refused instanceof NodeFailure) {
        const reason = { code: 'SIGNER_DOWN', detail: refused.message } as const
        return withdrawals.map((): Signing => ({ outcome: 'DEFERRED', reason }))
      }
      const taken = withdrawals.filter((_, index) => refused[index] === null)
      const signings = taken.length === 0 ? [] : await adapter.sign(tx, taken)
      let next = 0
      return withdrawals.map((_, index): Signing => {
        if (refused[index] === null) return signings[next++]!
        const detail = `the signer refuses it: ${refused[index]!}`
        return {
          outcome: 'DEFERRED',
          reason: { code: 'SIGNER_REFUSES', detail, recheckMs: SIGNER_RECHECK_MS },
        }
      })
    },
  }
}
