import { SEALED_END, type Seal } from '../../audit/freeze-ends.ts'
import { ownRowMacs } from '../../audit/sealed-rows.ts'
import type { Transaction } from '../../db/database.ts'
import { readOfCustomer } from '../../db/shared-transaction.ts'
import { CLOCK_AND_OUTDATED, type BesideBalances, type ReadBeside } from '../ledger/balances.ts'
import { POLICY_PLACE } from './policies.ts'

/** What keeps money from leaving profiles, and what governs it. It is read with the balances, after they are locked. */
export interface Standing {
  /** The version and MAC of the customer's policy (`POLICY_PLACE`); undefined where it has none. */
  policy: string | undefined
  /** The frozen subjects of the customer: its own id, and those of its profiles. */
  frozen: ReadonlySet<string>
  /** The ids of the deactivated profiles among those of the balances. */
  deactivated: ReadonlySet<string>
  /** The profiles of the balances, each with its account's id or null. */
  accounts: ReadonlyMap<string, string | null>
}

/** `PROFILE` are profiles, with their accounts and when they were deactivated. */
const STANDING = `${CLOCK_AND_OUTDATED}
  union all
  select 'PROFILE', id::text, account_id::text, deactivated_at, null from profiles
  where customer_id = $1 and id = any ($2::uuid[])
  union all
  -- Of these profiles alone, and of the customer: each end costs a MAC.
  select 'FREEZE', subject::text, ${SEALED_END}, lifted_at, mac from customer_freezes r
  where customer_id = $1 and (subject = $1 or subject = any ($2::uuid[]))
  union all
  (select 'POLICY', ${POLICY_PLACE}, null, null, null from policies
   where customer_id = $1
   order by version desc
   limit 1)`

/** Returns a reader of balances and standing in one statement, and the standing once it was called. */
export function standingBeside(): { read: ReadBeside; standing: Standing } {
  const frozen = new Set<string>()
  const deactivated = new Set<string>()
  const accounts = new Map<string, string | null>()
  const standing: Standing = { policy: undefined, frozen, deactivated, accounts }
  const read = async (tx: Transaction, values: readonly string[]): Promise<BesideBalances[]> => {
    const rows = await readOfCustomer<BesideBalances>(tx, {
      name: 'standing of balances',
      text: STANDING,
      values,
    })
    const ends: (Seal & { subject: string })[] = []
    for (const { kind, subject, detail, now, mac } of rows)
      if (kind === 'PROFILE') {
        accounts.set(subject, detail)
        if (now !== null) deactivated.add(subject)
      } else if (kind === 'POLICY') standing.policy = subject
      else if (kind === 'FREEZE') {
        if (now === null) frozen.add(subject)
        else ends.push({ subject, sealed: detail!, mac })
      }
    if (ends.length > 0) {
      const macs = await ownRowMacs()
      // An end that was written without the master key ends no freeze.
      for (const { subject, ...end } of ends)
        if (macs.objectionTo('customer_freezes', end) !== undefined) frozen.add(subject)
    }
    return rows
  }
  return { read, standing }
}
