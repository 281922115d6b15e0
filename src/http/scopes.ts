/** Every token scope there is: the names in spec section 5 and design section 6, and no others. */
export const SCOPES = [
  'transfer:write_crypto_withdrawal',
  'transfer:write_sandbox_fiat_deposit',
  'transfer:read_transfer',
  'transfer:write_fiat_deposit_instructions',
  'transfer:read_fiat_deposit_instructions',
  'fee:write_crypto_withdrawal_fee',
  'funding:write_profile',
  'funding:read_profile',
] as const

export type Scope = (typeof SCOPES)[number]
