import { Buffer } from 'node:buffer'
import type { StrKey as StellarStrKey } from '@stellar/stellar-base'
// @ts-expect-error: no types for this module alone (addresses.ts)
import { StrKey as untypedStrKey } from '@stellar/stellar-base/lib/strkey.js'
import {
  ASSETS,
  CRYPTO_NETWORKS,
  findAsset,
  NETWORKS,
  type CryptoNetwork,
} from '../contract/assets/catalogue.ts'
import { outputScriptOf } from './addresses.ts'

const StrKey = untypedStrKey as typeof StellarStrKey

/** A destination of money: an address in its canonical form, with the asset and the memo where they are known. */
export interface CryptoDestination {
  address: string
  asset?: string
  memo?: string
}

/**
 * A rule that refuses well-formed destinations where the money would be lost or reach nobody. It is the same on simulated and
 * on real networks. docs/reference/refused-destinations.md shows all of them.
 */
export interface DestinationRule {
  networks: readonly CryptoNetwork[]
  refuses: string
  /** Where the fact can be looked up. */
  source: string
  /** The reason, as a sentence about the address or the memo; undefined where the rule allows the destination. */
  fault(destination: CryptoDestination, network: CryptoNetwork): string | undefined
  example: CryptoDestination
}

const ofFamily = (family: string) => CRYPTO_NETWORKS.filter((network) => NETWORKS[network].family === family)
const EVM = ofFamily('evm')
const BITCOINS = ofFamily('bitcoin')

/** The token that has its contract or mint at an address, by `<network> <address>`. */
const TOKENS: ReadonlyMap<string, string> = new Map(
  ASSETS.flatMap(({ symbol, networks }) =>
    Object.entries(networks).map(([network, { contractAddress }]) => [
      `${network} ${contractAddress}`,
      symbol,
    ]),
  ),
)

const TOKEN_ADDRESSES = new Set([...TOKENS.keys()].map((key) => key.slice(key.indexOf(' ') + 1)))

// By their scripts, which are the same on each chain of the family: 1BitcoinEaterAddressDontSendf59kuE and
// 1CounterpartyXXXXXXXXXXXXXXXUWLpVr.
const EATERS = new Set([
  '76a914759d6677091e973b9e9d99f19c68fbf43e3f05f988ac',
  '76a914818895f3dc2c178629d3d2d8fa3ec4a3f817982188ac',
])

const DEAD = new Set([
  '0x000000000000000000000000000000000000dead',
  '0xdead000000000000000042069420694206942069',
])

const SOLANA_PROGRAMS = new Map([
  ['TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', 'Token program'],
  ['TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb', 'Token-2022 program'],
  ['ATokenGPvbdGVxr1b2hvZbsiqW5xWH25efTNsLJA8knL', 'Associated Token Account program'],
  ['MemoSq4gqABAXKb96qnH8TysNcWxMyWCqXgDLGmfcHr', 'Memo program'],
  ['Memo1UhkJRfHyvLMcVucJwxXeuD728EqVDDwQDxFMNo', 'Memo program'],
  ['So11111111111111111111111111111111111111112', 'mint of wrapped SOL'],
  ['metaqbxxUerdq28cj1RbAWkYQm3ybzjb6a8bt518x1s', 'Token Metadata program'],
])

const STELLAR_MEMO_BYTES_MAX = 28

