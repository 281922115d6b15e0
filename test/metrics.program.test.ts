import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { createCustomer } from '../src/money/records/customer.ts'
import { transaction } from '../src/db/database.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { REASON_LABELS } from '../src/upkeep/metrics/reason-labels.ts'
import type { WaitingCode } from '../src/contract/waiting-codes.ts'
import { freeze, unfreeze } from '../src/money/records/freezes.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import {
  ROW_MACS,
  credit,
  remoteCaller,
  spawnBursar,
  TEST_ORIGIN,
  withdraw,
  ownDatabase,
  ownBursar,
} from './support.ts'
import { atEnd } from './at-end.ts'

// The metrics of a real process; and that dashboard and alerts use only existing metrics.

const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8')

const database = await ownDatabase()
const customer = await createCustomer(database.db, 'Test')
const profile_id = customer.profile_id
await credit(new Ledger(database.db), customer, 'USD', '1234.56')
const bursar = await ownBursar({
  DATABASE_URL: database.url,
  BURSAR_METRICS_PORT: '0',
  BURSAR_WORKER_INTERVAL_MS: '20',
  BURSAR_SIMULATED_CONFIRMATION_MS: '0',
})
const call = await remoteCaller(
  bursar.address,
  await createApiClient(database.db, ROW_MACS, customer.customer_id, SCOPES),
)

const metricsAddress = (log: string) => /metrics at (\S+)"/.exec(log)![1]!

interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

async function scrape(address = metricsAddress(bursar.log())): Promise<Sample[]> {
  const text = await (await fetch(address)).text()
  return text
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const [, name = '', labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
      const pairs = [...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, text]) => [key, text] as const)
      return { name, labels: Object.fromEntries(pairs) as Record<string, string>, value: Number(value) }
    })
}

async function valueOf(name: string, labels: Record<string, string> = {}): Promise<number | undefined> {
  const samples = await scrape()
  return samples.find(
    (sample) =>
      sample.name === name && Object.entries(labels).every(([key, text]) => sample.labels[key] === text),
  )?.value
}

test('requests are counted by route, method and status, for any path', async () => {
  for (let n = 0; n < 20; n++) await call('GET', `/v2/transfer/transfers/${crypto.randomUUID()}`)
  for (let n = 0; n < 20; n++) await call('GET', `/v2/${crypto.randomUUID()}?x=${n}`)
  const count = 'bursar_http_request_duration_seconds_count'
  const of = (labels: Record<string, string>) => valueOf(count, labels)
  expect(await of({ method: 'GET', route: '/v2/transfer/transfers/:id', status: '404' })).toBe(20)
  expect(await of({ method: '', route: '', status: '404' })).toBe(20)
  const routes = new Set(
    (await scrape()).filter(({ name }) => name === count).map(({ labels }) => labels.route),
  )
  expect([...routes].sort()).toEqual(['', '/oauth2/token', '/v2/transfer/transfers/:id'])
})

test('withdrawals are reported from their creation to their end, with the balances of profiles', async () => {
  expect(await valueOf('bursar_ledger_profiles_total', { asset: 'USD' })).toBe(1234.56)
  await transaction(database.owner, async (tx) => {
    // The worker cannot begin.
    await tx.query('lock table outgoing_transfers in row exclusive mode')
    await tx.query('lock table outgoing_transfers in share mode')
    await withdraw({ profile_id, call })
    const labels = { network: 'ETHEREUM', state: 'NEW' }
    await expect
      .poll(() => valueOf('bursar_withdrawals_in_flight', labels), { timeout: 20_000, interval: 500 })
      .toBe(1)
    expect(await valueOf('bursar_worker_overdue_seconds', { network: 'ETHEREUM' })).toBeGreaterThan(0)
  })
  const ended = { network: 'ETHEREUM', status: 'COMPLETED' }
  await expect
    .poll(() => valueOf('bursar_withdrawals_ended_total', ended), { timeout: 10_000, interval: 200 })
    .toBe(1)
  await expect
    .poll(() => bursar.log())
    .toMatch(
      /"transfer_id":"[0-9a-f-]{36}","network":"ETHEREUM","status":"COMPLETED","msg":"withdrawal ended"/,
    )
  await expect
    .poll(() => valueOf('bursar_withdrawals_in_flight', { network: 'ETHEREUM' }), {
      timeout: 20_000,
      interval: 500,
    })
    .toBe(undefined)
  // The code decides the label, whatever the detail says.
  const insert = (code: WaitingCode, detail: string) =>
    database.db.query(
      `insert into outgoing_transfers (customer_id, transfer_id, network, state, due_at, created_at, waiting_code, waiting_detail, waiting_since)
       select id, gen_random_uuid(), 'BITCOIN', 'HELD', now() + interval '1 hour', now(), $1, $2, now() from customers`,
      [code, detail],
    )
  await insert('HOT_WALLET_SHORT', '1.5 is too little for 2.5 BTC')
  await insert('KEPT_FOR_OLDER', 'kept for another withdrawal')
  await insert('UNKNOWN_SPENDS', 'the wallet has sent 5f')
  await insert('FROZEN', 'a leak')
  await freeze(database.db, TEST_ORIGIN, { kind: 'NETWORK', network: 'BITCOIN' }, 'OPERATOR', 'a leak')
  const waiting = (reason: string) => valueOf('bursar_withdrawals_waiting', { network: 'BITCOIN', reason })
  await expect.poll(() => waiting('hot_wallet'), { timeout: 20_000, interval: 500 }).toBe(2)
  expect(await waiting('unknown_transactions')).toBe(1)
  expect(await waiting('frozen')).toBe(1)
  expect(await valueOf('bursar_frozen', { kind: 'NETWORK', reason: 'OPERATOR' })).toBe(1)
  await unfreeze(database.db, ROW_MACS, TEST_ORIGIN, { kind: 'NETWORK', network: 'BITCOIN' })
  await database.owner.query(`delete from outgoing_transfers where network = 'BITCOIN'`)
})

