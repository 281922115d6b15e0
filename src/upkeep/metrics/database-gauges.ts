import { Gauge, type Registry } from 'prom-client'
import { transaction, type Database } from '../../db/database.ts'
import { HorizonUnknown, readHorizon } from '../../db/horizon.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { PAYOUT_NETWORK } from '../../contract/payout-sql.ts'
import { IS_NOT_BEGUN } from '../../networks/outgoing-transfers.ts'
import { REASON_LABELS } from './reason-labels.ts'

/** Least interval between reads of the records, which also take at most a tenth of the time. */
const FRESH_MS = 5_000
const SHARE = 10
/** Time limit of each statement. A scrape then reports the last figures. */
const STATEMENT_MS_MAX = 3_000

// The partial index on due_at holds exactly the withdrawals that have not ended.
const IN_FLIGHT = `
  select network, state, count(*) as count,
         -- Nothing is SIGNED for long unless its network does not take it, or ASKED unless its signer does not sign it. People
         -- who sign by hand take their time: what waits for them has a reason of its own.
         coalesce(extract(epoch from clock_timestamp() - min(case when waiting_code = 'WAITING_SIGNATURE' then null
                                                                  when state in ('ASKED', 'SIGNED') then coalesce(signed_at, created_at)
                                                                  else created_at end)), 0) as age,
         greatest(extract(epoch from clock_timestamp() - min(due_at)), 0) as overdue
  from outgoing_transfers
  where due_at is not null
  group by network, state`

const NOT_BEGUN = `
  select ${PAYOUT_NETWORK} as network, 'NEW' as state, count(*) as count,
         extract(epoch from clock_timestamp() - min(t.created_at)) as age,
         extract(epoch from clock_timestamp() - min(t.created_at)) as overdue
  from transfers t
  where ${IS_NOT_BEGUN}
  group by 1`

const WAITING = `
  select network, coalesce(label, 'other') as reason, count(*) as count,
         extract(epoch from clock_timestamp() - min(waiting_since)) as age
  from outgoing_transfers
  left join unnest($1::text[], $2::text[]) as labels (code, label) on code = waiting_code
  where due_at is not null and waiting_code is not null
  group by 1, 2`

const ORCHESTRATIONS = `
  select step, count(o) as count, coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0) as age
  from (values ('to_pay', false), ('frozen', true)) steps (step, frozen)
  left join (
    select o.created_at, exists (
      select 1 from customer_freezes f
      where f.customer_id = o.customer_id and f.subject in (o.customer_id, o.profile_id) and f.lifted_at is null) as frozen
    from orchestrations o
    where status = 'PROCESSING' and destination_transfer_id is null
  ) o using (frozen)
  group by step
  union all
  select 'paying', count(*), coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0)
  from orchestrations
  where status = 'PROCESSING' and destination_transfer_id is not null`

const FROZEN = `
  select kind, reason, count(*) as value from freezes where lifted_at is null group by kind, reason
  union all
  select case when subject = customer_id then 'CUSTOMER' else 'PROFILE' end, reason, count(*)
  from customer_freezes
  where lifted_at is null
  group by 1, reason`

const UNCREDITED = `
  select network, coalesce(reason, 'NEW') as reason, count(*) as count,
         extract(epoch from clock_timestamp() - min(found_at)) as age
  from incoming_transfers
  where state = 'WAITING'
  group by 1, 2
  union all
  select network, 'REORGANISED', count(*), extract(epoch from clock_timestamp() - min(found_at))
  from incoming_transfers
  where state = 'REORGANISED'
  group by 1
  union all
  select network, 'UNATTRIBUTED', count(*), extract(epoch from clock_timestamp() - min(found_at))
  from incoming_transfers
  where state = 'UNATTRIBUTED'
  group by 1`

// Each part has a partial index, or few rows.
const OPEN = `
  select kind, coalesce(extract(epoch from clock_timestamp() - since), 0) as value
  from (
    select case network when 'WIRE' then 'pending_wire' else 'pending_deposit' end as kind, min(seen_at) as since
    from seen_deposits where state = 'PENDING' group by 1
    union all
    select lower(kind collate "C"), min(created_at) from sweeps where state in ('SIGNED', 'BROADCAST') group by 1
    union all
    select 'sweep_audit', min(ended_at) from sweeps where audit_block is not null
    union all
    select 'statement_initiated', min(created_at) from statements where status = 'STATEMENT_STATUS_INITIATED'
    union all
    select 'statement_generated', min(generated_at) from statements where status = 'STATEMENT_STATUS_GENERATED'
    union all
    select 'change', min(created_at) from approvals where change is not null and status in ('PENDING', 'APPROVED')
    union all
    select 'refill', min(found_at) from refills
    union all
    select 'freeze', min(created_at)
    from (
      select created_at, reason, lifted_at from freezes
      union all
      select created_at, reason, lifted_at from customer_freezes
    ) f
    where reason <> 'DISABLED' and lifted_at is null
  ) open`

