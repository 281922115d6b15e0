import { randomBytes } from 'node:crypto'
import { readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readSettings, SettingsError } from '../settings.ts'
import { findMasterKeys, masterKeyFile, masterKeysOf, openMasterKeys } from './master-keys.ts'
import { ownFolder } from '../../test/at-end.ts'

const SETTING = 'BURSAR_MASTER_KEY_FILE'
const newKey = () => randomBytes(32).toString('hex')

const folder = await ownFolder()

const settingsOf = (environment: Record<string, string>) =>
  readSettings({ BURSAR_DATA_DIR: join(folder, 'data'), ...environment })

describe('a master key', () => {
  test('is the same in hex and in base64, and derives a different key for each purpose', () => {
    const bytes = randomBytes(32)
    const keys = ['hex', 'base64', 'base64url'].map(
      (encoding) => masterKeysOf([bytes.toString(encoding as BufferEncoding)], SETTING).current,
    )
    expect(new Set(keys.map(({ id }) => id)).size).toBe(1)
    expect(new Set(keys.map((key) => key.derive('signingKeys').toString('hex'))).size).toBe(1)
    expect(keys[0]!.derive('signingKeys')).toHaveLength(32)
    expect(keys[0]!.derive('signingKeys').equals(bytes)).toBe(false)
    expect(bytes.toString('hex')).not.toContain(keys[0]!.id)
  })

  test('derives the same keys forever: encrypted records must stay readable', () => {
    const { current } = masterKeysOf(
      ['000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f'],
      SETTING,
    )
    expect([current.id, current.derive('signingKeys').toString('hex')]).toEqual([
      '298f59b3',
      '011a453a81ddfc4cc52803d468734b67ba087d48d15b9b4ed3eb453dee5857f5',
    ])
  })

  test('is the first of several keys, and the other keys are found by their ids', () => {
    const texts = [newKey(), newKey()]
    const keys = masterKeysOf(['# since May', texts[0]!, '', ` ${texts[1]} `], SETTING)
    const alone = texts.map((text) => masterKeysOf([text], SETTING).current.id)
    expect(keys.current.id).toBe(alone[0])
    expect(keys.ids).toEqual(alone)
    expect(keys.find(alone[1]!)!.id).toBe(alone[1])
    expect(keys.find('00000000')).toBeUndefined()
  })

  test.each([
    ['nothing', []],
    ['a comment', ['# none']],
    ['31 bytes', [randomBytes(31).toString('hex')]],
    ['33 bytes', [randomBytes(33).toString('base64')]],
    ['a pass phrase', ['correct horse battery staple']],
    ['a pattern', ['ab'.repeat(32)]],
    ['a wrong key after a valid key', [newKey(), 'secret-word']],
  ])('is not %s, and the message does not show it', (_name, lines) => {
    const read = () => masterKeysOf(lines, SETTING)
    expect(read).toThrow(SettingsError)
    expect(read).toThrow(/^BURSAR_MASTER_KEY_FILE: (there is no key|line \d is not a key of 32 random bytes)/)
    for (const line of lines) expect(read).not.toThrow(line)
  })
})

describe('a sandbox', () => {
  test('generates a key readable only by its owner, which processes that start together share', async () => {
    const settings = settingsOf({})
    expect(await findMasterKeys(settings)).toBeUndefined()
    const opened = await Promise.all(Array.from({ length: 8 }, () => openMasterKeys(settings)))
    expect(new Set(opened.map(({ current }) => current.id)).size).toBe(1)
    const file = masterKeyFile(settings.dataDir)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await readdir(settings.dataDir)).toEqual(['master-key'])
    expect(await readFile(file, 'utf8')).toMatch(/^[0-9a-f]{64}\n$/)
    expect((await findMasterKeys(settings))!.ids).toEqual(opened[0]!.ids)
  })

  test('uses the configured key', async () => {
    const [one, other] = [newKey(), newKey()]
    const ids = [one, other].map((text) => masterKeysOf([text], SETTING).current.id)
    const given = await openMasterKeys(settingsOf({ BURSAR_MASTER_KEY: `${one}, ${other}` }))
    expect(given.ids).toEqual(ids)
    const file = join(folder, 'given')
    await writeFile(file, `${other}\n${one}\n`)
    const read = await openMasterKeys(settingsOf({ BURSAR_MASTER_KEY_FILE: file }))
    expect(read.ids).toEqual([ids[1], ids[0]])
  })
})

test.each<[string, Record<string, string>, RegExp]>([
  [
    'live mode without a master key',
    { BURSAR_MODE: 'live' },
    /^BURSAR_MASTER_KEY_FILE: live mode needs .*openssl rand/,
  ],
  ['a missing file', { BURSAR_MASTER_KEY_FILE: '/nowhere/key' }, /^BURSAR_MASTER_KEY_FILE: ENOENT/],
  [
    'a file together with a key',
    { BURSAR_MASTER_KEY_FILE: '/k', BURSAR_MASTER_KEY: newKey() },
    /^BURSAR_MASTER_KEY: give either/,
  ],
  ['a word', { BURSAR_MASTER_KEY: 'secret-word' }, /^BURSAR_MASTER_KEY: line 1 is not a key/],
])('%s is refused by its setting', async (_name, environment, message) => {
  await expect(openMasterKeys(settingsOf(environment))).rejects.toThrow(SettingsError)
  await expect(openMasterKeys(settingsOf(environment))).rejects.toThrow(message)
})
