import fc from 'fast-check'
import { expect, test } from 'vitest'
import { runs } from '../../test/seed.ts'
import { ownDatabase } from '../../test/support.ts'
import { transaction } from './database.ts'
import { newId, readClock, type Moment } from './ids.ts'

const database = await ownDatabase(1)

/** Few values close together, so that neighbours are as common as distant ones. */
const micros = fc.oneof(
  fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
  fc.nat(3_000).map((later) => 1_795_234_567_000_000 + later),
)
const id = fc
  .record({ micros, place: fc.integer({ min: 0, max: 0x3fff }) })
  .map(({ micros, place }) => newId({ micros, text: 'not read' }, place))

test('PostgreSQL sorts ids as text does', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(id, { minLength: 2, maxLength: 200 }), async (ids) => {
      const { rows } = await database.db.query<{ id: string }>(
        'select id from unnest($1::uuid[]) as id order by id',
        [ids],
      )
      expect(rows.map((row) => row.id)).toEqual(ids.sort())
    }),
    runs(30),
  )
})

test("the database's clock is read to the microsecond, as number and as text alike", async () => {
  const moments: Moment[] = []
  for (let reads = 0; reads < 20; reads++) moments.push(await transaction(database.db, readClock))
  for (const { micros, text } of moments) {
    expect(text).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    expect(Date.parse(`${text.slice(0, 23)}Z`) * 1_000 + Number(text.slice(23, 26))).toBe(micros)
  }
  // One read that ends in 000 is chance; twenty would mean milliseconds.
  expect(moments.some(({ micros }) => micros % 1_000 !== 0)).toBe(true)
})
