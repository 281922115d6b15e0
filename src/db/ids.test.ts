/*
 * Invariants for every moment and every number of a record within its moment:
 * 1. ids sort by (created_at, number), as text and (ids.db.test.ts) as PostgreSQL's uuid;
 * 2. an id is a UUIDv7 (RFC 9562) whose time is the moment's;
 * 3. firstIdAt(t) is above every id made before t, and not above any id made at t or later;
 * 4. no two ids are the same, even of one moment and number.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../test/seed.ts'
import { firstIdAt, newId, type Moment } from './ids.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const NOVEMBER_2026 = 1_795_234_567_000_000

/** Few values close together, so that neighbours and equal values are as common as distant ones. */
const micros = fc.oneof(
  fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  fc.integer({ min: NOVEMBER_2026 - 1_500, max: NOVEMBER_2026 + 1_500 }),
  fc.constantFrom(0, 1, 999, 1_000, Number.MAX_SAFE_INTEGER - 1, Number.MAX_SAFE_INTEGER),
)
const place = fc.oneof(fc.integer({ min: 0, max: 0x3fff }), fc.constantFrom(0, 1, 0x1fff, 0x2000, 0x3fff))
const record = fc.record({ micros, place })
const idOf = (made: { micros: number; place: number }) =>
  newId({ micros: made.micros, text: 'not read' }, made.place)

const ascending = <T extends number | string>(a: T, b: T) => (a < b ? -1 : a > b ? 1 : 0)

test('ids sort as (created_at, number)', () => {
  fc.assert(
    fc.property(record, record, (a, b) => {
      const records = ascending(a.micros, b.micros) || ascending(a.place, b.place)
      if (records !== 0) expect(ascending(idOf(a), idOf(b))).toBe(records)
    }),
    runs(5_000),
  )
})

test('an id is a UUIDv7 whose time is the moment', () => {
  fc.assert(
    fc.property(record, (made) => {
      const id = idOf(made)
      expect(id).toMatch(UUID_V7)
      expect(parseInt(id.slice(0, 8) + id.slice(9, 13), 16)).toBe(Math.floor(made.micros / 1_000))
      // RFC 9562, 6.2, method 3: the 12 bits after the version are the fraction of the millisecond.
      expect(parseInt(id.slice(15, 18), 16)).toBe(Math.floor(((made.micros % 1_000) / 1_000) * 4_096))
    }),
    runs(2_000),
  )
})

test('firstIdAt is the bound on created_at as a bound on ids', () => {
  fc.assert(
    fc.property(record, micros, (made, bound) => {
      expect(idOf(made) >= firstIdAt(bound)).toBe(made.micros >= bound)
    }),
    runs(5_000),
  )
})

test('no two ids of one moment and number are the same', () => {
  const ids = Array.from({ length: 20_000 }, () => idOf({ micros: NOVEMBER_2026, place: 7 }))
  expect(new Set(ids).size).toBe(ids.length)
})

test('more records of one moment than there are numbers throw an error', () => {
  const moment: Moment = { micros: NOVEMBER_2026, text: 'not read' }
  expect(newId(moment, 0x3fff)).toMatch(UUID_V7)
  expect(() => newId(moment, 0x4000)).toThrow(RangeError)
})
