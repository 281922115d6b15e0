import type { Transaction } from '../../db/database.ts'
import { answerEach } from '../../networks/answer-each.ts'
import type { NetworkAdapter, Signing, Withdrawal } from '../../networks/network.ts'
import { deferred } from '../../networks/waiting.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { lacksSettings, screenedSince } from './requirement.ts'
import { RECHECK_MS, SCREENING, type Screening, type ScreeningStanding } from './screening.ts'
import { byCustomer } from '../../db/rows.ts'
import { selectScreenedWithdrawals } from './screened-payments.ts'
import { isAsInRow } from '../../money/movements/accepted-withdrawals.ts'

/**
 * Wraps an adapter so that it signs only withdrawals that the screening endpoint has allowed. The others wait: their questions
 * are made here, and the worker asks them with no transaction open (`Screener`). The platform's own transfers are between its
 * own wallets, and are not screened. Without `screening`, it signs as long as no payment must be screened, which may change
 * while this process runs.
 */
export function signOnlyScreened(adapter: NetworkAdapter, screening: Screening | undefined): NetworkAdapter {
  return {
    ...adapter,
    async sign(tx, withdrawals) {
      const held =
        screening === undefined
          ? await heldUnasked(tx, withdrawals)
          : await heldOf(tx, screening, withdrawals)
      return answerEach(
        withdrawals,
        withdrawals.map(({ transfer_id }) => held.get(transfer_id)),
        (allowed) => adapter.sign(tx, allowed),
        (detail): Signing => deferred({ code: SCREENING, detail, recheckMs: RECHECK_MS }),
      )
    },
  }
}

/** Why withdrawals wait in a process without the settings of screening: all of them, once they must be screened. */
async function heldUnasked(
  tx: Transaction,
  withdrawals: readonly Withdrawal[],
): Promise<Map<string, string>> {
  const since = await screenedSince(tx)
  if (since === undefined) return new Map()
  const screened = withdrawals.filter(({ customer_id }) => customer_id !== PLATFORM_ID)
  return new Map(screened.map(({ transfer_id }) => [transfer_id, lacksSettings(since)]))
}

async function heldOf(
  tx: Transaction,
  screening: Screening,
  withdrawals: readonly Withdrawal[],
): Promise<Map<string, string>> {
  const held = new Map<string, string>()
  for (const [customerId, own] of byCustomer(withdrawals)) {
    if (customerId === PLATFORM_ID) continue
    const found = await selectScreenedWithdrawals(
      tx,
      customerId,
      own.map(({ transfer_id }) => transfer_id),
    )
    const standings = await screening.standingsOf(
      tx,
      [...found.values()].map(({ payment }) => payment),
    )
    for (const withdrawal of own) {
      const row = found.get(withdrawal.transfer_id)?.row
      const isSame = row !== undefined && isAsInRow(withdrawal, row)
      const standing: ScreeningStanding = isSame
        ? standings.get(withdrawal.transfer_id)!
        : { allowed: false, detail: 'it was changed while it was being signed' }
      if (!standing.allowed) held.set(withdrawal.transfer_id, standing.detail)
    }
  }
  return held
}
