import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { checkOtherReaders } from './readers.ts'
import { atEnd, ownFolder } from '../../test/at-end.ts'

/** The user `nobody`, and a group that only one of the processes has. */
const NOBODY = 65_534
const SHARED = 54_321

/** Starts a process that looks like one of Bursar; it is ended after the test. */
async function start(user: { uid?: number; gid?: number }, networksFile: string): Promise<number> {
  const child = spawn('/bin/sh', ['-c', 'echo ready; read line', '/opt/bursar/dist/main.js', 'serve'], {
    ...user,
    env: { BURSAR_NETWORKS_FILE: networksFile },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  atEnd(async () => {
    child.stdin.end()
    await once(child, 'exit')
  })
  await once(child.stdout, 'data')
  return child.pid!
}

test('a key that another process of Bursar can read is told, by its user, by its group, and by everybody', async () => {
  const folder = await ownFolder()
  const key = join(folder, 'ethereum-key')
  await writeFile(key, 'secret', { mode: 0o600 })
  const told = async () => {
    const found = await checkOtherReaders('BURSAR_NETWORKS_FILE', '/worker.json', [key])
    return found.map(({ says }) => says)
  }
  const holder = await start({}, '/worker.json')
  const other = await start({}, '/api.json')
  // Other programs of this machine may be processes of Bursar, too.
  const [says] = await told()
  expect(says).toMatch(new RegExp(`^other processes of Bursar can read ${key}: .*\\b${other} of user`))
  expect(says).not.toMatch(new RegExp(`\\b${holder} of user`))
})

test.skipIf(process.getuid!() !== 0)(
  'users of this machine read a key by its mode, and no further',
  async () => {
    const folder = await ownFolder()
    const key = join(folder, 'ethereum-key')
    await writeFile(key, 'secret')
    const pid = await start({ uid: NOBODY, gid: SHARED }, '/api.json')
    const isTold = async (uid: number, gid: number, mode: number) => {
      await chown(key, uid, gid)
      await chmod(key, mode)
      const found = await checkOtherReaders('BURSAR_NETWORKS_FILE', '/worker.json', [key])
      return found.some(({ says }) => says.includes(`${pid} of user ${NOBODY}`))
    }
    expect(await isTold(0, 0, 0o640)).toBe(false)
    expect(await isTold(0, SHARED, 0o640)).toBe(true)
    expect(await isTold(0, SHARED, 0o600)).toBe(false)
    expect(await isTold(NOBODY, 0, 0o400)).toBe(true)
    expect(await isTold(0, 0, 0o644)).toBe(true)
  },
)
