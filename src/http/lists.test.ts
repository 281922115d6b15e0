/*
 * Invariants of every bound and every cursor:
 * 1. a record is within the range exactly if it satisfies every bound, to the nanosecond;
 * 2. a cursor gives back its key to the list and the filters that created it;
 * 3. any other text, and any cursor of another list, is a 400: never another error, never another page.
 */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyText } from '../../test/any-text.ts'
import { runs, SEED } from '../../test/seed.ts'
import { UUID } from '../db/ids.ts'
import { pageOf, pageReply } from './lists.ts'
import { MICROS, timeRange } from './time-bounds.ts'
import { Problem } from '../contract/problems.ts'

describe('time ranges', () => {
  type Comparison = 'lt' | 'lte' | 'eq' | 'gte' | 'gt'
  const meets: Record<Comparison, (record: bigint, bound: bigint) => boolean> = {
    lt: (record, bound) => record < bound,
    lte: (record, bound) => record <= bound,
    eq: (record, bound) => record === bound,
    gte: (record, bound) => record >= bound,
    gt: (record, bound) => record > bound,
  }

  const NANOS_PER_SECOND = 1_000_000_000n
  const YEAR_1 = -62_135_596_800
  const YEAR_9999 = 253_402_300_799
  const NOVEMBER_2026 = 1_795_234_567
  const LATEST_MICROS = Number.MAX_SAFE_INTEGER

  interface Moment {
    seconds: number
    nanos: number
  }
  const nanosOf = ({ seconds, nanos }: Moment) => BigInt(seconds) * NANOS_PER_SECOND + BigInt(nanos)

  /** Within a day of the first and last year, an offset would leave the four digits of RFC 3339. */
  const seconds = fc.oneof(
    fc.integer({ min: YEAR_1 + 86_400, max: YEAR_9999 - 86_400 }),
    fc.integer({ min: NOVEMBER_2026 - 1, max: NOVEMBER_2026 + 1 }),
    fc.integer({ min: -1, max: 1 }),
    fc.constantFrom(Math.floor(LATEST_MICROS / 1e6) - 1, Math.floor(LATEST_MICROS / 1e6) + 1),
  )
  const nanos = fc.oneof(
    fc.integer({ min: 0, max: 999_999_999 }),
    fc.constantFrom(0, 1, 999, 1_000, 1_001, 1_999, 2_000, 999_999_000, 999_999_999),
  )
  const moment = fc.record({ seconds, nanos })
  const offsetMinutes = fc.oneof(fc.constant(undefined), fc.integer({ min: -18 * 60, max: 18 * 60 }))

  const twoDigits = (number: number) => String(number).padStart(2, '0')

  /** Formats a moment by RFC 3339, with the necessary decimals or all nine, at an offset or in UTC. */
  function textOf({ seconds, nanos }: Moment, offset: number | undefined, allDecimals: boolean): string {
    const local = new Date((seconds + (offset ?? 0) * 60) * 1000).toISOString().slice(0, 19)
    const decimals = String(nanos).padStart(9, '0')
    const fraction = allDecimals ? decimals : decimals.replace(/0+$/, '')
    const minutes = Math.abs(offset ?? 0)
    const zone =
      offset === undefined
        ? 'Z'
        : `${offset < 0 ? '-' : '+'}${twoDigits(Math.floor(minutes / 60))}:${twoDigits(minutes % 60)}`
    return `${local}${fraction === '' ? '' : `.${fraction}`}${zone}`
  }

  const bound = fc.record({
    comparison: fc.constantFrom<Comparison>('lt', 'lte', 'eq', 'gte', 'gt'),
    moment,
    offset: offsetMinutes,
    allDecimals: fc.boolean(),
  })
  const bounds = fc.uniqueArray(bound, { selector: ({ comparison }) => comparison, maxLength: 5 })

  /** Timestamps of records: at random, and next to the bounds, where mistakes show. */
  function recordsNear(moments: Moment[], anywhere: number[]): number[] {
    const near = moments.flatMap((moment) => {
      const micros = Number(nanosOf(moment) / 1_000n)
      return [-2, -1, 0, 1, 2].map((distance) => micros + distance)
    })
    return [...near, ...anywhere].filter((micros) => micros >= 0 && micros < LATEST_MICROS)
  }

  test('agree with a comparison of nanoseconds', () => {
    fc.assert(
      fc.property(bounds, fc.array(fc.integer({ min: 0, max: LATEST_MICROS - 1 })), (bounds, anywhere) => {
        const query = Object.fromEntries(
          bounds.map(({ comparison, moment, offset, allDecimals }) => [
            `created_at.${comparison}`,
            textOf(moment, offset, allDecimals),
          ]),
        )
        const { from, to } = timeRange({ ...query, 'updated_at.lt': '1980-01-01T00:00:00Z' }, 'created_at')
        const near = recordsNear(
          bounds.map(({ moment }) => moment),
          anywhere,
        )
        const isWanted = (micros: number) =>
          bounds.every(({ comparison, moment }) =>
            meets[comparison](BigInt(micros) * 1_000n, nanosOf(moment)),
          )
        const wrong = near.filter((micros) => (micros >= from && micros < to) !== isWanted(micros))
        expect(wrong).toEqual([])
        // Both ends are converted to ids and timestamps, for every query.
        for (const end of [from, to]) expect(end >= 0 && end <= LATEST_MICROS).toBe(true)
      }),
      runs(3_000),
    )
  })

  test.each(['2026-11-21', '2026-11-21T06:46:26', '2026-11-21T06:46:26.1234567891Z', 'soon', ''])(
    '%j is refused as a bound',
    (text) => {
      expect(refusal(() => timeRange({ 'created_at.gte': text }, 'created_at'))).toMatchObject({
        status: 400,
        detail: expect.stringContaining('created_at.gte') as string,
      })
    },
  )
})

