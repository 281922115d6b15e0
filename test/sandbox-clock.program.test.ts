/*
 * The clock of a sandbox (API behaviour, Sandbox). Invariants:
 * 1. what falls due until the new time happens, as it would have: statements, ends of quotes, cooling times, limits, retries;
 * 2. times and ids never go back, ascending lists miss nothing, and `bursar verify` finds nothing, also after a restart;
 * 3. no session of a sandbox whose clock was not moved, and none of live mode, knows another clock.
 */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { credentialsFile, type SandboxCredentials } from '../src/program/demo/credentials.ts'
import { CLUSTER } from './cluster.ts'
import { startReceiver } from './receivers.ts'
import { cloneDatabase, runBursar, spawnBursar } from './support.ts'
import { atEnd, ownFolder } from './at-end.ts'

interface List<T> {
  items: T[]
}

async function startSandbox(more: Record<string, string> = {}) {
  const database = await cloneDatabase(2)
  const folder = await ownFolder()
  atEnd(() => database.drop())
  const environment = {
    DATABASE_URL: database.url,
    BURSAR_MIGRATIONS_DATABASE_URL: database.ownerUrl,
    BURSAR_DATA_DIR: folder,
    ...more,
  }
  const spawned = await spawnBursar(environment)
  let service = spawned
  atEnd(() => service.end('SIGTERM'))
  const demo = JSON.parse(await readFile(credentialsFile(folder), 'utf8')) as SandboxCredentials
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    client_id: demo.client_id,
    client_secret: demo.client_secret,
  })
  const signed = await fetch(`${service.address}/oauth2/token`, { method: 'POST', body: form })
  const { access_token } = (await signed.json()) as { access_token: string }
  const call = async <T>(method: string, path: string, body?: object) => {
    const answer = await fetch(`${service.address}${path}`, {
      method,
      headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    })
    return { status: answer.status, body: (await answer.json()) as T }
  }
  const advance = async (by: string) => {
    const { status, body } = await call<{ now: string }>('POST', '/v2/sandbox/clock', { advance: by })
    expect({ status, body }).toMatchObject({ status: 200 })
    return body.now
  }
  return {
    database,
    environment,
    demo,
    call,
    advance,
    restart: async () => {
      await service.end('SIGTERM')
      service = await spawnBursar({ ...environment, PORT: new URL(spawned.address).port })
    },
  }
}

test.skipIf(CLUSTER.length > 0)('a month ends, and the books stay right', async () => {
  const { demo, call, advance, restart, environment } = await startSandbox()
  await call('POST', `/v2/sandbox/profiles/${demo.profile_id}/deposit`, { asset: 'USDP', amount: '100' })
  const statements = async () =>
    (await call<{ statements: object[] }>('GET', `/v2/statements?customer_id=${demo.customer_id}&limit=50`))
      .body.statements.length
  const before = await statements()
  const payment = {
    asset: 'USDP',
    crypto_network: 'ETHEREUM',
    amount: '1',
    destination_address: '0x52908400098527886E0F7030069857D2E4169EE7',
  }
  const withdraw = (more: object = {}) =>
    call<{ id: string; created_at: string; status: string }>('POST', '/v2/transfer/crypto-withdrawals', {
      ...payment,
      profile_id: demo.profile_id,
      ...more,
    })
  const { body: quote } = await call<{ id: string }>('POST', '/v2/transfer/fees/crypto-withdrawal', payment)
  const { body: made } = await withdraw()
  const started = await advance('PT0S')
  const moved = await advance('P1M')
  expect(Date.parse(moved) - Date.parse(started)).toBeGreaterThan(27 * 86_400_000)

  await expect.poll(statements, { timeout: 30_000 }).toBe(before + 1)
  expect(await withdraw({ fee_id: quote.id })).toMatchObject({ status: 404 })
  // Times go on from there, and an ascending list has the records of before and after.
  const { body: next } = await withdraw()
  expect(next.created_at > moved).toBe(true)
  expect(next.id > made.id).toBe(true)
  const ascending = `/v2/transfer/transfers?order=ASC&created_at.gte=${made.created_at}`
  await expect
    .poll(async () => (await call<List<{ id: string }>>('GET', ascending)).body.items.map(({ id }) => id))
    .toEqual(expect.arrayContaining([made.id, next.id]))
  for (const { id } of [made, next])
    await expect
      .poll(async () => (await call<{ status: string }>('GET', `/v2/transfer/transfers/${id}`)).body.status, {
        timeout: 30_000,
      })
      .toBe('COMPLETED')

  await restart()
  expect((await advance('PT0S')) > moved).toBe(true)
  const verified = await runBursar(['verify', '--json'], environment)
  expect(JSON.parse(verified.stdout)).toMatchObject({ clean: true })
})

