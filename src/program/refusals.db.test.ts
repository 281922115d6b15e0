/*
 * Refused requests in the audit log: each is recorded or counted, and a client that repeats them slows nobody and does not
 * fill the log.
 */
import { describe, expect, test } from 'vitest'
import { newCustomer, startTestService, TEST_ORIGIN, ownTestService } from '../../test/support.ts'
import { PLATFORM_ID } from '../db/ids.ts'
import { ACTORS_MAX, RECORDED_MAX, Refusals } from './refusals.ts'

const service = await ownTestService()

interface Row {
  actor_type: string
  actor_id: string
  action: string
  subject_id: string
  request_ids: string[] | null
  ips: string[] | null
  outcome: string
  changes: { after?: { count?: number } } | null
}
const refusedOf = async (customerId: string) => {
  const { rows } = await service.db.query<Row>(
    `select actor_type, actor_id, action, subject_id, request_ids, ips, outcome, changes
     from audit_log where customer_id = $1 and outcome = 'REFUSED' order by id`,
    [customerId],
  )
  return rows
}
const open = () => new Refusals(service.db, (error) => expect.fail(String(error)), 3_600_000)

describe('a request that lacks a scope', () => {
  test('leaves a record with its actor, operation, request and address; beyond the limit it is counted', async () => {
    const own = await startTestService()
    try {
      const { customer_id, client_id, call } = await newCustomer(own, ['funding:read_profile'])
      const repeats = RECORDED_MAX + 30
      const answers = await Promise.all(
        Array.from({ length: repeats }, () => call('POST', '/v2/profiles', { nickname: 'x' })),
      )
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([403]))
      // A refusal for the state of records, or for a missing record, is no refusal of authority.
      expect(await call('GET', `/v2/profiles/${crypto.randomUUID()}`)).toMatchObject({ status: 404 })
      await own.app.close()
      const { rows } = await own.db.query<Row>(
        `select actor_type, actor_id, action, subject_id, request_ids, ips, outcome, changes
         from audit_log where customer_id = $1 and outcome = 'REFUSED' order by id`,
        [customer_id],
      )
      const ids = answers.map(({ headers }) => headers['x-request-id'])
      expect(rows).toHaveLength(RECORDED_MAX + 1)
      for (const row of rows.slice(0, RECORDED_MAX)) {
        expect(row).toMatchObject({
          ...{ actor_type: 'API_CLIENT', actor_id: client_id, action: 'request.refuse' },
          ...{ subject_id: 'createProfile', ips: ['127.0.0.1'], outcome: 'REFUSED', changes: null },
        })
        expect(ids).toContain(row.request_ids![0])
      }
      expect(rows.at(-1)).toMatchObject({
        ...{ actor_id: client_id, action: 'request.omit', subject_id: customer_id },
        changes: { after: { count: repeats - RECORDED_MAX } },
      })
    } finally {
      await own.close()
    }
  })

  test('of another customer is not in the log of this one', async () => {
    const [one, other] = [await newCustomer(service, []), await newCustomer(service, [])]
    const refusals = open()
    const origin = { actor: { type: 'API_CLIENT', id: one.client_id } } as const
    refusals.note({
      customerId: one.customer_id,
      origin,
      action: 'policy_rule.refuse',
      subjectId: 'daily-limit',
    })
    await refusals.close()
    expect(await refusedOf(one.customer_id)).toMatchObject([
      { action: 'policy_rule.refuse', subject_id: 'daily-limit' },
    ])
    expect(await refusedOf(other.customer_id)).toEqual([])
  })
})

test('the refusals of more actors than are counted at a time are counted together, for the platform', async () => {
  const refusals = open()
  const customer = await newCustomer(service, [])
  for (let n = 0; n < ACTORS_MAX + 7; n++)
    refusals.note({
      customerId: customer.customer_id,
      origin: { actor: { type: 'API_CLIENT', id: `client ${n}` } },
      action: 'request.refuse',
      subjectId: 'createProfile',
    })
  await refusals.close()
  expect(await refusedOf(customer.customer_id)).toHaveLength(ACTORS_MAX)
  expect(await refusedOf(PLATFORM_ID)).toMatchObject([
    { action: 'request.omit', changes: { after: { count: 7 } } },
  ])
})

test('refusals that cannot be written are reported, and later ones are written', async () => {
  const failures: unknown[] = []
  const refusals = new Refusals(service.db, (error) => failures.push(error), 3_600_000)
  const { customer_id } = await newCustomer(service, [])
  const refuse = (customerId: string) =>
    refusals.note({ customerId, origin: TEST_ORIGIN, action: 'request.refuse', subjectId: 'createProfile' })
  // A customer without a chain.
  refuse(crypto.randomUUID())
  refuse(customer_id)
  await refusals.write()
  expect(failures).toHaveLength(1)
  refuse(customer_id)
  await refusals.close()
  expect(await refusedOf(customer_id)).toHaveLength(2)
})
