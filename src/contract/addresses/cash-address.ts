import { bech32 } from '@scure/base'

/** What a cash address pays: the hash of a public key or of a script. */
export interface CashPayee {
  type: 'P2PKH' | 'P2SH'
  hash: Uint8Array
}

/*
 * The format "cashaddr" (https://reference.cash/protocol/blockchain/encoding/cashaddr): a prefix, a version byte with the
 * kind and the size of the hash, the hash, and a BCH checksum of 40 bits. Kinds 2 and 3 say that the wallet takes
 * tokens, too (https://cashtokens.org/docs/spec/chip, "CashAddress Token Support"). They pay the same scripts.
 */
const ALPHABET = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
const GENERATOR = [0x98f2bc8e61n, 0x79b76d99e2n, 0xf33e5fb3c4n, 0xae2eabe2a8n, 0x1e4f43e470n]
const KINDS = ['P2PKH', 'P2SH', 'P2PKH', 'P2SH'] as const
const CHECKSUM_WORDS = 8
// Bits 0 to 2 of the version byte: hashes of 20 and of 32 bytes. Other sizes have no script.
const SIZES: Readonly<Record<number, number>> = { 0: 20, 3: 32 }

/** Decodes an address in small letters, with its prefix. Undefined for anything else. */
export function decodeCashAddress(address: string): CashPayee | undefined {
  const [prefix = '', text = ''] = address.split(':', 2)
  const words = Array.from(text, (letter) => ALPHABET.indexOf(letter))
  if (words.includes(-1) || words.length <= CHECKSUM_WORDS || checksumOf(prefix, words) !== 0n)
    return undefined
  const [version, ...hash] = bytesOf(words.slice(0, -CHECKSUM_WORDS)) ?? [0xff]
  const type = KINDS[version! >> 3]
  const fits = hash.length === SIZES[version! & 7] && (type === 'P2SH' || hash.length === 20)
  return type !== undefined && fits ? { type, hash: Uint8Array.from(hash) } : undefined
}

/** The address of a payee, of the kind that does not ask for tokens. */
export function encodeCashAddress(prefix: string, { type, hash }: CashPayee): string {
  const version = KINDS.indexOf(type) * 8 + (hash.length === 32 ? 3 : 0)
  const words = bech32.toWords(Uint8Array.of(version, ...hash))
  const checksum = checksumOf(prefix, [...words, ...Array<number>(CHECKSUM_WORDS).fill(0)])
  const last = Array.from({ length: CHECKSUM_WORDS }, (_, index) =>
    Number((checksum >> BigInt(35 - 5 * index)) & 31n),
  )
  return `${prefix}:${[...words, ...last].map((word) => ALPHABET[word]).join('')}`
}

/** The remainder of prefix and words by the generator of the code: zero for words that end with their checksum. */
function checksumOf(prefix: string, words: readonly number[]): bigint {
  let remainder = 1n
  for (const word of [...Array.from(prefix, (letter) => letter.charCodeAt(0) & 31), 0, ...words]) {
    const top = remainder >> 35n
    remainder = ((remainder & 0x07_ffff_ffffn) << 5n) ^ BigInt(word)
    GENERATOR.forEach((term, bit) => {
      if ((top >> BigInt(bit)) & 1n) remainder ^= term
    })
  }
  return remainder ^ 1n
}

/** The bytes of 5-bit words; undefined where the bits that pad the last word are not zero. */
function bytesOf(words: number[]): Uint8Array | undefined {
  try {
    return bech32.fromWords(words)
  } catch {
    return undefined
  }
}
