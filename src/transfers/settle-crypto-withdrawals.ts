import { parseAmount, parseStoredAmount } from '../assets/amount.ts'
import { decimalsOf, type CryptoNetwork } from '../assets/catalogue.ts'
import { connectionLost, transaction, type Database, type Transaction } from '../db/database.ts'
import { onPlatform, type Entry, type Posting } from '../ledger/entries.ts'
import { LedgerTransaction } from '../ledger/post.ts'
import type { SecondaryStatus, StatusDetails } from '../ledger/transfer.ts'
import { canonicalAddress } from '../networks/addresses.ts'
import type {
  BroadcastWithdrawal,
  NetworkAdapter,
  Networks,
  Refusal,
  Withdrawal,
} from '../networks/networks.ts'

/** Most withdrawals that one database transaction takes on. */
export const CLAIM_MAX = 500

type State = 'NEW' | 'HELD' | 'SIGNED' | 'BROADCAST'

/** A withdrawal that this worker has claimed, with how far it is. */
interface Claimed extends Withdrawal {
  state: State
  raw_transaction: Buffer | null
  crypto_tx_hash: string | null
}

/** What became of a claimed withdrawal: its next state, and what changes on the transfer. */
interface Step {
  withdrawal: Withdrawal
  state: Exclude<State, 'NEW'> | 'DONE'
  signed?: { raw_transaction: Buffer; crypto_tx_hash: string }
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

/** A customer's withdrawals over one network: what is claimed together, and fails together. */
interface Work {
  customer_id: string
  crypto_network: CryptoNetwork
}

/**
 * Takes every crypto withdrawal that is due one step on (design section 4): reviewed, signed and kept, broadcast,
 * confirmed or refused. Each step is one transaction that holds its withdrawals, so that any number of workers
 * share the work; what a crash undoes is done again with the same signed bytes. Those of a network that has no
 * adapter now wait.
 * Gives how many withdrawals moved. Throws what failed, after all else has been done.
 */
export async function settleCryptoWithdrawals(db: Database, networks: Networks): Promise<number> {
  const { rows } = await db.query<Work>({ name: 'work to do', text: WORK_TO_DO })
  let moved = 0
  const failures: unknown[] = []
  for (const work of rows) {
    const adapter = networks.get(work.crypto_network)
    if (adapter === undefined) continue
    for (const claim of [claimNew, claimDue]) {
      try {
        moved += await transaction(db, async (tx) => {
          const claimed = await claim(tx, work)
          if (claimed.length === 0) return 0
          await record(tx, work.customer_id, await takeStep(claimed, adapter))
          return claimed.length
        })
      } catch (error) {
        if (connectionLost(error)) throw error
        failures.push(error)
      }
    }
  }
  if (failures.length > 0) throw new AggregateError(failures, `${failures.length} steps of settlement failed`)
  return moved
}

const WORK_TO_DO = `
  select customer_id, crypto_network from broadcasts where due_at <= clock_timestamp()
  union
  select t.customer_id, t.crypto_network
  from transfers t
  where t.status = 'PENDING' and t.type = 'CRYPTO_WITHDRAWAL'
    and not exists (select from broadcasts b where b.customer_id = t.customer_id and b.transfer_id = t.id)`

const WITHDRAWAL_COLUMNS =
  't.customer_id, t.id as transfer_id, t.crypto_network, t.asset, t.amount, t.destination_address, t.memo'

/** Begins withdrawals that no worker has begun. The broadcast's primary key decides between two that try. */
async function claimNew(tx: Transaction, { customer_id, crypto_network }: Work): Promise<Claimed[]> {
  const { rows } = await tx.query<Claimed>({
    name: 'claim new withdrawals',
    text: `
      with new as (
        select t.id
        from transfers t
        where t.customer_id = $1 and t.status = 'PENDING' and t.type = 'CRYPTO_WITHDRAWAL' and t.crypto_network = $2
          and not exists (select from broadcasts b where b.customer_id = $1 and b.transfer_id = t.id)
        order by t.id
        limit $3
        for update of t skip locked
      ), claimed as (
        insert into broadcasts (customer_id, transfer_id, crypto_network, state, created_at)
        select $1, t.id, t.crypto_network, 'HELD', clock_timestamp()
        from new join transfers t on t.customer_id = $1 and t.id = new.id
        on conflict (customer_id, transfer_id) do nothing
        returning transfer_id
      )
      select ${WITHDRAWAL_COLUMNS}, 'NEW' as state, null as raw_transaction, null as crypto_tx_hash
      from claimed join transfers t on t.customer_id = $1 and t.id = claimed.transfer_id
      order by t.id`,
    values: [customer_id, crypto_network, CLAIM_MAX],
  })
  return rows.map(withCanonicalAddress)
}

async function claimDue(tx: Transaction, { customer_id, crypto_network }: Work): Promise<Claimed[]> {
  const { rows } = await tx.query<Claimed>({
    name: 'claim due withdrawals',
    text: `
      select ${WITHDRAWAL_COLUMNS}, b.state, b.raw_transaction, b.crypto_tx_hash
      from broadcasts b join transfers t on t.customer_id = $1 and t.id = b.transfer_id
      where b.customer_id = $1 and b.crypto_network = $2 and b.due_at <= clock_timestamp()
      order by b.due_at, b.transfer_id
      limit $3
      for update of b skip locked`,
    values: [customer_id, crypto_network, CLAIM_MAX],
  })
  return rows.map(withCanonicalAddress)
}

const withCanonicalAddress = (claimed: Claimed): Claimed => ({
  ...claimed,
  destination_address:
    canonicalAddress(claimed.crypto_network, claimed.destination_address, { testNetworks: true }) ??
    claimed.destination_address,
})

/** Does the next thing for each withdrawal. */
async function takeStep(claimed: Claimed[], adapter: NetworkAdapter): Promise<Step[]> {
  const inState = (state: State) => claimed.filter((withdrawal) => withdrawal.state === state)
  const fresh = inState('NEW').map((withdrawal) => reviewed(withdrawal, adapter))
  const passed = [...fresh.flatMap((one) => ('pass' in one ? [one.pass] : [])), ...inState('HELD')]
  return [
    ...fresh.flatMap((one) => ('step' in one ? [one.step] : [])),
    ...(await signed(passed, adapter)),
    ...(await broadcast(inState('SIGNED') as (Claimed & BroadcastWithdrawal)[], adapter)),
    ...(await followed(inState('BROADCAST') as (Claimed & BroadcastWithdrawal)[], adapter)),
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
async function signed(withdrawals: Claimed[], adapter: NetworkAdapter): Promise<Step[]> {
  if (withdrawals.length === 0) return []
  const transactions = await adapter.sign(withdrawals)
  return withdrawals.map((withdrawal, index) => ({
    withdrawal,
    state: 'SIGNED',
    signed: transactions[index]!,
    dueInMs: 0,
    // A hold is over: the secondary status that told of it goes.
    ...(withdrawal.state === 'HELD' && { transfer: { status: 'PENDING' } }),
  }))
}

async function broadcast(withdrawals: BroadcastWithdrawal[], adapter: NetworkAdapter): Promise<Step[]> {
  if (withdrawals.length === 0) return []
  const answers = await adapter.broadcast(withdrawals)
  return withdrawals.map((withdrawal, index) => {
    const answer = answers[index]!
    if (!answer.accepted) return failed(withdrawal, answer.refusal)
    return { withdrawal, state: 'BROADCAST', dueInMs: adapter.pollMs }
  })
}

async function followed(withdrawals: BroadcastWithdrawal[], adapter: NetworkAdapter): Promise<Step[]> {
  if (withdrawals.length === 0) return []
  const progress = await adapter.progress(withdrawals)
  return withdrawals.map((withdrawal, index) => {
    const now = progress[index]!
    switch (now.state) {
      case 'CONFIRMED': {
        const { crypto_tx_hash } = withdrawal
        const { crypto_tx_index } = now
        return {
          withdrawal,
          state: 'DONE',
          transfer: { status: 'COMPLETED', crypto_tx_hash, crypto_tx_index },
        }
      }
      case 'PENDING':
        return { withdrawal, state: 'BROADCAST', dueInMs: adapter.pollMs }
      case 'UNKNOWN':
        return { withdrawal, state: 'SIGNED', dueInMs: 0 }
    }
  })
}

const failed = (withdrawal: Withdrawal, refusal: Refusal): Step => ({
  withdrawal,
  state: 'DONE',
  transfer: { status: 'FAILED', ...refusal },
})

/** Writes the steps: ledger, transfers, broadcasts. The caller's transaction commits them together. */
async function record(tx: Transaction, customerId: string, steps: Step[]): Promise<void> {
  const changed = steps.filter((step) => step.transfer !== undefined)
  if (changed.length > 0) {
    const completed = changed.filter((step) => step.transfer!.status === 'COMPLETED')
    const refused = changed.filter((step) => step.transfer!.status === 'FAILED')
    const postings = [...completed.map(settlement), ...(await refunds(tx, customerId, refused))]
    const keys = postings.flatMap(({ entries }) =>
      entries.flatMap(({ profile_id, asset }) => (profile_id === null ? [] : [{ profile_id, asset }])),
    )
    const ledger = await LedgerTransaction.open(tx, customerId, keys)
    postings.forEach((posting) => ledger.post(posting))
    await ledger.write()
    await updateTransfers(tx, customerId, changed, ledger.now.text)
  }
  await updateBroadcasts(tx, customerId, steps)
}

/** In flight to custody: the coins have left. */
function settlement({ withdrawal }: Step): Posting {
  const { transfer_id, asset, crypto_network } = withdrawal
  const amount = parseAmount(withdrawal.amount, decimalsOf(asset))!
  const entries = [
    onPlatform(`in_flight:${crypto_network}`, asset, -amount),
    onPlatform(`custody:${crypto_network}`, asset, amount),
  ]
  return { transfer_id, event: 'SETTLED', entries }
}

/** The creation's entries turned around: the profile gets back its total, in the asset that was debited. */
async function refunds(tx: Transaction, customerId: string, steps: Step[]): Promise<Posting[]> {
  if (steps.length === 0) return []
  const { rows } = await tx.query<Omit<Entry, 'amount'> & { transfer_id: string; amount: string }>({
    name: 'entries to turn around',
    text: `
      select transfer_id, account, profile_id, asset, amount
      from entries
      where customer_id = $1 and transfer_id = any ($2::uuid[]) and event = 'CREATED'
      order by transfer_id, position`,
    values: [customerId, steps.map(({ withdrawal }) => withdrawal.transfer_id)],
  })
  return steps.map(({ withdrawal: { transfer_id } }) => ({
    transfer_id,
    event: 'REFUNDED',
    entries: rows
      .filter((row) => row.transfer_id === transfer_id)
      .map(({ account, profile_id, asset, amount }) => {
        return { account, profile_id, asset, amount: -parseStoredAmount(amount, decimalsOf(asset)) }
      }),
  }))
}

async function updateTransfers(
  tx: Transaction,
  customerId: string,
  steps: Step[],
  now: string,
): Promise<void> {
  const { rowCount } = await tx.query({
    name: 'update withdrawals',
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
  await tx.query({
    name: 'update broadcasts',
    text: `
      update broadcasts b
      set state = s.state,
          raw_transaction = coalesce(s.raw_transaction, b.raw_transaction),
          crypto_tx_hash = coalesce(s.crypto_tx_hash, b.crypto_tx_hash),
          due_at = clock_timestamp() + make_interval(secs => s.due_in_ms::float8 / 1000)
      from (
        select *, (select ctid from broadcasts where customer_id = $1 and transfer_id = s.transfer_id) as place
        from unnest($2::uuid[], $3::text[], $4::bytea[], $5::text[], $6::int[])
          as s (transfer_id, state, raw_transaction, crypto_tx_hash, due_in_ms)
      ) s
      where b.ctid = s.place`,
    values: [
      customerId,
      steps.map((step) => step.withdrawal.transfer_id),
      steps.map((step) => step.state),
      steps.map((step) => step.signed?.raw_transaction ?? null),
      steps.map((step) => step.signed?.crypto_tx_hash ?? null),
      steps.map((step) => step.dueInMs ?? null),
    ],
  })
}
