import { existsSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { warnings, type Finding } from '../finding.ts'

/**
 * Creates a folder and those above it. Not by Node's recursive `mkdir`, which never ends where a file system takes no
 * folders (`/proc`). Throws the error of the system.
 */
export async function makeFolder(path: string, mode?: number): Promise<void> {
  if (existsSync(path)) return
  await makeFolder(dirname(path), mode)
  await mkdir(path, mode).catch((error: Error) => {
    if (!existsSync(path)) throw error
  })
}

/** Warns when others than this process may read a file with a secret. */
export async function checkSecretFile(path: string): Promise<Finding[]> {
  const user = { uid: process.getuid!(), groups: [process.getgid!(), ...process.getgroups!()] }
  const advice = remedyForReaders(path, await stat(path), user)
  return warnings([advice !== undefined, `other users may read ${path}`, advice ?? ''])
}

/**
 * The command that denies a file to other readers and keeps it readable for the user of this process; undefined when nobody
 * else may read it. A file of another owner, such as root, reaches the service through its group.
 */
export function remedyForReaders(
  path: string,
  file: { mode: number; uid: number; gid: number },
  user: { uid: number; groups: readonly number[] },
): string | undefined {
  if (file.uid === user.uid && user.uid !== 0)
    return (file.mode & 0o077) === 0 ? undefined : `chmod 600 ${path}`
  if ((file.mode & 0o007) === 0) return undefined
  const byGroup = user.uid === 0 || ((file.mode & 0o040) !== 0 && user.groups.includes(file.gid))
  // Without the right of everybody, this user could not read it either.
  return byGroup ? `chmod o= ${path}` : `chown ${user.uid} ${path} && chmod 600 ${path}`
}