test('uncredited deposits are reported by reason', async () => {
  const insert = (state: string, reason: string | null, transferId: string | null, age: string) =>
    database.db.query(
      `insert into incoming_transfers (customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount, state,
                                       reason, cleared, transfer_id, attempts, found_at, due_at)
       select id, 'BASE', gen_random_uuid()::text, '0', 'somewhere', 'ETH', 1, $1, $2, false, $3, 0, now() - $4::interval,
              now() + interval '1 hour'
       from customers`,
      [state, reason, transferId, age],
    )
  await insert('WAITING', 'SECOND_NODE', null, '1 hour')
  await insert('WAITING', 'SECOND_NODE', null, '2 hours')
  await insert('WAITING', null, null, '1 minute')
  await insert('REORGANISED', null, profile_id, '1 day')
  await insert('UNATTRIBUTED', null, null, '3 hours')
  await insert('CREDITED', null, profile_id, '1 hour')
  const count = (reason: string) => valueOf('bursar_deposits_uncredited', { network: 'BASE', reason })
  await expect.poll(() => count('SECOND_NODE'), { timeout: 20_000, interval: 500 }).toBe(2)
  expect(await count('NEW')).toBe(1)
  expect(await count('REORGANISED')).toBe(1)
  expect(await count('UNATTRIBUTED')).toBe(1)
  expect(await count('CREDITED')).toBeUndefined()
  const oldest = await valueOf('bursar_deposits_uncredited_oldest_seconds', {
    network: 'BASE',
    reason: 'SECOND_NODE',
  })
  expect(Math.round(oldest! / 3600)).toBe(2)
  await database.owner.query(`delete from incoming_transfers where network = 'BASE'`)
})

test('batches, the worker, connections and the process are reported', async () => {
  expect(await valueOf('bursar_ledger_batch_movements_count')).toBeGreaterThan(0)
  expect(
    await valueOf('bursar_worker_rounds_total', { loop: 'settlement', outcome: 'succeeded' }),
  ).toBeGreaterThan(1)
  expect(await valueOf('bursar_database_connections', { pool: 'requests', kind: 'max' })).toBe(11)
  expect(await valueOf('bursar_database_connections', { pool: 'deliveries', kind: 'max' })).toBe(3)
  expect(await valueOf('bursar_database_connections', { pool: 'background', kind: 'max' })).toBe(6)
  expect(await valueOf('bursar_build_info', { node: process.version })).toBe(1)
  expect(await valueOf('process_cpu_seconds_total')).toBeGreaterThan(0)
  expect(await valueOf('bursar_records_age_seconds')).toBeLessThan(30)
  const ours = (await scrape()).filter(({ name }) => name.startsWith('bursar_'))
  expect(ours.filter(({ value }) => Number.isNaN(value))).toEqual([])
})

test('a transaction that is left open is told as the age of the horizon', async () => {
  const client = await database.db.connect()
  try {
    await client.query('begin read only')
    await client.query('select')
    // The figures are kept for a while.
    await vi.waitUntil(async () => (await valueOf('bursar_horizon_age_seconds'))! > 1, {
      timeout: 60_000,
      interval: 500,
    })
  } finally {
    await client.query('rollback')
    client.release()
  }
  await vi.waitUntil(async () => (await valueOf('bursar_horizon_age_seconds'))! < 1, {
    timeout: 60_000,
    interval: 500,
  })
})

