import { hash } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { FastifyRequest } from 'fastify'
import { expect, test, vi } from 'vitest'
import { authenticator } from './authenticate.ts'

/** No client is disabled. */
const EVERYBODY = { requireEnabled: () => undefined, requireKnown: () => undefined }

/** Creates a guard that accepts all tokens and counts the signature checks. Each `connect` opens a connection. */
function guarded(scopesOf = () => ['transfer:read_transfer']) {
  let isTrusted = true
  const expiresAt = Math.floor(Date.now() / 1000) + 3_600
  const verify = vi.fn((token: string) =>
    Promise.resolve({
      customerId: 'c',
      clientId: token.slice(0, 8),
      scopes: scopesOf(),
      actor: { type: 'API_CLIENT' as const, id: 'c' },
      expiresAt,
    }),
  )
  const guard = authenticator({ verify, isTrusted: () => isTrusted }, EVERYBODY)(['transfer:read_transfer'])
  const connect = () => {
    const raw = { socket: {} }
    return async (authorization: string) => {
      const request = { raw, headers: { authorization } } as FastifyRequest
      await guard(request)
      return request.caller.clientId
    }
  }
  return { verify, connect, ask: connect(), distrust: () => (isTrusted = false) }
}

test('a token is checked once, however many spaces precede it', async () => {
  const { verify, ask } = guarded()
  for (let spaces = 1; spaces <= 60; spaces++) await ask(`Bearer${' '.repeat(spaces)}abc`)
  await ask('bearer abc')
  expect(verify).toHaveBeenCalledTimes(1)
})

test('each request has its own token, also on a shared connection', async () => {
  const { verify, ask, connect } = guarded()
  for (const token of ['one', 'two', 'two', 'one', 'one']) expect(await ask(`Bearer ${token}`)).toBe(token)
  expect(await connect()('Bearer two')).toBe('two')
  expect(verify).toHaveBeenCalledTimes(2)
})

test('a token whose key is retired is checked again, also on the same connection', async () => {
  const { verify, ask, distrust } = guarded()
  await ask('Bearer abc')
  distrust()
  await ask('Bearer abc')
  await ask('Bearer abc')
  expect(verify).toHaveBeenCalledTimes(3)
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

test('2,000 tokens of the greatest length and 500 scopes each take bounded memory', async () => {
  let tokens = 0
  const { ask, verify } = guarded(() => [
    'transfer:read_transfer',
    ...Array.from({ length: 500 }, (_, n) => `scope:${n} of ${tokens}`),
  ])
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const heapMiB = () => {
    verify.mockClear()
    collectGarbage()
    return process.memoryUsage().heapUsed / 2 ** 20
  }
  const before = heapMiB()
  for (; tokens < 2_000; tokens++)
    await ask(`Bearer ${' '.repeat(50)}${hash('sha256', String(tokens)).repeat(60)}`)
  expect(heapMiB() - before).toBeLessThan(30)
})
