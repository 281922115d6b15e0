import { firstIdAt, type Moment } from '../db/ids.ts'

/** How far this process has read an endpoint's events. The cursor stays behind while an older transaction is under way. */
export interface Position {
  id: string
  /**
   * When everything from the cursor on was last read, by `performance.now()`; undefined while a pass from the cursor has not
   * reached the newest event.
   */
  passedAt: number | undefined
  /** Whether the last claim found fewer events for the endpoint than it could send, and there were more to read. */
  isSparse: boolean
}

export const START: Position = { id: '', passedAt: -Infinity, isSparse: false }

/**
 * A transaction that is under way for longer than this keeps the cursor before it, and each reading from the cursor passes
 * everything that was sent since. A process then reads on from its own position. It begins a pass from the cursor once its last
 * pass ended longer ago than this. A pass takes as many claims as it needs, each of which looks at a bounded number of events.
 */
const FROZEN_SECONDS = 1

interface Cursor {
  cursor_id: string
}

/** Where a claim reads events, and what follows from how far it read. */
interface Reading {
  from: string
  /** The new cursor, once all events up to `readTo` have their deliveries; undefined: all visible events have them. */
  cursorAt: (readTo: string | undefined) => string
  /** `passedAt` of the next position. */
  passedAt: (isAtEnd: boolean) => number | undefined
}

/** Reads from the cursor, which moves up to the horizon at most. */
const fromCursor = ({ cursor_id }: Cursor, horizonId: string): Reading => ({
  from: cursor_id,
  cursorAt: (readTo = horizonId) => (readTo > horizonId ? horizonId : readTo),
  passedAt: (isAtEnd) => (isAtEnd ? performance.now() : undefined),
})

/** Reads on from the position of this process. It ends the pass that an earlier claim began at the cursor. */
const fromPosition = ({ cursor_id }: Cursor, { id, passedAt }: Position): Reading => ({
  from: id,
  cursorAt: () => cursor_id,
  passedAt: (isAtEnd) => passedAt ?? (isAtEnd ? performance.now() : undefined),
})

/** Chooses where the next claim of an endpoint reads. */
export function readingOf(row: Cursor, now: Moment, horizon: Moment, position: Position): Reading {
  const isFrozen = now.micros - horizon.micros > FROZEN_SECONDS * 1e6
  const { id, passedAt = Infinity } = position
  const isPassDue = performance.now() - passedAt > FROZEN_SECONDS * 1000
  return !isFrozen || id < row.cursor_id || isPassDue
    ? fromCursor(row, firstIdAt(horizon.micros))
    : fromPosition(row, position)
}
