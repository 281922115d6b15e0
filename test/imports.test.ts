import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const SRC = fileURLToPath(new URL('../src', import.meta.url))

/** The parts that every resource may import. */
const SHARED = ['movements', 'records', 'ledger', 'networks', 'http', 'contract', 'db', 'assets', 'keys']

/**
 * The parts that each part of src may import. A part is a folder, or a file directly in src. Imports point down this
 * table and never up. A resource imports no other resource: code that two resources need moves down to a shared part.
 */
const MAY_IMPORT: Record<string, readonly string[]> = {
  // The program: the command line, the service and the demo of a sandbox.
  main: ['commands'],
  commands: [
    'serve',
    'verify',
    'connect',
    'deployment',
    'demo',
    'markets',
    'statements',
    'transfers',
    'profiles',
    'customers',
    'accounts',
    'identities',
    'operators',
    'console',
    'oauth',
    'policy',
    'retention',
    'deliveries',
    'settlement',
    'screening',
    'outbound',
    ...SHARED,
    'log',
    'settings',
    'transport-security',
  ],
  serve: [
    'connect',
    'deployment',
    'app',
    'worker',
    'deliveries',
    'metrics',
    'demo',
    'markets',
    'oauth',
    'retention',
    'settlement',
    'screening',
    ...SHARED,
    'log',
    'settings',
    'transport-security',
  ],
  deployment: ['db', 'settings', 'keys', 'ledger', 'records'],
  connect: ['db', 'settings'],
  app: [
    'transfers',
    'deposit-addresses',
    'destination-addresses',
    'fiat-accounts',
    'fiat-deposit-instructions',
    'conversions',
    'orchestrations',
    'statements',
    'markets',
    'catalogue',
    'sandbox',
    'profiles',
    'identities',
    'accounts',
    'api-credentials',
    'webhooks',
    'approvals',
    'events',
    'operators',
    'console',
    'audit-log',
    'policy',
    'search',
    'oauth',
    'health',
    'context',
    ...SHARED,
    'settings',
  ],
  worker: [
    'destination-addresses',
    'deliveries',
    'statements',
    'orchestrations',
    'retention',
    'settlement',
    'screening',
    'metrics',
    ...SHARED,
    'settings',
  ],
  demo: [
    'webhooks',
    'orchestrations',
    'statements',
    'identities',
    'accounts',
    'customers',
    'oauth',
    'context',
    ...SHARED,
    'settings',
  ],
  metrics: ['deliveries', 'screening', 'movements', 'records', 'networks', 'http', 'contract', 'db'],

  // The resources.
  transfers: ['settlement', 'verify', 'operation', ...SHARED],
  'deposit-addresses': ['operation', ...SHARED],
  'destination-addresses': ['operation', ...SHARED],
  'fiat-accounts': ['operation', ...SHARED],
  'fiat-deposit-instructions': ['operation', ...SHARED],
  conversions: ['operation', ...SHARED],
  orchestrations: ['operation', 'context', ...SHARED],
  statements: ['operation', ...SHARED],
  sandbox: ['settlement', 'operation', ...SHARED],
  profiles: ['operation', ...SHARED],
  identities: ['operation', ...SHARED],
  accounts: ['operation', ...SHARED],
  /** Operations on the clients that the token endpoint knows. */
  'api-credentials': ['oauth', 'operation', ...SHARED],
  webhooks: ['deliveries', 'operation', ...SHARED, 'settings'],
  approvals: ['settlement', 'operation', ...SHARED],
  events: ['operation', ...SHARED],
  /** The page for operators, and their sessions in it. */
  console: ['operators', ...SHARED, 'settings'],
  /** The people who sign in; the tokens of their sessions are like those of API clients. */
  operators: ['oauth', 'operation', ...SHARED, 'settings'],
  'audit-log': ['verify', 'operation', ...SHARED],
  /** The rules for payments. */
  policy: ['operation', ...SHARED],
  /** Records by any of their names. */
  search: ['operation', ...SHARED],
  oauth: SHARED,
  markets: ['operation', ...SHARED],
  catalogue: ['operation', ...SHARED],
  health: SHARED,
  customers: SHARED,

  /** Checks all records together. */
  verify: SHARED,
  /** Deletes by age. */
  retention: ['settlement', ...SHARED, 'settings'],
  // The worker's effects outside the database, and requests to move money.
  settlement: ['context', 'screening', ...SHARED],
  /** Deliveries of events to the endpoints of customers. */
  deliveries: ['outbound', 'records', 'ledger', 'contract', 'db', 'keys', 'settings'],
  /** Questions to the operator's screening endpoint about payments. */
  screening: [
    'outbound',
    'records',
    'ledger',
    'networks',
    'contract',
    'db',
    'assets',
    'keys',
    'settings',
    'transport-security',
  ],
  /** Requests to endpoints of others: signatures, answers of limited size. */
  outbound: [],
  operation: ['context', 'http', 'contract'],
  context: ['movements', 'records', 'networks', 'db', 'settings'],
  movements: ['records', 'ledger', 'networks', 'contract', 'db', 'assets', 'keys'],
  records: ['ledger', 'networks', 'contract', 'db', 'assets', 'keys'],
  /** Double-entry bookkeeping only. */
  ledger: ['contract', 'db', 'assets', 'keys'],
  networks: ['contract', 'db', 'assets'],
  /** Database access only: this part knows no asset, bank or orchestration. */
  http: ['contract', 'db'],
  /** The API's vocabulary: fields, problems, scopes. */
  contract: ['assets'],
  db: [],
  assets: [],
  /** The master keys: their configuration and the keys derived from them. */
  keys: ['settings'],
  log: ['settings'],
  'transport-security': ['settings'],
  settings: [],
}

