/*
 * The asset catalogue: networks and assets as data, in one place. Adding an asset to a network is one line here.
 *
 * Contract addresses are the addresses on the public main networks, as the issuers and the common token lists publish
 * them.
 */

import { formatAmount, parseAmount } from './amount.ts'

/** The CryptoNetwork enumeration of the API (API behaviour, Assets and networks). */
export const CRYPTO_NETWORKS = [
  'BITCOIN',
  'ETHEREUM',
  'BITCOIN_CASH',
  'LITECOIN',
  'SOLANA',
  'POLYGON_POS',
  'BASE',
  'ARBITRUM_ONE',
  'STELLAR',
  'INK',
  'XLAYER',
] as const

export type CryptoNetwork = (typeof CRYPTO_NETWORKS)[number]

export interface NetworkFacts {
  family: 'bitcoin' | 'evm' | 'solana' | 'stellar'
  /** The asset in which transaction fees are paid. */
  gasAsset: string
  /** EVM only: the chain id (EIP-155) of the main network and of its test network. */
  chainId?: number
  testChainId?: number
  /**
   * The confirmations that a deposit needs by default, and from which values in USD it needs more. The first are the fewest that
   * live mode accepts. Absent where the network's finality decides.
   */
  confirmations?: readonly [number, ...(readonly [fromUsd: string, confirmations: number])[]]
}

/** Blocks of a rollup come from one sequencer: what counts for large deposits is the time until its batches are final on Ethereum. */
const TWO_SECOND_BLOCKS = [10, ['10000', 60], ['100000', 450]] as const
const ONE_SECOND_BLOCKS = [10, ['10000', 120], ['100000', 900]] as const

export const NETWORKS: Readonly<Record<CryptoNetwork, NetworkFacts>> = {
  BITCOIN: { family: 'bitcoin', gasAsset: 'BTC', confirmations: [2, ['10000', 3], ['100000', 6]] },
  ETHEREUM: {
    family: 'evm',
    gasAsset: 'ETH',
    chainId: 1,
    testChainId: 11155111 /* Sepolia */,
    confirmations: [12, ['10000', 32], ['100000', 64]],
  },
  // Its nodes finalise a block that is ten deep, and follow no longer chain without it.
  BITCOIN_CASH: { family: 'bitcoin', gasAsset: 'BCH', confirmations: [10, ['10000', 15]] },
  LITECOIN: { family: 'bitcoin', gasAsset: 'LTC', confirmations: [6, ['10000', 12], ['100000', 24]] },
  SOLANA: { family: 'solana', gasAsset: 'SOL' },
  POLYGON_POS: {
    family: 'evm',
    gasAsset: 'POL',
    chainId: 137,
    testChainId: 80002 /* Amoy */,
    confirmations: [64, ['10000', 128], ['100000', 256]],
  },
  BASE: {
    family: 'evm',
    gasAsset: 'ETH',
    chainId: 8453,
    testChainId: 84532 /* Base Sepolia */,
    confirmations: TWO_SECOND_BLOCKS,
  },
  ARBITRUM_ONE: {
    family: 'evm',
    gasAsset: 'ETH',
    chainId: 42161,
    testChainId: 421614 /* Arbitrum Sepolia */,
    confirmations: [10, ['10000', 480], ['100000', 3600]] /* four blocks a second */,
  },
  STELLAR: { family: 'stellar', gasAsset: 'XLM' },
  INK: {
    family: 'evm',
    gasAsset: 'ETH',
    chainId: 57073,
    testChainId: 763373 /* Ink Sepolia */,
    confirmations: ONE_SECOND_BLOCKS,
  },
  XLAYER: {
    family: 'evm',
    gasAsset: 'OKB',
    chainId: 196,
    testChainId: 1952 /* X Layer testnet */,
    confirmations: ONE_SECOND_BLOCKS,
  },
}

/** An asset as it exists on one network, with the withdrawal fee and limits there, in decimal strings of the asset. */
export interface AssetOnNetwork {
  /** EVM contract with its checksum, SPL mint, or Stellar 'CODE-ISSUER'; absent for the network's native asset. */
  contractAddress?: string
  /** Decimals on the chain, possibly fewer than in the ledger. A withdrawal must not use more. */
  decimals: number
  /** The scheduled withdrawal fee. */
  fee: string
  /** The smallest and the largest amount of one withdrawal. */
  minimum: string
  maximum: string
}

