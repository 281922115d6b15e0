import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createClient } from '@bursar/client'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { HAS_CHROMIUM, launchBrowser } from './browser.ts'
import { installClient } from './packed.ts'
import { DESTINATION, runBursar, ownDatabase, ownBursar } from './support.ts'
import { ownFolder } from './at-end.ts'

// A sandbox as somebody starts it, used as somebody uses it: a real process with its demo, through `@bursar/client`.

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const WITHDRAWALS = '/v2/transfer/crypto-withdrawals'
const SETTLED = { timeout: 30_000 }

interface Demo {
  base_url: string
  client_id: string
  client_secret: string
  customer_id: string
  profile_id: string
  memo_id: string
  account_id: string
  orchestration_rule_id: string
  orchestration_memo_id: string
}

const database = await ownDatabase()
const folder = await ownFolder()
const service = await ownBursar({
  DATABASE_URL: database.url,
  BURSAR_DATA_DIR: folder,
  BURSAR_SIMULATED_PRICE_DAYS: '1',
  BURSAR_SIMULATED_CONFIRMATION_MS: '100',
})
const demo: Demo = JSON.parse(await readFile(join(folder, 'sandbox-credentials.json'), 'utf8')) as Demo
const bursar = createClient({
  baseUrl: demo.base_url,
  clientId: demo.client_id,
  clientSecret: demo.client_secret,
})

const wire = (memo_id: string, amount: string) =>
  bursar.post('/v2/sandbox/fiat-deposits', {
    body: { amount, asset: 'USD', memo_id, fiat_network_instructions: { wire: {} } },
  })

const usd = async () => {
  const path = { id: demo.profile_id, asset: 'USD' as const }
  return (await bursar.get('/v2/profiles/{id}/balances/{asset}', { params: { path } })).available
}

test('a wire arrives, the balance is there, a withdrawal leaves and is completed', async () => {
  const before = Number(await usd())
  expect(await wire(demo.memo_id, '250.00')).toEqual({})
  expect(await usd()).toBe(String(before + 250))

  const body = {
    profile_id: demo.profile_id,
    asset: 'USDP',
    balance_asset: 'USD',
    crypto_network: 'ETHEREUM',
    amount: '25',
    destination_address: DESTINATION,
    ref_id: 'end-to-end',
  } as const
  const made = await bursar.post(WITHDRAWALS, { body })
  expect(made).toMatchObject({ status: 'PENDING', ref_id: 'end-to-end', customer_id: demo.customer_id })
  expect(await usd()).toBe(String(before + 250 - Number(made.total)))
  const path = { id: made.id }
  await expect
    .poll(() => bursar.get('/v2/transfer/transfers/{id}', { params: { path } }), SETTLED)
    .toMatchObject({ status: 'COMPLETED', crypto_tx_hash: expect.stringMatching(/^0x/) as string })
  await expect(bursar.post(WITHDRAWALS, { body })).rejects.toMatchObject({
    name: 'BursarProblem',
    slug: 'already-exists',
    meta: { existing: { id: made.id, status: 'COMPLETED' } },
  })
})

test('a wire with the memo of a rule sets off an orchestration, to its end', async () => {
  await wire(demo.orchestration_memo_id, '50.00')
  const query = { orchestration_rule_id: [demo.orchestration_rule_id], source_asset: ['USD'] }
  const orchestrations = async () => {
    const found = []
    for await (const { source_amount, status, destination_asset } of bursar.each(
      '/v2/orchestration/orchestrations',
      { params: { query: { ...query, limit: 1 } } },
    ))
      found.push({ source_amount, status, destination_asset })
    return found
  }
  // The demo has set off one before.
  const completed = (source_amount: string) => ({
    source_amount,
    status: 'COMPLETED',
    destination_asset: 'USDP',
  })
  await expect.poll(orchestrations, SETTLED).toEqual([completed('50'), completed('100')])
})