/** The rules about addresses, in their order. */
export const ADDRESS_RULES: readonly DestinationRule[] = [
  {
    networks: EVM,
    refuses: 'the zero address',
    source: 'https://ethereum.org/en/glossary/#zero-address',
    fault: ({ address }) =>
      /^0x0{40}$/.test(address) ? 'nobody has the key of the zero address' : undefined,
    example: { address: `0x${'0'.repeat(40)}` },
  },
  {
    networks: EVM,
    refuses: 'addresses that are used to burn: they end with `dEaD`, or begin with it',
    source: 'https://etherscan.io/address/0x000000000000000000000000000000000000dead',
    fault: ({ address }) => (DEAD.has(address.toLowerCase()) ? 'it is used to destroy tokens' : undefined),
    example: { address: '0x000000000000000000000000000000000000dEaD' },
  },
  {
    networks: EVM,
    refuses: 'addresses of 16 leading zero bytes: precompiled contracts, and contracts of the network itself',
    source: 'https://github.com/ethereum/execution-specs',
    fault: ({ address }) =>
      /^0x0{32}/.test(address)
        ? 'it is a contract of the network itself, or none, and nobody has its key'
        : undefined,
    example: { address: '0x0000000000000000000000000000000000000004' },
  },
  {
    networks: EVM,
    refuses: 'the 2,048 addresses that the OP Stack reserves for contracts of the network',
    source: 'https://specs.optimism.io/protocol/predeploys.html',
    fault: ({ address }) =>
      /^0x420{34}0[0-7][0-9a-f]{2}$/i.test(address)
        ? 'it is a contract of the network itself, or none, and nobody has its key'
        : undefined,
    example: { address: '0x4200000000000000000000000000000000000006' },
  },
  {
    networks: EVM,
    refuses: 'the contracts of the tokens in the catalogue, on each EVM network',
    source: 'https://eips.ethereum.org/EIPS/eip-20',
    fault({ address }, network) {
      if (!TOKEN_ADDRESSES.has(address)) return undefined
      const on = [network, ...EVM].find((one) => TOKENS.has(`${one} ${address}`))
      if (on === undefined) return undefined
      return `it is the contract of ${TOKENS.get(`${on} ${address}`)}${
        on === network ? ', which keeps what is sent to it' : ` on ${on}, and nobody has its key`
      }`
    },
    example: { address: '0x8E870D67F660D95d5be530380D0eC0bd388289E1' },
  },
  {
    networks: ['SOLANA'],
    refuses: 'native programs, sysvars and the incinerator: addresses that end with ten or more of `1`',
    source: 'https://solana.com/docs/core/programs',
    fault: ({ address }) =>
      /1{10}$/.test(address) ? 'it is a program of Solana, or none, and nobody has its key' : undefined,
    example: { address: '1nc1nerator11111111111111111111111111111111' },
  },
  {
    networks: ['SOLANA'],
    refuses: 'the programs for tokens and memos, and the mint of wrapped SOL',
    source: 'https://spl.solana.com',
    fault({ address }) {
      const program = SOLANA_PROGRAMS.get(address)
      return program && `it is the ${program}, which keeps what is sent to it`
    },
    example: { address: 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA' },
  },
  {
    networks: ['SOLANA'],
    refuses: 'the mints of the tokens in the catalogue',
    source: 'https://solana.com/docs/tokens',
    fault({ address }, network) {
      const token = TOKENS.get(`${network} ${address}`)
      return token && `it is the mint of ${token}, which keeps what is sent to it`
    },
    example: { address: '2b1kV6DkPAnxd5ixfnxCpjxmKwqjjaYmCZfHsFu24GXo' },
  },
  {
    networks: ['STELLAR'],
    refuses: 'the account whose key is zero, in each of its forms',
    source: 'https://stellar.org/protocol/sep-23',
    fault: ({ address }) =>
      accountOf(address).startsWith('GAAAAAAAAAAA') ? 'nobody has the key of the zero address' : undefined,
    example: { address: 'GAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAWHF' },
  },
  {
    networks: ['STELLAR'],
    refuses: 'the issuer of the asset, in each of its forms',
    source: 'https://developers.stellar.org/docs/tokens/anatomy-of-an-asset',
    fault({ address, asset = '' }) {
      const issuer = findAsset(asset)?.networks.STELLAR?.contractAddress?.split('-')[1]
      return accountOf(address) === issuer
        ? `it is the issuer of ${asset}, which destroys what is sent to it`
        : undefined
    },
    example: { address: 'GDQE7IXJ4HUHV6RQHIUPRJSEZE4DRS5WY577O2FY6YQ5LVWZ7JZTU2V5', asset: 'PYUSD' },
  },
  {
    networks: BITCOINS,
    refuses: 'hashes of 20 or more zero bytes, in each form of address',
    source: 'https://en.bitcoin.it/wiki/Script#Provably_Unspendable/Prunable_Outputs',
    fault: ({ address }, network) =>
      scriptOf(address, network).includes('0'.repeat(40))
        ? 'nobody has the key of the zero address'
        : undefined,
    example: { address: '1111111111111111111114oLvT2' },
  },
  {
    networks: BITCOINS,
    refuses: 'hashes that were written by hand to destroy coins: `1BitcoinEater…` and `1Counterparty…`',
    source: 'https://en.bitcoin.it/wiki/Proof_of_burn',
    fault: ({ address }, network) =>
      EATERS.has(scriptOf(address, network))
        ? 'it was made to destroy coins, and nobody has its key'
        : undefined,
    example: { address: '1BitcoinEaterAddressDontSendf59kuE' },
  },
  {
    networks: ['BITCOIN', 'LITECOIN'],
    refuses: 'taproot addresses (`bc1p…`, `ltc1p…`) whose 32 bytes are no public key',
    source: 'https://github.com/bitcoin/bips/blob/master/bip-0341.mediawiki#script-validation-rules',
    // The library makes no script for such an address.
    fault: ({ address }, network) =>
      outputScriptOf(network, address) === undefined
        ? 'its taproot output has no public key, so nobody can spend it'
        : undefined,
    example: { address: 'bc1pqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqpqqenm' },
  },
]

/** The rules about memos, in their order. A network without memos takes none at all (`carriesNoMemo`). */
export const MEMO_RULES: readonly DestinationRule[] = [
  {
    networks: CRYPTO_NETWORKS,
    refuses: 'an empty memo',
    source: 'https://stellar.org/protocol/sep-29',
    fault: ({ memo }) => (memo === '' ? 'is empty: leave it out' : undefined),
    example: { address: '', memo: '' },
  },
  {
    networks: CRYPTO_NETWORKS,
    refuses: 'a memo that begins or ends with space: the receiver compares bytes',
    source: 'https://www.unicode.org/Public/UCD/latest/ucd/PropList.txt',
    fault: ({ memo = '' }) =>
      memo !== memo.trim() ? 'begins or ends with space, and a receiver compares each character' : undefined,
    example: { address: '', memo: ' 3440566070 ' },
  },
  {
    networks: CRYPTO_NETWORKS,
    refuses: 'a memo with characters that nobody sees: controls, formats, line breaks',
    source: 'https://www.unicode.org/reports/tr44/#General_Category_Values',
    fault({ memo = '' }) {
      const [hidden] = /[\p{Cc}\p{Cf}\p{Co}\p{Zl}\p{Zp}]/u.exec(memo) ?? []
      return hidden === undefined
        ? undefined
        : `has a character that nobody sees: U+${hidden.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`
    },
    example: { address: '', memo: '3440\u200b566070' },
  },
  {
    networks: ['STELLAR'],
    refuses: `a memo of more than ${STELLAR_MEMO_BYTES_MAX} bytes`,
    source:
      'https://developers.stellar.org/docs/learn/fundamentals/transactions/operations-and-transactions#memo',
    fault: ({ memo = '' }) =>
      Buffer.byteLength(memo) > STELLAR_MEMO_BYTES_MAX
        ? `is longer than the ${STELLAR_MEMO_BYTES_MAX} bytes that STELLAR carries`
        : undefined,
    example: { address: '', memo: 'a memo of twenty-nine letters' },
  },
  {
    networks: ['STELLAR'],
    refuses: 'a memo beside a multiplexed account (`M…`)',
    source: 'https://stellar.org/protocol/cap-27',
    fault: ({ address, memo }) =>
      memo !== undefined && address.startsWith('M')
        ? 'cannot be sent to a multiplexed address (M...), which names the receiver itself: leave one of the two out'
        : undefined,
    example: {
      address: 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ',
      memo: '123',
    },
  },
]

const byNetwork = (
  rules: readonly DestinationRule[],
): ReadonlyMap<CryptoNetwork, readonly DestinationRule[]> =>
  new Map(
    CRYPTO_NETWORKS.map((network) => [network, rules.filter(({ networks }) => networks.includes(network))]),
  )
const ADDRESS_RULES_OF = byNetwork(ADDRESS_RULES)
const MEMO_RULES_OF = byNetwork(MEMO_RULES)

/** Why money must not be sent to this canonical address of the network; undefined where no rule says so. */
export const addressRefusal = (network: CryptoNetwork, destination: CryptoDestination): string | undefined =>
  firstFault(ADDRESS_RULES_OF.get(network)!, network, destination)

/** Why a memo must not be sent to this address, as the rest of a sentence about the memo. */
export const memoRefusal = (network: CryptoNetwork, destination: CryptoDestination): string | undefined =>
  destination.memo === undefined ? undefined : firstFault(MEMO_RULES_OF.get(network)!, network, destination)

function firstFault(
  rules: readonly DestinationRule[],
  network: CryptoNetwork,
  destination: CryptoDestination,
): string | undefined {
  for (const rule of rules) {
    const fault = rule.fault(destination, network)
    if (fault !== undefined) return fault
  }
  return undefined
}

/** The account of a Stellar address: that of a multiplexed one, or the address itself. */
const accountOf = (address: string): string =>
  address.startsWith('M')
    ? StrKey.encodeEd25519PublicKey(StrKey.decodeMed25519PublicKey(address).subarray(0, 32))
    : address

const scriptOf = (address: string, network: CryptoNetwork): string =>
  Buffer.from(outputScriptOf(network, address) ?? []).toString('hex')
