import type { Transaction } from '../../db/database.ts'
import type { Holders } from '../records/holders.ts'
import type { Decision, Movement, View } from './decision.ts'

/** A batch of movements of one customer, before its records are read. */
export interface GovernedBatch {
  tx: Transaction
  customerId: string
  movements: readonly Movement[]
  /** Returns a record that a movement needs, once the batch has read it. */
  get: View['get']
}

export type Govern = (batch: GovernedBatch) => Governor

/** Applies the policy of a customer to one batch of its payments (API behaviour, Policy), for the pipeline. */
export interface Governor {
  /**
   * Locks and reads what the customer's last known policy needs, in the round trip of the balances. Call it after the
   * statement that locks the balances was sent. It decides nothing.
   */
  readEarly(): Promise<void>
  /** Reads the policy at this place (`POLICY_PLACE`), and what else the payments need. Called once the balances are locked. */
  read(place: string, holders: Holders): Promise<void>
  /** Judges a payment as decided. Throws the refusal: policy-refused, or unavailable for a policy that cannot be trusted. */
  judge(movement: Movement, decided: Decision, view: View): Verdict
  /** Sends the statement that writes what was counted. */
  write(): Promise<void>
}

export interface Verdict {
  /** The decision, with the approval that the payment waits for, where the policy requires one. */
  decision: Decision
  /** Counts the payment in the limits, once it is accepted. */
  count: () => void
}