describe('the dashboard and the alerts', () => {
  const dashboard = JSON.parse(read('ops/grafana-dashboard.json')) as {
    panels: { title: string; targets?: { expr: string }[] }[]
    templating: { list: { definition?: string }[] }
  }
  const alerts = parse(read('ops/alerts.yml')) as {
    groups: { rules: { alert: string; expr: string; annotations: { summary: string } }[] }[]
  }
  const rules = alerts.groups.flatMap(({ rules }) => rules)
  const queries = [
    ...dashboard.panels.flatMap(({ title, targets = [] }) =>
      targets.map(({ expr }) => [title, expr] as const),
    ),
    ...dashboard.templating.list.flatMap(({ definition }) => (definition ? [['', definition] as const] : [])),
    ...rules.map(({ alert, expr }) => [alert, expr] as const),
  ]
  const NAME = /\b(?:bursar|process|nodejs)_\w+/g
  /** Returns the name of the histogram that a series belongs to. */
  const metricOf = (name: string) => name.replace(/_(bucket|sum|count)$/, '')

  /** All metrics with the names of their labels, also metrics without a sample now. */
  async function told(): Promise<Map<string, Set<string>>> {
    const text = await (await fetch(metricsAddress(bursar.log()))).text()
    const metrics = new Map(
      [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => [name!, new Set<string>()]),
    )
    for (const { name, labels } of await scrape())
      for (const label of Object.keys(labels)) (metrics.get(name) ?? metrics.get(metricOf(name)))!.add(label)
    return metrics
  }

  test('use only existing metrics and labels', async () => {
    const metrics = await told()
    expect(queries.length).toBeGreaterThan(30)
    for (const [where, query] of queries) {
      const names = query.match(NAME) ?? []
      if (!query.startsWith('up{')) expect(names.length, where).toBeGreaterThan(0)
      for (const name of names)
        expect(metrics.has(name) || metrics.has(metricOf(name)), `${where}: ${name}`).toBe(true)
      for (const [, name, selector] of query.matchAll(/\b((?:bursar|process|nodejs)_\w+)\{([^}]*)\}/g)) {
        const known = metrics.get(name!) ?? metrics.get(metricOf(name!))!
        // Without a sample, the labels are not known.
        if (known.size === 0) continue
        for (const [, label] of selector!.matchAll(/(\w+)\s*(?:=~|!=|=)/g))
          if (label !== 'instance') expect([...known], `${where}: ${name} by ${label}`).toContain(label)
      }
    }
  })

  test('show every metric, and docs/guides/operating.md describes each', async () => {
    const page = read('docs/guides/operating.md')
    const asked = new Set(queries.flatMap(([, query]) => (query.match(NAME) ?? []).map(metricOf)))
    for (const name of (await told()).keys()) {
      if (!name.startsWith('bursar_')) continue
      expect([...asked], name).toContain(metricOf(name))
      expect(page).toContain(`\`${name}\``)
    }
  })

  test('each alert names the problem and the remedy', () => {
    expect(rules.length).toBeGreaterThan(10)
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length)
    for (const { alert, annotations } of rules) expect(annotations.summary, alert).toMatch(/^.{20,}\.$/s)
  })
})

/*
 * The tables of docs/guides/waiting.md: each state is made, its metric tells its age, its alert fires on that
 * metric, and its commands exist.
 */
