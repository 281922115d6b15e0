import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { endOf, ENVIRONMENT, execBursar, PROGRAM, ownDatabase } from './support.ts'
import { ownFolder } from './at-end.ts'

// The built program as a shell starts it. All else about commands is tested in the tests' process (`runBursar`).

const ROOT = fileURLToPath(new URL('..', import.meta.url))

async function temporaryFolder(): Promise<string> {
  const folder = await ownFolder()
  return folder
}

const run = (command: string, args: string[], environment: Record<string, string> = {}): ChildProcess =>
  spawn(command, args, {
    cwd: ROOT,
    env: { ...ENVIRONMENT, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })

const start = (args: string[], environment: Record<string, string> = {}) =>
  run(process.execPath, [PROGRAM, ...args], { PORT: '0', BURSAR_METRICS_PORT: '0', ...environment })

test('the program has no call that Node warns of on standard error', async () => {
  const parts = readdirSync(new URL('../dist/', import.meta.url)).filter((name) => name.endsWith('.js'))
  for (const name of parts)
    expect(await readFile(new URL(`../dist/${name}`, import.meta.url), 'utf8'), name).not.toMatch(
      /\bnew Buffer\(/,
    )
})

test('the exit code, standard output and standard error are those of the command', async () => {
  expect(await execBursar(['--version'])).toEqual({
    code: 0,
    stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string,
    stderr: '',
  })
  expect(await execBursar(['customer', 'frobnicate'])).toMatchObject({ code: 2, stdout: '' })
  const down = { DATABASE_URL: 'postgres://u@127.0.0.1:1/d' }
  expect(await execBursar(['verify'], down)).toEqual({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^DATABASE_URL: .+\n$/) as string,
  })
  // A check that finds a fault says so after its answer.
  const doctor = await execBursar(['doctor', '--json'], down)
  expect(doctor).toMatchObject({ code: 1, stderr: '' })
  expect(JSON.parse(doctor.stdout)).toMatchObject({ healthy: false })
})

test.each([
  { args: ['--version'], needed: [] },
  { args: ['api', 'GET', '/v2/profiles'], needed: ['commander', 'envalid'] },
])('`bursar $args` loads what it needs', async ({ args, needed }) => {
  const hook = `import { writeSync } from 'node:fs'
    export function load(url, context, next) { writeSync(2, url + '\\n'); return next(url, context) }`
  const register = `import { register } from 'node:module'; register(${JSON.stringify(inline(hook))})`
  const { stderr } = await execBursar(args, {
    NODE_OPTIONS: `--import ${inline(register)}`,
    BURSAR_DATA_DIR: await temporaryFolder(),
  })
  expect(stderr).toContain('/dist/main.js')
  const parts = await Promise.all(
    [...stderr.matchAll(/^file:.*\/dist\/.*/gm)].map(([url]) => readFile(new URL(url), 'utf8')),
  )
  const packages = parts.flatMap((part) => [...part.matchAll(/^\/\/ node_modules\/((?:@[^/]+\/)?[^/]+)\//gm)])
  expect(new Set(packages.map(([, name]) => name))).toEqual(new Set(needed))
})

const inline = (source: string) => `data:text/javascript,${encodeURIComponent(source)}`

test('the first `npx bursar` in a clone builds nothing', async () => {
  const cache = await temporaryFolder()
  const built = () => stat(join(ROOT, 'dist', 'main.js')).then(({ mtimeMs }) => mtimeMs)
  const before = await built()
  const offline = { npm_config_cache: cache, npm_config_offline: 'true' }
  const ended = await endOf(run('npx', ['bursar', '--version'], offline))
  expect(ended).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string })
  expect(await built()).toBe(before)
})

test('logs text when asked to, and JSON into a pipe', async () => {
  const own = await ownDatabase()
  for (const [format, line] of [
    ['text', /^\[\d\d:\d\d:\d\d\] WARN: .*\n/],
    ['auto', /^\{"level":40,/],
  ] as const) {
    const environment = { DATABASE_URL: own.ownerUrl, BURSAR_LOG_FORMAT: format }
    const child = start(['serve'], environment)
    const ended = endOf(child)
    // `serve` warns about running as the owner's role.
    await Promise.race([once(child.stdout!, 'data'), ended])
    child.kill('SIGTERM')
    expect((await ended).stderr).toMatch(line)
  }
})

test('SIGTERM during the start stops it and the embedded PostgreSQL cleanly', async () => {
  const folder = await temporaryFolder()
  const postmaster = join(folder, 'postgres', 'postmaster.pid')
  const child = start(['serve'], { BURSAR_DATA_DIR: folder })
  const closed = once(child, 'close')
  await expect.poll(() => existsSync(postmaster), { timeout: 20_000 }).toBe(true)
  child.kill('SIGTERM')
  expect(await closed).toEqual([0, null])
  expect(existsSync(postmaster)).toBe(false)
})

test('the doctor in live mode: an embedded PostgreSQL, every address a trusted proxy and few open files', async () => {
  const args = [process.execPath, PROGRAM, 'doctor', '--json']
  const limited = run('sh', ['-c', 'ulimit -n 512 && exec "$@"', 'sh', ...args], {
    BURSAR_DATA_DIR: await temporaryFolder(),
    BURSAR_MODE: 'live',
    BURSAR_BASE_URL: 'https://127.0.0.1:1',
    BURSAR_TRUSTED_PROXIES: '10.0.0.1,0.0.0.0/0',
    BURSAR_CUSTOMER_RATE_LIMIT_PER_SECOND: '0',
    PORT: '0',
  })
  const { checks } = JSON.parse((await endOf(limited)).stdout) as {
    checks: { check: string; result: string; says: string }[]
  }
  expect(checks.map(({ result, check, says }) => `${result} ${check}: ${says}`)).toEqual(
    expect.arrayContaining(
      [
        /^WARN database: there is no embedded PostgreSQL yet: .*; it is meant for sandboxes$/,
        /^WARN backups: the embedded PostgreSQL does not archive its log: .* since the last copy of its folder$/,
        /^WARN limits: customers have no rate limit: one with many clients can take the whole process$/,
        /^WARN limits: every address is a trusted proxy: limits by address have no effect$/,
        /^WARN limits: the limit of open files leaves only 360 connections for clients$/,
      ].map((line) => expect.stringMatching(line) as string),
    ),
  )
})

// Replaces a function of the bash-completion package: sets the words of the line and the word under the cursor.
const WORDS = `_get_comp_words_by_ref() { words=("\${COMP_WORDS[@]}"); cword=$COMP_CWORD; cur=\${words[cword]}; }`

/** Returns bash's completions for each of these lines; the cursor is at the end of the last word. */
async function complete(lines: string[][]) {
  const quoted = (word: string) => `'${word.replaceAll("'", `'\\''`)}'`
  const program = [process.execPath, PROGRAM].map(quoted).join(' ')
  const script = [
    WORDS,
    `bursar() { ${program} "$@"; }`,
    'compopt() { :; }',
    'source <(bursar completion bash) || exit 1',
    ...lines.map(
      (words) => `COMP_WORDS=(bursar ${words.map(quoted).join(' ')}); COMP_CWORD=${words.length}
      COMPREPLY=(); __bursar_complete; echo "${'${COMPREPLY[*]}'}"`,
    ),
  ]
  const { code, stdout, stderr } = await endOf(run('bash', ['-c', script.join('\n')]))
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout.trimEnd().split('\n')
}

test('bash sources the script and completes commands, subcommands, options and markets', async () => {
  const lines = [
    ['st'],
    ['client', ''],
    ['statements', 'pay', '--p'],
    ['prices', 'import', '--market', 'SOL'],
    ['trigger', 'orchestration.p'],
    ['webhooks', 'test', 'guide', 'orchestration.f'],
  ]
  expect(await complete(lines)).toEqual([
    'statements',
    'create list rotate rename disable enable help',
    '--period',
    'SOLEUR',
    'orchestration.processing',
    'orchestration.failed',
  ])
})

test.each([
  ['zsh', 0, /^#compdef bursar\n/],
  ['fish', 0, /^# fish completion for bursar/],
  ['ksh', 2, /^$/],
])('the completion script of %s', async (shell, code, stdout) => {
  const ended = await execBursar(['completion', shell])
  expect(ended).toMatchObject({ code, stdout: expect.stringMatching(stdout) as string })
})
