import type { Static } from 'typebox'
import { describe, expect, test } from 'vitest'
import { asAdmin, credit, newCustomer, type TestCustomer, ownTestService } from '../../../test/support.ts'
import { originOfLoop } from '../../contract/actor.ts'
import { transaction } from '../../db/database.ts'
import { readClock } from '../../db/ids.ts'
import { readAuditHeads, recordChanges } from '../../audit/audit.ts'
import type { AuditLogVerification } from './verify-audit-log.ts'

const service = await ownTestService()

type Answer = Static<typeof AuditLogVerification>

const ask = async (customer: TestCustomer, query = '') =>
  (await customer.call<Answer>('GET', `/v2/audit-log/verification${query}`)).body

const after = ({ position, hash }: { position: number; hash: string }) =>
  `?after_position=${position}&after_hash=${hash}`

/** Adds links of one record each. */
async function addLinks(customerId: string, count: number): Promise<void> {
  for (let n = 0; n < count; n++)
    await transaction(service.db, async (tx) =>
      recordChanges(tx, customerId, await readClock(tx), [
        {
          origin: originOfLoop('deliveries'),
          action: 'webhook.update',
          subject: { type: 'webhook', id: `w${n}` },
        },
      ]),
    )
}

const headOf = async ({ customer_id }: TestCustomer) =>
  (await readAuditHeads(service.db)).find((head) => head.customer_id === customer_id)!

describe('Verify Audit Log', () => {
  test('a walk computes every link once, and ends at the head that bursar audit head shows', async () => {
    const customer = await newCustomer(service)
    await credit(service.ledger, customer, 'USD', '10')
    await addLinks(customer.customer_id, 450)
    const { covered_from: _, ...head } = await headOf(customer)
    let answer = await ask(customer)
    const requests = [answer]
    while (!answer.is_complete) requests.push((answer = await ask(customer, after(answer.checked))))
    expect(requests.length).toBe(3)
    for (const one of requests) expect(one).toMatchObject({ head })
    expect(requests.some(({ fault }) => fault !== undefined)).toBe(false)
    expect(answer.checked).toEqual({ position: head.position, hash: head.hash })
    expect(requests.reduce((sum, { links }) => sum + links, 0)).toBe(head.position)
    // From a head that was kept, only what came later is left to compute.
    expect(await ask(customer, after(head))).toMatchObject({ links: 0, is_complete: true })
  })

  test('a head that was kept contradicts a chain that was cut off or written anew', async () => {
    const customer = await newCustomer(service)
    await addLinks(customer.customer_id, 3)
    const kept = await headOf(customer)
    const other = { ...kept, hash: 'ab'.repeat(32) }
    expect(await ask(customer, after(other))).toMatchObject({
      is_complete: false,
      links: 0,
      fault: {
        position: kept.position,
        fault: `link ${kept.position} is not the anchored head: the chain was written anew, here or before`,
      },
    })
    const behind = { ...kept, position: kept.position + 5 }
    expect(await ask(customer, after(behind))).toMatchObject({
      is_complete: false,
      fault: { fault: `link ${behind.position} is missing` },
    })
  })

  test('the first record that was changed is named, and the walk stops before it', async () => {
    const customer = await newCustomer(service)
    await addLinks(customer.customer_id, 3)
    const { position } = await headOf(customer)
    await asAdmin(
      `update audit_log set actor_id = 'x' where customer_id = '${customer.customer_id}' and position = ${position - 1}`,
      service.url,
    )
    const answer = await ask(customer)
    expect(answer).toMatchObject({
      is_complete: false,
      checked: { position: position - 2 },
      fault: { position: position - 1, action: 'webhook.update', subject_ids: ['w1'] },
    })
    expect(answer.fault!.fault).toMatch(/^record \S+ was changed/)
  })
})
