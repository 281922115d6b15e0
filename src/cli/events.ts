import { InvalidArgumentError, type Command } from 'commander'
import { EVENT_TYPES } from '../contract/event-types.ts'
import type { Event } from '../money/records/event.ts'
import { overApi, type ListPage } from './call-api.ts'
import { uuid, wholeNumber } from './arguments.ts'
import { group } from './define.ts'
import { stopSignal } from './exit.ts'
import { followEvents, walkStartOf } from './follow-events.ts'
import { print } from './output.ts'
import { printError } from './own-process.ts'

const LISTED = 20

const WORDS = {
  '<event_id>': ['event', uuid],
  '--type <type>': ['types, such as transfer.crypto_withdrawal.completed or transfer.*', eventType],
  '--object <id>': ['events of this record', uuid],
  '--limit <number>': [`most events (1 to 100, default: ${LISTED})`, wholeNumber(1, 100)],
  '--after <place>': ['begin after this event id, or at this RFC 3339 time (default: now)'],
  '--webhook <id>': ['only to this webhook', uuid],
} as const

export function eventCommands(program: Command): void {
  const about = 'the events of a customer: changes of status'
  const events = group(program, ['events', about], overApi, WORDS)
  events.list('list [--type <type...>] [--object <id>] [--limit <number>]', {
    about: 'list events, newest first',
    none: 'there are no such events',
    async run(api, { type = [], object, limit = LISTED }) {
      const query = new URLSearchParams({ limit: String(limit), order: 'DESC' })
      for (const name of type) query.append('types', name)
      if (object !== undefined) query.set('object_id', object)
      return (await api.call<ListPage<Event>>('GET', `/v2/events?${query.toString()}`)).items
    },
    columns: ['created_at', 'type', ['object', ({ object }) => object.id], 'id'],
  })
  events.command('show <event_id>', {
    about: 'show an event with its object',
    run: (api, { event_id }) => api.call<Event>('GET', `/v2/events/${event_id}`),
    says: (event) => JSON.stringify(event, null, 2),
  })
  events.command('tail [--type <type...>] [--after <place>]', {
    about: 'print events as they happen, each once, until Ctrl+C',
    json: 'print JSON, one line for each event',
    async run(api, { type: types, after = 'now', json }) {
      const place = await walkStartOf(api, after)
      const signal = stopSignal()
      const onFailure = (reason: string) => printError(`${reason}; trying again`)
      for await (const event of followEvents(api, { types, ...place, signal, onFailure }))
        print(json ? event : lineOf(event))
    },
  })
  events.command('resend <event_id> [--webhook <id>]', {
    about: 'deliver an event again to its webhooks, or to one of them',
    run: (api, { event_id, webhook: webhook_id }) =>
      api.call<{ deliveries: { webhook_id: string }[] }>('POST', `/v2/events/${event_id}/resend`, {
        webhook_id,
      }),
    says({ deliveries }, { event_id }) {
      const to = deliveries.map(({ webhook_id }) => webhook_id).join(', ')
      return to === '' ? 'no active webhook gets this event' : `event ${event_id} is delivered again to ${to}`
    },
  })
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
