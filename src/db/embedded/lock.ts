import { readFileSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'

/** Identifies this process, and distinguishes it from an earlier process with the same pid. */
export const SELF = processIdentity(process.pid) ?? String(process.pid)

/**
 * Runs `work` under the folder's lock and returns its result. Undefined while another process holds the lock: try
 * again later.
 *
 * The lock is a symlink that names its holder; it is void once that process has died. Two processes may remove the
 * same void lock at the same moment. Their work stays safe: a data folder is put in place by one rename, and
 * PostgreSQL refuses a second server.
 */
export async function whileAlone<Result>(
  home: string,
  work: () => Promise<Result>,
): Promise<Result | undefined> {
  const lock = join(home, 'postgres.lock')
  try {
    await fs.symlink(SELF, lock)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const holder = await fs.readlink(lock).catch(() => undefined)
    if (holder !== undefined && !isRunning(holder)) await fs.rm(lock, { force: true })
    return undefined
  }
  try {
    return await work()
  } finally {
    await fs.rm(lock, { force: true })
  }
}

/**
 * Identifies a running process. Where /proc exists, by its start time too, so that a later process with the same pid
 * differs.
 */
function processIdentity(pid: number): string | undefined {
  try {
    if (process.platform !== 'linux') return process.kill(pid, 0) ? String(pid) : undefined
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const startTime = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] // field 22 of proc_pid_stat(5)
    return `${pid}-${startTime}`
  } catch {
    return undefined
  }
}

/** Whether the process of this identity (`SELF` or `processIdentity`) still runs. */
export function isRunning(identity: string): boolean {
  return processIdentity(Number.parseInt(identity)) === identity
}
