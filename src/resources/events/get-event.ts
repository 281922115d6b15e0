import { Type } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Closed } from '../../contract/fields.ts'
import { problem } from '../../contract/problems.ts'
import { readOperation } from '../operation.ts'
import { Event, readEvents } from '../../money/records/event.ts'

export const getEvent = readOperation({
  url: '/v2/events/:id',
  scope: 'events:read_event',
  tag: 'Events and Webhooks',
  summary: 'Get Event',
  description: 'Reads one event, with its object.',
  id: 'Event id.',
  example: EXAMPLE.event_id,
  query: Closed({
    is_test: Type.Optional(
      Type.Boolean({
        description: 'True: only an event of the test of a webhook is found; false: only another one.',
      }),
    ),
  }),
  reply: Event,
  async run({ params, query, customerId, db }) {
    const [found] = await readEvents(db, customerId, [params.id])
    if (found === undefined || found.is_test !== (query.is_test ?? found.is_test))
      throw problem.notFound('event', params.id)
    return found.event
  },
})
