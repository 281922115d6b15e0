/** docs/performance.md has a place for each table of the benchmark, which changes nothing else on the page. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { PARTS, withTables } from '../bench/write-tables.ts'

const page = readFileSync(new URL('../docs/performance.md', import.meta.url), 'utf8')

test('the page has a place and a command for each part of the benchmark', () => {
  for (const part of PARTS) {
    const changed = withTables(
      page,
      { [part]: [{ what: 'a request', 'per second': 12_345.678 }] },
      (measured) => `Measured ${measured}.`,
    )
    expect(changed).toContain(
      `| what | per second |\n| --- | --- |\n| a request | 12,345.68 |\n\nMeasured ${part}.`,
    )
    expect(page).toContain(`npm run bench -- --only ${part} --write docs/performance.md`)
  }
})

test('only the tables that were measured change', () => {
  const before =
    'a\n<!-- bench:writes -->\n\nold\n\n<!-- end -->\nb\n<!-- bench:growth -->\nkept\n<!-- end -->\n'
  const after = withTables(before, { writes: [{ x: { quarter: 1, end: 2 } }] }, () => 'Today.')
  expect(after).toBe(
    'a\n<!-- bench:writes -->\n\n| x |\n| --- |\n| 1 / 2 |\n\nToday.\n\n<!-- end -->\nb\n<!-- bench:growth -->\nkept\n<!-- end -->\n',
  )
  expect(() => withTables('nothing', { writes: [] }, () => '')).toThrow('no place for the table of writes')
})
