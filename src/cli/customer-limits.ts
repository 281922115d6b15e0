import { InvalidArgumentError } from 'commander'
import { transaction, type Database } from '../db/database.ts'
import { audited, recordNow } from '../money/records/audited.ts'
import {
  countRecords,
  CUSTOMER_LIMITS,
  defaultOf,
  isRecordLimit,
  requestDefaults,
  selectLimitsOf,
  setLimit,
  type CustomerLimit,
} from '../money/records/customer-limits.ts'
import type { Settings } from '../settings.ts'
import { uuid } from './arguments.ts'
import { inDatabase, inMigratedDatabase, requireCustomer } from './command-line.ts'
import { define, type Subcommand } from './define.ts'
import { tableOf } from './table.ts'

/** The largest value of a limit. */
const VALUE_MAX = 1_000_000_000

/** Defines `bursar customer limits`. */
export function defineCustomerLimits(customer: Subcommand): void {
  const limits = define(customer, 'limits', "a customer's limits of requests and records; 0 is no limit")
  define(limits, 'show', 'show the limits of a customer, and how many records it has')
    .argument('<customer_id>', 'customer', uuid)
    .answer(inDatabase, async ({ db, settings }, customer_id: string) => {
      await requireCustomer(db, customer_id)
      const found = await limitsOf(db, settings, customer_id)
      const setBy = ({ is_default }: Shown) => (is_default ? 'default' : 'operator')
      const text = tableOf(found, ['limit', '>value', ['set_by', setBy], '>records'], undefined)
      return [{ customer_id, limits: found }, text]
    })
  define(limits, 'set', 'set a limit of a customer; each process applies it within seconds')
    .argument('<customer_id>', 'customer', uuid)
    .argument('<limit>', CUSTOMER_LIMITS.join(', '), limitName)
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
        await transaction(db, async (tx) => {
          const before = await setLimit(tx, customer_id, limit, value)
          if (before === value) return
          const changes = { before: { [limit]: before ?? null }, after: { [limit]: value ?? null } }
          const record = audited(origin, 'customer.set_limit', customer_id, changes)
          await recordNow(tx, customer_id, record)
        })
        const set = { customer_id, limit, value: value ?? usual, is_default: value === undefined }
        did('set a limit of a customer', set)
        return [set, `${limit}: ${set.value}${set.is_default ? ' (default)' : ''}`]
      },
    )
}

/** A limit as the command prints it. */
interface Shown {
  limit: CustomerLimit
  value: number
  is_default: boolean
  /** Of a limit of records: how many the customer has. */
  records?: number
}

async function limitsOf(db: Database, settings: Settings, customerId: string): Promise<Shown[]> {
  const set = await selectLimitsOf(db, customerId)
  const shown: Shown[] = []
  for (const limit of CUSTOMER_LIMITS) {
    const value = set.get(limit)
    shown.push({
      limit,
      value: value ?? defaultOf(limit, requestDefaults(settings)),
      is_default: value === undefined,
      ...(isRecordLimit(limit) && { records: await countRecords(db, customerId, limit, VALUE_MAX) }),
    })
  }
  return shown
}

function limitName(text: string): CustomerLimit {
  const found = CUSTOMER_LIMITS.find((name) => name === text)
  if (found === undefined) throw new InvalidArgumentError(`it must be one of ${CUSTOMER_LIMITS.join(', ')}.`)
  return found
}

function limitValue(text: string): number | 'default' {
  if (text === 'default') return text
  const value = /^\d{1,10}$/.test(text) ? Number(text) : NaN
  if (!(value <= VALUE_MAX))
    throw new InvalidArgumentError(`it must be a whole number from 0 to ${VALUE_MAX}, or "default".`)
  return value
}
