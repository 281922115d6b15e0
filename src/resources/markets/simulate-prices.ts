import { strict as assert } from 'node:assert'
import { simulatedPrice } from '../../contract/assets/simulated-price.ts'
import { transaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { DAY } from '../../contract/increments.ts'
import { assetsOf, type Market } from '../../contract/markets.ts'
import { lockMarket, writePrices } from '../../money/records/write-prices.ts'

const BATCH_MINUTES_MAX = 20_000

/** The last whole minute by the database's clock, in minutes since 1970: a price is written when its minute is over. */
export const LAST_MINUTE = `(floor(extract(epoch from clock_timestamp()) / 60)::integer - 1)`

/**
 * Begins to simulate the markets without prices: writes the first price of each, for a minute `days` days ago. Later prices
 * are written when somebody asks for the market's history (`simulateUpToNow`).
 */
export async function beginSimulation(db: Database, days: number): Promise<void> {
  const UNPRICED = 'select market from markets where source is null order by id'
  if ((await db.query(UNPRICED)).rowCount === 0) return
  await transaction(db, async (tx) => {
    // Another process that starts waits here, and then finds no market without prices.
    const { rows } = await tx.query<{ market: Market }>(`${UNPRICED} for update`)
    const clock = await tx.query<{ last: number }>(`select ${LAST_MINUTE} as last`)
    for (const { market } of rows) await write(tx, market, clock.rows[0]!.last - days * DAY + 1, 1)
  })
}

/** Extends the history of a simulated market up to the last whole minute. A market with real prices stays as it is. */
export async function simulateUpToNow(db: Database, market: Market): Promise<void> {
  const missing = async (queryable: Queryable) => {
    const { rows } = await queryable.query<{ next: number; last: number }>({
      name: 'missing simulated prices',
      text: `
        select next, last
        from markets
        cross join (select ${LAST_MINUTE} as last) clock
        cross join lateral (
          select minute + 1 as next from price_minutes where market_id = markets.id order by minute desc limit 1
        ) newest
        where market = $1 and source = 'SIMULATED' and next <= last`,
      values: [market],
    })
    return rows[0]
  }
  if ((await missing(db)) === undefined) return
  await transaction(db, async (tx) => {
    // A separate statement: a statement that waited for a lock does not see what the lock's holder has written.
    await lockMarket(tx, market, 'SIMULATED')
    const found = await missing(tx)
    if (found !== undefined) await write(tx, market, found.next, found.last - found.next + 1)
  })
}

async function write(tx: Transaction, market: Market, from: number, minutes: number): Promise<void> {
  const marketId = await lockMarket(tx, market, 'SIMULATED')
  assert(marketId !== undefined, 'a locked market cannot receive real prices')
  const assets = assetsOf(market)
  for (let first = from; first < from + minutes; first += BATCH_MINUTES_MAX) {
    const count = Math.min(BATCH_MINUTES_MAX, from + minutes - first)
    const minute = Array.from({ length: count }, (_, n) => first + n)
    await writePrices(tx, marketId, {
      coversMinutes: 1,
      minute,
      second: minute.map(() => 0),
      prices: [minute.map((minute) => simulatedPrice(assets, minute))],
    })
  }
}
