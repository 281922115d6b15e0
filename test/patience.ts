import { expect, vi } from 'vitest'

/**
 * A wait ends when its state is reached. Its limit is there for a test that hangs, and what it says is right for a quiet
 * machine: here it is made long enough for one that is busy. Vitest runs this before each file, in a process that may have run it.
 */

const BUSY = 20
const DEFAULT_MS = 1_000

type Limit = number | { timeout?: number; interval?: number } | undefined

const patient = (limit: Limit) => {
  const { timeout = DEFAULT_MS, ...rest } = typeof limit === 'number' ? { timeout: limit } : (limit ?? {})
  return { ...rest, timeout: timeout * BUSY }
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
