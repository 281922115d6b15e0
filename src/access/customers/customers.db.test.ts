import { expect, test } from 'vitest'
import { ROW_MACS, TEST_ORIGIN, ownDatabase } from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { momentAt } from '../../db/ids.ts'
import { createApiClient, disableApiClient } from '../tokens/api-clients.ts'
import { freeze, unfreeze } from '../../money/records/freezes.ts'
import { createCustomer } from '../../money/records/customer.ts'
import { listCustomers } from './list-customers.ts'

const database = await ownDatabase()

const summaryOf = async (customerId: string) =>
  (await listCustomers(database.db)).find(({ customer_id }) => customer_id === customerId)

test('a new customer has its DEFAULT profile, created at the same moment', async () => {
  const { db } = database
  const { customer_id, profile_id } = await createCustomer(db, 'Acme')
  const { rows } = await db.query(
    `select p.id, p.type, p.nickname, p.created_at = c.created_at as same_moment
     from profiles p join customers c on c.id = p.customer_id where p.customer_id = $1`,
    [customer_id],
  )
  expect(rows).toEqual([{ id: profile_id, type: 'DEFAULT', nickname: 'Default', same_moment: true }])
})

test('a transaction that fails creates neither the customer nor its profile', async () => {
  const { db } = database
  const count = async () => {
    const { rows } = await db.query<{ customers: number; profiles: number }>(
      `select (select count(*)::integer from customers) as customers,
              (select count(*)::integer from profiles) as profiles`,
    )
    return rows[0]
  }
  const before = await count()
  const failing = transaction(db, async (tx) => {
    await createCustomer(tx, 'Never')
    throw new Error('the process ends here')
  })
  await expect(failing).rejects.toThrow('the process ends here')
  expect(await count()).toEqual(before)
})

test('a backdated customer precedes the others in the list', async () => {
  const { db } = database
  const { customer_id: newer } = await createCustomer(db, 'Newer')
  const { customer_id: older } = await createCustomer(db, 'Older', momentAt('2025-01-01T00:00:00.000000Z'))
  const ids = (await listCustomers(db)).map(({ customer_id }) => customer_id)
  expect(ids.indexOf(older)).toBeLessThan(ids.indexOf(newer))
  expect(await summaryOf(older)).toMatchObject({ created_at: '2025-01-01T00:00:00.000000Z' })
})

test('the list counts enabled clients only, and shows a disabled customer but no other freeze', async () => {
  const { db } = database
  const { customer_id } = await createCustomer(db, 'Counted')
  const { customer_id: other } = await createCustomer(db, 'Other')
  const [first] = [
    await createApiClient(db, ROW_MACS, customer_id, []),
    await createApiClient(db, ROW_MACS, customer_id, []),
    await createApiClient(db, ROW_MACS, other, []),
  ]
  expect(await summaryOf(customer_id)).toMatchObject({ clients: 2, profiles: 1, disabled_at: null })
  await disableApiClient(db, first.client_id, TEST_ORIGIN)
  const target = { kind: 'CUSTOMER', customer_id } as const
  await freeze(db, TEST_ORIGIN, target, 'OPERATOR', 'a leak')
  expect(await summaryOf(customer_id)).toMatchObject({ clients: 1, disabled_at: null })
  await freeze(db, TEST_ORIGIN, target, 'DISABLED', 'left')
  expect(await summaryOf(customer_id)).toMatchObject({
    disabled_at: expect.stringMatching(/^20\d\d-.*Z$/) as string,
  })
  expect(await summaryOf(other)).toMatchObject({ clients: 1, disabled_at: null })
  await unfreeze(db, ROW_MACS, TEST_ORIGIN, target, 'DISABLED')
  expect(await summaryOf(customer_id)).toMatchObject({ disabled_at: null })
})
