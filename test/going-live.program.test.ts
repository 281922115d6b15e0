/**
 * docs/guides/going-live.md: its commands run one after the other, and every setting in its systemd units exists, and
 * processes start with them.
 */
import { spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { SETTINGS } from '../src/settings.ts'
import { freePort } from './free-port.ts'
import { codeOf, readPage, ROOT } from './guides.ts'
import { asAdmin, endOf, ENVIRONMENT, MASTER_KEY, spawnBursar, ownDatabase } from './support.ts'
import { atEnd, ownFolder } from './at-end.ts'

/** The port of the instance: bursar-api@8080. */
const INSTANCE = '8080'
/** The version of the installed Caddy. */
const { stdout: CADDY } = spawnSync('caddy', ['version'], { encoding: 'utf8' }) as { stdout?: string }
const UNITS = ['bursar-api@.service', 'bursar-worker.service']
const OTHERS = ['bursar-signer.service', 'bursar-verify.service', 'bursar-verify.timer']

/** Reads assignments NAME=value, one or more a line, and skips comments. */
const assignments = (text: string): Record<string, string> =>
  Object.fromEntries(
    [...text.replaceAll(/^#.*$/gm, '').matchAll(/([A-Z_]+)=(\S+)/g)].map(([, name, value]) => [
      name!,
      value!,
    ]),
  )

const shared = assignments(readPage('ops/systemd/bursar.env'))
/** Returns the command of a unit, and its settings besides the shared ones. */
function unit(name: string) {
  const text = readPage(`ops/systemd/${name}`)
    .replaceAll('%i', INSTANCE)
    .replaceAll('%d/', '/run/credentials/')
  const environment = [...text.matchAll(/^Environment=(.*)$/gm)].map(([, line]) => line!).join('\n')
  return { own: assignments(environment), command: /^ExecStart=(.*)$/m.exec(text)![1]! }
}

const database = await ownDatabase(2)
const folder = await ownFolder()
await writeFile(join(folder, 'master-key'), MASTER_KEY, { mode: 0o600 })
for (const who of ['api', 'worker']) await writeFile(join(folder, `${who}_networks.json`), '{}')

describe.each(UNITS)('%s', (name) => {
  const { own, command } = unit(name)

  test('sets only settings that the program knows', () => {
    expect(Object.keys(own)).toContain('BURSAR_WORKER')
    for (const setting of Object.keys({ ...shared, ...own }))
      expect(setting === 'NODE_ENV' || setting in SETTINGS, setting).toBe(true)
    // A setting of the shared file would win over the unit's own.
    for (const setting of Object.keys(own)) expect(shared).not.toHaveProperty(setting)
  })

  test('runs the same command as npm start', () => {
    const { scripts } = JSON.parse(readPage('package.json')) as { scripts: { start: string } }
    expect(command).toBe(`/usr/bin/${scripts.start}`)
    expect(existsSync(join(ROOT, 'dist/main.js'))).toBe(true)
  })

  test('starts in live mode with its settings', async () => {
    const inFolder = Object.fromEntries(
      Object.entries({ ...shared, ...own })
        .filter(([, value]) => value.startsWith('/'))
        .map(([setting, path]) => [setting, join(folder, path.split('/').at(-1)!)]),
    )
    const bursar = await spawnBursar({
      ...shared,
      ...own,
      ...inFolder,
      BURSAR_MASTER_KEY: '',
      DATABASE_URL: database.url,
      PORT: String(await freePort()),
      BURSAR_METRICS_PORT: '0',
    })
    atEnd(() => bursar.end('SIGKILL'))
    expect((await fetch(`${bursar.address}/health/ready`)).status).toBe(200)
    expect((await fetch(`${bursar.address}/v2/sandbox/fiat-deposits`, { method: 'POST' })).status).toBe(404)
  })
})

test('no unit runs as the user of another, and each is shown its own secrets alone', () => {
  const texts = [...UNITS, 'bursar-signer.service'].map((name) => readPage(`ops/systemd/${name}`))
  const each = (pattern: RegExp) => texts.map((text) => [...text.matchAll(pattern)].map(([, found]) => found))
  expect(each(/^User=(.*)$/gm)).toEqual([['bursar-api'], ['bursar-worker'], ['bursar-signer']])
  expect(each(/^LoadCredential=(.*)$/gm)).toEqual([
    ['master-key:/etc/bursar/master-key', 'api:/etc/bursar/api'],
    ['master-key:/etc/bursar/master-key', 'worker:/etc/bursar/worker'],
    ['signer:/etc/bursar/signer'],
  ])
  for (const text of texts) expect(text).toMatch(/^ProtectProc=invisible$/m)
})

const HAS_ANALYZE = spawnSync('systemd-analyze', ['--version']).status === 0
test.skipIf(!HAS_ANALYZE)('systemd takes the units', () => {
  const files = [...UNITS, ...OTHERS].map((name) => join(ROOT, 'ops/systemd', name.replace('@', '@8080')))
  const { stderr } = spawnSync('systemd-analyze', ['verify', ...files], { encoding: 'utf8' })
  expect(
    stderr.split('\n').filter((line) => line.includes('bursar') && !/is not executable/.test(line)),
  ).toEqual([])
})

/** The blocks of a step of the guide in this language. */
const stepOf = (step: number, language: string) => codeOf('docs/guides/going-live.md', language, `${step}. `)

/** In place of the machine's users, services and package registry. The package is what this checkout has built. */
const MACHINE = String.raw`
sudo() { while [[ $1 == -* ]]; do [[ $1 == -u ]] && shift; shift; done; "$@"; }
useradd() { :; }
groupadd() { :; }
systemctl() { :; }
install() { local kept=() word; for word; do case $word in -g|-o|bursar-api|root) ;; *) kept+=("$word");; esac; done; command install "${'$'}{kept[@]}"; }
git() { mkdir "$3"; cp -r $CHECKOUT/ops "$3"; }
npm() {
  case "$1" in
    ci) ;;
    pack) tar --create --gzip --file bursar-0.1.0.tgz --directory $CHECKOUT --transform 's,^,package/,' package.json dist docs-page migrations;;
  esac
}`

test('its commands make a service with a console, and a link to it', async () => {
  const name = `guide_${randomBytes(6).toString('hex')}`
  const server = new URL(database.url)
  const etc = join(folder, 'etc-bursar')
  const here = (text: string) =>
    text
      .replaceAll('<repository>', 'repository')
      .replaceAll(/\/(?:opt|etc)\/(?:bursar|systemd\/system)/g, (path) =>
        join(folder, path.slice(1).replaceAll('/', '-')),
      )
      .replaceAll(
        /bursar_owner(:\S+@\S+)?/g,
        (_, rest) => `${name}_owner${rest === undefined ? '' : `:word@${server.host}/${name}`}`,
      )
      .replaceAll('<customer_id>', '$CUSTOMER')
  const step = (number: number) => here(stepOf(number, 'sh').join(''))
  // Roles belong to the whole server, so these have names of their own.
  const roles = here(stepOf(2, 'sql')[0]!).replaceAll(/\b(role|database) bursar\b/g, `$1 ${name}`)
  await asAdmin(roles.replaceAll("'...'", "'word'").trim().split('\n'))
  atEnd(() => asAdmin([`drop database ${name} with (force)`, `drop role ${name}`, `drop role ${name}_owner`]))
  const edited = `sed -i 's|^DATABASE_URL=.*|DATABASE_URL=postgres://${name}:word@${server.host}/${name}|; s|/etc/bursar|${etc}|' ${etc}/bursar.env`
  const [customer, client] = step(8).split(/(?=bursar client)/)
  const script = [
    ...[MACHINE, step(1), step(3), edited, step(4), 'mkdir ../etc-systemd-system', step(5)],
    ...[
      'bursar doctor || true',
      customer!.replace(/bursar customer.*/, 'CUSTOMER=$($& --json | grep -o "[0-9a-f-]\\{36\\}" | head -1)'),
      client!,
    ],
    ...[
      'rm dist/console/index.html',
      'bursar console link || bursar operator link $CUSTOMER || echo REFUSED',
    ],
  ]
  const { stdout, stderr, code } = await endOf(
    spawn('bash', ['-euc', script.join('\n')], {
      cwd: folder,
      env: { PATH: ENVIRONMENT.PATH, HOME: folder, CHECKOUT: ROOT, npm_config_update_notifier: 'false' },
      stdio: ['ignore', 'pipe', 'pipe'],
    }),
  )
  expect(code, `${stdout}\n${stderr}`).toBe(0)
  expect(stdout).toMatch(/^OK +console: operators sign in at https:\/\/bursar\.example\.com\/console$/m)
  expect(stdout).toMatch(/^OK +keys: /m)
  expect(stdout).not.toMatch(/^(?:FAIL|WARN) +keys/m)
  expect(stdout.match(/^link: +https:\/\/bursar\.example\.com\/console\/sign-in#/gm)).toHaveLength(1)
  // Links to a console that is not there are refused.
  expect(stdout).toMatch(/^REFUSED$/m)
  expect(stderr.match(/^the console is not built here, /gm)).toHaveLength(2)
})

test.skipIf(CADDY === undefined)('the proxy of this machine takes the Caddyfile with its variables', () => {
  const [both, older] = stepOf(6, 'ini')
  const variables = CADDY!.startsWith('v2.6') || CADDY!.startsWith('2.6') ? both! + older! : both!
  const given = [...variables.matchAll(/^Environment=(.*)$/gm)].flatMap(([, line]) => [
    ...line!.matchAll(/"([^"]+)"|(\S+)/g),
  ])
  const env = Object.fromEntries(
    given.map(([, quoted, plain]) => (quoted ?? plain!).split('=') as [string, string]),
  )
  const { status, stderr } = spawnSync('caddy', ['validate', '--config', join(ROOT, 'ops/proxy/Caddyfile')], {
    env: { PATH: ENVIRONMENT.PATH, HOME: folder, ...env },
    encoding: 'utf8',
  })
  expect(status, stderr).toBe(0)
})
