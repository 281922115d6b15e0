/** Public explorers of the networks: where anybody can look a transaction or an address up. */

interface Explorer {
  at: string
  hash?: string
  address?: string
}

/** Most explorers name a transaction `tx` and an address `address`. */
const EXPLORERS: Record<string, Explorer> = {
  ARBITRUM_ONE: { at: 'https://arbiscan.io' },
  BASE: { at: 'https://basescan.org' },
  BITCOIN: { at: 'https://mempool.space' },
  BITCOIN_CASH: { at: 'https://blockchair.com/bitcoin-cash', hash: 'transaction' },
  ETHEREUM: { at: 'https://etherscan.io' },
  INK: { at: 'https://explorer.inkonchain.com' },
  LITECOIN: { at: 'https://litecoinspace.org' },
  POLYGON_POS: { at: 'https://polygonscan.com' },
  SOLANA: { at: 'https://explorer.solana.com' },
  STELLAR: { at: 'https://stellar.expert/explorer/public', address: 'account' },
  XLAYER: { at: 'https://www.oklink.com/x-layer' },
}

/** The public page of a transaction or an address; undefined for a network without an explorer. */
export function explorerOf(
  network: string | undefined,
  kind: 'hash' | 'address',
  value: string,
): URL | undefined {
  const explorer = EXPLORERS[network ?? '']
  if (explorer === undefined) return undefined
  const { at, hash = 'tx', address = 'address' } = explorer
  return new URL(`${at}/${kind === 'hash' ? hash : address}/${encodeURIComponent(value)}`)
}
