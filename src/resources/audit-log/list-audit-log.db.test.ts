/*
 * The audit log as clients read it: each item is one change of one record, each page of each filter is the same part of
 * the whole log, and no customer sees records of another.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import fc from 'fast-check'
import type { Origin } from '../../contract/actor.ts'
import type { AuditAction } from '../../contract/audit-actions.ts'
import { subjectOfAction } from '../../contract/audit-actions.ts'
import { createCustomer } from '../../money/records/customer.ts'
import { transaction } from '../../db/database.ts'
import { PLATFORM_ID, readClock } from '../../db/ids.ts'
import { recordChanges } from '../../audit/audit.ts'
import {
  selectAuditRecords,
  type AuditFilters,
  type AuditLogRecord,
} from '../../access/audit-log/audit-records.ts'
import {
  fund,
  newCustomer,
  withdrawalOf,
  type TestCustomer,
  sharedTestService,
} from '../../../test/support.ts'
import { runs } from '../../../test/seed.ts'

const service = await sharedTestService()

const AUDIT_LOG = '/v2/audit-log'
interface Page {
  items: AuditLogRecord[]
  next_page_cursor?: string
}

async function list(customer: TestCustomer, query = ''): Promise<Page> {
  const answer = await customer.call<Page>('GET', `${AUDIT_LOG}?${query}`)
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body
}

async function walk(customer: TestCustomer, query: string): Promise<AuditLogRecord[]> {
  const items: AuditLogRecord[] = []
  let cursor = ''
  for (let page = 0; page < 200; page++) {
    const answer = await list(customer, `${query}${cursor}`)
    items.push(...answer.items)
    if (answer.next_page_cursor === undefined) return items
    cursor = `&page_cursor=${answer.next_page_cursor}`
  }
  throw new Error('the walk does not end')
}

const withdraw = async (customer: TestCustomer, count: number) => {
  const made = await Promise.all(
    Array.from({ length: count }, () =>
      customer.call<{ id: string }>('POST', '/v2/transfer/crypto-withdrawals', withdrawalOf(customer)),
    ),
  )
  return made.map(({ body }) => body.id)
}

const by = (type: Origin['actor']['type'], id: string, request_id?: string): Origin => ({
  actor: { type, id },
  ...(request_id !== undefined && { request_id, ip: '::1' }),
})

describe('List Audit Log', () => {
  describe('withdrawals of one batch', () => {
    let customer: TestCustomer
    let ids: string[]
    beforeAll(async () => {
      customer = await newCustomer(service)
      await fund(customer, '1000')
      ids = await withdraw(customer, 12)
    })

    test('have an item each, with its own id, request and address', async () => {
      const { items } = await list(customer, 'subject_type=transfer&actor_type=API_CLIENT&limit=12')
      expect(new Set(items.map(({ subject }) => subject.id))).toEqual(new Set(ids))
      expect(new Set(items.map(({ id }) => id)).size).toBe(12)
      expect(new Set(items.map(({ request_id }) => request_id)).size).toBe(12)
      expect(items[0]).toEqual({
        id: items[0]!.id,
        at: items[0]!.at,
        actor: { type: 'API_CLIENT', id: customer.client_id },
        action: 'transfer.create',
        subject: { type: 'transfer', id: items[0]!.subject.id },
        request_id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
        ip: '127.0.0.1',
        outcome: 'DONE',
      })
    })

    test('are found by their ids, in any case', async () => {
      for (const id of [ids[0]!, ids[5]!.toUpperCase()]) {
        const { items } = await list(customer, `subject_ids=${id}`)
        expect(items.map(({ subject }) => subject.id)).toEqual([id.toLowerCase()])
      }
      const { items } = await list(customer, `subject_ids=${ids[0]!},${ids[1]!},no-id,${crypto.randomUUID()}`)
      expect(items.length).toBe(2)
    })

    test('are on pages of any size, each once', async () => {
      const whole = await walk(customer, 'limit=1000')
      for (const query of ['limit=1', 'limit=5', 'limit=5&order=ASC', 'limit=7&actions=transfer.create']) {
        const items = await walk(customer, query)
        const expected = whole.filter(
          ({ action }) => !query.includes('actions') || action === 'transfer.create',
        )
        expect(items, query).toEqual(query.includes('ASC') ? expected.toReversed() : expected)
      }
    })

    test('are shown to no other customer', async () => {
      const other = await newCustomer(service)
      expect(await walk(other, `subject_ids=${ids[0]!}`)).toEqual([])
      expect((await walk(other, '')).filter(({ subject }) => ids.includes(subject.id))).toEqual([])
    })
  })

  test('the platform has a log of its own', async () => {
    await transaction(service.db, async (tx) =>
      recordChanges(tx, PLATFORM_ID, await readClock(tx), [
        { origin: by('WORKER', 'x'), action: 'network.freeze', subject: { type: 'network', id: 'INK' } },
      ]),
    )
    const page = { limit: 10, descending: true, from: 0, to: Number.MAX_SAFE_INTEGER }
    const records = await selectAuditRecords(service.db, PLATFORM_ID, { subject_ids: ['INK'] }, page)
    expect(records).toMatchObject([{ action: 'network.freeze', subject: { type: 'network', id: 'INK' } }])
  })

  test('each page of each filter is a part of the whole log, as a model says', async () => {
    const { customer_id } = await createCustomer(service.db, 'Model')
    const actions: AuditAction[] = [
      'webhook.update',
      'profile.create',
      'orchestration.create',
      'orchestration.complete',
    ]
    const actors = ['a', 'b', 'c']
    const subjects = Array.from({ length: 6 }, () => crypto.randomUUID())
    const model: AuditLogRecord[] = []
    for (let n = 0; n < 60; n++)
      await transaction(service.db, async (tx) => {
        const now = await readClock(tx)
        const count = 1 + ((n * 7) % 5)
        for (let item = 0; item < count; item++) {
          const action = actions[(n + (item >> 1)) % actions.length]!
          const type = subjectOfAction(action)
          // Orchestrations are found by the times of their records, which these do not have.
          const id =
            type === 'orchestration' ? crypto.randomUUID() : subjects[(n * 3 + item) % subjects.length]!
          const origin = by(
            n % 3 === 0 ? 'OPERATOR' : 'API_CLIENT',
            actors[n % actors.length]!,
            crypto.randomUUID(),
          )
          const outcome = n % 10 === 0 ? 'REFUSED' : 'DONE'
          recordChanges(tx, customer_id, now, [{ origin, action, subject: { type, id }, outcome }])
        }
      })
    const page = { limit: 1_000, descending: false, from: 0, to: Number.MAX_SAFE_INTEGER }
    model.push(...(await selectAuditRecords(service.db, customer_id, {}, page)))
    expect(new Set(model.map(({ id }) => id)).size).toBe(model.length)
    expect(model.map(({ id }) => id)).toEqual(model.map(({ id }) => id).toSorted())

    const some = <T>(values: readonly T[]) =>
      fc.option(fc.subarray([...values], { minLength: 1 }), { nil: undefined })
    const one = <T>(values: readonly T[]) => fc.option(fc.constantFrom(...values), { nil: undefined })
    const filters = fc.record<AuditFilters>({
      actor_type: one(['OPERATOR', 'API_CLIENT', 'WORKER']),
      actor_ids: some([...actors, 'nobody']),
      subject_type: one(['webhook', 'profile', 'orchestration', 'nothing']),
      subject_ids: some([...subjects, 'nothing']),
      actions: some(actions),
      outcomes: some(['DONE', 'REFUSED']),
    })
    const has = <T>(values: readonly T[] | undefined, value: T) =>
      values === undefined || values.includes(value)
    await fc.assert(
      fc.asyncProperty(
        filters,
        fc.boolean(),
        fc.integer({ min: 1, max: 40 }),
        fc.option(fc.integer({ min: 0, max: model.length - 1 }), { nil: undefined }),
        async (filter, descending, limit, afterIndex) => {
          const after = afterIndex === undefined ? undefined : model[afterIndex]!.id
          const expected = model
            .filter(
              ({ actor, subject, action, outcome }) =>
                has(filter.actor_type === undefined ? undefined : [filter.actor_type], actor.type) &&
                has(filter.actor_ids, actor.id) &&
                has(filter.subject_type === undefined ? undefined : [filter.subject_type], subject.type) &&
                has(filter.subject_ids, subject.id) &&
                has(filter.actions, action) &&
                has(filter.outcomes, outcome),
            )
            .filter(({ id }) => after === undefined || (descending ? id < after : id > after))
          if (descending) expected.reverse()
          const found = await selectAuditRecords(service.db, customer_id, filter, {
            ...page,
            limit,
            descending,
            after,
          })
          expect(found).toEqual(expected.slice(0, limit))
        },
      ),
      runs(300),
    )
  })
})
