import { expect, vi } from 'vitest'

/**
 * Multiplies the time limits of Vitest's waits. A wait ends when its state is reached; its limit is there for a test that
 * hangs. The tests state limits for a quiet machine, and here they become long enough for a busy one. Vitest runs this module
 * before each test file, in a process that may have run it before.
 */

const BUSY = 20
const DEFAULT_MS = 1_000
/** Shorter than what ends a test, so that a wait says which state was not reached. */
const LIMIT_MS_MAX = 600_000

type Limit = number | { timeout?: number; interval?: number } | undefined

const patient = (limit: Limit) => {
  const { timeout = DEFAULT_MS, ...rest } = typeof limit === 'number' ? { timeout: limit } : (limit ?? {})
  return { ...rest, timeout: Math.min(timeout * BUSY, LIMIT_MS_MAX) }
}

interface Patched {
  isPatient?: true
}
if ((vi as Patched).isPatient !== true) {
  ;(vi as Patched).isPatient = true
  const { waitFor, waitUntil } = vi
  vi.waitFor = (check, limit) => waitFor(check, patient(limit))
  vi.waitUntil = (check, limit) => waitUntil(check, patient(limit))
}
if ((expect as Patched).isPatient !== true) {
  ;(expect as Patched).isPatient = true
  const { poll } = expect
  expect.poll = (read, limit) => poll(read, patient(limit))
}
