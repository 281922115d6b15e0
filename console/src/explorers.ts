/** Public explorers of the networks: where anybody can look a transaction or an address up. */

const EXPLORERS: Record<string, { hash: string; address: string }> = {
  ARBITRUM_ONE: { hash: 'https://arbiscan.io/tx/', address: 'https://arbiscan.io/address/' },
  BASE: { hash: 'https://basescan.org/tx/', address: 'https://basescan.org/address/' },
  BITCOIN: { hash: 'https://mempool.space/tx/', address: 'https://mempool.space/address/' },
  BITCOIN_CASH: {
    hash: 'https://blockchair.com/bitcoin-cash/transaction/',
    address: 'https://blockchair.com/bitcoin-cash/address/',
  },
  ETHEREUM: { hash: 'https://etherscan.io/tx/', address: 'https://etherscan.io/address/' },
  INK: { hash: 'https://explorer.inkonchain.com/tx/', address: 'https://explorer.inkonchain.com/address/' },
  LITECOIN: { hash: 'https://litecoinspace.org/tx/', address: 'https://litecoinspace.org/address/' },
  POLYGON_POS: { hash: 'https://polygonscan.com/tx/', address: 'https://polygonscan.com/address/' },
  SOLANA: { hash: 'https://explorer.solana.com/tx/', address: 'https://explorer.solana.com/address/' },
  STELLAR: {
    hash: 'https://stellar.expert/explorer/public/tx/',
    address: 'https://stellar.expert/explorer/public/account/',
  },
  XLAYER: { hash: 'https://www.oklink.com/x-layer/tx/', address: 'https://www.oklink.com/x-layer/address/' },
}

/** The public page of a transaction or an address; undefined for a network without an explorer. */
export function explorerOf(
  network: string | undefined,
  kind: 'hash' | 'address',
  value: string,
): URL | undefined {
  const explorer = network === undefined ? undefined : EXPLORERS[network]
  return explorer && new URL(explorer[kind] + encodeURIComponent(value))
}
