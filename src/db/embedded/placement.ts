import { createHash } from 'node:crypto'
import { existsSync, statSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

/** The OS user that runs initdb and the server. Only root has to choose a user. */
export type OsUser = { name: string; uid: number; gid: number }

/** Where the embedded PostgreSQL lives: `home` holds its data and log, `bin` its programs. */
export type Placement = { home: string; bin: string; user?: OsUser }

/** The environment of initdb and the server: none of our variables leaks in, and messages are in English. */
export const ENVIRONMENT = { PATH: process.env.PATH, LC_ALL: 'C', TZ: 'UTC' }

/** Where root puts data and programs when the server's OS user cannot reach their own place. */
const FALLBACK_DIR = '/var/lib/bursar'

/**
 * Decides where data and programs live and which user runs the server, and creates those folders.
 *
 * An ordinary user runs the server as itself, with everything in `dataDir`. PostgreSQL refuses to run as root, so
 * root runs it as the owner of the data, or at first as `postgres` or `nobody`. Files that this user cannot reach (a
 * clone under /root, mode 0700) go below `fallbackDir`: Bursar does not change the mode of folders above its own.
 * Existing data is never abandoned for another place.
 *
 * @throws Error when this user cannot use the existing data, or there is no user to run the server.
 */
export async function choosePlacement(options: {
  dataDir: string
  bin: string
  fallbackDir?: string
  log: (message: string) => void
}): Promise<Placement> {
  const { fallbackDir = FALLBACK_DIR, log } = options
  const uid = process.getuid?.()
  const home = await makeFolder(options.dataDir, uid === 0 ? 0o711 : 0o700)
  const bin = await fs.realpath(options.bin)
  const data = join(home, 'postgres')
  if (uid !== 0) {
    if (existsSync(data) && statSync(data).uid !== uid) {
      throw new Error(`${data} belongs to the user with id ${statSync(data).uid}; start Bursar as that user`)
    }
    return { home, bin }
  }

  // An empty folder of root was created for us. Whatever its mode (mkdtemp uses 0700), let the server through.
  const folder = statSync(home)
  if (folder.uid === 0 && (await fs.readdir(home)).length === 0) await fs.chmod(home, folder.mode | 0o011)
  const fallbackHome = fallbackHomeOf(home, fallbackDir)
  const existing = [data, join(fallbackHome, 'postgres')].find((folder) => existsSync(folder))
  const user = serverUser(
    await fs.readFile('/etc/passwd', 'utf8'),
    existing ? statSync(existing).uid : undefined,
  )
  const obstacle = findObstacle(home, user)
  if (obstacle && existing === data) {
    throw new Error(`${data} cannot be reached by its owner ${user.name}: check the mode of ${obstacle}`)
  }
  const moved = existing ? existing !== data : obstacle !== undefined
  const programs = findObstacle(join(bin, 'postgres'), user) ? await copyPrograms(bin, fallbackDir) : bin
  if (!moved && programs === bin) return { home, bin, user }
  if (moved) await makeFolder(fallbackDir, 0o711)
  const chosen = moved ? await makeFolder(fallbackHome, 0o711) : home
  log(
    `PostgreSQL does not run as root: it runs as ${user.name}, with data in ${chosen} and programs in ${programs}`,
  )
  return { home: chosen, bin: programs, user }
}

/** The replacement for `home` where the server's user cannot reach it. */
const fallbackHomeOf = (home: string, fallbackDir: string) =>
  join(fallbackDir, createHash('sha256').update(home).digest('hex').slice(0, 12))

/** Finds the existing data folder of `dataDir`; undefined without data. Creates nothing. */
export async function findData(dataDir: string, fallbackDir = FALLBACK_DIR): Promise<string | undefined> {
  if (!existsSync(dataDir)) return undefined
  const home = await fs.realpath(dataDir)
  const places = [home, fallbackHomeOf(home, fallbackDir)].map((place) => join(place, 'postgres'))
  return places.find((place) => existsSync(place))
}

/** The first file or folder on the way to `path`, itself included, that `user` may not enter or execute. */
export function findObstacle(path: string, user: { uid: number; gid: number }): string | undefined {
  const parent = dirname(path)
  const above = parent === path ? undefined : findObstacle(parent, user)
  if (above) return above
  const { mode, uid, gid } = statSync(path)
  const executable = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001
  return mode & executable ? undefined : path
}

/**
 * Picks a user from the text of /etc/passwd: the owner of existing data, else `postgres`, else `nobody`.
 *
 * @throws Error when none of them exists.
 */
export function serverUser(passwd: string, owner?: number): OsUser {
  const users = passwd
    .split('\n')
    .map((line) => line.split(':'))
    .map(([name = '', , uid, gid]) => ({ name, uid: Number(uid), gid: Number(gid) }))
  const user = owner
    ? users.find((candidate) => candidate.uid === owner)
    : ['postgres', 'nobody'].map((name) => users.find((user) => user.name === name)).find((user) => user)
  if (user) return user
  throw new Error(
    owner
      ? `The data belongs to the user with id ${owner}, who is not in /etc/passwd`
      : 'PostgreSQL does not run as root, and /etc/passwd has neither postgres nor nobody: start Bursar as another user',
  )
}

/** Creates the folder with that mode, or leaves an existing folder as it is. Returns its real path. */
async function makeFolder(folder: string, mode: number): Promise<string> {
  const path = resolve(folder)
  await fs.mkdir(dirname(path), { recursive: true })
  try {
    await fs.mkdir(path)
    await fs.chmod(path, mode) // mkdir's own mode would be narrowed by the umask
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  return fs.realpath(path)
}

/**
 * Copies the package's `native` folder, once per version, to a place where everyone can run it. Returns the copy's
 * `bin`.
 */
async function copyPrograms(bin: string, fallbackDir: string): Promise<string> {
  const native = dirname(bin)
  const manifest = await fs.readFile(join(native, '..', 'package.json'), 'utf8')
  const { version } = JSON.parse(manifest) as { version: string }
  await makeFolder(fallbackDir, 0o711)
  const target = join(fallbackDir, `postgresql-${version}-${process.platform}-${process.arch}`)
  if (!existsSync(target)) {
    const copy = await fs.mkdtemp(`${target}.`)
    await fs.cp(native, copy, { recursive: true, verbatimSymlinks: true })
    await openToAll(copy)
    await fs.rename(copy, target).catch(async (error: unknown) => {
      await fs.rm(copy, { recursive: true, force: true })
      if (!existsSync(target)) throw error // otherwise another process has copied them
    })
  }
  return join(target, 'bin')
}

/**
 * Gives everyone the owner's right to read and execute. Flushes the files, so that the later rename cannot reach the
 * disk first.
 */
async function openToAll(path: string): Promise<void> {
  const stat = await fs.lstat(path)
  if (stat.isSymbolicLink()) return
  const owner = stat.mode & 0o500
  await fs.chmod(path, stat.mode | (owner >> 3) | (owner >> 6))
  await flush(path)
  if (stat.isDirectory()) for (const name of await fs.readdir(path)) await openToAll(join(path, name))
}

/** Flushes a file or folder, so that a later rename cannot reach the disk first. */
export async function flush(path: string): Promise<void> {
  const file = await fs.open(path)
  await file.sync()
  await file.close()
}

export function runAs(user: OsUser | undefined): { uid?: number; gid?: number } {
  return user ? { uid: user.uid, gid: user.gid } : {}
}
