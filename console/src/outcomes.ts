/** The sandbox destinations with a fixed outcome (docs/reference/magic-destinations.md). Any other address is paid. */

export interface Outcome {
  name: string
  asset: string
  network: string
  destination: string
}

const outcome = (name: string, destination: string, asset = 'USDP', network = 'ETHEREUM'): Outcome => ({
  name,
  asset,
  network,
  destination,
})

export const OUTCOMES: readonly Outcome[] = [
  outcome('COMPLETED', '0x52908400098527886E0F7030069857D2E4169EE7'),
  outcome('DROPPED_ONCE', '0x6275727361722073616E64626f78203039000000'),
  outcome('NEVER_CONFIRMS', '0x6275727361722073616E64626F78203130000000'),
  outcome('TRAVEL_RULE_INFO_REQUESTED', '0x6275727361722073616e64626f78203037000000'),
  outcome('PENDING_CUSTOMER_APPROVAL', '0x6275727361722073616E64626F78203038000000'),
  outcome('INVALID_DESTINATION_ADDRESS', '0x6275727361722073616E64626F78203031000000'),
  outcome('STALE_FEE_QUOTE', '0x6275727361722073616e64626f78203032000000'),
  outcome('TRAVEL_RULE_REJECTED', '0x6275727361722073616E64626F78203035000000'),
  outcome('CUSTOMER_REJECTED', '0x6275727361722073616E64626F78203036000000'),
  outcome(
    'MISSING_TRUSTLINE',
    'GBRHK4TTMFZCA43BNZSGE33YEAYDGAAAAAAAAAAAAAAAAAAAAAAABQ2A',
    'PYUSD',
    'STELLAR',
  ),
  outcome('MAX_RENT_EXCEEDED', '7dLprs4gCjhnYvE6WaESX8YCnjbyc7E8KZyf81FLdyvF', 'USDP', 'SOLANA'),
]

/** Deposits with an amount that arrives as PENDING first. */
export const PENDING_DEPOSITS = [
  { name: 'A deposit that waits for confirmations', amount: '9000.01' },
  { name: 'A deposit that a reorganisation removes', amount: '9000.02' },
] as const
