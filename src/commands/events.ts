import { InvalidArgumentError, type Command } from 'commander'
import { EVENT_TYPES } from '../contract/event-types.ts'
import type { Event } from '../records/event.ts'
import { openApi } from './call-api.ts'
import { uuid, wholeNumber } from './command-line.ts'
import { followEvents, placeOf, stopSignal, type EventPage } from './follow-events.ts'
import { print, table } from './output.ts'

interface Options {
  credentials?: string
  json?: true
}

/** Defines `bursar events`. */
export function eventCommands(program: Command): void {
  const events = program.command('events').description('the events of a customer: changes of status')
  events
    .command('list')
    .description('list events, newest first')
    .option(
      '--type <type...>',
      'types, such as transfer.crypto_withdrawal.completed or transfer.*',
      eventTypes,
    )
    .option('--object <id>', 'events of this record', uuid)
    .option('--limit <number>', 'most events (1 to 100)', wholeNumber(1, 100), 20)
    .option('--credentials <file>', CREDENTIALS)
    .option('--json', 'print JSON, one line for each event')
    .action(async ({ type, object, limit, ...options }: ListOptions) => {
      const api = await openApi(options.credentials)
      const query = new URLSearchParams({ limit: String(limit), order: 'DESC' })
      for (const one of type ?? []) query.append('types', one)
      if (object !== undefined) query.set('object_id', object)
      const { items } = await api.call<EventPage>('GET', `/v2/events?${query.toString()}`)
      if (options.json) for (const event of items) print(event)
      else if (items.length === 0) print('there are no such events')
      else print(table(COLUMNS, items.map(rowOf)))
    })
  events
    .command('show')
    .description('show an event with its object')
    .argument('<event_id>', 'event', uuid)
    .option('--credentials <file>', CREDENTIALS)
    .option('--json', 'print JSON on one line')
    .action(async (id: string, options: Options) => {
      const api = await openApi(options.credentials)
      const event = await api.call<Event>('GET', `/v2/events/${id}`)
      print(options.json ? event : JSON.stringify(event, null, 2))
    })
  events
    .command('tail')
    .description('print events as they happen, each once, until Ctrl+C')
    .option('--type <type...>', 'types, such as transfer.*', eventTypes)
    .option('--after <place>', 'begin after this event id, or at this RFC 3339 time (default: now)')
    .option('--credentials <file>', CREDENTIALS)
    .option('--json', 'print JSON, one line for each event')
    .action(async ({ type, after, ...options }: TailOptions) => {
      const api = await openApi(options.credentials)
      const place = await placeOf(api, after ?? 'now')
      const signal = stopSignal()
      const onFailure = (reason: string) => console.error(`${reason}; trying again`)
      for await (const event of followEvents(api, { types: type, ...place, signal, onFailure }))
        print(options.json ? event : lineOf(event))
    })
  events
    .command('resend')
    .description('deliver an event again to its webhooks, or to one of them')
    .argument('<event_id>', 'event', uuid)
    .option('--webhook <id>', 'only to this webhook', uuid)
    .option('--credentials <file>', CREDENTIALS)
    .option('--json', 'print JSON on one line')
    .action(async (id: string, { webhook, ...options }: Options & { webhook?: string }) => {
      const api = await openApi(options.credentials)
      const body = webhook === undefined ? {} : { webhook_id: webhook }
      const answer = await api.call<{ deliveries: { webhook_id: string }[] }>(
        'POST',
        `/v2/events/${id}/resend`,
        body,
      )
      const to = answer.deliveries.map(({ webhook_id }) => webhook_id).join(', ')
      if (options.json) print(answer)
      else print(to === '' ? 'no active webhook gets this event' : `event ${id} is delivered again to ${to}`)
    })
}

export const CREDENTIALS = 'credentials file (default: the one that the sandbox wrote)'

interface ListOptions extends Options {
  type?: string[]
  object?: string
  limit: number
}

interface TailOptions extends Options {
  type?: string[]
  after?: string
}

const COLUMNS = ['created_at', 'type', 'object', 'id']
const rowOf = ({ created_at, type, object, id }: Event) => [created_at, type, object.id, id]

/** Formats an event as a line of text: when, what, of which record. */
export const lineOf = ({ created_at, type, object, id }: Event): string =>
  `${created_at}  ${type}  ${object.id}  (event ${id})`

/** Adds a type, or a beginning of types with `.*`, to a list. For commander. */
export function eventTypes(text: string, before: string[] | undefined): string[] {
  const known = Object.keys(EVENT_TYPES)
  const start = text.endsWith('.*') ? text.slice(0, -1) : undefined
  if (!known.some((type) => (start === undefined ? type === text : type.startsWith(start))))
    throw new InvalidArgumentError(
      `must be a type of event, or the beginning of types with .*, such as transfer.*.`,
    )
  return [...(before ?? []), text]
}
