import type { Transaction } from '../db/database.ts'
import { Problem } from '../http/problems.ts'
import { Balances } from '../ledger/balances.ts'
import { describeFreeze, freezesOfSigning, type Freeze } from '../ledger/records/freezes.ts'
import { Holders, type Holder } from '../ledger/records/holders.ts'
import type { Network, Refusal } from '../networks/networks.ts'

/** Whether a withdrawal may be signed now: it may, it waits for the reason given, or it is refused and refunded. */
export type SigningDecision =
  { outcome: 'SIGN' } | { outcome: 'WAITS'; reason: string } | { outcome: 'REFUSED'; refusal: Refusal }

/** A withdrawal as its transfer and its profile name whose money it takes. */
interface Held extends Holder {
  transfer_id: string
}

/**
 * Decides for each withdrawal whether it may be signed, in the transaction that keeps what is signed. What was true when
 * it was accepted is read again: freezes, and the standing of its account, its profile's account and its identity.
 * None of these refuses a withdrawal for good, because each can be taken back: it waits, and can be cancelled. Gives a
 * decision for each of `claimed`, by its transfer_id.
 */
export async function checkBeforeSigning(
  tx: Transaction,
  { customer_id, network }: { customer_id: string; network: Network },
  claimed: readonly { transfer_id: string }[],
): Promise<Map<string, SigningDecision>> {
  const transferIds = claimed.map(({ transfer_id }) => transfer_id)
  const withdrawals = await selectHeld(tx, customer_id, transferIds)
  const profileIds = [...new Set(withdrawals.map(({ profile_id }) => profile_id))]
  const freezes = await freezesOfSigning(tx, { network, customer_id, profile_ids: profileIds })
  const holders = await Holders.read(tx, customer_id, new Balances([]), profileIds, withdrawals)
  return new Map(
    withdrawals.map((withdrawal) => {
      const reason = frozen(freezes, withdrawal) ?? barred(holders, withdrawal)
      return [
        withdrawal.transfer_id,
        reason === undefined ? { outcome: 'SIGN' } : { outcome: 'WAITS', reason },
      ]
    }),
  )
}

async function selectHeld(tx: Transaction, customerId: string, transferIds: string[]): Promise<Held[]> {
  const { rows } = await tx.query<{
    transfer_id: string
    profile_id: string
    account_id: string | null
    identity_id: string | null
  }>(
    `
    select id as transfer_id, profile_id, account_id, identity_id
    from transfers
    where customer_id = $1 and id = any ($2::uuid[])`,
    [customerId, transferIds],
  )
  return rows.map(({ account_id, identity_id, ...row }) => ({
    ...row,
    account_id: account_id ?? undefined,
    identity_id: identity_id ?? undefined,
  }))
}

function frozen(freezes: Freeze[], { profile_id }: Held): string | undefined {
  const freeze = freezes.find(({ kind, subject }) => kind !== 'PROFILE' || subject.endsWith(`/${profile_id}`))
  return freeze && describeFreeze(freeze)
}

/** The refusal that a new withdrawal of the same holder would be answered with, in its words. */
function barred(holders: Holders, withdrawal: Held): string | undefined {
  try {
    holders.require(withdrawal)
    return undefined
  } catch (error) {
    if (error instanceof Problem) return error.detail
    throw error
  }
}
