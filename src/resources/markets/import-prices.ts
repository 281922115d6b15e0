import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { inOrder, transaction, type Database } from '../../db/database.ts'
import type { Market } from '../../contract/markets.ts'
import { PriceFileError } from './open-price-file.ts'
import { DAY } from '../../contract/increments.ts'
import type { LayoutName } from './price-layouts.ts'
import { readPriceFile, type PriceBatch } from './read-price-file.ts'
import { lockMarket, writePrices } from '../../money/records/write-prices.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { originOfLoop, type Origin } from '../../contract/actor.ts'
import { PLATFORM_ID } from '../../db/ids.ts'

export interface ImportOptions {
  path: string
  market: Market
  layout?: LayoutName | undefined
  columns?: ReadonlyMap<string, string> | undefined
  intervalMinutes?: number | undefined
  /** Imports a file again, overwriting newer prices. */
  again?: boolean | undefined
  origin?: Origin
  onBytes?: ((bytes: number) => void) | undefined
}

export interface ImportResult {
  market: Market
  file: string
  records: number
  /** Records of the file that an earlier import had done. */
  done_before: number
  /** Records that had not ended yet and were left out. */
  unfinished: number
  /** Records with the minute of an earlier record of the file, which they replaced. */
  overwritten: number
  /** The length of each record's interval. Absent where nothing was left to read. */
  interval_minutes?: number
  minutes_changed: number
  /** The file's first price and the market's last one before it, where one is more than twice the other. */
  leap?: { from: string; to: string }
}

/** A price of a market that is at most this old is compared with a file's first price. */
const NEIGHBOUR_MINUTES_MAX = DAY

/**
 * Imports a file of a market's prices. Progress is stored by content hash and parse options, in the same transaction
 * as the prices. A repeat continues an interrupted import, reads records that had not ended before, and skips a
 * finished file.
 */
export async function importPrices(db: Database, options: ImportOptions): Promise<ImportResult> {
  const { path, market, layout, columns, intervalMinutes, again = false, onBytes = () => undefined } = options
  const { origin = originOfLoop('prices') } = options
  const result: ImportResult = {
    market,
    file: basename(path),
    records: 0,
    done_before: 0,
    unfinished: 0,
    overwritten: 0,
    minutes_changed: 0,
  }
  const digest = await digestOf(path, [layout, intervalMinutes, ...(columns ?? [])])
  const before = again ? undefined : await selectImport(db, market, digest)
  if (before !== undefined) {
    const records = Number(before.records)
    Object.assign(result, { records, done_before: records })
    if (before.finished) return result
  }

  const now = await minuteUnderWay(db)
  const file = { market, digest, name: result.file, origin }
  let done = 0
  const reading = readPriceFile(path, {
    layout,
    columns,
    intervalMinutes,
    now,
    onBytes,
    skip: result.done_before,
  })
  try {
    // Each batch is written while the next is read. When reading fails, the batches read before are still written.
    for (let next = await reading.next(); next.done !== true;) {
      const batch = next.value
      if (result.records === 0) result.leap = await leapTo(db, market, batch)
      const [changed, following] = await inOrder([writeBatch(db, file, batch), reading.next()])
      result.minutes_changed += changed
      result.records = batch.read
      done = batch.done
      result.unfinished += batch.unfinished
      result.overwritten += batch.overwritten
      result.interval_minutes = batch.records.coversMinutes
      next = following
    }
  } finally {
    await reading.return(undefined)
  }
  if (result.records === 0) throw new PriceFileError(`${result.file}: the file contains no price`)
  await db.query(
    `update price_imports i set finished = $4, records = $3, updated_at = clock_timestamp()
     from markets m
     where m.market = $1 and i.market_id = m.id and i.digest = $2`,
    [market, digest, done, done === result.records],
  )
  return result
}

async function digestOf(path: string, how: unknown[]): Promise<Buffer> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: 1024 * 1024 }), hash)
  return createHash('sha256').update(hash.digest()).update(JSON.stringify(how)).digest()
}

/** Returns the current minute by the database's clock. */
export async function minuteUnderWay(db: Database): Promise<number> {
  const { rows } = await db.query<{ now: number }>(
    'select floor(extract(epoch from clock_timestamp()) / 60)::integer as now',
  )
  return rows[0]!.now
}

async function selectImport(
  db: Database,
  market: Market,
  digest: Buffer,
): Promise<{ records: string; finished: boolean } | undefined> {
  const { rows } = await db.query<{ records: string; finished: boolean }>(
    `select records, finished
     from price_imports i
     join markets m on m.id = i.market_id
     where m.market = $1 and i.digest = $2`,
    [market, digest],
  )
  return rows[0]
}

async function leapTo(db: Database, market: Market, { records }: PriceBatch): Promise<ImportResult['leap']> {
  const [first, to] = [records.minute[0], records.prices[0]?.[0]]
  if (first === undefined || to === undefined) return undefined
  const { rows } = await db.query<{ from: string }>(
    `select trim_scale(price)::text as from
     from price_minutes
     where market_id = (select id from markets where market = $1 and source = 'REAL') and minute < $2 and minute >= $3
       and (price > $4::numeric * 2 or price < $4::numeric / 2)
     order by minute desc
     limit 1`,
    [market, first, first - NEIGHBOUR_MINUTES_MAX, to],
  )
  return rows[0] && { from: rows[0].from, to }
}

/** Writes a batch and the file's progress in one transaction. Returns the number of changed minutes. */
async function writeBatch(
  db: Database,
  { market, digest, name, origin }: { market: Market; digest: Buffer; name: string; origin: Origin },
  { records, done }: PriceBatch,
): Promise<number> {
  // A file without prices must not replace simulated prices.
  if (records.minute.length === 0) return 0
  return transaction(db, async (tx) => {
    const marketId = (await lockMarket(tx, market, 'REAL'))!
    const changed = await writePrices(tx, marketId, records)
    await tx.query(
      `insert into price_imports (market_id, digest, name, records, finished, updated_at)
       values ($1, $2, $3, $4, false, clock_timestamp())
       on conflict (market_id, digest) do update
       set name = excluded.name, records = excluded.records, finished = false, updated_at = excluded.updated_at`,
      [marketId, digest, name, done],
    )
    const after = { digest: digest.toString('hex'), records: done }
    await recordNow(tx, PLATFORM_ID, audited(origin, 'market.import', market, { after }))
    return changed
  })
}
