import type { Database } from '../src/db/database.ts'

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

/** (e) one transfer, and first and deep pages of List Transfers, at ten thousand rows and at a million. */
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

  const figures: ReadFigure[] = []
  for (const rows of [SMALL, large]) {
    await fill(db, customerId, profileIds, rows)
    // Half-way down, walked as a client would.
    let cursor: string | undefined
    for (let walked = 0; walked < rows / 2; walked += WALK_PAGE)
      cursor = (await get(list(WALK_PAGE, cursor))).next_page_cursor
    const { items } = await get(list(PAGE, cursor))
    const paths = {
      'one transfer': (n: number) => `/v2/transfer/transfers/${items[n % items.length]!.id}`,
      'first page': () => list(PAGE),
      'deep page': () => list(PAGE, cursor),
      'first page of one profile': () => `${list(PAGE)}&profile_ids=${profileIds[0]}`,
    }
    for (const [what, path] of Object.entries(paths)) {
      figures.push({ what, rows, ...(await timed((n) => get(path(n)))) })
    }
  }
  return figures
}

/** How long one request at a time takes, after some to warm up. */
export async function timed(request: (n: number) => Promise<unknown>) {
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

/** Tops the customer's transfers up to so many rows, a microsecond apart, long ago. */
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
