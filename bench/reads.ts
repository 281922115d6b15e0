import type { Database } from '../src/db/database.ts'
import { microsToTimestamp } from '../src/http/lists.ts'
import { insertProfile } from '../src/money/records/profile.ts'

export interface ReadFigure {
  what: string
  rows: number
  p50Ms: number
  p99Ms: number
}

const SMALL = 10_000
const REQUESTS = 300
const PAGE = 100
const WALK_PAGE = 1000
/** Creation time of the first generated row. The rows are a microsecond apart. */
const FIRST_MICROS = 1_700_000_000_000_000

/**
 * Measures at ten thousand rows and at `large`: one transfer, first and deep pages of List Transfers; first and deep pages
 * of a profile's entries, and its balances at a moment half-way; and the requests of the console's home page.
 */
export async function measureReads(
  db: Database,
  {
    baseUrl,
    token,
    customerId,
    profileIds,
  }: { baseUrl: string; token: string; customerId: string; profileIds: string[] },
  large: number,
): Promise<ReadFigure[]> {
  const get = async (path: string) => {
    const reply = await fetch(baseUrl + path, { headers: { authorization: `Bearer ${token}` } })
    const body = (await reply.json()) as { items: { id: string }[]; next_page_cursor?: string }
    if (reply.status !== 200) throw new Error(`${path}: ${JSON.stringify(body)}`)
    return body
  }
  const list = (limit: number, cursor?: string) =>
    `/v2/transfer/transfers?limit=${limit}${cursor === undefined ? '' : `&page_cursor=${cursor}`}`

  const { id: profileId } = await insertProfile(db, customerId, { type: 'NORMAL', nickname: 'Long history' })
  const entries = `/v2/profiles/${profileId}/entries?limit=${PAGE}`
  const figures: ReadFigure[] = []
  for (const rows of [SMALL, large]) {
    await fill(db, customerId, profileIds, rows)
    await fillEntries(db, customerId, profileId, rows)
    const middle = microsToTimestamp(FIRST_MICROS + rows / 2)
    const half = `${entries}&created_at.lt=${middle}`
    const deepEntries = (await get(half)).next_page_cursor
    // Half-way through the list, reached as a client would.
    let cursor: string | undefined
    for (let walked = 0; walked < rows / 2; walked += WALK_PAGE)
      cursor = (await get(list(WALK_PAGE, cursor))).next_page_cursor
    const { items } = await get(list(PAGE, cursor))
    const paths = {
      'one transfer': (n: number) => `/v2/transfer/transfers/${items[n % items.length]!.id}`,
      'first page': () => list(PAGE),
      'deep page': () => list(PAGE, cursor),
      'first page of one profile': () => `${list(PAGE)}&profile_ids=${profileIds[0]}`,
      'first page of entries': () => entries,
      'deep page of entries': () => `${half}&page_cursor=${deepEntries}`,
      'what waits, oldest first': () => '/v2/transfer/transfers?statuses=PENDING&order=ASC&limit=10',
      'volumes of 24 hours': () => '/v2/transfer/volumes',
      'balances by asset, 30 days': () => '/v2/balances/history',
      'balances at a moment': () => `/v2/profiles/${profileId}/balances?at=${middle}`,
    }
    for (const [what, path] of Object.entries(paths)) {
      figures.push({ what, rows, ...(await timeRequests((n) => get(path(n)))) })
    }
  }
  return figures
}

/** Times one request at a time, after a warm-up. */
export async function timeRequests(request: (n: number) => Promise<unknown>) {
  const latencies: number[] = []
  for (let n = -REQUESTS / 10; n < REQUESTS; n++) {
    const before = performance.now()
    await request(Math.abs(n))
    if (n >= 0) latencies.push(performance.now() - before)
  }
  latencies.sort((a, b) => a - b)
  const at = (share: number) => Number(latencies[Math.floor(latencies.length * share)]!.toFixed(2))
  return { p50Ms: at(0.5), p99Ms: at(0.99) }
}

/** Adds transfers of the customer up to this number, a microsecond apart, long ago. */
async function fill(db: Database, customerId: string, profileIds: string[], rows: number): Promise<void> {
  await db.query(
    `
    insert into transfers (customer_id, id, profile_id, type, direction, status, asset, amount, fee, total,
                           created_at, updated_at, ref_id, destination_address, crypto_network)
    select $1,
           (lpad(to_hex(micros / 1000), 12, '0') || '7' || lpad(to_hex((micros % 1000) * 4096 / 1000), 3, '0')
             || '8000' || lpad(to_hex(n), 12, '0'))::uuid,
           ($2::uuid[])[1 + n % array_length($2::uuid[], 1)],
           'CRYPTO_WITHDRAWAL', 'DEBIT', 'COMPLETED', 'USDP', 1.25, 1, 2.25, at, at, 'bench-' || n,
           '0x52908400098527886E0F7030069857D2E4169EE7', 'ETHEREUM'
    from (select n, 1700000000000000 + n::bigint as micros,
                 timestamptz 'epoch' + make_interval(secs => 1700000000) + n * interval '1 microsecond' as at
          from generate_series((select count(*) from transfers where customer_id = $1) + 1, $3) as n) made`,
    [customerId, profileIds, rows],
  )
  await db.query('vacuum analyze transfers')
}

/** Adds entries of the profile up to this number, of three assets in turn, a microsecond apart, long ago. */
async function fillEntries(db: Database, customerId: string, profileId: string, rows: number): Promise<void> {
  const made = `
    select n, (array['USD', 'USDP', 'BTC'])[1 + n % 3] as asset, 1 + n / 3 as version,
           timestamptz 'epoch' + make_interval(secs => ${FIRST_MICROS / 1e6}) + n * interval '1 microsecond' as at
    from generate_series((select count(*) from entries where customer_id = $1 and profile_id = $2), $3 - 1) as n`
  await db.query(
    `
    insert into entries (customer_id, transfer_id, event, position, account, profile_id, asset, amount, balance_after,
                         version, created_at)
    select $1, gen_random_uuid(), 'CREATED', 1, 'profile', $2, asset, 1, version, version, at
    from (${made}) made`,
    [customerId, profileId, rows],
  )
  await db.query(
    `
    insert into balances (customer_id, profile_id, asset, available, version, updated_at)
    select customer_id, profile_id, asset, max(version), max(version), max(created_at)
    from entries
    where customer_id = $1 and profile_id = $2
    group by customer_id, profile_id, asset
    on conflict (customer_id, profile_id, asset)
    do update set available = excluded.available, version = excluded.version, updated_at = excluded.updated_at`,
    [customerId, profileId],
  )
  await db.query('vacuum analyze entries')
}
