/** The systemd units of docs/guides/going-live.md: every setting in them exists, and processes start with them. */
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SETTINGS } from '../src/settings.ts'
import { atEnd, cloneDatabase, freePort, MASTER_KEY, spawnBursar, type TestDatabase } from './support.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')
/** The port of the instance: bursar-api@8080. */
const INSTANCE = '8080'
const UNITS = ['bursar-api@.service', 'bursar-worker.service']

/** Reads assignments NAME=value, one or more a line, and skips comments. */
const assignments = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.replaceAll(/^#.*$/gm, '').matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name, value]) => [
      name!,
      value!,
    ]),
  )

const shared = assignments(read('ops/systemd/bursar.env'))
/** Returns the command of a unit, and its settings besides the shared ones. */
function unit(name: string) {
  const text = read(`ops/systemd/${name}`).replaceAll('%i', INSTANCE)
  const environment = [...text.matchAll(/^Environment=(.*)$/gm)].map(([, line]) => line!).join('\n')
  return { own: assignments(environment), command: /^ExecStart=(.*)$/m.exec(text)![1]! }
}

let database: TestDatabase
let folder: string
beforeAll(async () => {
  database = await cloneDatabase(2)
  folder = await mkdtemp(join(tmpdir(), 'bursar-going-live-'))
  await writeFile(join(folder, 'master-key'), MASTER_KEY, { mode: 0o600 })
  await writeFile(join(folder, 'networks.json'), '{}')
  await writeFile(join(folder, 'networks-api.json'), '{}')
})
afterAll(async () => {
  await database.drop()
  await rm(folder, { recursive: true, force: true })
})

describe.each(UNITS)('%s', (name) => {
  const { own, command } = unit(name)

  test('sets only settings that the program knows', () => {
    expect(Object.keys(own)).toContain('BURSAR_WORKER')
    for (const setting of Object.keys({ ...shared, ...own }))
      expect(setting === 'NODE_ENV' || setting in SETTINGS, setting).toBe(true)
    // A setting of the shared file would win over the unit's own.
    for (const setting of Object.keys(own)) expect(shared).not.toHaveProperty(setting)
  })

  test('runs the same command as npm start', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: { start: string } }
    expect(command).toBe(`/usr/bin/${scripts.start}`)
    expect(existsSync(join(ROOT, 'dist/main.js'))).toBe(true)
  })

  test('starts in live mode with its settings', async () => {
    const inFolder = Object.fromEntries(
      Object.entries({ ...shared, ...own })
        .filter(([, value]) => value.startsWith('/'))
        .map(([setting, path]) => [setting, join(folder, path.split('/').at(-1)!)]),
    )
    const bursar = await spawnBursar({
      ...shared,
      ...own,
      ...inFolder,
      BURSAR_MASTER_KEY: '',
      DATABASE_URL: database.url,
      PORT: String(await freePort()),
      BURSAR_METRICS_PORT: '0',
    })
    atEnd(() => bursar.end('SIGKILL'))
    expect((await fetch(`${bursar.address}/health/ready`)).status).toBe(200)
    expect((await fetch(`${bursar.address}/v2/sandbox/fiat-deposits`, { method: 'POST' })).status).toBe(404)
  })
})
