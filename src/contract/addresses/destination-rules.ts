import { Buffer } from 'node:buffer'
import { createPrivateKey, createPublicKey } from 'node:crypto'
import { ed25519, ED25519_TORSION_SUBGROUP } from '@noble/curves/ed25519.js'
import { secp256k1 } from '@noble/curves/secp256k1.js'
import { hash160, sha256, sha256x2 } from '@scure/btc-signer/utils.js'
import type { StrKey as StellarStrKey } from '@stellar/stellar-base'
// @ts-expect-error: no types for this module alone (addresses.ts)
import { StrKey as untypedStrKey } from '@stellar/stellar-base/lib/strkey.js'
import { keccak256 } from 'viem/utils'
import { ASSETS, CRYPTO_NETWORKS, findAsset, NETWORKS, type CryptoNetwork } from '../assets/catalogue.ts'
import { addressFromBytes, outputScriptOf } from './addresses.ts'

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

const ONE = Buffer.alloc(32).fill(1, 31)
/** The public key of 1 is the generator (to multiply it took 50 ms of each start), and its taproot output key (BIP-341). */
const G = secp256k1.Point.BASE
const G_TWEAKED = 'da4710964f7852695de2da025290e24af6d8c281de5a0b902b7135fd9fd74d21'
/** What everybody knows, so that nobody owns its hash: nothing, small numbers, zeros, and the key of 1. */
const KNOWN: readonly Uint8Array[] = [
  ...[0, 1, 20, 32, 33, 64, 65].map((length) => Buffer.alloc(length)),
  ...[Buffer.of(1), Buffer.of(0x51), ONE, G.toBytes().subarray(1)],
  ...[G.toBytes(), G.toBytes(false), G.toBytes(false).subarray(1)],
]
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
let knownHashes: Set<string> | undefined
/** Of what is known: as it is, as a script that checks a key's signature, and each of these as a witness program within P2SH. */
const makeHashes = () =>
  new Set(
    KNOWN.flatMap((known) => [known, Buffer.of(known.length, ...known, 0xac)])
      .flatMap((code) => [code, Buffer.of(0, 20, ...hash160(code)), Buffer.of(0, 32, ...sha256(code))])
      .flatMap((code) => [hash160(code), sha256(code), sha256x2(code)].map(hexOf))
      .concat(hexOf(G.toBytes().subarray(1)), G_TWEAKED),
  )
/** The public key of an Ed25519 seed, by Node: the package took a third of the CPU of a start for two of them. */
function publicKeyOf(seed: Buffer): Buffer {
  // What stands before the 32 bytes of a seed in DER (RFC 8410).
  const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
  return createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32)
}
const KNOWN_POINTS = new Set(
  [publicKeyOf(Buffer.alloc(32)), publicKeyOf(ONE), ed25519.Point.BASE.toBytes()]
    .concat(ED25519_TORSION_SUBGROUP.map((point) => Buffer.from(point, 'hex')))
    .flatMap((key) => [addressFromBytes('SOLANA', key), addressFromBytes('STELLAR', key)]),
)

// Of 1BitcoinEaterAddressDontSendf59kuE and 1CounterpartyXXXXXXXXXXXXXXXUWLpVr.
const EATERS = new Set([
  '759d6677091e973b9e9d99f19c68fbf43e3f05f9',
  '818895f3dc2c178629d3d2d8fa3ec4a3f8179821',
])

