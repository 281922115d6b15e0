/** The sandbox destinations with a fixed outcome (docs/reference/magic-destinations.md). Any other address is paid. */

export interface Outcome {
  name: string
  asset: string
  network: string
  destination: string
}

const onEthereum = (name: string, destination: string): Outcome => ({
  name,
  asset: 'USDP',
  network: 'ETHEREUM',
  destination,
})

export const OUTCOMES: readonly Outcome[] = [
  onEthereum('COMPLETED', '0x52908400098527886E0F7030069857D2E4169EE7'),
  onEthereum('DROPPED_ONCE', '0x6275727361722073616E64626f78203039000000'),
  onEthereum('NEVER_CONFIRMS', '0x6275727361722073616E64626F78203130000000'),
  onEthereum('TRAVEL_RULE_INFO_REQUESTED', '0x6275727361722073616e64626f78203037000000'),
  onEthereum('PENDING_CUSTOMER_APPROVAL', '0x6275727361722073616E64626F78203038000000'),
  onEthereum('INVALID_DESTINATION_ADDRESS', '0x6275727361722073616E64626F78203031000000'),
  onEthereum('STALE_FEE_QUOTE', '0x6275727361722073616e64626f78203032000000'),
  onEthereum('TRAVEL_RULE_REJECTED', '0x6275727361722073616E64626F78203035000000'),
  onEthereum('CUSTOMER_REJECTED', '0x6275727361722073616E64626F78203036000000'),
  {
    name: 'MISSING_TRUSTLINE',
    asset: 'PYUSD',
    network: 'STELLAR',
    destination: 'GBRHK4TTMFZCA43BNZSGE33YEAYDGAAAAAAAAAAAAAAAAAAAAAAABQ2A',
  },
  {
    name: 'MAX_RENT_EXCEEDED',
    asset: 'USDP',
    network: 'SOLANA',
    destination: '7dLprs4gCjhnYvE6WaESX8YCnjbyc7E8KZyf81FLdyvF',
  },
]

/** Deposits with an amount that arrives as PENDING first. */
export const PENDING_DEPOSITS = [
  { name: 'A deposit that waits for confirmations', amount: '9000.01' },
  { name: 'A deposit that a reorganisation removes', amount: '9000.02' },
] as const
