import { expect, test } from 'vitest'
import { ownDatabase } from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { momentAt } from '../../db/ids.ts'
import { finalTime, readEntries, type BookEntry } from './book.ts'

const database = await ownDatabase()
const { db } = database
const [FIRST, SECOND] = ['00000000-0000-7000-8000-000000000001', '00000000-0000-7000-8000-000000000002']
const EVER = { from: momentAt('1970-01-01T00:00:00Z'), to: momentAt('2200-01-01T00:00:00Z') }

/** Bursts, one of them within one microsecond, and years without an entry. */
async function insertEntries(): Promise<void> {
  await db.query(`
    insert into entries (customer_id, transfer_id, event, position, account, asset, amount, created_at)
    select case n % 3 when 0 then '${SECOND}'::uuid else '${FIRST}'::uuid end, gen_random_uuid(),
           (array['CREATED', 'SETTLED', 'REFUNDED'])[1 + n % 3], n % 2, case n % 2 when 0 then 'bank' else 'fees' end, 'USD', n,
           case when n <= 4500 then timestamptz '2020-02-29 12:00:00.123456+00'
                when n <= 6000 then timestamptz '2020-02-29 12:00:00.123457+00' + random() * interval '1 hour'
                else timestamptz '2026-01-01 00:00:00+00' + random() * interval '100 days' end
    from generate_series(1, 9000) n`)
}

async function read(customerId: string | undefined, asked: Partial<Parameters<typeof readEntries>[1]> = {}) {
  const entries: BookEntry[] = []
  const book = { db, customerId }
  const time = await finalTime(book, { ...EVER, ...asked })
  for await (const page of readEntries(book, { ...asked, ...time })) {
    expect(page.length).toBeGreaterThan(0)
    expect(page.length).toBeLessThanOrEqual(2000)
    entries.push(...page)
  }
  return entries.map(({ transfer_id, position, amount }) => `${transfer_id} ${position} ${amount}`)
}

async function inSql(where: string): Promise<string[]> {
  const { rows } = await db.query<{ entry: string }>(`
    select format('%s %s %s', transfer_id, position, amount) as entry from entries where ${where}
    order by created_at, customer_id, transfer_id, event collate "C", position`)
  return rows.map(({ entry }) => entry)
}

test('every entry is read once, in posting order, of a customer or the whole ledger', async () => {
  await insertEntries()
  expect(await read(undefined)).toEqual(await inSql('true'))
  expect(await read(SECOND)).toEqual(await inSql(`customer_id = '${SECOND}'`))
  expect(await read(FIRST, { account: 'fees', asset: 'USD' })).toEqual(
    await inSql(`customer_id = '${FIRST}' and account = 'fees'`),
  )
  expect(await read(undefined, { asset: 'BTC' })).toEqual([])
  const from = momentAt('2020-02-29T12:00:00.123457Z')
  const to = momentAt('2026-02-01T00:00:00Z')
  expect(await read(undefined, { from, to })).toEqual(
    await inSql(`created_at >= '${from.text}' and created_at < '${to.text}'`),
  )
})

test('it ends before a transaction that is under way', async () => {
  const before = await read(undefined)
  await transaction(db, async (tx) => {
    const { rows } = await tx.query<{ at: string }>(`
      insert into entries (customer_id, transfer_id, event, position, account, asset, amount, created_at)
      values ('${FIRST}', gen_random_uuid(), 'CREATED', 0, 'bank', 'USD', 1, clock_timestamp()) returning created_at as at`)
    expect(await read(undefined)).toEqual(before)
    const { to } = await finalTime({ db, customerId: undefined }, EVER)
    expect(to.text < rows[0]!.at).toBe(true)
  })
  expect(await read(undefined)).toHaveLength(before.length + 1)
})
