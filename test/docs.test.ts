/**
 * What the documents say of the program is so:
 * 1. README shows the session that the console prints;
 * 2. the page of operations has each operation of the API document, with its scope, and no other;
 * 3. every magic destination is documented;
 * 4. every relative link leads to a file, and to a heading of it; every file that documents or code name exists;
 * 5. nothing cites a document that is not in the repository, and every section that is cited exists.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { PROBLEMS } from '../src/contract/problems.ts'
import { CRYPTO_NETWORKS } from '../src/contract/assets/catalogue.ts'
import { firstSession } from '../src/program/demo/first-session.ts'
import {
  MAGIC_OUTCOMES,
  magicAccountNumber,
  magicAddress,
  REJECTED_ACCOUNT_NUMBER,
} from '../src/networks/simulated/magic-addresses.ts'
import { MAGIC_AMOUNTS } from '../src/networks/simulated/magic-amounts.ts'
import { SOURCE_FOLDERS } from './sources.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

/** Files in these folders of the repository, as paths from its root. */
const filesIn = (folders: string[], kind: RegExp): string[] =>
  folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: folder !== '.', encoding: 'utf8' })
      .filter((file) => kind.test(file) && !file.includes('node_modules') && !file.includes('dist/'))
      .map((file) => join(folder, file)),
  )
const documents = filesIn(['.', 'docs', 'client'], /\.md$/)

test('README shows the session that the console shows', () => {
  const session = firstSession('.bursar/sandbox-credentials.json').trim().split('\n')
  const readme = read('README.md')
  for (const line of session) expect(readme).toContain(line.trim())
})

test('the page of operations has every operation with its scope', () => {
  const { paths } = JSON.parse(read('openapi.json')) as {
    paths: Record<string, Record<string, { summary: string; security?: { oauth2: [string] }[] }>>
  }
  const scopeOf = ([required]: { oauth2: [string] }[]) =>
    required === undefined ? 'none: public' : `\`${required.oauth2[0]}\``
  const rows = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, { summary, security }]) =>
        `| ${summary} | \`${method.toUpperCase()} ${path}\` | ${scopeOf(security!)} |`,
    ),
  )
  expect(rows.length).toBeGreaterThan(30)
  const page = read('docs/reference/operations.md')
  const shown = page.split('\n').filter((line) => / \| `(GET|POST|PUT|DELETE) \/v2\//.test(line))
  expect(shown.toSorted()).toEqual(rows.toSorted())
})

/** The pages of objects, and the schemas whose statuses each shows. */
const LIVES: Record<string, string[]> = {
  account: ['Account.summary_status'],
  'api-credential': ['ApiCredentials.status'],
  approval: ['Approval.status'],
  'crypto-withdrawal': ['Transfer.status'],
  'deposit-address': ['Transfer.status'],
  'destination-address': ['CryptoDestinationAddress.status'],
  'fiat-account': ['FiatAccount.status'],
  'fiat-deposit-instructions': ['FiatDepositInstructions.status'],
  identity: ['Identity.status'],
  'internal-transfer': ['StablecoinConversion.status'],
  network: ['NetworkRecord.status'],
  orchestration: ['Orchestration.status'],
  'orchestration-rule': ['OrchestrationRule.status'],
  statement: ['Statement.status'],
  transfer: ['Transfer.status'],
  webhook: ['Webhook.status', 'WebhookDelivery.status'],
}

describe('the page of each object', () => {
  const { schemas } = (
    JSON.parse(read('openapi.json')) as {
      components: { schemas: Record<string, { properties?: Record<string, { enum?: string[] }> }> }
    }
  ).components
  const valuesOf = (member: string) => {
    const [schema = '', property = ''] = member.split('.')
    return schemas[schema]!.properties![property]!.enum!
  }

  test.each(Object.entries(LIVES))('%s: its life has every status', (name, members) => {
    const page = read(`docs/reference/objects/${name}.md`)
    const [, life = ''] = /## Life\n\n```\n([^]*?)```/.exec(page) ?? []
    for (const value of members.flatMap(valuesOf))
      if (value !== 'STATEMENT_STATUS_UNSPECIFIED') expect(life).toMatch(new RegExp(`\\b${value}\\b`))
  })

  test('there is no record with a status that no page tells of', () => {
    const told = new Set(Object.values(LIVES).flatMap((members) => members.map((one) => one.split('.')[0])))
    const others = Object.keys(schemas).filter((name) => {
      const { properties = {} } = schemas[name]!
      return properties.id !== undefined && properties.status?.enum !== undefined && !told.has(name)
    })
    // Objects of events repeat a record's status. The operations of rewards show statements.
    expect(others.filter((name) => !name.endsWith('Change') && name !== 'RewardsStatement')).toEqual([
      'OrchestrationOfTransfer',
    ])
  })

  test('operations and guides lead to it', () => {
    const from = read('docs/reference/operations.md') + read('docs/reference/api-behaviour.md')
    for (const page of filesIn(['docs/reference/objects'], /\.md$/))
      expect(from).toContain(page.replace('docs/reference/', ''))
  })
})

test('the page of errors has each problem with its cause', () => {
  const page = read('docs/reference/errors.md')
  for (const [slug, kind] of Object.entries(PROBLEMS)) {
    const { status, explanation, hint } = kind as { status: number; explanation?: string; hint?: string }
    expect(page).toContain(`| ${status} | \`${slug}\` | ${explanation ?? hint} |\n`)
  }
})