describe('bursar api', () => {
  const api = (args: string[], environment: Record<string, string> = {}) =>
    runBursar(['api', ...args], { BURSAR_DATA_DIR: folder, ...environment })

  test('calls with the credentials of the sandbox, and their members by name', async () => {
    const before = Number(await usd())
    const body =
      '{"amount":"1.5","asset":"USD","memo_id":"{memo_id}","fiat_network_instructions":{"wire":{}}}'
    expect(await api(['post', '/v2/sandbox/fiat-deposits', body])).toEqual({
      code: 0,
      stdout: '{}\n',
      stderr: '',
    })
    const { code, stdout } = await api(['GET', '/v2/profiles/{profile_id}/balances/USD'])
    expect({ code, ...(JSON.parse(stdout) as object) }).toEqual({
      code: 0,
      asset: 'USD',
      available: String(before + 1.5),
      trading: '0',
    })
    const file = join(folder, 'sandbox-credentials.json')
    const elsewhere = { BURSAR_DATA_DIR: join(folder, 'elsewhere') }
    const query = '/v2/statements?customer_id={customer_id}&limit=1'
    expect(JSON.parse((await api(['GET', query, '--credentials', file], elsewhere)).stdout)).toMatchObject({
      statements: [{ customer_id: demo.customer_id }],
    })
  })

  test('prints a refusal, with exit code 1', async () => {
    const refused = await api(['GET', '/v2/profiles/{client_secret}'])
    expect(refused.code).toBe(1)
    expect(JSON.parse(refused.stdout)).toMatchObject({ status: 400, title: 'Bad Request' })
    expect(refused.stdout).not.toContain(demo.client_secret)
  })

  test.each([
    [['FETCH', '/v2/profiles'], 2, /must be one of GET, POST, PUT, DELETE/],
    [['GET', 'https://elsewhere.example/'], 2, /must be a path that begins with one slash/],
    [['GET', '//elsewhere.example/'], 2, /must be a path that begins with one slash/],
    [['POST', '/v2/profiles', '{'], 2, /must be JSON/],
    [['GET', '/', '--credentials', 'nowhere.json'], 1, /^no credentials in .*nowhere\.json/],
  ])('names the error: %o', async (args, code, message) => {
    const ended = await api(args)
    expect({ ...ended, stdout: '' }).toEqual({
      code,
      stdout: '',
      stderr: expect.stringMatching(message) as string,
    })
  })

  test('says so when nothing answers', async () => {
    const file = join(folder, 'stopped.json')
    await writeFile(file, JSON.stringify({ ...demo, token_url: 'http://127.0.0.1:1/oauth2/token' }))
    expect(await api(['GET', '/v2/profiles', '--credentials', file])).toEqual({
      code: 1,
      stdout: '',
      stderr: `${demo.base_url} does not answer; start Bursar with: bursar serve\n`,
    })
  })
})

test('the account and the statements of the last three months are there', async () => {
  const path = { id: demo.account_id }
  expect(await bursar.get('/v2/identity/accounts/{id}', { params: { path } })).toMatchObject({
    id: demo.account_id,
    summary_status: 'APPROVED',
  })
  const statuses = []
  const query = { customer_id: demo.customer_id, limit: 2 }
  for await (const { status } of bursar.each('/v2/statements', { params: { query } })) statuses.push(status)
  expect(statuses).toEqual(['GENERATED', 'PAID', 'PAID'].map((status) => `STATEMENT_STATUS_${status}`))
})

test('a day of prices is there, in pages', async () => {
  const path = { market: 'BTCUSD' as const }
  const query = { increment: 'FIVE_MINUTES' as const, 'pagination.limit': 100 }
  const list = async () => {
    const pages = []
    for await (const page of bursar.pages('/v2/markets/{market}/historical-prices', {
      params: { path, query },
    }))
      pages.push(page)
    return pages
  }
  await expect.poll(async () => (await list()).length, SETTLED).toBe(3)
  const times = (await list()).flatMap(({ items }) => items.map(({ timestamp }) => timestamp))
  expect(times.length).toBeGreaterThanOrEqual(286)
  expect(times).toEqual([...new Set(times)].sort())
})