test.skipIf(CLUSTER.length > 0)('limits, cooling times, deadlines, retries and retention end', async () => {
  const { demo, call, advance, database } = await startSandbox()
  let isDown = true
  let taken = 0
  const receiver = await startReceiver((_, response) => {
    if (!isDown) taken++
    response.writeHead(isDown ? 503 : 204).end()
  })
  const hook = await call<{ id: string; webhook: { id: string } }>('POST', '/v2/webhooks', {
    name: 'Clock',
    url: receiver.url,
    event_types: ['transfer.crypto_withdrawal.pending'],
  })
  expect(hook.status).toBe(200)
  await call('POST', `/v2/sandbox/profiles/${demo.profile_id}/deposit`, { asset: 'USDP', amount: '500' })
  const known = '0x52908400098527886E0F7030069857D2E4169EE7'
  const day = 86_400
  const limit = { amount: '50', asset: 'USD', period_seconds: day, per: 'CUSTOMER' }
  const policy = await call('PUT', '/v2/policy', {
    rules: [
      { id: 'known', match: { destination: 'ADDRESS_BOOK' }, action: 'ALLOW' },
      { id: 'a-day', limit, action: 'BLOCK' },
      {
        id: 'large',
        limit: { amount: '30', asset: 'USD', period_seconds: 0 },
        action: 'APPROVE',
        approvals: 1,
      },
    ],
    approvals: { deadline_seconds: 3_600 },
    address_book: { cooling_seconds: day },
  })
  expect(policy).toMatchObject({ status: 200 })
  const withdraw = (amount: string, more: object = {}) =>
    call<{ id: string; title?: string }>('POST', '/v2/transfer/crypto-withdrawals', {
      ...{ profile_id: demo.profile_id, asset: 'USDP', crypto_network: 'ETHEREUM', amount },
      ...{ destination_address: known, ...more },
    })
  const statusOf = async (id: string) =>
    (await call<{ status: string }>('GET', `/v2/transfer/transfers/${id}`)).body.status

  const waiting = (await withdraw('40')).body.id
  expect((await withdraw('20')).status).toBe(403)
  await expect.poll(() => receiver.received.length, { timeout: 20_000 }).toBeGreaterThan(0)

  await advance('PT2H')
  await expect.poll(() => statusOf(waiting), { timeout: 30_000 }).toBe('FAILED')
  isDown = false
  await advance('PT6H')
  await expect.poll(() => taken, { timeout: 30_000 }).toBeGreaterThan(0)

  await advance('P1D')
  expect((await withdraw('20')).status).toBe(200)
  const entry = await call<{ id: string; status: string }>('PUT', '/v2/transfer/crypto-destination-address', {
    crypto_network: 'ETHEREUM',
    address: known,
    nickname: 'Known',
  })
  expect(entry).toMatchObject({ status: 200, body: { address: { status: 'PENDING' } } })
  const statusOfEntry = async () =>
    (await call<List<{ status: string }>>('GET', '/v2/transfer/crypto-destination-addresses?limit=1')).body
      .items[0]!.status
  await advance('PT25H')
  await expect.poll(statusOfEntry, { timeout: 30_000 }).toBe('APPROVED')
  expect((await withdraw('200')).status).toBe(200)

  const oldest = async () =>
    (
      await database.owner.query<{ name: string }>(
        `select min(relname) as name from pg_class where relname ~ '^events_\\d{8}$'`,
      )
    ).rows[0]!.name
  const first = await oldest()
  await advance('P1Y')
  await expect.poll(oldest, { timeout: 60_000 }).not.toBe(first)
})

test.skipIf(CLUSTER.length > 0)('advancing while many write loses no record and no balance', async () => {
  const { demo, call, advance, environment } = await startSandbox()
  // The first moves of a sandbox, at once: each of them counts.
  const begun = await Promise.all(Array.from({ length: 5 }, () => advance('PT10M')))
  const since = await advance('PT0S')
  expect(Date.parse(since) - Date.parse(begun.toSorted()[0]!)).toBeGreaterThan(4 * 600_000 - 1)
  const made: string[] = []
  let isDone = false
  const writers = Array.from({ length: 8 }, async () => {
    while (!isDone) {
      const { status, body } = await call<{ activity_id: string }>(
        'POST',
        `/v2/sandbox/profiles/${demo.profile_id}/deposit`,
        { asset: 'USD', amount: '1' },
      )
      if (status === 200) made.push(body.activity_id)
    }
  })
  // Each reader walks on from the last record that it saw: a record that appears below it is missed.
  const seen = new Set<string>()
  let last = since
  const read = async () => {
    const { body } = await call<List<{ id: string; created_at: string }>>(
      'GET',
      `/v2/transfer/transfers?order=ASC&limit=1000&type=WIRE_DEPOSIT&created_at.gt=${last}`,
    )
    for (const { id, created_at } of body.items) {
      seen.add(id)
      last = created_at
    }
    return body.items.length
  }
  for (const by of ['PT1S', 'PT1H', 'P1D', 'PT1S', 'P1M']) {
    await advance(by)
    const enough = made.length + 50
    while (made.length < enough) await read()
  }
  isDone = true
  await Promise.all(writers)
  await expect.poll(read).toBe(0)
  expect(made.filter((id) => !seen.has(id))).toEqual([])
  const verified = await runBursar(['verify', '--json'], environment)
  expect(JSON.parse(verified.stdout)).toMatchObject({ clean: true })
})

test.skipIf(CLUSTER.length > 0)('a duration that is none, or too far, moves nothing', async () => {
  const { call, advance } = await startSandbox()
  const before = await advance('PT0S')
  for (const by of ['1h', 'P', 'PT', '-P1D', 'P11Y', 'P1M; drop table x'])
    expect((await call('POST', '/v2/sandbox/clock', { advance: by })).status, by).toBe(400)
  expect(Date.parse(await advance('PT0S')) - Date.parse(before)).toBeLessThan(600_000)
})

test('a sandbox whose clock was never moved, and live mode, have the clock of PostgreSQL', async () => {
  const { database } = await startSandbox()
  const { rows } = await database.owner.query(`select 1 from pg_namespace where nspname = 'sandbox_clock'`)
  expect(rows).toEqual([])
})
