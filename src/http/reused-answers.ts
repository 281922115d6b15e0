import { LRUCache } from 'lru-cache'

/** How long an answer is reused, at least and at most. */
const KEPT_MS = 2_000
const KEPT_MS_MAX = 60_000
/** In between, it is reused for this multiple of the time that it took: 0.3 to 1.7 s for a day's 400,000 transfers. */
const KEPT_TIMES = 10
const KEPT_MAX = 1_000

/**
 * Makes the memory of an operation whose answers take long. The returned function gives the answer of a key again, also one
 * that is still being made, or makes it by `read`, which must not end with one request (`forEverybody`). What fails is not
 * kept.
 */
export function reusedAnswers<Answer extends object>(): (
  key: string,
  read: () => Promise<Answer>,
) => Promise<Answer> {
  const kept = new LRUCache<string, Promise<Answer>>({ max: KEPT_MAX })
  return (key, read) => {
    const known = kept.get(key)
    if (known !== undefined) return known
    const began = performance.now()
    const answer = read()
    kept.set(key, answer)
    answer.then(
      () => {
        const took = performance.now() - began
        kept.set(key, answer, { ttl: Math.min(KEPT_MS_MAX, Math.max(KEPT_MS, KEPT_TIMES * took)) })
      },
      // The next caller reads again.
      () => kept.delete(key),
    )
    return answer
  }
}
