import { hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { expect, test, vi } from 'vitest'
import { authenticator } from './authenticate.ts'

/** Nobody is disabled. */
const EVERYBODY = { requireEnabled: () => undefined, requireKnown: () => undefined }

/** A guard over tokens that are all good, and how often it had a signature checked. */
function guarded(scopes = ['transfer:read_transfer']) {
  const expiresAt = Math.floor(Date.now() / 1000) + 3_600
  const verify = vi.fn((token: string) =>
    Promise.resolve({ customerId: 'c', clientId: token.slice(0, 8), scopes, expiresAt }),
  )
  const guard = authenticator({ verify, isTrusted: () => true }, EVERYBODY)(['transfer:read_transfer'])
  const ask = (authorization: string) => guard({ headers: { authorization } } as FastifyRequest)
  return { verify, ask }
}

test('a token is checked once, however many spaces stand before it', async () => {
  const { verify, ask } = guarded()
  for (let spaces = 1; spaces <= 60; spaces++) await ask(`Bearer${' '.repeat(spaces)}abc`)
  await ask('bearer abc')
  expect(verify).toHaveBeenCalledTimes(1)
})

test('a token is checked again after a minute', async () => {
  vi.useFakeTimers({ now: 1_800_000_000_000 })
  try {
    const { verify, ask } = guarded()
    await ask('Bearer abc')
    vi.advanceTimersByTime(59_000)
    await ask('Bearer abc')
    expect(verify).toHaveBeenCalledTimes(1)
    vi.advanceTimersByTime(2_000)
    await ask('Bearer abc')
    expect(verify).toHaveBeenCalledTimes(2)
  } finally {
    vi.useRealTimers()
  }
})

test('10,000 tokens as long as they may be take a bounded part of memory', async () => {
  const { ask } = guarded(['transfer:read_transfer', ...Array.from({ length: 500 }, (_, n) => `scope:${n}`)])
  const heapMiB = () => {
    ;(globalThis as { gc?: () => void }).gc?.()
    return process.memoryUsage().heapUsed / 2 ** 20
  }
  const before = heapMiB()
  for (let n = 0; n < 10_000; n++)
    await ask(`Bearer ${' '.repeat(50)}${hash('sha256', String(n)).repeat(60)}`)
  expect(heapMiB() - before).toBeLessThan(60)
})
