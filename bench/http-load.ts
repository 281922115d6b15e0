import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

export interface Load {
  baseUrl: string
  token: string
  profileIds: string[]
  clients: number
  seconds: number
  /** Withdrawals in each bulk request. Without it, each request makes one withdrawal. */
  itemsEach?: number
  /**
   * Requests a second over all connections (open loop). Each request is due at a fixed time, even while the service is slow,
   * and its latency counts from that time. Without it, each connection sends as soon as its last request is answered.
   */
  perSecond?: number
  /** The share of requests for the first profile. Without it, the profiles take turns. */
  hotShare?: number
  /** The prefix of the ref_ids, which makes them unique. */
  prefix: string
}

export interface LoadResult {
  perSecond: number
  p50Ms: number
  p99Ms: number
  p999Ms: number
  /** The share of requests that took longer than a second. */
  shareOverSecond: number
  refused: number
  cpuSeconds: number
}

/** Runs the load generator and returns its figures. */
export async function httpLoad(load: Load): Promise<LoadResult> {
  const script = fileURLToPath(new URL('load.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--import',
    'tsx',
    script,
    JSON.stringify(load),
  ])
  return JSON.parse(stdout) as LoadResult
}
