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
const isTest = (file: string) => /^test\/|\.test\.tsx?$/.test(file)

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
  'src, chains and signer': [sourceUnder('src/', 'chains/', 'signer/'), 84_190],
  src: [sourceUnder('src/'), 68_500],
  'src/access': [sourceUnder('src/access/'), 3_600],
  'src/audit': [sourceUnder('src/audit/'), 2_240],
  'src/cli': [sourceUnder('src/cli/'), 6_050],
  'src/contract': [sourceUnder('src/contract/'), 2_680],
  'src/db': [sourceUnder('src/db/'), 3_570],
  'src/deliveries': [sourceUnder('src/deliveries/'), 1_750],
  'src/governance': [sourceUnder('src/governance/'), 2_850],
  'src/http': [sourceUnder('src/http/'), 4_320],
  'src/keys': [sourceUnder('src/keys/'), 450],
  'src/money': [sourceUnder('src/money/'), 8_070],
  'src/networks': [sourceUnder('src/networks/'), 3_530],
  'src/program': [sourceUnder('src/program/'), 2_530],
  'src/rails': [sourceUnder('src/rails/'), 9_500],
  'src/resources': [sourceUnder('src/resources/'), 15_400],
  'src/upkeep': [sourceUnder('src/upkeep/'), 1_450],
  chains: [sourceUnder('chains/'), 14_120],
  signer: [sourceUnder('signer/'), 1_620],
  console: [sourceUnder('console/'), 10_600],
  client: [sourceUnder('client/'), 1_110],
  bench: [sourceUnder('bench/'), 3_220],
  tests: [sum(tests), 96_000],
  'words in Markdown': [pages.reduce((words, page) => words + page.words, 0), 89_600],
  'longest page, measurements apart': [
    Math.max(...pages.filter(({ file }) => file !== MEASUREMENTS).map(({ words }) => words)),
    6_100,
  ],
  'longest file': [Math.max(...[...source, ...tests].map(({ text }) => linesOf(text))), 4_540],
  'longest file of source': [Math.max(...source.map(({ text }) => linesOf(text))), 1_060],
}

test.each(Object.entries(FIGURES))('%s: the figure only falls (docs/decisions/size.md)', (_, [is, most]) => {
  expect(is).toBeLessThanOrEqual(most)
})
