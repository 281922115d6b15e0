import { Type, type Static, type TObject } from 'typebox'
import { EVENT_TYPES, FREQUENT_EVENT_TYPES, isEventType } from '../../contract/event-types.ts'
import { Filter, OneOf, Uuid } from '../../contract/fields.ts'
import type { Database } from '../../db/database.ts'
import { firstIdAt } from '../../db/ids.ts'
import { pageParameters, type PageRequest } from '../../http/lists.ts'
import type { TimeRange } from '../../http/time-bounds.ts'
import { listOperation } from '../list-operation.ts'
import {
  Event,
  EVENT_COLUMNS,
  eventsOfRecord,
  eventToWire,
  type EventRow,
} from '../../money/records/event.ts'
import { EventTypePattern, matchesType, requireKnownTypes } from '../../money/records/event-type-patterns.ts'

const PAGE_SIZE_MAX = 100
const TYPES = Object.keys(EVENT_TYPES).filter(isEventType)

const PARAMETERS = {
  type: Type.Optional(
    Type.String({
      maxLength: 100,
      pattern: '^[a-z_]+(\\.[a-z_]+)*$',
      inWords: 'must be the name of an event type',
      description: 'Filter by one type. A type that does not exist has no events.',
      examples: ['transfer.completed'],
    }),
  ),
  types: Filter(EventTypePattern, 'Filter by types, or by beginnings of types such as `transfer.*`.'),
  object_id: Type.Optional(Uuid('Filter by the record whose status changed.')),
  is_test: Type.Optional(
    Type.Boolean({ default: false, description: 'True: only the events of tests of webhooks.' }),
  ),
}
type ListEventsQuery = Static<TObject<typeof PARAMETERS>>

export const listEvents = listOperation({
  url: '/v2/events',
  scope: 'events:read_event',
  tag: 'Events and Webhooks',
  summary: 'List Events',
  description:
    'Lists changes of status, oldest first. Walked in this order, no event is missed and none comes twice. Filters combine: an event must pass each of them.',
  example: { query: { types: ['transfer.*', 'orchestration.completed'], limit: 10 } },
  list: 'events',
  item: Event,
  names: ['events', 'items'],
  parameters: PARAMETERS,
  page: {
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: PAGE_SIZE_MAX, default: PAGE_SIZE_MAX, description: 'Page size.' }),
    ),
    order: Type.Optional(OneOf(['DESC', 'ASC'], 'Sort order.', { default: 'ASC' })),
    page_cursor: pageParameters.page_cursor,
  },
  check: ({ query }) => requireKnownTypes(query.types ?? [], 'types'),
  read: ({ query, customerId, db }, page, created) => selectEvents(db, customerId, query, page, created),
  toWire: eventToWire,
})

/**
 * Reads a page of events plus one more row. A stream is a part of an index that is in the order of the list and holds
 * only events that match. So at most a page of each stream is read, however rare the matches. Only lists of the
 * frequent types, or of no type, read the primary key and filter.
 */
async function selectEvents(
  db: Database,
  customerId: string,
  query: ListEventsQuery,
  page: PageRequest,
  { from, to }: TimeRange,
): Promise<EventRow[]> {
  const types = typesOf(query)
  const ranges = query.object_id === undefined ? [] : await eventsOfRecord(db, customerId, query.object_id)
  const { streams, inStream } = streamsFor(query, types, ranges.length > 0)
  const direction = page.descending ? 'desc' : 'asc'
  const { rows } = await db.query<EventRow>(
    `
    with given as (
      select $7::text[] as types, $8::uuid as object_id, $9::uuid[] as range_from, $10::uuid[] as range_to
    ), found as (
      select page.*
      from ${streams} s
      cross join lateral (
        select e.*
        from events e
        where e.customer_id = $1 and ${inStream}
          and e.id >= $2 and e.id < $3
          and ($4::uuid is null or e.id ${page.descending ? '<' : '>'} $4)
          and e.is_test = $5
        order by e.id ${direction}
        limit $6
      ) page
      order by page.id ${direction}
      limit $6
    )
    select ${EVENT_COLUMNS}
    from found e
    order by e.id ${direction}`,
    [
      customerId,
      firstIdAt(from),
      firstIdAt(to),
      page.after?.[0],
      query.is_test ?? false,
      page.limit + 1,
      types,
      query.object_id,
      ranges.map((range) => range.from),
      ranges.map((range) => range.to),
    ],
  )
  return rows
}

/** Returns the types that pass both filters; undefined without these filters. */
function typesOf({ type, types }: ListEventsQuery): string[] | undefined {
  if (type === undefined && types === undefined) return undefined
  return TYPES.filter(
    (name) => (type === undefined || name === type) && (types === undefined || matchesType(name, types)),
  )
}

const FREQUENT: readonly string[] = FREQUENT_EVENT_TYPES
/** In SQL: the condition of the index events_type. */
const IS_RARE = `e.type not in (${FREQUENT.map((type) => `'${type}'`).join(', ')})`
const HAS_TYPE = '($7::text[] is null or e.type = any ($7))'

/** Chooses the index streams for a query. */
function streamsFor({ object_id }: ListEventsQuery, types: string[] | undefined, hasRanges: boolean) {
  if (hasRanges)
    return {
      streams: '(select * from unnest($9::uuid[], $10::uuid[]) as ranges (id_from, id_to))',
      inStream: `e.id >= s.id_from and e.id < s.id_to and e.object_id = $8 and ${HAS_TYPE}`,
    }
  if (object_id !== undefined)
    return { streams: '(select)', inStream: `e.object is not null and e.object_id = $8 and ${HAS_TYPE}` }
  if (types !== undefined && !types.some((type) => FREQUENT.includes(type)))
    return {
      streams: '(select * from unnest($7::text[]) as type)',
      inStream: `e.type = s.type and ${IS_RARE}`,
    }
  return { streams: '(select)', inStream: HAS_TYPE }
}
