import { readdir, readFile, stat } from 'node:fs/promises'
import { warn, type Finding } from '../finding.ts'

/** A running process of Bursar, as /proc shows it. Its environment is undefined where this user may not read it. */
interface Running {
  pid: string
  uid: number
  groups: number[]
  environment: string[] | undefined
}

const PROGRAM = /(?:^|\/)(?:main\.js|bursar)$/
const COMMANDS = ['serve', 'signer']

/** The other processes of Bursar on this machine; none where there is no /proc. */
async function runningProcesses(): Promise<Running[]> {
  const pids = await readdir('/proc').catch(() => [])
  const read = (pid: string, file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => undefined)
  const found: Running[] = []
  for (const pid of pids.filter((name) => /^\d+$/.test(name) && name !== String(process.pid))) {
    const words = (await read(pid, 'cmdline'))?.split('\0') ?? []
    const command = words[words.findIndex((word) => PROGRAM.test(word)) + 1]
    const status = COMMANDS.includes(command ?? '') ? await read(pid, 'status') : undefined
    if (status === undefined) continue
    const ids = (name: string) =>
      (new RegExp(`^${name}:(.*)$`, 'm').exec(status)?.[1] ?? '').match(/\d+/g) ?? []
    const [, uid] = ids('Uid').map(Number)
    const groups = [...ids('Gid').slice(1), ...ids('Groups')].map(Number)
    found.push({ pid, uid: uid!, groups, environment: (await read(pid, 'environ'))?.split('\0') })
  }
  return found
}

/**
 * Warns of other processes of Bursar whose user can read one of these files with keys, except those whose `setting` names
 * the same keys. Folders above a file are not looked at.
 */
export async function checkOtherReaders(
  setting: string,
  value: string,
  paths: readonly string[],
): Promise<Finding[]> {
  if (paths.length === 0) return []
  const others = (await runningProcesses()).filter(
    ({ environment }) => environment?.includes(`${setting}=${value}`) !== true,
  )
  const found: Finding[] = []
  for (const path of paths) {
    const { mode, uid, gid } = await stat(path)
    const readers = others.flatMap((process) => {
      const right = process.uid === uid ? 0o400 : process.groups.includes(gid) ? 0o040 : 0o004
      return process.uid === 0 || (mode & right) !== 0 ? `${process.pid} of user ${process.uid}` : []
    })
    const advice =
      'run API, worker and signer as three users, each with its own files (docs/guides/going-live.md)'
    if (readers.length > 0)
      found.push(warn(`other processes of Bursar can read ${path}: ${readers.join(', ')}`, advice))
  }
  return found
}
