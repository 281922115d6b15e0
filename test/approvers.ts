import type { JsonWebKey } from 'node:crypto'
import type { Database } from '../src/db/database.ts'
import { newId } from '../src/db/ids.ts'
import { transaction } from '../src/db/database.ts'
import { readClock } from '../src/db/ids.ts'
import { newPrivateKey, publicPartOf, thumbprintOf } from '../src/records/approval-statement.ts'

/** An approver of a test, with the private key of its key file. */
export interface TestApprover {
  id: string
  jwk: JsonWebKey
}

let made = 0

/** Adds an approver as `bursar approvers add` does: as the role that owns the schema. */
export async function addTestApprover(
  owner: Database,
  customer_id: string,
  {
    jwk = newPrivateKey(),
    name = `Approver ${++made}`,
    role = 'APPROVER',
    operator_id = null as string | null,
    client_id = null as string | null,
  } = {},
): Promise<TestApprover> {
  const key = publicPartOf(jwk)
  return transaction(owner, async (tx) => {
    const now = await readClock(tx)
    const id = newId(now)
    await tx.query(
      `
      insert into approvers (customer_id, id, created_at, name, operator_id, client_id, role, key, thumbprint, status)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'ACTIVE')`,
      [customer_id, id, now.text, name, operator_id, client_id, role, JSON.stringify(key), thumbprintOf(key)],
    )
    return { id, jwk }
  })
}
