import { originOfLoop } from '../src/contract/actor.ts'
import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import { createCustomer } from '../src/access/customers/create-customer.ts'
import { transaction, type Database } from '../src/db/database.ts'
import { masterKeysOf } from '../src/keys/master-keys.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { deposit } from '../src/money/movements/deposit.ts'
import { simulatedNetworks } from '../src/networks/simulated/adapter.ts'
import { insertRule } from '../src/resources/orchestrations/create-orchestration-rule.ts'
import { runOrchestrations } from '../src/resources/orchestrations/run-orchestrations.ts'
import { RowMacs } from '../src/audit/row-macs.ts'
import { readSettings } from '../src/settings.ts'
import { settleWithdrawals } from '../src/rails/payouts/settle-withdrawals.ts'
import { timeRequests, type ReadFigure } from './reads.ts'

const SMALL = 10_000
const PAGE = 100
const WALK_PAGE = 1000
const DESTINATION = '0x52908400098527886E0F7030069857D2E4169EE7'

interface Api {
  baseUrl: string
  token: string
  customerId: string
  profileIds: string[]
}

/**
 * Measures List Orchestrations at ten thousand records and at `large`, of one customer: each filter, rare values,
 * pages.
 */
export async function measureOrchestrationReads(
  db: Database,
  { baseUrl, token, customerId, profileIds }: Api,
  large: number,
): Promise<ReadFigure[]> {
  const get = async (query: string) => {
    const path = `${baseUrl}/v2/orchestration/orchestrations?${query}`
    const reply = await fetch(path, { headers: { authorization: `Bearer ${token}` } })
    const body = (await reply.json()) as { items: { id: string }[]; next_page_cursor?: string }
    if (reply.status !== 200) throw new Error(`${path}: ${JSON.stringify(body)}`)
    return body
  }
  const ruleIds = await makeRules(db, customerId, profileIds)
  const figures: ReadFigure[] = []
  for (const rows of [SMALL, large]) {
    await fill(db, customerId, profileIds, ruleIds, rows)
    // Half-way through the list, reached as a client would.
    let cursor: string | undefined
    for (let walked = 0; walked < rows / 2; walked += WALK_PAGE)
      cursor = (await get(`limit=${WALK_PAGE}${cursor ? `&page_cursor=${cursor}` : ''}`)).next_page_cursor
    const { items } = await get(`limit=${PAGE}`)
    const filters = {
      'first page': '',
      'deep page': `page_cursor=${cursor}`,
      'a rule': `orchestration_rule_id=${ruleIds[0]}`,
      'a source asset': 'source_asset=USD',
      'a destination asset': 'destination_asset=USDP',
      'a status': 'status=COMPLETED',
      'a profile': `profile_id=${profileIds[0]}`,
      '100 ids': items.map(({ id }) => `orchestration_id=${id}`).join('&'),
      'a rare status': 'status=FAILED',
      'a rare asset': 'source_asset=USDG',
      'a rare combination': `profile_id=${profileIds[0]}&status=FAILED&destination_asset=USDP`,
      'a combination': 'source_asset=USD&destination_asset=USDP,PYUSD&status=COMPLETED,PROCESSING',
      'a time': 'created_at.gte=2023-11-14T22:13:20.002000Z&created_at.lt=2023-11-14T22:13:20.008000Z',
      nothing: 'source_asset=BTC',
    }
    for (const [what, filter] of Object.entries(filters)) {
      figures.push({ what, rows, ...(await timeRequests(() => get(`limit=${PAGE}&${filter}`))) })
    }
  }
  return figures
}

const PAIRS = [
  ['USD', 'USDP'],
  ['USD', 'PYUSD'],
  ['USDP', 'USD'],
  ['USDG', 'USD'], // a rare pair
] as const

const ROW_MACS = new RowMacs(masterKeysOf([randomBytes(32).toString('hex')], 'BURSAR_MASTER_KEY'))

/** Creates a rule for each of the first three pairs, each on a profile of its own. The rare pair has no rule. */
async function makeRules(db: Database, customerId: string, profileIds: string[]): Promise<string[]> {
  const networks = simulatedNetworks(db, { confirmationMs: 0, holdMs: 0 })
  const rules = PAIRS.slice(0, 3).map(([source_asset, destination_asset], n) =>
    transaction(db, (tx) =>
      insertRule(
        tx,
        { networks, rowMacs: ROW_MACS },
        customerId,
        {
          ref_id: `bench-${n}`,
          profile_id: profileIds[n]!,
          source_asset,
          destination_asset,
          source: { profile: { profile_id: profileIds[n]! } },
          destination: { crypto: { network: 'ETHEREUM', address: DESTINATION } },
        },
        originOfLoop('bench'),
      ),
    ),
  )
  return (await Promise.all(rules)).map((rule) => rule.id)
}

/**
 * Adds orchestrations up to this number, created a microsecond apart, long ago. Half have a rule, with its assets and
 * profile; the others have any. The rare records are the oldest, and there are as many at any size: 2 of the rare pair,
 * 10 that FAILED.
 */
