import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { equalsFilterInMemory, walkList } from '../../../test/list-in-memory.ts'
import { newCustomer, sharedTestService } from '../../../test/support.ts'
import { momentAt, newId } from '../../db/ids.ts'
import type { Account } from '../../money/records/account.ts'
import { forCustomer } from '../../db/parts.ts'

const COUNT = 120
const ACCOUNTS = '/v2/identity/accounts'
const UPDATED = ['2026-03-02T00:00:00.000001Z', '2026-03-02T00:00:00.000002Z'] as const
const ROLES = ['BENEFICIAL_OWNER', 'AUTHORIZED_USER', 'FINANCIAL_ADVISOR'] as const

const service = await sharedTestService()

/** Few moments for many records, so that equal timestamps are common. */
const momentOf = (n: number) => `2026-03-01T12:00:0${n % 3}.00000${n % 7}Z`

/**
 * The first identity has not changed since its creation; the second was approved after half of the accounts had
 * changed.
 */
const identities = [
  { id: randomUUID(), status: 'PENDING', updated_at: '2026-02-01T00:00:00.000000Z' },
  { id: randomUUID(), status: 'APPROVED', updated_at: UPDATED[0] },
] as const

function recordOf(n: number): Account {
  const created_at = momentOf(n)
  const identity = identities[n & 1]!
  const own = [created_at, UPDATED[1]][(n >> 1) & 1]!
  const [user_disabled, admin_disabled] = [n % 5 === 0, n % 7 === 0]
  return {
    id: newId(momentAt(created_at), n),
    identity_id: identity.id,
    ...(n % 3 === 0 && { description: `Account ${n}` }),
    admin_disabled,
    user_disabled,
    ...(n % 4 === 0 && { metadata: { n: `${n}` } }),
    // Two API clients, with the same ref_ids.
    ...(n % 6 !== 0 && { ref_id: `ref,${n >> 1}` }),
    members: identities.slice(0, n % 3).map(({ id }, index) => {
      const roles = ROLES.slice(0, (n + index) % 4)
      return {
        id: newId(momentAt(created_at), n + index),
        identity_id: id,
        ...(roles[0] !== undefined && { type: roles[0] }),
        roles,
      }
    }),
    created_at,
    updated_at: own > identity.updated_at ? own : identity.updated_at,
    summary_status: user_disabled || admin_disabled ? 'DISABLED' : identity.status,
    ...(n % 4 === 1 && { profile_id: randomUUID() }),
    type: n % 2 === 0 ? 'BROKERAGE' : 'SEP_IRA',
  }
}

const insert = (table: string, rows: object[]) =>
  service.db.query(`insert into ${table} select * from json_populate_recordset(null::${table}, $1)`, [
    JSON.stringify(rows),
  ])

const customer = await newCustomer(service)
const { customer_id } = customer
const details = { first_name: 'Ada', last_name: 'Lovelace' }
const flags = { user_disabled: false, admin_disabled: false }
await insert(
  'identities',
  identities.map((identity, n) => ({
    customer_id,
    ref_id: `${n}`,
    type: 'PERSON',
    details,
    created_at: '2026-02-01T00:00:00Z',
    ...flags,
    ...identity,
  })),
)
const made = Array.from({ length: COUNT }, (_, n) => recordOf(n))
await insert(
  'accounts',
  made.map((account, n) => ({
    ...account,
    customer_id,
    client_id: `client ${n & 1}`,
    updated_at: [account.created_at, UPDATED[1]][(n >> 1) & 1],
  })),
)
await insert(
  'account_members',
  // Inserted out of order.
  made
    .flatMap(({ id, members }) => members.map((member) => ({ ...member, customer_id, account_id: id })))
    .reverse(),
)
await insert(
  'profiles',
  made.flatMap(({ id: account_id, profile_id, created_at }) =>
    profile_id === undefined
      ? []
      : [{ id: profile_id, customer_id, account_id, nickname: profile_id, type: 'NORMAL', created_at }],
  ),
)
/** All accounts, oldest first. */
const all = made.sort((a, b) => (a.id < b.id ? -1 : 1))
const other = await newCustomer(service)
const { body } = await other.call('POST', '/v2/identity/identities', {
  ref_id: '1',
  person_details: details,
})
const account = { identity_id: body.id, ref_id: 'ref,3' }
expect((await other.call('POST', ACCOUNTS, { account })).status).toBe(200)

const moments = fc.oneof(fc.nat(20).map(momentOf), fc.constantFrom(...UPDATED))
const numbers = fc.array(fc.nat(COUNT + 5), { minLength: 1, maxLength: 40 })

describe('List Accounts', () => {
  test('any combination of filters, order and page size equals a filter in memory', () =>
    equalsFilterInMemory<Account>((query) => walkList(customer, ACCOUNTS, query), {
      all,
      filters: {
        ids: [numbers.map((ns) => ns.map((n) => all[n]?.id ?? `nobody ${n}`)), ({ id }) => id],
        ref_ids: [numbers.map((ns) => ns.map((n) => `ref,${n}`)), ({ ref_id }) => ref_id],
        identity_ids: [
          fc.subarray([...identities.map(({ id }) => id), randomUUID()], { minLength: 1 }),
          ({ identity_id }) => identity_id,
        ],
        identity_id: [
          fc.subarray([...identities.map(({ id }) => id), 'nobody'], { minLength: 1 }),
          ({ identity_id }) => identity_id,
        ],
      },
      bounds: { created_at: moments, updated_at: moments },
      cases: 100,
    }))

  test('each account equals the read by its id', async () => {
    for (const account of all.slice(0, 20)) {
      expect((await customer.call('GET', `${ACCOUNTS}/${account.id}`)).body).toEqual(account)
    }
  })

  test('a page of 100 accounts takes as many queries as a page of one', async () => {
    const query = vi.spyOn(forCustomer(service.db, customer.customer_id), 'query')
    const queries = async (limit: number) => {
      query.mockClear()
      expect(await customer.call('GET', `${ACCOUNTS}?limit=${limit}`)).toMatchObject({ status: 200 })
      return query.mock.calls.length
    }
    try {
      // Loops of the service ask the database, too. An attempt between them has the queries of the list alone.
      await vi.waitFor(async () => expect([await queries(1), await queries(100)]).toEqual([1, 1]))
    } finally {
      query.mockRestore()
    }
  })

  test.each([
    'summary_statuses=DENIED',
    'limit=0',
    'page_cursor=x',
    'created_at.lt=soon',
    'updated_at.gt=soon',
    'order=UP',
    'order_by=UPDATED_AT',
  ])('refused: %s', async (query) => {
    expect((await customer.call('GET', `${ACCOUNTS}?${query}`)).status).toBe(400)
  })
})
