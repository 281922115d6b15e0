/** The console as a person uses it: in a browser, in a sandbox that was just started and in live mode. */
import { mkdir, mkdtemp, readFile, rm } from 'node:fs/promises'
import { readdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium, type BrowserContext, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { credentialsFile, type SandboxCredentials } from '../src/demo/credentials.ts'
import { POLICY } from '../src/console/files.ts'
import { CHROMIUM, CHROMIUM_ARGS, HAS_CHROMIUM } from './chromium.ts'
import {
  cloneDatabase,
  MASTER_KEY,
  runBursar,
  spawnBursar,
  startTestService,
  type BursarProcess,
  type TestDatabase,
} from './support.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const SCREENSHOTS = join(ROOT, 'test/screenshots')
const DESKTOP = { width: 1280, height: 900 }
/** What the browser loads, compressed. */
const BYTES_MAX = 200 * 1024

test('the page, its policy and its files, which browsers keep', async () => {
  const service = await startTestService({ BURSAR_MODE: 'live' })
  const { app } = service
  try {
    expect((await app.inject('/console')).headers.location).toBe('/console/')
    for (const path of ['/console/', '/console/transfers/any', '/console/sign-in']) {
      const page = await app.inject(path)
      expect(page.statusCode, path).toBe(200)
      expect(page.headers['content-security-policy']).toBe(POLICY)
      expect(page.headers['cache-control']).toBe('no-cache')
    }
    expect(POLICY).not.toMatch(/unsafe|https?:|\*/)
    const { body } = await app.inject('/console/')
    const files = [...body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address]) => address!)
    expect(files.length).toBe(3)
    expect(body).not.toMatch(/<script>|<style|style="/)
    for (const file of files) {
      expect(file).toMatch(/^\/console\/assets\//)
      const plain = await app.inject(file)
      for (const [encoding, accepted] of [
        ['br', 'gzip, br'],
        ['gzip', 'gzip, br;q=0'],
      ]) {
        const packed = await app.inject({ url: file, headers: { 'accept-encoding': accepted } })
        expect(packed.headers['content-encoding']).toBe(encoding)
        expect(packed.headers['cache-control']).toBe('public, max-age=31536000, immutable')
        expect(packed.rawPayload.length).toBeLessThan(plain.rawPayload.length)
      }
    }
    expect((await app.inject('/console/assets/other.js')).statusCode).toBe(404)
    expect((await app.inject('/console/assets/..%2f..%2fmain.js')).statusCode).toBe(404)
    expect((await app.inject({ method: 'POST', url: '/console/' })).statusCode).toBe(405)
  } finally {
    await service.close()
  }
})

test('all files together are small', () => {
  const folder = join(ROOT, 'dist/console/assets')
  const packed = readdirSync(folder).filter((name) => name.endsWith('.br'))
  const bytes = packed.reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
  expect(packed.length).toBeGreaterThan(2)
  expect(bytes).toBeLessThan(BYTES_MAX)
})

/** A page, and what must stay empty: requests to elsewhere, errors of scripts and violations of the policy. */
async function openPage(
  context: BrowserContext,
  url: string,
  { size = DESKTOP, colorScheme = 'light' }: { size?: typeof DESKTOP; colorScheme?: 'light' | 'dark' } = {},
) {
  const page = await context.newPage()
  await page.emulateMedia({ colorScheme })
  await page.setViewportSize(size)
  const complaints: string[] = []
  page.on('request', (request) => {
    const asked = new URL(request.url())
    if (asked.origin !== new URL(url).origin && asked.protocol !== 'data:') complaints.push(request.url())
  })
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.goto(url)
  return { page, complaints }
}

const launch = (folder: string): Promise<BrowserContext> =>
  chromium.launchPersistentContext(folder, {
    executablePath: CHROMIUM,
    args: CHROMIUM_ARGS,
    chromiumSandbox: false,
    viewport: DESKTOP,
  })

/** Not hiding the caret, for which a style would have to be put into the page, against its policy. */
const shoot = (page: Page, name: string) =>
  page.screenshot({ path: join(SCREENSHOTS, `console-${name}.png`), caret: 'initial', fullPage: true })

describe.skipIf(!HAS_CHROMIUM)("in a sandbox, in a browser, which needs Debian's chromium", () => {
  let database: TestDatabase
  let folder: string
  let bursar: BursarProcess
  let context: BrowserContext
  let demo: SandboxCredentials
  let address: string

  beforeAll(async () => {
    database = await cloneDatabase(2)
    folder = await mkdtemp(join(tmpdir(), 'bursar-console-'))
    await mkdir(SCREENSHOTS, { recursive: true })
    bursar = await spawnBursar({ DATABASE_URL: database.url, BURSAR_DATA_DIR: folder })
    demo = JSON.parse(await readFile(credentialsFile(folder), 'utf8')) as SandboxCredentials
    address = bursar.address.replace('127.0.0.1', 'localhost')
    context = await launch(join(folder, 'browser'))
  })
  afterAll(async () => {
    await context.close()
    await bursar.end('SIGTERM')
    await database.drop()
    await rm(folder, { recursive: true, force: true })
  })

  test('it opens with the demo, and a sign-out asks who comes next', async () => {
    const { page, complaints } = await openPage(context, `${address}/console`)
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    expect(await page.locator('.banner').innerText()).toBe('SANDBOX')
    expect(await page.locator('.customer').innerText()).toBe('Demo')
    expect(demo.customer_id).not.toBe('')
    const [cookie] = await context.cookies(`${address}/console/`)
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/console' })
    expect(await page.evaluate('document.cookie')).toBe('')
    await shoot(page, 'home')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to Bursar' }).waitFor()
    await shoot(page, 'sign-in')
    await page.getByRole('button', { name: "Open the demo's records" }).click()
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    expect(complaints).toEqual([])
  })

  test('a name that points to this machine does not sign in', async () => {
    const reply = await fetch(`${bursar.address}/console/session/demo`, {
      method: 'POST',
      headers: { 'x-bursar-console': 'page', 'x-forwarded-for': '127.0.0.1', origin: bursar.address },
    })
    expect(reply.status).toBe(200)
    const { request } = await import('node:http')
    const status = await new Promise((resolve, reject) => {
      const headers = {
        host: 'attacker.example',
        origin: 'http://attacker.example',
        'x-bursar-console': 'page',
      }
      request(`${bursar.address}/console/session/demo`, { method: 'POST', headers }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
        .once('error', reject)
        .end()
    })
    expect(status).toBe(403)
  })
})

describe.skipIf(!HAS_CHROMIUM)("in live mode, in a browser, which needs Debian's chromium", () => {
  let database: TestDatabase
  let folder: string
  let bursar: BursarProcess
  let context: BrowserContext
  let environment: Record<string, string>

  beforeAll(async () => {
    database = await cloneDatabase(2)
    folder = await mkdtemp(join(tmpdir(), 'bursar-console-live-'))
    await mkdir(SCREENSHOTS, { recursive: true })
    environment = { DATABASE_URL: database.url, BURSAR_MODE: 'live', BURSAR_MASTER_KEY: MASTER_KEY }
    bursar = await spawnBursar(environment)
    environment.BURSAR_BASE_URL = bursar.address
    context = await launch(join(folder, 'browser'))
  })
  afterAll(async () => {
    await context.close()
    await bursar.end('SIGTERM')
    await database.drop()
    await rm(folder, { recursive: true, force: true })
  })

  test('a link signs in once, and the page reads only', async () => {
    const json = async (...args: string[]) =>
      JSON.parse((await runBursar([...args, '--json'], environment)).stdout) as Record<string, string>
    const { customer_id } = await json('customer', 'create', '--name', 'Acme')
    const named = ['--name', 'Ada', '--role', 'VIEWER', '--customer', customer_id!]
    const { operator_id } = await json('operator', 'create', ...named)
    const { link } = await json('console', 'link')
    expect(link).toMatch(new RegExp(`^${bursar.address}/console/sign-in#bursar_link_`))
    expect(operator_id).toBeDefined()

    const { page, complaints } = await openPage(context, link!)
    await page.getByRole('navigation', { name: 'Pages' }).waitFor()
    expect(await page.locator('.banner').innerText()).toBe('LIVE')
    expect(page.url()).toBe(`${bursar.address}/console/`)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to Bursar' }).waitFor()
    expect(await page.getByText("Open the demo's records").count()).toBe(0)
    await shoot(page, 'sign-in-live')
    expect(complaints).toEqual([])
    await page.goto('about:blank')
    await page.goto(link!)
    await page.getByRole('alert').waitFor()
    expect(await page.getByRole('alert').innerText()).toMatch(/used or expired/)
  })
})