/** What TypeScript says of a file with this setting of `module`, and its program. */
function compiled(file: string, module: ts.ModuleKind) {
  const options: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2023,
    module,
    // What compilers before TypeScript 6 do where nothing is set.
    ...(module === ts.ModuleKind.CommonJS && {
      moduleResolution: ts.ModuleResolutionKind.Node10,
      ignoreDeprecations: '6.0',
    }),
    strict: true,
    skipLibCheck: true,
    types: ['node'],
    typeRoots: [join(ROOT, 'node_modules/@types')],
  }
  const program = ts.createProgram([file], options)
  const told = ts
    .getPreEmitDiagnostics(program)
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'))
  return { program, told }
}

describe("the client from its tarball, in another project's folder", () => {
  let project: string
  beforeAll(async () => {
    project = await mkdtemp(join(tmpdir(), 'bursar-integrator-'))
    await installClient(project)
  })
  afterAll(() => rm(project, { recursive: true, force: true }))
  const run = (name: string) =>
    promisify(execFile)(process.execPath, [join(project, name)], {
      env: { PATH: process.env.PATH, CREDENTIALS: JSON.stringify(demo) },
    })

  test('the example of its page compiles and runs', async () => {
    const [, example] = /```ts\n([^]*?)```/.exec(await readFile(join(ROOT, 'client/README.md'), 'utf8'))!
    await writeFile(join(project, 'example.mts'), example!)
    const { program, told } = compiled(join(project, 'example.mts'), ts.ModuleKind.NodeNext)
    expect(told).toEqual([])
    const published = program.getSourceFiles().map(({ fileName }) => fileName)
    expect(published).toContain(join(project, 'node_modules/@bursar/client/dist/index.d.ts'))
    program.emit()
    const { stdout } = await run('example.mjs')
    expect(stdout).toMatch(
      /^[\d.]+ USD are there\n25 USDP are PENDING\nnow they are COMPLETED\n20\S+ CRYPTO_WITHDRAWAL 26 COMPLETED\n/,
    )
    expect(stdout).toMatch(/ WIRE_DEPOSIT 250 COMPLETED\n/)
  })

  const LIST = `
    const { base_url, client_id, client_secret } = JSON.parse(process.env.CREDENTIALS ?? '{}')
    const bursar = createClient({ baseUrl: base_url, clientId: client_id, clientSecret: client_secret })
    bursar.get('/v2/profiles').then(({ items }) => console.log(items.length > 0))`

  test.each(['CommonJS', 'Node16', 'NodeNext'] as const)(
    'CommonJS requires it, compiled with %s',
    async (kind) => {
      const [source, made] = kind === 'CommonJS' ? ['common.ts', 'common.js'] : ['common.cts', 'common.cjs']
      await writeFile(join(project, source), `import { createClient } from '@bursar/client'\n${LIST}`)
      const { program, told } = compiled(join(project, source), ts.ModuleKind[kind])
      expect(told).toEqual([])
      program.emit()
      expect(await readFile(join(project, made), 'utf8')).toContain('require("@bursar/client")')
      expect((await run(made)).stdout).toBe('true\n')
    },
  )

  test.skipIf(!HAS_CHROMIUM)('a page in a browser imports it without a bundler', async () => {
    const context = await launchBrowser(project)
    try {
      const page = await context.newPage()
      // Files beside the API, as a proxy shows them under one origin.
      await page.route('**/app/**', async (route) => {
        const path = new URL(route.request().url()).pathname.slice('/app/'.length)
        if (path !== '') return route.fulfill({ path: join(project, 'node_modules', path) })
        const imports = {
          '@bursar/client': '/app/@bursar/client/dist/index.js',
          'openapi-fetch': '/app/openapi-fetch/dist/index.mjs',
        }
        const { client_id: clientId, client_secret: clientSecret } = demo
        return route.fulfill({
          contentType: 'text/html',
          body: `<script type="importmap">${JSON.stringify({ imports })}</script><script type="module">
            import { createClient } from '@bursar/client'
            const keys = ${JSON.stringify({ clientId, clientSecret })}
            const { items } = await createClient({ baseUrl: location.origin, ...keys }).get('/v2/profiles')
            document.title = items.map(({ id }) => id).join()
          </script>`,
        })
      })
      await page.goto(`${service.address}/app/`)
      await expect.poll(() => page.title(), SETTLED).toContain(demo.profile_id)
    } finally {
      await context.close()
    }
  })
})
