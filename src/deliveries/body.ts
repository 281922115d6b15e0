import type { ReadEvent } from '../money/records/event.ts'

/** The six members that every body begins with, in their order. Strict receivers refuse further ones. */
const thin = ({ event, is_test }: ReadEvent, source: string) => ({
  id: event.id,
  type: event.type,
  source,
  time: event.created_at,
  object: 'event',
  is_test,
})

/** What an endpoint gets: the body of an event and its media type. */
export interface DeliveryBody {
  text: string
  contentType: string
}

/**
 * Formats an event for an endpoint. THIN: exactly six members. FULL: also a CloudEvent 1.0 in structured mode, which its
 * media type announces, with the object as its data.
 */
export function bodyOf(read: ReadEvent, payload: 'THIN' | 'FULL', source: string): DeliveryBody {
  if (payload === 'THIN') return { text: JSON.stringify(thin(read, source)), contentType: 'application/json' }
  const { event, object_id } = read
  return {
    text: JSON.stringify({
      ...thin(read, source),
      specversion: '1.0',
      subject: object_id,
      datacontenttype: 'application/json',
      timestamp: event.created_at,
      object_type: event.object_type,
      data: event.object,
    }),
    contentType: 'application/cloudevents+json; charset=utf-8',
  }
}
