import { InvalidArgumentError } from 'commander'
import { transaction } from '../db/database.ts'
import {
  changeLimit,
  CUSTOMER_LIMITS,
  defaultOf,
  LIMIT_VALUE_MAX,
  requestDefaults,
  shownLimitsOf,
  type ShownLimit,
} from '../money/records/customer-limits.ts'
import { uuid } from './arguments.ts'
import { inMigratedDatabase, requireCustomer, type AtDatabase } from './command-line.ts'
import { oneOf, type Group, type Words } from './define.ts'
import { tableOf } from './table.ts'

const WORDS = {
  '<customer_id>': ['customer', uuid],
  '<limit>': [CUSTOMER_LIMITS.join(', '), oneOf(CUSTOMER_LIMITS)],
  '<value>': ['a whole number, 0 for no limit, or "default"', limitValue],
} as const

export function defineCustomerLimits(customer: Group<AtDatabase, Words>): void {
  const about = "a customer's limits of requests and records; 0 is no limit"
  const limits = customer.group('limits', about, WORDS)
  limits.command('show <customer_id>', {
    about: 'show the limits of a customer, and how many records it has',
    async run({ db, settings }, { customer_id }) {
      await requireCustomer(db, customer_id)
      return { customer_id, limits: await shownLimitsOf(db, requestDefaults(settings), customer_id) }
    },
    says({ limits: found }) {
      const setBy = ({ is_default }: ShownLimit) => (is_default ? 'default' : 'operator')
      return tableOf(found, ['limit', '>value', ['set_by', setBy], '>records'], undefined)
    },
  })
  limits.command('set <customer_id> <limit> <value>', {
    in: inMigratedDatabase,
    about: 'set a limit of a customer; each process applies it within seconds',
    async run({ db, settings, origin }, { customer_id, limit, value: asked }) {
      await requireCustomer(db, customer_id)
      const value = asked === 'default' ? undefined : asked
      const usual = defaultOf(limit, requestDefaults(settings))
      await transaction(db, (tx) => changeLimit(tx, customer_id, limit, value, origin))
      return { customer_id, limit, value: value ?? usual, is_default: value === undefined }
    },
    says: ({ limit, value, is_default }) => `${limit}: ${value}${is_default ? ' (default)' : ''}`,
    logs: 'set a limit of a customer',
  })
}

function limitValue(text: string): number | 'default' {
  if (text === 'default') return text
  const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN
  if (!(value <= LIMIT_VALUE_MAX))
    throw new InvalidArgumentError(`it must be a whole number from 0 to ${LIMIT_VALUE_MAX}, or "default".`)
  return value
}
