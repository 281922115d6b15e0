import { originOfLoop } from '../../contract/actor.ts'
import { connectionLost, transaction, type Database, type Transaction } from '../../db/database.ts'
import { customerName } from '../../db/each-alone.ts'
import { keepRenewing, LEASE_MS } from '../leases.ts'
import { byCustomer, grouped } from '../../db/rows.ts'
import { freeze } from '../../money/records/freezes.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { freeWhatHasEnded, selectOpenTransactions } from '../../networks/network-transactions.ts'
import { NodeFailure } from '../../networks/node-failure.ts'
import type { Rail } from '../context.ts'
import { brakeAfterFailures, keepFailed } from './stop-after-failures.ts'
import { follow } from './follow-withdrawals.ts'
import { claimDue, claimNew, leaseKept, signAlone, type Lease, type Work } from './lease.ts'
import type { Step } from './next-step.ts'
import type { Claimed } from './claimed-withdrawals.ts'
import { record, recordAll } from './record-steps.ts'
import type { SettlementRound } from './settlement-round.ts'
import { replaceStuck, reviewAndSign } from './sign-withdrawals.ts'
import { endLease, renewLease } from '../../networks/outgoing-transfers.ts'

/**
 * Settlement over a real network. Its node may take its time, so no database transaction is open while it is asked:
 * withdrawals are leased, and a step is recorded if its withdrawal is still as it was leased. Only signing holds its
 * withdrawals in a transaction, because the nonce or coins must be committed or rolled back with the signed bytes.
 */

const LOOP = originOfLoop('settlement')

/** Most withdrawals that one database transaction signs: the most that a kill -9 loses. */
const SIGN_MAX = 100
/** Most withdrawals that a node is asked about at once. */
const FOLLOW_MAX = 500
/** Most customers whose withdrawals those are: leases of more could not be renewed in time over a slow connection. */
const CUSTOMERS_MAX = 100
/** For how long a round goes on signing, before it follows what is signed. */
const SIGN_MS_MAX = 20_000

const customersOf = (rows: readonly { customer_id: string }[]): string[] => [...byCustomer(rows).keys()]

/** Signs batch after batch and broadcasts each before the next one, then follows the transactions that are under way. */
export async function settleOverNode(
  round: SettlementRound,
  rail: Rail,
  work: Work[],
  dueBy: string,
): Promise<void> {
  // Before a transaction is opened, so that a node that hangs takes no connection to the database with it.
  await rail.adapter.ready?.().catch(ignoreNodeFailure)
  const isToSign = ({ state }: Work) => state === 'NEW' || state === 'HELD'
  const toSign = customersOf(work.filter(isToSign))
  if (toSign.length > 0) await prepareToSign(round.db, rail)
  const until = performance.now() + SIGN_MS_MAX
  const isPlatform = (customerId: string) => customerId === PLATFORM_ID
  // Customers come first, and the platform's own transfers share no transaction with theirs.
  for (let customers of [toSign.filter((id) => !isPlatform(id)), toSign.filter(isPlatform)]) {
    // The platform gets one batch also where the customers' have taken all the time.
    for (let batches = 0; customers.length > 0 && (batches === 0 || performance.now() < until); batches++) {
      const { remaining, signedFor } = await signBatch(round, rail, customers, dueBy)
      customers = remaining
      while (signedFor.length > 0) await followBatch(round, rail, signedFor)
    }
  }
  const underWay = customersOf(work.filter((item) => !isToSign(item)))
  while (underWay.length > 0) await followBatch(round, rail, underWay)
}

function ignoreNodeFailure(error: unknown): void {
  if (!(error instanceof NodeFailure)) throw error
}

/**
 * Before signing, frees the coins and nonces of ended transactions. Where a part of the database is gone, nobody else
 * broadcasts what was signed for its customers, and later nonces of the wallet would wait: those transactions are broadcast
 * here.
 */
async function prepareToSign(db: Database, { network, adapter }: Rail): Promise<void> {
  if ((await freeWhatHasEnded(db, network, adapter.endedTopUps)) || adapter.rebroadcast === undefined) return
  await adapter.rebroadcast(await selectOpenTransactions(db, network)).catch(ignoreNodeFailure)
}

interface SignedBatch {
  /** The customers that may have more to sign. */
  remaining: string[]
  /** The customers for whom something was signed. */
  signedFor: string[]
}

