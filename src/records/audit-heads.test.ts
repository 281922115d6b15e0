import { afterAll, beforeAll, expect, test } from 'vitest'
import { asAdmin, cloneDatabase, type TestDatabase } from '../../test/support.ts'
import { originOfLoop } from '../contract/actor.ts'
import { createCustomer } from '../customers/create-customer.ts'
import { transaction } from '../db/database.ts'
import { readClock } from '../db/ids.ts'
import { readAuditHeads, recordChanges } from '../ledger/audit.ts'
import { beginMissingChains, MovedHeads } from './audit-heads.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await cloneDatabase()
})
afterAll(() => database.drop())

const change = (customerId: string) =>
  transaction(database.db, async (tx) =>
    recordChanges(tx, customerId, await readClock(tx), [
      { origin: originOfLoop('test'), action: 'profile.create', subject: { type: 'profile', id: 'p' } },
    ]),
  )

test('each head is returned once for each time that it moved', async () => {
  const [one, two] = [await createCustomer(database.db, 'One'), await createCustomer(database.db, 'Two')]
  const heads = new MovedHeads()
  expect(await heads.read(database.db)).toEqual([])
  await change(one.customer_id)
  expect(await heads.read(database.db)).toMatchObject([{ customer_id: one.customer_id, position: 1 }])
  await change(one.customer_id)
  await change(two.customer_id)
  expect(await heads.read(database.db)).toMatchObject([
    { customer_id: two.customer_id, position: 1 },
    { customer_id: one.customer_id, position: 2 },
  ])
  expect(await heads.read(database.db)).toEqual([])
})

test('only customers of the upgrade get a chain that they lack', async () => {
  const { customer_id } = await createCustomer(database.db, 'New')
  const { customer_id: older } = await createCustomer(database.db, 'Of the older version')
  await asAdmin(
    [
      `delete from audit_heads where customer_id in ('${customer_id}', '${older}')`,
      `update customers set created_at = now() - interval '1 day' where id = '${older}'`,
    ],
    database.url,
  )
  expect(await beginMissingChains(database.db)).toBe(1)
  expect(await beginMissingChains(database.db)).toBe(0)
  await change(older)
  await expect(change(customer_id)).rejects.toThrow(/division by zero|has no audit chain/)
  const heads = await readAuditHeads(database.db)
  const [platform] = heads
  expect(heads.find((head) => head.customer_id === older)).toMatchObject({
    position: 1,
    covered_from: platform!.covered_from,
  })
})
