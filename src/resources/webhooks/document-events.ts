import { EVENT_TYPES, type EventType } from '../../contract/event-types.ts'
import { EXAMPLE } from '../../contract/example-records.ts'
import { bodyOf } from '../../deliveries/body.ts'
import type { DocumentedWebhooks } from '../../http/openapi.ts'
import { eventToWire, schemaName } from '../../money/records/event.ts'
import { exampleObject } from './example-events.ts'

/** A record that the examples name. It is not one of `EXAMPLE`, because a sandbox has no such record. */
const RECORD_ID = '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f'
const TIME = '2026-01-01T00:00:00.000000Z'
const SOURCE = 'bursar'

const text = (description: string, more: object = {}) => ({ type: 'string', description, ...more })
const time = (description: string) => text(description, { format: 'date-time' })

const THIN = {
  id: text('Event id.', { format: 'uuid' }),
  type: text('Type of the event. Ignore a type that you do not know.'),
  source: text('Who sends it: BURSAR_WEBHOOK_SOURCE.'),
  time: time('When the status changed.'),
  object: text('Always event.', { enum: ['event'] }),
  is_test: { type: 'boolean', description: 'Whether it is a test: the records that it names do not exist.' },
}
const FULL = {
  ...THIN,
  specversion: text('Version of CloudEvents.', { enum: ['1.0'] }),
  subject: text('The record whose status changed.', { format: 'uuid' }),
  datacontenttype: text('Media type of data.', { enum: ['application/json'] }),
  timestamp: time('The same as time.'),
  object_type: text('Type of the object in data.'),
}

const object = (properties: object) => ({ type: 'object', required: Object.keys(properties), properties })

/** The headers of each delivery (Standard Webhooks). */
const HEADERS = [
  [
    'webhook-id',
    'The id of the event: the same for each attempt and each webhook. Ignore an id that you have seen.',
  ],
  ['webhook-timestamp', 'When the attempt is made: seconds since 1970.'],
  ['webhook-signature', 'One or more signatures, v1, and the base64 of an HMAC-SHA256, separated by spaces.'],
].map(([name, description]) => ({
  name,
  in: 'header',
  required: true,
  description,
  schema: { type: 'string', maxLength: 200 },
}))

/**
 * Documents what is sent to endpoints, for the API document: a webhook for each type of event with its payloads THIN and
 * FULL, and schemas of them (API behaviour, Webhooks). The examples are bodies as the deliverer formats them.
 */
export function documentEvents(): DocumentedWebhooks {
  return {
    schemas: { ThinEvent: object(THIN) },
    webhooks: Object.fromEntries(
      (Object.keys(EVENT_TYPES) as EventType[]).map((type) => [type, { post: documented(type) }]),
    ),
  }
}

function documented(type: EventType): object {
  const data = { $ref: `#/components/schemas/${schemaName(EVENT_TYPES[type])}` }
  return {
    operationId: `on-${type.replaceAll(/[._]/g, '-')}`,
    summary: type,
    description: `Is sent to the webhooks whose event_types have ${type}, a beginning of it, or *.`,
    tags: ['Events and Webhooks'],
    security: [],
    parameters: HEADERS,
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: { $ref: '#/components/schemas/ThinEvent' },
          examples: { thin: { summary: 'THIN', value: exampleBody(type, 'THIN') } },
        },
        'application/cloudevents+json': {
          schema: object({ ...FULL, data }),
          examples: { full: { summary: 'FULL', value: exampleBody(type, 'FULL') } },
        },
      },
    },
    responses: {
      '2XX': { description: 'The event is delivered. Any other answer is retried.' },
      '410': { description: 'The webhook is DISABLED at once.' },
    },
  }
}

function exampleBody(type: EventType, payload: 'THIN' | 'FULL'): unknown {
  const source = { newId: () => RECORD_ID, customerId: EXAMPLE.customer_id, time: TIME }
  const event = eventToWire({
    id: EXAMPLE.event_id,
    type,
    object_id: RECORD_ID,
    object: exampleObject(type, source),
    created_at: TIME,
    is_test: false,
    undelivered_webhooks: 0,
  })
  return JSON.parse(bodyOf({ event, object_id: RECORD_ID, is_test: false }, payload, SOURCE).text)
}
