import { InvalidArgumentError } from 'commander'
import { transaction } from '../db/database.ts'
import {
  changeLimit,
  CUSTOMER_LIMITS,
  defaultOf,
  LIMIT_VALUE_MAX,
  requestDefaults,
  shownLimitsOf,
  type CustomerLimit,
  type ShownLimit,
} from '../money/records/customer-limits.ts'
import { uuid } from './arguments.ts'
import { inDatabase, inMigratedDatabase, requireCustomer } from './command-line.ts'
import { define, oneOf, type Subcommand } from './define.ts'
import { tableOf } from './table.ts'

export function defineCustomerLimits(customer: Subcommand): void {
  const limits = define(customer, 'limits', "a customer's limits of requests and records; 0 is no limit")
  define(limits, 'show', 'show the limits of a customer, and how many records it has')
    .argument('<customer_id>', 'customer', uuid)
    .answer(inDatabase, async ({ db, settings }, customer_id: string) => {
      await requireCustomer(db, customer_id)
      const found = await shownLimitsOf(db, requestDefaults(settings), customer_id)
      const setBy = ({ is_default }: ShownLimit) => (is_default ? 'default' : 'operator')
      const text = tableOf(found, ['limit', '>value', ['set_by', setBy], '>records'], undefined)
      return [{ customer_id, limits: found }, text]
    })
  define(limits, 'set', 'set a limit of a customer; each process applies it within seconds')
    .argument('<customer_id>', 'customer', uuid)
    .argument('<limit>', CUSTOMER_LIMITS.join(', '), oneOf(CUSTOMER_LIMITS))
    .argument('<value>', 'a whole number, 0 for no limit, or "default"', limitValue)
    .answer(
      inMigratedDatabase,
      async (
        { db, settings, did, origin },
        customer_id: string,
        limit: CustomerLimit,
        asked: number | 'default',
      ) => {
        await requireCustomer(db, customer_id)
        const value = asked === 'default' ? undefined : asked
        const usual = defaultOf(limit, requestDefaults(settings))
        await transaction(db, (tx) => changeLimit(tx, customer_id, limit, value, origin))
        const set = { customer_id, limit, value: value ?? usual, is_default: value === undefined }
        did('set a limit of a customer', set)
        return [set, `${limit}: ${set.value}${set.is_default ? ' (default)' : ''}`]
      },
    )
}

function limitValue(text: string): number | 'default' {
  if (text === 'default') return text
  const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN
  if (!(value <= LIMIT_VALUE_MAX))
    throw new InvalidArgumentError(`it must be a whole number from 0 to ${LIMIT_VALUE_MAX}, or "default".`)
  return value
}