describe('cursors', () => {
  const id = fc.uuid({ version: 7 })
  const time = fc.bigInt({ min: 1_000_000_000_000_000n, max: 9_999_999_999_999_999n }).map(String)
  const key = fc.oneof(fc.tuple(id), fc.tuple(time, id)).map((parts): string[] => [...parts])
  /** The patterns of a list's sort key. */
  const shapeOf = (key: string[]) => (key.length === 1 ? [UUID] : [MICROS, UUID])
  const filters = fc.record(
    {
      order: fc.constantFrom('ASC' as const, 'DESC' as const),
      ids: fc.array(id, { maxLength: 3 }),
      statuses: fc.subarray(['PENDING', 'COMPLETED', 'FAILED']),
      nickname: fc.string({ maxLength: 10 }),
    },
    { requiredKeys: [] },
  )
  type Filters = Omit<Parameters<typeof pageOf>[1], 'limit' | 'page_cursor'>

  const cursorOf = (filters: Filters, key: string[]): string => {
    const page = pageOf('transfers', { ...filters, limit: 1 })
    const { next_page_cursor } = pageReply(
      [key, []],
      page,
      (row) => row,
      () => undefined,
    )
    return next_page_cursor!
  }
  const read = (filters: Filters, page_cursor: string, shape = [UUID], list = 'transfers') =>
    pageOf(list, { ...filters, page_cursor }, shape)

  test('return the key, at any page size', () => {
    fc.assert(
      fc.property(filters, key, fc.integer({ min: 1, max: 1000 }), (filters, key, limit) => {
        const cursor = cursorOf(filters, key)
        const page = pageOf('transfers', { ...filters, limit, page_cursor: cursor }, shapeOf(key))
        expect(page).toMatchObject({ after: key, limit, descending: filters.order !== 'ASC' })
        // The contract's bound on page_cursor.
        expect(cursor.length).toBeLessThanOrEqual(300)
      }),
      runs(500),
    )
  })

  test('are refused when cut short anywhere', () => {
    fc.assert(
      fc.property(filters, key, fc.nat(), (filters, key, at) => {
        const cursor = cursorOf(filters, key)
        expect(refusal(() => read(filters, cursor.slice(0, at % cursor.length), shapeOf(key)))?.status).toBe(
          400,
        )
      }),
      runs(1_000),
    )
  })

  const character = fc.constantFrom(
    ...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_',
    ...'=+/ %\u0000\u00e9',
  )

  test('are refused when any character is changed or added', () => {
    fc.assert(
      fc.property(filters, key, fc.nat(), fc.nat(1), character, (filters, key, at, removed, put) => {
        const cursor = cursorOf(filters, key)
        const place = at % (cursor.length + 1)
        const edited = cursor.slice(0, place) + put + cursor.slice(place + removed)
        fc.pre(edited !== cursor)
        expect(refusal(() => read(filters, edited, shapeOf(key)))?.status).toBe(400)
      }),
      runs(3_000),
    )
  })

  test('are refused with other filters or another order', () => {
    fc.assert(
      fc.property(filters, filters, key, (made, used, key) => {
        const values = (value: unknown) => (Array.isArray(value) ? [...new Set(value)].sort() : value)
        const entries = (filters: object) =>
          JSON.stringify(
            Object.entries(filters)
              .map(([name, value]) => [name, values(value)])
              .sort(),
          )
        fc.pre(entries(made) !== entries(used))
        const cursor = cursorOf(made, key)
        expect(refusal(() => read(used, cursor, shapeOf(key)))?.status).toBe(400)
      }),
      runs(1_000),
    )
  })

  test('do not depend on the order of the filters, or of their values', () => {
    fc.assert(
      fc.property(filters, key, (made, key) => {
        const entries = Object.entries(made).map(([name, value]) => [
          name,
          Array.isArray(value) ? [...value, ...value].reverse() : value,
        ])
        const used = Object.fromEntries(entries.reverse()) as Filters
        expect(read(used, cursorOf(made, key), shapeOf(key)).after).toEqual(key)
      }),
      runs(500),
    )
  })

  test('are refused by another list', () => {
    fc.assert(
      fc.property(filters, key, (filters, key) => {
        expect(refusal(() => read(filters, cursorOf(filters, key), shapeOf(key), 'profiles'))?.status).toBe(
          400,
        )
      }),
      runs(200),
    )
  })

  test('are refused when any other text is sent as a cursor', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.base64String(), anyText()), (text) => {
        expect(refusal(() => read({}, text))?.status).toBe(400)
      }),
      runs(1_000),
    )
  })

  test('are refused when they are forged', () => {
    const forged = fc.oneof(
      fc.string(),
      fc.json(),
      fc.array(fc.oneof(fc.string(), id, time)).map((parts) => parts.join(' ')),
    )
    fc.assert(
      fc.property(forged, (text) => {
        const { fingerprint } = pageOf('transfers', {})
        const digest = createHash('sha256').update(`${fingerprint}${text}`).digest('base64url').slice(0, 16)
        const cursor = Buffer.from(digest + text).toString('base64url')
        // A forged cursor of the right shape cannot be distinguished, and does no harm.
        const [first = '', second = '', ...others] = text.split(' ')
        fc.pre(!(MICROS.test(first) && UUID.test(second) && others.length === 0))
        expect(refusal(() => read({}, cursor, [MICROS, UUID]))?.status).toBe(400)
      }),
      runs(1_000),
    )
  })

  test('exist only where there is a next page', () => {
    const page = pageOf('transfers', { limit: 2 })
    const [a, b, c] = fc.sample(id, { numRuns: 3, seed: SEED }) as [string, string, string]
    const reply = (rows: string[]) =>
      pageReply(
        rows,
        page,
        (row) => [row],
        (row) => row,
      )
    expect(reply([])).toEqual({ items: [] })
    expect(reply([a, b])).toEqual({ items: [a, b] })
    const more = reply([a, b, c])
    expect(more.items).toEqual([a, b])
    expect(pageOf('transfers', { limit: 2, page_cursor: more.next_page_cursor! }).after).toEqual([b])
  })
})

/** Returns the Problem that `work` throws, or undefined. Rethrows any other error. */
function refusal(work: () => unknown): Problem | undefined {
  try {
    work()
  } catch (error) {
    if (error instanceof Problem) return error
    throw error
  }
  return undefined
}
