/*
 * Known-good addresses come from the published test vectors of BIP-13, BIP-173, BIP-350, Bitcoin Core, Litecoin Core,
 * the cashaddr specification, EIP-55 and Stellar's SEP-23, and from well-known accounts.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyText } from '../../../test/any-text.ts'
import { placesOf, runs } from '../../../test/seed.ts'
import { CRYPTO_NETWORKS, type CryptoNetwork, NETWORKS } from '../assets/catalogue.ts'
import { addressFault, addressFromBytes, canonicalAddress, outputScriptOf } from './addresses.ts'
import { MAGIC_OUTCOMES, magicAddress, magicOutcome } from '../../networks/simulated/magic-addresses.ts'
import { countCpu } from '../../../test/cpu-time.ts'

const LIVE = { testNetworks: false }
const SANDBOX = { testNetworks: true }

const EVM_NETWORKS = CRYPTO_NETWORKS.filter((network) => NETWORKS[network].family === 'evm')
const EIP55 = [
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed',
  '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB',
  '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
]

const MAIN: Record<CryptoNetwork, readonly string[]> = {
  BITCOIN: [
    '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa', // P2PKH
    '3P14159f73E4gFr7JterCCQh9QjiTjiZrG', // P2SH
    'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4', // P2WPKH
    'bc1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qccfmv3', // P2WSH
    'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0', // P2TR
  ],
  LITECOIN: [
    'LT2KVaAy1ppRuxRgrS5RNU3vBsy7RibPeA', // P2PKH
    'MHrYRxAiMNBTku3eoDHwhA1LQGDjUStZW2', // P2SH
    'ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9', // P2WPKH
    'ltc1q3s2ujuag0k7k6cy6kflapq6acsuug4t8k3pq5dzps7c9p7uq5t7ss8xhgy', // P2WSH
    'ltc1pmy787t5td4sn8eayl97apvclzs6sju5sa73c690e2u05t8c53m6s4wahc4', // P2TR
  ],
  BITCOIN_CASH: [
    'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a', // P2PKH
    'bitcoincash:qr95sy3j9xwd2ap32xkykttr4cvcu7as4y0qverfuy',
    'bitcoincash:ppm2qsznhks23z7629mms6s4cwef74vcwvn0h829pq', // P2SH
  ],
  ETHEREUM: EIP55,
  POLYGON_POS: EIP55,
  BASE: EIP55,
  ARBITRUM_ONE: EIP55,
  INK: EIP55,
  XLAYER: EIP55,
  SOLANA: [
    'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA', // token program
    'So11111111111111111111111111111111111111112', // wrapped SOL
    '2b1kV6DkPAnxd5ixfnxCpjxmKwqjjaYmCZfHsFu24GXo', // PYUSD mint
  ],
  STELLAR: [
    'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZ',
    'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ', // multiplexed, id 0
    'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAJLK', // multiplexed, id 2^63
  ],
}

// On networks whose test networks have addresses of their own.
const TEST: Partial<Record<CryptoNetwork, readonly string[]>> = {
  BITCOIN: [
    'mipcBbFg9gMiCh81Kj8tqqdgoZub1ZJRfn',
    '2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc',
    'tb1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3q0sl5k7',
    'tb1pqqqqp399et2xygdj5xreqhjjvcmzhxw4aywxecjdzew6hylgvsesf3hn0c',
    'bcrt1p2uu43ca9hzyjqjtvjl0xehx47rjj8szclsc2kg98utfq678z7n8qftt3gh',
  ],
  LITECOIN: [
    'mwXn5Vhicdav8Av3KMokx4YNuHoGRKxtWs',
    'QXaUgLHkZcbJb2j5XgMYzY8cF9YM48Y81Z',
    'tltc1q54h36eykleulhfxr3paq9k80fkys77k9z5gdk0',
    'tltc1qs3ym3gltz2uaw8ttrhg779w6k39x2yn5yytnttvhvkpzcxmh6vuqeswq3q',
    'rltc1qj08ys4ct2hzzc2hcz6h2hgrvlmsjynawf4nr3r',
  ],
  BITCOIN_CASH: [
    'bchtest:pr6m7j9njldwwzlg9v7v53unlr4jkmx6eyvwc0uz5t',
    'bchtest:pvch8mmxy0rtfrlarg7ucrxxfzds5pamg73h7370aa87d80gyhqxq7fqng6m6', // P2SH of 32 bytes
    'bchreg:qpttdv3qg2usm4nm7talhxhl05mlhms3ys43u76rn0',
  ],
}

const mainVectors = CRYPTO_NETWORKS.flatMap((network) =>
  MAIN[network].map((address) => [network, address] as const),
)
const testVectors = CRYPTO_NETWORKS.flatMap((network) =>
  (TEST[network] ?? []).map((address) => [network, address] as const),
)

describe('known-good addresses', () => {
  test.each(mainVectors)('%s %s is canonical', (network, address) => {
    expect(canonicalAddress(network, address, LIVE)).toBe(address)
    expect(canonicalAddress(network, address, SANDBOX)).toBe(address)
  })

  test.each(testVectors)('%s %s is accepted where test networks are', (network, address) => {
    expect(canonicalAddress(network, address, LIVE)).toBeUndefined()
    expect(canonicalAddress(network, address, SANDBOX)).toBe(address)
  })
})

describe('one character changed', () => {
  // Cashaddr's checksum is slow: all places of all addresses take a second.
  const isWhole = process.env.CI !== undefined
  // Solana addresses carry no checksum: another valid character makes another valid address.
  test.each([...mainVectors, ...testVectors].filter(([network]) => network !== 'SOLANA'))(
    '%s %s is refused with one character replaced, dropped or doubled, at every place',
    (network, address) => {
      const alphabet = new Set(address)
      const accepted: string[] = []
      for (const at of isWhole ? address.split('').keys() : placesOf(address.length)) {
        const [before, after] = [address.slice(0, at), address.slice(at + 1)]
        // A quarter of the characters at each place, another quarter at the next.
        const others = [...alphabet, '0', '1', 'I', 'l', 'O', 'b'].filter(
          (other, index) => other !== address[at] && index % 4 === at % 4,
        )
        const changed = [...others.map((other) => before + other + after), before + after]
        changed.push(before + address[at]! + address[at]! + after)
        accepted.push(...changed.filter((text) => canonicalAddress(network, text, SANDBOX) !== undefined))
      }
      expect(accepted).toEqual([])
    },
  )

  test.each(EVM_NETWORKS.flatMap((network) => EIP55.map((address) => [network, address] as const)))(
    '%s %s is refused with the case of one letter flipped',
    (network, address) => {
      for (let at = 2; at < address.length; at++) {
        const character = address[at]!
        const flipped = /[a-f]/.test(character) ? character.toUpperCase() : character.toLowerCase()
        if (flipped === character) continue
        const text = address.slice(0, at) + flipped + address.slice(at + 1)
        expect(canonicalAddress(network, text, SANDBOX)).toBeUndefined()
      }
    },
  )
})

describe('addresses of other networks', () => {
  const families = ['BITCOIN', 'BITCOIN_CASH', 'LITECOIN', 'ETHEREUM', 'SOLANA', 'STELLAR'] as const

  test.each(families)('are refused on %s', (network) => {
    for (const [other, address] of mainVectors) {
      if (other === network || (network === 'ETHEREUM' && NETWORKS[other].family === 'evm')) continue
      expect(canonicalAddress(network, address, SANDBOX), address).toBeUndefined()
    }
  })

  // Old forms that cannot be told from Bitcoin's: base58 on Bitcoin Cash, P2SH with Bitcoin's prefix on Litecoin.
  test.each([
    ['BITCOIN_CASH', '1BpEi6DfDAUFd7GtittLSdBeYJvcoaVggu'],
    ['BITCOIN_CASH', '3CWFddi6m4ndiGyKqzYvsFYagqDLPVMTzC'],
    ['LITECOIN', '3CWFddi6m4ndiGyKqzYvsFYagqDLPVMTzC'],
    ['LITECOIN', '2MzQwSSnBHWHqSAqtTVQ6v47XtaisrJa1Vc'],
  ] as const)('%s does not take %s, a Bitcoin address', (network, address) => {
    expect(canonicalAddress('BITCOIN', address, SANDBOX)).toBe(address)
    expect(canonicalAddress(network, address, SANDBOX)).toBeUndefined()
  })
})

describe('other spellings of the same address', () => {
  test.each([
    ['BITCOIN', 'BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'],
    [
      'BITCOIN_CASH',
      'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a',
      'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a',
    ],
    [
      'BITCOIN_CASH',
      'BITCOINCASH:QPM2QSZNHKS23Z7629MMS6S4CWEF74VCWVY22GDX6A',
      'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a',
    ],
    [
      'BITCOIN_CASH',
      'QPM2QSZNHKS23Z7629MMS6S4CWEF74VCWVY22GDX6A',
      'bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a',
    ],
    ['ETHEREUM', EIP55[0]!.toLowerCase(), EIP55[0]!],
    ['ETHEREUM', `0x${EIP55[0]!.slice(2).toUpperCase()}`, EIP55[0]!],
  ] as const)('%s %s is %s', (network, spelling, canonical) => {
    expect(canonicalAddress(network, spelling, LIVE)).toBe(canonical)
  })

  // CashTokens: an address that takes tokens pays the same script.
  test.each([['zr7fzmep8g7h7ymfxy74lgc0v950j3r295z4y4gq0v', 'qr7fzmep8g7h7ymfxy74lgc0v950j3r2959lhtxxsl']])(
    'BITCOIN_CASH %s, which takes tokens, is %s',
    (spelling, canonical) => {
      for (const text of [spelling, `bitcoincash:${spelling}`, `BITCOINCASH:${spelling.toUpperCase()}`])
        expect(canonicalAddress('BITCOIN_CASH', text, LIVE)).toBe(`bitcoincash:${canonical}`)
      expect(outputScriptOf('BITCOIN_CASH', spelling)).toEqual(outputScriptOf('BITCOIN_CASH', canonical))
    },
  )

  test('a test-network address without its prefix is found where allowed', () => {
    const bare = 'pr6m7j9njldwwzlg9v7v53unlr4jkmx6eyvwc0uz5t'
    expect(canonicalAddress('BITCOIN_CASH', bare, LIVE)).toBeUndefined()
    expect(canonicalAddress('BITCOIN_CASH', bare, SANDBOX)).toBe(`bchtest:${bare}`)
  })
})

describe('refused', () => {
  test.each([
    // BIP-350, invalid segwit addresses
    ['BITCOIN', 'tc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq5zuyut'],
    ['BITCOIN', 'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqh2y7hd'],
    ['BITCOIN', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kemeawh'],
    ['BITCOIN', 'bc1p38j9r5y49hruaue7wxjce0updqjuyyx0kh56v8s25huc6995vvpql3jow4'],
    ['BITCOIN', 'BC130XLXVLHEMJA6C4DQV22UAPCTQUPFHLXM9H8Z3K2E72Q4K9HCZ7VQ7ZWS8R'],
    ['BITCOIN', 'bc1pw5dgrnzv'],
    ['BITCOIN', 'BC1QR508D6QEJXTDG4Y5R3ZARVARYV98GJ9P'],
    ['BITCOIN', 'tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vq47Zagq'],
    ['BITCOIN', 'bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7v07qwwzcrf'],
    ['BITCOIN', 'tb1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vpggkg4j'],
    ['BITCOIN', 'bc1gmk9yu'],
    // valid, but of witness versions that anyone can spend from
    ['BITCOIN', 'BC1SW50QGDZ25J'],
    ['BITCOIN', 'bc1zw508d6qejxtdg4y5r3zarvaryvaxxpcs'],
    ['BITCOIN', 'bc1pfeessrawgf'],
    // a private key in wallet import format
    ['BITCOIN', '5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ'],
    ['LITECOIN', '6vqpCruyRS9bEY6ZVrL8S9EL5h2MnQZffzzqrpNP9i8YozvXTKs'],
    // cashaddr: checksums without a payload, hash sizes that no script has, foreign and doubled prefixes, mixed case
    ['BITCOIN_CASH', 'bitcoincash:qpzry9x8gf2tvdw0s3jn54khce6mua7lcw20ayyn'],
    ['BITCOIN_CASH', 'bchreg:555555555555555555555555555555555555555555555udxmlmrz'],
    ['BITCOIN_CASH', 'bitcoincash:q9adhakpwzztepkpwp5z0dq62m6u5v5xtyj7j3h2ws4mr9g0'],
    ['BITCOIN_CASH', 'bitcoincash:qvch8mmxy0rtfrlarg7ucrxxfzds5pamg73h7370aa87d80gyhqxq5nlegake'],
    ['BITCOIN_CASH', 'pref:pr6m7j9njldwwzlg9v7v53unlr4jkmx6ey65nvtks5'],
    ['BITCOIN_CASH', 'bitcoincash:bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a'],
    ['BITCOIN_CASH', 'bitcoincash:Qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a'],
    ['BITCOIN_CASH', 'BITCOINCASH:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a'],
    ['BITCOIN_CASH', 'BITCOINCASH:QPM2QSZNH\u212aS23Z7629MMS6S4CWEF74VCWVY22GDX6A'],
    // EVM: no prefix, wrong prefix, one digit too few
    ['ETHEREUM', '5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed'],
    ['ETHEREUM', '0X5AAEB6053F3E94C9B9A09F33669435E7EF1BEAED'],
    ['ETHEREUM', '0x5aaeb6053f3e94c9b9a09f33669435e7ef1beae'],
    // Solana: 31 and 33 bytes, characters that base58 leaves out
    ['SOLANA', '1111111111111111111111111111111'],
    ['SOLANA', '111111111111111111111111111111111'],
    ['SOLANA', 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5D0'],
    ['SOLANA', 'zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz'],
    // Stellar: a contract, a secret seed, and the invalid keys of SEP-23
    ['STELLAR', 'CA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUWDA'],
    ['STELLAR', 'SBCVMMCBEDB64TVJZFYJOJAERZC4YVVUOE6SYR2Y76CBTENGUSGWRRVO'],
    ['STELLAR', 'GAAAAAAAACGC6'],
    ['STELLAR', 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUR'],
    ['STELLAR', 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGZA'],
    ['STELLAR', 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUACUSI'],
    ['STELLAR', 'G47QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVP2I'],
    ['STELLAR', 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAJLKA'],
    ['STELLAR', 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVAAAAAAAAAAAAAAV75I'],
    ['STELLAR', 'M47QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUQ'],
    ['STELLAR', 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUK==='],
    ['STELLAR', 'MA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJUAAAAAAAAAAAACJUO'],
    ['STELLAR', 'ga7qynf7sowq3glr2bgmzehxavirza4kvwltjjfc7mgxua74p7ujvsgz'],
  ] as const)('%s %s', (network, address) => {
    expect(canonicalAddress(network, address, SANDBOX)).toBeUndefined()
  })

  test.each(CRYPTO_NETWORKS)('%s: white space around an address, the empty string', (network) => {
    const address = MAIN[network][0]!
    for (const text of ['', ' ', ` ${address}`, `${address} `, `${address}\n`, `${address}\0`]) {
      expect(canonicalAddress(network, text, SANDBOX)).toBeUndefined()
    }
  })
})

describe('hostile strings', () => {
  const everyAddress = [...mainVectors, ...testVectors].map(([, address]) => address)
  const edited = fc
    .tuple(fc.constantFrom(...everyAddress), fc.nat(130), fc.nat(8), anyText({ maxLength: 8 }))
    .map(([address, at, dropped, put]) => address.slice(0, at) + put + address.slice(at + dropped))
  const hostile = fc.oneof(
    anyText({ maxLength: 200 }),
    fc.string({ unit: fc.constantFrom(...'qpzry9x8:1bcL0xGMA'), maxLength: 140 }),
    fc
      .tuple(
        fc.constantFrom('bitcoincash:', 'bc1', 'ltc1', '0x', 'G', 'M', '1', '3'),
        fc.string({ maxLength: 130 }),
      )
      .map((parts) => parts.join('')),
    edited,
  )

  test.each(CRYPTO_NETWORKS)('on %s never throw, and what is canonical stays as it is', (network) => {
    fc.assert(
      fc.property(hostile, fc.boolean(), (text, testNetworks) => {
        const canonical = canonicalAddress(network, text, { testNetworks })
        if (canonical !== undefined)
          expect(canonicalAddress(network, canonical, { testNetworks })).toBe(canonical)
      }),
      runs(1_000),
    )
  })

  test.each(CRYPTO_NETWORKS)('on %s are refused quickly, however long', (network) => {
    const cpuMs = countCpu()
    for (const unit of ['1', 'q', 'A', 'bitcoincash:', '0x', '\u{1f4b0}']) {
      for (const length of [42, 61, 74, 128, 129, 1_000_000]) {
        expect(canonicalAddress(network, unit.repeat(length).slice(0, length), SANDBOX)).toBeUndefined()
      }
    }
    expect(cpuMs()).toBeLessThan(500)
  })
})

describe('addresses from bytes', () => {
  test.each(CRYPTO_NETWORKS)(
    'on %s are canonical on the main network and differ as their bytes do',
    (network) => {
      const bytes = fc.uint8Array({ minLength: 32, maxLength: 32 }).filter((array) => array[0] !== 0)
      fc.assert(
        fc.property(bytes, bytes, (some, others) => {
          const address = addressFromBytes(network, some)
          expect(canonicalAddress(network, address, LIVE)).toBe(address)
          const sameStart = some.slice(0, 20).every((byte, at) => byte === others[at])
          if (!sameStart) expect(addressFromBytes(network, others)).not.toBe(address)
        }),
      )
    },
  )
})

describe('magic addresses', () => {
  test.each(CRYPTO_NETWORKS)('on %s are valid, distinct and found back', (network) => {
    const seen = new Set<string>()
    for (const outcome of MAGIC_OUTCOMES) {
      const address = magicAddress(network, outcome)
      if (address === undefined) continue
      expect(canonicalAddress(network, address, LIVE)).toBe(address)
      expect(magicOutcome(network, address)).toBe(outcome)
      seen.add(address)
    }
    expect(seen.size).toBe(network === 'STELLAR' || network === 'SOLANA' ? 9 : 8)
  })

  test('trust lines exist on Stellar alone, rent on Solana alone', () => {
    for (const network of CRYPTO_NETWORKS) {
      expect(magicAddress(network, 'MISSING_TRUSTLINE') !== undefined).toBe(network === 'STELLAR')
      expect(magicAddress(network, 'MAX_RENT_EXCEEDED') !== undefined).toBe(network === 'SOLANA')
    }
  })

  test('no other address is magic', () => {
    for (const [network, address] of mainVectors) expect(magicOutcome(network, address)).toBeUndefined()
    for (const text of ['', 'constructor', '__proto__'])
      expect(magicOutcome('ETHEREUM', text)).toBeUndefined()
  })

  // Clients write these down: a change of any is a breaking change.
  test.each([
    ['BITCOIN', 'INVALID_DESTINATION_ADDRESS', 'bc1qvf6hyumpwgs8xctwv33x77pqxqcsqqqqdxsktx'],
    ['ETHEREUM', 'CUSTOMER_REJECTED', '0x6275727361722073616E64626F78203036000000'],
    ['SOLANA', 'MAX_RENT_EXCEEDED', '7dLprs4gCjhnYvE6WaESX8YCnjbyc7E8KZyf81FLdyvF'],
    ['STELLAR', 'MISSING_TRUSTLINE', 'GBRHK4TTMFZCA43BNZSGE33YEAYDGAAAAAAAAAAAAAAAAAAAAAAABQ2A'],
    ['BITCOIN_CASH', 'NEVER_CONFIRMS', 'bitcoincash:qp382unnv9ezqumpdejxymmcyqcnqqqqqqjlhkrjhp'],
  ] as const)('%s %s is %s', (network, outcome, address) => {
    expect(magicAddress(network, outcome)).toBe(address)
  })
})

describe('addressFault', () => {
  const faults: [CryptoNetwork, string, { testNetworks: boolean }, string][] = [
    [
      'ETHEREUM',
      '0x5aAeb6053f3E94C9b9A09f33669435E7Ef1BeAed',
      SANDBOX,
      'its capitals do not fit its checksum',
    ],
    ['ETHEREUM', MAIN.BITCOIN[2]!, SANDBOX, 'it is an address of BITCOIN'],
    ['ETHEREUM', '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAe', SANDBOX, '0x and 40 hexadecimal digits'],
    ['BASE', MAIN.STELLAR[0]!, LIVE, 'it is an address of STELLAR'],
    ['BITCOIN', EIP55[0]!, LIVE, 'it is an address of an EVM network'],
    ['BITCOIN', 'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx', LIVE, 'it is an address of a test network'],
    ['BITCOIN', 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t5', LIVE, 'its checksum is wrong'],
    ['BITCOIN', '1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb', LIVE, 'its checksum is wrong'],
    [
      'BITCOIN',
      'bc1zqurswpc8qurswpc8qurswpc8qurswpc8qurswpc8qurswpc8qursc3hgeh',
      LIVE,
      'it is of a witness version from 2 on',
    ],
    ['LITECOIN', 'ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n8', LIVE, 'its checksum is wrong'],
    ['BITCOIN_CASH', 'qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6b', LIVE, 'its checksum is wrong'],
    ['STELLAR', 'GA7QYNF7SOWQ3GLR2BGMZEHXAVIRZA4KVWLTJJFC7MGXUA74P7UJVSGA', LIVE, 'its checksum is wrong'],
    [
      'BITCOIN',
      'bitcoin:1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa?amount=1',
      LIVE,
      'address alone, without "bitcoin:"',
    ],
    ['BITCOIN', `lnbc20m1${'p'.repeat(80)}`, LIVE, 'it is a Lightning invoice'],
    ['BITCOIN', `sp1q${'q'.repeat(112)}`, LIVE, 'it is a silent payment address'],
    ['BITCOIN_CASH', `${MAIN.BITCOIN_CASH[0]!}?amount=1`, LIVE, 'without "bitcoincash:" and without "?"'],
    ['BITCOIN_CASH', 'zr7fzmep8g7h7ymfxy74lgc0v950j3r295z4y4gq0w', LIVE, 'its checksum is wrong'],
    ['LITECOIN', `ltcmweb1qq${'q'.repeat(106)}`, LIVE, 'it is an MWEB address of Litecoin'],
    ['ETHEREUM', `ethereum:${EIP55[0]!}@1?value=1`, LIVE, 'address alone, without "ethereum:"'],
    ['BASE', `base:${EIP55[0]!}`, LIVE, 'address alone, without "base:"'],
    ['ETHEREUM', 'vitalik.eth', LIVE, 'it is a name'],
    ['STELLAR', 'alice*lobstr.co', LIVE, 'it is a federated address of Stellar'],
    ['STELLAR', `C${'A'.repeat(55)}`, LIVE, 'it is a contract of Stellar'],
    ['SOLANA', 'not an address', LIVE, '32 bytes in base58'],
    ['SOLANA', 'x'.repeat(5_000), LIVE, '32 bytes in base58'],
  ]
  test.each(faults)('%s: %.50s', (network, address, allow, fault) => {
    expect(canonicalAddress(network, address, allow)).toBeUndefined()
    expect(addressFault(network, address, allow)).toContain(fault)
  })
})
