import type { RowMacs } from '../../audit/row-macs.ts'
import { NOT_ACCEPTED, objectionsTo } from '../../money/movements/accepted-withdrawals.ts'
import type { NetworkAdapter, SignerAnswer, Signing, Withdrawal } from '../../networks/network.ts'

/** Called for a withdrawal that is not signed because it fails the check of its MAC. */
export type OnObjection = (withdrawal: Withdrawal, objection: string) => void

/**
 * Wraps an adapter so that it signs only withdrawals that match their MAC and have not ended. The others wait with the
 * reason. They are never refunded automatically: an operator has to find out who changed them. The check covers the
 * withdrawal as the adapter gets it. It covers replacements, too: a transaction is replaced only if all withdrawals that it
 * pays pass.
 */
export function signOnlyAccepted(
  adapter: NetworkAdapter,
  macs: RowMacs,
  onObjection: OnObjection = () => undefined,
): NetworkAdapter {
  return {
    ...adapter,
    async sign(tx, withdrawals) {
      const objections = await objectionsTo(tx, macs, withdrawals)
      const accepted = withdrawals.filter((_, index) => objections[index] === undefined)
      const signings = accepted.length === 0 ? [] : await adapter.sign(tx, accepted)
      let next = 0
      return withdrawals.map((withdrawal, index): Signing => {
        const objection = objections[index]
        if (objection === undefined) return signings[next++]!
        onObjection(withdrawal, objection)
        const reason = { code: 'NOT_ACCEPTED', detail: `${NOT_ACCEPTED}: ${objection}` } as const
        return { outcome: 'DEFERRED', reason }
      })
    },
    ...(adapter.askSigner && {
      // Whoever has the service's role can make a withdrawal ASKED: what is asked for is judged as what is signed.
      async askSigner(db, asked) {
        const objections = await objectionsTo(db, macs, asked)
        const accepted = asked.filter((_, index) => objections[index] === undefined)
        const answers = accepted.length === 0 ? [] : await adapter.askSigner!(db, accepted)
        let next = 0
        return asked.map((withdrawal, index): SignerAnswer => {
          const objection = objections[index]
          if (objection === undefined) return answers[next++]!
          onObjection(withdrawal, objection)
          return { reason: { code: 'NOT_ACCEPTED', detail: `${NOT_ACCEPTED}: ${objection}` } }
        })
      },
    }),
    ...(adapter.replace && {
      async replace(tx, withdrawals) {
        const objections = await objectionsTo(tx, macs, withdrawals)
        const refused = new Set<string>()
        for (const [index, withdrawal] of withdrawals.entries()) {
          if (objections[index] === undefined) continue
          refused.add(withdrawal.crypto_tx_hash)
          onObjection(withdrawal, objections[index])
        }
        const accepted = withdrawals.filter(({ crypto_tx_hash }) => !refused.has(crypto_tx_hash))
        const replacements = accepted.length === 0 ? [] : await adapter.replace!(tx, accepted)
        let next = 0
        return withdrawals.map(({ crypto_tx_hash }) =>
          refused.has(crypto_tx_hash) ? undefined : replacements[next++],
        )
      },
    }),
  }
}
