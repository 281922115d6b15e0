import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export interface Load {
  baseUrl: string
  /** In turns, each with its own token. */
  customers: { token: string; profileIds: string[] }[]
  /** What is read, in turns, instead of withdrawals. */
  paths?: string[]
  clients: number
  seconds: number
  /** The prefix of the ref_ids, which makes them unique. */
  prefix: string
}

export interface LoadResult {
  perSecond: number
  p50Ms: number
  p99Ms: number
  refused: number
}

/** Runs the load generator and returns its figures. */
export async function httpLoad(load: Load): Promise<LoadResult> {
  const script = fileURLToPath(new URL('load.ts', import.meta.url))
  const running = promisify(execFile)(process.execPath, ['--import', 'tsx', script])
  // The tokens of a hundred customers are longer than an argument may be.
  running.child.stdin!.end(JSON.stringify(load))
  const { stdout } = await running
  return JSON.parse(stdout) as LoadResult
}
