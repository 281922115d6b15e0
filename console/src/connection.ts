import { signal } from '@preact/signals'
import { ROOT } from './address.ts'

/** Whether the service answers. While it does not, the page says since when, and asks again by itself. */

/** Since when the service does not answer; undefined while it does. */
export const downSince = signal<string | undefined>(undefined)
/** How many requests have waited for longer than `SLOW_MS`. */
export const slow = signal(0)
const SLOW_MS = 5_000
/** How often the service came back. Each time, the page reads its records again. */
export const returns = signal(0)

const AGAIN_MS = 2_000
/** Whether a proxy answers in place of a service that is down: the service itself answers every failure in JSON. */
const isOfProxy = ({ status, headers }: Response): boolean =>
  [502, 504].includes(status) || (status >= 500 && !/\bjson\b/.test(headers.get('content-type') ?? ''))

/** `fetch`, which notes whether the service answered. Throws an Error where it did not. */
export async function ask(url: string, init: RequestInit = {}): Promise<Response> {
  let waits = 0
  const timer = setTimeout(() => (slow.value += waits = 1), SLOW_MS)
  const answer = await fetch(url, init)
    .catch((error: unknown) => {
      if (init.signal?.aborted) throw error
      return undefined
    })
    .finally(() => {
      clearTimeout(timer)
      slow.value -= waits
    })
  if (answer === undefined || isOfProxy(answer)) {
    if (downSince.value === undefined) {
      downSince.value = new Date().toISOString()
      setTimeout(tryAgain, AGAIN_MS)
    }
    throw new Error('The service does not answer.')
  }
  if (downSince.value !== undefined) {
    downSince.value = undefined
    returns.value += 1
  }
  return answer
}

function tryAgain(): void {
  if (downSince.value === undefined) return
  ask(`${ROOT}session`, { headers: { 'x-bursar-console': 'background' } }).catch(() =>
    setTimeout(tryAgain, AGAIN_MS),
  )
}
