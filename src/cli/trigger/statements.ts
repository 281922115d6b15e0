import type { EventType } from '../../contract/event-types.ts'
import { transaction, type Database } from '../../db/database.ts'
import { takeLock } from '../../db/locks.ts'
import { makeEarlierHolding } from '../../program/demo/history.ts'
import { generateStatements } from '../../resources/statements/generate-statements.ts'
import { listAllStatements } from '../../resources/statements/list-all-statements.ts'
import { payStatements } from '../../resources/statements/pay-statements.ts'
import { lastPeriod, type Period } from '../../resources/statements/period.ts'
import { reversePayment } from '../../resources/statements/reverse-payment.ts'
import type { Api } from '../call-api.ts'
import { withDatabase } from '../command-line.ts'
import { PROFILE, run } from './steps.ts'

/**
 * Makes an event of a statement. The API does not make statements, so this works in the database, as `bursar statements`
 * does. It makes the statement of the month before the customer's first statement, for a holding that the sandbox invents
 * for that month. Throws where the database is not a sandbox's.
 */
export const makeStatement = (api: Api, type: EventType): Promise<string> =>
  withDatabase({ migrate: true }, async ({ db, settings, origin }) => {
    if (settings.mode !== 'sandbox') throw new Error('only a sandbox invents holdings: this database is live')
    const { period, statement_id } = await generateEarlier(db, api)
    if (type === 'statement.generated') return statement_id
    const asked = { period, customerId: api.credentials.customer_id, origin }
    const [paid] = await payStatements(db, asked)
    if (paid === undefined) throw new Error('another process paid the statement: try again')
    if (type === 'transfer.paxos_transfer_credit.completed') return paid.transfer_id!
    if (type === 'transfer.paxos_transfer_debit.completed')
      return (await reversePayment(db, statement_id, origin)).transfer_id
    return statement_id
  })

async function generateEarlier(db: Database, api: Api): Promise<{ period: Period; statement_id: string }> {
  const { customer_id } = api.credentials
  return transaction(db, async (tx) => {
    await takeLock(tx, 'earlierStatement')
    const oldest = (await listAllStatements(db, { customerId: customer_id })).at(-1)
    if (oldest === undefined) throw new Error('the demo has no statement yet: try again once it is made')
    const period = lastPeriod(`${oldest.period}-01`)
    // Only a new profile can have a deposit in the past.
    const { to } = await run(api, [PROFILE])
    await transaction(db, (own) => makeEarlierHolding(own, { customer_id, profile_id: to! }, period))
    await generateStatements(db, period, customer_id)
    const [made] = await listAllStatements(db, { period, customerId: customer_id })
    return { period, statement_id: made!.statement_id }
  })
}
