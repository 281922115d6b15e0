/*
 * The Helm chart (docs/guides/kubernetes.md), as far as it can be tried without a cluster: it is linted and rendered, what it
 * renders is held to its promises, and processes as it runs them are updated, drained and lost.
 * Invariants: 1. only workers have keys that sign, only the migration has the role that owns the schema; 2. an update and a
 * drain fail no request; 3. a lost zone loses no payment and pays none twice.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { createCustomer } from '../src/money/records/customer.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { verify } from '../src/money/verify/verify.ts'
import { version } from '../src/package.ts'
import { readSettings } from '../src/settings.ts'
import { freePort } from './free-port.ts'
import { credit, ROW_MACS, spawnBursar, withdrawalOf, type BursarProcess, ownDatabase } from './support.ts'
import { atEnd, ownFolder } from './at-end.ts'

const CHART = fileURLToPath(new URL('../ops/helm/bursar', import.meta.url))
const HAS_HELM = spawnSync('helm', ['version']).status === 0
if (!HAS_HELM)
  console.warn('skipped: rendering the chart in test/kubernetes.program.test.ts needs helm on the PATH')

const VALUES = {
  image: { repository: 'registry.example.com/bursar' },
  mode: 'live',
  baseUrl: 'https://bursar.example.com',
  settings: {
    BURSAR_RATE_LIMIT_PER_SECOND: 100,
    BURSAR_CUSTOMER_CHANGES_PER_DAY: 1_000_000,
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
  },
  secrets: { database: 'bursar-database', masterKey: 'bursar-master-key' },
  api: { networksSecret: 'networks-of-api' },
  worker: { networksSecret: 'networks-of-worker' },
  metrics: { serviceMonitor: { enabled: true } },
  ingress: { enabled: true, host: 'bursar.example.com', tlsSecret: 'bursar-tls' },
}

/** A rendered object, as far as the tests read it. */
interface Rendered {
  kind: string
  metadata: { name: string; annotations?: Record<string, string> }
  spec: {
    replicas: number
    selector: { matchLabels: Record<string, string> }
    template: { metadata: { labels: Record<string, string> }; spec: Pod }
    jobTemplate?: { spec: { template: { spec: Pod } } }
    podSelector: { matchLabels: Record<string, string> }
    ingress: { ports: { port: string }[] }[]
  }
}
interface Pod {
  terminationGracePeriodSeconds: number
  automountServiceAccountToken: boolean
  securityContext: object
  containers: {
    image: string
    args?: string[]
    securityContext: object
    env: { name: string; value?: string; valueFrom?: { secretKeyRef: { name: string; key: string } } }[]
    readinessProbe?: { httpGet: { path: string } }
  }[]
  volumes: { secret?: { secretName: string } }[]
}

