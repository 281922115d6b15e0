import { existsSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { chromium, type BrowserContext, type CDPSession, type Locator, type Page } from 'playwright-core'
import { onTestFinished } from 'vitest'
import { cloneDatabase, spawnBursar, type BursarProcess, type TestDatabase } from './support.ts'

/** Bursar's own pages in a browser, as a person uses them: Chromium, a process with its database, and what axe finds. */

/** Debian's package `chromium`. */
export const CHROMIUM = '/usr/bin/chromium'
export const HAS_CHROMIUM = existsSync(CHROMIUM)

/** Options of a browser that only shows pages: no background services, no updates. */
export const CHROMIUM_ARGS = [
  '--headless',
  // Root in a container has no sandbox. The browser opens only our own pages.
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // All pages are our own. A process for each page took a seventh of the CPU of the tests in a browser.
  '--renderer-process-limit=1',
]

export const PHONE = { width: 360, height: 740 }
export const DESKTOP = { width: 1280, height: 900 }

/** A process of Bursar with a database of its own, and a browser. */
export interface BrowserTest {
  bursar: BursarProcess
  database: TestDatabase
  context: BrowserContext
  /** `BURSAR_DATA_DIR` of the process. It is removed at the end. */
  folder: string
  /** The settings of the process, and its address: for `runBursar`. */
  environment: Record<string, string>
  close: () => Promise<void>
}

/** Starts a browser without history, which keeps its files in this folder. */
export async function launchBrowser(folder: string): Promise<BrowserContext> {
  const context = await chromium.launchPersistentContext(join(folder, 'browser'), {
    executablePath: CHROMIUM,
    args: CHROMIUM_ARGS,
    chromiumSandbox: false,
    viewport: DESKTOP,
  })
  // Only what hangs is ended: a machine may be busy with other work.
  context.setDefaultTimeout(600_000)
  clickWhenStill(context)
  return context
}

/** Whether a page of the console reads what it shows, once it has drawn what it has read. */
const READS = `document.querySelector('main[aria-busy]') !== null && new Promise((resolve) => {
  const answer = () => resolve(document.querySelector('main[aria-busy=true]') !== null)
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(answer)))
})`

/** Waits until a page of the console has read and drawn what it shows, and listens to the keyboard. */
export async function untilStill(page: Page): Promise<void> {
  // A page that is left in between is looked at again.
  do await page.locator('main[aria-busy=true]').waitFor({ state: 'detached' })
  while (await page.evaluate(READS).catch(() => !page.isClosed()))
}

/** A page moves what it shows while it reads, and a click that begins on a button may end beside it: clicks come later. */
function clickWhenStill(context: BrowserContext): void {
  type Clicks = Locator & { clickAtOnce?: Locator['click'] }
  const locators = Object.getPrototypeOf(context.pages()[0]!.locator('main')) as Clicks
  const clickAtOnce = (locators.clickAtOnce ??= Reflect.get(locators, 'click'))
  locators.click = async function (options) {
    await untilStill(this.page())
    return clickAtOnce.call(this, options)
  }
}

/** Starts a process with these settings, and a browser. */
export async function startBrowserTest(
  settings: Record<string, string> = {},
  /** Writes files into the folder of the process, and returns the settings that name them. */
  prepare: (folder: string) => Promise<Record<string, string>> = async () => ({}),
): Promise<BrowserTest> {
  const database = await cloneDatabase(2)
  const folder = await mkdtemp(join(tmpdir(), 'bursar-browser-'))
  const environment = {
    DATABASE_URL: database.url,
    BURSAR_DATA_DIR: folder,
    ...settings,
    ...(await prepare(folder)),
  }
  const bursar = await spawnBursar(environment)
  const context = await launchBrowser(folder)
  // The cookie of a person who has opened the address that the start prints. Some tests use the name localhost.
  const { headers } = await fetch(bursar.console, { redirect: 'manual' })
  const [, name, value] = /^(\w+)=([\w-]+)/.exec(headers.get('set-cookie') ?? '') ?? []
  if (name !== undefined)
    await context.addCookies(
      ['127.0.0.1', 'localhost'].map((domain) => ({
        ...{ name, value: value!, domain, path: '/' },
        ...{ httpOnly: true, sameSite: 'Strict' as const },
      })),
    )
  const started: BrowserTest = {
    bursar,
    database,
    context,
    folder,
    environment: { ...environment, BURSAR_BASE_URL: bursar.address },
    async close() {
      await context.close()
      // A test may have started another process in its place.
      await started.bursar.end('SIGTERM')
      await database.drop()
      await rm(folder, { recursive: true, force: true })
    },
  }
  return started
}

interface PageOptions {
  size?: typeof DESKTOP
  colorScheme?: 'light' | 'dark'
  /** Origins of other services that the page may be led to, such as a provider's sign-in. */
  also?: readonly string[]
}

/** Opens a page until the end of the test. */
export async function openPage(context: BrowserContext, url: string, options: PageOptions = {}) {
  const opened = await newPage(context, url, options)
  // Each page holds a stream, and a browser opens at most six connections to a service.
  onTestFinished(() => opened.page.close())
  return opened
}

/**
 * Opens a page, which the caller closes. `complaints` collects requests to elsewhere, errors of scripts and violations of the
 * content security policy, and must stay empty.
 */
export async function newPage(
  context: BrowserContext,
  url: string,
  { size = DESKTOP, colorScheme = 'light', also = [] }: PageOptions = {},
) {
  const page = await context.newPage()
  await page.emulateMedia({ colorScheme })
  await page.setViewportSize(size)
  const complaints: string[] = []
  const origins = [new URL(url).origin, ...also]
  page.on('request', (request) => {
    const asked = new URL(request.url())
    if (!origins.includes(asked.origin) && asked.protocol !== 'data:') complaints.push(request.url())
  })
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.goto(url)
  return { page, complaints }
}

/** Gives the page a device that has passkeys and whose owner agrees to everything. */
export async function addAuthenticator(page: Page): Promise<void> {
  const devices = await page.context().newCDPSession(page)
  await devices.send('WebAuthn.enable')
  await newAuthenticator(devices)
}

/** Makes such a device, and returns its id. */
export async function newAuthenticator(devices: CDPSession): Promise<string> {
  const { authenticatorId } = await devices.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return authenticatorId
}

const SCREENSHOTS = fileURLToPath(new URL('screenshots', import.meta.url))

/**
 * With TEST_SCREENSHOTS=1, keeps a picture in test/screenshots: of the whole page, or with `whole: false` of what the window
 * shows. No test looks at them, and a picture costs as much CPU as the steps between two of them.
 */
export async function shoot(what: Page | Locator, name: string, { whole = true } = {}): Promise<void> {
  if (process.env.TEST_SCREENSHOTS !== '1') return
  await mkdir(SCREENSHOTS, { recursive: true })
  // The caret stays visible: hiding it would inject a style, which the page's policy forbids.
  const options = { path: join(SCREENSHOTS, `${name}.png`), caret: 'initial' } as const
  await ('goto' in what ? what.screenshot({ ...options, fullPage: whole }) : what.screenshot(options))
}

/** Whether the page is no wider than its window, so that nobody has to scroll sideways. */
export const isWithinWindow = (page: Page): Promise<boolean> =>
  page.evaluate('document.documentElement.scrollWidth <= window.innerWidth')

let axe: string | undefined
const readAxe = () => readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** What axe finds on the page that is serious or critical, or two regions with one name: the rule and the element. */
export const seriousFaults = (page: Page): Promise<string[]> =>
  page.evaluate(`(async () => {
    ${(axe ??= readAxe())};
    const { violations } = await axe.run({ resultTypes: ['violations'], rules: { 'target-size': { enabled: true } } })
    return violations
      .filter(({ id, impact }) => impact === 'serious' || impact === 'critical' || id === 'landmark-unique')
      .flatMap(({ id, nodes }) => nodes.map(({ target }) => id + ' ' + target.join(' ')))
  })()`)
