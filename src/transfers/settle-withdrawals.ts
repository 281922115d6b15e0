import { parseAmount, parseStoredAmount } from '../assets/amount.ts'
import { decimalsOf } from '../assets/catalogue.ts'
import { connectionLost, transaction, type Database, type Transaction } from '../db/database.ts'
import {
  networkFeeEntries,
  onPlatform,
  type Entry,
  type PlatformAccount,
  type Posting,
} from '../ledger/entries.ts'
import { LedgerTransaction } from '../ledger/post.ts'
import { freezesOfSigning } from '../ledger/records/freezes.ts'
import { endOrchestrations, type EndedTransfer } from '../ledger/records/orchestration.ts'
import type { SecondaryStatus, StatusDetails } from '../ledger/records/transfer.ts'
import { canonicalAddress } from '../networks/addresses.ts'
import { NodeFailure, NodeRefusal } from '../networks/node-failure.ts'
import type {
  BroadcastAnswer,
  BroadcastWithdrawal,
  Network,
  NetworkAdapter,
  NetworkFee,
  Networks,
  Refusal,
  SignedTransaction,
  Signing,
  Withdrawal,
} from '../networks/networks.ts'
import { isSimulated } from '../networks/simulated.ts'
import { checkBeforeSigning } from './check-before-signing.ts'

/** Held while a network's withdrawals are signed, beside the network's name. */
const SIGNING_LOCK = 7_311_006

/** Most withdrawals that one database transaction takes on. */
export const CLAIM_MAX = 500

type State = 'NEW' | 'HELD' | 'SIGNED' | 'BROADCAST'

/** A withdrawal that this worker has claimed, with how far it is. */
interface Claimed extends Withdrawal {
  state: State
  raw_transaction: Buffer | null
  crypto_tx_hash: string | null
  replaced: string[]
  /** How long ago its worker began it, or replaced its transaction. */
  age_ms: number
}

/** A withdrawal whose transaction is kept. */
type Kept = Claimed & BroadcastWithdrawal

/** What became of a claimed withdrawal: its next state, and what changes on the transfer. */
export interface Step {
  withdrawal: Withdrawal
  state: Exclude<State, 'NEW'> | 'DONE'
  signed?: SignedTransaction
  /** What is signed replaces what was. */
  replaces?: true
  /** Why it could not be signed yet, or was not taken. */
  waitingReason?: string
  /** What its transaction has really cost. */
  networkFee?: NetworkFee | undefined
  /** When to look again; none when done. */
  dueInMs?: number
  /** The transfer's new values; absent when it stays as it is. */
  transfer?: {
    status: 'PENDING' | 'COMPLETED' | 'FAILED'
    secondary_status?: SecondaryStatus | undefined
    status_details?: StatusDetails | undefined
    crypto_tx_hash?: string
    crypto_tx_index?: string
  }
}

/** A withdrawal that has come to its end. */
export interface EndedWithdrawal {
  customer_id: string
  transfer_id: string
  network: Network
  status: 'COMPLETED' | 'FAILED'
}

/** A customer's withdrawals over one network: what is claimed together, and fails together. */
interface Work {
  customer_id: string
  network: Network
}

/**
 * Takes every withdrawal, crypto or wire, that is due one step on (design section 4): reviewed, signed and kept, broadcast,
 * confirmed or refused. Each step is one transaction that holds its withdrawals, so that any number of workers
 * share the work; what a crash undoes is done again with the same signed bytes. Those of a network that has no
 * adapter now wait.
 * Gives how many withdrawals moved; `ended` is told of those that have come to their end. Throws what failed, after all
 * else has been done.
 */
