import { existsSync } from 'node:fs'
import { access, constants, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { findEmbedded } from '../db/embedded/server.ts'
import { failed, ok, orElse, warn, warnings, type Finding } from '../finding.ts'
import { checkSecretFile } from '../keys/secret-file.ts'
import type { Settings } from '../settings.ts'
import { credentialsFile } from './demo/credentials.ts'

/** The checks of the machine that the service runs on. */

/** Whether this Node is new enough. `needed` is the range in package.json. */
export function checkNode(needed: string, running = process.versions.node): Finding {
  const [wanted, has] = [needed.replace(/[^\d.]/g, ''), running].map((text) => text.split('.').map(Number))
  const [major = 0, minor = 0] = has!
  const older = major < wanted![0]! || (major === wanted![0] && minor < (wanted![1] ?? 0))
  return older ? failed(`${running} is too old`, `install Node ${needed}`) : ok(running)
}

/** Warns of live mode as root: an attacker who takes over the process would own the machine. */
export function checkUser({ mode }: Settings): Finding[] {
  const isRoot = process.getuid?.() === 0
  const found = warnings([
    isRoot && mode === 'live',
    'this process runs as root',
    'run bursar serve as an ordinary user (docs/guides/container.md does)',
  ])
  return orElse(found, isRoot ? 'root: acceptable for a sandbox, a WARN in live mode' : 'not root')
}

/** Whether the data folder is writable, and its secrets and database are readable for nobody else. */
export async function checkDataFolder({ dataDir, databaseUrl, mode }: Settings): Promise<Finding[]> {
  if (databaseUrl !== undefined && mode === 'live')
    return [ok(`${dataDir} is not used: there is a DATABASE_URL, and no demo in live mode`)]
  const used = databaseUrl === undefined ? 'data and credentials' : 'the demo credentials'
  let folder = dataDir
  while (!existsSync(folder)) folder = dirname(folder)
  if (!(await stat(folder)).isDirectory())
    return [failed(`${folder} is not a folder`, 'set BURSAR_DATA_DIR to a folder')]
  await access(folder, constants.W_OK)
  const file = credentialsFile(dataDir)
  const data = databaseUrl === undefined ? (await findEmbedded(dataDir))?.data : undefined
  const isOpen = data !== undefined && ((await stat(data)).mode & 0o027) !== 0
  return [
    ok(folder === dataDir ? `${dataDir}, for ${used}` : `${dataDir} will be created, for ${used}`),
    ...(existsSync(file) ? await checkSecretFile(file) : []),
    ...(isOpen
      ? [failed(`other users may read ${data}: PostgreSQL refuses to start`, `chmod 700 ${data}`)]
      : []),
  ]
}

/** Describes the embedded server, which is for sandboxes. */
export function describeEmbedded(
  { mode }: Settings,
  embedded: Awaited<ReturnType<typeof findEmbedded>>,
): Finding {
  const says =
    embedded === undefined
      ? 'there is no embedded PostgreSQL yet: bursar serve creates it'
      : embedded.url === undefined
        ? `the embedded PostgreSQL is stopped, bursar serve starts it; its data is in ${embedded.data}`
        : `the embedded PostgreSQL is running, its data is in ${embedded.data}`
  return mode === 'sandbox'
    ? ok(says)
    : warn(`${says}; it is meant for sandboxes`, 'set DATABASE_URL to your own PostgreSQL server')
}
