import { setMaxListeners } from 'node:events'
import type { Database, Queryable } from './database.ts'

/** How long after a change the loops keep their usual rests: most work that follows from a change is due by then. */
const RECENT_MS = 5_000
/** The longest rest of a loop, and so the longest delay of work after a lost notification. */
const REST_MS_MAX = 3_000
/** Least time between two notifications of a process. */
const TELL_EVERY_MS = 50

/** The channel on which commands, and processes without a worker, notify the others of their changes. */
const CHANNEL = 'bursar_changes'
export const LISTEN = `listen ${CHANNEL}`

/** A loop of the worker that found nothing. */
export interface Idle {
  /** How long it rests while the service is in use, in milliseconds. */
  usualMs: number
  /** Milliseconds until the next work falls due without a further change; undefined where none will. */
  dueIn: () => Promise<number | undefined>
}

/** What a loop does after a round: it rests for this many milliseconds, or it is idle. */
export type Rest = number | Idle

/** A loop's usual rest in milliseconds, where it does not matter whether something changes. */
export const usualMs = (rest: Rest): number => (typeof rest === 'number' ? rest : rest.usualMs)

export interface LoopRest {
  ms: number
  /** Ends the rest before its time. */
  endedBy?: AbortSignal
}

/** Counts the changes of the database that this process knows of. While nothing changes, the loops of its worker rest. */
export class Changes {
  #count = 0
  #lastAt = performance.now()
  #next = new AbortController()
  #isAwaited = false
  #rests = new AbortController()
  #tell: (() => void) | undefined
  readonly #recentMs: number
  readonly #restMsMax: number

  constructor({ recentMs = RECENT_MS, restMsMax = REST_MS_MAX } = {}) {
    this.#recentMs = recentMs
    this.#restMsMax = restMsMax
  }

  get count(): number {
    return this.#count
  }

  /** Notes that this process has committed a change, and tells others where `tellOthers` was called. */
  readonly note = (): void => {
    this.hear()
    this.#tell?.()
  }

  /** Notes that a process told of a change. PostgreSQL sends a notification to its own sender, too, so nothing is told again. */
  readonly hear = (): void => {
    this.#count++
    this.#lastAt = performance.now()
    if (!this.#isAwaited) return
    this.#next.abort()
    this.#next = new AbortController()
    this.#isAwaited = false
  }

  /** Ends when loops must not rest on, whatever they rest for. */
  get rests(): AbortSignal {
    setMaxListeners(0, this.#rests.signal)
    return this.#rests.signal
  }

  /** Ends the rests of all loops of this process: it stops, or the clock of its sandbox was moved. */
  endRests(): void {
    this.#rests.abort()
    this.#rests = new AbortController()
    this.note()
  }

  /** Notifies the processes with a worker of each change, in a separate statement: the change does not wait for it. */
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
   * Returns a function that decides how a loop rests after a round that began with `seen` changes. An idle loop rests until the
   * next change, unless the last change is recent. `dueIn` is asked again only once its answer is due, or after a change.
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

/** Milliseconds until the earliest of some times, undefined where there is none. `times` is an SQL query with a column `at`. */
export async function firstIn(
  hints: Queryable,
  times: string,
  values: unknown[] = [],
): Promise<number | undefined> {
  const { rows } = await hints.query<{ ms: number | null }>(
    `select (extract(epoch from min(at) - clock_timestamp()) * 1000)::float8 as ms from (${times}) due`,
    values,
  )
  const waits = rows.flatMap(({ ms }) => ms ?? [])
  return waits.length === 0 ? undefined : Math.min(...waits)
}
