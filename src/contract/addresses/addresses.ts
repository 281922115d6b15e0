import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { Address as bitcoinAddress, OutScript } from '@scure/btc-signer/payment.js'
import { type BTC_NETWORK, NETWORK, TEST_NETWORK } from '@scure/btc-signer/utils.js'
import { getAddressDecoder, isAddress as isSolanaAddress } from '@solana/addresses'
import type { StrKey as StellarStrKey } from '@stellar/stellar-base'
// @ts-expect-error: no types for this module alone; the whole package takes 70 to 125 ms to load, this 7
import { StrKey as untypedStrKey } from '@stellar/stellar-base/lib/strkey.js'
import { bytesToHex, getAddress } from 'viem/utils'
import { CRYPTO_NETWORKS, type CryptoNetwork } from '../assets/catalogue.ts'
import { decodeCashAddress, encodeCashAddress, type CashPayee } from './cash-address.ts'

const StrKey = untypedStrKey as typeof StellarStrKey

/** A kind of address: how to check an address, and how to write one for given bytes. */
interface AddressFormat {
  /** A description of an address of the network. */
  form: string
  /** Text of this form that is not an address has a wrong checksum. Absent if addresses have no checksum. */
  checksummed?: RegExp
  /** The script of an output that pays an address, on networks with scripts; undefined for anything but an address. */
  script?(address: string): Uint8Array | undefined
  /** As `addressOfScript`. */
  ofScript?(script: Uint8Array, isTest: boolean): string
  canonical(address: string, testNetworks: boolean): string | undefined
  /** The main-network address that holds these 32 bytes, or only the first of them where the format is shorter. */
  write(bytes: Uint8Array): string
}

// The longest accepted address has 73 characters: P2SH of 32 bytes on BITCOIN_CASH, with its prefix.
const LENGTH_MAX = 128

/** Well-known forms of text that are no address Bursar can pay, each with its description. */
const OTHER_FORMS: readonly [RegExp, string][] = [
  [/^(?:ltc|tltc|rltc)mweb1/i, 'an MWEB address of Litecoin: ask for one that begins with ltc1, L or M'],
  [/^t?sp1q/i, 'a silent payment address (BIP-352): ask for one that begins with bc1, 1 or 3'],
  [
    /^(?:bc|tb|bcrt|ltc|tltc|rltc)1[zry9x8gf2tvdw0s][0-9a-z]+$/i,
    'of a witness version from 2 on, which has no owner yet: ask for one of version 0 or 1 (bc1q, bc1p, ltc1q, ltc1p)',
  ],
  [/^ln(?:bc|tb|ltc)/i, 'a Lightning invoice: ask for an address of the chain'],
  [/^C[A-Z2-7]{55}$/, 'a contract of Stellar: ask for an account, which begins with G or M'],
  [/^[^@\s]+\*[^@\s]+\.[a-z]+$/i, 'a federated address of Stellar: send the account that it stands for'],
  [/^[^@\s:]+\.(?:eth|sol|crypto|base)$/i, 'a name: send the address that it stands for'],
]

// Litecoin's chainparams.cpp. Its old P2SH prefix (0x05, '3...'; 0xc4, '2...' on test networks) is left out on
// purpose: the same string is a Bitcoin address, and the two cannot be told apart.
const LITECOIN: BTC_NETWORK = { bech32: 'ltc', pubKeyHash: 0x30, scriptHash: 0x32, wif: 0xb0 }
const LITECOIN_TEST: BTC_NETWORK = { bech32: 'tltc', pubKeyHash: 0x6f, scriptHash: 0x3a, wif: 0xef }

const EVM = evm()

const FORMATS: Readonly<Record<CryptoNetwork, AddressFormat>> = {
  BITCOIN: bitcoin(NETWORK, [TEST_NETWORK, { ...TEST_NETWORK, bech32: 'bcrt' }], {
    form: 'bc1 and 39 to 59 letters and digits, or 26 to 35 of them that begin with 1 or 3',
    checksummed: /^(?:(?:bc|tb|bcrt)1[0-9a-z]{39,59}|[13mn2][1-9A-HJ-NP-Za-km-z]{25,34})$/i,
  }),
  ETHEREUM: EVM,
  BITCOIN_CASH: bitcoinCash('bitcoincash', ['bchtest', 'bchreg']),
  LITECOIN: bitcoin(LITECOIN, [LITECOIN_TEST, { ...LITECOIN_TEST, bech32: 'rltc' }], {
    form: 'ltc1 and 39 to 59 letters and digits, or 26 to 35 of them that begin with L or M',
    checksummed: /^(?:(?:ltc|tltc|rltc)1[0-9a-z]{39,59}|[LMmnQ][1-9A-HJ-NP-Za-km-z]{25,34})$/,
  }),
  SOLANA: solana(),
  POLYGON_POS: EVM,
  BASE: EVM,
  ARBITRUM_ONE: EVM,
  STELLAR: stellar(),
  INK: EVM,
  XLAYER: EVM,
}

