import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { isRunning, SELF, whileAlone } from './lock.ts'
import { ENVIRONMENT, flush, runAs, type OsUser, type Placement } from './placement.ts'

export type Passwords = { superuser: string; bursar: string }

/** How long a process waits while another process runs initdb: about a minute. */
const INIT_POLL_MS = 50
const INIT_WAITS_MAX = 1_200

/** Creates the data folder `<home>/postgres` unless it exists. Returns its path. */
export async function initialiseOnce(placement: Placement, log: (message: string) => void): Promise<string> {
  const data = join(placement.home, 'postgres')
  for (let wait = 1; !existsSync(data); wait++) {
    if (wait > INIT_WAITS_MAX) throw new Error(`another process is still busy creating ${data}`)
    try {
      await whileAlone(placement.home, async () => {
        if (!existsSync(data)) await initialise(placement, data, log)
      })
    } catch (error) {
      if (!existsSync(data)) throw error
    }
    if (!existsSync(data)) await sleep(INIT_POLL_MS)
  }
  return data
}

/** Runs initdb in a folder next to `data` and renames it, so that a folder with the final name is always complete. */
async function initialise({ home, bin, user }: Placement, data: string, log: (message: string) => void) {
  const prefix = 'postgres.init-'
  for (const name of await fs.readdir(home)) {
    if (!name.startsWith(prefix) || isRunning(name.slice(prefix.length))) continue
    log(`Removing ${name}, which an interrupted start left in ${home}`)
    await fs.rm(join(home, name), { recursive: true, force: true, maxRetries: 5 }) // the interrupted initdb may still write
  }
  log(`Creating a PostgreSQL data folder in ${home}`)
  const work = join(home, prefix + SELF)
  const unfinished = join(work, 'postgres')
  const superuserFile = join(work, 'superuser')
  const passwords: Passwords = { superuser: newPassword(), bursar: newPassword() }
  try {
    await fs.mkdir(work, { mode: 0o700 })
    if (user) await fs.chown(work, user.uid, user.gid)
    await writeSecret(superuserFile, passwords.superuser, user)
    const flags = ['--encoding=UTF8', '--no-locale', '--auth=scram-sha-256', '--no-instructions']
    await promisify(execFile)(
      join(bin, 'initdb'),
      ['-D', unfinished, '-U', 'postgres', `--pwfile=${superuserFile}`, ...flags],
      { ...runAs(user), env: ENVIRONMENT, cwd: '/' },
    )
    await writeSecret(passwordFile(unfinished), JSON.stringify(passwords), user)
    await fs.rename(unfinished, data)
    await flush(home)
  } finally {
    await fs.rm(work, { recursive: true, force: true })
  }
}

/** The file is in the data folder itself, so that the passwords and the data appear, move and vanish together. */
export function passwordFile(data: string): string {
  return join(data, 'bursar-passwords.json')
}

/** @throws Error when the password file is not readable. */
export async function readPasswords(data: string): Promise<Passwords> {
  try {
    return JSON.parse(await fs.readFile(passwordFile(data), 'utf8')) as Passwords
  } catch (cause) {
    throw new Error(`${passwordFile(data)} is not readable: restore it, the data cannot be used without it`, {
      cause,
    })
  }
}

function newPassword(): string {
  return randomBytes(24).toString('hex')
}

async function writeSecret(path: string, content: string, user: OsUser | undefined): Promise<void> {
  const file = await fs.open(path, 'wx', 0o600)
  await file.writeFile(content)
  if (user) await file.chown(user.uid, user.gid)
  await file.close()
  await flush(path)
  await flush(dirname(path))
}
