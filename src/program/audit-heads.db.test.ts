import { expect, test } from 'vitest'
import { ownDatabase } from '../../test/support.ts'
import { originOfLoop } from '../contract/actor.ts'
import { createCustomer } from '../money/records/customer.ts'
import { transaction } from '../db/database.ts'
import { readClock } from '../db/ids.ts'
import { recordChanges } from '../audit/audit.ts'
import { MovedHeads } from './audit-heads.ts'

const database = await ownDatabase()

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
