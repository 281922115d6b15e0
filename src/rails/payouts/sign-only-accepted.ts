import type { RowMacs } from '../../audit/sealed-rows.ts'
import { NOT_ACCEPTED, objectionsTo } from '../../money/movements/accepted-withdrawals.ts'
import { answerEach } from '../../networks/answer-each.ts'
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
  const reasonOf = (objection: string, withdrawal: Withdrawal) => {
    onObjection(withdrawal, objection)
    return { code: 'NOT_ACCEPTED', detail: `${NOT_ACCEPTED}: ${objection}` } as const
  }
  return {
    ...adapter,
    async sign(tx, withdrawals) {
      const objections = await objectionsTo(tx, macs, withdrawals)
      return answerEach(
        withdrawals,
        objections,
        (accepted) => adapter.sign(tx, accepted),
        (objection, withdrawal): Signing => ({
          outcome: 'DEFERRED',
          reason: reasonOf(objection, withdrawal),
        }),
      )
    },
    ...(adapter.askSigner && {
      // Whoever has the service's role can make a withdrawal ASKED: what is asked for is judged as what is signed.
      async askSigner(db, asked) {
        const objections = await objectionsTo(db, macs, asked)
        return answerEach(
          asked,
          objections,
          (accepted) => adapter.askSigner!(db, accepted),
          (objection, withdrawal): SignerAnswer => ({ reason: reasonOf(objection, withdrawal) }),
        )
      },
    }),
    ...(adapter.replace && {
      async replace(tx, withdrawals) {
        const objections = await objectionsTo(tx, macs, withdrawals)
        const refused = new Map<string, string>()
        for (const [index, withdrawal] of withdrawals.entries()) {
          const objection = objections[index]
          if (objection === undefined) continue
          refused.set(withdrawal.crypto_tx_hash, objection)
          onObjection(withdrawal, objection)
        }
        return answerEach(
          withdrawals,
          withdrawals.map(({ crypto_tx_hash }) => refused.get(crypto_tx_hash)),
          (accepted) => adapter.replace!(tx, accepted),
          () => undefined,
        )
      },
    }),
  }
}
