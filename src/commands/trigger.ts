import { setTimeout as pause } from 'node:timers/promises'
import { InvalidArgumentError, type Command } from 'commander'
import { EVENT_TYPES, type EventType } from '../contract/event-types.ts'
import type { Event } from '../records/event.ts'
import { CREDENTIALS, overApi, type Api } from './call-api.ts'
import { lineOf } from './events.ts'
import type { EventPage } from './follow-events.ts'
import { define } from './define.ts'
import { RECIPES } from './trigger-recipes.ts'

/**
 * Longest wait for the event. A simulated confirmation takes 2 s unless set otherwise, and a restart some more. The shortest
 * deadline of an approval is a minute.
 */
const WAIT_MS_MAX = 90_000
const LOOK_EVERY_MS = 200

/** Defines `bursar trigger`. */
export function triggerCommand(program: Command): void {
  define(program, 'trigger', 'make an event happen in the sandbox, by the real operations, and print it')
    .argument('<event_type>', 'such as transfer.crypto_withdrawal.completed', eventType)
    .option(...CREDENTIALS)
    .option('--json', 'print JSON on one line')
    .addHelpText(
      'after',
      `
Event types:
${Object.keys(EVENT_TYPES)
  .map((type) => `  ${type}`)
  .join('\n')}`,
    )
    .answer(overApi, async (api, type: EventType) => {
      const event = await eventOf(api, type, await RECIPES[type](api))
      return [event, lineOf(event)]
    })
}

/** Waits for the event of a record. Throws when it does not come in time. */
async function eventOf(api: Api, type: EventType, objectId: string): Promise<Event> {
  const query = new URLSearchParams({ type, object_id: objectId, limit: '1' })
  const deadline = performance.now() + WAIT_MS_MAX
  for (;;) {
    const { items } = await api.call<EventPage>('GET', `/v2/events?${query.toString()}`)
    if (items[0] !== undefined) return items[0]
    if (performance.now() > deadline)
      throw new Error(`no event ${type} of ${objectId} within ${WAIT_MS_MAX / 1000} s: does a worker run?`)
    await pause(LOOK_EVERY_MS)
  }
}

function eventType(text: string): EventType {
  if (!Object.hasOwn(EVENT_TYPES, text))
    throw new InvalidArgumentError('must be a type of event (bursar trigger --help lists them).')
  return text as EventType
}
