import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

/** The server process of a data folder, as PostgreSQL's own files in the folder name it. */

export const POLL_MS = 25
/** A fast shutdown writes a checkpoint first; an immediate one does not. */
const FAST_SHUTDOWN_MS_MAX = 60_000
const IMMEDIATE_SHUTDOWN_MS_MAX = 10_000

type Postmaster = { pid: number; port: number; ready: boolean; alive: boolean }

/** Reads postmaster.pid, and checks that the process really is the server of this data folder. */
export async function readPostmaster(data: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(data, 'postmaster.pid'), 'utf8').catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  })
  if (!text) return undefined
  const lines = text.split('\n')
  const pid = Number(lines[0])
  return {
    pid,
    port: Number(lines[3]),
    ready: lines[7]?.trim() === 'ready',
    alive: await isServerOn(pid, data),
  }
}

/** Reads the port from the command line that PostgreSQL keeps of its last start. */
export async function readLastPort(data: string): Promise<number | undefined> {
  const options = await readFile(join(data, 'postmaster.opts'), 'utf8').catch(() => '')
  const port = /"port=(\d+)"/.exec(options)?.[1]
  return port ? Number(port) : undefined
}

async function isServerOn(pid: number, data: string): Promise<boolean> {
  const command =
    process.platform === 'linux'
      ? readFile(`/proc/${pid}/cmdline`, 'utf8').then((text) => text.replaceAll('\0', ' '))
      : promisify(execFile)('ps', ['-ww', '-o', 'command=', '-p', String(pid)]).then(({ stdout }) => stdout)
  return (await command.catch(() => '')).includes(`/postgres -D ${data} `)
}

/** Stops the server, at once where it does not end in order. Throws an Error where it does not end at all. */
export async function shutDown(data: string): Promise<void> {
  const postmaster = await readPostmaster(data)
  if (!postmaster) return
  const steps = [
    ['SIGINT', FAST_SHUTDOWN_MS_MAX],
    ['SIGQUIT', IMMEDIATE_SHUTDOWN_MS_MAX],
  ] as const
  for (const [signal, patienceMs] of steps) {
    const deadline = Date.now() + patienceMs
    if (await isServerOn(postmaster.pid, data)) process.kill(postmaster.pid, signal)
    while (Date.now() < deadline) {
      if (!(await isServerOn(postmaster.pid, data))) return
      await sleep(POLL_MS)
    }
  }
  throw new Error(`PostgreSQL (pid ${postmaster.pid}, data in ${data}) does not stop; kill it by hand`)
}
