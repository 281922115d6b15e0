import { expect } from 'vitest'
import { createOperator, makeLink, type Operator } from '../src/access/operators/operators.ts'
import type { Role } from '../src/contract/roles.ts'
import { transaction } from '../src/db/database.ts'
import { caller, ROW_MACS, type TestService } from './support.ts'

/** Signs an operator in by a link and returns how it calls the API, for a customer where it belongs to none. */
export async function signIn(
  { app, db }: Pick<TestService, 'app' | 'db'>,
  { id, customer_id }: Operator,
  customerId?: string,
): Promise<ReturnType<typeof caller>> {
  const post = async <T>(path: string, payload: object): Promise<T> => {
    const reply = await app.inject({ method: 'POST', url: `/v2/operators${path}`, payload })
    expect(reply.statusCode, reply.body).toBe(200)
    return reply.json<T>()
  }
  const { secret } = await transaction(db, (tx) => makeLink(tx, ROW_MACS, id))
  const { session_secret } = await post<{ session_secret: string }>('/sign-in/link', { link: secret })
  const { access_token } = await post<{ access_token: string }>('/access-tokens', {
    session_secret,
    ...(customer_id === null && { customer_id: customerId }),
  })
  return caller(app, access_token)
}

/** A new operator of a customer or, without one, of the deployment, who acts for `actFor`. */
export async function newOperatorCaller(
  service: Pick<TestService, 'app' | 'db'>,
  role: Role,
  { customerId, actFor }: { customerId?: string; actFor?: string },
): Promise<ReturnType<typeof caller>> {
  const operator = await createOperator(service.db, ROW_MACS, { name: `Test ${role}`, role, customerId })
  return signIn(service, operator, actFor)
}
