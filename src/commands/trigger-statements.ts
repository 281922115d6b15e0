import type { EventType } from '../contract/event-types.ts'
import { transaction, type Database } from '../db/database.ts'
import { makeEarlierHolding } from '../demo/history.ts'
import { generateStatements } from '../statements/generate-statements.ts'
import { listAllStatements } from '../statements/list-all-statements.ts'
import { payStatements, type Paid } from '../statements/pay-statements.ts'
import { reversePayment } from '../statements/reverse-payment.ts'
import { lastPeriod, type Period } from '../statements/period.ts'
import type { Api } from './call-api.ts'
import { originOfCommand, withDatabase } from './command-line.ts'

/**
 * Statements are the operator's business, not the API's: these recipes work in the database, as `bursar statements` does. Each
 * makes the statement of the month before the customer's first one, for a holding that the sandbox invents for that month.
 */

/** The types of events that a new statement makes. */
type StatementEvent = Extract<
  EventType,
  | 'statement.generated'
  | 'statement.paid'
  | 'transfer.paxos_transfer_credit.completed'
  | 'transfer.paxos_transfer_debit.completed'
>

/** Returns the recipe of an event of a statement. It throws where the database is not a sandbox's. */
export const makeStatement =
  (type: StatementEvent) =>
  async (api: Api): Promise<string> => {
    const { customer_id } = api.credentials
    let made: string | undefined
    await withDatabase({ migrate: true }, async ({ db, settings }) => {
      if (settings.mode !== 'sandbox')
        throw new Error('only a sandbox invents holdings: this database is live')
      const { period, statement_id } = await generateEarlier(db, api)
      if (type === 'statement.generated') made = statement_id
      else {
        const paid = await pay(db, customer_id, period)
        made =
          type === 'transfer.paxos_transfer_debit.completed'
            ? (await reversePayment(db, statement_id, originOfCommand())).transfer_id
            : recordOf(paid, type)
      }
    })
    return made!
  }

/** How often another month is tried, where another process has made the statement first. */
const ATTEMPTS_MAX = 5

async function generateEarlier(
  db: Database,
  { call, credentials: { customer_id: customerId } }: Api,
): Promise<{ period: Period; statement_id: string }> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const statements = await listAllStatements(db, { customerId })
    const oldest = statements.at(-1)
    if (oldest === undefined) throw new Error('the demo has no statement yet: try again once it is made')
    const period = lastPeriod(`${oldest.period}-01`)
    const nickname = `trigger ${crypto.randomUUID()}`
    // Only a new profile can have a deposit in the past.
    const { id: profile_id } = await call<{ id: string }>('POST', '/v2/profiles', { nickname })
    const holder = { customer_id: customerId, profile_id }
    await transaction(db, (tx) => makeEarlierHolding(tx, holder, period))
    const generated = await generateStatements(db, period, customerId)
    const [made] = await listAllStatements(db, { period, customerId })
    if (generated.length > 0) return { period, statement_id: made!.statement_id }
  }
  throw new Error('other processes make statements at the same time: try again')
}

async function pay(db: Database, customerId: string, period: Period): Promise<Paid> {
  const [paid] = await payStatements(db, { period, customerId, origin: originOfCommand() })
  if (paid === undefined) throw new Error('another process paid the statement: try again')
  return paid
}

const recordOf = ({ statement_id, transfer_id }: Paid, type: StatementEvent): string =>
  type === 'statement.paid' ? statement_id : transfer_id!
