/*
 * What a sandbox offers to suites of tests. Invariants:
 * 1. a customer that a suite takes sees no record of another one, and cannot create customers or reset the sandbox;
 * 2. the next requests of a client fail as it asked, each once and in their order, and no request of another client does;
 * 3. a request without an answer changed nothing, and one with a lost answer was carried out;
 * 4. a wire's answer names its transfer;
 * 5. live mode has none of this.
 */
import { afterAll, describe, expect, test } from 'vitest'
import { CLUSTER } from '../../../test/cluster.ts'
import { newCustomer, startTestService, MASTER_KEY, ownTestService } from '../../../test/support.ts'
import { verify } from '../../money/verify/verify.ts'

interface Credentials {
  customer_id: string
  profile_id: string
  client_id: string
  client_secret: string
  token_url: string
}

const service = await ownTestService()
const address = await service.app.listen({ host: '127.0.0.1', port: 0 })
const customer = await newCustomer(service)
afterAll(async () => expect((await verify(service.db)).disagreements).toEqual([]))

async function tokenOf({ client_id, client_secret }: Pick<Credentials, 'client_id' | 'client_secret'>) {
  const body = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret })
  const answer = await fetch(`${address}/oauth2/token`, { method: 'POST', body })
  return ((await answer.json()) as { access_token: string }).access_token
}

