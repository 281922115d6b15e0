import { appendFile, copyFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SignerNetwork } from './family.ts'
import { Journal } from './journal.ts'
import type { JournalLine } from './journal-lines.ts'
import { atEnd, ownFolder } from '../test/at-end.ts'
import { runs } from '../test/seed.ts'

const wallet = '0x52908400098527886E0F7030069857D2E4169EE7'
const NEWEST = Date.parse('2026-11-29T12:00:00.000Z')

const lineAt = (ms: number, nonce: number, units = '1', asset = 'USDG'): JournalLine => ({
  ...{
    kind: 'SIGN',
    at: new Date(NEWEST - ms).toISOString(),
    network: 'ETHEREUM',
    wallet,
    nonce,
    asset,
    units,
  },
  ...{ transfer_id: `019b0000-0000-7000-8000-${String(nonce).padStart(12, '0')}`, fee: '3' },
})

async function journalWith(lines: readonly JournalLine[], windows: SignerNetwork['windows'] = []) {
  const path = join(await ownFolder(), 'journal')
  await writeFile(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return { path, journal: await opened(path, windows) }
}

async function opened(path: string, windows: SignerNetwork['windows'] = []) {
  const network = { network: 'ETHEREUM', windows } as unknown as SignerNetwork
  const journal = await Journal.open(path, new Map([['ETHEREUM', network]]))
  atEnd(() => journal.close())
  return journal
}

test('a journal knows each end that it has had, and a copy of it none that came afterwards', async () => {
  // Lines of a version without a chain: what is there begins it.
  const { path, journal } = await journalWith([lineAt(3, 0), lineAt(2, 1)])
  const before = journal.head
  expect(journal.objectionToHeads([])).toBeUndefined()
  const copied = `${path}.copied`
  await copyFile(path, copied)
  await journal.keep(lineAt(1, 2))
  const after = journal.head
  expect(after).not.toBe(before)
  expect(journal.objectionToHeads([before, after])).toBeUndefined()
  const copy = await opened(copied)
  expect(copy.objectionToHeads([before])).toBeUndefined()
  expect(copy.objectionToHeads([before, after])).toContain(`'bursar signer open --after ${after}'`)
  // Two that went on from the same line have other ends, also where they signed for the same nonce.
  await copy.keep(lineAt(1, 2, '2'))
  expect(journal.objectionToHeads([copy.head])).toContain(`--after ${copy.head}'`)
  // People begin it after what was lost, and only after that.
  const open = { kind: 'OPEN', at: new Date(NEWEST).toISOString(), network: 'ETHEREUM', wallet } as const
  await copy.keep({ ...open, next_nonce: 3, transfers_from: open.at, change: 'c', after: [after] })
  expect(copy.objectionToHeads([before, after])).toBeUndefined()
  expect(copy.objectionToHeads(['0'.repeat(32)])).toContain('lacks')
  // The same is said by a journal that is read again, from a line that was changed on, nothing is.
  await journal.close()
  expect((await opened(path)).objectionToHeads([before, after])).toBeUndefined()
  const changed = `${path}.changed`
  await writeFile(changed, (await readFile(path, 'utf8')).replace('"units":"1"', '"units":"2"'))
  const other = await opened(changed)
  for (const head of [before, after]) expect(other.objectionToHeads([head])).toContain('lacks')
})

test('a window counts all that left within its period, and nothing from long before it', async () => {
  const spans = [1_000, 59_000, 600_000, 3_600_000, 86_400_000]
  const windows = spans.flatMap((periodMs) =>
    ['USDG', 'ETH'].map((asset) => ({ asset, periodMs, units: 0n })),
  )
  const line = fc.record({
    ms: fc.oneof(fc.nat(2_000), fc.nat(120_000), fc.nat(8_000_000), fc.nat(200_000_000)),
    units: fc.bigInt({ min: 0n, max: 9n }),
    asset: fc.constantFrom('USDG', 'ETH'),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 40 }),
      fc.array(fc.nat(90_000_000)),
      async (lines, laters) => {
        const left = lines.sort((a, b) => b.ms - a.ms)
        const { journal } = await journalWith(
          left.map(({ ms, units, asset }, nonce) => lineAt(ms, nonce, String(units), asset)),
          windows,
        )
        for (const later of [0, ...laters.sort((a, b) => a - b)])
          for (const [index, window] of windows.entries()) {
            const within = (period: number) =>
              left
                .filter(({ ms }) => ms + later <= period)
                .reduce(
                  (sum, { units, asset }) =>
                    sum + (asset === window.asset ? units : 0n) + (window.asset === 'ETH' ? 3n : 0n),
                  0n,
                )
            const counted = journal.windows.get('ETHEREUM')![index]!.left(new Date(NEWEST + later)).units
            expect(counted).toBeGreaterThanOrEqual(within(window.periodMs))
            // A minute more at most, or a sixtieth of a short period.
            const most = window.periodMs + Math.min(60_000, window.periodMs / 60)
            expect(counted).toBeLessThanOrEqual(within(most))
          }
        await journal.close()
      },
    ),
    runs(80),
  )
})

test('a line that a clock ahead has written narrows windows, and opens none', async () => {
  const windows = [{ asset: 'USDG', periodMs: 3_600_000, units: 0n }]
  const { journal, path } = await journalWith(
    [lineAt(60_000, 0), lineAt(-7_200_000, 1), lineAt(0, 2)],
    windows,
  )
  const after = (ms: number) => journal.windows.get('ETHEREUM')![0]!.left(new Date(NEWEST + ms)).units
  expect(after(0)).toBe(3n)
  expect(after(7_200_000)).toBeGreaterThanOrEqual(1n)
  expect(after(7_200_000 + 3_700_000)).toBe(0n)
  expect(journal.newest).toBe(NEWEST + 7_200_000)
  await appendFile(path, `${JSON.stringify({ ...lineAt(0, 3), at: 'never' })}\n`)
  await journal.refresh()
  expect(journal.newest).toBe(NEWEST + 7_200_000)
  expect(after(1e12)).toBe(1n)
})

test('a question about windows costs the same whatever the journal has', async () => {
  const windows = [{ asset: 'USDG', periodMs: 31_536_000_000, units: 0n }]
  const { journal } = await journalWith(
    Array.from({ length: 50_000 }, (_, nonce) => lineAt(50_000_000 - nonce * 1_000, nonce)),
    windows,
  )
  const begun = performance.now()
  for (let n = 0; n < 3_000; n++)
    expect(journal.windows.get('ETHEREUM')![0]!.left(new Date(NEWEST)).units).toBe(50_000n)
  // Line by line it took a millisecond for each question.
  expect(performance.now() - begun).toBeLessThan(1_000)
})
