import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** Every file of the repository, and its text. */
const files = execFileSync('git', ['ls-files'], { encoding: 'utf8' })
  .split('\n')
  .filter((file) => /\.(tsx?|css|md)$/.test(file))
  .flatMap((file) => {
    // A file that is deleted and not committed yet.
    try {
      return [{ file, text: readFileSync(file, 'utf8') }]
    } catch {
      return []
    }
  })

const linesOf = (text: string) => text.split('\n').length - 1
const isTest = (file: string) => /(^|\/)test\/|\.test\.tsx?$/.test(file)

/** Returns how many lines the files under these paths have, without tests. */
const sourceUnder = (...paths: string[]) =>
  sum(source.filter(({ file }) => paths.some((path) => file.startsWith(path))))

const source = files.filter(({ file }) => !file.endsWith('.md') && !isTest(file))
const tests = files.filter(({ file }) => !file.endsWith('.md') && isTest(file))
const pages = files
  .filter(({ file }) => file.endsWith('.md'))
  .map(({ file, text }) => ({ file, words: text.split(/\s+/).filter(Boolean).length }))
const sum = (counted: { text: string }[]) => counted.reduce((lines, { text }) => lines + linesOf(text), 0)

/** A page of measurements is as long as its tables. */
const MEASUREMENTS = 'docs/performance.md'

/**
 * What there is, and the most that there may be: a figure only falls. Who needs more takes it from elsewhere, and says in
 * docs/decisions/size.md what it brings and what went for it.
 */
const FIGURES: Record<string, [is: number, most: number]> = {
  'src, chains and signer': [sourceUnder('src/', 'chains/', 'signer/'), 89_656],
  src: [sourceUnder('src/'), 70_984],
  'src/access': [sourceUnder('src/access/'), 3_881],
  'src/audit': [sourceUnder('src/audit/'), 962],
  'src/cli': [sourceUnder('src/cli/'), 5_876],
  'src/contract': [sourceUnder('src/contract/'), 2_979],
  'src/db': [sourceUnder('src/db/'), 4_181],
  'src/deliveries': [sourceUnder('src/deliveries/'), 1_745],
  'src/governance': [sourceUnder('src/governance/'), 2_813],
  'src/http': [sourceUnder('src/http/'), 4_317],
  'src/keys': [sourceUnder('src/keys/'), 455],
  'src/money': [sourceUnder('src/money/'), 10_732],
  'src/networks': [sourceUnder('src/networks/'), 3_441],
  'src/program': [sourceUnder('src/program/'), 2_412],
  'src/rails': [sourceUnder('src/rails/'), 10_416],
  'src/resources': [sourceUnder('src/resources/'), 14_703],
  'src/upkeep': [sourceUnder('src/upkeep/'), 1_435],
  // The most is 2,500.
  'the books': [
    sourceUnder('src/money/books/', 'src/resources/reports/', 'src/rails/bank-statements/') +
      sourceUnder('src/cli/reports.ts', 'src/cli/bank.ts', 'client/src/liability.ts') +
      sourceUnder('src/resources/operators/bank-statements.ts', 'src/money/verify/closed-days.ts'),
    2_500,
  ],
  chains: [sourceUnder('chains/'), 16_049],
  signer: [sourceUnder('signer/'), 2_623],
  console: [sourceUnder('console/'), 10_747],
  client: [sourceUnder('client/'), 1_186],
  bench: [sourceUnder('bench/'), 1_592],
  tests: [sum(tests), 96_910],
  'words in Markdown': [pages.reduce((words, page) => words + page.words, 0), 61_702],
  'longest page, measurements apart': [
    Math.max(...pages.filter(({ file }) => file !== MEASUREMENTS).map(({ words }) => words)),
    2_500,
  ],
  'longest file': [Math.max(...[...source, ...tests].map(({ text }) => linesOf(text))), 3_250],
  'longest file of source, styles apart': [
    Math.max(...source.filter(({ file }) => !file.endsWith('.css')).map(({ text }) => linesOf(text))),
    400,
  ],
}

test.each(Object.entries(FIGURES))('%s: the figure only falls (docs/decisions/size.md)', (_, [is, most]) => {
  expect(is).toBeLessThanOrEqual(most)
})
