import type { Operation } from '../http/operation.ts'
import { ACCOUNTS } from '../resources/accounts/operations.ts'
import { API_CREDENTIALS } from '../resources/api-credentials/operations.ts'
import { APPROVALS } from '../resources/approvals/operations.ts'
import { AUDIT_LOG } from '../resources/audit-log/operations.ts'
import { CATALOGUE } from '../resources/catalogue/operations.ts'
import { CONVERSIONS } from '../resources/conversions/operations.ts'
import { DEPOSIT_ADDRESSES } from '../resources/deposit-addresses/operations.ts'
import { DESTINATION_ADDRESSES } from '../resources/destination-addresses/operations.ts'
import { EVENTS } from '../resources/events/operations.ts'
import { FIAT_ACCOUNTS } from '../resources/fiat-accounts/operations.ts'
import { FIAT_DEPOSIT_INSTRUCTIONS } from '../resources/fiat-deposit-instructions/operations.ts'
import { IDENTITIES } from '../resources/identities/operations.ts'
import { MARKETS } from '../resources/markets/operations.ts'
import { ORCHESTRATIONS } from '../resources/orchestrations/operations.ts'
import { POLICY } from '../resources/policy/operations.ts'
import { PROFILES } from '../resources/profiles/operations.ts'
import { SANDBOX } from '../resources/sandbox/operations.ts'
import { SEARCH } from '../resources/search/operations.ts'
import { STATEMENTS } from '../resources/statements/operations.ts'
import { TRANSFERS } from '../resources/transfers/operations.ts'
import { WEBHOOKS } from '../resources/webhooks/operations.ts'

/** Every operation of the API, by resource. */
export const OPERATIONS: readonly Operation[] = [
  ...TRANSFERS,
  ...ORCHESTRATIONS,
  ...STATEMENTS,
  ...SANDBOX,
  ...ACCOUNTS,
  ...MARKETS,
  ...PROFILES,
  ...IDENTITIES,
  ...CONVERSIONS,
  ...DEPOSIT_ADDRESSES,
  ...DESTINATION_ADDRESSES,
  ...FIAT_ACCOUNTS,
  ...FIAT_DEPOSIT_INSTRUCTIONS,
  ...CATALOGUE,
  ...SEARCH,
  ...EVENTS,
  ...WEBHOOKS,
  ...POLICY,
  ...APPROVALS,
  ...AUDIT_LOG,
  ...API_CREDENTIALS,
]
