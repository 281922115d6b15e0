import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { floorOf, MAY_IMPORT } from './floors.ts'
import { roomOf, sources } from './sources.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** The rooms of the floor of money, in the order in which they may import each other: the ledger knows no other room. */
const MONEY = ['money/verify', 'money/books', 'money/movements', 'money/records', 'money/ledger']

/** The packages that these files of src import, also through other files, but not those that an action imports later. */
function packagesOf(...files: string[]): string[] {
  const seen = new Set<string>()
  const packages = new Set<string>()
  const load = (file: string) => {
    if (seen.has(file)) return
    seen.add(file)
    const source = readFileSync(join(ROOT, 'src', file), 'utf8')
    for (const [, name] of source.matchAll(/^(?:import|export)\b(?! type)(?:[^'"`;=]* from)? '([^']+)'/gm))
      if (name!.startsWith('.')) load(join(dirname(file), name!))
      else if (!name!.startsWith('node:')) packages.add(name!)
  }
  files.forEach(load)
  return [...packages].sort()
}

test('commands that call the API load no library of the service', () => {
  expect(packagesOf('main.ts')).toEqual([])
  expect(packagesOf('cli/program.ts', 'cli/api.ts')).toEqual(['commander', 'envalid'])
  for (const file of ['cli/events.ts', 'cli/trigger/trigger.ts'])
    expect(packagesOf('cli/program.ts', file)).toEqual(['commander', 'envalid', 'temporal-polyfill'])
})

interface Import {
  from: string
  to: string
}

/** An import, static or dynamic, or a re-export, as the formatter writes them. Loading the compiler took 0.4 s of CPU. */
const IMPORTED = /^(?:import|export)\b[^'"`;]*'(\.[^']+\.ts)'|\bimport\(\s*'(\.[^']+\.ts)'/gm

const files = sources.map(({ file }) => file)
const imports = sources.flatMap(({ file, text }) => importsOf(file, text))

/** Returns the imports of a file, also of types only. */
function importsOf(file: string, text: string): Import[] {
  return [...text.matchAll(IMPORTED)].map(([, fromStatic, fromDynamic]) => ({
    from: file,
    to: join(dirname(file), (fromStatic ?? fromDynamic)!),
  }))
}

/** The one file of the core that names the families. Nothing of a family is loaded before it is asked for. */
const FAMILIES = 'src/networks/families.ts'

/**
 * Returns why an import breaks the table, or undefined. A resource imports no other resource, and a family no other family: code
 * that two need moves down to another floor.
 */
function violation({ from, to }: Import): string | undefined {
  if (from === FAMILIES && /^chains\/\w+\/family\.ts$/.test(to)) return undefined
  const [floor, target] = [floorOf(from), floorOf(to)]
  if (floor !== target)
    return (MAY_IMPORT[floor] ?? []).includes(target)
      ? undefined
      : `${from} imports ${to}: ${floor} is not above ${target}`
  const [room, other] = [roomOf(from), roomOf(to)]
  const isWrong =
    (floor === 'resources' && room !== other && other !== floor) ||
    (floor === 'chains' && room !== other && other !== 'chains/kit') ||
    (floor === 'money' && MONEY.indexOf(room) > MONEY.indexOf(other))
  return isWrong ? `${from} imports ${to}: ${room} must not import ${other}` : undefined
}

test('every floor is in the table', () => {
  expect(new Set(files.map(floorOf))).toEqual(new Set(Object.keys(MAY_IMPORT)))
})

test('each line of the table allows only floors below it', () => {
  const order = Object.keys(MAY_IMPORT)
  for (const [floor, allowed] of Object.entries(MAY_IMPORT)) {
    for (const target of allowed)
      expect(order.indexOf(target), `${floor}: ${target}`).toBeGreaterThan(order.indexOf(floor))
  }
})

test('imports follow the table', () => {
  expect(imports.length).toBeGreaterThan(100)
  expect(imports.map(violation).filter((found) => found !== undefined)).toEqual([])
})

test('imports name files of src', () => {
  for (const { from, to } of imports) expect(files, `${from} imports ${to}`).toContain(to)
})

/** Where the operator spreads the tables over a cluster. All else finds a customer's part of the database by `src/db/parts.ts`. */
const DISTRIBUTES = 'src/cli/database.ts'

test('only the room of the database knows Citus, its coordinator and its shards', () => {
  const outside = sources.filter(({ file }) => !file.startsWith('src/db/') && file !== DISTRIBUTES)
  const naming = outside.filter(({ text }) => /\b(citus|oncitus|coordinators?|shards?)\b/i.test(text))
  expect(naming.map(({ file }) => file)).toEqual([])
  const opening = imports.filter(({ from, to }) => to === 'src/db/nodes.ts' && !from.startsWith('src/db/'))
  expect(opening).toEqual([{ from: 'src/program/connect.ts', to: 'src/db/nodes.ts' }])
})

test('no file imports itself through other files, not even for a type', () => {
  expect(cycles(imports)).toEqual([])
})

/** Returns every import cycle, each once. */
function cycles(edges: Import[]): string[] {
  const found = new Set<string>()
  const done = new Set<string>()
  const walk = (file: string, path: string[]): void => {
    const start = path.indexOf(file)
    if (start >= 0) return void found.add([...path.slice(start), file].join(' -> '))
    if (done.has(file)) return
    for (const { from, to } of edges) if (from === file) walk(to, [...path, file])
    done.add(file)
  }
  for (const { from } of edges) walk(from, [])
  return [...found]
}

// Tests of the check itself: an import that it misses would not be checked.
describe('the check finds', () => {
  test.each([
    `import { a } from '../../app.ts'`,
    `import a from '../../app.ts'`,
    `import * as a from '../../app.ts'`,
    `import '../../app.ts'`,
    `import {} from '../../app.ts'`,
    `import { type A, b } from '../../app.ts'`,
    `export { a } from '../../app.ts'`,
    `export * from '../../app.ts'`,
    `async function f() { const { a } = await import('../../app.ts') }`,
    `import type { A } from '../../app.ts'`,
    `import { type A, type B } from '../../app.ts'`,
    `export type { A } from '../../app.ts'`,
    `let a: import('../../app.ts').A`,
    `import {\n  a,\n  b,\n} from '../../app.ts'`,
  ])('%s', (source) => {
    expect(importsOf('src/money/ledger/ledger-transaction.ts', source)).toEqual([
      { from: 'src/money/ledger/ledger-transaction.ts', to: 'src/app.ts' },
    ])
  })

  test('imports that point up', () => {
    const edge = (from: string, to: string) => violation({ from, to })
    expect(
      edge('src/resources/transfers/get-transfer.ts', 'src/resources/profiles/list-profiles.ts'),
    ).toBeDefined()
    expect(edge('src/resources/transfers/get-transfer.ts', 'src/resources/operation.ts')).toBeUndefined()
    expect(edge('src/money/records/profile.ts', 'src/program/app.ts')).toBeDefined()
    expect(edge('src/money/records/profile.ts', 'src/money/movements/post.ts')).toBeDefined()
    expect(edge('src/money/movements/post.ts', 'src/governance/policy/policy.ts')).toBeDefined()
    expect(edge('src/db/database.ts', 'src/contract/problems.ts')).toBeDefined()
    expect(edge('src/http/mount.ts', 'src/money/movements/queue.ts')).toBeDefined()
    expect(edge('src/money/ledger/ledger-transaction.ts', 'src/money/ledger/entries.ts')).toBeUndefined()
    expect(edge('src/new-floor/get.ts', 'src/db/database.ts')).toBeDefined()
  })

  test('import cycles', () => {
    const edge = (from: string, to: string) => ({ from, to })
    expect(cycles([edge('a', 'b'), edge('b', 'c'), edge('a', 'c')])).toEqual([])
    expect(cycles([edge('a', 'b'), edge('b', 'c'), edge('c', 'b')])).toEqual(['b -> c -> b'])
    expect(cycles([edge('a', 'a')])).toEqual(['a -> a'])
  })
})
