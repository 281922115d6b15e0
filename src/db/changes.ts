import { setMaxListeners } from 'node:events'
import type { Database, Queryable } from './database.ts'

/** For how long after a change the loops rest as usual: most of what follows from it is due by then. */
const RECENT_MS = 5_000
/** The longest rest of a loop: what a lost notification delays work by. */
const REST_MS_MAX = 2_500
/** Least time between two notifications of a process. */
const TELL_EVERY_MS = 50

/** The channel on which commands, and processes without a worker, tell of their changes. */
const CHANNEL = 'bursar_changes'
export const LISTEN = `listen ${CHANNEL}`

/** A loop of the worker that found nothing. */
export interface Idle {
  /** How long it rests while the service is in use, in milliseconds. */
  usualMs: number
  /** In how many milliseconds something is due by itself; undefined: nothing is. */
  dueIn: () => Promise<number | undefined>
}

/** How long a loop rests after a round, in milliseconds, or that it is idle. */
export type Rest = number | Idle

/** How long a loop rests where it does not matter whether something changes. */
export const usualMs = (rest: Rest): number => (typeof rest === 'number' ? rest : rest.usualMs)

export interface LoopRest {
  ms: number
  /** Ends the rest before its time. */
  endedBy?: AbortSignal
}

/** What changes in the database, as far as this process knows. While nothing does, the loops of its worker rest. */
export class Changes {
  #count = 0
  #lastAt = performance.now()
  #next = new AbortController()
  #isAwaited = false
  #tell: (() => void) | undefined
  readonly #recentMs: number
  readonly #restMsMax: number

  constructor({ recentMs = RECENT_MS, restMsMax = REST_MS_MAX } = {}) {
    this.#recentMs = recentMs
    this.#restMsMax = restMsMax
  }

  /** The number of changes. */
  get count(): number {
    return this.#count
  }

  /** Notes that this process, or another one, has committed a change. */
  readonly note = (): void => {
    this.#count++
    this.#lastAt = performance.now()
    this.#tell?.()
    if (!this.#isAwaited) return
    this.#next.abort()
    this.#next = new AbortController()
    this.#isAwaited = false
  }

  /** Tells the processes with a worker of each change, in a statement of its own: the change does not wait for it. */
  tellOthers(db: Database, onFailure: (error: unknown) => void): void {
    let isMore: boolean | undefined
    const tell = () => {
      if (isMore !== undefined) return void (isMore = true)
      isMore = false
      db.query(`select pg_notify('${CHANNEL}', '')`).catch(onFailure)
      setTimeout(() => {
        const wasMore = isMore
        isMore = undefined
        if (wasMore) tell()
      }, TELL_EVERY_MS).unref()
    }
    this.#tell = tell
  }

  /**
   * Says how a loop rests that had `seen` so many changes when its round began: an idle one until the next change, unless
   * the last one was just now. It is asked when something is due once for each time, and again after a change.
   */
  restsOfLoop(): (rest: Rest, seen: number) => Promise<LoopRest> {
    let due = { at: -Infinity, seen: -1 }
    return async (rest, seen) => {
      const now = performance.now()
      if (typeof rest === 'number' || now - this.#lastAt < this.#recentMs) return { ms: usualMs(rest) }
      const { dueIn } = rest
      if (due.seen !== seen || due.at <= now) due = { seen, at: now + ((await dueIn()) ?? Infinity) }
      if (seen !== this.#count) return { ms: 0 }
      this.#isAwaited = true
      setMaxListeners(0, this.#next.signal)
      const ms = Math.max(rest.usualMs, Math.min(this.#restMsMax, due.at - performance.now()))
      return { ms, endedBy: this.#next.signal }
    }
  }
}

/** In how many milliseconds the first of these times is, the column `at` of an SQL query; undefined where there is none. */
export async function firstIn(
  hints: Queryable,
  times: string,
  values: unknown[] = [],
): Promise<number | undefined> {
  const { rows } = await hints.query<{ ms: number | null }>(
    `select (extract(epoch from min(at) - clock_timestamp()) * 1000)::float8 as ms from (${times}) due`,
    values,
  )
  const all = rows.flatMap(({ ms }) => ms ?? [])
  return all.length === 0 ? undefined : Math.min(...all)
}