const ask = (
  token: string,
  path: string,
  {
    method = 'GET',
    body,
    headers,
  }: { method?: string; body?: object; headers?: Record<string, string> } = {},
) =>
  fetch(`${address}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body && { body: JSON.stringify(body) }),
  })

describe('Create Sandbox Customer', () => {
  test('answers credentials of a customer that sees nobody else, and is named where its changes are', async () => {
    const { status, body } = await customer.call<Credentials>('POST', '/v2/sandbox/customers', {
      name: 'suite 1',
    })
    expect(status).toBe(200)
    const token = await tokenOf(body)
    const profiles = (await (await ask(token, '/v2/profiles')).json()) as { items: { id: string }[] }
    expect(profiles.items.map(({ id }) => id)).toEqual([body.profile_id])
    await ask(token, `/v2/sandbox/profiles/${body.profile_id}/deposit`, {
      method: 'POST',
      body: { asset: 'USD', amount: '5' },
    })
    const own = (await (await ask(token, '/v2/transfer/transfers')).json()) as { items: unknown[] }
    expect(own.items).toHaveLength(1)
    const log = (await (await ask(token, '/v2/audit-log?actions=transfer.create')).json()) as {
      items: { actor: object }[]
    }
    expect(log.items[0]!.actor).toEqual({ type: 'API_CLIENT', id: body.client_id, name: 'suite 1' })
    const clients = async () =>
      ((await (await ask(token, '/v2/api-creds/credentials')).json()) as { items: object[] }).items
    await expect
      .poll(clients)
      .toMatchObject([{ name: 'suite 1', last_used_at: expect.any(String) as string }])
    for (const path of ['/v2/sandbox/customers', '/v2/sandbox/reset'])
      expect((await ask(token, path, { method: 'POST', body: {} })).status).toBe(403)
  })

  test('takes no Idempotency-Key, because each request creates a customer', async () => {
    const refused = await ask(customer.token, '/v2/sandbox/customers', {
      method: 'POST',
      body: {},
      headers: { 'idempotency-key': 'k' },
    })
    expect(refused.status).toBe(400)
  })
})

// What falls due then is shown by sandbox-clock.program.test.ts, with a worker.
describe('Reset Sandbox', () => {
  test('is refused where nothing can start the service again', async () => {
    const { status, body } = await customer.call<{ detail: string }>('POST', '/v2/sandbox/reset')
    expect({ status, detail: body.detail }).toMatchObject({
      status: 403,
      detail: expect.stringContaining('was not started by bursar serve') as string,
    })
  })
})

describe('Advance Sandbox Clock', () => {
  test.skipIf(CLUSTER.length > 0)(
    'answers the time and records who moved it; the audit log of the platform has it',
    async () => {
      const { status, body } = await customer.call<{ now: string }>('POST', '/v2/sandbox/clock', {
        advance: 'PT0S',
      })
      expect(status).toBe(200)
      const { rows } = await service.db.query<{ actor_id: string; now: string }>(
        `select actor_id, changes -> 'after' ->> 'now' as now from audit_log where action = 'deployment.advance_clock'`,
      )
      expect(rows).toEqual([{ actor_id: customer.client_id, now: body.now }])
    },
  )
})

describe('Bursar-Fail-Next', () => {
  const failNext = async (client: Credentials, failures: string) => {
    const token = await tokenOf(client)
    const asked = await ask(token, '/v2/profiles', { headers: { 'bursar-fail-next': failures } })
    return { token, status: asked.status }
  }
  const newClient = async () =>
    (await customer.call<Credentials>('POST', '/v2/sandbox/customers', { name: 'fails' })).body

  test('fails the next requests of the client in their order, and nobody else', async () => {
    const [client, other] = [await newClient(), await newClient()]
    const { token, status } = await failNext(client, '503, 429')
    expect(status).toBe(200)
    expect((await ask(await tokenOf(other), '/v2/profiles')).status).toBe(200)
    const answers = [await ask(token, '/v2/profiles'), await ask(token, '/v2/profiles')]
    expect(answers.map((one) => [one.status, one.headers.has('retry-after')])).toEqual([
      [503, true],
      [429, true],
    ])
    expect((await ask(token, '/v2/profiles')).status).toBe(200)
  })

  test('an empty header takes the failures back', async () => {
    const client = await newClient()
    const { token } = await failNext(client, '503,503')
    await failNext(client, '')
    expect((await ask(token, '/v2/profiles')).status).toBe(200)
  })

  test('an unknown failure is refused by name', async () => {
    const { status } = await failNext(await newClient(), '418')
    expect(status).toBe(400)
  })

  test('a timeout changes nothing, and a lost answer was carried out', async () => {
    const client = await newClient()
    const { token } = await failNext(client, 'timeout, lost-answer')
    const deposit = (ref_id: string) =>
      ask(token, `/v2/sandbox/profiles/${client.profile_id}/deposit`, {
        method: 'POST',
        body: { asset: 'USD', amount: '5', ref_id },
      })
    const leaves = new AbortController()
    const hanging = fetch(`${address}/v2/sandbox/profiles/${client.profile_id}/deposit`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ asset: 'USD', amount: '5', ref_id: 'first' }),
      signal: leaves.signal,
    })
    // The next request proves that the one before has been taken: failures are used in their order.
    await expect.poll(() => service.app.requests.underWay).toBe(1)
    await expect(deposit('second')).rejects.toThrow('fetch failed')
    leaves.abort()
    await expect(hanging).rejects.toThrow()
    const { items } = (await (await ask(token, '/v2/transfer/transfers')).json()) as {
      items: { ref_id: string }[]
    }
    expect(items.map(({ ref_id }) => ref_id)).toEqual(['second'])
    await expect.poll(() => service.app.requests.underWay).toBe(0)
  })
})

test('the answer of a wire names its transfer, whatever becomes of it', async () => {
  const { body: instructions } = await customer.call<{ memo_id: string }>(
    'POST',
    '/v2/transfer/fiat-deposit-instructions',
    { profile_id: customer.profile_id, fiat_network: 'WIRE' },
  )
  for (const amount of ['250.00', '9000.01']) {
    const wired = await ask(customer.token, '/v2/sandbox/fiat-deposits', {
      method: 'POST',
      body: { amount, asset: 'USD', memo_id: instructions.memo_id, fiat_network_instructions: { wire: {} } },
    })
    expect({ status: wired.status, body: await wired.json() }).toEqual({ status: 200, body: {} })
    const id = wired.headers.get('bursar-transfer-id')
    const { status, body } = await customer.call('GET', `/v2/transfer/transfers/${id}`)
    expect([status, body]).toMatchObject([200, { type: 'WIRE_DEPOSIT', total: amount.replace(/\.?0+$/, '') }])
  }
})

test('live mode has none of this', async () => {
  const live = await startTestService({ BURSAR_MODE: 'live', BURSAR_MASTER_KEY: MASTER_KEY })
  try {
    const { call, token } = await newCustomer(live)
    for (const path of ['customers', 'reset'])
      expect((await call('POST', `/v2/sandbox/${path}`, {})).status).toBe(404)
    const asked = () =>
      live.app.inject({
        url: '/v2/profiles',
        headers: { authorization: `Bearer ${token}`, 'bursar-fail-next': '503, 503' },
      })
    expect([(await asked()).statusCode, (await asked()).statusCode]).toEqual([200, 200])
    const plain = await live.app.inject({
      url: '/v2/profiles',
      headers: { authorization: `Bearer ${token}` },
    })
    expect(plain.statusCode).toBe(200)
  } finally {
    await live.close()
  }
})
