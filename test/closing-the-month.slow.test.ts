import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { verifyLiability } from '../client/src/index.ts'
import { ownFolder } from './at-end.ts'
import { freePort } from './free-port.ts'
import { ENVIRONMENT, ownDatabase } from './support.ts'

const database = await ownDatabase()
const run = promisify(execFile)

const blocksOf = (page: string) =>
  [
    ...readFileSync(new URL(`../docs/guides/${page}.md`, import.meta.url), 'utf8').matchAll(
      /^```sh\n(.*?)^```$/gms,
    ),
  ].map(([, code]) => code!)

test('the commands on the page of the month’s end work, and the auditor’s programs agree', async () => {
  const before = blocksOf('live-without-a-bank-interface').slice(0, -1)
  const folder = await ownFolder()
  const script = [
    `set -e; trap 'kill $SERVICE 2>/dev/null || true; wait $SERVICE || true' EXIT`,
    ...before,
    'echo "the month ends"',
    ...blocksOf('closing-the-month'),
  ]
    .join('\n')
    .replaceAll('8080', String(await freePort()))
    .replace('DIR=$(mktemp -d)', `DIR=${folder}`)
  const { BURSAR_MASTER_KEY: _, ...environment } = ENVIRONMENT
  const { stdout } = await run('bash', ['-c', script], {
    cwd: new URL('..', import.meta.url).pathname,
    env: {
      ...environment,
      DATABASE_URL: database.url,
      BURSAR_METRICS_PORT: '0',
      BURSAR_WORKER_INTERVAL_MS: '50',
    },
  })
  const shown = stdout.slice(stdout.indexOf('the month ends'))
  expect(shown).toMatch(/^Account 000123456789, .*\n\S+: 5 lines\n4 lines are matched\./m)
  expect(shown).toMatch(/^Imported before, nothing has changed\.$/m)
  expect(shown).toMatch(/ -1\.5 .*FEE-JANUARY/)
  expect(shown).toMatch(/^Bank 207\.5 \(\S+\), ledger 209: difference -1\.5, /m)
  expect(shown).toMatch(/^Explained: nothing remains\.$/m)
  expect(shown).toMatch(/^bank +Bank account +USD +0 +269 +60 +-209$/m)
  expect(shown).toMatch(/^Clean: /m)
  expect(await readFile(join(folder, 'bank.csv'), 'utf8')).toContain('-209')
  if (
    await run('which', ['bean-check']).then(
      () => true,
      () => false,
    )
  )
    await run('bean-check', [join(folder, 'books.beancount')])
  const [liabilities, proof] = await Promise.all(
    ['liabilities', 'proof'].map(
      async (name) =>
        JSON.parse(await readFile(join(folder, name), 'utf8')) as { items: { asset: string }[] },
    ),
  )
  for (const item of proof!.items)
    await verifyLiability(
      item as never,
      liabilities!.items.find(({ asset }) => asset === item.asset) as never,
    )
  expect(proof!.items).toEqual([expect.objectContaining({ asset: 'USD', amount: '209' })])
})
