import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const SRC = fileURLToPath(new URL('../src', import.meta.url))

/**
 * The floors of src, and the floors that each may import: a floor is a folder, or a file directly in src. Imports point down
 * this table and never up, so a floor can be read without those above it.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  main: ['cli', 'package'],
  /** The script that bundles the program. */
  build: ['package'],
  /** The command line. */
  cli: [
    'program',
    'resources',
    'upkeep',
    'access',
    'rails',
    'signer',
    'governance',
    'deliveries',
    'money',
    'chains',
    'http',
    'contract',
    'db',
    'keys',
    'log',
    'settings',
    'finding',
    'package',
  ],
  /** The service and its worker, put together. */
  program: [
    'resources',
    'upkeep',
    'access',
    'rails',
    'governance',
    'deliveries',
    'money',
    'chains',
    'http',
    'contract',
    'db',
    'keys',
    'log',
    'settings',
    'finding',
  ],
  /** The operations of the API. */
  resources: [
    'access',
    'rails',
    'governance',
    'deliveries',
    'money',
    'chains',
    'http',
    'contract',
    'db',
    'settings',
    'finding',
  ],
  /** Metrics, health and deletion by age. */
  upkeep: [
    'rails',
    'governance',
    'deliveries',
    'money',
    'chains',
    'http',
    'contract',
    'db',
    'settings',
    'finding',
    'package',
  ],
  /** Who may call: API clients, operators and the console in which they sign in. */
  access: ['governance', 'money', 'http', 'contract', 'db', 'keys', 'settings', 'finding', 'package'],
  /** The process that has the keys of the hot wallets. It uses no database. */
  signer: ['governance', 'chains', 'contract', 'db'],
  /** Payments and deposits on networks: the worker's effects outside the database. */
  rails: ['governance', 'money', 'chains', 'http', 'contract', 'db', 'keys', 'settings', 'finding'],
  /** What customers have decided about their own payments: policies and approvals. */
  governance: ['money', 'chains', 'contract', 'db', 'keys', 'finding'],
  /** Events to the endpoints of customers. */
  deliveries: ['money', 'http', 'contract', 'db', 'settings', 'finding', 'package'],
  money: ['chains', 'contract', 'db', 'keys', 'finding'],
  chains: ['contract', 'db'],
  /** Requests and answers. This floor knows no asset, bank or orchestration. */
  http: ['contract', 'db', 'settings', 'finding', 'package'],
  /** The API's vocabulary: fields, problems, scopes, assets. */
  contract: [],
  db: ['finding', 'package'],
  /** The master keys: their configuration and the keys derived from them. */
  keys: ['settings', 'finding'],
  log: ['settings'],
  settings: [],
  /** What checks find: `bursar doctor` prints it. */
  finding: [],
  /** What package.json says. */
  package: [],
}

/** The rooms of the floor of money, in the order in which they may import each other: the ledger knows no other room. */
const MONEY = ['money/verify', 'money/movements', 'money/records', 'money/ledger']

/** The packages that these files of src import, also through other files, but not those that an action imports later. */
function packagesOf(...files: string[]): string[] {
  const seen = new Set<string>()
  const packages = new Set<string>()
  const load = (file: string) => {
    if (seen.has(file)) return
    seen.add(file)
    const source = readFileSync(join(SRC, file), 'utf8')
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

const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.ts') && !file.endsWith('.test.ts'),
)
const imports = files.flatMap((file) => importsOf(file, readFileSync(join(SRC, file), 'utf8')))

/** Returns the imports of a file in src, also of types only. */
function importsOf(file: string, source: string): Import[] {
  return [...source.matchAll(IMPORTED)].map(([, fromStatic, fromDynamic]) => ({
    from: file,
    to: relative(SRC, join(SRC, dirname(file), (fromStatic ?? fromDynamic)!)),
  }))
}

/** `money/ledger/transfer.ts` is on the floor money, `main.ts` on the floor main. */
const floorOf = (file: string) => file.split('/')[0]!.replace(/\.ts$/, '')
/** The folder in which a file is. */
const roomOf = (file: string) => file.split('/').slice(0, 2).join('/')

/**
 * Returns why an import breaks the table, or undefined. A resource imports no other resource: code that two resources need
 * moves down to another floor.
 */
function violation({ from, to }: Import): string | undefined {
  const [floor, target] = [floorOf(from), floorOf(to)]
  if (floor !== target)
    return (MAY_IMPORT[floor] ?? []).includes(target)
      ? undefined
      : `${from} imports ${to}: ${floor} is not above ${target}`
  const [room, other] = [roomOf(from), roomOf(to)]
  const isWrong =
    (floor === 'resources' && room !== other && dirname(to) !== floor) ||
    (floor === 'money' && MONEY.indexOf(room) > MONEY.indexOf(other))
  return isWrong ? `${from} imports ${to}: ${room} must not import ${other}` : undefined
}

test('every floor of src is in the table', () => {
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
    expect(importsOf('money/ledger/ledger-transaction.ts', source)).toEqual([
      { from: 'money/ledger/ledger-transaction.ts', to: 'app.ts' },
    ])
  })

  test('imports that point up', () => {
    const edge = (from: string, to: string) => violation({ from, to })
    expect(edge('resources/transfers/get-transfer.ts', 'resources/profiles/list-profiles.ts')).toBeDefined()
    expect(edge('resources/transfers/get-transfer.ts', 'resources/operation.ts')).toBeUndefined()
    expect(edge('money/records/profile.ts', 'program/app.ts')).toBeDefined()
    expect(edge('money/records/profile.ts', 'money/movements/post.ts')).toBeDefined()
    expect(edge('money/movements/post.ts', 'governance/policy/policy.ts')).toBeDefined()
    expect(edge('db/database.ts', 'contract/problems.ts')).toBeDefined()
    expect(edge('http/mount.ts', 'money/movements/queue.ts')).toBeDefined()
    expect(edge('money/ledger/ledger-transaction.ts', 'money/ledger/entries.ts')).toBeUndefined()
    expect(edge('new-floor/get.ts', 'db/database.ts')).toBeDefined()
  })

  test('import cycles', () => {
    const edge = (from: string, to: string) => ({ from, to })
    expect(cycles([edge('a', 'b'), edge('b', 'c'), edge('a', 'c')])).toEqual([])
    expect(cycles([edge('a', 'b'), edge('b', 'c'), edge('c', 'b')])).toEqual(['b -> c -> b'])
    expect(cycles([edge('a', 'a')])).toEqual(['a -> a'])
  })
})