export async function settleWithdrawals(
  db: Database,
  networks: Networks,
  ended: (withdrawal: EndedWithdrawal) => void = () => undefined,
): Promise<number> {
  const { rows } = await db.query<Work>(WORK_TO_DO)
  const adapters = new Map([...networks].map(([network, adapter]) => [network, forOneRound(adapter)]))
  let moved = 0
  const failures: unknown[] = []
  for (const work of rows) {
    const adapter = adapters.get(work.network)
    if (adapter === undefined) continue
    for (const claim of [claimNew, claimDue]) {
      try {
        const steps = await transaction(db, async (tx) => {
          const claimed = await claim(tx, work)
          if (claimed.length === 0) return []
          const steps = await takeStep(tx, work, claimed, adapter, (error) => void failures.push(error))
          if (steps.length > 0) await record(tx, work.customer_id, steps)
          return steps
        })
        moved += steps.length
        for (const { withdrawal, transfer } of steps) {
          if (transfer === undefined || transfer.status === 'PENDING') continue
          const { customer_id, transfer_id, network } = withdrawal
          ended({ customer_id, transfer_id, network, status: transfer.status })
        }
      } catch (error) {
        if (connectionLost(error)) throw error
        failures.push(error)
      }
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} steps of settlement failed`)
  return moved
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
    sign: (tx, withdrawals) => unlessDown(() => adapter.sign(tx, withdrawals)),
    broadcast: (withdrawals) => unlessDown(() => adapter.broadcast(withdrawals)),
    progress: (withdrawals) => unlessDown(() => adapter.progress(withdrawals)),
    ...(adapter.replace !== undefined && {
      replace: (tx, withdrawals) => unlessDown(() => adapter.replace!(tx, withdrawals)),
    }),
  }
}

// A withdrawal that goes over no blockchain is a wire.
const NETWORK = `coalesce(t.crypto_network, 'WIRE')`
const IS_NEW = `
  t.status = 'PENDING' and t.type in ('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL')
    and not exists (select from broadcasts b where b.customer_id = t.customer_id and b.transfer_id = t.id)`

// In another order each time: where a node fails now and then, it is not always the same customers who are behind that.
const WORK_TO_DO = `
  select customer_id, network
  from (
    select customer_id, network from broadcasts where due_at <= clock_timestamp()
    union
    select t.customer_id, ${NETWORK} from transfers t where ${IS_NEW}
  ) work
  order by random()`

// Statements here have no names, so that each is planned for the tables as they are: a plan that was made while they
// were young reads all of a customer's transfers for each withdrawal (measured: 500 claimed in 209 ms instead of 4).
/** A withdrawal by its transfer `t`; `$1` is its customer. */
export const CLAIMED = `
  select t.customer_id, t.id as transfer_id, t.profile_id, ${NETWORK} as network, t.asset, t.amount, t.memo,
         t.fiat_account_id,
         coalesce(t.destination_address, (
           select f.fiat_network_instructions -> 'wire' ->> 'account_number'
           from fiat_accounts f
           where f.customer_id = $1 and f.id = t.fiat_account_id
         ), '') as destination_address`
const ageOf = (column: string) =>
  `(extract(epoch from clock_timestamp() - ${column}) * 1000)::float8 as age_ms`
/** Of a broadcast `b`; `$1` is its customer. */
export const ITS_TRANSFER =
  'cross join lateral (select * from transfers where customer_id = $1 and id = b.transfer_id offset 0) t'

/** Begins withdrawals that no worker has begun. The broadcast's primary key decides between two that try. */
async function claimNew(tx: Transaction, { customer_id, network }: Work): Promise<Claimed[]> {
  const { rows } = await tx.query<Claimed>({
    text: `
      with new as (
        select t.id
        from transfers t
        where t.customer_id = $1 and ${NETWORK} = $2 and ${IS_NEW}
        order by t.id
        limit $3
        for update of t skip locked
      ), claimed as (
        insert into broadcasts (customer_id, transfer_id, network, state, created_at)
        select $1, new.id, $2, 'HELD', clock_timestamp()
        from new
        on conflict (customer_id, transfer_id) do nothing
        returning transfer_id
      )
      ${CLAIMED}, 'NEW' as state, null as raw_transaction, null as crypto_tx_hash, '{}'::text[] as replaced, 0 as age_ms
      from claimed b ${ITS_TRANSFER}
      order by t.id`,
    values: [customer_id, network, CLAIM_MAX],
  })
  return rows.map(withCanonicalAddress)
}

async function claimDue(tx: Transaction, { customer_id, network }: Work): Promise<Claimed[]> {
  const { rows } = await tx.query<Omit<Claimed, 'replaced'>>({
    text: `
      ${CLAIMED}, b.state, b.raw_transaction, b.crypto_tx_hash, ${ageOf('b.created_at')}
      from (
        select *
        from broadcasts
        where customer_id = $1 and network = $2 and due_at <= clock_timestamp()
        order by due_at, transfer_id
        limit $3
        for update skip locked
      ) b ${ITS_TRANSFER}
      order by b.due_at, b.transfer_id`,
    values: [customer_id, network, CLAIM_MAX],
  })
  // Behind the locks: the statement that takes them may not see what another worker replaced just before.
  const replaced = await tx.query<{ transfer_id: string; crypto_tx_hash: string; age_ms: number }>({
    text: `
      select transfer_id, crypto_tx_hash, ${ageOf('replaced_at')}
      from replaced_transactions
      where customer_id = $1 and transfer_id = any ($2::uuid[])`,
    values: [customer_id, rows.map(({ transfer_id }) => transfer_id)],
  })
  return rows.map((row) => {
    const before = replaced.rows.filter(({ transfer_id }) => transfer_id === row.transfer_id)
    return withCanonicalAddress({
      ...row,
      replaced: before.map(({ crypto_tx_hash }) => crypto_tx_hash),
      age_ms: Math.min(row.age_ms, ...before.map(({ age_ms }) => age_ms)),
    })
  })
}

/** With its address as the network's are written. */
export function withCanonicalAddress<T extends Withdrawal>(claimed: T): T {
  const { network, destination_address } = claimed
  if (network === 'WIRE') return claimed
  const canonical = canonicalAddress(network, destination_address, { testNetworks: true })
  return { ...claimed, destination_address: canonical ?? destination_address }
}

/**
 * Does the next thing for each withdrawal. `failed` is told of a network that cannot say how far they are: that does not
 * undo what it has done for others, and they are asked about again.
 */
async function takeStep(
  tx: Transaction,
  work: Work,
  claimed: Claimed[],
  adapter: NetworkAdapter,
  failed: (error: unknown) => void,
): Promise<Step[]> {
  const inState = <T extends Claimed>(state: State) =>
    claimed.filter((withdrawal): withdrawal is T => withdrawal.state === state)
  const fresh = inState('NEW').map((withdrawal) => reviewed(withdrawal, adapter))
  const passed = [...fresh.flatMap((one) => ('pass' in one ? [one.pass] : [])), ...inState('HELD')]
  const steps = [
    ...fresh.flatMap((one) => ('step' in one ? [one.step] : [])),
    ...(await signed(tx, work, passed, adapter)),
  ]
  const sent = await broadcast(inState<Kept>('SIGNED'), adapter)
  // What is not taken may be made already, may never be, or may need another in its place.
  const asked = [...inState<Kept>('BROADCAST'), ...sent.waiting.map(({ withdrawal }) => withdrawal)]
  const moved = await followed(tx, work, asked, adapter).catch((error: unknown) => {
    failed(error)
    return []
  })
  const hasMoved = new Set(moved.map(({ withdrawal }) => withdrawal))
  const waiting = sent.waiting.filter(({ withdrawal }) => !hasMoved.has(withdrawal))
  return [...steps, ...sent.steps, ...moved, ...waiting]
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
  work: Work,
  passed: Claimed[],
  adapter: NetworkAdapter,
): Promise<Step[]> {
  if (passed.length === 0) return []
  const inOrder = [...passed].sort((a, b) => (a.transfer_id < b.transfer_id ? -1 : 1))
  const behind = adapter.signsAlone ? await behindOthers(tx, work, inOrder) : new Set<string>()
  const ahead = inOrder.filter(({ transfer_id }) => !behind.has(transfer_id))
  const decisions = await checkBeforeSigning(tx, work, ahead, adapter)
  const first = ahead.filter(({ transfer_id }) => decisions.get(transfer_id)!.outcome === 'SIGN')
  const signings = first.length === 0 ? [] : await adapter.sign(tx, first).catch(allWait(first))
  const waits = (withdrawal: Claimed, waitingReason: string): Step => {
    return { withdrawal, state: 'HELD', dueInMs: adapter.pollMs, waitingReason }
  }
  const stopped = ahead.flatMap((withdrawal): Step | [] => {
    const decision = decisions.get(withdrawal.transfer_id)!
    if (decision.outcome === 'SIGN') return []
    return decision.outcome === 'WAITS'
      ? waits(withdrawal, decision.reason)
      : failed(withdrawal, decision.refusal)
  })
  return [
    ...stopped,
    ...first.map((withdrawal, index): Step => {
      const signing = signings[index]!
      switch (signing.outcome) {
        case 'WAITS':
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
      .map((withdrawal) => waits(withdrawal, 'an earlier withdrawal of the profile waits')),
  ]
}

/**
 * Those that another withdrawal of their profile comes before which is not signed yet and not among them: what waits,
 * waits in order. A broadcast withdrawal that an operator must judge holds up no later one. From here to the commit, this transaction alone signs on the network.
 */
async function behindOthers(
  tx: Transaction,
  { customer_id, network }: Work,
  withdrawals: Claimed[],
): Promise<Set<string>> {
  await signAlone(tx, network)
  const { rows } = await tx.query<{ transfer_id: string }>(
    `
    select mine.transfer_id
    from unnest($3::uuid[], $4::uuid[]) as mine (transfer_id, profile_id)
    where exists (
      select
      from transfers t
      left join broadcasts b on b.customer_id = $1 and b.transfer_id = t.id
      where t.customer_id = $1 and t.profile_id = mine.profile_id and t.status = 'PENDING'
        and t.type in ('CRYPTO_WITHDRAWAL', 'WIRE_WITHDRAWAL') and ${NETWORK} = $2
        and t.id < mine.transfer_id and t.id <> all ($3)
        and (b.transfer_id is null or b.state <> 'BROADCAST' and b.waiting_reason is not null)
    )`,
    [
      customer_id,
      network,
      withdrawals.map(({ transfer_id }) => transfer_id),
      withdrawals.map(({ profile_id }) => profile_id),
    ],
  )
  return new Set(rows.map(({ transfer_id }) => transfer_id))
}

/** What was not signed is not kept, and so never broadcast: a node that fails in the middle has signed nothing. */
const allWait =
  (withdrawals: Claimed[]) =>
  (error: unknown): Signing[] => {
    if (!(error instanceof NodeFailure)) throw error
    return withdrawals.map(() => ({ outcome: 'WAITS', reason: error.message }))
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
          return withdrawals.map(() => ({ accepted: false, waits: error.message }))
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
      if (!('waits' in answer)) return []
      return [{ withdrawal, state: 'SIGNED', dueInMs, waitingReason: answer.waits } as const]
    }),
  }
}

/** How far they are; of those that were not taken and are nowhere, nothing. */
async function followed(
  tx: Transaction,
  work: Work,
  withdrawals: Kept[],
  adapter: NetworkAdapter,
): Promise<Step[]> {
  if (withdrawals.length === 0) return []
  const progress = await adapter.progress(withdrawals)
  const stuck = withdrawals.filter(({ age_ms }, index) => {
    const isOpen = ['PENDING', 'UNKNOWN'].includes(progress[index]!.state)
    return isOpen && age_ms >= (adapter.stuckAfterMs ?? Infinity)
  })
  const replacements = await replaced(tx, work, stuck, adapter)
  return withdrawals.flatMap((withdrawal, index): Step | [] => {
    const signed = replacements.get(withdrawal)
    if (signed !== undefined) return { withdrawal, state: 'SIGNED', signed, replaces: true, dueInMs: 0 }
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
      case 'MADE':
        return { withdrawal, state: 'BROADCAST', dueInMs: adapter.pollMs }
      case 'UNRESOLVED':
        return { withdrawal, state: 'BROADCAST', dueInMs: adapter.pollMs, waitingReason: now.reason }
      case 'UNKNOWN':
        return withdrawal.state === 'SIGNED' ? [] : { withdrawal, state: 'SIGNED', dueInMs: 0 }
    }
  })
}

/** Those that are to be broadcast in the place of stuck ones. From here to the commit, nobody else signs. */
async function replaced(
  tx: Transaction,
  { network }: Work,
  stuck: Kept[],
  adapter: NetworkAdapter,
): Promise<Map<Kept, SignedTransaction>> {
  if (stuck.length === 0 || adapter.replace === undefined) return new Map()
  await signAlone(tx, network)
  // A frozen customer's is replaced all the same: it may be paid already, and others may wait behind its nonce.
  if ((await freezesOfSigning(tx, { network })).length > 0) return new Map()
  const replacements = await adapter.replace(tx, stuck)
  return new Map(
    stuck.flatMap((withdrawal, index) => {
      const replacement = replacements[index]
      return replacement === undefined ? [] : [[withdrawal, replacement] as const]
    }),
  )
}

/** Waits until nobody else signs on the network, and keeps it so to the commit. */
export const signAlone = (tx: Transaction, network: Network) =>
  tx.query('select pg_advisory_xact_lock($1, hashtext($2))', [SIGNING_LOCK, network])

const failed = (withdrawal: Withdrawal, refusal: Refusal): Step => ({
  withdrawal,
  state: 'DONE',
  transfer: { status: 'FAILED', ...refusal },
})

/** Writes the steps: ledger, transfers, broadcasts. The caller's transaction commits them together. */
export async function record(tx: Transaction, customerId: string, steps: Step[]): Promise<void> {
  const changed = steps.filter((step) => step.transfer !== undefined)
  if (changed.length > 0) {
    const completed = changed.filter((step) => step.transfer!.status === 'COMPLETED')
    const refused = changed.filter((step) => step.transfer!.status === 'FAILED')
    const postings = [...completed.map(settlement), ...(await refunds(tx, customerId, refused))]
    const keys = postings.flatMap(({ entries }) =>
      entries.flatMap(({ profile_id, asset }) => (profile_id === null ? [] : [{ profile_id, asset }])),
    )
    const ledger = await LedgerTransaction.open(tx, customerId, keys)
    ledger.post(...postings)
    await ledger.write()
    await updateTransfers(tx, customerId, changed, ledger.now.text)
    await endOrchestrations(tx, customerId, [...completed, ...refused].map(endOf), ledger.now.text)
  }
  await updateBroadcasts(tx, customerId, steps)
}

function endOf({ withdrawal: { transfer_id }, transfer }: Step): EndedTransfer {
  const { status, secondary_status, status_details = {} } = transfer!
  if (status === 'COMPLETED') return { transfer_id, status }
  const [why] = Object.values(status_details)
  const reason = why?.message ?? secondary_status?.detail ?? 'the network refused it'
  return { transfer_id, status: 'FAILED', detail: `the destination transfer failed: ${reason}` }
}

/** In flight to custody (for a wire, to the bank; in a simulation, to its own): the money has left. */
function settlement(step: Step): Posting {
  const { withdrawal } = step
  const { transfer_id, asset, network } = withdrawal
  const amount = parseAmount(withdrawal.amount, decimalsOf(asset))!
  const entries = [
    onPlatform(`in_flight:${network}`, asset, -amount),
    onPlatform(leftFrom(withdrawal), asset, amount),
    ...feeEntries(step),
  ]
  return { transfer_id, event: 'SETTLED', entries }
}

/** Where the money was that has left. */
function leftFrom({
  network,
  raw_transaction,
}: Withdrawal & { raw_transaction?: Buffer | null }): PlatformAccount {
  if (network === 'WIRE') return 'bank'
  const simulated = raw_transaction != null && isSimulated({ raw_transaction })
  return simulated ? `simulated:${network}` : `custody:${network}`
}

function feeEntries({ withdrawal: { network }, networkFee }: Step): Entry[] {
  if (networkFee === undefined || network === 'WIRE') return []
  const { asset, amount } = networkFee
  return networkFeeEntries(network, asset, parseAmount(amount, decimalsOf(asset))!)
}

/** The creation's entries turned around: the profile gets back its total, in the asset that was debited. */
async function refunds(tx: Transaction, customerId: string, steps: Step[]): Promise<Posting[]> {
  if (steps.length === 0) return []
  const { rows } = await tx.query<Omit<Entry, 'amount'> & { transfer_id: string; amount: string }>({
    text: `
      select transfer_id, account, profile_id, asset, amount
      from entries
      where customer_id = $1 and transfer_id = any ($2::uuid[]) and event = 'CREATED'
      order by transfer_id, position`,
    values: [customerId, steps.map(({ withdrawal }) => withdrawal.transfer_id)],
  })
  return steps.map((step) => {
    const { transfer_id } = step.withdrawal
    const created = rows.filter((row) => row.transfer_id === transfer_id)
    const turned = created.map(({ account, profile_id, asset, amount }) => {
      return { account, profile_id, asset, amount: -parseStoredAmount(amount, decimalsOf(asset)) }
    })
    return { transfer_id, event: 'REFUNDED', entries: [...turned, ...feeEntries(step)] }
  })
}

async function updateTransfers(
  tx: Transaction,
  customerId: string,
  steps: Step[],
  now: string,
): Promise<void> {
  const { rowCount } = await tx.query({
    text: `
      update transfers t
      set status = c.status, secondary_status = c.secondary_status, status_details = c.status_details,
          crypto_tx_hash = c.crypto_tx_hash, crypto_tx_index = c.crypto_tx_index, updated_at = $2
      from (
        select *, (select ctid from transfers where customer_id = $1 and id = c.id and status = 'PENDING') as place
        from json_to_recordset($3) as c (id uuid, status text, secondary_status jsonb, status_details jsonb,
                                         crypto_tx_hash text, crypto_tx_index text)
      ) c
      where t.ctid = c.place`,
    values: [
      customerId,
      now,
      JSON.stringify(steps.map(({ withdrawal, transfer }) => ({ id: withdrawal.transfer_id, ...transfer }))),
    ],
  })
  if (rowCount !== steps.length)
    throw new Error(`${steps.length - rowCount!} withdrawals were settled before`)
}

async function updateBroadcasts(tx: Transaction, customerId: string, steps: Step[]): Promise<void> {
  await keepReplaced(
    tx,
    customerId,
    steps.flatMap(({ withdrawal, replaces }) => (replaces ? withdrawal.transfer_id : [])),
  )
  await tx.query({
    text: `
      update broadcasts b
      set state = s.state,
          raw_transaction = coalesce(s.raw_transaction, b.raw_transaction),
          crypto_tx_hash = coalesce(s.crypto_tx_hash, b.crypto_tx_hash),
          due_at = clock_timestamp() + make_interval(secs => s.due_in_ms::float8 / 1000),
          waiting_reason = s.waiting_reason,
          waiting_since = case when s.waiting_reason is not null
                               then coalesce(b.waiting_since, clock_timestamp()) end
      from (
        select *, (select ctid from broadcasts where customer_id = $1 and transfer_id = s.transfer_id) as place
        from unnest($2::uuid[], $3::text[], $4::bytea[], $5::text[], $6::int[], $7::text[])
          as s (transfer_id, state, raw_transaction, crypto_tx_hash, due_in_ms, waiting_reason)
      ) s
      where b.ctid = s.place`,
    values: [
      customerId,
      steps.map((step) => step.withdrawal.transfer_id),
      steps.map((step) => step.state),
      steps.map((step) => step.signed?.raw_transaction ?? null),
      steps.map((step) => step.signed?.crypto_tx_hash ?? null),
      steps.map((step) => step.dueInMs ?? null),
      steps.map((step) => step.waitingReason ?? null),
    ],
  })
}

/** What was signed before stays on record: it may have got through. */
export async function keepReplaced(
  tx: Transaction,
  customerId: string,
  transferIds: string[],
): Promise<void> {
  if (transferIds.length === 0) return
  await tx.query(
    `
    insert into replaced_transactions (customer_id, transfer_id, crypto_tx_hash, raw_transaction, replaced_at)
    select customer_id, transfer_id, crypto_tx_hash, raw_transaction, clock_timestamp()
    from broadcasts
    where customer_id = $1 and transfer_id = any ($2::uuid[])`,
    [customerId, transferIds],
  )
}
