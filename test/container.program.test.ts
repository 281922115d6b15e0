/*
 * There is no Docker in the tests. What Dockerfile and compose.yaml promise is read from them and held; what can be run
 * without a container is run: the health check's command, and the proxy's configuration with two API processes behind it.
 */
import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { credentialsFile, type SandboxCredentials } from '../src/program/demo/credentials.ts'
import type { Transfer } from '../src/money/ledger/transfer.ts'
import { SETTINGS } from '../src/settings.ts'
import { freePort } from './free-port.ts'
import { cloneDatabase, DESTINATION, ENVIRONMENT, remoteCaller, spawnBursar } from './support.ts'
import type { BursarProcess, TestDatabase } from './support.ts'
import { atEnd } from './at-end.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8')

// ---------------------------------------------------------------------------------------------- Dockerfile

interface Instruction {
  word: string
  rest: string
}
interface Stage {
  name: string
  instructions: Instruction[]
}

/** The Dockerfile's stages: comments are gone, continued lines joined. */
function stagesOf(dockerfile: string): { global: Instruction[]; stages: Stage[] } {
  const lines = dockerfile
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line.trim() !== '')
  const global: Instruction[] = []
  const stages: Stage[] = []
  for (const line of lines) {
    const [, word = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? []
    if (word === 'FROM') stages.push({ name: / AS (\S+)/.exec(rest)?.[1] ?? 'runtime', instructions: [] })
    ;(stages.at(-1)?.instructions ?? global).push({ word, rest })
  }
  return { global, stages }
}

const { global, stages } = stagesOf(read('Dockerfile'))
const runtime = stages.at(-1)!.instructions
const one = (word: string) => {
  const found = runtime.filter((instruction) => instruction.word === word)
  expect(found, word).toHaveLength(1)
  return found[0]!.rest
}
const environmentOfImage = () =>
  Object.fromEntries(
    one('ENV')
      .split(' ')
      .map((pair) => pair.split('=') as [string, string]),
  )
const HEALTH_CHECK = JSON.parse(one('HEALTHCHECK').replace(/^.*?CMD /, '')) as string[]

/** What is in the repository's own folder by a name, in which * stands for anything. */
const topLevel = (pattern: string) => {
  const name = new RegExp(`^${pattern.replaceAll('.', '\\.').replaceAll('*', '.*')}$`)
  return readdirSync(ROOT).filter((one) => name.test(one))
}

