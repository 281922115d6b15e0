import { originOfLoop, type Actor } from '../../contract/actor.ts'
import { strict as assert } from 'node:assert'
import { connectionLost, forAll, transaction, type Database, type Transaction } from '../../db/database.ts'
import { ownCustomers } from '../../db/parts.ts'
import { customerName, eachAlone, inParts, RecordFailure } from '../../db/each-alone.ts'
import type { Moment } from '../../db/ids.ts'
import type { Context } from '../context.ts'
import { insertEvents } from '../../money/ledger/events.ts'
import { problem, Problem } from '../../contract/problems.ts'
import { payoutCost } from '../../money/movements/withdrawal-fee.ts'
import type { Movement, Outcome } from '../../money/movements/decision.ts'
import { payoutOf } from '../../money/movements/payout.ts'
import { post, type PostOptions } from '../../money/movements/post.ts'
import { isRetryable } from '../../money/movements/batches.ts'
import type { UsdPrices } from '../../contract/assets/usd-value.ts'
import { selectFreezes } from '../../money/records/freezes.ts'
import { isPayable } from '../../money/records/destination-address.ts'
import { pricesIn } from '../../rails/context.ts'
import {
  objectionToOrder,
  type Orchestration,
  ORCHESTRATION_COLUMNS,
  orchestrationEvent,
  type OrchestrationRow,
  orchestrationToWire,
  recordEnds,
} from '../../money/records/orchestration.ts'

/** Who makes the transfers of orchestrations that deposits started. */
const LOOP = originOfLoop('orchestrations')

/** Most orchestrations that one database transaction processes. */
export const CLAIM_MAX = 500

interface ClaimedOrchestration {
  orchestration: Orchestration
  /** Who made its rule; null where its rule is not found. */
  initiator: Actor | null
  /** Whether it was paid or refused before: then somebody has set it back in the database. */
  was_decided: boolean
  /** Why it is not paid: its entry of the address book was rejected meanwhile, it was paid before, or it is forged. */
  objection: string | undefined
}

/** The context of payouts. Without `macs`, their withdrawals are never signed. */
type PayoutContext = Pick<Context, 'networks' | 'settings'> & Pick<PostOptions, 'macs' | 'govern'>

/**
 * Advances every orchestration that a deposit started: posts its destination transfer with its conversion (API behaviour,
 * Orchestrations), or marks it FAILED and leaves the money on the profile. One transaction locks the orchestrations, posts
 * the transfers and records the results. So any number of workers can share the work, and a crash leaves all of it or
 * nothing. The transaction that ends a destination transfer also ends its orchestration (rails/payouts/record-steps.ts).
 * Returns the number of advanced orchestrations. Throws failures after all other work is done.
 */
export async function runOrchestrations(db: Database, context: PayoutContext): Promise<number> {
  const { rows } = await ownCustomers(db).query<{ customer_id: string }>(TO_DO)
  let moved = 0
  const payCustomer = async ({ customer_id }: { customer_id: string }) => {
    const prices = await pricesIn({ db, settings: context.settings })
    const costs = await costsOf(db, customer_id, context)
    const failures: RecordFailure[] = []
    let claimed: string[] = []
    const pay = async (only: string[] | null) => {
      const payouts = { customerId: customer_id, only, claimed: (ids: string[]) => void (claimed = ids) }
      moved += await transaction(db, (tx) => payOut(tx, payouts, context, prices, costs))
      return []
    }
    try {
      await pay(null)
    } catch (error) {
      if (connectionLost(error)) throw error
      // Another transaction created the same balance first; the next round finds that balance.
      if (isRetryable(error)) return
      if (claimed.length === 0) throw error
      await inParts(claimed, pay, (id, failure): undefined => {
        if (!isRetryable(failure)) failures.push(new RecordFailure(`orchestration ${id}`, failure))
      })
    }
    if (failures.length > 0) throw new AggregateError(failures, `${failures.length} payouts failed`)
  }
  await eachAlone(rows, customerName, payCustomer, 'payouts failed')
  return moved
}

/** The orchestrations of a customer that are paid together. */
interface Payouts {
  customerId: string
  /** Those with these ids; null: all that are due. */
  only: string[] | null
  claimed: (ids: string[]) => void
}

/** By destination: the network's current cost of a payout, or the problem of a refused destination. */
type Costs = ReadonlyMap<string, bigint | Problem>

const destinationKeyOf = ({
  destination_asset,
  destination,
}: Pick<Orchestration, 'destination_asset' | 'destination'>) =>
  `${destination_asset} ${destination.crypto?.network} ${destination.crypto?.address}`

