import { expect, test } from 'vitest'
import { newCustomer, ROW_MACS, sharedTestService } from '../../../test/support.ts'
import { createOperator } from '../operators/operators.ts'
import { renameApiClient } from '../tokens/api-clients.ts'
import { originOfLoop, type Actor } from '../../contract/actor.ts'
import { transaction } from '../../db/database.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { nameActors } from './actor-names.ts'

test("a customer sees the names of its own clients and operators, and none of the platform's people", async () => {
  const service = await sharedTestService()
  const { db } = service
  const [customer, other] = [await newCustomer(service), await newCustomer(service)]
  const operatorOf = (name: string, customerId: string | undefined) =>
    transaction(db, (tx) => createOperator(tx, ROW_MACS, { name, role: 'VIEWER', customerId }))
  const own = await operatorOf('Ada', customer.customer_id)
  const platform = await operatorOf('Grace', undefined)
  for (const { customer_id, client_id } of [customer, other])
    await transaction(db, (tx) =>
      renameApiClient(tx, customer_id, client_id, 'Payouts', originOfLoop('test')),
    )
  const actors: Actor[] = [
    { type: 'API_CLIENT', id: customer.client_id },
    { type: 'API_CLIENT', id: other.client_id },
    { type: 'OPERATOR', id: own.id },
    { type: 'OPERATOR', id: platform.id },
    { type: 'WORKER', id: 'settlement' },
  ]
  const namesFor = async (customerId: string) => {
    const named = await nameActors(db, customerId, actors)
    return actors.map((actor) => named(actor).name)
  }
  expect(await namesFor(customer.customer_id)).toEqual(['Payouts', undefined, 'Ada', undefined, undefined])
  expect(await namesFor(PLATFORM_ID)).toEqual([undefined, undefined, undefined, 'Grace', undefined])
})
