import {
  connectionLost,
  transaction,
  type Database,
  type Queryable,
  type Transaction,
} from '../../db/database.ts'
import { customerName, RecordFailure } from '../../db/each-alone.ts'
import { keepRenewing } from '../../db/leases.ts'
import { byCustomer } from '../../db/rows.ts'
import { PLATFORM_ID } from '../../money/records/treasury.ts'
import { NodeFailure } from '../../networks/node-failure.ts'
import type { PayoutNetwork, Payer, Networks } from '../../networks/network.ts'
import {
  freeWhatHasEnded,
  keepTransactions,
  selectOpenTransactions,
} from '../../networks/network-transactions.ts'
import { follow, replaceStuck, reviewAndSign } from './ask-network.ts'
import { withCircuitBreaker } from './circuit-breaker.ts'
import { brakeAfterFailures, keepFailed } from './failed-transactions.ts'
import {
  claimDue,
  claimNew,
  leaseKept,
  release,
  renewKept,
  signAlone,
  workToDo,
  type Lease,
  type Work,
} from './lease.ts'
import { overriddenBy, type Step } from './next-step.ts'
import { TakenMeanwhile, type Claimed, type KeptWithdrawal } from './outgoing-transfers.ts'
import { record } from './record-steps.ts'
import { freeze } from '../../money/records/freezes.ts'
import { originOfLoop } from '../../contract/actor.ts'

const LOOP = originOfLoop('settlement')

/** Most withdrawals over a real network that one database transaction signs: the most that a kill -9 loses. */
const SIGN_MAX = 100
/** Most withdrawals that a node is asked about at once. */
const FOLLOW_MAX = 500
/** Most customers whose withdrawals those are: leases of more could not be renewed in time over a slow connection. */
const CUSTOMERS_MAX = 100
/** For how long a round goes on signing over a real network, before it follows what is signed. */
const SIGN_MS_MAX = 20_000

interface Round {
  db: Database
  taken: (steps: readonly Step[]) => void
  failures: unknown[]
  moved: number
}

/**
 * One round of settlement: takes every withdrawal that is due, crypto or wire, one step on. A step reviews it, signs it and
 * stores the bytes, broadcasts, confirms or refuses it. Any number of workers share the work. What a crash undoes is repeated
 * with the same signed bytes. Withdrawals of a network that `networks` lacks wait.
 *
 * A real network's node may take its time, so no database transaction is open while it is asked: withdrawals are leased, and a
 * step is recorded if its withdrawal is still as it was leased. Only signing holds its withdrawals in a transaction, because
 * the nonce or coins must be committed or rolled back with the signed bytes. Over networks that are simulated in the database,
 * each step is one transaction that holds its withdrawals.
 *
 * `hints` says which customers have work (`Node.hints`). Returns how many withdrawals moved, and calls `taken` with steps
 * that are committed. Throws an AggregateError of the failures after everything else was tried.
 */
