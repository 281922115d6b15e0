/** The types of events (API behaviour, Events), each with the type of its object. Types are only ever added. */
export const EVENT_TYPES = {
  'transfer.crypto_deposit.pending': 'transfer_status_change',
  'transfer.crypto_deposit.completed': 'transfer_status_change',
  'transfer.crypto_deposit.failed': 'transfer_status_change',
  'transfer.crypto_withdrawal.pending': 'transfer_status_change',
  'transfer.crypto_withdrawal.completed': 'transfer_status_change',
  'transfer.crypto_withdrawal.failed': 'transfer_status_change',
  'transfer.wire_deposit.pending': 'transfer_status_change',
  'transfer.wire_deposit.completed': 'transfer_status_change',
  'transfer.wire_deposit.failed': 'transfer_status_change',
  'transfer.wire_withdrawal.pending': 'transfer_status_change',
  'transfer.wire_withdrawal.completed': 'transfer_status_change',
  'transfer.wire_withdrawal.failed': 'transfer_status_change',
  'transfer.internal_transfer_debit.completed': 'transfer_status_change',
  'transfer.internal_transfer_credit.completed': 'transfer_status_change',
  'transfer.paxos_transfer_credit.completed': 'transfer_status_change',
  'transfer.paxos_transfer_debit.completed': 'transfer_status_change',
  'orchestration.processing': 'orchestration_status_change',
  'orchestration.completed': 'orchestration_status_change',
  'orchestration.failed': 'orchestration_status_change',
  'identity.approved': 'identity_summary_status_change',
  'identity.denied': 'identity_summary_status_change',
  'identity.disabled': 'identity_summary_status_change',
  'account.approved': 'account_summary_status_change',
  'account.denied': 'account_summary_status_change',
  'account.disabled': 'account_summary_status_change',
  'statement.generated': 'statement_status_change',
  'statement.paid': 'statement_status_change',
  'fiat_account.approved': 'fiat_account_status_change',
  'fiat_account.rejected': 'fiat_account_status_change',
  'crypto_destination_address.approved': 'crypto_destination_address_status_change',
  'crypto_destination_address.rejected': 'crypto_destination_address_status_change',
  'webhook.disabled': 'webhook_status_change',
  'approval.requested': 'approval_status_change',
  'approval.approved': 'approval_status_change',
  'approval.rejected': 'approval_status_change',
  'approval.expired': 'approval_status_change',
} as const

/** The types that a busy customer's payments write by the million. Lists of other types use the index events_type. */
export const FREQUENT_EVENT_TYPES = [
  'transfer.crypto_withdrawal.pending',
  'transfer.crypto_withdrawal.completed',
  'transfer.internal_transfer_debit.completed',
  'transfer.internal_transfer_credit.completed',
] as const satisfies readonly (keyof typeof EVENT_TYPES)[]

export type EventType = keyof typeof EVENT_TYPES
export type EventObjectType = (typeof EVENT_TYPES)[EventType]

export const isEventType = (text: string): text is EventType => Object.hasOwn(EVENT_TYPES, text)

const transferTypes = new Map<string, Map<string, string>>()

/**
 * Returns the type of the event of a transfer that has this type and enters this status. Names are cached, because making
 * a name takes longer than the rest of an event.
 */
export function transferEventType(type: string, status: string): string {
  const known = transferTypes.get(type)?.get(status)
  if (known !== undefined) return known
  const name = `transfer.${type.toLowerCase()}.${status.toLowerCase()}`
  transferTypes.set(type, new Map(transferTypes.get(type)).set(status, name))
  return name
}

export const orchestrationEventType = (status: string) => `orchestration.${status.toLowerCase()}`
