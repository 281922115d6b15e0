import { Type, type Static } from 'typebox'
import { EXAMPLE } from '../../contract/example-records.ts'
import { Timestamp } from '../../contract/fields.ts'
import type { Scope } from '../../contract/scopes.ts'
import { EVER } from '../../http/time-bounds.ts'
import { readTransfer, Transfer } from '../../money/ledger/transfer.ts'
import { readOperation } from '../operation.ts'
import { namesAll } from '../../access/audit-log/actor-names.ts'
import { AuditLogRecord, selectAuditRecords } from '../../access/audit-log/audit-records.ts'
import { Event } from '../../money/records/event.ts'
import { selectFeesOf, TransferFees } from './transfer-fees.ts'
import {
  DeliveryWithAttempts,
  LedgerEntry,
  NetworkTransaction,
  OrchestrationOfTransfer,
  selectApprovalOf,
  selectDeliveriesOf,
  selectEventsOf,
  selectLedgerEntries,
  selectOrchestrationsOf,
  selectPayout,
} from './transfer-history.ts'
import { Approval } from '../../contract/approval.ts'

/** Most changes of one transfer that are shown: its creation, its end, and what operators did to it. */
const CHANGES_MAX = 100

const TransferHistory = Type.Object({
  transfer: Transfer,
  entries: Type.Array(LedgerEntry, { description: 'The entries of the ledger, in their order.' }),
  transactions: Type.Array(NetworkTransaction, {
    description: 'The transactions that were signed for a crypto withdrawal, oldest first.',
  }),
  fees: Type.Optional(TransferFees),
  waiting: Type.Optional(
    Type.Object(
      {
        code: Type.String({ description: 'Why the payment waits.' }),
        detail: Type.String({ description: 'The same for people.' }),
        since: Type.Optional(Timestamp('Since when.')),
      },
      { description: 'Why the payment waits now. Only operators see it.' },
    ),
  ),
  changes: Type.Optional(
    Type.Array(AuditLogRecord, { description: 'Its records of the audit log. With `audit:read_audit_log`.' }),
  ),
  approval: Type.Optional(Approval),
  orchestrations: Type.Optional(
    Type.Array(OrchestrationOfTransfer, { description: 'With `orchestration:read_orchestration`.' }),
  ),
  events: Type.Optional(Type.Array(Event, { description: 'With `events:read_event`.' })),
  deliveries: Type.Optional(
    Type.Array(DeliveryWithAttempts, {
      description: 'The deliveries of `events`. With `webhooks:read_webhook`, too.',
    }),
  ),
})

export const getTransferHistory = readOperation({
  url: '/v2/transfer/transfers/:id/history',
  scope: 'transfer:read_transfer',
  tag: 'Transfers',
  summary: 'Get Transfer History',
  description:
    'Answers what happened to one transfer: who asked for it, the entries of the ledger with the balances before and after, its approval, its transactions on the network, its quoted and its real fee, its events with each delivery, and its orchestration. A part that needs a scope which the token lacks is absent.',
  id: 'Transfer id.',
  example: EXAMPLE.transfer_id,
  reply: TransferHistory,
  async run({ params, customerId, scopes, origin, db, settings }): Promise<Static<typeof TransferHistory>> {
    const transfer = await readTransfer(db, customerId, params.id)
    const { id } = transfer
    const has = (scope: Scope) => scopes.includes(scope)
    const { transactions, waiting } = await selectPayout(db, transfer)
    const approval = has('approvals:read_approval')
      ? await selectApprovalOf(db, customerId, id, namesAll(scopes))
      : undefined
    const events = has('events:read_event') ? await selectEventsOf(db, customerId, id) : undefined
    const entries = await selectLedgerEntries(db, customerId, id)
    return {
      transfer,
      entries,
      transactions,
      ...(transfer.type === 'CRYPTO_WITHDRAWAL' && {
        fees: await selectFeesOf({ db, sandbox: settings.mode === 'sandbox' }, customerId, transfer, entries),
      }),
      // The reason may name the platform's own wallets.
      ...(waiting !== undefined &&
        origin.actor.type === 'OPERATOR' && {
          waiting: {
            code: waiting.code,
            detail: waiting.detail,
            ...(waiting.since !== null && { since: waiting.since }),
          },
        }),
      ...(has('audit:read_audit_log') && {
        changes: await selectAuditRecords(
          db,
          customerId,
          { subject_ids: [id] },
          { ...EVER, limit: CHANGES_MAX, descending: false },
          namesAll(scopes),
        ),
      }),
      ...(approval !== undefined && { approval }),
      ...(has('orchestration:read_orchestration') && {
        orchestrations: await selectOrchestrationsOf(db, customerId, transfer),
      }),
      ...(events !== undefined && { events }),
      ...(events !== undefined &&
        has('webhooks:read_webhook') && {
          deliveries: await selectDeliveriesOf(
            db,
            customerId,
            events.map((event) => event.id),
          ),
        }),
    }
  },
})