const DEAD = new Set([
  '0x000000000000000000000000000000000000dead',
  '0xdead000000000000000042069420694206942069',
  ...KNOWN.map((key) => `0x${keccak256(key).slice(-40)}`),
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
const STELLAR_ID_MAX = 2n ** 64n - 1n

/**
 * The memo of a transaction on Stellar: `id:` and a number of 64 bits, `hash:` and 64 hexadecimal digits, or text. Undefined for
 * what begins with the name of a kind and is neither: as text, it would reach nobody, and the payment would succeed.
 */
export function stellarMemo(memo: string): { kind: 'id' | 'hash' | 'text'; value: string } | undefined {
  const [, id] = /^id:(0|[1-9][0-9]{0,19})$/.exec(memo) ?? []
  if (id !== undefined && BigInt(id) <= STELLAR_ID_MAX) return { kind: 'id', value: id }
  const [, hash] = /^hash:([0-9a-f]{64})$/.exec(memo) ?? []
  if (hash !== undefined) return { kind: 'hash', value: hash }
  return /^(?:memo_)?(?:id|hash|return|text)\s*:/i.test(memo) ? undefined : { kind: 'text', value: memo }
}

const NO_KEY = 'it is a contract of the network itself, or none, and nobody has its key'

export const ADDRESS_RULES: readonly DestinationRule[] = [
  {
    networks: EVM,
    refuses:
      'addresses that are used to burn (they end with `dEaD`, or begin with it), and those of keys that everybody knows',
    source: 'https://etherscan.io/address/0x000000000000000000000000000000000000dead',
    fault: ({ address }) =>
      DEAD.has(address.toLowerCase()) ? 'nobody has its key, or everybody' : undefined,
    example: { address: '0x000000000000000000000000000000000000dEaD' },
  },
  {
    networks: EVM,
    refuses:
      'addresses of 16 leading zero bytes: the zero address, precompiled contracts, and contracts of the network itself',
    source: 'https://github.com/ethereum/execution-specs',
    fault({ address }) {
      if (/^0x0{40}$/.test(address)) return 'nobody has the key of the zero address'
      return /^0x0{32}/.test(address) ? NO_KEY : undefined
    },
    example: { address: '0x0000000000000000000000000000000000000004' },
  },
  {
    networks: EVM,
    refuses: 'the 2,048 addresses that the OP Stack reserves for contracts of the network',
    source: 'https://specs.optimism.io/protocol/predeploys.html',
    fault: ({ address }) => (/^0x420{34}0[0-7][0-9a-f]{2}$/i.test(address) ? NO_KEY : undefined),
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
    networks: ['SOLANA', 'STELLAR'],
    refuses:
      'keys that everybody knows: of the seeds 0 and 1, the generator of the curve, zero and other points of small order',
    source: 'https://www.rfc-editor.org/rfc/rfc8032',
    fault({ address }, network) {
      const key = network === 'STELLAR' ? accountOf(address) : address
      return KNOWN_POINTS.has(key) ? 'nobody has its key, or everybody' : undefined
    },
    example: { address: '4zvwRjXUKGfvwnParsHAS3HuSVzV5cA4McphgmoCtajS' },
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
    refuses:
      'hashes of 20 or more zero bytes, those that were written by hand (`1BitcoinEater…`, `1Counterparty…`), and those of keys and scripts that everybody knows: empty, zeros, one, the key of 1',
    source: 'https://en.bitcoin.it/wiki/Proof_of_burn',
    fault({ address }, network) {
      const [, hash20, hash32] =
        /^(?:76a9|a9|aa|00|51)(?:14(.{40})|20(.{64}))/.exec(scriptOf(address, network)) ?? []
      const hash = hash20 ?? hash32 ?? ''
      return /0{40}/.test(hash) || EATERS.has(hash) || (knownHashes ??= makeHashes()).has(hash)
        ? 'nobody has its key, or everybody'
        : undefined
    },
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

/** The rules about memos of networks whose transfers carry one, in their order. */
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
    refuses:
      'a memo that begins with the name of a kind and a colon (`id:`, `hash:`, `return:`, `text:`), but `id:` and a number of 64 bits, and `hash:` and 64 hexadecimal digits in lower case',
    source:
      'https://developers.stellar.org/docs/learn/fundamentals/transactions/operations-and-transactions#memo',
    fault: ({ memo = '' }) =>
      stellarMemo(memo) === undefined
        ? 'names a kind, but is neither id: and a number from 0 to 18446744073709551615, nor hash: and 64 hexadecimal digits in lower case'
        : undefined,
    example: { address: '', memo: 'id:18446744073709551616' },
  },
  {
    networks: ['STELLAR'],
    refuses: `a memo of text of more than ${STELLAR_MEMO_BYTES_MAX} bytes`,
    source:
      'https://developers.stellar.org/docs/learn/fundamentals/transactions/operations-and-transactions#memo',
    fault: ({ memo = '' }) =>
      stellarMemo(memo)?.kind === 'text' && Buffer.byteLength(memo) > STELLAR_MEMO_BYTES_MAX
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
export function memoRefusal(
  network: CryptoNetwork,
  destination: CryptoDestination,
  { carriesNoMemo = false }: { carriesNoMemo?: boolean } = {},
): string | undefined {
  if (destination.memo === undefined) return undefined
  if (carriesNoMemo) return `cannot be sent over ${network}: its transfers have no memo`
  return firstFault(MEMO_RULES_OF.get(network)!, network, destination)
}

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