export async function settleWithdrawals(
  db: Database,
  networks: Networks,
  taken: (steps: readonly Step[]) => void = () => undefined,
  hints: Queryable = db,
): Promise<number> {
  if (networks.size === 0) return 0
  const { work, at } = await workToDo(hints, [...networks.keys()])
  const round: Round = { db, taken, failures: [], moved: 0 }
  for (const network of new Set(work.map((one) => one.network))) {
    const adapter = withCircuitBreaker(networks.get(network)!)
    const due = work.filter((one) => one.network === network)
    if (adapter.asksNode) await attempt(round, () => settleOverNode(round, network, due, at, adapter))
    else await settleInDatabase(round, network, due, adapter)
  }
  const { failures, moved } = round
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} steps of settlement failed`)
  return moved
}

/**
 * Returns the result of some work of the round, or undefined where it failed: the failure is thrown at the end of the
 * round, as one of the record if that is given, so that it delays nobody else. Throws when the connection to the database is lost.
 */
async function attempt<T>(round: Round, work: () => Promise<T>, record?: string): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    addFailure(round, error, record)
    return undefined
  }
}

function addFailure({ failures }: Round, error: unknown, record?: string): void {
  if (connectionLost(error)) throw error
  // The worker or operator who was faster has done the work.
  if (error instanceof TakenMeanwhile) return
  failures.push(record === undefined ? error : new RecordFailure(record, error))
}

function report(round: Round, steps: readonly Step[]): void {
  round.moved += steps.length
  round.taken(steps)
}

/** Records the steps of several customers in one transaction, in the order in which balances are locked. */
export async function recordAll(
  tx: Transaction,
  network: PayoutNetwork,
  steps: readonly Step[],
): Promise<void> {
  await keepTransactions(
    tx,
    network,
    steps.flatMap(({ withdrawal: { customer_id, transfer_id }, signed }) =>
      signed === undefined ? [] : { ...signed, customer_id, transfer_id },
    ),
  )
  const customerIds = customersOf(steps.map(({ withdrawal }) => withdrawal))
  for (const customerId of customerIds.sort()) {
    const own = steps.filter(({ withdrawal }) => withdrawal.customer_id === customerId)
    await record(tx, customerId, own)
  }
}

const customersOf = (rows: readonly { customer_id: string }[]): string[] => [...byCustomer(rows).keys()]

const isKept = (withdrawal: Claimed): withdrawal is KeptWithdrawal =>
  withdrawal.state !== 'NEW' && withdrawal.state !== 'HELD'

// ---------------------------------------------------------------------------------------------- in the database

/** Takes each customer's withdrawals one step on, claim and steps in one transaction. */
async function settleInDatabase(
  round: Round,
  network: PayoutNetwork,
  work: Work[],
  adapter: Payer,
): Promise<void> {
  for (const customer_id of customersOf(work)) {
    for (const claim of [claimNew, claimDue]) {
      const steps = await attempt(
        round,
        () =>
          transaction(round.db, async (tx) => {
            const claimed = await claim(tx, { customer_id, network })
            if (claimed.length === 0) return []
            const steps = await takeSteps(tx, network, claimed, adapter, round.failures)
            if (steps.length > 0) await record(tx, customer_id, steps)
            return steps
          }),
        customerName({ customer_id }),
      )
      if (steps !== undefined) report(round, steps)
    }
  }
}

async function takeSteps(
  tx: Transaction,
  network: PayoutNetwork,
  claimed: Claimed[],
  adapter: Payer,
  failures: unknown[],
): Promise<Step[]> {
  const notSigned = claimed.filter((one) => !isKept(one))
  const steps = await reviewAndSign(tx, network, notSigned, adapter)
  const { steps: followed, stuck } = await follow(tx, claimed.filter(isKept), adapter, failures)
  const replaced = await replaceStuck(tx, network, stuck, adapter)
  return [...steps, ...overriddenBy(followed, replaced)]
}

// ---------------------------------------------------------------------------------------------- over a node

/** Signs batch after batch and broadcasts each before the next one, then follows the transactions that are under way. */
async function settleOverNode(
  round: Round,
  network: PayoutNetwork,
  work: Work[],
  at: string,
  adapter: Payer,
): Promise<void> {
  // Before a transaction is opened, so that a node that hangs takes no connection to the database with it.
  await adapter.ready?.().catch((error: unknown) => {
    if (!(error instanceof NodeFailure)) throw error
  })
  const toSign = customersOf(work.filter(({ state }) => state === 'NEW' || state === 'HELD'))
  if (toSign.length > 0) await prepareToSign(round.db, network, adapter)
  const until = performance.now() + SIGN_MS_MAX
  const isPlatform = (customerId: string) => customerId === PLATFORM_ID
  // Customers come first, and the platform's own transfers share no transaction with theirs.
  for (let customers of [toSign.filter((one) => !isPlatform(one)), toSign.filter(isPlatform)]) {
    // The platform gets one batch also where the customers' have taken all the time.
    for (let batches = 0; customers.length > 0 && (batches === 0 || performance.now() < until); batches++) {
      const { remaining, signedFor } = await signBatch(round, network, customers, at, adapter)
      customers = remaining
      while (signedFor.length > 0) await followBatch(round, network, signedFor, adapter)
    }
  }
  const underWay = customersOf(work.filter(({ state }) => state !== 'NEW' && state !== 'HELD'))
  while (underWay.length > 0) await followBatch(round, network, underWay, adapter)
}

/**
 * Before signing, frees the coins and nonces of ended transactions. Where a node of the database cluster is gone, nobody else
 * broadcasts what was signed for its customers, and later nonces of the wallet would wait: those transactions are broadcast
 * here.
 */
async function prepareToSign(db: Database, network: PayoutNetwork, adapter: Payer): Promise<void> {
  if ((await freeWhatHasEnded(db, network)) || adapter.rebroadcast === undefined) return
  await adapter.rebroadcast(await selectOpenTransactions(db, network)).catch((error: unknown) => {
    if (!(error instanceof NodeFailure)) throw error
  })
}

interface SignedBatch {
  /** The customers that may have more to sign. */
  remaining: string[]
  /** The customers for whom something was signed. */
  signedFor: string[]
}

/** Signs one batch, of as many customers as it takes. Where that fails, each customer is tried alone. */
async function signBatch(
  round: Round,
  network: PayoutNetwork,
  customers: string[],
  at: string,
  adapter: Payer,
): Promise<SignedBatch> {
  const sign = (some: string[]): Promise<SignedBatch> =>
    transaction(round.db, async (tx) => {
      const { claimed, remaining } = await claimToSign(tx, network, some, at, adapter.paysMany ?? SIGN_MAX)
      const steps = await reviewAndSign(tx, network, claimed, adapter)
      await recordAll(tx, network, steps)
      return { steps, remaining }
    }).then(({ steps, remaining }) => {
      report(round, steps)
      const signed = steps.filter(({ state }) => state === 'SIGNED' || state === 'ASKED')
      return { remaining, signedFor: customersOf(signed.map(({ withdrawal }) => withdrawal)) }
    })
  try {
    return await sign(customers)
  } catch (error) {
    if (customers.length === 1) addFailure(round, error)
    else if (connectionLost(error)) throw error
  }
  const signedFor: string[] = []
  if (customers.length > 1)
    for (const customer of customers)
      signedFor.push(...((await attempt(round, () => sign([customer])))?.signedFor ?? []))
  return { remaining: [], signedFor }
}

/** Claims a batch to sign; `remaining`, the customers that may have more. Nobody else signs until the commit. */
async function claimToSign(
  tx: Transaction,
  network: PayoutNetwork,
  customers: string[],
  at: string,
  most: number,
): Promise<{ claimed: Claimed[]; remaining: string[] }> {
  await signAlone(tx, network)
  const claimed: Claimed[] = []
  for (const [index, customer_id] of customers.entries()) {
    const work = { customer_id, network }
    claimed.push(...(await claimDue(tx, work, { limit: most - claimed.length, heldAt: at })))
    if (claimed.length < most) claimed.push(...(await claimNew(tx, work, most - claimed.length)))
    if (claimed.length >= most) return { claimed, remaining: customers.slice(index) }
  }
  return { claimed, remaining: [] }
}

/**
 * Takes as many customers out of `customers` as a batch takes. Leases their withdrawals, asks the node about them with no
 * transaction open, records what it said, and releases the others.
 */
async function followBatch(
  round: Round,
  network: PayoutNetwork,
  customers: string[],
  adapter: Payer,
): Promise<void> {
  const leases: Lease[] = []
  const stop = keepRenewing(leases, (lease) => renewKept(round.db, lease))
  const recorded = new Set<string>()
  const commit = async (makeSteps: (tx: Transaction) => Promise<Step[]>, name?: string) => {
    const steps = await attempt(round, () => transaction(round.db, makeSteps), name)
    if (steps === undefined) return
    report(round, steps)
    for (const { withdrawal } of steps) recorded.add(withdrawal.transfer_id)
  }
  try {
    for (let room = FOLLOW_MAX; room > 0 && leases.length < CUSTOMERS_MAX && customers.length > 0;) {
      const lease = await leaseKept(round.db, { customer_id: customers.shift()!, network }, room)
      if (lease.kept.length > 0) leases.push(lease)
      room -= lease.kept.length
    }
    if (leases.length === 0) return
    const leased = leases.flatMap(({ kept }) => kept)
    const followed = await attempt(round, () => follow(round.db, leased, adapter, round.failures))
    if (followed === undefined) return
    const { answered, steps, stuck } = followed
    if (answered.length > 0)
      await commit(async (tx) => {
        await recordAll(tx, network, answered)
        return answered
      })
    if (stuck.length > 0)
      await commit(async (tx) => {
        const replaced = await replaceStuck(tx, network, stuck, adapter)
        await recordAll(tx, network, replaced)
        return replaced
      })
    const others = steps.filter(({ withdrawal }) => !recorded.has(withdrawal.transfer_id))
    const disputed = others.find(
      ({ waitingReason }) => waitingReason?.code === 'NODES_DISAGREE',
    )?.waitingReason
    if (disputed !== undefined) {
      const target = { kind: 'NETWORK', network } as const
      await attempt(round, () => freeze(round.db, LOOP, target, 'NODES_DISAGREE', disputed.detail))
    }
    for (const customerId of customersOf(others.map(({ withdrawal }) => withdrawal))) {
      const own = others.filter(({ withdrawal }) => withdrawal.customer_id === customerId)
      await commit(
        async (tx) => {
          await record(tx, customerId, own)
          await keepFailed(tx, own)
          return own
        },
        customerName({ customer_id: customerId }),
      )
    }
    if (others.some(({ failure }) => failure === 'UNEXPLAINED'))
      await attempt(round, () => brakeAfterFailures(round.db, network))
  } finally {
    await stop()
    for (const lease of leases) {
      const kept = lease.kept.filter(({ transfer_id }) => !recorded.has(transfer_id))
      // The lease ends by itself where it cannot be ended here.
      if (kept.length > 0) await attempt(round, () => release(round.db, { ...lease, kept }))
    }
  }
}
