import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { verify } from '../src/money/verify/verify.ts'
import { freePort } from './free-port.ts'
import { ENVIRONMENT, ownDatabase } from './support.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PAGE = readFileSync(new URL('../docs/guides/live-without-a-bank-interface.md', import.meta.url), 'utf8')

const database = await ownDatabase()

test("the commands on the page of an operator's day work", async () => {
  const blocks = [...PAGE.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code]) => code!)
  expect(blocks.length).toBeGreaterThan(8)
  const port = String(await freePort())
  // The page's port may be taken here. A failing command ends the script, and the service with it.
  const script = ['set -e; trap \'kill $SERVICE 2>/dev/null || true; rm -rf "$DIR"\' EXIT', ...blocks]
    .join('\n')
    .replaceAll('8080', port)
  const { BURSAR_MASTER_KEY: _, ...environment } = ENVIRONMENT
  const { stdout, stderr } = await promisify(execFile)('bash', ['-c', script], {
    cwd: ROOT,
    env: {
      ...environment,
      DATABASE_URL: database.url,
      BURSAR_METRICS_PORT: '0',
      BURSAR_WORKER_INTERVAL_MS: '50',
    },
  })
  const done = stderr
    .split('\n')
    .flatMap((line) => (line === '' ? [] : (JSON.parse(line) as { msg: string }).msg))
  expect(done).toEqual([
    'created a customer',
    'created a client',
    'identity approve',
    'recorded a wire that arrived',
    'took a wire',
    'marked a wire as sent',
    'took a wire',
    'marked a wire as failed',
    'took a wire',
    'marked a wire as sent',
    'recorded a wire that came back',
  ])
  expect(stdout).toMatch(
    /^Credited 250 USD to profile \S+ \(Ada, Ada Example, Acme\): (\S+)\.\nAlready recorded, .* \1\.$/m,
  )
  expect(stdout).toMatch(/ 40 +USD +Ada Example +\.\.\.4321 +READY$/m)
  expect(stdout).toMatch(/^account_number: +000987654321$/m)
  expect(stdout).toMatch(/^Wire \S+ is COMPLETED, bank reference 20260131B1QGC01R000001\.$/m)
  expect(stdout).toMatch(/^Wire \S+ is FAILED, and its total is back on the profile\.$/m)
  expect(stdout).toMatch(/^Credited 19 USD to profile /m)
  expect(stdout).toMatch(/^There are no open wires\.\nClean: 1 customers, 5 transfers, /m)

  const { rows } = await database.db.query(
    `select available from balances b join profiles p on p.customer_id = b.customer_id and p.id = b.profile_id
     where p.nickname = $1`,
    ['Ada'],
  )
  expect(rows).toEqual([{ available: String(250 - 40 - 20 + 19) }])
  expect((await verify(database.db)).disagreements).toEqual([])
})