/**
 * The canonical form of a destination address on a network (API behaviour, Crypto withdrawals); undefined where the
 * text is no address of that network. Checksums are verified; never throws. Addresses of test networks are accepted
 * only where allowed (sandbox mode); on EVM networks, Solana and Stellar they look the same as any other. Whether money
 * sent there would be lost is another question (destination-rules.ts).
 */
export function canonicalAddress(
  network: CryptoNetwork,
  address: string,
  allow: { testNetworks: boolean },
): string | undefined {
  if (address.length > LENGTH_MAX) return undefined
  return FORMATS[network].canonical(address, allow.testNetworks)
}

/**
 * Describes the fault of an address that `canonicalAddress` does not accept: it belongs to a test network or another
 * network, its checksum is wrong, or it is not an address.
 */
export function addressFault(
  network: CryptoNetwork,
  address: string,
  allow: { testNetworks: boolean },
): string {
  const { form, checksummed } = FORMATS[network]
  if (address.length > LENGTH_MAX) return `it must be ${form}`
  const canonical = FORMATS[network].canonical(address, true)
  if (canonical !== undefined && !allow.testNetworks) return 'it is an address of a test network'
  const other = CRYPTO_NETWORKS.find(
    (name) => FORMATS[name] !== FORMATS[network] && FORMATS[name].canonical(address, true) !== undefined,
  )
  if (other !== undefined) return `it is an address of ${other === 'ETHEREUM' ? 'an EVM network' : other}`
  const otherForm = OTHER_FORMS.find(([pattern]) => pattern.test(address))
  if (otherForm !== undefined) return `it is ${otherForm[1]}`
  // Payment links: BIP-21, EIP-681, EIP-3770, SEP-7, Solana Pay.
  const [link] = /^[a-z][a-z0-9+.-]*:/i.exec(address) ?? []
  if (link !== undefined && !/^(?:bitcoincash|bchtest|bchreg):[^?]*$/i.test(address))
    return `it must be the address alone, without "${link}" and without "?" and what follows`
  if (checksummed?.test(address))
    return FORMATS[network] === EVM
      ? 'its capitals do not fit its checksum (EIP-55); copy it again'
      : 'its checksum is wrong; copy it again'
  return `it must be ${form}`
}

/** The script of an output that pays an address of the Bitcoin family, of a main or test network. */
export const outputScriptOf = (network: CryptoNetwork, address: string): Uint8Array | undefined =>
  FORMATS[network].script?.(address)

/** The address of a script, on a main or test network. Throws for a script without one. */
export const addressOfScript = (network: CryptoNetwork, script: Uint8Array, isTest: boolean): string =>
  FORMATS[network].ofScript!(script, isTest)

/**
 * The canonical main-network address that holds these 32 bytes, or only the first of them where the network's addresses
 * are shorter: P2WPKH on BITCOIN and LITECOIN, P2PKH on BITCOIN_CASH, an account elsewhere. Simulated networks use such
 * addresses: nobody has a key to an address made from arbitrary bytes.
 */
export function addressFromBytes(network: CryptoNetwork, bytes: Uint8Array): string {
  assert(bytes.length === 32, 'an address is made from 32 bytes')
  return FORMATS[network].write(bytes)
}

function bitcoin(
  main: BTC_NETWORK,
  test: BTC_NETWORK[],
  words: Pick<AddressFormat, 'form' | 'checksummed'>,
): AddressFormat {
  const mainCoder = bitcoinAddress(main)
  const testCoders = test.map((network) => bitcoinAddress(network))
  return {
    ...words,
    canonical(address, testNetworks) {
      for (const coder of testNetworks ? [mainCoder, ...testCoders] : [mainCoder]) {
        const decoded = attempt(() => coder.decode(address))
        // P2PKH, P2SH, P2WPKH, P2WSH and P2TR. Pay-to-anchor can be spent by anyone.
        if (decoded !== undefined && decoded.type !== 'p2a') return coder.encode(decoded)
      }
      return undefined
    },
    script(address) {
      for (const coder of [mainCoder, ...testCoders]) {
        const decoded = attempt(() => coder.decode(address))
        // A taproot address whose bytes are no public key has no script.
        if (decoded !== undefined) return attempt(() => OutScript.encode(decoded))
      }
      return undefined
    },
    ofScript: (script, isTest) => (isTest ? testCoders[0]! : mainCoder).encode(OutScript.decode(script)),
    write: (bytes) => mainCoder.encode({ type: 'wpkh', hash: bytes.slice(0, 20) }),
  }
}

