/**
 * A sandbox signs in the person at its machine, and nobody else: not those who come through a proxy on that machine, whatever the
 * proxy tells of itself, and no other site's page.
 */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { freePort } from './free-port.ts'
import { ENVIRONMENT, ownDatabase, ownBursar } from './support.ts'
import { atEnd, ownFolder } from './at-end.ts'

const database = await ownDatabase(2)
const folder = await ownFolder()
const bursar = await ownBursar({ DATABASE_URL: database.url, BURSAR_DATA_DIR: folder })
const { headers } = await fetch(bursar.console, { redirect: 'manual' })
/** The cookie that the printed address sets. */
const cookie = headers.get('set-cookie')!.split(';')[0]!

/** The routes that need no credentials. The last deletes all records. */
const ROUTES = ['/console/session/demo', '/docs/demo-token', '/console/sandbox/reset']

/** The status of a request to the service, or to a proxy before it, as the page of its own machine sends it but for these headers. */
function post(
  path: string,
  headers: Record<string, string | undefined>,
  at = bursar.address,
): Promise<number> {
  const own = {
    origin: bursar.address,
    cookie,
    'x-bursar-console': 'page',
    host: new URL(bursar.address).host,
  }
  const given = Object.fromEntries(
    Object.entries({ ...own, ...headers }).filter(([, value]) => value !== undefined),
  )
  return new Promise((resolve, reject) => {
    request(`${at}${path}`, { method: 'POST', headers: given }, (reply) => {
      reply.resume()
      resolve(reply.statusCode!)
    })
      .on('error', reject)
      .end()
  })
}

const refused = async (headers: Record<string, string | undefined>, at?: string) => {
  for (const path of ROUTES) expect([403, 401], path).toContain(await post(path, headers, at))
}

test('the printed address is the proof', async () => {
  expect(bursar.console).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/console\?key=[\w-]{22}$/)
  expect(await post('/console/session/demo', {})).toBe(200)
  expect(await post('/docs/demo-token', {})).toBe(200)
  await refused({ cookie: undefined })
  await refused({ cookie: cookie.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')) })
  const { headers } = await fetch(bursar.console.replace(/.$/, '_'), { redirect: 'manual' })
  expect(headers.get('set-cookie')).toBeNull()
})

test('another site, another port and each mark of a proxy are refused', async () => {
  const port = new URL(bursar.address).port
  await refused({ host: 'attacker.example', origin: 'http://attacker.example' })
  await refused({ host: `localhost.attacker.example:${port}` })
  await refused({ host: '127.0.0.1', origin: 'http://127.0.0.1' })
  await refused({ host: '127.0.0.1:1', origin: 'http://127.0.0.1:1' })
  await refused({ origin: 'https://evil.example' })
  await refused({ origin: 'null' })
  await refused({ origin: undefined })
  for (const header of [
    'forwarded',
    'via',
    'x-real-ip',
    'x-forwarded-for',
    'x-forwarded-proto',
    'X-Forwarded-Host',
  ])
    await refused({ [header]: '127.0.0.1' })
})

const HAS_CADDY = spawnSync('caddy', ['version']).status === 0
if (!HAS_CADDY)
  console.warn('skipped: the proxies of test/own-machine.program.test.ts need caddy on the PATH')

describe.skipIf(!HAS_CADDY)('through a proxy that sends the name of this machine as Host', () => {
  test.each([
    ['says that it is one', ''],
    // As nginx does without settings of its own.
    ['says nothing', 'header_up -X-Forwarded-*\nheader_up -Via'],
  ])('and %s, nobody signs in without the key', async (_, silent) => {
    const port = await freePort()
    const home = await mkdtemp(join(folder, 'caddy-'))
    await writeFile(
      join(home, 'Caddyfile'),
      `{\n admin off\n}\nhttp://127.0.0.1:${port} {\n reverse_proxy ${new URL(bursar.address).host} {\n header_up Host {upstream_hostport}\n${silent}\n }\n}\n`,
    )
    const proxy = spawn('caddy', ['run', '--config', join(home, 'Caddyfile')], {
      env: { ...ENVIRONMENT, HOME: home },
      stdio: 'ignore',
    })
    atEnd(async () => {
      proxy.kill('SIGKILL')
      await once(proxy, 'exit')
    })
    const at = `http://127.0.0.1:${port}`
    await vi.waitUntil(
      () =>
        fetch(`${at}/health/live`).then(
          ({ ok }) => ok,
          () => false,
        ),
      { timeout: 20_000 },
    )
    await refused({ cookie: undefined }, at)
    // The key does not pass a proxy that shows itself.
    if (silent === '') await refused({}, at)
  })
})