/**
 * Estimates fees on real networks before the paying transaction, which must not wait for a node. Simulated networks
 * have no cost.
 */
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
    from (select o.destination_asset, o.destination from ${DUE} order by o.id limit $3) due
    where destination -> 'crypto' ->> 'network' = any ($4::text[])`,
    [customerId, [...context.networks.keys()], CLAIM_MAX, asked],
  )
  const costs = await Promise.all(
    rows.map(async (row) => [destinationKeyOf(row), await payoutCost(forAll(db), row, context)] as const),
  )
  return new Map(costs)
}

/** Whether the payout needs a cost that was not asked for: its orchestration began after that, or others came before it then. */
const lacksCost = (
  { orchestration }: ClaimedOrchestration,
  { networks }: Pick<Context, 'networks'>,
  costs: Costs,
): boolean => {
  const { crypto } = orchestration.destination
  const asksNode = crypto !== undefined && networks.get(crypto.network)?.estimateFee !== undefined
  return asksNode && !costs.has(destinationKeyOf(orchestration))
}

const TO_DO = `
  select distinct customer_id
  from orchestrations
  where status = 'PROCESSING' and destination_transfer_id is null and orchestration_rule_id is not null`

type ClaimedRow = OrchestrationRow &
  Omit<ClaimedOrchestration, 'orchestration' | 'objection'> & {
    is_rejected: boolean
    mac: string | null
  }

const DETAILS = `
             (select r.created_by from orchestration_rules r
              where r.customer_id = $1 and r.id = o.orchestration_rule_id) as initiator,
             coalesce((select not ${isPayable('a')} from crypto_destination_addresses a
                       where a.customer_id = $1
                         and a.id = (o.destination -> 'crypto' ->> 'address_id')::uuid), false) as is_rejected,
             exists (select 1 from decided_orchestrations d
                     where d.customer_id = $1 and d.orchestration_id = o.id) as was_decided, o.mac`
// An orchestration without a rule is paid in the transaction that creates it. Destinations over a network that is not
// connected here wait: another worker may be connected, or this one later. Orchestrations of a frozen profile or customer
// also wait: the freeze may be lifted, and FAILED is final.
const DUE = `orchestrations o
      where o.customer_id = $1 and o.status = 'PROCESSING' and o.destination_transfer_id is null
        and o.orchestration_rule_id is not null
        and (o.destination ? 'profile'
             or coalesce(o.destination -> 'crypto' ->> 'network', 'WIRE') = any ($2::text[]))
        and not exists (select 1 from customer_freezes f
                        where f.customer_id = $1 and f.lifted_at is null and f.subject in ($1, o.profile_id))`

/** Locks the orchestrations that can proceed. A freeze that comes meanwhile is found by the posting. */
async function claim(
  tx: Transaction,
  customerId: string,
  { networks, macs }: Pick<PayoutContext, 'networks' | 'macs'>,
  only: string[] | null,
): Promise<ClaimedOrchestration[]> {
  const { rows: due } = await tx.query<{ id: string; profile_id: string }>(
    `
    select o.id, o.profile_id
    from ${DUE} and ($4::uuid[] is null or o.id = any ($4))
    order by o.id
    limit $3
    for update of o skip locked`,
    [customerId, [...networks.keys()], CLAIM_MAX, only],
  )
  // A freeze holds whose end was written without the master key.
  const freezes = due.length === 0 ? [] : await selectFreezes(tx, { customerIds: [customerId] })
  const frozen = new Set(freezes.map(({ subject }) => subject))
  const locked = due.filter(
    ({ profile_id }) => !frozen.has(customerId) && !frozen.has(`${customerId}/${profile_id}`),
  )
  const { rows } = await tx.query<ClaimedRow>(
    `
    select ${ORCHESTRATION_COLUMNS}, ${DETAILS}
    from orchestrations o
    where o.customer_id = $1 and o.id = any ($2::uuid[])
    order by o.id`,
    [customerId, locked.map(({ id }) => id)],
  )
  return rows.map(({ initiator, is_rejected, was_decided, mac, ...row }) => {
    const orchestration = orchestrationToWire(row)
    const objection = is_rejected
      ? 'the address of the address book that the rule pays is REJECTED'
      : was_decided
        ? 'it was paid or refused before'
        : macs && objectionToOrder(macs, orchestration, mac)
    return { initiator, was_decided, objection, orchestration }
  })
}

async function payOut(
  tx: Transaction,
  { customerId, only, claimed: onClaim }: Payouts,
  context: PayoutContext,
  prices: UsdPrices,
  costs: Costs,
): Promise<number> {
  const locked = await claim(tx, customerId, context, only)
  onClaim(locked.map(({ orchestration }) => orchestration.id))
  // Without its cost, the platform would pay what the network takes. The next round asks for it.
  const claimed = locked.filter((run) => !lacksCost(run, context, costs))
  if (claimed.length === 0) return 0
  const movements = claimed.map((run) => movementOf(run, context, prices, costs))
  const { outcomes, now } = await post(tx, customerId, movements, {
    macs: context.macs,
    govern: context.govern,
  })
  const ends = claimed.flatMap(({ was_decided, orchestration: { id } }, index) => {
    const outcome = outcomes[index]!
    if ('refusal' in outcome && !(outcome.refusal instanceof Problem)) throw outcome.refusal
    // Frozen since the claim: the orchestration waits, because FAILED is final.
    return isFrozen(outcome) ? [] : [{ id, was_decided, ...endOf(outcome) }]
  })
  await record(tx, customerId, now, ends)
  return ends.length
}

/** Builds the destination transfer of an orchestration, or returns the refusal that needs no record. */
function movementOf(
  { orchestration, initiator, objection }: ClaimedOrchestration,
  context: PayoutContext,
  prices: UsdPrices,
  costs: Costs,
): Movement {
  const origin = { ...LOOP, ...(initiator !== null && { initiator }) }
  try {
    if (objection !== undefined) throw problem.badRequest(objection)
    const payout = payoutOf(
      orchestration,
      context,
      'KEEP',
      prices,
      costs.get(destinationKeyOf(orchestration)),
    )
    return { ...payout, origin, decide: (view) => payout.decide(view, orchestration.id) }
  } catch (refusal) {
    if (!(refusal instanceof Problem)) throw refusal
    return {
      origin,
      balances: [],
      decide: () => {
        throw refusal
      },
    }
  }
}

const isFrozen = (outcome: Outcome): boolean =>
  'refusal' in outcome &&
  outcome.refusal instanceof Problem &&
  outcome.refusal.slug === 'disabled' &&
  outcome.refusal.meta?.status === 'FROZEN'

interface End {
  status: Orchestration['status']
  destination_transfer_id?: string
  fail_reason?: string | undefined
}

/** Returns the end of an orchestration: it follows its destination transfer, or fails with the refusal. */
function endOf(outcome: Outcome): End {
  if ('refusal' in outcome) return { status: 'FAILED', fail_reason: (outcome.refusal as Problem).detail }
  const { transfer, otherLeg } = outcome.decision
  return otherLeg === undefined
    ? { status: 'PROCESSING', destination_transfer_id: transfer.id }
    : { status: 'COMPLETED', destination_transfer_id: otherLeg.transfer.id }
}

const RECORD = {
  name: 'record payouts',
  text: `
      update orchestrations o
      set status = c.status, destination_transfer_id = c.destination_transfer_id, fail_reason = c.fail_reason,
          updated_at = $2
      from json_to_recordset($3) as c (id uuid, status text, destination_transfer_id uuid, fail_reason text)
      where o.customer_id = $1 and o.id = any ($4::uuid[]) and o.id = c.id`,
}

async function record(
  tx: Transaction,
  customerId: string,
  now: Moment,
  ends: (End & Pick<ClaimedOrchestration, 'was_decided'> & { id: string })[],
): Promise<void> {
  if (ends.length === 0) return
  const decided = ends.filter(({ was_decided }) => !was_decided)
  // Violates the primary key if another transaction has decided one of these orchestrations meanwhile.
  await tx.query(
    `
    insert into decided_orchestrations (customer_id, orchestration_id, transfer_id)
    select $1, id, transfer_id from unnest($2::uuid[], $3::uuid[]) as d (id, transfer_id)`,
    [customerId, decided.map(({ id }) => id), decided.map((end) => end.destination_transfer_id ?? null)],
  )
  const { rowCount } = await tx.query({
    ...RECORD,
    values: [customerId, now.text, JSON.stringify(ends), ends.map(({ id }) => id)],
  })
  assert(rowCount === ends.length, 'every payout must be recorded, or it would be paid again')
  const ended = ends.filter(({ status }) => status !== 'PROCESSING')
  recordEnds(tx, customerId, now, LOOP, ended)
  await insertEvents(tx, customerId, now, ended.map(orchestrationEvent))
}
