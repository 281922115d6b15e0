import { strict as assert } from 'node:assert'
import { connectionLost, transaction, type Database, type Transaction } from '../db/database.ts'
import { idsAt } from '../db/ids.ts'
import type { Context } from '../context.ts'
import { Problem } from '../contract/problems.ts'
import { applyDecision, sidesOf, wasRaced, type Decision } from '../movements/ledger.ts'
import { payoutCost } from '../movements/estimated-fee.ts'
import { payoutOf, routesOf, type Payout } from '../movements/payout.ts'
import { OwnCustody, readOwnCustody } from '../movements/own-custody.ts'
import { LedgerTransaction } from '../ledger/ledger-transaction.ts'
import { selectFiatAccounts } from '../records/fiat-account.ts'
import { Holders } from '../records/holders.ts'
import type { UsdPrices } from '../assets/usd-value.ts'
import { usdPrices } from '../records/usd-prices.ts'
import {
  ORCHESTRATION_COLUMNS,
  orchestrationToWire,
  type Orchestration,
  type OrchestrationRow,
} from '../records/orchestration.ts'
import { sealed, type WithdrawalMacs } from '../movements/withdrawal-macs.ts'
import type { Networks } from '../networks/network.ts'

/** Most orchestrations that one database transaction takes on. */
export const CLAIM_MAX = 500

/** An orchestration that this transaction holds, with its row's place, which nobody can change meanwhile. */
interface Claimed {
  place: string
  orchestration: Orchestration
}

/** What payouts need. Without `macs`, the withdrawals that are made are never signed. */
type PayoutContext = Pick<Context, 'networks' | 'settings'> & { macs?: WithdrawalMacs | undefined }

/** What becomes of an orchestration: its destination transfer, or why there is none. */
type Outcome = { decision: Decision } | { refusal: Problem }

/**
 * Takes every orchestration that a deposit started on to its destination transfer (design section 5), with its
 * conversion, or to FAILED with the money left on the profile. One transaction holds the orchestrations, posts and
 * records, so that any number of workers share the work and a crash leaves all or nothing of it. What a destination
 * transfer comes to ends its orchestration in the transaction that ends the transfer (settle-withdrawals.ts).
 * Gives how many moved. Throws what failed, after all else has been done.
 */
