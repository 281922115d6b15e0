import { readFileSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { join } from 'node:path'

/** Tells this process from all others, also from an earlier one that had the same pid. */
export const SELF = processIdentity(process.pid) ?? String(process.pid)

/**
 * Runs `work` and answers its result, unless another process is at such work: then undefined, try again later.
 *
 * The lock is a symlink that names its holder, and is void when that one has died. Should two processes remove
 * the same void lock at the same moment, what is done under it still holds: a data folder is put in place by one
 * rename, and a second server is refused by PostgreSQL.
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

/** Names a running process; where /proc has it with its start time, so that a successor by pid is another. */
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

/** Whether the process still runs that `SELF` or `processIdentity` named. */
export function isRunning(identity: string): boolean {
  return processIdentity(Number.parseInt(identity)) === identity
}
