import { InvalidArgumentError, type Command } from 'commander'
import { EVENT_TYPES } from '../contract/event-types.ts'
import type { Event } from '../money/records/event.ts'
import { overApi, type ListPage } from './call-api.ts'
import { uuid, wholeNumber } from './arguments.ts'
import { define } from './define.ts'
import { stopSignal } from './exit.ts'
import { followEvents, walkStartOf } from './follow-events.ts'
import { print } from './output.ts'
import { printError } from './own-process.ts'

export function eventCommands(program: Command): void {
  const events = define(program, 'events', 'the events of a customer: changes of status')
  define(events, 'list', 'list events, newest first')
    .option(
      '--type <type...>',
      'types, such as transfer.crypto_withdrawal.completed or transfer.*',
      eventTypes,
    )
    .option('--object <id>', 'events of this record', uuid)
    .option('--limit <number>', 'most events (1 to 100)', wholeNumber(1, 100), 20)
    .list(overApi, {
      none: 'there are no such events',
      read: async (api, { type, object, limit }: ListOptions) => {
        const query = new URLSearchParams({ limit: String(limit), order: 'DESC' })
        for (const one of type ?? []) query.append('types', one)
        if (object !== undefined) query.set('object_id', object)
        return (await api.call<ListPage<Event>>('GET', `/v2/events?${query.toString()}`)).items
      },
      columns: ['created_at', 'type', ['object', ({ object }) => object.id], 'id'],
    })
  define(events, 'show', 'show an event with its object')
    .argument('<event_id>', 'event', uuid)
    .answer(overApi, async (api, id: string) => {
      const event = await api.call<Event>('GET', `/v2/events/${id}`)
      return [event, JSON.stringify(event, null, 2)]
    })
  define(events, 'tail', 'print events as they happen, each once, until Ctrl+C')
    .option('--type <type...>', 'types, such as transfer.*', eventTypes)
    .option('--after <place>', 'begin after this event id, or at this RFC 3339 time (default: now)')
    .option('--json', 'print JSON, one line for each event')
    .answer(overApi, async (api, { type: types, after, json }: TailOptions) => {
      const place = await walkStartOf(api, after ?? 'now')
      const signal = stopSignal()
      const onFailure = (reason: string) => printError(`${reason}; trying again`)
      for await (const event of followEvents(api, { types, ...place, signal, onFailure }))
        print(json ? event : lineOf(event))
    })
  define(events, 'resend', 'deliver an event again to its webhooks, or to one of them')
    .argument('<event_id>', 'event', uuid)
    .option('--webhook <id>', 'only to this webhook', uuid)
    .answer(overApi, async (api, id: string, { webhook }: { webhook?: string }) => {
      const body = webhook === undefined ? {} : { webhook_id: webhook }
      const path = `/v2/events/${id}/resend`
      const answer = await api.call<{ deliveries: { webhook_id: string }[] }>('POST', path, body)
      const to = answer.deliveries.map(({ webhook_id }) => webhook_id).join(', ')
      return [
        answer,
        to === '' ? 'no active webhook gets this event' : `event ${id} is delivered again to ${to}`,
      ]
    })
}

interface ListOptions {
  type?: string[]
  object?: string
  limit: number
}

interface TailOptions {
  type?: string[]
  after?: string
  json?: true
}

/** Formats an event as a line of text: when, what, of which record. */
export const lineOf = ({ created_at, type, object, id }: Event): string =>
  `${created_at}  ${type}  ${object.id}  (event ${id})`

/** Reads a type of event, or a beginning of types, without the libraries that `matchesType` loads. For commander. */
export function eventType(text: string): string {
  const start = /^(.*\.)?\*$/.test(text) ? text.slice(0, -1) : undefined
  const isNamed = (type: string) => (start === undefined ? type === text : type.startsWith(start))
  if (!Object.keys(EVENT_TYPES).some(isNamed))
    throw new InvalidArgumentError(`${text} must be *, the beginning of types such as transfer.*, or a type.`)
  return text
}

/** Reads several, each an argument of its own. */
export const eventTypes = (text: string, before: string[] = []): string[] => [...before, eventType(text)]
