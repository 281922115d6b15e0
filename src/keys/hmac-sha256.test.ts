import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SEED } from '../../test/seed.ts'
import { HmacSha256 } from './hmac-sha256.ts'

test('the HMAC equals the standard one for texts of any length and script', () => {
  const keys = fc.uint8Array({ minLength: 1, maxLength: 64 })
  const text = fc.string({ unit: fc.constantFrom('a', '"', 'é', '漢', '😀'), maxLength: 3_000 })
  fc.assert(
    fc.property(keys, fc.array(text, { minLength: 1, maxLength: 5 }), (key, texts) => {
      const ours = new HmacSha256(Buffer.from(key))
      for (const one of texts)
        expect(ours.of(one)).toBe(createHmac('sha256', key).update(one).digest('base64url'))
    }),
    { seed: SEED },
  )
})

test('a key longer than a block is refused', () => {
  expect(() => new HmacSha256(Buffer.alloc(65))).toThrow('the key has more than 64 bytes')
})
