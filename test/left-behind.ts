import { vi } from 'vitest'

/**
 * Vitest runs this module before each test file, in a process that may have run others. It throws where one of them has not put
 * back its clock or its `fetch`.
 */
const kept = globalThis as { fetchOfTests?: typeof fetch }
kept.fetchOfTests ??= globalThis.fetch
if (vi.isFakeTimers() || globalThis.fetch !== kept.fetchOfTests)
  throw new Error('a test file that ran before in this process has left its clock or its fetch')