export interface Asset {
  symbol: string
  name: string
  kind: 'fiat' | 'stablecoin' | 'crypto'
  /** Scale of the ledger's minor units: the most decimals that any of the asset's networks can pay out. */
  decimals: number
  /**
   * Issued by the platform and worth one USD, so that a withdrawal may debit USD (`balance_asset`; API behaviour,
   * Crypto withdrawals).
   */
  platformStablecoin: boolean
  /** Reference price in the sandbox, where market history has no price. */
  sandboxPriceUsd?: string
  networks: Readonly<Partial<Record<CryptoNetwork, AssetOnNetwork>>>
}

/** Every asset: both sides of every market (API behaviour, Market history), the platform's stablecoins and the gas assets. */
export const ASSETS: readonly Asset[] = [
  fiat('USD', 'US dollar', '1'),
  fiat('EUR', 'Euro', '1.15'),
  fiat('GBP', 'Pound sterling', '1.33'),
  fiat('BRL', 'Brazilian real', '0.18'),
  fiat('MXN', 'Mexican peso', '0.054'),

  // per network: contract, decimals on chain, fee, minimum, maximum
  platformStablecoin('USDP', 'Pax Dollar', {
    ETHEREUM: at('0x8E870D67F660D95d5be530380D0eC0bd388289E1', 18, '1', '1', '1000000'),
    SOLANA: at('HVbpJAQGNpkgBaYBZQBR1t7yFdvaYVp2vCQQfKKEN4tM', 6, '0.1', '0.1', '1000000'),
  }),
  platformStablecoin('PYUSD', 'PayPal USD', {
    ETHEREUM: at('0x6c3ea9036406852006290770BEdFcAbA0e23A0e8', 6, '1', '1', '1000000'),
    SOLANA: at('2b1kV6DkPAnxd5ixfnxCpjxmKwqjjaYmCZfHsFu24GXo', 6, '0.1', '0.1', '1000000'),
    ARBITRUM_ONE: at('0x46850aD61C2B7d64d08c9C754F45254596696984', 6, '0.1', '0.1', '1000000'),
    STELLAR: at('PYUSD-GDQE7IXJ4HUHV6RQHIUPRJSEZE4DRS5WY577O2FY6YQ5LVWZ7JZTU2V5', 7, '0.1', '0.1', '1000000'),
  }),
  platformStablecoin('USDG', 'Global Dollar', {
    ETHEREUM: at('0xe343167631d89B6Ffc58B88d6b7fB0228795491D', 6, '1', '1', '1000000'),
    SOLANA: at('2u1tszSeqZ3qBWF3uNGPFc8TzMk2tdiwknnRMWGWjGWH', 6, '0.1', '0.1', '1000000'),
    INK: at('0xe343167631d89B6Ffc58B88d6b7fB0228795491D', 6, '0.1', '0.1', '1000000'),
    XLAYER: at('0x4ae46a509F6b1D9056937BA4500cb143933D2dc8', 6, '0.1', '0.1', '1000000'),
  }),

  stablecoin('USDC', 'USD Coin', {
    ETHEREUM: at('0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48', 6, '1', '1', '1000000'),
    SOLANA: at('EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v', 6, '0.1', '0.1', '1000000'),
    POLYGON_POS: at('0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359', 6, '0.1', '0.1', '1000000'),
    BASE: at('0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913', 6, '0.1', '0.1', '1000000'),
    ARBITRUM_ONE: at('0xaf88d065e77c8cC2239327C5EDb3A432268e5831', 6, '0.1', '0.1', '1000000'),
  }),

  crypto('BTC', 'Bitcoin', '100000', { BITCOIN: native(8, '0.0001', '0.0002', '100') }),
  crypto('BCH', 'Bitcoin Cash', '500', { BITCOIN_CASH: native(8, '0.0001', '0.001', '10000') }),
  crypto('LTC', 'Litecoin', '100', { LITECOIN: native(8, '0.001', '0.002', '50000') }),
  crypto('ETH', 'Ether', '3500', {
    ETHEREUM: native(18, '0.001', '0.002', '3000'),
    BASE: native(18, '0.0001', '0.0005', '3000'),
    ARBITRUM_ONE: native(18, '0.0001', '0.0005', '3000'),
    INK: native(18, '0.0001', '0.0005', '3000'),
  }),
  // 0.001 SOL is just above the rent that a new account must hold. 1 XLM is the reserve that opens an account.
  crypto('SOL', 'Solana', '180', { SOLANA: native(9, '0.001', '0.001', '50000') }),
  crypto('XLM', 'Stellar Lumen', '0.35', { STELLAR: native(7, '0.01', '1', '20000000') }),
  crypto('OKB', 'OKB', '150', { XLAYER: native(18, '0.001', '0.01', '50000') }),
  crypto('POL', 'Polygon Ecosystem Token', '0.25', {
    POLYGON_POS: native(18, '0.1', '1', '20000000'),
    ETHEREUM: at('0x455e53CBB86018Ac2B8092FdCd39d8444aFFC3F6', 18, '4', '10', '20000000'),
  }),

  crypto('MATIC', 'Polygon (MATIC)', '0.25', {
    ETHEREUM: at('0x7D1AfA7B718fb893dB30A3aBc0Cfc608AaCfeBB0', 18, '4', '10', '20000000'),
  }),
  crypto('LINK', 'Chainlink', '18', {
    ETHEREUM: at('0x514910771AF9Ca656af840dff83E8264EcF986CA', 18, '0.1', '0.5', '500000'),
  }),
  crypto('AAVE', 'Aave', '250', {
    ETHEREUM: at('0x7Fc66500c84A76Ad7e9c93437bFc5Ac33E2DDaE9', 18, '0.005', '0.02', '40000'),
  }),
  crypto('UNI', 'Uniswap', '8', {
    ETHEREUM: at('0x1f9840a85d5aF5bf1D1762F925BDADdC4201F984', 18, '0.2', '1', '1000000'),
  }),
  crypto('PAXG', 'PAX Gold', '4000', {
    ETHEREUM: at('0x45804880De22913dAFE09f4980848ECE6EcbAf78', 18, '0.0005', '0.001', '2500'),
  }),
]

