/* Each operation has its tests where a reader looks for them: beside it, in a `describe` with its summary. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { OPERATIONS, OPERATOR_OPERATIONS } from '../src/program/app.ts'

const RESOURCES = fileURLToPath(new URL('../src/resources', import.meta.url))
const DECLARED = /^ *summary: '([^']+)'/gm
const DESCRIBED = /^ *describe\('([^']+)', /gm

interface Source {
  /** The path in `src/resources`. */
  path: string
  text: string
}

/** Returns what is missing: for each operation without a `describe` in a test of its folder, where to write it. */
function missingIn(sources: Source[]): string[] {
  const folderOf = (path: string) => path.split('/')[0]!
  const found = (pattern: RegExp, isTest: boolean) =>
    sources
      .filter(({ path }) => path.endsWith('.test.ts') === isTest)
      .flatMap(({ path, text }) =>
        [...text.matchAll(pattern)].map(([, summary]) => ({ folder: folderOf(path), summary: summary! })),
      )
  const described = new Set(found(DESCRIBED, true).map(({ folder, summary }) => `${folder} ${summary}`))
  return found(DECLARED, false)
    .filter(({ folder, summary }) => !described.has(`${folder} ${summary}`))
    .map(({ folder, summary }) => `src/resources/${folder}/*.test.ts needs describe('${summary}', ...)`)
}

const sources = readdirSync(RESOURCES, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => ({ path, text: readFileSync(join(RESOURCES, path), 'utf8') }))

test('each operation has a `describe` with its summary in a test beside it', () => {
  expect(missingIn(sources)).toEqual([])
})

// Tests of the check itself: an operation that it misses would not be checked.
test('the check finds each operation, and one without tests', () => {
  const found = missingIn(sources.filter(({ path }) => !path.endsWith('.test.ts')))
  expect(found).toHaveLength(OPERATIONS.length + OPERATOR_OPERATIONS.length)
  const declared = { path: 'cards/get-card.ts', text: "  summary: 'Get Card',\n" }
  const tested = (path: string, text: string) => missingIn([declared, { path, text }])
  const missing = ["src/resources/cards/*.test.ts needs describe('Get Card', ...)"]
  expect(tested('cards/get-card.test.ts', "describe('Get Card', () => {})")).toEqual([])
  expect(tested('cards/get-card.test.ts', "// describe('Get Card', () => {})")).toEqual(missing)
  expect(tested('other/get-card.test.ts', "describe('Get Card', () => {})")).toEqual(missing)
})
