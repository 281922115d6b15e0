import { randomFillSync } from 'node:crypto'
import { Temporal } from 'temporal-polyfill'
import type { Transaction } from './database.ts'

/** A moment on the database's clock: whole microseconds since 1970, exact as a number until the year 2255. */
export interface Moment {
  micros: number
  /** The same moment as the contract writes it: RFC 3339, UTC, six decimals. */
  text: string
}

export const momentAt = (text: string): Moment => ({
  micros: Number(Temporal.Instant.from(text).epochNanoseconds / 1000n),
  text,
})

/** A moment by its microseconds since 1970. */
export const momentOfMicros = (micros: number): Moment => ({
  micros,
  text: Temporal.Instant.fromEpochNanoseconds(BigInt(micros) * 1000n).toString({ fractionalSecondDigits: 6 }),
})

/**
 * Reads the database's clock. Only this clock counts: the clocks of processes may disagree. A record takes its id in the
 * transaction that inserts it. Otherwise a pause between the two would let ascending lists pass the id (horizon.ts), so
 * this function does not accept the pool.
 */
export async function readClock(tx: Transaction): Promise<Moment> {
  const { rows } = await tx.query<{ now: string }>('select clock_timestamp() as now')
  return momentAt(rows[0]!.now)
}

const random = Buffer.alloc(4096)
let used = random.length

function randomHex(bytes: number): string {
  if (used + bytes > random.length) {
    randomFillSync(random)
    used = 0
  }
  return random.toString('hex', used, (used += bytes))
}

const SEQUENCE_MAX = 0x3fff

/**
 * Makes a UUIDv7 (RFC 9562, 5.7) whose time is the record's `created_at` to the microsecond. The 12 bits after the
 * milliseconds hold their fraction (6.2, method 3). The next 14 bits number the records of one moment. So ids sort by
 * (created_at, number), and a bound on created_at is a bound on the primary key.
 */
export const newId = (createdAt: Moment, sequence = 0): string => idOf(timeOfId(createdAt.micros), sequence)

/** The time in an id of version 7, in milliseconds since 1970. */
export const millisOfId = (id: string): number => Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)

/** Returns a generator of ids for records of one moment, in ascending order. */
export function idsAt(createdAt: Moment): () => string {
  const time = timeOfId(createdAt.micros)
  let sequence = 0
  return () => idOf(time, sequence++)
}

function idOf(time: string, sequence: number): string {
  if (sequence > SEQUENCE_MAX) throw new RangeError(`more than ${SEQUENCE_MAX} ids for one moment`)
  return `${time}-${(0x8000 | sequence).toString(16)}-${randomHex(6)}`
}

/**
 * The platform itself, as the owner of transfers and entries. It is not a customer: it has no row in `customers`, no
 * clients and no profiles. So no token can read or create its records.
 */
export const PLATFORM_ID = '00000000-0000-0000-0000-000000000000'

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Returns the smallest id that a record created at this microsecond can have. */
export function firstIdAt(micros: number): string {
  return `${timeOfId(micros)}-0000-000000000000`
}

function timeOfId(micros: number): string {
  const millis = Math.floor(micros / 1000)
  const time = millis.toString(16).padStart(12, '0')
  const fraction = Math.floor(((micros - millis * 1000) * 4096) / 1000)
  return `${time.slice(0, 8)}-${time.slice(8)}-7${fraction.toString(16).padStart(3, '0')}`
}