async function fill(
  db: Database,
  customerId: string,
  profileIds: string[],
  ruleIds: string[],
  rows: number,
): Promise<void> {
  await db.query(
    `
    insert into orchestrations (customer_id, id, profile_id, source_asset, destination_asset, source_amount,
                                source_transfer_id, destination_transfer_id, fail_reason, source, destination,
                                orchestration_rule_id, status, created_at, updated_at)
    select $1,
           (lpad(to_hex(micros / 1000), 12, '0') || '7' || lpad(to_hex((micros % 1000) * 4096 / 1000), 3, '0')
             || '8000' || lpad(to_hex(n), 12, '0'))::uuid,
           ($2::uuid[])[case when ruled then 1 + n / 2 % 3 else 1 + n % array_length($2::uuid[], 1) end],
           pair ->> 0, pair ->> 1, 100, gen_random_uuid(), gen_random_uuid(),
           case when rare and n % 1000 = 1 then 'it was refused' end,
           '{"profile": {"profile_id": "00000000-0000-7000-8000-000000000000"}}',
           '{"crypto": {"network": "ETHEREUM", "address": "${DESTINATION}"}}',
           case when ruled then ($3::uuid[])[1 + n / 2 % 3] end,
           case when rare and n % 1000 = 1 then 'FAILED' else 'COMPLETED' end, at, at
    from (
      select n, n % 2 = 0 as ruled, n <= $6 as rare,
             $4::jsonb -> (case when n <= $6 and n % 5000 = 1 then 3 when n % 2 = 0 then n / 2 % 3 else n % 3 end)::int as pair,
             1700000000000000 + n::bigint as micros,
             timestamptz 'epoch' + make_interval(secs => 1700000000) + n * interval '1 microsecond' as at
      from generate_series((select count(*) from orchestrations where customer_id = $1) + 1, $5) as n
    ) made`,
    [customerId, profileIds, ruleIds, JSON.stringify(PAIRS), rows, SMALL],
  )
  await db.query('vacuum analyze orchestrations')
}

export interface RunFigure {
  /** Number of deposits under way at once. */
  atOnce: number
  perSecond: number
  /** Database round trips, without idle rounds. */
  roundTripsEach: number
}

/**
 * Measures orchestrations from deposit to COMPLETED on the simulated network, with one worker: deposits at once, then
 * worker rounds until all have ended.
 */
export async function measureOrchestrationRuns(db: Database): Promise<RunFigure[]> {
  const { customer_id, profile_id } = await createCustomer(db, 'Orchestrations')
  const settings = readSettings({})
  const networks = simulatedNetworks(db, { confirmationMs: 0, holdMs: 0 })
  const ledger = new Ledger(db)
  const rule = await transaction(db, (tx) =>
    insertRule(
      tx,
      { networks, rowMacs: ROW_MACS },
      customer_id,
      {
        ref_id: 'bench',
        profile_id,
        source_asset: 'USD',
        destination_asset: 'USDP',
        source: { fiat: {} },
        destination: { crypto: { network: 'ETHEREUM', address: DESTINATION } },
      },
      originOfLoop('bench'),
    ),
  )
  const wire = () =>
    ledger.submit(
      customer_id,
      deposit(
        customer_id,
        {
          profile_id,
          type: 'WIRE_DEPOSIT',
          asset: 'USD',
          minor: 10_000n,
          arrivedAt: 'bank',
          place: { id: rule.source.fiat!.deposit_instructions_id },
          record: {},
        },
        originOfLoop('bench'),
      ),
    )
  const open = async () => {
    const { rows } = await db.query<{ count: string }>(
      `select count(*) from orchestrations where customer_id = $1 and status = 'PROCESSING'`,
      [customer_id],
    )
    return Number(rows[0]!.count)
  }
  /** Returns the number of statements. */
  const run = async (atOnce: number) => {
    let used = -statements.sent
    await Promise.all(Array.from({ length: atOnce }, wire))
    used += statements.sent
    let moved = 1
    while (moved > 0 || (await open()) > 0) {
      const before = statements.sent
      moved = await runOrchestrations(db, { networks, settings })
      moved += await settleWithdrawals(db, networks)
      if (moved > 0) used += statements.sent - before
      else await pause(5)
    }
    return used
  }
  await run(500) // warm-up
  const figures: RunFigure[] = []
  for (const [atOnce, times] of [
    [1, 50],
    [32, 20],
    [500, 5],
    [5_000, 1],
  ] as const) {
    let used = 0
    const start = performance.now()
    for (let n = 0; n < times; n++) used += await run(atOnce)
    const seconds = (performance.now() - start) / 1000
    const runs = atOnce * times
    figures.push({
      atOnce,
      perSecond: Math.round(runs / seconds),
      roundTripsEach: Number((used / runs).toFixed(2)),
    })
  }
  return figures
}

/** Counts every statement of this process, including pipelined ones. */
const statements = { sent: 0 }
const { prototype } = pg.Client
// oxlint-disable-next-line typescript/unbound-method -- called with its own `this` below
const send = prototype.query as (...values: unknown[]) => unknown
Object.assign(prototype, {
  query(this: pg.Client, ...values: unknown[]) {
    statements.sent += 1
    return send.apply(this, values)
  },
})
