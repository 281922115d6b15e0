import type { Operation } from '../../http/operation.ts'
import { getEvent } from './get-event.ts'
import { listEvents } from './list-events.ts'
import { resendEvent } from './resend-event.ts'

export const EVENT_OPERATIONS: readonly Operation[] = [listEvents, getEvent, resendEvent]
