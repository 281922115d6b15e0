import type { components, paths } from '../../client/src/schema.ts'
import type { paths as OperatorPaths } from './operators-schema.ts'

/** The API's records, as the client package types them. Amounts are strings from end to end. */

type Schemas = components['schemas']
export type Transfer = Schemas['Transfer']
export type Entry = Schemas['LedgerEntry']
export type Change = Schemas['AuditLogRecord']
export type Orchestration = Schemas['Orchestration']
export type Rule = Schemas['OrchestrationRule']
export type Market = Schemas['Market']
export type Price = Schemas['MarketPrice']
export type Candle = Schemas['HistoricalCandle']
export type Statement = Schemas['Statement']
export type Volume = Schemas['TransferVolume']
export type Policy = Schemas['Policy']
export type Approval = Schemas['Approval']
export type DestinationAddress = Schemas['CryptoDestinationAddress']
export type Account = Schemas['Account']
export type Identity = Schemas['Identity']
export type Profile = Schemas['Profile']
export type Balance = Schemas['Balance']
export type BalanceHistory = Schemas['BalanceHistory']
export type BalanceEntry = Schemas['BalanceEntry']
export type WebhookDelivery = Schemas['WebhookDelivery']
export type Attempt = Schemas['WebhookAttempt']
export type Webhook = Schemas['Webhook']
export type Asset = Schemas['Asset']
export type FiatAccount = Schemas['FiatAccount']
export type Network = Schemas['NetworkRecord']
export type ApiClient = Schemas['ApiCredentials']
export type Event = Schemas['Event']
export type Found = Schemas['FoundRecord']
export type Delivery = Schemas['DeliveryWithAttempts']
export type NetworkTransaction = Schemas['NetworkTransaction']
export type Fees = Schemas['TransferFees']

/** What an operation answers, by its declaration in a document. */
type Answered<Declared> = Declared extends {
  responses: { 200: { content: { 'application/json': infer Body } } }
}
  ? Body
  : never
type Answer<Path extends keyof paths> = Answered<paths[Path]['get']>
/** A record of a list that only operators read. */
type Listed<Path extends keyof OperatorPaths> =
  Answered<OperatorPaths[Path]['get']> extends { items: (infer Item)[] } ? Item : never

export type ChainVerification = Answer<'/v2/audit-log/verification'>
export type Explanation = Answer<'/v2/statements/{id}/explanation'>
export type TransferHistory = Answer<'/v2/transfer/transfers/{id}/history'>
export type Verification = Answer<'/v2/transfer/transfers/{id}/verification'>
export type ReadApproval = Answer<'/v2/approvals/{id}'>

export type Activity = Listed<'/v2/operators/activity'>
export type Approver = Listed<'/v2/operators/approvers'>
export type Customer = Listed<'/v2/operators/customers'>
export type Freeze = Listed<'/v2/operators/freezes'>
export type TrialBalance = Answer<'/v2/reports/trial-balance'>
export type LedgerLine = Answer<'/v2/reports/general-ledger'>['items'][number]
export type ActivityRow = Answer<'/v2/reports/activity'>['items'][number]
export type Liability = Answer<'/v2/reports/liabilities'>['items'][number]
export type ClosedDay = Answer<'/v2/reports/closed-days'>['items'][number]
export type Wire = Listed<'/v2/reports/wires'>
export type BankLine = Listed<'/v2/bank/lines'>
export type BankImport = Answered<OperatorPaths['/v2/bank/statements']['post']>
export type BankReconciliation = Answered<OperatorPaths['/v2/reports/bank-reconciliation']['get']>
export type BankBreak = BankReconciliation['items'][number]
export type OpenWire = Listed<'/v2/operators/wires'>
export type Operator = Listed<'/v2/operators'>
export type OwnSession = Listed<'/v2/operators/sessions'>
export type Passkey = Listed<'/v2/operators/passkeys'>
export type PolicyTrial = Answered<OperatorPaths['/v2/operators/policy-trials']['post']>
export type RecordedWire = Answered<OperatorPaths['/v2/operators/wires/deposits']['post']>
export type WirePayee = Answered<OperatorPaths['/v2/operators/wires/payee']['get']>

export interface Page<T> {
  items: T[]
  next_page_cursor?: string
}

/** The name of a person or an institution; undefined where neither is known. */
export function nameOfParty({
  person_details,
  institution_details,
}: {
  person_details?: { first_name?: string; last_name?: string }
  institution_details?: { name?: string }
} = {}): string | undefined {
  return (
    institution_details?.name ??
    (person_details && [person_details.first_name, person_details.last_name].filter(Boolean).join(' '))
  )
}

/** How many records a page has, with so many others; `+` where there are more. */
export const countOf = (page: Page<unknown> | undefined, others = 0): string =>
  page === undefined ? '' : `${page.items.length + others}${page.next_page_cursor === undefined ? '' : '+'}`

/** The status of a webhook; FAILING for an active one whose deliveries fail. */
export const webhookState = ({ status, failing_since }: Pick<Webhook, 'status' | 'failing_since'>): string =>
  status === 'ACTIVE' && failing_since !== undefined ? 'FAILING' : status

const PAGES_OF: Record<string, string> = {
  transfer: 'transfers',
  profile: 'profiles',
  orchestration: 'orchestrations',
  orchestration_rule: 'orchestrations/rules',
  statement: 'statements',
  identity: 'identities',
  approval: 'approvals',
}

/** The page of a record, by the type that the API names; undefined for types without one. */
export const pageOf = ({ type, id }: { type: string; id: string }): string | undefined =>
  PAGES_OF[type] === undefined ? undefined : `${PAGES_OF[type]}/${id}`
