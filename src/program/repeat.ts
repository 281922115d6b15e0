import { setTimeout as pause } from 'node:timers/promises'
import { usualMs, type Changes, type LoopRest, type Rest } from '../db/changes.ts'

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
