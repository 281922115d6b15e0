import { vi } from 'vitest'

/**
 * A test file must put back what it changes in its process, because the next file runs there. Vitest runs this module before
 * each file, and it throws where an earlier file has left its clock or its `fetch`.
 */

const KEY = Symbol.for('bursar: the fetch of this process')
const kept = globalThis as { [KEY]?: typeof fetch }

kept[KEY] ??= globalThis.fetch
const left = [
  ...(globalThis.fetch === kept[KEY] ? [] : ['its fetch']),
  ...(vi.isFakeTimers() ? ['its clock'] : []),
]
if (left.length > 0)
  throw new Error(`a test file that ran before in this process has left ${left.join(' and ')}`)
