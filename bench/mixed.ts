import { median } from './callers.ts'
import { httpLoad, type LoadResult } from './http-load.ts'
import { withApi, type Bench } from './service.ts'
import type { TableRow } from './write-tables.ts'

const READERS = 4
const WRITERS = 256

/** Measures reads of a customer alone, and then while many connections withdraw. */
export async function measureMixed(bench: Bench): Promise<TableRow[]> {
  const { rounds, seconds } = bench
  return withApi(bench, async (api) => {
    const load = { baseUrl: api.baseUrl, customers: [api], clients: WRITERS, seconds }
    await httpLoad({ ...load, prefix: 'history' })
    const { rows } = await bench.db.query<{ id: string }>(
      'select id from transfers where customer_id = $1 order by id desc limit 100',
      [api.customerId],
    )
    const reads: Record<string, string[]> = {
      'List Transfers': ['/v2/transfer/transfers?limit=20'],
      'Get Transfer': rows.map(({ id }) => `/v2/transfer/transfers/${id}`),
      'List Profile Balances': api.profileIds.map((id) => `/v2/profiles/${id}/balances`),
    }
    const seen = Object.keys(reads).map((what) => ({ what, idle: [] as number[], busy: [] as number[] }))
    for (let round = 1; round <= rounds; round++)
      for (const { what, idle, busy } of seen) {
        const reading = { ...load, paths: reads[what]!, clients: READERS, prefix: '' }
        const alone = answered(what, await httpLoad(reading))
        const [, beside] = await Promise.all([
          httpLoad({ ...load, prefix: `${what}${round}`.replaceAll(' ', '') }),
          httpLoad(reading),
        ])
        idle.push(alone)
        busy.push(answered(what, beside))
      }
    return seen.map(({ what, idle, busy }) => {
      const [before, after] = [median(idle), median(busy)]
      return {
        what,
        'p99 ms alone': before,
        [`p99 ms while ${WRITERS} write`]: after,
        times: Number((after / before).toFixed(1)),
      }
    })
  })
}

function answered(what: string, { p99Ms, refused }: LoadResult): number {
  if (refused > 0) throw new Error(`${what} was refused ${refused} times`)
  return p99Ms
}
