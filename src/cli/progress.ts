import { SingleBar } from 'cli-progress'
import { ownProcess } from './own-process.ts'

export interface Progress {
  /** Reports that `by` more units are done; one unless given. */
  step: (count?: number) => void
  stop: () => void
}

/** Starts a progress bar on standard error if it is a terminal; otherwise shows nothing. */
export function startProgress(
  total: number,
  { quiet = false }: { quiet?: boolean | undefined } = {},
): Progress {
  const { stderr } = ownProcess()
  if (quiet || !stderr.isTTY) return { step: () => undefined, stop: () => undefined }
  const bar = new SingleBar({
    format: '{bar} {percentage} % | {eta_formatted} left',
    stream: stderr,
    clearOnComplete: true,
    stopOnComplete: false,
  })
  bar.start(total, 0)
  return { step: (count = 1) => bar.increment(count), stop: () => bar.stop() }
}