const AUDIT_LINKS = `
  select case customer_id when '${PLATFORM_ID}' then 'platform' else 'customers' end as owner, sum(position) as value
  from audit_heads
  group by 1`

const WEBHOOKS = `
  select standing, count(w) as value
  from unnest('{healthy,failing,disabled,disabled_by_failures}'::text[]) standing
  left join webhooks w
    on standing = case when w.status = 'ACTIVE' then case when w.failing_since is null then 'healthy' else 'failing' end
                       when w.disabled_reason is null then 'disabled' else 'disabled_by_failures' end
  group by 1`

// The partial indexes on due deliveries and ACTIVE endpoints hold exactly the rows that count.
const UNDELIVERED = `
  select count, age, coalesce(behind, 0) as behind
  from (
    select count(*) as count, coalesce(extract(epoch from clock_timestamp() - min(created_at)), 0) as age
    from webhook_deliveries d
    where status = 'PENDING'
      -- Nothing more is sent to a webhook that is DISABLED or deleted.
      and exists (select 1 from webhooks w
                  where w.customer_id = d.customer_id and w.id = d.webhook_id and w.status = 'ACTIVE')
  ) due
  cross join (
    select extract(epoch from clock_timestamp() - min(next.created_at)) as behind
    from webhooks w
    cross join lateral (
      select created_at from events e
      where e.customer_id = w.customer_id and e.id > w.cursor_id
      order by e.id
      limit 1) as next
    where w.status = 'ACTIVE' and w.failing_since is null
  ) cursors`

/** A statement about the records, whose rows are the samples of gauges. */
interface Reading {
  text: string
  values?: unknown[]
  labels?: string[]
  /** By the column that has the value. `labels`: those of a gauge with fewer, for each of which the last row counts. */
  gauges: Record<string, readonly [name: string, help: string, labels?: string[]]>
}

const READINGS: Reading[] = [
  {
    text: `${IN_FLIGHT} union all ${NOT_BEGUN} order by overdue`,
    labels: ['network', 'state'],
    gauges: {
      count: ['bursar_withdrawals_in_flight', 'Withdrawals that have not ended, by network and state.'],
      age: ['bursar_withdrawals_in_flight_oldest_seconds', 'Age of the oldest withdrawal in flight.'],
      overdue: [
        'bursar_worker_overdue_seconds',
        'How long the oldest due step of a withdrawal, or the oldest new withdrawal, has been overdue.',
        ['network'],
      ],
    },
  },
  {
    text: WAITING,
    values: [Object.keys(REASON_LABELS), Object.values(REASON_LABELS)],
    labels: ['network', 'reason'],
    gauges: {
      count: ['bursar_withdrawals_waiting', 'Withdrawals in flight that are blocked, by network and reason.'],
      age: [
        'bursar_withdrawals_waiting_oldest_seconds',
        'How long the oldest blocked withdrawal has waited.',
      ],
    },
  },
  {
    text: ORCHESTRATIONS,
    labels: ['step'],
    gauges: {
      count: [
        'bursar_orchestrations_processing',
        'PROCESSING orchestrations by step; to_pay: without a destination transfer yet; frozen: a freeze blocks it; paying: with a destination transfer.',
      ],
      age: [
        'bursar_orchestrations_processing_oldest_seconds',
        'Age of the oldest PROCESSING orchestration, by step.',
      ],
    },
  },
  {
    text: FROZEN,
    labels: ['kind', 'reason'],
    gauges: {
      value: ['bursar_frozen', 'Freezes, which stop payments that are not signed yet, by kind and reason.'],
    },
  },
  {
    text: `
      select extract(epoch from clock_timestamp() - verified_at) as age, verify_findings as findings
      from deployment where verified_at is not null`,
    gauges: {
      age: ['bursar_verify_age_seconds', 'Time since bursar verify last ended.'],
      findings: ['bursar_verify_findings', 'Disagreements that bursar verify found the last time.'],
    },
  },
  {
    text: 'select network, extract(epoch from clock_timestamp() - updated_at) as value from network_cursors',
    labels: ['network'],
    gauges: {
      value: ['bursar_deposits_read_age_seconds', 'Time since a network was last scanned for deposits.'],
    },
  },
  {
    text: UNCREDITED,
    labels: ['network', 'reason'],
    gauges: {
      count: [
        'bursar_deposits_uncredited',
        'Uncredited deposits by reason; REORGANISED: credited deposits that a reorganisation removed; UNATTRIBUTED: sweeps without a known deposit.',
      ],
      age: ['bursar_deposits_uncredited_oldest_seconds', 'Age of the oldest uncredited deposit, by reason.'],
    },
  },
  {
    text: OPEN,
    labels: ['kind'],
    gauges: {
      value: [
        'bursar_open_oldest_seconds',
        'Age of the oldest record of a kind that has not ended; 0 where there is none.',
      ],
    },
  },
  {
    text: WEBHOOKS,
    labels: ['standing'],
    gauges: {
      value: [
        'bursar_webhooks',
        'Webhooks of all customers, by standing: healthy, failing, disabled, disabled_by_failures.',
      ],
    },
  },
  {
    text: UNDELIVERED,
    gauges: {
      count: [
        'bursar_webhook_deliveries_pending',
        'Deliveries of events that have not succeeded and will be attempted again.',
      ],
      age: ['bursar_webhook_deliveries_pending_oldest_seconds', 'Age of the oldest of these deliveries.'],
      behind: [
        'bursar_webhook_events_behind_seconds',
        'Age of the first event after the cursor of a healthy webhook.',
      ],
    },
  },
  {
    text: AUDIT_LINKS,
    labels: ['owner'],
    gauges: {
      value: [
        'bursar_audit_links',
        'Links of the chains of the audit log: of the platform, and of all customers together. They never fall.',
      ],
    },
  },
  {
    text: 'select asset, sum(available) as value from balances group by asset',
    labels: ['asset'],
    gauges: {
      value: [
        'bursar_ledger_profiles_total',
        'Sum of the available balances of all profiles, in units of the asset.',
      ],
    },
  },
]

