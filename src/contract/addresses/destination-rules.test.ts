import { Buffer } from 'node:buffer'
import { ed25519 } from '@noble/curves/ed25519.js'
import { bech32m } from '@scure/base'
import { Address } from '@scure/btc-signer/payment.js'
import { hash160, pubECDSA, pubSchnorr, sha256, sha256x2 } from '@scure/btc-signer/utils.js'
import { StrKey } from '@stellar/stellar-base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyText } from '../../../test/any-text.ts'
import { runs } from '../../../test/seed.ts'
import { CRYPTO_NETWORKS, NETWORKS } from '../assets/catalogue.ts'
import { addressFromBytes, canonicalAddress } from './addresses.ts'
import { encodeCashAddress } from './cash-address.ts'
import { BANK_RULES } from '../bank-identifiers.ts'
import { ADDRESS_RULES, addressRefusal, MEMO_RULES, memoRefusal, stellarMemo } from './destination-rules.ts'

const EVM = CRYPTO_NETWORKS.filter((network) => NETWORKS[network].family === 'evm')
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length })
const addressOf = (network: (typeof CRYPTO_NETWORKS)[number], text: string) => {
  const canonical = canonicalAddress(network, text, { testNetworks: true })
  expect(canonical, text).toBeDefined()
  return canonical!
}