describe('what can wait', () => {
  const [codes, others] = read('docs/guides/waiting.md').split('## What can wait') as [string, string]
  const ALERT_OF: Record<string, string> = {
    signature: 'BursarSignaturesWait',
    wire_to_take: 'BursarWiresWait',
    wire_taken: 'BursarWiresWait',
  }
  const withCode = [...codes.matchAll(/^\| `([A-Z_]+)` \| `([a-z_]+)` \| .+ \| (.+) \|$/gm)].map(
    ([, what, value, ends]) => ({
      what: what!,
      metric: 'bursar_withdrawals_waiting_oldest_seconds',
      label: 'reason',
      value: value!,
      alerts: [ALERT_OF[value!] ?? 'BursarWithdrawalsWait'],
      ends: ends!,
    }),
  )
  const lines = others
    .split('\n')
    .filter((line) => /^\| (?!what waits|-)/.test(line) && !line.startsWith('|---'))
  const withoutCode = lines.map((line) => {
    const [what, series, alerts, ends] = line.split('|').slice(1, -1) as [string, string, string, string]
    const [, metric = '', selector = ''] = /`(\w+)(?:\{(.*)\})?`/.exec(series) ?? []
    const [, label = '', value = ''] = /^(\w+)="(\w+)"$/.exec(selector) ?? []
    return { what: what.trim(), metric, label, value, alerts: alerts.match(/Bursar\w+/g) ?? [], ends }
  })
  const states = [...withCode, ...withoutCode]
  const rules = (
    parse(read('ops/alerts.yml')) as { groups: { rules: { alert: string; expr: string }[] }[] }
  ).groups.flatMap(({ rules }) => rules)

  test('names an alert on its metric, and commands that exist', () => {
    const commands = read('docs/command-line.md')
    expect(states.length).toBeGreaterThan(45)
    for (const { what, metric, label, value, alerts, ends } of states) {
      // Small deposits may wait for ever, and blocks end what lacks confirmations.
      expect(alerts.length > 0, what).toBe(value !== 'BELOW_MINIMUM' && value !== 'CONFIRMATIONS')
      for (const name of alerts) {
        const expr = rules.find(({ alert }) => alert === name)?.expr ?? ''
        const selectors = [...expr.matchAll(/\b(bursar_\w+)(?:\{([^}]*)\})?/g)]
        const isOn = ([, named, selector = '']: RegExpMatchArray) =>
          (named === metric || name === 'BursarStepsOverdue') &&
          [...selector.matchAll(/(\w+)(=~|!~|!=|=)"([^"]*)"/g)].every(([, key, how, text]) => {
            if (key !== label) return true
            const isLike = how!.endsWith('~') ? new RegExp(`^(?:${text})$`).test(value) : text === value
            return how!.startsWith('!') ? !isLike : isLike
          })
        expect(selectors.some(isOn), `${what}: ${name}`).toBe(true)
      }
      for (const [, command] of ends.matchAll(/`bursar ([\w -]+)`/g))
        expect(commands, what).toMatch(new RegExp(command!.replace(' ', ' (?:[^\\n]*[, |\\\\`])?')))
    }
    const labelled = (wanted: string) =>
      states.flatMap(({ metric, value }) => (metric === wanted ? value : []))
    expect(new Set(labelled('bursar_withdrawals_waiting_oldest_seconds'))).toEqual(
      new Set(Object.values(REASON_LABELS)),
    )
  })

  test('has a metric that tells its age', async () => {
    const insert = (into: string, columns: string) =>
      database.owner.query(`insert into ${into} select ${columns} from customers c limit 1`)
    const outgoing = `outgoing_transfers (customer_id, transfer_id, network, state, created_at, signed_at, due_at, waiting_code,
      waiting_detail, waiting_since, crypto_tx_hash)`
    const old = `now() - interval '1 hour'`
    const later = `now() + interval '1 hour'`
    for (const state of ['HELD', 'ASKED', 'SIGNED', 'BROADCAST'])
      await insert(
        outgoing,
        `id, gen_random_uuid(), 'BASE', '${state}', ${old}, ${old}, ${later}, null, null, null::timestamptz, 'hash'`,
      )
    for (const code of Object.keys(REASON_LABELS))
      await insert(
        outgoing,
        `id, gen_random_uuid(), 'BASE', 'HELD', ${old}, null::timestamptz, ${later}, '${code}', 'why', ${old}, null`,
      )
    for (const [state, reason] of [
      ...[
        'FAILED',
        'SECOND_NODE',
        'ONE_NODE',
        'CONFIRMATIONS',
        'SCREENING',
        'BELOW_MINIMUM',
        'NODES_DISAGREE',
        'FORGED',
        'HAS_TOKENS',
        null,
      ].map((one) => ['WAITING', one]),
      ['REORGANISED', null],
      ['UNATTRIBUTED', null],
    ])
      await insert(
        `incoming_transfers (customer_id, network, crypto_tx_hash, crypto_tx_index, address, asset, amount, state, reason,
                             cleared, transfer_id, attempts, found_at, due_at)`,
        `id, 'BASE', gen_random_uuid()::text, '0', 'somewhere', 'ETH', 1, '${state!}', ${reason === null ? 'null' : `'${reason}'`},
         false, ${state === 'REORGANISED' ? 'gen_random_uuid()' : 'null::uuid'}, 0, ${old}, ${later}`,
      )
    for (const network of ['BASE', 'WIRE'])
      await insert(
        'seen_deposits (customer_id, transfer_id, network, crypto_tx_hash, crypto_tx_index, address, block_number, state, seen_at)',
        `id, gen_random_uuid(), '${network}', 'hash', '0', 'somewhere', ${9e15}, 'PENDING', ${old}`,
      )
    const sweeps = `sweeps (customer_id, id, network, address, kind, asset, amount, state, raw_transaction, crypto_tx_hash, replaced,
                                created_at, signed_at, ended_at, network_fee, audit_block)`
    const sweep = (kind: string, ended: string) =>
      insert(sweeps, `id, gen_random_uuid(), 'BASE', gen_random_uuid()::text, '${kind}', 'ETH', 1, ${ended}`)
    const bytes = `'\\x02'::bytea, 'hash', '{}'::text[], ${old}, ${old}`
    await sweep('SWEEP', `'SIGNED', ${bytes}, null::timestamptz, null::numeric, null::bigint`)
    await sweep('TOP_UP', `'SIGNED', ${bytes}, null::timestamptz, null::numeric, null::bigint`)
    await sweep('SWEEP', `'DONE', ${bytes}, ${old}, 0, 5`)
    const statements = `statements (customer_id, id, ref_id, type, product, status, asset, period_start, period_end, created_at,
                                    generated_at, total_amount_owed, amount_paid)`
    for (const [status, rest] of [
      ['INITIATED', 'null::timestamptz, null::numeric, null::numeric'],
      ['GENERATED', `${old}, 1, 0`],
    ])
      await insert(
        statements,
        `id, gen_random_uuid(), gen_random_uuid()::text, 'REWARD', 'USDG', 'STATEMENT_STATUS_${status!}', 'USDG', ${old}, ${old}, ${old}, ${rest!}`,
      )
    await insert(
      'approvals (customer_id, id, created_at, change, change_digest, required, role, policy_version, initiator_type, initiator_id, deadline, status)',
      `id, gen_random_uuid(), ${old}, '{}'::jsonb, 'digest', 1, 'APPROVER', 1, 'OPERATOR', 'x', ${later}, 'PENDING'`,
    )
    await insert('refills (network, crypto_tx_hash, found_at)', `'BASE', 'hash', ${old}`)
    await insert(
      'freezes (kind, subject, reason, detail, created_at)',
      `'NETWORK', 'BASE', 'OPERATOR', 'a leak', ${old}`,
    )
    const made = states.filter(
      ({ metric, value }) =>
        // The worker that runs ends these at once, or they need a webhook or a network; other tests see them.
        (value !== 'NEW' && !/orchestrations|webhook|read_age/.test(metric)) ||
        metric.startsWith('bursar_deposits_uncredited'),
    )
    for (const { what, metric, label, value } of made)
      await expect
        .poll(async () => (await valueOf(metric, { [label]: value })) ?? 0, {
          timeout: 30_000,
          interval: 500,
          message: what,
        })
        .toBeGreaterThan(metric === 'bursar_deposits_uncredited' ? 0 : 3_000)
    for (const table of [
      'outgoing_transfers',
      'incoming_transfers',
      'sweeps',
      'seen_deposits',
      'approvals',
      'freezes',
      'statements',
      'refills',
    ])
      await database.owner.query(`delete from ${table}`)
  })
})

