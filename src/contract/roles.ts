import {
  DEPLOYMENT_SCOPES,
  isWithoutOperations,
  OPERATOR_SCOPES,
  scopesOf,
  type Scope,
  type ScopeWithoutOperations,
} from './scopes.ts'

/** The roles of operators, the people who sign in to Bursar. */
export const ROLES = ['VIEWER', 'OPERATOR', 'APPROVER', 'ADMIN'] as const
export type Role = (typeof ROLES)[number]

/**
 * The rights of roles. READ changes nothing. CHANGE moves money and edits records. DECIDE approves or rejects. ADMINISTER
 * changes who may do what, so that an OPERATOR cannot extend its own authority. SIGN_IN removes the operator's own
 * sessions and passkeys. PROGRAM is for API clients alone.
 */
type Right = 'READ' | 'CHANGE' | 'DECIDE' | 'ADMINISTER' | 'SIGN_IN' | 'PROGRAM'

const RIGHTS: Record<Role, readonly Right[]> = {
  VIEWER: ['READ'],
  OPERATOR: ['READ', 'CHANGE', 'SIGN_IN'],
  APPROVER: ['READ', 'DECIDE', 'SIGN_IN'],
  ADMIN: ['READ', 'CHANGE', 'DECIDE', 'ADMINISTER', 'SIGN_IN'],
}

/** The right that each scope belongs to. A new scope needs a line here. */
const RIGHT_OF: Record<Exclude<Scope, ScopeWithoutOperations>, Right> = {
  'transfer:write_crypto_withdrawal': 'CHANGE',
  'orchestration:read_orchestration': 'READ',
  'statements:read_statement': 'READ',
  'statements:read_payment': 'READ',
  'rewards:read_statements': 'READ',
  'rewards:read_rewards_details': 'READ',
  'transfer:write_sandbox_fiat_deposit': 'CHANGE',
  'identity:read_account': 'READ',
  'exchange:historical_prices': 'READ',
  'funding:write_profile': 'CHANGE',
  'funding:read_profile': 'READ',
  'identity:write_identity': 'CHANGE',
  'identity:read_identity': 'READ',
  'identity:write_account': 'CHANGE',
  'transfer:read_transfer': 'READ',
  'transfer:write_internal_transfer': 'CHANGE',
  'transfer:write_paxos_transfer': 'CHANGE',
  'conversion:write_conversion_stablecoin': 'CHANGE',
  'conversion:read_conversion_stablecoin': 'READ',
  'transfer:write_deposit_address': 'CHANGE',
  'transfer:read_deposit_address': 'READ',
  'transfer:write_fiat_deposit_instructions': 'CHANGE',
  'transfer:read_fiat_deposit_instructions': 'READ',
  'transfer:write_fiat_account': 'CHANGE',
  'transfer:read_fiat_account': 'READ',
  'transfer:write_crypto_destination_address': 'CHANGE',
  'transfer:read_crypto_destination_address': 'READ',
  'transfer:write_fiat_withdrawal': 'CHANGE',
  'fee:write_crypto_withdrawal_fee': 'CHANGE',
  'orchestration:write_orchestration_rule': 'CHANGE',
  'orchestration:read_orchestration_rule': 'READ',
  'orchestration:write_orchestration': 'CHANGE',
  'api_creds:read_credentials': 'READ',
  'api_creds:rotate_credentials': 'ADMINISTER',
  'api_creds:delete_credentials': 'ADMINISTER',
  'events:read_event': 'READ',
  'webhooks:write_webhook': 'CHANGE',
  'webhooks:read_webhook': 'READ',
  'audit:read_audit_log': 'READ',
  'approvals:read_approval': 'READ',
  'approvals:write_decision': 'DECIDE',
  'policy:read_policy': 'READ',
  'policy:write_policy': 'ADMINISTER',
  'transfer:read_transfer_limit': 'READ',
  'reports:read_report': 'READ',
  'sandbox:write_sandbox': 'PROGRAM',
  'operators:read_session': 'READ',
  'operators:delete_session': 'SIGN_IN',
  'operators:read_passkey': 'READ',
  'operators:delete_passkey': 'SIGN_IN',
  'operators:read_network': 'READ',
  'operators:read_activity': 'READ',
  'operators:read_freeze': 'READ',
  'operators:write_freeze': 'CHANGE',
  'operators:end_freeze': 'ADMINISTER',
  'operators:read_approver': 'READ',
  // A POST that changes nothing; a VIEWER cannot send one.
  'operators:try_policy': 'CHANGE',
  'operators:read_operator': 'READ',
  'operators:write_operator': 'ADMINISTER',
  'operators:write_client': 'ADMINISTER',
  'operators:read_customer': 'READ',
  'operators:write_customer': 'ADMINISTER',
  'operators:read_ledger': 'READ',
  'operators:read_wire': 'READ',
  'operators:write_wire': 'CHANGE',
  'operators:write_verification': 'CHANGE',
  'operators:pay_statement': 'CHANGE',
}

/**
 * The scopes of an operator's tokens, by its role and the mode of the service. With `isBound`, the operator belongs to one
 * customer, and in live mode does not see the figures of the whole deployment.
 */
export const scopesOfRole = (role: Role, mode: 'sandbox' | 'live', isBound = false): Scope[] => {
  const hidden: readonly Scope[] = isBound && mode === 'live' ? DEPLOYMENT_SCOPES : []
  return [...scopesOf(mode), ...OPERATOR_SCOPES].filter(
    (scope) =>
      !isWithoutOperations(scope) && RIGHTS[role].includes(RIGHT_OF[scope]) && !hidden.includes(scope),
  )
}

/** Whether an operator with only this scope changes nothing. */
export const isReadScope = (scope: Scope): boolean =>
  !isWithoutOperations(scope) && RIGHT_OF[scope] === 'READ'
