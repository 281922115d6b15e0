import { setTimeout as pause } from 'node:timers/promises'
import type { Logger } from 'pino'
import { usualMs, type Changes, type LoopRest, type Rest } from '../db/changes.ts'
import { failuresIn, ReportedFailures } from '../db/each-alone.ts'
import type { Loop, WorkerMeter } from '../upkeep/metrics/metrics.ts'

/** Rest after a failed round that backs off. Each further failure doubles it, up to the most. */
const FAILURE_PAUSE_MS = 1_000
const FAILURE_PAUSE_MS_MAX = 8_000

/** One round of a loop. Returns how long the loop rests then. */
export type Round = () => Promise<Rest>

/** Repeats rounds, until the signal, or until they are not needed any more. */
export const repeatUntil =
  (stopping: AbortSignal, changes: Changes | undefined) =>
  async (round: Round, isNeeded: () => boolean = () => true): Promise<void> => {
    const restOf = changes?.restsOfLoop() ?? ((rest: Rest): LoopRest => ({ ms: usualMs(rest) }))
    while (!stopping.aborted && isNeeded()) {
      const seen = changes?.count ?? 0
      const rest = await round()
      const { ms, endedBy } = await restOf(rest, seen)
      // A round that was under way at the stop must not rest.
      if (stopping.aborted) return
      await pause(ms, undefined, { signal: endedBy ?? changes?.rests ?? stopping }).catch(() => undefined)
    }
  }

/** How the loops of a node's customers, or those without customers, report their failures. */
export interface Attempts {
  /** Measures some work of a loop. Returns its result; undefined where it failed, which is logged, and the loop goes on. */
  attempt: <T>(loop: Loop, work: Promise<T>) => Promise<T | undefined>
  /** Whether the last failure was of more than single records. */
  isAway: () => boolean
}

/** `node`: the name of the part of the database in the log; empty for a plain database. */
export function attempts(log: Logger, meter: WorkerMeter | undefined, node = ''): Attempts {
  const where = node === '' ? {} : { node }
  const reported = new ReportedFailures()
  let away = false
  async function attempt<T>(loop: Loop, work: Promise<T>): Promise<T | undefined> {
    try {
      const result = await work
      meter?.round(loop, true)
      return result
    } catch (error) {
      meter?.round(loop, false)
      const { ofRecords, rest } = failuresIn(error)
      away = rest !== undefined
      meter?.recordsFailed(loop, ofRecords.length)
      for (const { record, cause } of reported.add(ofRecords))
        log.error({ err: cause, loop, record, ...where }, 'a record cannot be worked on; the others go on')
      if (rest !== undefined)
        log.error({ err: rest, loop, ...where }, 'a round of the worker failed; trying again')
      return undefined
    }
  }
  return { attempt, isAway: () => away }
}

/** Work with the same rest after each round, unless `told`, which gets what the work has found, returns another one. */
export const every =
  <Found>(
    { attempt }: Attempts,
    loop: Loop,
    restMs: number,
    work: () => Promise<Found>,
    told?: (found: Found) => number | void,
  ): Round =>
  async () => {
    // The failed work of a loop is undefined, and so is what some work finds.
    const done = await attempt(
      loop,
      work().then((found) => ({ found })),
    )
    return (done && told?.(done.found)) ?? restMs
  }

/**
 * Rests longer after each failed round: a node that is away for minutes is not asked, and logged, many times a second. The
 * failure of single records makes no rest longer: they must not slow the others.
 */
export function backingOff({ isAway }: Attempts, round: () => Promise<Rest | undefined>): Round {
  let failures = 0
  return async () => {
    const rest = await round()
    failures = rest === undefined ? (isAway() ? failures + 1 : 1) : 0
    return rest ?? Math.min(FAILURE_PAUSE_MS * 2 ** (failures - 1), FAILURE_PAUSE_MS_MAX)
  }
}

/** Work that returns how long it rests. Its requests to others go on between the rounds. */
export const resting = (attempts: Attempts, loop: Loop, work: () => Promise<Rest>): Round =>
  backingOff(attempts, async () => {
    const rest = await attempts.attempt(loop, work())
    return typeof rest === 'object' ? { ...rest, dueIn: () => attempts.attempt(loop, rest.dueIn()) } : rest
  })
