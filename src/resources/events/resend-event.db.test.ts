import { beforeEach, describe, expect, test } from 'vitest'
import { fund, newCustomer, type TestCustomer, sharedTestService } from '../../../test/support.ts'
import type { Webhook } from '../../money/records/webhook.ts'
import type { WebhookDelivery } from '../../money/records/webhook-delivery.ts'
import { createWebhook } from '../../../test/endpoints.ts'

const service = await sharedTestService()
let customer: TestCustomer
let event: string
beforeEach(async () => {
  customer = await newCustomer(service)
  await fund(customer, '1')
  const { rows } = await service.db.query<{ id: string }>('select id from events where customer_id = $1', [
    customer.customer_id,
  ])
  event = rows[0]!.id
})

const webhookOf = (changes: object = {}, by = customer) => createWebhook(by, changes)

const resend = (body: object = {}, id = event) =>
  customer.call<{ deliveries: WebhookDelivery[] }>('POST', `/v2/events/${id}/resend`, body)

const rowsOf = async (webhook: Webhook) =>
  (
    await service.db.query<Record<string, unknown>>(
      `select event_id, status, attempts, attempts_of_round, due_at <= clock_timestamp() as due, leased_until, ended_at
       from webhook_deliveries where webhook_id = $1`,
      [webhook.id],
    )
  ).rows

const endAs = (webhook: Webhook, changes: string) =>
  service.owner.query(`update webhook_deliveries set ${changes} where webhook_id = $1`, [webhook.id])

describe('Resend Event', () => {
  test('goes to every ACTIVE endpoint that it matches, with a delivery each', async () => {
    const matching = [await webhookOf(), await webhookOf({ event_types: ['*'] })]
    await webhookOf({ event_types: ['orchestration.*'] })
    await webhookOf({ status: 'DISABLED' })
    await webhookOf({}, await newCustomer(service))
    const { status, body } = await resend()
    expect(status).toBe(200)
    expect(body.deliveries.map(({ webhook_id }) => webhook_id)).toEqual(matching.map(({ id }) => id))
    expect(body.deliveries[0]).toEqual({
      id: event,
      webhook_id: matching[0]!.id,
      event_type: 'transfer.wire_deposit.completed',
      object_id: body.deliveries[0]!.object_id,
      status: 'PENDING',
      attempts: 0,
      next_attempt_at: body.deliveries[0]!.next_attempt_at,
      created_at: body.deliveries[0]!.created_at,
    })
  })

  test('starts a delivered or failed delivery again, with a new round from now on', async () => {
    const webhook = await webhookOf()
    await resend()
    for (const status of ['DELIVERED', 'FAILED']) {
      await endAs(
        webhook,
        `status = '${status}', due_at = null, attempts = 12, attempts_of_round = 12, ended_at = (select clock_timestamp())`,
      )
      expect((await resend({ webhook_id: webhook.id })).body.deliveries).toMatchObject([
        { status: 'PENDING', attempts: 12 },
      ])
      expect(await rowsOf(webhook)).toEqual([
        {
          ...{ event_id: event, status: 'PENDING', attempts: 12, attempts_of_round: 0, due: true },
          ...{ leased_until: null, ended_at: null },
        },
      ])
    }
  })

  test('leaves an attempt under way alone', async () => {
    const webhook = await webhookOf()
    await resend()
    await endAs(
      webhook,
      "leased_until = (select clock_timestamp() + interval '1 minute'), attempts_of_round = 2",
    )
    const before = await rowsOf(webhook)
    expect((await resend()).body.deliveries).toHaveLength(1)
    expect(await rowsOf(webhook)).toEqual(before)
  })

  test('goes to one endpoint whatever its event types', async () => {
    const webhook = await webhookOf({ event_types: ['orchestration.*'] })
    await webhookOf()
    const { body } = await resend({ webhook_id: webhook.id })
    expect(body.deliveries.map(({ webhook_id }) => webhook_id)).toEqual([webhook.id])
    // It got the event once, so it gets it again.
    expect((await resend()).body.deliveries).toHaveLength(2)
  })

  test('sends a test to the endpoint of that test only', async () => {
    const webhook = await webhookOf({ event_types: ['*'] })
    await webhookOf({ event_types: ['*'] })
    const { body } = await customer.call<WebhookDelivery>('POST', `/v2/webhooks/${webhook.id}/test`, {
      type: 'webhook.disabled',
    })
    const again = await resend({}, body.id)
    expect(again.body.deliveries.map(({ webhook_id }) => webhook_id)).toEqual([webhook.id])
  })

  test('simultaneous requests make one delivery', async () => {
    const webhook = await webhookOf()
    const answers = await Promise.all(Array.from({ length: 6 }, () => resend()))
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(200))
    expect(await rowsOf(webhook)).toHaveLength(1)
  })
})