const HORIZON = 'bursar_horizon_age_seconds'
const HORIZON_HELP =
  'Time since the oldest transaction under way began, where ascending lists and lists of events end; -1: it cannot be read.'

type Sample = { labels: Record<string, string>; value: number }
type Samples = Map<string, Sample[]>

export function databaseGauges(registry: Registry, db: Database): void {
  const read = cached(db)
  const add = (name: string, help: string, labelNames: string[] = []) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const { samples } = await read()
        this.reset()
        for (const { labels, value } of samples.get(name) ?? []) this.set(labels, value)
      },
    })
  for (const { labels, gauges } of READINGS)
    for (const [name, help, own = labels] of Object.values(gauges)) add(name, help, own)
  add(HORIZON, HORIZON_HELP)
  new Gauge({
    name: 'bursar_records_age_seconds',
    help: 'Age of the figures that are read from the records; -1 until the first read succeeds.',
    registers: [registry],
    async collect() {
      const { at } = await read()
      this.set(at === undefined ? -1 : (performance.now() - at) / 1000)
    },
  })
}

/** Caches the last figures. If they cannot be read, the last ones stay and their age grows. */
function cached(db: Database): () => Promise<{ samples: Samples; at: number | undefined }> {
  const last: { samples: Samples; at: number | undefined } = { samples: new Map(), at: undefined }
  let nextAt = 0
  let reading: Promise<void> | undefined
  return async () => {
    if (reading === undefined && performance.now() >= nextAt) {
      const start = performance.now()
      reading = readSamples(db)
        .then(
          (samples) => void Object.assign(last, { samples, at: performance.now() }),
          // The database does not answer in time: bursar_records_age_seconds grows, and there is an alert for it.
          () => undefined,
        )
        .finally(() => {
          nextAt = performance.now() + Math.max(FRESH_MS, SHARE * (performance.now() - start))
          reading = undefined
        })
    }
    await reading
    return last
  }
}

/** How far ascending lists are behind the present. */
async function horizonAge(db: Database): Promise<number> {
  try {
    const { micros, readAt } = await readHorizon(db)
    return (readAt.micros - micros) / 1e6
  } catch (error) {
    if (error instanceof HorizonUnknown) return -1
    throw error
  }
}

const samplesOf = (rows: Record<string, string>[], column: string, labels: string[] = []): Sample[] =>
  rows.map((row) => ({
    labels: Object.fromEntries(labels.map((label) => [label, row[label]!])),
    value: Number(row[column]),
  }))

/** Reads all samples. Gauges are floating-point numbers: approximate amounts, for display only. */
async function readSamples(db: Database): Promise<Samples> {
  // Read before the transaction below, which would be one under way.
  const samples: Samples = new Map([[HORIZON, [{ labels: {}, value: await horizonAge(db) }]]])
  await transaction(
    db,
    async (tx) => {
      await tx.query(`set local statement_timeout = ${STATEMENT_MS_MAX}`)
      for (const { text, values, labels, gauges } of READINGS) {
        const { rows } = await tx.query<Record<string, string>>(text, values)
        for (const [column, [name, , own = labels]] of Object.entries(gauges))
          samples.set(name, samplesOf(rows, column, own))
      }
    },
    'isolation level repeatable read read only',
  )
  return samples
}