function render(values: object): Rendered[] {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-chart-'))
  const file = join(folder, 'values.json')
  writeFileSync(file, JSON.stringify(values))
  // The oldest that the chart supports.
  const ofCluster = ['--kube-version', '1.27.0']
  try {
    const text = execFileSync('helm', ['template', 'pay', CHART, ...ofCluster, '--values', file], {
      encoding: 'utf8',
      stdio: 'pipe',
    })
    execFileSync('helm', ['lint', '--strict', ...ofCluster, '--values', file, CHART], { stdio: 'pipe' })
    return parseAllDocuments(text).map((document) => document.toJS() as Rendered)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe.skipIf(!HAS_HELM)('the chart', () => {
  let all: Rendered[]
  beforeAll(() => void (all = render(VALUES)))
  const one = (kind: string, name: string) => {
    const found = all.filter((object) => object.kind === kind && object.metadata.name === name)
    expect(found, `${kind} ${name}`).toHaveLength(1)
    return found[0]!
  }
  const podOf = ({ spec }: Rendered) => (spec.jobTemplate?.spec ?? spec).template.spec
  const secretsOf = (pod: Pod) => [
    ...pod.volumes.flatMap(({ secret }) => secret?.secretName ?? []),
    ...pod.containers[0]!.env.flatMap(({ valueFrom }) =>
      valueFrom ? `${valueFrom.secretKeyRef.name}/${valueFrom.secretKeyRef.key}` : [],
    ),
  ]
  const environmentOf = (pod: Pod) =>
    Object.fromEntries(
      pod.containers[0]!.env.map(({ name, value }) => [name, value ?? 'postgres://of@a/secret']),
    )
  const api = () => one('Deployment', 'pay-api')
  const worker = () => one('Deployment', 'pay-worker')
  const migrate = () => one('Job', 'pay-migrate')
  const verify = () => one('CronJob', 'pay-verify')

  test('has a version of its own for each release, and renders what Kubernetes needs', () => {
    const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8')) as {
      version: string
      appVersion: string
    }
    expect(chart).toMatchObject({ version, appVersion: version })
    expect(all.map(({ kind }) => kind).sort()).toEqual([
      ...['CronJob', 'Deployment', 'Deployment', 'Ingress', 'Job', 'NetworkPolicy', 'NetworkPolicy'],
      ...['PodDisruptionBudget', 'PodDisruptionBudget', 'Service', 'Service', 'ServiceMonitor'],
    ])
    for (const object of [api(), worker(), migrate(), verify()])
      expect(podOf(object).containers[0]!.image).toBe(`registry.example.com/bursar:${version}`)
  })

  test('its processes have valid settings: the API without work, the worker without clients', () => {
    const ofApi = readSettings(environmentOf(podOf(api())))
    expect(ofApi).toMatchObject({
      worker: false,
      host: '0.0.0.0',
      mode: 'live',
      rateLimitPerSecond: 100,
      customerChangesPerDay: 1_000_000,
      drainDelayMs: 5_000,
    })
    const ofWorker = readSettings(environmentOf(podOf(worker())))
    expect(ofWorker).toMatchObject({ worker: true, host: '127.0.0.1', mode: 'live' })
    expect(readSettings(environmentOf(podOf(migrate())))).toMatchObject({ mode: 'live' })
    expect(podOf(migrate()).containers[0]!.args).toEqual(['migrate'])
    expect(readSettings(environmentOf(podOf(verify())))).toMatchObject({ mode: 'live' })
    expect(podOf(verify()).containers[0]!.args).toEqual(['verify', '--json'])
    for (const object of [api(), worker()]) {
      const { drainDelayMs, shutdownTimeoutMs } = readSettings(environmentOf(podOf(object)))
      const seconds = podOf(object).terminationGracePeriodSeconds
      expect(shutdownTimeoutMs).toBeGreaterThan(drainDelayMs)
      expect(seconds * 1000).toBeGreaterThan(shutdownTimeoutMs)
    }
    expect(podOf(api()).containers[0]!.readinessProbe!.httpGet.path).toBe('/health/ready')
  })

  test('only workers have keys that sign, and only the migration has the role that owns the schema', () => {
    expect(secretsOf(podOf(api())).sort()).toEqual([
      'bursar-database/url',
      'bursar-master-key',
      'networks-of-api',
    ])
    expect(secretsOf(podOf(worker())).sort()).toEqual([
      'bursar-database/url',
      'bursar-master-key',
      'networks-of-worker',
    ])
    expect(secretsOf(podOf(migrate())).sort()).toEqual([
      'bursar-database/owner-url',
      'bursar-database/url',
      'bursar-master-key',
    ])
    expect(secretsOf(podOf(verify())).sort()).toEqual(['bursar-database/url', 'bursar-master-key'])
    expect(migrate().metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' })
    const ports = (name: string) =>
      one('NetworkPolicy', name).spec.ingress.flatMap(({ ports }) => ports.map(({ port }) => port))
    expect([ports('pay-api'), ports('pay-worker')]).toEqual([['http'], []])
  })

  test('nothing is root, writes outside its folders, or has a token of the cluster', () => {
    for (const object of [api(), worker(), migrate(), verify()]) {
      const pod = podOf(object)
      expect(pod.automountServiceAccountToken).toBe(false)
      expect(pod.securityContext).toMatchObject({
        runAsNonRoot: true,
        seccompProfile: { type: 'RuntimeDefault' },
      })
      expect(pod.containers[0]!.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
    }
  })

  test('what selects pods selects its own', () => {
    for (const object of [api(), worker()])
      expect(object.spec.template.metadata.labels).toMatchObject(object.spec.selector.matchLabels)
    for (const kind of ['PodDisruptionBudget', 'NetworkPolicy'])
      for (const object of [api(), worker()]) {
        const { name } = object.metadata
        const { spec } = one(kind, name)
        expect((spec.podSelector ?? spec.selector).matchLabels).toEqual(object.spec.selector.matchLabels)
      }
  })

  test.each<[string, object, string]>([
    ['no image', { image: { repository: '' } }, 'repository'],
    ['no Secret of the database', { secrets: { database: '', masterKey: 'a' } }, 'database'],
    ['a base URL without a scheme', { baseUrl: 'bursar.example.com' }, 'baseUrl'],
    ['a master key among the settings', { settings: { BURSAR_MASTER_KEY: 'a' } }, 'BURSAR_MASTER_KEY'],
    ['a misspelt value', { replicaCount: 3 }, 'replicaCount'],
    ['a setting that the chart makes', { settings: { BURSAR_WORKER: true } }, 'BURSAR_WORKER'],
  ])('%s is refused', (_, change, message) => {
    expect(() => render({ ...VALUES, ...change })).toThrow(message)
  })
})

/** How long a Service goes on sending requests to a pod that was told to end. */
const ENDPOINTS_LAG_MS = 1_000

test('an update and a drain fail no request; a lost zone loses no payment and pays none twice', async () => {
  const database = await ownDatabase()
  const folder = await ownFolder()
  const customer = await createCustomer(database.db, 'Test')
  await credit(new Ledger(database.db), customer, 'USD', '1000000')
  const client = await createApiClient(database.db, ROW_MACS, customer.customer_id, SCOPES)
  const baseUrl = `http://127.0.0.1:${await freePort()}`
  const start = async (component: 'api' | 'worker') => {
    const pod = await spawnBursar({
      DATABASE_URL: database.url,
      BURSAR_DATA_DIR: folder,
      BURSAR_BASE_URL: baseUrl,
      BURSAR_WORKER: String(component === 'worker'),
      BURSAR_SIMULATED_CONFIRMATION_MS: '200',
      ...(component === 'api' && { BURSAR_DRAIN_DELAY_MS: String(2 * ENDPOINTS_LAG_MS) }),
    })
    atEnd(() => pod.end('SIGKILL'))
    return pod
  }
  // One after another: the first one makes the demo.
  const apis = [await start('api'), await start('api')]
  const workers = await Promise.all([start('worker'), start('worker')])
  /** The pods that the Service sends requests to. */
  const endpoints = new Set(apis)
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: client.client_id,
    client_secret: client.client_secret,
  })
  const signed = await fetch(`${apis[0]!.address}/oauth2/token`, { method: 'POST', body: form })
  const { access_token } = (await signed.json()) as { access_token: string }

  const paid = new Map<string, string>()
  let unanswered = 0
  let isRunning = true
  atEnd(async () => void (isRunning = false))
  const runClient = async (name: string) => {
    for (let number = 0; isRunning; number++) {
      const ref_id = `${name}-${number}`
      while (!paid.has(ref_id)) {
        const pods = [...endpoints]
        const { address } = pods[Math.floor(Math.random() * pods.length)]!
        const answer = await fetch(`${address}/v2/transfer/crypto-withdrawals`, {
          method: 'POST',
          headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
          body: JSON.stringify({ ...withdrawalOf(customer), ref_id }),
        })
          .then(async (got) => (await got.json()) as { id?: string; meta?: { existing?: { id: string } } })
          .catch(() => undefined)
        const id = answer?.id ?? answer?.meta?.existing?.id
        if (id === undefined) unanswered += 1
        else paid.set(ref_id, id)
      }
      await pause(100)
    }
  }
  const clients = Promise.all(['a', 'b', 'c', 'd'].map(runClient))
  /** Ends a pod as Kubernetes does: the signal first, and the Service learns of it a moment later. */
  const terminate = async (pod: BursarProcess) => {
    const ended = pod.end('SIGTERM')
    await pause(ENDPOINTS_LAG_MS)
    endpoints.delete(pod)
    await ended
  }
  const some = async () => {
    const { size } = paid
    await expect.poll(() => paid.size).toBeGreaterThan(size + 20)
  }
  await some()

  // A rolling update: a new pod is ready before an old one ends.
  for (const [index, old] of apis.entries()) {
    apis[index] = await start('api')
    endpoints.add(apis[index])
    await terminate(old)
  }
  const [old] = workers
  workers[0] = await start('worker')
  await old.end('SIGTERM')
  await some()
  expect(unanswered).toBe(0)

  // A drain: a machine's API and worker end at once, and others are started elsewhere.
  await Promise.all([terminate(apis[0]!), workers[0].end('SIGTERM')])
  ;[apis[0], workers[0]] = await Promise.all([start('api'), start('worker')])
  endpoints.add(apis[0])
  await some()
  expect(unanswered).toBe(0)

  // A lost zone: nothing is said to anybody.
  await Promise.all([apis[1]!.end('SIGKILL'), workers[1].end('SIGKILL')])
  await pause(ENDPOINTS_LAG_MS)
  endpoints.delete(apis[1]!)
  await some()
  isRunning = false
  await clients

  const ended = async () => {
    const { rows } = await database.db.query<{ status: string; count: number }>(
      'select status, count(*)::int as count from transfers where ref_id is not null group by status',
    )
    return rows
  }
  await expect.poll(ended, { timeout: 10_000 }).toEqual([{ status: 'COMPLETED', count: paid.size }])
  expect(new Set(paid.values()).size).toBe(paid.size)
  const { rows } = await database.db.query('select count(*)::int as count from simulated_chain')
  expect(rows).toEqual([{ count: paid.size }])
  expect((await verify(database.db)).disagreements).toEqual([])
})
