import { privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { asksOf, treasuryOf, type Treasury } from './marks.ts'

const COLD = privateKeyToAccount(`0x${'11'.repeat(32)}`).address
const OTHER = privateKeyToAccount(`0x${'22'.repeat(32)}`).address

describe('the marks of a section', () => {
  test('an amount is of the own asset, or by asset; addresses get their canonical spelling', () => {
    const marks = { low_mark: '2', target: { ETH: '5', USDG: '100' }, high_mark: { ETH: '20' } }
    expect(treasuryOf('ETHEREUM', { ...marks, cold_addresses: [COLD.toLowerCase(), OTHER] }, 'live')).toEqual(
      {
        marks: { ETH: { low: '2', target: '5', high: '20' }, USDG: { target: '100' } },
        cold: [COLD, OTHER],
      },
    )
    expect(treasuryOf('LITECOIN', {}, 'live')).toEqual({ marks: {}, cold: [] })
  })

  test.each([
    ['another asset', { low_mark: { LTC: '1' } }, /^ETHEREUM.low_mark.LTC is no asset of ETHEREUM$/],
    ['a name of Object', { low_mark: JSON.parse('{"__proto__":"1"}') as object }, /__proto__ is no asset/],
    [
      'a part of a wei',
      { high_mark: `0.${'0'.repeat(18)}1` },
      /^ETHEREUM.high_mark has more than 18 decimals$/,
    ],
    ['a target below', { low_mark: '2', target: '1.9' }, /^ETHEREUM.target is below low_mark for ETH$/],
    ['a high mark alone', { high_mark: '2' }, /^ETHEREUM.high_mark needs target and cold_addresses for ETH$/],
    [
      'nowhere to send to',
      { target: '1', high_mark: '2', cold_addresses: [] },
      /^ETHEREUM.high_mark needs target and cold_addresses for ETH$/,
    ],
    [
      'a high mark at the target',
      { target: '2', high_mark: '2', cold_addresses: [COLD] },
      /^ETHEREUM.high_mark must be above target for ETH$/,
    ],
    ['no address', { cold_addresses: ['0x1'] }, /^ETHEREUM.cold_addresses: 0x1 is no address of ETHEREUM$/],
  ])('%s is refused', (_, fields, message) => {
    expect(() => treasuryOf('ETHEREUM', fields as Parameters<typeof treasuryOf>[1], 'live')).toThrow(message)
  })

  test('an address of a test network is for a sandbox', () => {
    const fields = { cold_addresses: ['mkHS9ne12qx9pS9VojpwU5xtRd4T7X7ZUt'] }
    expect(treasuryOf('BITCOIN', fields, 'sandbox').cold).toHaveLength(1)
    expect(() => treasuryOf('BITCOIN', fields, 'live')).toThrow('is no address of BITCOIN')
  })
})

describe('what is asked for', () => {
  const treasury: Treasury = { marks: { ETH: { low: '2', target: '5', high: '20' } }, cold: [COLD] }
  const asks = (ETH: string, leaving = 0n, more: object = {}) =>
    asksOf('ETHEREUM', treasury, { held: { ETH }, ...more }, new Map([['ETH', leaving]]))
  const ONE = 10n ** 18n
  const send = (amount: string) => [{ kind: 'SEND', asset: 'ETH', amount, to: COLD }]

  test('a refill up to the target below the low mark, a send of the rest above the high mark', () => {
    expect(asks('0')).toEqual([{ kind: 'REFILL', asset: 'ETH', amount: '5' }])
    expect(asks('1.999999999999999999')).toEqual([
      { kind: 'REFILL', asset: 'ETH', amount: '3.000000000000000001' },
    ])
    for (const between of ['2', '5', '20']) expect(asks(between)).toEqual([])
    expect(asks('20.000000000000000001')).toEqual(send('15.000000000000000001'))
  })

  test('what is under way is not proposed again, also where it has left already', () => {
    expect(asks('40', 10n * ONE)).toEqual(send('25'))
    expect(asks('40', 35n * ONE)).toEqual([])
    expect(asks('5', 35n * ONE)).toEqual([])
  })

  test('one wallet pays a send, and former wallets and deposit addresses none', () => {
    const lane = (ETH: string) => ({ lane: ETH, in_flight: 0, held: { ETH } })
    const more = { hotWallet: { ETH: '30' }, lanes: [lane('12'), lane('18')] }
    expect(asks('99', 0n, more)).toEqual(send('18'))
    expect(asks('99', 0n, { hotWallet: { ETH: '20' } })).toEqual([])
  })

  test('without a target, the low mark; what a chain cannot pay out stays', () => {
    const low = { marks: { USDP: { low: '3' } }, cold: [] }
    expect(asksOf('SOLANA', low, { held: {} }, new Map())).toEqual([
      { kind: 'REFILL', asset: 'USDP', amount: '3' },
    ])
    const high = { marks: { USDP: { target: '1', high: '2' } }, cold: [OTHER] }
    expect(asksOf('SOLANA', high, { held: { USDP: '3.1234567' } }, new Map())).toEqual([
      { kind: 'SEND', asset: 'USDP', amount: '2.123456', to: OTHER },
    ])
  })
})
