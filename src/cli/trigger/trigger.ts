import { InvalidArgumentError, type Command } from 'commander'
import { EVENT_TYPES, type EventType } from '../../contract/event-types.ts'
import type { Event } from '../../money/records/event.ts'
import { overApi, until, type ListPage } from '../call-api.ts'
import { group } from '../define.ts'
import { lineOf } from '../events.ts'

/**
 * Longest wait for the event. A simulated confirmation takes 2 s unless set otherwise, and longer during a restart. The
 * shortest deadline of an approval is a minute.
 */
const WAIT_MS_MAX = 90_000

export function triggerCommand(program: Command): void {
  const types = Object.keys(EVENT_TYPES).map((type) => `  ${type}`)
  group(program, [], overApi, {
    '<event_type>': ['such as transfer.crypto_withdrawal.completed', eventType],
  }).command('trigger <event_type>', {
    about: 'make an event happen in the sandbox, by the real operations, and print it',
    help: `\nEvent types:\n${types.join('\n')}`,
    async run(api, { event_type: type }) {
      // Loaded here, because some recipes load the database's code, which the help does not need.
      const { makeEvent } = await import('./recipes.ts')
      const object_id = await makeEvent(api, type)
      const query = new URLSearchParams({ type, object_id, limit: '1' })
      const read = async () =>
        (await api.call<ListPage<Event>>('GET', `/v2/events?${query.toString()}`)).items[0]
      const event = await until(WAIT_MS_MAX, read)
      if (event === undefined)
        throw new Error(`no event ${type} of ${object_id} within ${WAIT_MS_MAX / 1000} s: does a worker run?`)
      return event
    },
    says: lineOf,
  })
}

function eventType(text: string): EventType {
  if (!Object.hasOwn(EVENT_TYPES, text))
    throw new InvalidArgumentError('must be a type of event (bursar trigger --help lists them).')
  return text as EventType
}