describe('the port of the metrics', () => {
  test('stops the start when it is configured and in use, with the name of the setting', async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    atEnd(async () => void taken.close())
    const { port } = taken.address() as { port: number }
    const starting = spawnBursar({ DATABASE_URL: database.url, BURSAR_METRICS_PORT: String(port) })
    await expect(starting).rejects.toThrow(new RegExp(`BURSAR_METRICS_PORT: .*in use.*:${port}`))
  })

  test('is left out when it is the default and in use', async () => {
    // This process or another holds it; another test's process may hold it for a while.
    const other = createServer()
    atEnd(async () => void other.close())
    for (let attempt = 1; attempt <= 200 && !other.listening; attempt++) {
      other.listen(9464, '127.0.0.1')
      await once(other, 'listening').catch(() => pause(50))
    }
    const second = await ownBursar({ DATABASE_URL: database.url, BURSAR_METRICS_PORT: '' })
    expect((await fetch(`${second.address}/health/ready`)).status).toBe(200)
    await second.end('SIGTERM')
    await expect.poll(() => second.log().match(/port 9464 is in use/g)).toHaveLength(1)
    expect(second.exitCode()).toBe(0)
  })

  test('serves nothing but the metrics', async () => {
    const address = metricsAddress(bursar.log())
    expect((await fetch(address.replace('/metrics', '/'))).status).toBe(404)
    expect((await fetch(address, { method: 'POST' })).status).toBe(404)
    expect((await fetch(`${bursar.address}/metrics`)).status).toBe(404)
  })
})