test('every guide leads to the decisions behind it', () => {
  for (const guide of filesIn(['docs/guides'], /\.md$/))
    expect(read(guide), guide).toMatch(/Why it works this way: .*\]\(\.\.\/decisions\//)
})

test('every decision has its date', () => {
  for (const file of filesIn(['docs/decisions'], /\.md$/))
    for (const [, heading, next] of read(file).matchAll(/^## (.+)\n(.*)$/gm))
      expect(next, `${file}: ${heading}`).toMatch(/^\*\d{4}-\d\d-\d\d\*$/)
})

test('every magic destination is documented', () => {
  const page = read('docs/reference/magic-destinations.md')
  for (const network of CRYPTO_NETWORKS) {
    expect(page).toContain(network)
    for (const outcome of MAGIC_OUTCOMES) {
      const address = magicAddress(network, outcome)
      if (address !== undefined) expect(page).toContain(`| ${outcome} | \`${address}\` |`)
    }
  }
  for (const outcome of MAGIC_OUTCOMES) {
    const accountNumber = magicAccountNumber(outcome)
    if (accountNumber !== undefined) expect(page).toContain(`| ${outcome} | \`${accountNumber}\` |`)
  }
  expect(page).toContain(REJECTED_ACCOUNT_NUMBER)
  for (const amount of Object.values(MAGIC_AMOUNTS)) expect(page).toContain(`| \`${amount}\` |`)
})

/** The anchors of a document's headings, as GitHub makes them. */
const anchorsOf = (text: string): string[] =>
  [...withoutBlocks(text).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(/\s/g, '-'),
  )

const withoutBlocks = (text: string) => text.replaceAll(/```[^]*?```/g, '')

/** The relative links of a document that lead nowhere. */
function brokenLinks(file: string, text: string): string[] {
  return [...withoutBlocks(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link]) => link!)
    .filter((link) => {
      if (/^https?:/.test(link)) return false
      const [path, anchor] = link.split('#')
      const target = path === '' ? file : relative(ROOT, join(ROOT, dirname(file), path!))
      if (!existsSync(join(ROOT, target))) return true
      return anchor !== undefined && !anchorsOf(path === '' ? text : read(target)).includes(anchor)
    })
}

describe('links', () => {
  test.each(documents)('of %s lead somewhere', (file) => {
    expect(brokenLinks(file, read(file))).toEqual([])
  })

  test('that lead nowhere are seen', () => {
    const text = '# Exit codes\n[a](README.md) [b](gone.md) [c](#exit-codes) [d](#gone) [e](README.md#gone)'
    expect(brokenLinks('ARCHITECTURE.md', text)).toEqual(['gone.md', '#gone', 'README.md#gone'])
  })
})

test('every code of a waiting withdrawal is documented with its label', () => {
  const page = read('docs/guides/waiting.md')
  const labels = [...read('src/upkeep/metrics/reason-labels.ts').matchAll(/^ {2}([A-Z_]+): '([a-z_]+)',$/gm)]
  expect(labels.length).toBeGreaterThan(20)
  for (const [, code, label] of labels) expect(page).toContain(`| \`${code}\` | \`${label}\` |`)
})

test('files and folders that documents name exist', () => {
  const missing = documents.flatMap((file) =>
    [
      ...read(file).matchAll(
        /`((?:src|chains|signer|console|client|test|bench|examples|ops|migrations|docs-page)\/[\w./-]*)`/g,
      ),
    ]
      .map(([, named]) => named!)
      .filter((named) => !existsSync(join(ROOT, named)))
      .map((named) => `${file}: ${named}`),
  )
  expect(missing).toEqual([])
})

test('documents that code names exist', () => {
  const files = filesIn([...SOURCE_FOLDERS, 'client', 'test', 'bench', 'ops'], /\.(ts|sh|yml|sql)$/)
  const missing = files.flatMap((file) =>
    [...read(file).matchAll(/\b(?:docs|examples)\/[\w./-]+\.(?:md|sh)\b|\b[A-Z]{5,}\.md\b/g)]
      .map(([named]) => named)
      .filter((named) => !existsSync(join(ROOT, named)))
      .map((named) => `${file}: ${named}`),
  )
  expect(files.length).toBeGreaterThan(100)
  expect(missing).toEqual([])
})

test('files that comments name exist', () => {
  const files = filesIn([...SOURCE_FOLDERS, 'console', 'test'], /\.tsx?$/)
  const places = files.map((file) => `/${file}`)
  const missing = files.flatMap((file) =>
    [...read(file).matchAll(/^ *(?:\/?\*|\/\/).*$/gm)]
      .flatMap(([line]) => line.match(/(?<![\w./<*-])[\w./-]+\.tsx?\b/g) ?? [])
      .filter((named) => !places.some((place) => place.endsWith(`/${named}`)))
      .map((named) => `${file}: ${named}`),
  )
  expect(missing).toEqual([])
})

/** Everything that people write, but for migrations: those that were run must not change. */
const sources = [
  ...filesIn([...SOURCE_FOLDERS, 'client', 'test', 'bench', 'ops', 'examples'], /\.(ts|md|sh|yml)$/),
  ...documents,
].filter((file) => file !== 'test/docs.test.ts' && file !== 'client/src/schema.ts')

/** The places of a text that cite a document which is not in the repository. */
const foreignCitations = (text: string): string[] =>
  [
    ...text.matchAll(
      /\bspec(?:ification)?(?:'s)?,? (?:section )?\d[\d.]*|\bdesign(?:'s)?,? (?:sections? \d|["§])|\b(?:spec|design|house|style)\.md/gi,
    ),
  ].map(([found]) => found)

/** A text without its line breaks, also those of comments. */
const inOneLine = (text: string) => text.replaceAll(/\s*\n\s*(?:\* |\/\/ |# )?/g, ' ')

/** The pages that comments call `API behaviour`: what each operation does. */
const BEHAVIOUR = filesIn(['docs/reference'], /\.md$/)

/** The sections that a text cites, as comments do: `(API behaviour, Lists)`, `(ARCHITECTURE, "Ledger")`. */
const citedSections = (text: string): { pages: string[]; section: string }[] => [
  ...[...inOneLine(text).matchAll(/API behaviour, "?([A-Z][a-z_]+(?: [a-z_]+)*)/g)].map(([, section]) => ({
    pages: BEHAVIOUR,
    section: section!,
  })),
  ...[...inOneLine(text).matchAll(/ARCHITECTURE(?:\.md)?, "([^"]+)"/g)].map(([, section]) => ({
    pages: ['ARCHITECTURE.md'],
    section: section!,
  })),
]

const hasSection = ({ pages, section }: { pages: string[]; section: string }) =>
  pages.some((page) => new RegExp(`^#+ ${section}$|\\*\\*${section}\\b`, 'm').test(read(page)))

describe('citations', () => {
  test('name documents of the repository', () => {
    const found = sources.flatMap((file) => foreignCitations(read(file)).map((cited) => `${file}: ${cited}`))
    expect(found).toEqual([])
  })

  test('name sections that exist', () => {
    const cited = sources.flatMap((file) => citedSections(read(file)).map((one) => ({ file, ...one })))
    expect(cited.length).toBeGreaterThan(80)
    expect(cited.filter((one) => !hasSection(one))).toEqual([])
  })

  test('that are wrong are seen', () => {
    expect(
      foreignCitations('(spec 4.1), the spec, section 8; design section 5, design "Errors"'),
    ).toHaveLength(4)
    expect(foreignCitations('a specification of 5 pages, by design')).toEqual([])
    expect(
      citedSections('/** Reads (API\n * behaviour, Gone here). (ARCHITECTURE, "Gone") */').map(hasSection),
    ).toEqual([false, false])
  })
})
