import type { Operation } from '../http/operation.ts'
import { decideAccount } from '../resources/accounts/decide-account.ts'
import { ACCOUNT_OPERATIONS } from '../resources/accounts/operations.ts'
import { API_CREDENTIAL_OPERATIONS } from '../resources/api-credentials/operations.ts'
import { APPROVAL_OPERATIONS } from '../resources/approvals/operations.ts'
import { AUDIT_LOG_OPERATIONS } from '../resources/audit-log/operations.ts'
import { CATALOGUE_OPERATIONS } from '../resources/catalogue/operations.ts'
import { CONVERSION_OPERATIONS } from '../resources/conversions/operations.ts'
import { DEPOSIT_ADDRESS_OPERATIONS } from '../resources/deposit-addresses/operations.ts'
import { DESTINATION_ADDRESS_OPERATIONS } from '../resources/destination-addresses/operations.ts'
import { EVENT_OPERATIONS } from '../resources/events/operations.ts'
import { FIAT_ACCOUNT_OPERATIONS } from '../resources/fiat-accounts/operations.ts'
import { FIAT_DEPOSIT_INSTRUCTIONS_OPERATIONS } from '../resources/fiat-deposit-instructions/operations.ts'
import { decideIdentity } from '../resources/identities/decide-identity.ts'
import { IDENTITY_OPERATIONS } from '../resources/identities/operations.ts'
import { MARKET_OPERATIONS } from '../resources/markets/operations.ts'
import { listRecordedWires } from '../resources/reports/list-wires.ts'
import { REPORT_OPERATIONS } from '../resources/reports/operations.ts'
import { OPERATOR_WORK } from '../resources/operators/operations.ts'
import { ORCHESTRATION_OPERATIONS } from '../resources/orchestrations/operations.ts'
import { POLICY_OPERATIONS } from '../resources/policy/operations.ts'
import { PROFILE_OPERATIONS } from '../resources/profiles/operations.ts'
import { SANDBOX_OPERATIONS } from '../resources/sandbox/operations.ts'
import { SEARCH_OPERATIONS } from '../resources/search/operations.ts'
import { payGenerated } from '../resources/statements/pay-generated.ts'
import { STATEMENT_OPERATIONS } from '../resources/statements/operations.ts'
import { TRANSFER_OPERATIONS } from '../resources/transfers/operations.ts'
import { WEBHOOK_OPERATIONS } from '../resources/webhooks/operations.ts'

export const OPERATIONS: readonly Operation[] = [
  ...TRANSFER_OPERATIONS,
  ...ORCHESTRATION_OPERATIONS,
  ...STATEMENT_OPERATIONS,
  ...SANDBOX_OPERATIONS,
  ...ACCOUNT_OPERATIONS,
  ...MARKET_OPERATIONS,
  ...PROFILE_OPERATIONS,
  ...IDENTITY_OPERATIONS,
  ...CONVERSION_OPERATIONS,
  ...DEPOSIT_ADDRESS_OPERATIONS,
  ...DESTINATION_ADDRESS_OPERATIONS,
  ...FIAT_ACCOUNT_OPERATIONS,
  ...FIAT_DEPOSIT_INSTRUCTIONS_OPERATIONS,
  ...CATALOGUE_OPERATIONS,
  ...SEARCH_OPERATIONS,
  ...REPORT_OPERATIONS,
  ...EVENT_OPERATIONS,
  ...WEBHOOK_OPERATIONS,
  ...POLICY_OPERATIONS,
  ...APPROVAL_OPERATIONS,
  ...AUDIT_LOG_OPERATIONS,
  ...API_CREDENTIAL_OPERATIONS,
]

/**
 * The operations for operators alone, which the API document leaves out. Sign-ins, sessions and the operators themselves are routes
 * of src/access/operators.
 */
export const OPERATOR_OPERATIONS: readonly Operation[] = [
  ...OPERATOR_WORK,
  listRecordedWires,
  decideIdentity,
  decideAccount,
  payGenerated,
]
