import { connectionLost, transaction, type Database, type Transaction } from '../db/database.ts'
import { freezesOfSigning } from '../records/freezes.ts'
import { PLATFORM_ID } from '../records/treasury.ts'
import { NodeFailure, NodeRefusal } from '../networks/node-failure.ts'
import type {
  BroadcastAnswer,
  Network,
  NetworkAdapter,
  Networks,
  Refusal,
  Signing,
} from '../networks/network.ts'
import { BEHIND_ANOTHER, reasonOfFailure, type WaitingReason } from '../networks/waiting.ts'
import { checkBeforeSigning, type SigningDecision } from './check-before-signing.ts'
import {
  behindOthers,
  claimDue,
  claimNew,
  leaseKept,
  payingTogether,
  release,
  signAlone,
  workToDo,
  type Claimed,
  type Kept,
  type Work,
} from './lease.ts'
import { keepTransactions, record, TakenMeanwhile, type Step } from './record-steps.ts'

/** Most withdrawals over a real network that one transaction of the database signs: what a kill -9 loses at most. */
const SIGN_MAX = 100
/** Most of them whose node is asked about at once. */
const FOLLOW_MAX = 500
/** How long a round begins to sign more on a real network, before it goes on with what is signed. */
const SIGN_MS_MAX = 20_000

/** A withdrawal that has come to its end. */
export interface EndedWithdrawal {
  customer_id: string
  transfer_id: string
  network: Network
  status: 'COMPLETED' | 'FAILED'
}

/** What a round gathers. */
interface Round {
  db: Database
  ended: (withdrawal: EndedWithdrawal) => void
  failures: unknown[]
  moved: number
}

/**
 * Takes every withdrawal, crypto or wire, that is due one step on (ARCHITECTURE, "Life of a withdrawal"): reviewed,
 * signed and kept, broadcast, confirmed or refused. Any number of workers share the work; what a crash undoes is done
 * again with the same signed bytes. Those of a network that is not among these wait.
 *
 * Over networks that are simulated in the database, each step is one transaction that holds its withdrawals. A real
 * network's node may take its time, so that no transaction is open while it is asked: withdrawals are leased, and what came of
 * them is recorded if they are still as they were leased. Only signing holds them, since what it uses up (a nonce,
 * coins) must be kept or lost with the signed bytes: a small batch in each transaction.
 *
 * Gives how many withdrawals moved; `ended` is told of those that have come to their end. Throws what failed, after all
 * else has been done.
 */
