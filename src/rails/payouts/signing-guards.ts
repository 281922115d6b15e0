import type { RowMacs } from '../../audit/sealed-rows.ts'
import { answerEach } from '../../networks/answer-each.ts'
import type { NetworkAdapter, Networks, Signing } from '../../networks/network.ts'
import { NodeFailure } from '../../networks/node-failure.ts'
import { deferred, SIGNER_RECHECK_MS } from '../../networks/waiting.ts'
import type { Screening } from '../screening/screening.ts'
import { signOnlyScreened } from '../screening/sign-only-screened.ts'
import { evidenceOfEach } from './follow-withdrawals.ts'
import { signOnlyAccepted, type OnObjection } from './sign-only-accepted.ts'

interface GuardOptions {
  macs: RowMacs
  screening: Screening | undefined
  /** Called for each withdrawal that differs from the one that was accepted. */
  onObjection?: OnObjection
}

/**
 * The guards in front of every signature; the first is asked first, and the next sees only what it lets pass. The order is a
 * security property: what was not accepted is never shown to the screening endpoint, nor signed on its ALLOW.
 */
const GUARDS: readonly ((adapter: NetworkAdapter, options: GuardOptions) => NetworkAdapter)[] = [
  (adapter, { macs, onObjection }) => signOnlyAccepted(adapter, macs, onObjection),
  (adapter, { screening }) => signOnlyScreened(adapter, screening),
  (adapter) => signOnlyWhatSignerTakes(adapter),
]

/** Puts all guards in front of an adapter. */
export const guarded = (adapter: NetworkAdapter, options: GuardOptions): NetworkAdapter =>
  GUARDS.reduceRight((inner, guard) => guard(inner, options), adapter)

/** Puts all guards in front of the adapters of all networks. */
export const guardedNetworks = (networks: Networks, options: GuardOptions): Networks =>
  new Map([...networks].map(([network, adapter]) => [network, guarded(adapter, options)]))

/**
 * Wraps an adapter with a signer process so that only what the signer would take gets a nonce: bytes that it refuses would hold
 * up all later nonces of their wallet.
 */
function signOnlyWhatSignerTakes(adapter: NetworkAdapter): NetworkAdapter {
  if (adapter.checkWithSigner === undefined) return adapter
  return {
    ...adapter,
    async sign(tx, withdrawals) {
      const evidence = await evidenceOfEach(tx, withdrawals)
      const all = withdrawals.map(({ transfer_id }) => evidence.get(transfer_id)!)
      const refused = await adapter.checkWithSigner!(tx, all).catch((error: unknown) => {
        if (error instanceof NodeFailure) return error
        throw error
      })
      if (refused instanceof NodeFailure)
        return withdrawals.map((): Signing => deferred({ code: 'SIGNER_DOWN', detail: refused.message }))
      return answerEach(
        withdrawals,
        refused.map((why) => why ?? undefined),
        (taken) => adapter.sign(tx, taken),
        (why): Signing => {
          const detail = `the signer refuses it: ${why}`
          return deferred({ code: 'SIGNER_REFUSES', detail, recheckMs: SIGNER_RECHECK_MS })
        },
      )
    },
  }
}