test('every rule refuses its example, and docs/reference/refused-destinations.md shows it', async () => {
  for (const rule of ADDRESS_RULES) {
    const address = addressOf(rule.networks[0]!, rule.example.address)
    expect(addressRefusal(rule.networks[0]!, { ...rule.example, address }), rule.refuses).toBeDefined()
    expect(rule.fault({ ...rule.example, address }, rule.networks[0]!), rule.refuses).toBeDefined()
  }
  for (const rule of MEMO_RULES)
    expect(memoRefusal(rule.networks.at(-1)!, rule.example), rule.refuses).toBe(
      rule.fault(rule.example, rule.networks.at(-1)!),
    )

  const table = (columns: string[], rows: string[][]) =>
    [columns, columns.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n')
  const sourceOf = (url: string) => `[${new URL(url).host}](${url})`
  const networksOf = (networks: readonly string[]) =>
    networks.length === CRYPTO_NETWORKS.length
      ? 'all'
      : networks.length === EVM.length
        ? 'the EVM networks'
        : networks.join(', ')
  const shown = (text: string) =>
    `\`${text.replace(/[\u200b]/g, (hidden) => `\\u${hidden.charCodeAt(0).toString(16)}`)}\``
  const page = `# Refused destinations

Money sent to these destinations would be lost, or reach nobody. They are refused with 400 when a payment is asked for, a fee is quoted, or a destination
is registered, on simulated and on real networks alike. Beside them, a real network refuses the hot wallet and the contracts of its configured
tokens. A test writes this page from \`src/contract/addresses/destination-rules.ts\` and \`src/contract/bank-identifiers.ts\`.

## Addresses

${table(
  ['networks', 'refused', 'example', 'source'],
  ADDRESS_RULES.map(({ networks, refuses, example, source }) => [
    networksOf(networks),
    refuses,
    shown(example.address) + (example.asset === undefined ? '' : ` for ${example.asset}`),
    sourceOf(source),
  ]),
)}

## Memos

${table(
  ['networks', 'refused', 'example', 'source'],
  MEMO_RULES.map(({ networks, refuses, example: { address, memo }, source }) => [
    networksOf(networks),
    refuses,
    (memo === '' ? 'the empty text' : shown(memo!)) + (address === '' ? '' : ` to ${shown(address)}`),
    sourceOf(source),
  ]),
)}

## Bank identifiers

Of fiat accounts, and of the platform's own bank account (\`BURSAR_BANK_FILE\`). A \`routing_number_type\` is ABA or SWIFT. Without it, digits are an ABA number.

${table(
  ['identifier', 'refused', 'example', 'source'],
  BANK_RULES.map(({ identifier, refuses, example, source }) => [
    identifier,
    refuses,
    shown(example),
    sourceOf(source),
  ]),
)}
`
  await expect(page, 'a rule has changed; run this test with --update').toMatchFileSnapshot(
    '../../../docs/reference/refused-destinations.md',
  )
})

describe('addresses', () => {
  test.each(CRYPTO_NETWORKS)('of any key on %s are not refused', (network) => {
    fc.assert(
      fc.property(
        bytes(32).filter((key) => key.slice(0, 20).some((byte) => byte > 1)),
        (key) => {
          expect(addressRefusal(network, { address: addressFromBytes(network, key) })).toBeUndefined()
        },
      ),
      runs(400),
    )
  })

  test('that are small, or in the range of the OP Stack, are refused on each EVM network in each spelling', () => {
    const small = bytes(4).map((tail) => `0x${'0'.repeat(32)}${Buffer.from(tail).toString('hex')}`)
    const reserved = fc.nat(0x7ff).map((at) => `0x42${at.toString(16).padStart(38, '0')}`)
    fc.assert(
      fc.property(
        fc.constantFrom(...EVM),
        fc.oneof(small, reserved),
        fc.boolean(),
        (network, text, upper) => {
          const spelling = upper ? `0x${text.slice(2).toUpperCase()}` : text
          expect(addressRefusal(network, { address: addressOf(network, spelling) })).toMatch(
            /nobody has (?:its|the) key/,
          )
        },
      ),
      runs(400),
    )
    expect(addressRefusal('BASE', { address: '0x4200000000000000000000000000000000000800' })).toBeUndefined()
  })

  test('of a token contract are refused on each EVM network, on its own as the network itself says it', () => {
    const says = (network: (typeof EVM)[number]) =>
      addressRefusal(network, { address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' })
    expect(says('BASE')).toBe('it is the contract of USDC, which keeps what is sent to it')
    expect(says('INK')).toBe('it is the contract of USDC on BASE, and nobody has its key')
  })

  test('of an issuer on STELLAR are refused for its asset alone, in each multiplexed form, too', () => {
    const issuer = 'GDQE7IXJ4HUHV6RQHIUPRJSEZE4DRS5WY577O2FY6YQ5LVWZ7JZTU2V5'
    const says = (address: string, asset?: string) => addressRefusal('STELLAR', { address, asset })
    const why = 'it is the issuer of PYUSD, which destroys what is sent to it'
    expect(says(issuer, 'PYUSD')).toBe(why)
    for (const asset of ['XLM', undefined]) expect(says(issuer, asset)).toBeUndefined()
    fc.assert(
      fc.property(bytes(8), (id) => {
        const key = StrKey.decodeEd25519PublicKey(issuer)
        const multiplexed = StrKey.encodeMed25519PublicKey(Buffer.concat([key, id]))
        expect(says(multiplexed, 'PYUSD')).toBe(why)
        expect(says(multiplexed, 'XLM')).toBeUndefined()
        const ofZero = StrKey.encodeMed25519PublicKey(Buffer.concat([Buffer.alloc(32), id]))
        expect(says(ofZero)).toBe('nobody has its key, or everybody')
      }),
      runs(100),
    )
  })

  test('of taproot are refused where their 32 bytes are no x of the curve', () => {
    const prime = 2n ** 256n - 2n ** 32n - 977n
    const power = (base: bigint, exponent: bigint): bigint => {
      let [result, square] = [1n, base % prime]
      for (let rest = exponent; rest > 0n; rest >>= 1n) {
        if (rest & 1n) result = (result * square) % prime
        square = (square * square) % prime
      }
      return result
    }
    fc.assert(
      fc.property(bytes(32), fc.constantFrom('bc', 'tb'), (key, prefix) => {
        const x = BigInt(`0x${Buffer.from(key).toString('hex')}`)
        const isOnCurve = x < prime && power(x ** 3n + 7n, (prime - 1n) / 2n) === 1n
        const address = bech32m.encode(prefix, [1, ...bech32m.toWords(key)])
        expect(addressRefusal('BITCOIN', { address }) === undefined, address).toBe(isOnCurve)
      }),
      runs(200),
    )
  })

  test('of keys and scripts that everybody knows are refused in each form', () => {
    const one = Buffer.alloc(32).fill(1, 31)
    const [compressed, full] = [pubECDSA(one), pubECDSA(one, false)]
    const keys = [Buffer.of(), Buffer.of(0), Buffer.of(1), Buffer.alloc(33), compressed, full]
    const scripts = keys.flatMap((key) => {
      const [hash, check] = [hash160(key), Buffer.of(key.length, ...key, 0xac)]
      const nested = [
        Buffer.of(0, 20, ...hash),
        Buffer.of(0, 32, ...sha256(check)),
        Buffer.of(0, 32, ...sha256(key)),
      ]
      return [
        ...[key, check, ...nested].map((script) => ({ type: 'sh' as const, hash: hash160(script) })),
        ...[
          { type: 'pkh' as const, hash },
          { type: 'wpkh' as const, hash },
        ],
        ...[key, check].map((script) => ({ type: 'wsh' as const, hash: sha256(script) })),
      ]
    })
    for (const script of [...scripts, { type: 'tr' as const, pubkey: pubSchnorr(one) }]) {
      const address = Address().encode(script)
      expect(addressRefusal('BITCOIN', { address }), address).toMatch(/nobody has/)
    }
    expect(addressRefusal('BITCOIN', { address: '14p5cGy5DZmtNMQwTQiytBvxMVuTmFMSyU' })).toMatch(/nobody has/)
  })

  test.each([
    ['BITCOIN', '1111111111111111111114oLvT2'],
    ['BITCOIN', 'bc1qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq9e75rs'],
    ['BITCOIN', '1CounterpartyXXXXXXXXXXXXXXXUWLpVr'],
    // The key of 1 on each chain of the family, hashed, and an empty script as the hash of BITCOIN_CASH with 32 bytes.
    ['BITCOIN', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'],
    ['BITCOIN', '1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH'],
    ['BITCOIN', 'bc1pmfr3p9j00pfxjh0zmgp99y8zftmd3s5pmedqhyptwy6lm87hf5sspknck9'],
    ['LITECOIN', 'ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9'],
    ['BITCOIN_CASH', encodeCashAddress('bitcoincash', { type: 'P2SH', hash: sha256x2(Buffer.of()) })],
    ['ETHEREUM', '0x7E5F4552091A69125d5DfCb7b8C2659029395Bdf'],
    ['ETHEREUM', '0xdcc703c0e500b653ca82273b7bfad8045d85a470'],
    ['SOLANA', addressFromBytes('SOLANA', ed25519.Point.BASE.toBytes())],
    ['STELLAR', addressFromBytes('STELLAR', ed25519.getPublicKey(new Uint8Array(32)))],
    ['LITECOIN', addressFromBytes('LITECOIN', new Uint8Array(32))],
    ['BITCOIN_CASH', addressFromBytes('BITCOIN_CASH', new Uint8Array(32))],
    ['SOLANA', '11111111111111111111111111111111'],
    ['SOLANA', 'SysvarC1ock11111111111111111111111111111111'],
    ['SOLANA', 'So11111111111111111111111111111111111111112'],
    ['SOLANA', 'Vote111111111111111111111111111111111111111'],
  ] as const)('are refused: %s %s', (network, text) => {
    expect(addressRefusal(network, { address: addressOf(network, text) })).toBeDefined()
  })
})

describe('memos', () => {
  const memoOf = (memo: string) => memoRefusal('SOLANA', { address: '', memo })

  test('that show what they are pass; space around them and hidden characters do not', () => {
    const visible = anyText({ maxLength: 60 }).filter(
      (text) => text !== '' && !/^\s|\s$|[\p{C}\p{Zl}\p{Zp}]/u.test(text),
    )
    const hidden = fc.constantFrom('\u200b', '\u202e', '\ufeff', '\u00ad', '\n', '\0', '\u2028', '\u{e0041}')
    fc.assert(
      fc.property(visible, hidden, fc.constantFrom(' ', '\t', '\u3000'), (memo, character, space) => {
        expect(memoOf(memo)).toBeUndefined()
        for (const spaced of [space + memo, memo + space]) expect(memoOf(spaced)).toMatch(/^begins or ends/)
        expect(memoOf(`1${character}${memo}`)).toMatch(/^has a character that nobody sees: U\+[0-9A-F]{4}/)
      }),
      runs(400),
    )
    expect(memoOf('')).toBe('is empty: leave it out')
  })

  test('on STELLAR that name a kind are of that kind, or refused; none of them is text', () => {
    const named = fc
      .tuple(
        fc.constantFrom('id', 'ID', 'Id', 'hash', 'Hash', 'return', 'text', 'memo_id', 'MEMO_HASH'),
        fc.constantFrom(':', ' :', ': '),
        fc.oneof(
          fc.bigInt({ min: -1n, max: 2n ** 65n }).map(String),
          fc.constantFrom(
            '',
            '0',
            '00',
            '0123',
            '5e3',
            '0x5',
            '１２',
            '18446744073709551615',
            '18446744073709551616',
          ),
          bytes(32).map((hash) => Buffer.from(hash).toString('hex')),
          anyText({ maxLength: 8 }),
        ),
      )
      .map((parts) => parts.join(''))
    fc.assert(
      fc.property(named, (memo) => {
        const [, id] = /^id:([0-9]+)$/.exec(memo) ?? []
        const isId = id !== undefined && String(BigInt.asUintN(64, BigInt(id))) === id
        const kind = isId ? 'id' : /^hash:[0-9a-f]{64}$/.test(memo) ? 'hash' : undefined
        expect(stellarMemo(memo)?.kind, memo).toBe(kind)
        if (kind === undefined) expect(memoRefusal('STELLAR', { address: '', memo }), memo).toBeDefined()
        else expect(memoRefusal('STELLAR', { address: '', memo }), memo).toBeUndefined()
      }),
      runs(1000),
    )
    for (const text of ['42', 'id 42', 'identity: 42', 'hash', 'my id:5'])
      expect(stellarMemo(text)).toEqual({ kind: 'text', value: text })
  })
})
