/*
 * OpenTelemetry (docs/guides/operating.md). Invariants:
 * 1. a withdrawal is one trace from its request to its delivery, under the client's own trace where it sends one;
 * 2. metrics over OTLP are those of Prometheus, with exemplars there;
 * 3. without the variables nothing is loaded; a variable that is not supported is refused by name; a collector that is gone
 *    stops nothing.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { createCustomer } from '../src/money/records/customer.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { verify } from '../src/money/verify/verify.ts'
import { startCollector } from './otlp.ts'
import { startReceiver } from './receivers.ts'
import { credit, ROW_MACS, runBursar, withdrawalOf, ownDatabase, ownBursar } from './support.ts'

async function startTraced(environment: Record<string, string>) {
  const database = await ownDatabase()
  const customer = await createCustomer(database.db, 'Test')
  await credit(new Ledger(database.db), customer, 'USD', '1000')
  const client = await createApiClient(database.db, ROW_MACS, customer.customer_id, SCOPES)
  const bursar = await ownBursar({
    DATABASE_URL: database.url,
    BURSAR_WORKER_INTERVAL_MS: '20',
    BURSAR_SIMULATED_CONFIRMATION_MS: '0',
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_METRIC_EXPORT_INTERVAL: '200',
    ...environment,
  })
  const { client_id, client_secret } = client
  const form = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret })
  const signed = await fetch(`${bursar.address}/oauth2/token`, { method: 'POST', body: form })
  const { access_token } = (await signed.json()) as { access_token: string }
  const call = async (path: string, body: object, headers: Record<string, string> = {}) => {
    const answer = await fetch(`${bursar.address}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
    return { status: answer.status, headers: answer.headers, body: (await answer.json()) as { id: string } }
  }
  const withdraw = (headers: Record<string, string> = {}, more: object = {}) =>
    call('/v2/transfer/crypto-withdrawals', { ...withdrawalOf(customer), ...more }, headers)
  return { database, bursar, call, withdraw }
}

async function databaseUrl(): Promise<string> {
  const database = await ownDatabase()
  return database.url
}

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736'
const CLIENTS_SPAN = '00f067aa0ba902b7'

describe('traces', () => {
  test('a withdrawal is one trace: request, batch, transaction, signature, broadcast, confirmation, delivery', async () => {
    const collector = await startCollector()
    const receiver = await startReceiver()
    const { withdraw, call, database, bursar } = await startTraced({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_SERVICE_NAME: 'bursar-test',
    })
    const webhook = { name: 'all', url: receiver.url, event_types: ['*'] }
    expect(await call('/v2/webhooks', webhook)).toMatchObject({ status: 200 })
    const { status, body, headers } = await withdraw({ traceparent: `00-${TRACE_ID}-${CLIENTS_SPAN}-01` })
    expect({ status, body }).toMatchObject({ status: 200 })
    const own = () => collector.spans.filter(({ traceId }) => traceId === TRACE_ID)
    const named = (name: string) => own().filter((span) => span.name === name)
    await expect
      .poll(() => new Set(own().map(({ name }) => name)))
      .toEqual(
        new Set([
          'POST /v2/transfer/crypto-withdrawals',
          'ledger batch',
          'ledger transaction',
          'signature',
          'broadcast',
          'confirmation',
          'delivery',
        ]),
      )
    const [request] = named('POST /v2/transfer/crypto-withdrawals')
    expect(request).toMatchObject({
      parentId: CLIENTS_SPAN,
      failed: false,
      attributes: {
        'http.response.status_code': 200,
        'bursar.request_id': headers.get('x-request-id'),
      },
      resource: { 'service.name': 'bursar-test' },
    })
    const [batch] = named('ledger batch')
    expect(batch).toMatchObject({ parentId: request!.spanId, attributes: { 'bursar.batch.movements': 1 } })
    expect(named('ledger transaction')).toMatchObject([
      { parentId: batch!.spanId, attributes: { 'db.system.name': 'postgresql' } },
    ])
    const steps = ['signature', 'broadcast', 'confirmation'].map((name) => named(name))
    for (const some of steps)
      expect(some).toMatchObject([
        {
          parentId: request!.spanId,
          attributes: { 'bursar.transfer_id': body.id, 'bursar.network': 'ETHEREUM' },
        },
      ])
    const [signature, broadcast, confirmation] = steps.map(([one]) => one)
    expect(broadcast!.startNanos).toBe(signature!.endNanos)
    expect(confirmation!.startNanos).toBe(broadcast!.endNanos)
    expect(confirmation!.endNanos).toBeGreaterThan(confirmation!.startNanos)
    // The endpoint gets the trace, under the span of its delivery.
    const deliveries = new Map(named('delivery').map((span) => [span.attributes['bursar.event_id'], span]))
    const told = receiver.received.filter(({ headers: { traceparent } }) => traceparent!.includes(TRACE_ID))
    expect(told.length).toBeGreaterThan(0)
    for (const [id, span] of deliveries) {
      expect(span.parentId).toBe(request!.spanId)
      const received = told.find((one) => one.headers['webhook-id'] === id)
      expect(received?.headers.traceparent).toBe(`00-${TRACE_ID}-${span.spanId}-01`)
    }
    expect(bursar.log()).toContain(`"trace_id":"${TRACE_ID}"`)
    expect((await verify(database.db)).disagreements).toEqual([])
  })

  test('by default few are traced; a client may ask for 100 traces a second, and for none', async () => {
    const collector = await startCollector()
    const { withdraw, bursar } = await startTraced({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
    const ask = (traceparent?: string) =>
      withdraw(traceparent === undefined ? {} : { traceparent }, { total: '0.01', amount: undefined })
    const ids = Array.from({ length: 600 }, (_, index) => index.toString(16).padStart(32, 'a'))
    const start = performance.now()
    for (let from = 0; from < ids.length; from += 50)
      await Promise.all(
        ids
          .slice(from, from + 50)
          .flatMap((id) => [ask(`00-${id}-${CLIENTS_SPAN}-01`), ask(), ask('malformed')]),
      )
    const seconds = Math.ceil((performance.now() - start) / 1000) + 1
    expect(await ask(`00-${TRACE_ID}-${CLIENTS_SPAN}-00`)).toMatchObject({ status: 400 })
    // Nobody without a token asks for anything.
    const path = '/v2/transfer/crypto-withdrawals'
    const headers = { traceparent: `00-${TRACE_ID}-${CLIENTS_SPAN}-01` }
    expect((await fetch(`${bursar.address}${path}`, { method: 'POST', headers })).status).toBe(401)
    const last = 'b'.repeat(32)
    const lastIsSent = async () => {
      await ask(`00-${last}-${CLIENTS_SPAN}-01`)
      return collector.spans.some(({ traceId }) => traceId === last)
    }
    await expect.poll(lastIsSent, { interval: 500 }).toBe(true)
    const asked = collector.spans.filter(({ traceId }) => ids.includes(traceId))
    expect(asked.length).toBeGreaterThanOrEqual(100)
    expect(asked.length).toBeLessThanOrEqual(100 * seconds)
    const others = collector.spans.filter(({ traceId }) => ![...ids, last].includes(traceId))
    expect(others.length).toBeLessThan(60)
    expect(others.some(({ traceId }) => traceId === TRACE_ID)).toBe(false)
  })
})

describe('metrics', () => {
  test('are the same over OTLP and for Prometheus, which gets the ids of traces, too', async () => {
    const collector = await startCollector()
    const { withdraw, bursar } = await startTraced({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER: 'always_on',
    })
    expect(await withdraw()).toMatchObject({ status: 200 })
    const address = /metrics at (\S+)"/.exec(bursar.log())![1]!
    const ended = { network: 'ETHEREUM', status: 'COMPLETED' }
    await expect
      .poll(() => collector.points().find(({ name }) => name === 'bursar_withdrawals_ended_total'), {})
      .toMatchObject({ kind: 'sum', attributes: ended, value: 1 })
    const route = '/v2/transfer/crypto-withdrawals'
    const ofRoute = collector
      .points()
      .find(
        ({ name, attributes }) =>
          name === 'bursar_http_request_duration_seconds' && attributes.route === route,
      )
    expect(ofRoute).toMatchObject({ kind: 'histogram', value: 1, attributes: { status: '200' } })
    expect(ofRoute!.buckets.reduce((sum, count) => sum + count)).toBe(1)
    const answer = await fetch(address)
    expect(answer.headers.get('content-type')).toContain('application/openmetrics-text')
    const text = await answer.text()
    const [request] = collector.spans.filter(({ name }) => name === `POST ${route}`)
    expect(text).toMatch(
      new RegExp(
        `^bursar_http_request_duration_seconds_bucket{le="[^"]+",method="POST",route="${route}",status="200"} 1 # {trace_id="${request!.traceId}"} `,
        'm',
      ),
    )
    const names = new Set(
      text
        .split('\n')
        .flatMap((line) => /^(\w+)[{ ]/.exec(line)?.[1]?.replace(/_(bucket|sum|count)$/, '') ?? []),
    )
    // Node's lists of what is under way are empty at one moment, and not at another.
    for (const name of names) if (name.startsWith('nodejs_active_')) names.delete(name)
    const sent = new Set(collector.points().map(({ name }) => name))
    expect([...sent].filter((name) => !names.has(name) && !name.startsWith('nodejs_active_'))).toEqual([])
    expect([...names].filter((name) => !sent.has(name))).toEqual([])
    // Scraping renames counters, and nothing that is sent changes its name by it.
    await expect
      .poll(() => collector.points().map(({ name }) => name))
      .toContain('bursar_withdrawals_ended_total')
  })
})

describe('the variables', () => {
  // prom-client loads the API, which does nothing by itself.
  test('without them, no library of OpenTelemetry that sends anything is loaded', () => {
    const dist = new URL('../dist/', import.meta.url)
    const texts = new Map(
      readdirSync(dist)
        .filter((file) => file.endsWith('.js'))
        .map((file) => [file, readFileSync(new URL(file, dist), 'utf8')]),
    )
    const holding = [...texts].filter(([, text]) => /node_modules\/@opentelemetry\/(?!api\/)/.test(text))
    const names = holding.map(([file]) => file)
    expect(names).toContainEqual(expect.stringMatching(/^open-telemetry-/))
    // Only the parts that hold it import it at once. The others import it when they are asked to send something.
    for (const [file, text] of texts) {
      const atOnce = [...text.matchAll(/^(?:import|export)\b[^;]*?"\.\/([^"]+)"/gm)].map(([, part]) => part!)
      if (!names.includes(file))
        expect(
          atOnce.filter((part) => names.includes(part)),
          file,
        ).toEqual([])
    }
  })

  test('what is not supported is refused by its name, and nothing is left running', async () => {
    const { code, stderr } = await runBursar(['serve'], {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:4317',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      DATABASE_URL: await databaseUrl(),
    })
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('OTEL_EXPORTER_OTLP_PROTOCOL: must be one of http/protobuf') as string,
    })
  })

  test('a collector that is gone stops nothing, and is reported', async () => {
    const { withdraw, bursar } = await startTraced({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
      OTEL_TRACES_SAMPLER: 'always_on',
      OTEL_EXPORTER_OTLP_TIMEOUT: '200',
    })
    expect(await withdraw()).toMatchObject({ status: 200 })
    await expect.poll(() => bursar.log()).toContain('OpenTelemetry: ')
    expect(await withdraw({}, { ref_id: 'again' })).toMatchObject({ status: 200 })
    await bursar.end('SIGTERM')
    expect(bursar.log()).not.toContain('which did not end within')
  })
})
