import { originOfLoop } from '../src/contract/actor.ts'
import { transaction, type Database } from '../src/db/database.ts'
import { newId, momentAt } from '../src/db/ids.ts'
import { createCustomer } from '../src/access/customers/create-customer.ts'
import { generateStatements } from '../src/resources/statements/generate-statements.ts'
import { periodOf } from '../src/resources/statements/period.ts'
import { setRewardRate } from '../src/resources/statements/reward-rates.ts'

const PERIOD = periodOf('2025-06')!
const ROUNDS = 5

export interface StatementFigure {
  profiles: number
  /** Entries before the period. */
  history: number
  /** Balance changes in the period. */
  changes: number
  ms: number
  /** The highest memory of this process after a round. */
  peakMiB: number
}

/**
 * Measures generating one month for 1, 1,000 and 10,000 profiles of a customer: with `entries` entries of history, with a
 * hundredth of them, and with the full history and ten times the changes in the period.
 */
export async function measureStatements(db: Database, entries: number): Promise<StatementFigure[]> {
  await setRewardRate(db, '2025-01-01', '0.0376', originOfLoop('bench'))
  const figures: StatementFigure[] = []
  for (const profiles of [1, 1_000, 10_000]) {
    for (const [history, changes] of [
      [Math.max(entries / 100, profiles), 10_000],
      [entries, 10_000],
      [entries, 100_000],
    ] as const)
      figures.push(await measure(db, profiles, history, changes))
  }
  return figures
}

async function measure(
  db: Database,
  profiles: number,
  history: number,
  changes: number,
): Promise<StatementFigure> {
  const customerId = await makeCustomer(db, profiles, history, changes)
  const times: number[] = []
  let peak = 0
  for (let round = 0; round <= ROUNDS; round++) {
    await db.query('delete from statements where customer_id = $1', [customerId])
    const start = performance.now()
    const made = await generateStatements(db, PERIOD, customerId)
    if (round > 0) times.push(performance.now() - start)
    // Not the operating system's high-water mark, which includes all earlier work of this process.
    peak = Math.max(peak, process.memoryUsage.rss())
    if (made.length !== 1) throw new Error('no statement was made')
  }
  times.sort((a, b) => a - b)
  return {
    profiles,
    history,
    changes,
    ms: Number(times[Math.floor(times.length / 2)]!.toFixed(1)),
    peakMiB: Math.round(peak / 1024 / 1024),
  }
}

/** Creates a customer with deposits of 1 USDG, spread evenly over the profiles: before the period, and in it. */
async function makeCustomer(
  db: Database,
  profiles: number,
  history: number,
  changes: number,
): Promise<string> {
  const { customer_id } = await createCustomer(db, 'Bench statements')
  const start = momentAt(PERIOD.start)
  const ids = Array.from({ length: profiles }, (_, n) => newId(start, n))
  await transaction(db, async (tx) => {
    await tx.query(
      `
      insert into profiles (customer_id, id, created_at, type, nickname)
      select $1, id, $3, 'NORMAL', id::text from unnest($2::uuid[]) as id`,
      [customer_id, ids, PERIOD.start],
    )
    await tx.query(
      `
      insert into balances (customer_id, profile_id, asset, available, version, updated_at)
      select $1, id, 'USDG', $3::int / cardinality($2::uuid[]) + 1, $3::int / cardinality($2::uuid[]) + 1, $4
      from unnest($2::uuid[]) as id`,
      [customer_id, ids, history + changes, PERIOD.end],
    )
    await tx.query(
      `
      insert into entries (customer_id, transfer_id, event, position, account, profile_id, asset, amount, balance_after,
                           version, created_at)
      select $1, gen_random_uuid(), 'CREATED', 1, 'profile', ($2::uuid[])[1 + n % $3::int], 'USDG', 1,
             n / $3::int + 1, n / $3::int + 1,
             case when n < $4::int
                  then $6::timestamptz - interval '1 year' + n * (interval '1 year' / $4::int)
                  else $6::timestamptz + (n - $4::int) * (interval '29 days' / $5::int) end
      from generate_series(0, $4::int + $5::int - 1) as n`,
      [customer_id, ids, profiles, history, changes, PERIOD.start],
    )
  })
  await db.query('vacuum analyze entries')
  return customer_id
}