describe('Dockerfile', () => {
  test('its base image has a full version, and is the same in every stage', () => {
    expect(global).toEqual([
      { word: 'ARG', rest: expect.stringMatching(/^NODE_IMAGE=node:\d+\.\d+\.\d+-\w+-slim$/) as string },
    ])
    for (const { instructions } of stages) expect(instructions[0]!.rest).toMatch(/^\$\{NODE_IMAGE\}/)
  })

  test('every copied path exists and is not ignored', () => {
    const ignored = read('.dockerignore').split('\n')
    expect(ignored).toContain('*')
    for (const { instructions } of stages) {
      for (const { word, rest } of instructions) {
        if (word !== 'COPY') continue
        const from = /^--from=(\S+) /.exec(rest)?.[1]
        const sources = rest
          .replace(/^--from=\S+ /, '')
          .split(' ')
          .slice(0, -1)
        if (from !== undefined) {
          expect(stages.map(({ name }) => name)).toContain(from)
          continue
        }
        for (const source of sources) {
          expect(topLevel(source), source).not.toEqual([])
          expect(ignored).toContain(`!${source}`)
        }
      }
    }
  })

  test('dependencies come before sources, from the lock file, without scripts; none is left at run time', () => {
    for (const { instructions } of stages.slice(0, -1)) {
      const steps = instructions
        .filter(({ word }) => word === 'COPY' || word === 'RUN')
        .map(({ rest }) => rest)
      expect(steps[0]).toBe('package.json package-lock.json ./')
      expect(steps[1]).toMatch(/^npm ci /)
      expect(steps[1]).toContain('--ignore-scripts')
    }
    // The built program has its packages in it.
    expect(runtime.filter(({ rest }) => rest.includes('node_modules'))).toEqual([])
  })

  test('it runs as an ordinary user, who owns nothing in it but /data', () => {
    expect(one('USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/)
    const [user] = one('USER').split(':')
    const after = runtime.slice(runtime.findIndex(({ word }) => word === 'USER') + 1)
    expect(after.filter(({ word }) => ['USER', 'COPY', 'RUN'].includes(word))).toEqual([])
    expect(runtime.filter(({ rest }) => rest.includes('--chown'))).toEqual([])
    expect(one('VOLUME')).toBe('/data')
    expect(one('RUN')).toMatch(new RegExp(`^install -d -o ${user} -g \\d+ -m 700 /data$`))
    expect(environmentOfImage().BURSAR_DATA_DIR).toBe('/data')
  })

  test('it starts as npm start does, and node itself gets the signals', () => {
    const { scripts, version } = JSON.parse(read('package.json')) as {
      scripts: { start: string }
      version: string
    }
    const [entry, command] = [one('ENTRYPOINT'), one('CMD')].map((text) => JSON.parse(text) as string[])
    expect([...entry!, ...command!].join(' ')).toBe(scripts.start)
    expect(one('STOPSIGNAL')).toBe('SIGTERM')
    expect(runtime).toContainEqual({ word: 'ARG', rest: `VERSION=${version}` })
  })

  test('its environment contains known settings, and its ports match them', () => {
    const { NODE_ENV, ...environment } = environmentOfImage()
    expect(NODE_ENV).toBe('production')
    expect(Object.keys(SETTINGS)).toEqual(expect.arrayContaining(Object.keys(environment)))
    expect(environment.HOST).toBe('0.0.0.0')
    expect(one('EXPOSE')).toBe(`${environment.PORT} ${environment.BURSAR_METRICS_PORT}`)
  })
})

describe('the health check', () => {
  const [program, ...args] = HEALTH_CHECK
  const check = (port: number) =>
    promisify(execFile)(program === 'node' ? process.execPath : program!, args, {
      env: { ...ENVIRONMENT, PORT: String(port) },
    }).then(
      () => 0,
      (error: { code: number }) => error.code,
    )

  test.each([
    ['/health/ready', 200, 0],
    ['/health/ready', 503, 1],
    ['/', 200, 1],
  ])('of a process that answers %s with %i exits with %i', async (path, status, code) => {
    const server = createServer((request, reply) =>
      reply.writeHead(request.url === path ? status : 404).end(),
    )
    atEnd(async () => void server.close())
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    expect(await check((server.address() as AddressInfo).port)).toBe(code)
  })

  test('of a port that nobody listens on exits with 1', async () => {
    expect(await check(await freePort())).toBe(1)
  })
})

// ---------------------------------------------------------------------------------------------- compose.yaml

interface ComposeService {
  image: string
  environment: Record<string, string | number>
  read_only?: boolean
  cap_drop?: string[]
  cap_add?: string[]
  privileged?: boolean
  security_opt?: string[]
  volumes?: string[]
  tmpfs?: string[]
  networks: string[] | Record<string, { ipv4_address: string }>
  pids_limit?: number
  mem_limit?: string
  expose?: string[]
  ports?: string[]
  stop_grace_period: string
  depends_on?: Record<string, { condition: string }> | string[]
  command?: string[]
  restart: string
  healthcheck?: { test: string[] }
}
interface Compose {
  services: Record<string, ComposeService>
  networks: Record<string, { internal?: boolean; ipam?: { config: { subnet: string }[] } } | null>
  volumes: Record<string, null>
}

const compose = parse(read('compose.yaml'), { merge: true }) as Compose
const services = Object.entries(compose.services)
const namesOf = (networks: ComposeService['networks']) =>
  Array.isArray(networks) ? networks : Object.keys(networks)
const apis = services.filter(([name, { image }]) => image === 'bursar' && name !== 'migrate')

describe('compose.yaml', () => {
  test.each(services)(
    '%s can write to nothing but its volumes and memory, and has few capabilities',
    (_, service) => {
      expect(service.read_only).toBe(true)
      expect(service.cap_drop).toEqual(['ALL'])
      expect(service.security_opt).toEqual(['no-new-privileges:true'])
      expect(service.privileged).toBeUndefined()
      expect(service.pids_limit).toBeGreaterThan(0)
      expect(service.mem_limit).toMatch(/^\d+[mg]$/)
      expect(service.image).toMatch(/^bursar$|:\d+\.\d+/)
      for (const volume of service.volumes ?? []) {
        const [source, , mode] = volume.split(':')
        if (source!.startsWith('.')) expect([existsSync(join(ROOT, source!)), mode]).toEqual([true, 'ro'])
        else expect(Object.keys(compose.volumes)).toContain(source)
      }
    },
  )

  test('two API processes that differ in nothing, with settings that there are', () => {
    expect(apis.map(([name]) => name)).toEqual(['api-1', 'api-2'])
    expect(apis[0]![1]).toEqual(apis[1]![1])
    const { environment, expose, cap_add, stop_grace_period, volumes } = apis[0]![1]
    expect(Object.keys(SETTINGS)).toEqual(expect.arrayContaining(Object.keys(environment)))
    expect(expose).toEqual(one('EXPOSE').split(' '))
    expect(cap_add).toBeUndefined()
    expect(volumes).toEqual([`data:${one('VOLUME')}`])
    // It is killed only when it should have ended by itself.
    const { BURSAR_DRAIN_DELAY_MS, BURSAR_SHUTDOWN_TIMEOUT_MS } = environment
    const longest = Number(BURSAR_DRAIN_DELAY_MS) + Number(BURSAR_SHUTDOWN_TIMEOUT_MS)
    expect(Number.parseInt(stop_grace_period) * 1_000).toBeGreaterThan(longest)
    // The proxy alone: Prometheus, in the same network, could otherwise say that it is anybody.
    const networks = compose.services.proxy!.networks as Record<string, { ipv4_address: string }>
    expect(environment.BURSAR_TRUSTED_PROXIES).toBe(networks.front!.ipv4_address)
    expect(environment.BURSAR_MODE).toBe('${BURSAR_MODE:-sandbox}')
  })

  test('only the API processes and the migration reach the database, without superuser roles', () => {
    expect(compose.networks.database!.internal).toBe(true)
    const reaching = services
      .filter(([, { networks }]) => namesOf(networks).includes('database'))
      .map(([name]) => name)
    expect(reaching).toEqual(['postgres', 'migrate', ...apis.map(([name]) => name)])
    const { environment } = compose.services.postgres!
    const url = String(apis[0]![1].environment.DATABASE_URL)
    expect(url).toMatch(/^postgres:\/\/bursar:\$\{DATABASE_PASSWORD:\?[^}]*\}@postgres:5432\/bursar$/)
    expect(environment.POSTGRES_USER).toBe('postgres')
    const script = read('ops/postgres/create-bursar.sh')
    expect(script).toMatch(/^create role bursar login password :'password';$/m)
    expect(script).toMatch(/^create role bursar_owner login password :'owner_password';$/m)
    expect(script).toMatch(/^create database bursar owner bursar_owner /m)
    for (const [name, { ports }] of services)
      expect([name, ports === undefined]).toEqual([name, name !== 'proxy'])
  })

  test('the migration runs first, once, and only it knows the role that owns the schema', () => {
    const { migrate } = compose.services
    expect(migrate).toMatchObject({
      image: 'bursar',
      command: ['migrate'],
      restart: 'no',
      networks: ['database'],
    })
    expect(migrate!.environment.DATABASE_URL).toBe(apis[0]![1].environment.DATABASE_URL)
    expect(migrate!.environment.BURSAR_MIGRATIONS_DATABASE_URL).toMatch(
      /^postgres:\/\/bursar_owner:\$\{DATABASE_OWNER_PASSWORD:\?[^}]*\}@postgres:5432\/bursar$/,
    )
    expect(Object.keys(SETTINGS)).toEqual(expect.arrayContaining(Object.keys(migrate!.environment)))
    expect(migrate!.environment.BURSAR_MODE).toBe(apis[0]![1].environment.BURSAR_MODE)
    for (const [, api] of apis) {
      expect(api.depends_on).toMatchObject({ migrate: { condition: 'service_completed_successfully' } })
      expect(JSON.stringify(api)).not.toContain('bursar_owner')
    }
  })

  test('no secret is in it, and .env.example has every variable that must be set', () => {
    const text = read('compose.yaml')
    const example = read('.env.example')
    const required = [...text.matchAll(/\$\{(\w+):\?/g)].map(([, name]) => name!)
    expect(new Set(required)).toEqual(
      new Set(['POSTGRES_PASSWORD', 'DATABASE_PASSWORD', 'DATABASE_OWNER_PASSWORD']),
    )
    for (const name of required) expect(example).toMatch(new RegExp(`^${name}=$`, 'm'))
    const variables = [...text.matchAll(/\$\{(\w+)/g)].map(([, name]) => name)
    for (const [, name] of example.matchAll(/^(\w+)=/gm)) expect(variables).toContain(name)
    expect(read('.gitignore').split('\n')).toContain('.env')
  })

  test('the documented additions for live mode have a master key from a file, and existing settings', () => {
    const [, text] = /## Going live[^]*?```yaml\n([^]*?)```/.exec(read('docs/guides/container.md'))!
    const custom = { tag: '!override', collection: 'seq' as const, resolve: (value: unknown) => value }
    const live = parse(text!, { merge: true, customTags: [custom] }) as {
      services: Record<string, { environment?: Record<string, string>; secrets?: string[] }>
      secrets: Record<string, { file: string }>
    }
    const serving = Object.entries(live.services).filter(
      ([name, { environment }]) => name !== 'migrate' && environment !== undefined,
    )
    expect(serving.map(([, { environment }]) => environment!.BURSAR_WORKER)).toEqual([
      'false',
      'false',
      'true',
    ])
    const keys = (name: string) =>
      live.services[name]!.secrets!.filter((one) => /ethereum-(key|.*mnemonic)/.test(one))
    expect([keys('api-1'), keys('api-2')]).toEqual([[], []])
    expect(keys('worker')).toEqual(['ethereum-key', 'ethereum-deposit-mnemonic'])
    expect(live.services.worker!.environment!.HOST).toBe('127.0.0.1')
    for (const [, { environment, secrets }] of serving) {
      expect(Object.keys(SETTINGS)).toEqual(expect.arrayContaining(Object.keys(environment!)))
      expect(environment!.BURSAR_MASTER_KEY_FILE).toBe('/run/secrets/master-key')
      expect(secrets).toContain('master-key')
      for (const secret of secrets!) expect(Object.keys(live.secrets)).toContain(secret)
    }
    expect(read('compose.yaml')).not.toContain('BURSAR_MASTER_KEY')
  })

  test('the proxy goes to both, where they listen', () => {
    const [, upstreams] = /\{\$UPSTREAMS:([^}]*)\}/.exec(read('ops/proxy/Caddyfile'))!
    expect(upstreams!.split(' ')).toEqual(apis.map(([name]) => `${name}:${environmentOfImage().PORT}`))
  })
})

// ---------------------------------------------------------------------------------------------- the proxy

const HAS_CADDY = (process.env.PATH ?? '')
  .split(delimiter)
  .some((folder) => folder !== '' && existsSync(join(folder, 'caddy')))
if (!HAS_CADDY) console.warn('skipped: the proxy in test/container.program.test.ts needs caddy on the PATH')

/** Debian 12's, which knows an older name of a directive. */
const CADDY_2_6 = HAS_CADDY && spawnSync('caddy', ['version'], { encoding: 'utf8' }).stdout.includes('2.6')

const START_MS_MAX = 300_000

/** Caddy with the configuration that compose.yaml gives it. */
async function startProxy(port: number, upstreams: string[]): Promise<ChildProcess> {
  const home = await mkdtemp(join(tmpdir(), 'bursar-proxy-'))
  const proxy = spawn('caddy', ['run', '--config', join(ROOT, 'ops/proxy/Caddyfile')], {
    env: {
      ...ENVIRONMENT,
      HOME: home,
      SITE_ADDRESS: `http://127.0.0.1:${port}`,
      UPSTREAMS: upstreams.join(' '),
      ...(CADDY_2_6 && { REQUEST_BUFFERING: 'buffer_requests' }),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let log = ''
  proxy.stderr.setEncoding('utf8').on('data', (text: string) => (log += text))
  proxy.once('exit', () => void rm(home, { recursive: true, force: true }))
  await vi
    .waitUntil(() => fetch(`http://127.0.0.1:${port}/`).then(Boolean, () => false), {
      timeout: START_MS_MAX,
      interval: 100,
    })
    .catch((cause: unknown) => {
      throw new Error(`caddy does not start:\n${log}`, { cause })
    })
  return proxy
}

async function stopProxy(proxy: ChildProcess): Promise<void> {
  proxy.kill('SIGKILL')
  await once(proxy, 'exit')
}

describe.skipIf(!HAS_CADDY)('the proxy, before servers that break off', () => {
  /** Ready, and ends every connection that asks for something else, when it has the request. */
  async function startBreaking(seen: string[]): Promise<string> {
    const server = createServer((request: IncomingMessage, reply) => {
      if (request.url === '/health/ready') return void reply.end()
      request.resume().on('end', () => {
        seen.push(request.method!)
        request.socket.destroy()
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    atEnd(async () => {
      server.close()
      server.closeAllConnections()
    })
    return `127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  test('a POST that one was sent is not sent again, a GET is', async () => {
    const seen: string[] = []
    const upstreams = [await startBreaking(seen), await startBreaking(seen)]
    const port = await freePort()
    const proxy = await startProxy(port, upstreams)
    atEnd(() => stopProxy(proxy))
    const ask = async (init: RequestInit) => {
      // Until none counts as failed any more.
      await pause(2_500)
      seen.length = 0
      const { status } = await fetch(`http://127.0.0.1:${port}/x`, init)
      expect(status).toBeOneOf([502, 503])
      return seen
    }
    // The one without a body could be sent again most easily.
    expect(await ask({ method: 'POST' })).toEqual(['POST'])
    expect(await ask({ method: 'POST', body: '{}' })).toEqual(['POST'])
    expect((await ask({})).length).toBeGreaterThan(1)
  })
})

describe.skipIf(!HAS_CADDY)('two API processes behind the proxy', () => {
  let database: TestDatabase
  let dataDir: string
  let port: number
  let baseUrl: string
  let proxy: ChildProcess
  let processes: BursarProcess[]
  let credentials: SandboxCredentials

  const startApi = (at: number) =>
    spawnBursar({
      DATABASE_URL: database.url,
      BURSAR_DATA_DIR: dataDir,
      BURSAR_BASE_URL: baseUrl,
      BURSAR_DRAIN_DELAY_MS: String(apis[0]![1].environment.BURSAR_DRAIN_DELAY_MS),
      BURSAR_SIMULATED_CONFIRMATION_MS: '500',
      PORT: String(at),
    })

  let ports: number[]
  beforeAll(async () => {
    database = await cloneDatabase()
    dataDir = await mkdtemp(join(tmpdir(), 'bursar-container-'))
    port = await freePort()
    baseUrl = `http://127.0.0.1:${port}`
    ports = [await freePort(), await freePort()]
    processes = await Promise.all(ports.map(startApi))
    proxy = await startProxy(
      port,
      ports.map((at) => `127.0.0.1:${at}`),
    )
    credentials = JSON.parse(readFileSync(credentialsFile(dataDir), 'utf8')) as SandboxCredentials
    await vi.waitUntil(() => fetch(`${baseUrl}/health/ready`).then(({ ok }) => ok), { timeout: START_MS_MAX })
  })
  afterAll(async () => {
    if (proxy as ChildProcess | undefined) await stopProxy(proxy)
    await Promise.all(((processes as BursarProcess[] | undefined) ?? []).map((one) => one.end('SIGKILL')))
    await database.drop()
    await rm(dataDir, { recursive: true, force: true })
  })

  test('examples/first-session.sh works', async () => {
    const script = fileURLToPath(new URL('../examples/first-session.sh', import.meta.url))
    const { stdout } = await promisify(execFile)('bash', [script], {
      env: { ...ENVIRONMENT, CREDENTIALS: credentialsFile(dataDir) },
    })
    expect(stdout).toMatch(/"type":"CRYPTO_WITHDRAWAL".*"status":"COMPLETED".*"ref_id":"payout-\d+"/)
    expect(stdout).toContain('STATEMENT_STATUS_PAID')
    expect(credentials.base_url).toBe(baseUrl)
  })

  test('answers carry the id of their request', async () => {
    const reply = await fetch(`${baseUrl}/v2/profiles`)
    expect(reply.status).toBe(401)
    expect(reply.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  })

  /** A client that repeats what it has no answer to, with the same ref_id, as integrators are told to. */
  class Client {
    readonly acknowledged = new Map<string, string>()
    /** Answers that say nothing about what was done, by status; 0: none came. */
    readonly unclear = new Map<number, number>()
    #running = true
    #done: Promise<void>

    constructor(name: string, call: Awaited<ReturnType<typeof remoteCaller>>) {
      atEnd(async () => void (this.#running = false))
      this.#done = this.#run(name, call)
    }

    async #run(name: string, call: Awaited<ReturnType<typeof remoteCaller>>) {
      for (let number = 0; this.#running; number++) {
        const ref_id = `${name}-${number}`
        const { profile_id } = credentials
        const body = {
          profile_id,
          asset: 'USDP',
          balance_asset: 'USD',
          crypto_network: 'ETHEREUM',
          destination_address: DESTINATION,
          amount: '1',
          ref_id,
        }
        for (let attempt = 1; !this.acknowledged.has(ref_id); attempt++) {
          expect(attempt).toBeLessThan(100)
          const answer = await call<Transfer & { meta?: { existing: Transfer } }>(
            'POST',
            '/v2/transfer/crypto-withdrawals',
            body,
          ).catch(() => undefined)
          const id = answer?.status === 200 ? answer.body.id : answer?.body.meta?.existing.id
          if (id !== undefined) this.acknowledged.set(ref_id, id)
          else {
            const status = answer?.status ?? 0
            expect(status).toBeOneOf([0, 502, 503])
            this.unclear.set(status, (this.unclear.get(status) ?? 0) + 1)
            await pause(50)
          }
        }
      }
    }

    async stop(): Promise<void> {
      this.#running = false
      await this.#done
    }
  }

  /** Clients work while something happens, before and after it. Gives how often an answer was unclear. */
  async function underLoad(name: string, happening: () => Promise<unknown>): Promise<number> {
    const call = await remoteCaller(baseUrl, credentials)
    const { memo_id } = credentials
    const deposit = { amount: '1000000', asset: 'USD', memo_id, fiat_network_instructions: { wire: {} } }
    expect((await call('POST', '/v2/sandbox/fiat-deposits', deposit)).status).toBe(200)
    const clients = Array.from({ length: 12 }, (_, index) => new Client(`${name}-${index}`, call))
    const count = () => clients.reduce((sum, { acknowledged }) => sum + acknowledged.size, 0)
    const more = async () => {
      const from = count()
      await vi.waitUntil(() => count() > from + 100, { timeout: 60_000 })
    }
    await more()
    await happening()
    await more()
    await Promise.all(clients.map((client) => client.stop()))

    const acknowledged = new Map(clients.flatMap((client) => [...client.acknowledged]))
    const { rows } = await database.db.query<{ ref_id: string; id: string }>(
      'select ref_id, id from transfers where ref_id like $1',
      [`${name}-%`],
    )
    expect(rows).toHaveLength(acknowledged.size)
    expect(new Map(rows.map(({ ref_id, id }) => [ref_id, id]))).toEqual(acknowledged)
    return clients.flatMap(({ unclear }) => [...unclear.values()]).reduce((sum, one) => sum + one, 0)
  }

  test('a killed process loses no acknowledged transfer, and clients go on', async () => {
    await underLoad('killed', () => processes[0]!.end('SIGKILL'))
    processes[0] = await startApi(ports[0]!)
  })

  let stops = 0
  // On a machine that is busy enough, the proxy may look at its processes too late.
  test('no client notices the orderly stop of a process', { retry: 2 }, async () => {
    await vi.waitUntil(() => fetch(`http://127.0.0.1:${ports[0]}/health/ready`).then(({ ok }) => ok))
    const name = `stopped-${(stops += 1)}`
    const unclear = await underLoad(name, () => processes[1]!.end('SIGTERM'))
    processes[1] = await startApi(ports[1]!)
    expect(unclear).toBe(0)
  })

  test('withdrawals that both processes accepted are paid once', async () => {
    const open = async () =>
      (await database.db.query(`select 1 from transfers where status = 'PENDING'`)).rowCount
    await vi.waitUntil(async () => (await open()) === 0, { timeout: 60_000, interval: 100 })
    const { rows } = await database.db.query<{ transfers: string; paid: string; transactions: string }>(`
      select (select count(*) from transfers where type = 'CRYPTO_WITHDRAWAL' and status = 'COMPLETED') as transfers,
             count(distinct convert_from(raw_transaction, 'UTF8')::json ->> 'transfer_id') as paid,
             count(*) as transactions
      from simulated_chain`)
    const { transfers, paid, transactions } = rows[0]!
    expect({ paid, transactions }).toEqual({ paid: transfers, transactions: transfers })
    expect(Number(transfers)).toBeGreaterThan(400)
  })
})