export async function settleWithdrawals(
  db: Database,
  networks: Networks,
  ended: (withdrawal: EndedWithdrawal) => void = () => undefined,
): Promise<number> {
  if (networks.size === 0) return 0
  const { work, at } = await workToDo(db, [...networks.keys()])
  const round: Round = { db, ended, failures: [], moved: 0 }
  const inNetwork = grouped(work, ({ network }) => network)
  for (const [network, itsWork] of inNetwork) {
    const adapter = forOneRound(networks.get(network)!)
    if (adapter.asksNode) await attempt(round, () => settleOverNode(round, network, itsWork, at, adapter))
    else await settleInDatabase(round, network, itsWork, adapter)
  }
  const { failures, moved } = round
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} steps of settlement failed`)
  return moved
}

/** Does something whose failure holds up nobody else, and gives what it gives. Throws when the database is gone. */
async function attempt<T>({ failures }: Round, work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    if (connectionLost(error)) throw error
    // Who was first has done it.
    if (!(error instanceof TakenMeanwhile)) failures.push(error)
    return undefined
  }
}

/** Counts what is committed, and tells of what has ended. */
function tell(round: Round, steps: readonly Step[]): void {
  round.moved += steps.length
  for (const { withdrawal, transfer } of steps) {
    if (transfer === undefined || transfer.status === 'PENDING') continue
    const { customer_id, transfer_id, network } = withdrawal
    round.ended({ customer_id, transfer_id, network, status: transfer.status })
  }
}

function grouped<T, Key>(all: readonly T[], keyOf: (one: T) => Key): Map<Key, T[]> {
  const groups = new Map<Key, T[]>()
  for (const one of all) {
    const key = keyOf(one)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [one])
    else group.push(one)
  }
  return groups
}

const customersOf = (rows: readonly { customer_id: string }[]): string[] => [
  ...new Set(rows.map(({ customer_id }) => customer_id)),
]

/** Records steps of several customers in one transaction; in their order, as balances are locked. */
async function recordAll(tx: Transaction, network: Network, steps: readonly Step[]): Promise<void> {
  await keepTransactions(
    tx,
    network,
    steps.flatMap(({ signed }) => signed ?? []),
  )
  const byCustomer = grouped(steps, ({ withdrawal }) => withdrawal.customer_id)
  for (const customerId of [...byCustomer.keys()].sort())
    await record(tx, customerId, byCustomer.get(customerId)!)
}

// ---------------------------------------------------------------------------------------------- in the database

/** Customer by customer, each claim and what comes of it in one transaction. */
async function settleInDatabase(
  round: Round,
  network: Network,
  work: Work[],
  adapter: NetworkAdapter,
): Promise<void> {
  for (const customer_id of customersOf(work)) {
    for (const claim of [claimNew, claimDue]) {
      const steps = await attempt(round, () =>
        transaction(round.db, async (tx) => {
          const claimed = await claim(tx, { customer_id, network })
          if (claimed.length === 0) return []
          const steps = await takeStep(tx, network, claimed, adapter, round.failures)
          if (steps.length > 0) await record(tx, customer_id, steps)
          return steps
        }),
      )
      if (steps !== undefined) tell(round, steps)
    }
  }
}

/** Does the next thing for each withdrawal. */
async function takeStep(
  tx: Transaction,
  network: Network,
  claimed: Claimed[],
  adapter: NetworkAdapter,
  failures: unknown[],
): Promise<Step[]> {
  const isKept = (withdrawal: Claimed): withdrawal is Kept =>
    withdrawal.state === 'SIGNED' || withdrawal.state === 'BROADCAST'
  const steps = await reviewedAndSigned(
    tx,
    network,
    claimed.filter((one) => !isKept(one)),
    adapter,
  )
  const { steps: followed, stuck } = await follow(claimed.filter(isKept), adapter, failures)
  const replaced = await replacedSteps(tx, network, stuck, adapter)
  return [...steps, ...instead(followed, replaced)]
}

/** With these steps in the place of the others of the same withdrawals. */
function instead(steps: readonly Step[], others: readonly Step[]): Step[] {
  const isOther = new Set(others.map(({ withdrawal }) => withdrawal.transfer_id))
  return [...steps.filter(({ withdrawal }) => !isOther.has(withdrawal.transfer_id)), ...others]
}

// ---------------------------------------------------------------------------------------------- over a node

/** Signs batch after batch, broadcasts each before the next, and then asks about all that is on its way. */
async function settleOverNode(
  round: Round,
  network: Network,
  work: Work[],
  at: string,
  adapter: NetworkAdapter,
): Promise<void> {
  // Before a transaction is opened: a node that hangs takes no connection to the database with it.
  await adapter.ready?.().catch((error: unknown) => {
    if (!(error instanceof NodeFailure)) throw error
  })
  const waiting = customersOf(work.filter(({ state }) => state === 'NEW' || state === 'HELD'))
  const until = performance.now() + SIGN_MS_MAX
  const isPlatform = (customerId: string) => customerId === PLATFORM_ID
  // Customers come first, and what the platform moves for itself shares no transaction with them.
  for (let toSign of [waiting.filter((one) => !isPlatform(one)), waiting.filter(isPlatform)]) {
    // One batch of the platform's own, also where the customers' have taken all the time.
    for (let batches = 0; toSign.length > 0 && (batches === 0 || performance.now() < until); batches++) {
      const { claimed, signedFor } = await signBatch(round, network, toSign, at, adapter)
      toSign = claimed
      await followAll(round, network, signedFor, adapter)
    }
  }
  await followAll(
    round,
    network,
    customersOf(work.filter(({ state }) => state === 'SIGNED' || state === 'BROADCAST')),
    adapter,
  )
}

/**
 * Signs what one transaction may, of as many customers as it takes. Gives those of them that may have more to sign, and those
 * for whom something was signed. Where it fails, each customer is tried alone: one must not hold up another.
 */
async function signBatch(
  round: Round,
  network: Network,
  customers: string[],
  at: string,
  adapter: NetworkAdapter,
): Promise<{ claimed: string[]; signedFor: string[] }> {
  const sign = (some: string[]) =>
    transaction(round.db, async (tx) => {
      const { claimed, rest } = await claimToSign(tx, network, some, at, adapter.paysMany ?? SIGN_MAX)
      const steps = await reviewedAndSigned(tx, network, claimed, adapter)
      await recordAll(tx, network, steps)
      return { steps, rest }
    })
  const signedBy = (steps: Step[]) =>
    customersOf(steps.filter(({ state }) => state === 'SIGNED').map(({ withdrawal }) => withdrawal))
  try {
    const { steps, rest } = await sign(customers)
    tell(round, steps)
    return { claimed: rest, signedFor: signedBy(steps) }
  } catch (error) {
    if (connectionLost(error)) throw error
    if (customers.length === 1) {
      if (!(error instanceof TakenMeanwhile)) round.failures.push(error)
      return { claimed: [], signedFor: [] }
    }
  }
  const signedFor: string[] = []
  for (const customer of customers) {
    const signed = await attempt(round, () => sign([customer]))
    if (signed === undefined) continue
    tell(round, signed.steps)
    signedFor.push(...signedBy(signed.steps))
  }
  return { claimed: [], signedFor }
}

/** Claims what waits to be signed, up to a batch; `rest`, the customers that may have more. Nobody else signs to the commit. */
async function claimToSign(
  tx: Transaction,
  network: Network,
  customers: string[],
  at: string,
  most: number,
): Promise<{ claimed: Claimed[]; rest: string[] }> {
  await signAlone(tx, network)
  const claimed: Claimed[] = []
  for (const [index, customer_id] of customers.entries()) {
    const work = { customer_id, network }
    claimed.push(...(await claimDue(tx, work, { limit: most - claimed.length, heldAt: at })))
    if (claimed.length < most) claimed.push(...(await claimNew(tx, work, most - claimed.length)))
    if (claimed.length >= most) return { claimed, rest: customers.slice(index) }
  }
  return { claimed, rest: [] }
}

/** Broadcasts and asks about everything of these customers that is kept and due. */
async function followAll(
  round: Round,
  network: Network,
  customers: string[],
  adapter: NetworkAdapter,
): Promise<void> {
  let leased: Kept[] = []
  for (const [index, customer_id] of customers.entries()) {
    const work = { customer_id, network }
    leased.push(...(await leaseKept(round.db, work, FOLLOW_MAX - leased.length)))
    if (leased.length < FOLLOW_MAX && index < customers.length - 1) continue
    await followLeased(round, network, leased, adapter)
    leased = []
  }
}

async function followLeased(
  round: Round,
  network: Network,
  leased: Kept[],
  adapter: NetworkAdapter,
): Promise<void> {
  if (leased.length === 0) return
  const recorded = new Set<string>()
  const commit = async (steps: Step[], make: (tx: Transaction) => Promise<Step[]>) => {
    const made = await attempt(round, () => transaction(round.db, make))
    if (made === undefined) return
    tell(round, made)
    for (const { withdrawal } of [...made, ...steps]) recorded.add(withdrawal.transfer_id)
  }
  try {
    const asked = await attempt(round, () => follow(leased, adapter, round.failures))
    if (asked === undefined) return
    const { steps, stuck } = asked
    if (stuck.length > 0)
      await commit([], async (tx) => {
        const replaced = await replacedSteps(tx, network, stuck, adapter)
        await recordAll(tx, network, replaced)
        return replaced
      })
    const others = steps.filter(({ withdrawal }) => !recorded.has(withdrawal.transfer_id))
    for (const [customerId, its] of grouped(others, ({ withdrawal }) => withdrawal.customer_id)) {
      await commit(its, async (tx) => {
        await record(tx, customerId, its)
        return its
      })
    }
  } finally {
    const left = leased.filter(({ transfer_id }) => !recorded.has(transfer_id))
    for (const [customerId, its] of grouped(left, ({ customer_id }) => customer_id)) {
      const ids = its.map(({ transfer_id }) => transfer_id)
      // It ends by itself where it cannot be ended here.
      await attempt(round, () => release(round.db, customerId, ids))
    }
  }
}

/**
 * A network as one round sees it: once its node does not answer, whatever else is asked fails at once, for the same
 * reason, so that the round waits for it once instead of several times for each customer. A node that answers, and says
 * no, is asked on: that costs no time, and may be about one customer's alone.
 */
function forOneRound(adapter: NetworkAdapter): NetworkAdapter {
  let down: NodeFailure | undefined
  async function unlessDown<T>(ask: () => Promise<T>): Promise<T> {
    if (down !== undefined) throw down
    try {
      return await ask()
    } catch (error) {
      if (error instanceof NodeFailure && !(error instanceof NodeRefusal)) down = error
      throw error
    }
  }
  return {
    ...adapter,
    ...(adapter.ready !== undefined && { ready: () => unlessDown(() => adapter.ready!()) }),
    sign: (tx, withdrawals) => unlessDown(() => adapter.sign(tx, withdrawals)),
    broadcast: (withdrawals) => unlessDown(() => adapter.broadcast(withdrawals)),
    checkStatus: (withdrawals) => unlessDown(() => adapter.checkStatus(withdrawals)),
    ...(adapter.replace !== undefined && {
      replace: (tx, withdrawals) => unlessDown(() => adapter.replace!(tx, withdrawals)),
    }),
  }
}

// ---------------------------------------------------------------------------------------------- what is asked

/**
 * Reviews what is new, and signs it and what waited, to be kept by this transaction. Each is signed only as its customer
 * stands now (`checkBeforeSigning`).
 */
export async function reviewedAndSigned(
  tx: Transaction,
  network: Network,
  claimed: Claimed[],
  adapter: NetworkAdapter,
): Promise<Step[]> {
  const fresh = claimed.filter(({ state }) => state === 'NEW').map((one) => reviewed(one, adapter))
  const held = claimed.filter(({ state }) => state === 'HELD')
  const passed = [...fresh.flatMap((one) => ('pass' in one ? [one.pass] : [])), ...held]
  return [
    ...fresh.flatMap((one) => ('step' in one ? [one.step] : [])),
    ...(await signed(tx, network, passed, adapter)),
  ]
}

function reviewed(withdrawal: Claimed, adapter: NetworkAdapter): { pass: Claimed } | { step: Step } {
  const review = adapter.review(withdrawal)
  switch (review.verdict) {
    case 'PASS':
      return { pass: withdrawal }
    case 'REJECT':
      return { step: failed(withdrawal, review.refusal) }
    case 'HOLD': {
      const { secondary_status, holdMs } = review
      return {
        step: {
          withdrawal,
          state: 'HELD',
          dueInMs: holdMs,
          transfer: { status: 'PENDING', secondary_status },
        },
      }
    }
  }
}

/** Signs, to be kept by this transaction: it is broadcast only after the commit. */
async function signed(
  tx: Transaction,
  network: Network,
  passed: Claimed[],
  adapter: NetworkAdapter,
): Promise<Step[]> {
  if (passed.length === 0) return []
  const inOrder = [...passed].sort((a, b) => (a.transfer_id < b.transfer_id ? -1 : 1))
  const behind = adapter.signsAlone ? await allBehindOthers(tx, network, inOrder) : new Set<string>()
  const ahead = inOrder.filter(({ transfer_id }) => !behind.has(transfer_id))
  const decisions = await decisionsOf(tx, network, ahead, adapter)
  const first = ahead.filter(({ transfer_id }) => decisions.get(transfer_id)!.outcome === 'SIGN')
  const signings = first.length === 0 ? [] : await adapter.sign(tx, first).catch(allWait(first))
  const waits = (withdrawal: Claimed, waitingReason: WaitingReason): Step => {
    return { withdrawal, state: 'HELD', dueInMs: adapter.pollMs, waitingReason }
  }
  const stopped = ahead.flatMap((withdrawal): Step | [] => {
    const decision = decisions.get(withdrawal.transfer_id)!
    if (decision.outcome === 'SIGN') return []
    return decision.outcome === 'DEFERRED'
      ? waits(withdrawal, decision.reason)
      : failed(withdrawal, decision.refusal)
  })
  return [
    ...stopped,
    ...first.map((withdrawal, index): Step => {
      const signing = signings[index]!
      switch (signing.outcome) {
        case 'DEFERRED':
          return waits(withdrawal, signing.reason)
        case 'REFUSED':
          return failed(withdrawal, signing.refusal)
        case 'SIGNED':
          return {
            withdrawal,
            state: 'SIGNED',
            signed: signing,
            dueInMs: 0,
            // A hold is over: the secondary status that told of it goes.
            ...(withdrawal.state === 'HELD' && { transfer: { status: 'PENDING' } }),
          }
      }
    }),
    ...inOrder
      .filter(({ transfer_id }) => behind.has(transfer_id))
      .map((withdrawal) => waits(withdrawal, BEHIND_ANOTHER)),
  ]
}

/** Whether each may be signed, as its customer stands now. */
async function decisionsOf(
  tx: Transaction,
  network: Network,
  withdrawals: Claimed[],
  adapter: NetworkAdapter,
): Promise<Map<string, SigningDecision>> {
  const decisions = new Map<string, SigningDecision>()
  for (const [customer_id, its] of grouped(withdrawals, (one) => one.customer_id))
    for (const [id, decision] of await checkBeforeSigning(tx, { customer_id, network }, its, adapter))
      decisions.set(id, decision)
  return decisions
}

/** Those that must wait behind others of their profiles. From here to the commit, this transaction alone signs. */
async function allBehindOthers(
  tx: Transaction,
  network: Network,
  withdrawals: Claimed[],
): Promise<Set<string>> {
  await signAlone(tx, network)
  const behind = new Set<string>()
  for (const [customer_id, its] of grouped(withdrawals, (one) => one.customer_id))
    for (const transferId of await behindOthers(tx, { customer_id, network }, its)) behind.add(transferId)
  return behind
}

/** What was not signed is not kept, and so never broadcast: a node that fails in the middle has signed nothing. */
const allWait =
  (withdrawals: Claimed[]) =>
  (error: unknown): Signing[] => {
    if (!(error instanceof NodeFailure)) throw error
    const reason = reasonOfFailure(error)
    return withdrawals.map(() => ({ outcome: 'DEFERRED', reason }))
  }

/** What came of broadcasting; `waiting`, those that the network did not take. */
async function broadcast(
  withdrawals: Kept[],
  adapter: NetworkAdapter,
): Promise<{ steps: Step[]; waiting: (Step & { withdrawal: Kept })[] }> {
  const answers =
    withdrawals.length === 0
      ? []
      : await adapter.broadcast(withdrawals).catch((error: unknown): BroadcastAnswer[] => {
          if (!(error instanceof NodeFailure)) throw error
          const reason = reasonOfFailure(error)
          return withdrawals.map(() => ({ accepted: false, reason }))
        })
  const dueInMs = adapter.pollMs
  return {
    steps: withdrawals.flatMap((withdrawal, index): Step[] => {
      const answer = answers[index]!
      if (answer.accepted) return [{ withdrawal, state: 'BROADCAST', dueInMs }]
      return 'refusal' in answer ? [failed(withdrawal, answer.refusal)] : []
    }),
    waiting: withdrawals.flatMap((withdrawal, index) => {
      const answer = answers[index]!
      if (!('reason' in answer)) return []
      return [{ withdrawal, state: 'SIGNED', dueInMs, waitingReason: answer.reason } as const]
    }),
  }
}

/** Broadcasts what is signed, and asks how far the rest is. Where the network cannot tell, there is no step. */
async function follow(
  kept: Kept[],
  adapter: NetworkAdapter,
  failures: unknown[],
): Promise<{ steps: Step[]; stuck: Kept[] }> {
  const sent = await broadcast(
    kept.filter(({ state }) => state === 'SIGNED'),
    adapter,
  )
  // What is not taken may be made already, may never be, or may need another in its place.
  const asked = [
    ...kept.filter(({ state }) => state === 'BROADCAST'),
    ...sent.waiting.map(({ withdrawal }) => withdrawal),
  ]
  const { steps, stuck } = await followed(asked, adapter).catch((error: unknown) => {
    // That does not undo what it has done for others, and they are asked about again.
    failures.push(error)
    return { steps: [], stuck: [] }
  })
  return { steps: [...sent.steps, ...instead(sent.waiting, steps)], stuck }
}

/** How far they are, but for those that were not taken and are nowhere; `stuck`, those that may be replaced. */
async function followed(asked: Kept[], adapter: NetworkAdapter): Promise<{ steps: Step[]; stuck: Kept[] }> {
  if (asked.length === 0) return { steps: [], stuck: [] }
  const progress = await adapter.checkStatus(asked)
  const stuck = asked.filter(({ age_ms }, index) => {
    const isOpen = ['PENDING', 'UNKNOWN'].includes(progress[index]!.state)
    return isOpen && age_ms >= (adapter.stuckAfterMs ?? Infinity)
  })
  const steps = asked.flatMap((withdrawal, index): Step | [] => {
    const now = progress[index]!
    switch (now.state) {
      case 'CONFIRMED': {
        const { crypto_tx_hash = withdrawal.crypto_tx_hash, crypto_tx_index, networkFee } = now
        const onChain = withdrawal.network !== 'WIRE' && { crypto_tx_hash, crypto_tx_index }
        return { withdrawal, state: 'DONE', networkFee, transfer: { status: 'COMPLETED', ...onChain } }
      }
      case 'FAILED':
        return { ...failed(withdrawal, now.refusal), networkFee: now.networkFee }
      case 'PENDING':
      case 'MINED':
        return { withdrawal, state: 'BROADCAST', dueInMs: adapter.pollMs }
      case 'UNRESOLVED':
        return { withdrawal, state: 'BROADCAST', dueInMs: adapter.pollMs, waitingReason: now.reason }
      case 'UNKNOWN':
        return withdrawal.state === 'SIGNED' ? [] : { withdrawal, state: 'SIGNED', dueInMs: 0 }
    }
  })
  return { steps, stuck }
}

/** Those that are to be broadcast in the place of stuck ones. From here to the commit, nobody else signs. */
async function replacedSteps(
  tx: Transaction,
  network: Network,
  stuck: Kept[],
  adapter: NetworkAdapter,
): Promise<Step[]> {
  if (stuck.length === 0 || adapter.replace === undefined) return []
  await signAlone(tx, network)
  // A frozen customer's is replaced all the same: it may be paid already, and others may wait behind its nonce.
  if ((await freezesOfSigning(tx, { network })).length > 0) return []
  const all = adapter.paysMany === undefined ? stuck : await payingTogether(tx, network, stuck)
  const replacements = all.length === 0 ? [] : await adapter.replace(tx, all)
  return all.flatMap((withdrawal, index): Step | [] => {
    const signed = replacements[index]
    return signed === undefined ? [] : { withdrawal, state: 'SIGNED', signed, replaces: true, dueInMs: 0 }
  })
}

const failed = (withdrawal: Claimed, refusal: Refusal): Step => ({
  withdrawal,
  state: 'DONE',
  transfer: { status: 'FAILED', ...refusal },
})
