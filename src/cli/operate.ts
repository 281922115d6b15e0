import { scopesOf } from '../contract/scopes.ts'
import { Policies } from '../governance/policy/policy.ts'
import { fileValidator } from '../http/validation.ts'
import { RowMacs } from '../audit/row-macs.ts'
import { WithdrawalMacs } from '../audit/withdrawal-macs.ts'
import { Ledger } from '../money/movements/queue.ts'
import type { OperatorContext, OperatorOperation } from '../resources/operation.ts'
import type { AtDatabase } from './command-line.ts'

/**
 * Runs an operator's operation in this process, on the command's database, with the user of the operating system as its actor.
 * `given` has the members of its path, query and body by their names, which are checked as those of a request, and the customer
 * that it acts for. Throws what the operation throws.
 */
export async function operate<Reply>(
  at: AtDatabase,
  operation: OperatorOperation<Reply>,
  given: object,
): Promise<Reply> {
  const { db, settings, origin } = at
  const { customer: customerId = '' } = given as { customer?: string }
  // What only reads needs no master key, and makes none.
  const keys = operation.method === 'GET' ? undefined : await at.keys()
  const ledger = keys && new Ledger(db, { macs: new WithdrawalMacs(keys) })
  const context = {
    ...{ db, shared: db, nodes: await at.nodes(), settings, ledger },
    ...(keys && { policies: new Policies(keys), rowMacs: new RowMacs(keys) }),
  } as OperatorContext
  const caller = { customerId, clientId: origin.actor.id, scopes: scopesOf(settings.mode), origin }
  const [params, query, body] = (['params', 'query', 'body'] as const).map((part) =>
    partOf(operation[part], given),
  )
  try {
    return await operation.run({ ...caller, ...context, params, query, body } as never)
  } finally {
    await ledger?.drain()
  }
}

/** The members of `given` that a part of a request has. Throws bad-request where they are not as its schema says. */
function partOf(schema: { properties: object } | undefined, given: object): object | undefined {
  if (schema === undefined) return undefined
  const members = Object.entries(given).filter(
    ([name, value]) => Object.hasOwn(schema.properties, name) && value !== undefined,
  )
  const checked = fileValidator(schema)(Object.fromEntries(members))
  if ('error' in checked) throw checked.error
  return checked.value
}
