import { describe, expect, test } from 'vitest'
import * as chains from 'viem/chains'
import { canonicalAddress } from '../addresses/addresses.ts'
import { formatAmount, parseAmount } from './amount.ts'
import { ASSETS, CRYPTO_NETWORKS, type CryptoNetwork, decimalsOf, findAsset, NETWORKS } from './catalogue.ts'

// API behaviour, Market history.
const MARKETS =
  `ETHEUR ETHUSD BTCEUR BTCUSD PAXGUSD BCHUSD LTCUSD ETHGBP BTCGBP LTCGBP BCHGBP USDPUSD ETHBRL BTCBRL
  LTCBRL BCHBRL USDPGBP USDPBRL LINKUSD MATICUSD AAVEUSD UNIUSD AAVEMXN BCHMXN BTCMXN ETHMXN LTCMXN USDPMXN AAVEEUR
  BCHEUR LTCEUR LINKEUR MATICEUR PAXGEUR SOLEUR USDPEUR UNIEUR PYUSDEUR PYUSDGBP`.split(/\s+/)

const assetsOnNetworks = ASSETS.flatMap((asset) =>
  Object.entries(asset.networks).map(([network, onNetwork]) => ({
    asset,
    network: network as CryptoNetwork,
    onNetwork,
    pair: `${asset.symbol} on ${network}`,
  })),
)

describe('assets', () => {
  test('symbols are unique and found', () => {
    expect(new Set(ASSETS.map((asset) => asset.symbol)).size).toBe(ASSETS.length)
    for (const asset of ASSETS) {
      expect(findAsset(asset.symbol)).toBe(asset)
      expect(decimalsOf(asset.symbol)).toBe(asset.decimals)
    }
  })

  test.each(['', 'usd', 'USD ', 'DOGE', 'constructor', '__proto__', 'toString', 'hasOwnProperty'])(
    'there is no asset %j',
    (symbol) => {
      expect(findAsset(symbol)).toBeUndefined()
      expect(() => decimalsOf(symbol)).toThrow('no asset')
    },
  )

  test.each(MARKETS)('both assets of the market %s exist', (market) => {
    expect(findAsset(market.slice(0, -3))?.kind).toMatch(/^(?:crypto|stablecoin)$/)
    expect(findAsset(market.slice(-3))?.kind).toBe('fiat')
  })

  test('fiat has two decimals and no network, and every other asset has a network', () => {
    for (const asset of ASSETS) {
      if (asset.kind === 'fiat') expect(asset.decimals).toBe(2)
      expect(Object.keys(asset.networks).length === 0, asset.symbol).toBe(asset.kind === 'fiat')
    }
  })

  test('the platform stablecoins are USDP, PYUSD and USDG, at one USD each', () => {
    const platform = ASSETS.filter((asset) => asset.platformStablecoin)
    expect(platform.map((asset) => asset.symbol).sort()).toEqual(['PYUSD', 'USDG', 'USDP'])
    for (const asset of platform) {
      expect(asset.sandboxPriceUsd).toBe('1')
      expect(Object.keys(asset.networks)).not.toHaveLength(0)
    }
  })

  test('every asset has a reference price', () => {
    for (const asset of ASSETS)
      expect(parseAmount(asset.sandboxPriceUsd ?? '', 18), asset.symbol).toBeGreaterThan(0n)
  })
})

describe('networks', () => {
  test.each(CRYPTO_NETWORKS)('the gas asset of %s is its own asset', (network) => {
    const gasAsset = findAsset(NETWORKS[network].gasAsset)
    expect(gasAsset?.networks[network]).toBeDefined()
    expect(gasAsset?.networks[network]?.contractAddress).toBeUndefined()
    const natives = assetsOnNetworks.filter(
      (row) => row.network === network && !row.onNetwork.contractAddress,
    )
    expect(natives.map((row) => row.asset)).toEqual([gasAsset])
  })

  test.each([
    ['ETHEREUM', chains.mainnet, chains.sepolia],
    ['POLYGON_POS', chains.polygon, chains.polygonAmoy],
    ['BASE', chains.base, chains.baseSepolia],
    ['ARBITRUM_ONE', chains.arbitrum, chains.arbitrumSepolia],
    ['INK', chains.ink, chains.inkSepolia],
    ['XLAYER', chains.xLayer, chains.xLayerTestnet],
  ] as const)('%s has the chain ids and the gas asset that viem knows', (network, main, testnet) => {
    const { chainId, testChainId, gasAsset } = NETWORKS[network]
    expect([chainId, testChainId]).toEqual([main.id, testnet.id])
    expect(gasAsset).toBe(main.nativeCurrency.symbol)
    expect(findAsset(gasAsset)?.networks[network]?.decimals).toBe(main.nativeCurrency.decimals)
  })

  test('only EVM networks have chain ids', () => {
    for (const network of CRYPTO_NETWORKS) {
      const { family, chainId, testChainId } = NETWORKS[network]
      expect(chainId !== undefined && testChainId !== undefined).toBe(family === 'evm')
    }
  })
})

describe('assets on networks', () => {
  test.each(assetsOnNetworks)('$pair: contract address', ({ network, onNetwork: { contractAddress } }) => {
    if (contractAddress === undefined) return
    const [code, address] =
      network === 'STELLAR' ? (contractAddress.split('-') as [string, string]) : ['', contractAddress]
    if (network === 'STELLAR') expect(code).toMatch(/^[A-Za-z0-9]{1,12}$/)
    expect(canonicalAddress(network, address, { testNetworks: false })).toBe(address)
  })

  test.each(assetsOnNetworks)(
    '$pair: the ledger has at least the decimals of the chain',
    ({ asset, onNetwork }) => {
      expect(onNetwork.decimals).toBeGreaterThan(0)
      expect(onNetwork.decimals).toBeLessThanOrEqual(asset.decimals)
      expect(asset.decimals).toBeLessThanOrEqual(18)
    },
  )

  test.each(assetsOnNetworks)('$pair: fee and limits', ({ asset, onNetwork }) => {
    const { decimals, fee, minimum, maximum } = onNetwork
    for (const text of [fee, minimum, maximum]) {
      expect(parseAmount(text, decimals), text).toBeDefined()
      expect(formatAmount(parseAmount(text, asset.decimals)!, asset.decimals)).toBe(text)
    }
    expect(parseAmount(fee, decimals)).toBeGreaterThan(0n)
    expect(parseAmount(minimum, decimals)).toBeGreaterThan(0n)
    expect(parseAmount(maximum, decimals)).toBeGreaterThanOrEqual(parseAmount(minimum, decimals)!)
  })

  test('a contract belongs to one asset per network', () => {
    const contracts = assetsOnNetworks
      .filter((row) => row.onNetwork.contractAddress !== undefined)
      .map((row) => `${row.network} ${row.onNetwork.contractAddress}`)
    expect(new Set(contracts).size).toBe(contracts.length)
  })
})