/** The assets that are worth a dollar each. */
export const DOLLARS: readonly string[] = [
  'USD',
  ...ASSETS.flatMap((asset) => (asset.platformStablecoin ? [asset.symbol] : [])),
]

// A Map, not an object: a lookup must not find properties that every object inherits.
const ASSET_BY_SYMBOL: ReadonlyMap<string, Asset> = new Map(ASSETS.map((asset) => [asset.symbol, asset]))

/**
 * Finds the asset of this symbol, as written in requests (API behaviour, Crypto withdrawals); undefined for an
 * unknown symbol.
 */
export function findAsset(symbol: string): Asset | undefined {
  return ASSET_BY_SYMBOL.get(symbol)
}

/** Returns the scale of the ledger's minor units of a known asset. Throws for an unknown symbol. */
export function decimalsOf(symbol: string): number {
  const asset = findAsset(symbol)
  if (asset === undefined) throw new Error(`no asset ${symbol} in the catalogue`)
  return asset.decimals
}

/**
 * Returns the smallest deposit that is credited automatically, as a decimal string of the asset. A deposit should be
 * worth the cost of moving it to the hot wallet. A token needs two transactions (gas for its address, then the
 * transfer), so its minimum is five withdrawal fees; a native asset needs two fees. The minimum is never below the
 * smallest withdrawal. Zero where the network does not list the asset.
 */
export function minimumDepositOf(symbol: string, network: CryptoNetwork): string {
  const { decimals, networks } = findAsset(symbol) ?? { decimals: 0, networks: {} }
  const listed = networks[network]
  if (listed === undefined) return '0'
  const [fee, minimum] = [listed.fee, listed.minimum].map((text) => parseAmount(text, decimals)!)
  const fees = fee! * (listed.contractAddress === undefined ? 2n : 5n)
  return formatAmount(fees > minimum! ? fees : minimum!, decimals)
}

function fiat(symbol: string, name: string, sandboxPriceUsd: string): Asset {
  return { symbol, name, kind: 'fiat', decimals: 2, platformStablecoin: false, sandboxPriceUsd, networks: {} }
}

function platformStablecoin(symbol: string, name: string, networks: Asset['networks']): Asset {
  return { ...stablecoin(symbol, name, networks), platformStablecoin: true }
}

/** A stablecoin of another issuer: it is not exchanged for USD one to one. */
function stablecoin(symbol: string, name: string, networks: Asset['networks']): Asset {
  return { ...crypto(symbol, name, '1', networks), kind: 'stablecoin' }
}

function crypto(symbol: string, name: string, sandboxPriceUsd: string, networks: Asset['networks']): Asset {
  const decimals = Math.max(...Object.values(networks).map((onNetwork) => onNetwork.decimals))
  return { symbol, name, kind: 'crypto', decimals, platformStablecoin: false, sandboxPriceUsd, networks }
}

function native(decimals: number, fee: string, minimum: string, maximum: string): AssetOnNetwork {
  return { decimals, fee, minimum, maximum }
}

function at(
  contractAddress: string,
  decimals: number,
  fee: string,
  minimum: string,
  maximum: string,
): AssetOnNetwork {
  return { contractAddress, decimals, fee, minimum, maximum }
}
