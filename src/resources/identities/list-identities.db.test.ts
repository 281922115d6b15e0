import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { equalsFilterInMemory, walkList, type ListFilter, type Query } from '../../../test/list-in-memory.ts'
import { newCustomer, sharedTestService } from '../../../test/support.ts'
import { momentAt, newId } from '../../db/ids.ts'
import type { Identity } from '../../money/records/identity.ts'

const COUNT = 120
const UPDATED = ['2026-03-02T00:00:00.000001Z', '2026-03-02T00:00:00.000002Z'] as const
const STATUSES = ['PENDING', 'ERROR', 'APPROVED', 'DENIED', 'DISABLED'] as const

const service = await sharedTestService()

/** Few moments for many records, so that equal timestamps are common. */
const momentOf = (n: number) => `2026-03-01T12:00:0${n % 3}.00000${n % 7}Z`

function recordOf(n: number): Identity {
  const created_at = momentOf(n)
  const person = n % 2 === 0
  const details = person ? { first_name: `${n}`, last_name: 'Person' } : { name: `${n}` }
  const [user_disabled, admin_disabled] = [n % 6 === 0, n % 11 === 0]
  const status = STATUSES[n % 5]!
  return {
    id: newId(momentAt(created_at), n),
    customer_id: customer.customer_id,
    ref_id: `ref,${n}`,
    type: person ? 'PERSON' : 'INSTITUTION',
    status,
    summary_status: user_disabled || admin_disabled ? 'DISABLED' : status,
    user_disabled,
    admin_disabled,
    details,
    ...(person ? { person_details: details } : { institution_details: details as never }),
    ...(n % 3 === 0 && { metadata: { n: `${n}` } }),
    created_at,
    updated_at: n % 4 === 0 ? created_at : UPDATED[n % 2]!,
  }
}

const customer = await newCustomer(service)
/** All identities, oldest first. */
const all = Array.from({ length: COUNT }, (_, n) => recordOf(n)).sort((a, b) => (a.id < b.id ? -1 : 1))
await service.db.query('insert into identities select * from json_populate_recordset(null::identities, $1)', [
  JSON.stringify(all),
])
// Another customer's records with the same ref_ids must be in no list.
const other = await newCustomer(service)
await service.db.query(
  `
    insert into identities
    select $2, gen_random_uuid(), ref_id, type, status, user_disabled, admin_disabled, details, metadata, created_at,
           updated_at
    from identities
    where customer_id = $1`,
  [customer.customer_id, other.customer_id],
)

const walk = (query: Query) => walkList<Identity>(customer, '/v2/identity/identities', query)

const moments = fc.oneof(fc.nat(20).map(momentOf), fc.constantFrom(...UPDATED))
const numbers = fc.array(fc.nat(COUNT + 5), { minLength: 1, maxLength: 40 })
const statuses: ListFilter<Identity> = [
  fc.subarray([...STATUSES], { minLength: 1 }),
  ({ summary_status }) => summary_status,
]

describe('List Identities', () => {
  test('any combination of filters, order and page size equals a filter in memory', () =>
    equalsFilterInMemory(walk, {
      all,
      filters: {
        ids: [numbers.map((ns) => ns.map((n) => all[n]?.id ?? `nobody ${n}`)), ({ id }) => id],
        ref_ids: [numbers.map((ns) => ns.map((n) => `ref,${n}`)), ({ ref_id }) => ref_id],
        summary_statuses: statuses,
        summary_status: statuses,
        identity_type: [fc.subarray(['PERSON', 'INSTITUTION'], { minLength: 1 }), ({ type }) => type],
      },
      bounds: { created_at: moments, updated_at: moments },
      cases: 100,
    }))

  test('commas may separate values that cannot contain a comma', async () => {
    const [one, two] = [all[3]!, all[5]!]
    expect(await walk([['ids', `${one.id},${two.id.toUpperCase()}`]])).toEqual([two, one])
    const denied = await walk([['summary_statuses', 'DENIED,ERROR']])
    expect(denied).toEqual(
      all.filter(({ summary_status }) => ['DENIED', 'ERROR'].includes(summary_status)).reverse(),
    )
    expect(await walk([['ref_ids', 'ref,3']])).toHaveLength(1)
  })
})
