import { EVENT_TYPES, type EventObjectType, type EventType } from '../../contract/event-types.ts'

/** An object of each type of event as an example: for tests of endpoints, and for the API document. */

/** What an example is made of. `newId` returns another id each time. */
interface Source {
  newId: () => string
  customerId: string
  /** A moment: RFC 3339. */
  time: string
}

const OBJECTS: Record<EventObjectType, (type: EventType, source: Source) => Record<string, unknown>> = {
  transfer_status_change: (type, { newId }) => ({
    type: type.split('.')[1]!.toUpperCase(),
    profile_id: newId(),
    ref_id: 'example-ref-id',
    ...(type.startsWith('transfer.crypto_') && {
      crypto_network: 'ETHEREUM',
      crypto_tx_hash: `0x${'5f'.repeat(32)}`,
    }),
  }),
  orchestration_status_change: (_type, { newId }) => ({
    ref_id: 'example-ref-id',
    orchestration_rule_id: newId(),
  }),
  identity_summary_status_change: (type, { newId }) => ({ identity_id: newId(), ...summaryStatus(type) }),
  account_summary_status_change: (type, { newId }) => ({ account_id: newId(), ...summaryStatus(type) }),
  statement_status_change: (type, { newId, customerId }) => ({
    ref_id: `USDG_REWARDS-${newId()}-2026-01`,
    customer_id: customerId,
    status: type === 'statement.paid' ? 'STATEMENT_STATUS_PAID' : 'STATEMENT_STATUS_GENERATED',
    period_start: '2026-01-01T00:00:00.000000Z',
    period_end: '2026-01-31T23:59:59.999999Z',
  }),
  fiat_account_status_change: (type) => ({ status: lastPart(type) }),
  crypto_destination_address_status_change: (type) => ({
    crypto_network: 'ETHEREUM',
    address: '0x52908400098527886E0F7030069857D2E4169EE7',
    status: lastPart(type),
  }),
  webhook_status_change: (_type, { time }) => ({ name: 'Payments', failing_since: time }),
  approval_status_change: (type, { newId }) => ({
    subject: { type: 'transfer', id: newId() },
    status: lastPart(type) === 'REQUESTED' ? 'PENDING' : lastPart(type),
    approvals: type === 'approval.approved' ? 2 : 0,
    required: 2,
  }),
}

const lastPart = (type: string) => type.slice(type.lastIndexOf('.') + 1).toUpperCase()
const summaryStatus = (type: string) => ({
  old_summary_status: lastPart(type) === 'DISABLED' ? 'APPROVED' : 'PENDING',
  new_summary_status: lastPart(type),
})

/** Makes the members of an event's object, except those that reading an event adds (`eventToWire`). */
export const exampleObject = (type: EventType, source: Source): Record<string, unknown> =>
  OBJECTS[EVENT_TYPES[type]](type, source)