function bitcoinCash(main: string, test: string[]): AddressFormat {
  // Bitcoin Cash can spend P2PKH (20 bytes) and P2SH (20 or 32 bytes). The first character names the type: 'q' for P2PKH and
  // 'p' for P2SH, or 'z' and 'r' for wallets that take tokens, too. The canonical form is the one without tokens, so that
  // both spellings are one destination. Legacy base58 addresses are refused: the same string is a Bitcoin address.
  const SPENDABLE = /^(?:[a-z]+:)?(?:[qpzr][0-9a-z]{41}|[pr][0-9a-z]{60})$/i
  const decode = (address: string, prefixes: string[]): { prefix: string; payee: CashPayee } | undefined => {
    const lowerCase = address.toLowerCase()
    if (address !== lowerCase && address !== address.toUpperCase()) return undefined
    if (!SPENDABLE.test(address)) return undefined
    for (const prefix of prefixes) {
      const full = lowerCase.includes(':') ? lowerCase : `${prefix}:${lowerCase}`
      const payee = full.startsWith(`${prefix}:`) ? decodeCashAddress(full) : undefined
      if (payee !== undefined) return { prefix, payee }
    }
    return undefined
  }
  return {
    form: 'q and 41 letters and digits, or p and 41 or 60 of them, after bitcoincash: or without it',
    checksummed: SPENDABLE,
    canonical(address, testNetworks) {
      const decoded = decode(address, testNetworks ? [main, ...test] : [main])
      return decoded && encodeCashAddress(decoded.prefix, decoded.payee)
    },
    script(address) {
      const payee = decode(address, [main, ...test])?.payee
      return payee && cashScript(payee)
    },
    write: (bytes) => encodeCashAddress(main, { type: 'P2PKH', hash: bytes.slice(0, 20) }),
  }
}

/** P2PKH: DUP HASH160 <20> EQUALVERIFY CHECKSIG. P2SH: HASH160 <20> EQUAL, or HASH256 <32> EQUAL. */
function cashScript({ type, hash }: CashPayee): Uint8Array {
  const [before, after] =
    type === 'P2PKH'
      ? [
          [0x76, 0xa9],
          [0x88, 0xac],
        ]
      : hash.length === 32
        ? [[0xaa], [0x87]]
        : [[0xa9], [0x87]]
  return Uint8Array.from([...before, hash.length, ...hash, ...after])
}

function evm(): AddressFormat {
  const DIGITS = /^0x[0-9a-fA-F]{40}$/
  return {
    form: '0x and 40 hexadecimal digits',
    checksummed: DIGITS,
    canonical(address) {
      if (!DIGITS.test(address)) return undefined
      const checksummed = getAddress(address)
      // An address in one case only carries no checksum (EIP-55).
      const withoutChecksum = /^0x(?:[0-9a-f]{40}|[0-9A-F]{40})$/.test(address)
      return withoutChecksum || address === checksummed ? checksummed : undefined
    },
    write: (bytes) => getAddress(bytesToHex(bytes.slice(0, 20))),
  }
}

function solana(): AddressFormat {
  const decoder = getAddressDecoder()
  return {
    form: '32 bytes in base58: 32 to 44 letters and digits',
    // Off-curve addresses are accepted: vaults of multisig programs, among others, have them.
    canonical: (address) => (isSolanaAddress(address) ? address : undefined),
    write: (bytes) => decoder.decode(bytes),
  }
}

function stellar(): AddressFormat {
  return {
    form: 'G and 55 capitals and digits, or M and 68 of them',
    checksummed: /^(?:G[A-Z2-7]{55}|M[A-Z2-7]{68})$/,
    // Accounts 'G...' and multiplexed accounts 'M...'. A contract 'C...' cannot receive a payment, only a call.
    canonical: (address) =>
      StrKey.isValidEd25519PublicKey(address) || StrKey.isValidMed25519PublicKey(address)
        ? address
        : undefined,
    write: (bytes) => StrKey.encodeEd25519PublicKey(Buffer.from(bytes)),
  }
}

function attempt<T>(decode: () => T): T | undefined {
  try {
    return decode()
  } catch {
    return undefined
  }
}
