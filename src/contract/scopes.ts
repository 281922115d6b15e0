/**
 * Scopes of operations that similar platforms have and Bursar does not. No operation needs them. Clients request them
 * together with other scopes, and would get no token if they were unknown.
 */
export const SCOPES_WITHOUT_OPERATIONS = [
  'exchange:read_order',
  'exchange:write_order',
  'exchange:read_quote',
  'exchange:read_aggregated_marketdata_stream',
  'exchange:read_quote_execution',
  'exchange:write_quote_execution',
  'exchange:read_issuer_quote',
  'exchange:write_issuer_quote',
  'exchange:read_issuer_quote_execution',
  'exchange:write_issuer_quote_execution',
  'transfer:update_crypto_deposit',
  'transfer:reject_crypto_deposit',
  'identity:read_identity_control',
  'identity:write_identity_control',
  'settlement:read_transaction',
  'settlement:write_transaction',
  'funding:read_bank_balance',
  'tax:read_tax_form',
  'tax:read_tax_lot',
  'tax:write_tax_lot',
  'rewards:read_monitoring_address',
  'rewards:write_monitoring_address',
  'address_ownership:read_verification',
  'address_ownership:write_verification',
] as const

/** All scopes that an API client can have, the same as in docs/reference/operations.md. */
export const SCOPES = [
  'transfer:write_crypto_withdrawal',
  'orchestration:read_orchestration',
  'statements:read_statement',
  'statements:read_payment',
  'rewards:read_statements',
  'rewards:read_rewards_details',
  'transfer:write_sandbox_fiat_deposit',
  'identity:read_account',
  'exchange:historical_prices',
  'funding:write_profile',
  'funding:read_profile',
  'identity:write_identity',
  'identity:read_identity',
  'identity:write_account',
  'transfer:read_transfer',
  'transfer:write_internal_transfer',
  'transfer:write_paxos_transfer',
  'conversion:write_conversion_stablecoin',
  'conversion:read_conversion_stablecoin',
  'transfer:write_deposit_address',
  'transfer:read_deposit_address',
  'transfer:write_fiat_deposit_instructions',
  'transfer:read_fiat_deposit_instructions',
  'transfer:write_fiat_account',
  'transfer:read_fiat_account',
  'transfer:write_crypto_destination_address',
  'transfer:read_crypto_destination_address',
  'transfer:write_fiat_withdrawal',
  'fee:write_crypto_withdrawal_fee',
  'orchestration:write_orchestration_rule',
  'orchestration:read_orchestration_rule',
  'orchestration:write_orchestration',
  'api_creds:read_credentials',
  'api_creds:rotate_credentials',
  'api_creds:delete_credentials',
  'events:read_event',
  'webhooks:write_webhook',
  'webhooks:read_webhook',
  'audit:read_audit_log',
  'approvals:read_approval',
  'approvals:write_decision',
  'policy:read_policy',
  'policy:write_policy',
  'transfer:read_transfer_limit',
  'reports:read_report',
  'sandbox:write_sandbox',
  ...SCOPES_WITHOUT_OPERATIONS,
] as const

/** Scopes of operators' tokens only: no API client can have them. Each begins with `operators:`. */
export const OPERATOR_SCOPES = [
  'operators:read_session',
  'operators:delete_session',
  'operators:read_passkey',
  'operators:delete_passkey',
  'operators:read_network',
  'operators:read_activity',
  'operators:read_freeze',
  'operators:write_freeze',
  'operators:end_freeze',
  'operators:read_approver',
  'operators:try_policy',
  'operators:read_operator',
  'operators:write_operator',
  'operators:write_client',
  'operators:read_customer',
  'operators:write_customer',
  'operators:read_ledger',
  'operators:read_wire',
  'operators:write_wire',
  'operators:write_verification',
  'operators:pay_statement',
] as const

/**
 * Scopes of the people who run the deployment: its figures, its bank, its other customers, and decisions about a customer
 * that the customer does not make itself. In live mode an operator that belongs to one customer does not have them.
 */
export const DEPLOYMENT_SCOPES: readonly OperatorScope[] = [
  'operators:read_network',
  'operators:end_freeze',
  'operators:read_customer',
  'operators:write_customer',
  'operators:read_ledger',
  'operators:read_wire',
  'operators:write_wire',
  'operators:write_verification',
  'operators:pay_statement',
]

export type ClientScope = (typeof SCOPES)[number]
export type OperatorScope = (typeof OPERATOR_SCOPES)[number]
export type Scope = ClientScope | OperatorScope

/** Scopes of operations that exist in sandbox mode only. */
export const SANDBOX_SCOPES: readonly ClientScope[] = [
  'transfer:write_sandbox_fiat_deposit',
  'sandbox:write_sandbox',
]

export type ScopeWithoutOperations = (typeof SCOPES_WITHOUT_OPERATIONS)[number]
/** Whether no operation needs this scope. No operator has such a scope. */
export const isWithoutOperations = (scope: string): scope is ScopeWithoutOperations =>
  (SCOPES_WITHOUT_OPERATIONS as readonly string[]).includes(scope)

export const scopesOf = (mode: 'sandbox' | 'live'): ClientScope[] =>
  SCOPES.filter((scope) => mode === 'sandbox' || !SANDBOX_SCOPES.includes(scope))

export const isOperatorScope = (scope: string): boolean => scope.startsWith('operators:')
