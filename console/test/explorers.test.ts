import { expect, test } from 'vitest'
import { explorerOf } from '../src/explorers.ts'
import { CRYPTO_NETWORKS } from '../../src/contract/assets/catalogue.ts'

test('every network has an explorer over https, and what is looked up stays a part of its path', () => {
  for (const network of CRYPTO_NETWORKS)
    for (const kind of ['hash', 'address'] as const) {
      const page = explorerOf(network, kind, '../a b?c#d')!
      expect([network, page.protocol, page.search, page.hash]).toEqual([network, 'https:', '', ''])
      expect(page.pathname.split('/').at(-1)).toBe('..%2Fa%20b%3Fc%23d')
    }
  expect(explorerOf('ETHEREUM', 'hash', '0xab')?.href).toBe('https://etherscan.io/tx/0xab')
})

test('a transfer without a network, as over a bank, has none', () => {
  expect(explorerOf(undefined, 'hash', '0xab')).toBeUndefined()
})
