import { forAll, transaction, type Database, type Transaction } from '../../db/database.ts'
import { ownCustomers } from '../../db/parts.ts'
import { customerName } from '../../db/each-alone.ts'
import { byCustomer } from '../../db/rows.ts'
import type { Networks } from '../../networks/network.ts'
import type { Rail } from '../context.ts'
import { withCircuitBreaker } from './circuit-breaker.ts'
import { follow } from './follow-withdrawals.ts'
import { claimDue, claimNew, workToDo, type Work } from './lease.ts'
import { overriddenBy, type Step } from './next-step.ts'
import type { Claimed, KeptWithdrawal } from './claimed-withdrawals.ts'
import { record } from './record-steps.ts'
import { settleOverNode } from './settle-over-node.ts'
import { SettlementRound } from './settlement-round.ts'
import { replaceStuck, reviewAndSign } from './sign-withdrawals.ts'

/**
 * One round of settlement: takes every withdrawal that is due, crypto or wire, one step on. A step reviews it, signs it and
 * stores the bytes, broadcasts, confirms or refuses it. Any number of workers share the work. After a crash, the next
 * round repeats a step with the same signed bytes. Withdrawals of a network that `networks` lacks wait.
 *
 * It looks for work among the customers of `db`. Returns how many withdrawals moved, and calls `taken` with steps that are
 * committed. Throws an AggregateError of the failures after everything else was tried.
 */
export async function settleWithdrawals(
  db: Database,
  networks: Networks,
  taken: (steps: readonly Step[]) => void = () => undefined,
): Promise<number> {
  if (networks.size === 0) return 0
  const { work, dueBy } = await workToDo(ownCustomers(db), [...networks.keys()])
  const round = new SettlementRound(forAll(db), taken)
  for (const network of new Set(work.map((item) => item.network))) {
    const rail = { network, adapter: withCircuitBreaker(networks.get(network)!) }
    const due = work.filter((item) => item.network === network)
    if (rail.adapter.asksNode) await round.attempt(() => settleOverNode(round, rail, due, dueBy))
    else await settleInDatabase(round, rail, due)
  }
  const { failures, moved } = round
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} steps of settlement failed`)
  return moved
}

/**
 * Takes each customer's withdrawals over a network that is simulated in the database one step on. Claim and steps are one
 * transaction, which holds the withdrawals.
 */
async function settleInDatabase(round: SettlementRound, rail: Rail, work: Work[]): Promise<void> {
  for (const customer_id of byCustomer(work).keys()) {
    for (const claim of [claimNew, claimDue]) {
      const steps = await round.attempt(
        () =>
          transaction(round.db, async (tx) => {
            const claimed = await claim(tx, { customer_id, network: rail.network })
            if (claimed.length === 0) return []
            const steps = await takeSteps(tx, rail, claimed, round.failures)
            if (steps.length > 0) await record(tx, customer_id, steps)
            return steps
          }),
        customerName({ customer_id }),
      )
      if (steps !== undefined) round.report(steps)
    }
  }
}

async function takeSteps(
  tx: Transaction,
  rail: Rail,
  claimed: Claimed[],
  failures: unknown[],
): Promise<Step[]> {
  const notSigned = claimed.filter((withdrawal) => !isKept(withdrawal))
  const steps = await reviewAndSign(tx, rail, notSigned)
  const { steps: followed, stuck } = await follow(tx, rail.adapter, claimed.filter(isKept), failures)
  const replaced = await replaceStuck(tx, rail, stuck)
  return [...steps, ...overriddenBy(followed, replaced)]
}

const isKept = (withdrawal: Claimed): withdrawal is KeptWithdrawal =>
  withdrawal.state !== 'NEW' && withdrawal.state !== 'HELD'