/** Signs one batch, of as many customers as it takes. Where that fails, each customer is tried alone. */
async function signBatch(
  round: SettlementRound,
  rail: Rail,
  customers: string[],
  dueBy: string,
): Promise<SignedBatch> {
  const sign = async (ids: string[]): Promise<SignedBatch> => {
    const { steps, remaining } = await transaction(round.db, async (tx) => {
      const { claimed, remaining } = await claimToSign(tx, rail, ids, dueBy)
      const steps = await reviewAndSign(tx, rail, claimed)
      await recordAll(tx, rail.network, steps)
      return { steps, remaining }
    })
    round.report(steps)
    const signed = steps.filter(({ state }) => state === 'SIGNED' || state === 'ASKED')
    return { remaining, signedFor: customersOf(signed.map(({ withdrawal }) => withdrawal)) }
  }
  try {
    return await sign(customers)
  } catch (error) {
    if (customers.length === 1) round.addFailure(error)
    else if (connectionLost(error)) throw error
  }
  const signedFor: string[] = []
  if (customers.length > 1)
    for (const customer of customers)
      signedFor.push(...((await round.attempt(() => sign([customer])))?.signedFor ?? []))
  return { remaining: [], signedFor }
}

/** Claims a batch to sign; `remaining`, the customers that may have more. Nobody else signs until the commit. */
async function claimToSign(
  tx: Transaction,
  { network, adapter: { paysMany = 1 } }: Rail,
  customers: string[],
  dueBy: string,
): Promise<{ claimed: Claimed[]; remaining: string[] }> {
  await signAlone(tx, network)
  const most = Math.max(SIGN_MAX, paysMany)
  const claimed: Claimed[] = []
  for (const [index, customer_id] of customers.entries()) {
    const work = { customer_id, network }
    claimed.push(...(await claimDue(tx, work, { limit: most - claimed.length, dueBy })))
    if (claimed.length < most) claimed.push(...(await claimNew(tx, work, most - claimed.length)))
    if (claimed.length >= most) return { claimed, remaining: customers.slice(index) }
  }
  return { claimed, remaining: [] }
}

/**
 * Takes as many customers out of `customers` as a batch takes. Leases their withdrawals, asks the node about them with no
 * transaction open, records what it said, and releases the others.
 */
async function followBatch(round: SettlementRound, rail: Rail, customers: string[]): Promise<void> {
  const { db, failures } = round
  const leases: Lease[] = []
  const stop = keepRenewing(leases, (lease) => renewLease(db, lease, LEASE_MS))
  const recorded = new Set<string>()
  const commit = async (makeSteps: (tx: Transaction) => Promise<Step[]>, name?: string) => {
    const steps = await round.attempt(() => transaction(db, makeSteps), name)
    if (steps === undefined) return
    round.report(steps)
    for (const { withdrawal } of steps) recorded.add(withdrawal.transfer_id)
  }
  try {
    for (let room = FOLLOW_MAX; room > 0 && leases.length < CUSTOMERS_MAX && customers.length > 0;) {
      const work = { customer_id: customers.shift()!, network: rail.network }
      const lease = await leaseKept(db, work, room)
      if (lease.kept.length > 0) leases.push(lease)
      room -= lease.kept.length
    }
    if (leases.length === 0) return
    const leased = leases.flatMap(({ kept }) => kept)
    const followed = await round.attempt(() => follow(db, rail.adapter, leased, failures))
    if (followed === undefined) return
    const { answered, steps, stuck } = followed
    const recordTogether = async (tx: Transaction, steps: Step[]) => {
      await recordAll(tx, rail.network, steps)
      return steps
    }
    if (answered.length > 0) await commit((tx) => recordTogether(tx, answered))
    if (stuck.length > 0) await commit(async (tx) => recordTogether(tx, await replaceStuck(tx, rail, stuck)))
    const others = steps.filter(({ withdrawal }) => !recorded.has(withdrawal.transfer_id))
    await stopWhereDisputed(round, rail, others)
    for (const [customer_id, own] of grouped(others, ({ withdrawal }) => withdrawal.customer_id))
      await commit(async (tx) => {
        await record(tx, customer_id, own)
        await keepFailed(tx, own)
        return own
      }, customerName({ customer_id }))
    if (others.some(({ failure }) => failure === 'UNEXPLAINED'))
      await round.attempt(() => brakeAfterFailures(db, rail.network))
  } finally {
    await stop()
    for (const lease of leases) {
      const kept = lease.kept.filter(({ transfer_id }) => !recorded.has(transfer_id))
      // The lease ends by itself where it cannot be ended here.
      if (kept.length > 0) await round.attempt(() => endLease(db, { ...lease, kept }))
    }
  }
}

/** Freezes a network whose nodes disagree about a payment. */
async function stopWhereDisputed(round: SettlementRound, { network }: Rail, steps: Step[]): Promise<void> {
  const disputed = steps.find(({ waitingReason }) => waitingReason?.code === 'NODES_DISAGREE')?.waitingReason
  if (disputed === undefined) return
  const target = { kind: 'NETWORK', network } as const
  await round.attempt(() => freeze(round.db, LOOP, target, 'NODES_DISAGREE', disputed.detail))
}