export async function runOrchestrations(db: Database, context: PayoutContext): Promise<number> {
  const { rows } = await db.query<{ customer_id: string }>(TO_DO)
  let moved = 0
  const failures: unknown[] = []
  for (const { customer_id } of rows) {
    const prices = await usdPrices(db, context.settings.mode === 'sandbox')
    try {
      const costs = await costsOf(db, customer_id, context)
      moved += await transaction(db, (tx) => payOut(tx, customer_id, context, prices, costs))
    } catch (error) {
      if (connectionLost(error)) throw error
      // Another transaction was first, at a balance that both were to make: the next round finds it there.
      if (!wasRaced(error)) failures.push(error)
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} payouts failed`)
  return moved
}

/** By place: what a payout to it costs the network now, or that it is not paid to. */
type Costs = ReadonlyMap<string, bigint | Problem>

const placeOf = ({
  destination_asset,
  destination,
}: Pick<Orchestration, 'destination_asset' | 'destination'>) =>
  `${destination_asset} ${destination.crypto?.network} ${destination.crypto?.address}`

/** Asks the real networks before the transaction that pays, in which no node is asked. Simulated ones have no cost. */
async function costsOf(
  db: Database,
  customerId: string,
  context: Pick<Context, 'networks' | 'settings'>,
): Promise<Costs> {
  const asked = [...context.networks].flatMap(([network, adapter]) =>
    adapter.estimateFee === undefined ? [] : [network],
  )
  if (asked.length === 0) return new Map()
  const { rows } = await db.query<Pick<Orchestration, 'destination_asset' | 'destination'>>(
    `
    select distinct destination_asset, destination
    from orchestrations
    where customer_id = $1 and status = 'PROCESSING' and destination_transfer_id is null
      and destination -> 'crypto' ->> 'network' = any ($2::text[])
    limit $3`,
    [customerId, asked, CLAIM_MAX],
  )
  const costs = await Promise.all(
    rows.map(async (row) => [placeOf(row), await payoutCost(db, row, context)] as const),
  )
  return new Map(costs)
}

const TO_DO = `
  select distinct customer_id
  from orchestrations
  where status = 'PROCESSING' and destination_transfer_id is null`

/**
 * Orchestrations whose destination goes over a network that is not connected here wait, for another worker or another
 * day. So do those of a frozen profile or customer: the freeze may be lifted, and FAILED would be for good.
 */
async function claim(tx: Transaction, customerId: string, networks: Networks): Promise<Claimed[]> {
  const { rows } = await tx.query<OrchestrationRow & { place: string }>({
    text: `
      select ${ORCHESTRATION_COLUMNS}, o.ctid::text as place
      from orchestrations o
      where o.customer_id = $1 and o.status = 'PROCESSING' and o.destination_transfer_id is null
        and (o.destination ? 'profile'
             or coalesce(o.destination -> 'crypto' ->> 'network', 'WIRE') = any ($2::text[]))
        and not exists (
          select from freezes
          where kind in ('CUSTOMER', 'PROFILE') and split_part(subject, '/', 1) = $1::uuid::text
            and subject in ($1::uuid::text, $1::uuid::text || '/' || o.profile_id))
      order by o.id
      limit $3
      for update skip locked`,
    values: [customerId, [...networks.keys()], CLAIM_MAX],
  })
  return rows.map(({ place, ...row }) => ({ place, orchestration: orchestrationToWire(row) }))
}

async function payOut(
  tx: Transaction,
  customerId: string,
  context: PayoutContext,
  prices: UsdPrices,
  costs: Costs,
): Promise<number> {
  const claimed = await claim(tx, customerId, context.networks)
  if (claimed.length === 0) return 0
  const orchestrations = claimed.map(({ orchestration }) => orchestration)
  const payouts = orchestrations.map((orchestration) =>
    attempt(() => payoutOf(orchestration, context, 'STAYS', prices, costs.get(placeOf(orchestration)))),
  )

  // Read.
  const keys = payouts.flatMap((payout) => (payout instanceof Problem ? [] : payout.balances))
  const ledger = await LedgerTransaction.open(tx, customerId, keys)
  const profileIds = keys.map((key) => key.profile_id)
  const holders = await Holders.read(tx, customerId, ledger.balances, profileIds, orchestrations)
  // Frozen since the claim: the next round leaves them out.
  if (orchestrations.some(({ profile_id }) => holders.isFrozen(profile_id))) return 0
  const bankAccounts = orchestrations.flatMap(({ destination }) => destination.fiat?.bank_account_id ?? [])
  const fiatAccounts = await selectFiatAccounts(tx, customerId, bankAccounts)

  const routes = routesOf(orchestrations)
  const ownCustody = new OwnCustody(await readOwnCustody(tx, customerId, context.networks, routes))

  // Decide, each in turn: what one takes, the next has not.
  const newId = idsAt(ledger.now)
  const view = {
    now: ledger.now,
    newId,
    profileExists: holders.profileExists.bind(holders),
    requireHolder: holders.require.bind(holders),
  }
  const decide = ({ id }: Orchestration, payout: Payout): Outcome => {
    const decision = attempt(() => {
      const decided = payout.decide(view, { group_id: id, fiatAccounts, ownCustody })
      applyDecision(ledger, payout.balances, decided)
      return decided
    })
    return decision instanceof Problem ? { refusal: decision } : { decision }
  }
  const outcomes = orchestrations.map((orchestration, index): Outcome => {
    const payout = payouts[index]!
    return payout instanceof Problem ? { refusal: payout } : decide(orchestration, payout)
  })

  // Write.
  const made = outcomes.flatMap((outcome) => ('decision' in outcome ? sidesOf(outcome.decision) : []))
  await ledger.write(sealed(made, context.macs))
  await record(tx, customerId, ledger.now.text, claimed, outcomes)
  return orchestrations.length
}

/** A refusal is an outcome here; anything else that is thrown is a mistake, and ends the transaction. */
function attempt<T>(work: () => T): T | Problem {
  try {
    return work()
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
}

async function record(
  tx: Transaction,
  customerId: string,
  now: string,
  claimed: Claimed[],
  outcomes: Outcome[],
): Promise<void> {
  const changes = claimed.map(({ place }, index) => ({ place, ...changeOf(outcomes[index]!) }))
  const { rowCount } = await tx.query({
    name: 'record payouts',
    text: `
      update orchestrations o
      set status = c.status, destination_transfer_id = c.destination_transfer_id, fail_reason = c.fail_reason,
          updated_at = $2
      from json_to_recordset($3) as c (place tid, status text, destination_transfer_id uuid, fail_reason text)
      where o.customer_id = $1 and o.ctid = c.place`,
    values: [customerId, now, JSON.stringify(changes)],
  })
  assert(rowCount === claimed.length, 'what is paid out is recorded, or it would be paid out again')
}

function changeOf(outcome: Outcome) {
  if ('refusal' in outcome) return { status: 'FAILED', fail_reason: outcome.refusal.detail }
  const { transfer, counterpart } = outcome.decision
  return counterpart === undefined
    ? { status: 'PROCESSING', destination_transfer_id: transfer.id }
    : { status: 'COMPLETED', destination_transfer_id: counterpart.transfer.id }
}
