import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { ownDatabase } from '../../../test/support.ts'
import { createCustomer } from '../../money/records/customer.ts'
import { transaction, type Database } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { masterKeysOf } from '../../keys/master-keys.ts'
import { completeDocument, type NewPolicyDocument } from './policy-document.ts'
import { Policies } from './policy.ts'
import { POLICY_PLACE } from '../../money/records/policies.ts'

const keysOf = (...lines: string[]) => masterKeysOf(lines, 'BURSAR_MASTER_KEY')
const newKey = () => randomBytes(32).toString('hex')

const database = await ownDatabase()

const LIMITED: NewPolicyDocument = {
  rules: [
    {
      id: 'big',
      limit: { amount: '1000.50', asset: 'USD', period_seconds: 0 },
      action: 'APPROVE',
      approvals: 2,
    },
    { action: 'BLOCK', match: { destination: ['0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'], assets: ['BTC'] } },
  ],
  changes: { subjects: ['POLICY'], approvals: 1 },
}

const newCustomer = async () => (await createCustomer(database.db, 'Policy')).customer_id

const add = (policies: Policies, customerId: string, document: NewPolicyDocument, replaces?: number) =>
  transaction(database.db, async (tx) =>
    policies.add(tx, customerId, completeDocument(document), await readClock(tx), replaces),
  )

/** Reads the place of the newest version, as a batch of payments does. */
async function placeOf(db: Database, customerId: string): Promise<string> {
  const { rows } = await db.query<{ place: string }>(
    `select ${POLICY_PLACE} as place from policies where customer_id = $1 order by version desc limit 1`,
    [customerId],
  )
  return rows[0]!.place
}

test('a version is read as it was written, by a process that did not write it', async () => {
  const key = newKey()
  const customerId = await newCustomer()
  expect(await new Policies(keysOf(key)).newest(database.db, customerId)).toBeUndefined()
  const first = await add(new Policies(keysOf(key)), customerId, { rules: [] })
  const second = await add(new Policies(keysOf(key)), customerId, LIMITED)
  expect([first.version, second.version]).toEqual([1, 2])
  expect(await new Policies(keysOf(key)).newest(database.db, customerId)).toEqual(second)
  const place = await placeOf(database.db, customerId)
  expect(await new Policies(keysOf(key)).get(database.db, customerId, place)).toEqual(second)
  // The next one has an older master key beside its own.
  expect(await new Policies(keysOf(newKey(), key)).newest(database.db, customerId)).toEqual(second)
})

test('the stolen role of the service can neither change a version nor make one that counts', async () => {
  const policies = () => new Policies(keysOf(key))
  const key = newKey()
  const customerId = await newCustomer()
  const other = await newCustomer()
  await add(policies(), customerId, LIMITED)
  await expect(database.db.query(`update policies set document = '{"rules": []}'`)).rejects.toThrow('denied')
  await expect(database.db.query('delete from policies')).rejects.toThrow('denied')
  const forgeries = {
    'an invented version': `insert into policies select customer_id, 2, '{"rules": []}', mac, created_at from policies
                            where customer_id = $1 and version = 1`,
    'an older version once more': `insert into policies select customer_id, 3, document, mac, created_at from policies
                                   where customer_id = $1 and version = 1`,
    'no MAC at all': `insert into policies select customer_id, 4, document, '', created_at from policies
                      where customer_id = $1 and version = 1`,
  }
  for (const forgery of Object.values(forgeries)) {
    await database.db.query(forgery, [customerId])
    await expect(policies().newest(database.db, customerId)).rejects.toThrow('cannot be trusted')
    const place = await placeOf(database.db, customerId)
    await expect(policies().get(database.db, customerId, place)).rejects.toThrow('cannot be trusted')
  }
  await database.db.query(
    'insert into policies select $2, version, document, mac, created_at from policies where customer_id = $1 and version = 1',
    [customerId, other],
  )
  await expect(policies().newest(database.db, other)).rejects.toThrow('its MAC does not match')
  await expect(new Policies(keysOf(newKey())).newest(database.db, other)).rejects.toThrow('needs master key')
  // The operator replaces what cannot be trusted.
  const repaired = await add(policies(), customerId, LIMITED)
  expect(await policies().newest(database.db, customerId)).toEqual(repaired)
})

test('a version that was checked is not read again, and another MAC under its number is', async () => {
  const policies = new Policies(keysOf(newKey()))
  const customerId = await newCustomer()
  const made = await add(policies, customerId, LIMITED)
  const place = await placeOf(database.db, customerId)
  expect(await policies.get(database.db, customerId, place)).toEqual(made)
  const nowhere = { query: () => Promise.reject(new Error('asked')) } as unknown as Database
  expect(await policies.get(nowhere, customerId, place)).toEqual(made)
  await expect(policies.get(nowhere, customerId, `${place}x`)).rejects.toThrow('asked')
})

test('an author who read an older version is told so', async () => {
  const policies = new Policies(keysOf(newKey()))
  const customerId = await newCustomer()
  await add(policies, customerId, LIMITED, 0)
  await expect(add(policies, customerId, LIMITED, 0)).rejects.toMatchObject({
    slug: 'already-exists',
    meta: { existing: { version: 1 } },
  })
  expect(await add(policies, customerId, LIMITED, 1)).toMatchObject({ version: 2 })
})