test('`bursar api` loads neither the server nor a library of a network', () => {
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
  load('main.ts')
  load('commands/api.ts')
  expect([...packages].sort()).toEqual(['cli-progress', 'cli-table3', 'commander', 'envalid'])
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

/** `transfers/get-transfer.ts` belongs to the part transfers, `app.ts` to the part app. */
const partOf = (file: string) => file.split('/')[0]!.replace(/\.ts$/, '')

/** Returns why an import breaks the table, or undefined. */
function violation({ from, to }: Import): string | undefined {
  const [part, target] = [partOf(from), partOf(to)]
  if (part === target) return undefined
  const allowed = MAY_IMPORT[part] ?? []
  if (allowed.includes(target)) return undefined
  return `${from} imports ${to}: ${part} must not import ${target}`
}

test('every part of src is in the table', () => {
  expect(new Set(files.map(partOf))).toEqual(new Set(Object.keys(MAY_IMPORT)))
})

test('each line of the table allows only parts below it', () => {
  const order = Object.keys(MAY_IMPORT)
  for (const [part, allowed] of Object.entries(MAY_IMPORT)) {
    for (const target of allowed)
      expect(order.indexOf(target), `${part}: ${target}`).toBeGreaterThan(order.indexOf(part))
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
    `import { a } from '../app.ts'`,
    `import a from '../app.ts'`,
    `import * as a from '../app.ts'`,
    `import '../app.ts'`,
    `import {} from '../app.ts'`,
    `import { type A, b } from '../app.ts'`,
    `export { a } from '../app.ts'`,
    `export * from '../app.ts'`,
    `async function f() { const { a } = await import('../app.ts') }`,
    `import type { A } from '../app.ts'`,
    `import { type A, type B } from '../app.ts'`,
    `export type { A } from '../app.ts'`,
    `let a: import('../app.ts').A`,
    `import {\n  a,\n  b,\n} from '../app.ts'`,
  ])('%s', (source) => {
    expect(importsOf('ledger/ledger-transaction.ts', source)).toEqual([
      { from: 'ledger/ledger-transaction.ts', to: 'app.ts' },
    ])
  })

  test('imports that point up', () => {
    const edge = (from: string, to: string) => violation({ from, to })
    expect(edge('transfers/get-transfer.ts', 'profiles/profile.ts')).toBeDefined()
    expect(edge('profiles/profile.ts', 'app.ts')).toBeDefined()
    expect(edge('db/database.ts', 'contract/problems.ts')).toBeDefined()
    expect(edge('http/mount.ts', 'movements/queue.ts')).toBeDefined()
    expect(edge('ledger/ledger-transaction.ts', 'ledger/entries.ts')).toBeUndefined()
    expect(edge('new-resource/get.ts', 'db/database.ts')).toBeDefined()
  })

  test('import cycles', () => {
    const edge = (from: string, to: string) => ({ from, to })
    expect(cycles([edge('a', 'b'), edge('b', 'c'), edge('a', 'c')])).toEqual([])
    expect(cycles([edge('a', 'b'), edge('b', 'c'), edge('c', 'b')])).toEqual(['b -> c -> b'])
    expect(cycles([edge('a', 'a')])).toEqual(['a -> a'])
  })
})
