import { pino } from 'pino'
import { beforeEach, describe, expect, test } from 'vitest'
import {
  asAdmin,
  fund,
  newCustomer,
  startTestService,
  WEBHOOK_SECRETS,
  type TestCustomer,
  ownTestService,
} from '../../../test/support.ts'
import { openDatabase, transaction } from '../../db/database.ts'
import type { Webhook } from '../../money/records/webhook.ts'

const WEBHOOKS = '/v2/webhooks'

let log = ''
let customer: TestCustomer
const logged = pino({ level: 'trace' }, { write: (line: string) => void (log += line) })
const service = await ownTestService({}, { log: logged })
beforeEach(async () => void (customer = await newCustomer(service)))

const bodyOf = (changes: object = {}) => ({
  name: 'Payments',
  url: 'https://hooks.example.com/bursar',
  event_types: ['transfer.*'],
  ...changes,
})

async function created(by: TestCustomer = customer, changes: object = {}) {
  const answer = await by.call<{ webhook: Webhook; secret: string }>('POST', WEBHOOKS, bodyOf(changes))
  expect(answer.status, JSON.stringify(answer.body)).toBe(200)
  return answer.body
}

const secretsOf = async ({ id }: { id: string }) => {
  const { rows } = await service.db.query<{ encrypted_secrets: string }>(
    'select encrypted_secrets from webhooks where id = $1',
    [id],
  )
  return WEBHOOK_SECRETS.open({ customer_id: customer.customer_id, id }, rows[0]!.encrypted_secrets)
}

const API_KEY = { type: 'API_KEY', header: 'X-Api-Key', key: 'Bearer marker-of-the-key' }
const OAUTH = {
  type: 'OAUTH2_CLIENT_CREDENTIALS',
  token_url: 'https://login.example.com/token',
  client_id: 'bursar',
  client_secret: 'marker-of-the-client',
  scope: 'hooks',
}

describe('Create Webhook', () => {
  test('answers the endpoint with its defaults, and its secret once', async () => {
    const { webhook, secret } = await created()
    expect(webhook).toEqual({
      id: webhook.id,
      name: 'Payments',
      url: 'https://hooks.example.com/bursar',
      event_types: ['transfer.*'],
      payload: 'THIN',
      auth: { type: 'NONE' },
      rate_limit: 10,
      status: 'ACTIVE',
      created_at: webhook.created_at,
      updated_at: webhook.created_at,
    })
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
    expect(await secretsOf(webhook)).toEqual({ signing: secret })
  })

  test('keeps what is asked for, and the secret of authentication encrypted', async () => {
    const asked = { payload: 'FULL', rate_limit: 100, status: 'DISABLED', profile_ids: [customer.profile_id] }
    const { webhook, secret } = await created(customer, { ...asked, auth: API_KEY })
    expect(webhook).toMatchObject({ ...asked, auth: { type: 'API_KEY', header: 'X-Api-Key' } })
    expect(await secretsOf(webhook)).toEqual({ signing: secret, auth: API_KEY.key })
    const { client_secret, ...shown } = OAUTH
    const other = await created(customer, { name: 'Other', auth: OAUTH })
    expect(other.webhook.auth).toEqual(shown)
    expect(await secretsOf(other.webhook)).toEqual({ signing: other.secret, auth: client_secret })
  })

  test('keeps URLs as requests use them, without the line ends that the parser drops', async () => {
    const { webhook } = await created(customer, {
      url: 'https://hooks.example.com/a\r\nX: y',
      auth: { ...OAUTH, token_url: 'https://login.example.com/\ttoken' },
    })
    expect(webhook.url).toBe('https://hooks.example.com/aX:%20y')
    expect(webhook.auth).toMatchObject({ token_url: 'https://login.example.com/token' })
    const url = 'https://hooks.example.com/\r\nb'
    const { body } = await customer.call<Webhook>('PUT', `${WEBHOOKS}/${webhook.id}`, { url })
    expect(body.url).toBe('https://hooks.example.com/b')
  })

  test('refuses a name that is taken with the record, without its secret; other customers are free to use it', async () => {
    const { webhook } = await created()
    const again = await customer.call<{ meta: object }>('POST', WEBHOOKS, bodyOf({ rate_limit: 5 }))
    expect(again).toMatchObject({
      status: 409,
      body: { title: 'Already Exists', meta: { existing: webhook } },
    })
    await created(await newCustomer(service))
  })

  test('begins with the events that are not committed yet, also those of an older transaction', async () => {
    await fund(customer, '1')
    const frozen = await service.db.connect()
    try {
      await frozen.query('begin')
      const { rows } = await frozen.query<{ now: string }>('select clock_timestamp() as now')
      const { webhook } = await created()
      const { rows: found } = await service.db.query<{ micros: string; committed: string }>(
        `select floor(extract(epoch from $2::timestamptz) * 1000)::bigint as micros,
                ('x' || translate(left(w.cursor_id::text, 13), '-', ''))::bit(48)::bigint as committed
         from webhooks w where w.id = $1`,
        [webhook.id, rows[0]!.now],
      )
      expect(Number(found[0]!.committed)).toBeLessThanOrEqual(Number(found[0]!.micros))
      // Events of before are not delivered.
      const { rows: earlier } = await service.db.query(
        `select from events e join webhooks w on e.customer_id = w.customer_id and e.id > w.cursor_id
         where w.id = $1`,
        [webhook.id],
      )
      expect(earlier).toEqual([])
    } finally {
      await frozen.query('rollback')
      frozen.release()
    }
  })

  test.each<[object, string]>([
    [
      { auth: { ...OAUTH, header: 'x-a' } },
      'auth.header cannot be given with type OAUTH2_CLIENT_CREDENTIALS',
    ],
    [{ auth: { ...OAUTH, token_url: 'login' } }, 'auth.token_url is not a URL'],
    [{ auth: { ...API_KEY, header: 'x api' } }, 'auth.header must be the name of an HTTP header'],
    ...[
      'Webhook-Signature',
      'content-type',
      'Content-Length',
      'host',
      'Connection',
      'transfer-encoding',
      'te',
    ].map(
      (header) =>
        [{ auth: { ...API_KEY, header } }, `auth.header ${header} is set by each delivery`] as [
          object,
          string,
        ],
    ),
  ])('refuses %j', async (changes, detail) => {
    const answer = await customer.call<{ detail: string }>('POST', WEBHOOKS, bodyOf(changes))
    expect(answer.status).toBe(400)
    expect(answer.body.detail).toContain(detail)
    expect(JSON.stringify(answer.body)).not.toContain('marker')
    expect((await customer.call('GET', WEBHOOKS)).body).toEqual({ items: [] })
  })

  test('of simultaneous requests, ten become ACTIVE; DISABLED ones do not count', async () => {
    for (let n = 0; n < 3; n++) await created(customer, { name: `Off ${n}`, status: 'DISABLED' })
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, n) => customer.call('POST', WEBHOOKS, bodyOf({ name: `Hook ${n}` }))),
    )
    const statuses = answers.map(({ status }) => status).sort()
    expect(statuses).toEqual([...Array<number>(10).fill(200), ...Array<number>(14).fill(400)])
    expect(answers.find(({ status }) => status === 400)!.body.detail).toContain(
      '10 ACTIVE webhooks, the most allowed',
    )

    const list = await customer.call<{ items: Webhook[] }>('GET', `${WEBHOOKS}?statuses=DISABLED`)
    const disabled = list.body.items
    expect(disabled).toHaveLength(3)
    const wake = (id: string) => customer.call('PUT', `${WEBHOOKS}/${id}`, { status: 'ACTIVE' })
    expect((await wake(disabled[0]!.id)).status).toBe(400)
    const active = await customer.call<{ items: Webhook[] }>('GET', `${WEBHOOKS}?statuses=ACTIVE`)
    await customer.call('DELETE', `${WEBHOOKS}/${active.body.items[0]!.id}`)
    const woken = await Promise.all(disabled.map(({ id }) => wake(id)))
    expect(woken.map(({ status }) => status).sort()).toEqual([200, 400, 400])
  })
})

describe('Get Webhook', () => {
  test("answers the endpoint as it was created; another customer's is a 404", async () => {
    const { webhook } = await created()
    const path = `${WEBHOOKS}/${webhook.id}`
    expect((await customer.call('GET', path)).body).toEqual(webhook)
    expect((await (await newCustomer(service)).call('GET', path)).status).toBe(404)
  })
})

describe('List Webhooks', () => {
  test('has the endpoints of the customer alone, newest first', async () => {
    const { webhook: first } = await created()
    const { webhook: second } = await created(customer, { name: 'Second' })
    await created(await newCustomer(service))
    expect((await customer.call('GET', WEBHOOKS)).body).toEqual({ items: [second, first] })
    expect((await customer.call('GET', `${WEBHOOKS}?order=ASC`)).body).toEqual({ items: [first, second] })
  })
})

describe('Update Webhook', () => {
  const put = (id: string, body: object) => customer.call<Webhook>('PUT', `${WEBHOOKS}/${id}`, body)

  test('replaces the given members, and a repeat changes nothing', async () => {
    const { webhook, secret } = await created(customer, { profile_ids: [customer.profile_id] })
    const changes = {
      name: 'Other',
      url: 'http://127.0.0.1:4000/',
      event_types: ['*'],
      payload: 'FULL',
      rate_limit: 1,
      status: 'DISABLED',
    }
    const { body: changed } = await put(webhook.id, changes)
    expect(changed).toEqual({ ...webhook, ...changes, updated_at: changed.updated_at })
    expect(changed.updated_at > webhook.updated_at).toBe(true)
    expect((await put(webhook.id, changes)).body).toEqual(changed)
    const { body: all } = await put(webhook.id, { profile_ids: [] })
    expect(all).not.toHaveProperty('profile_ids')
    expect(await secretsOf(webhook)).toEqual({ signing: secret })
  })

  test('replaces the authentication with its secret, and keeps the signing secret', async () => {
    const { webhook, secret } = await created(customer, { auth: API_KEY })
    const { client_secret, ...shown } = OAUTH
    expect((await put(webhook.id, { auth: OAUTH })).body.auth).toEqual(shown)
    expect(await secretsOf(webhook)).toEqual({ signing: secret, auth: client_secret })
    expect((await put(webhook.id, { auth: { type: 'NONE' } })).body.auth).toEqual({ type: 'NONE' })
    expect(await secretsOf(webhook)).toEqual({ signing: secret })
    expect(await put(webhook.id, { auth: { type: 'API_KEY', header: 'x-api-key' } })).toMatchObject({
      status: 400,
    })
  })

  test('one that becomes ACTIVE again begins with the events from then on, without its failures', async () => {
    const { webhook } = await created()
    await service.owner.query(
      `update webhooks set status = 'DISABLED', disabled_reason = 'it answered 410', failing_since = created_at,
                           slow_until = created_at where id = $1`,
      [webhook.id],
    )
    await fund(customer, '1')
    const { body: disabled } = await customer.call<Webhook>('GET', `${WEBHOOKS}/${webhook.id}`)
    expect(disabled).toMatchObject({ disabled_reason: 'it answered 410', failing_since: webhook.created_at })
    const { body: woken } = await put(webhook.id, { status: 'ACTIVE' })
    expect(woken).toEqual({ ...webhook, updated_at: woken.updated_at })
    const { rows } = await service.db.query(
      `select from events e join webhooks w on e.customer_id = w.customer_id and e.id > w.cursor_id where w.id = $1`,
      [webhook.id],
    )
    expect(rows).toEqual([])
  })
})

describe('Delete Webhook', () => {
  test('ends it with its secrets, frees its name, and a repeat is 404', async () => {
    const { webhook } = await created()
    const path = `${WEBHOOKS}/${webhook.id}`
    expect(await customer.call('DELETE', path)).toMatchObject({ status: 200, body: webhook })
    expect((await customer.call('DELETE', path)).status).toBe(404)
    expect((await customer.call('GET', path)).status).toBe(404)
    expect((await customer.call('GET', `${path}/deliveries`)).status).toBe(404)
    expect((await service.db.query('select from webhooks where id = $1', [webhook.id])).rows).toEqual([])
    await created()
  })
})

describe('Rotate Webhook Secret', () => {
  const rotate = (id: string, body: object = {}) =>
    customer.call<{ webhook: Webhook; secret: string }>('POST', `${WEBHOOKS}/${id}/rotate-secret`, body)

  test('answers a new secret, and the previous one signs for a day unless asked otherwise', async () => {
    const { webhook, secret } = await created(customer, { auth: API_KEY })
    const { body: first } = await rotate(webhook.id)
    expect(await secretsOf(webhook)).toEqual({ signing: first.secret, previous: secret, auth: API_KEY.key })
    const seconds =
      (Date.parse(first.webhook.previous_secret_until!) - Date.parse(first.webhook.updated_at)) / 1000
    expect(seconds).toBe(86_400)

    const { body: second } = await rotate(webhook.id, { grace_seconds: 604_800 })
    expect(await secretsOf(webhook)).toMatchObject({ signing: second.secret, previous: first.secret })

    const { body: third } = await rotate(webhook.id, { grace_seconds: 0 })
    expect(third.webhook).not.toHaveProperty('previous_secret_until')
    expect(await secretsOf(webhook)).toEqual({ signing: third.secret, auth: API_KEY.key })
    expect(new Set([secret, first.secret, second.secret, third.secret]).size).toBe(4)
  })

  test('simultaneous rotations leave one secret and its predecessor', async () => {
    const { webhook } = await created()
    const answers = await Promise.all(Array.from({ length: 5 }, () => rotate(webhook.id)))
    const made = answers.map(({ body }) => body.secret)
    const { signing, previous } = await secretsOf(webhook)
    expect(made).toContain(signing)
    expect(made).toContain(previous)
    expect(signing).not.toBe(previous)
  })

  test('after the grace, the previous secret is no longer shown as signing', async () => {
    const { webhook } = await created()
    await rotate(webhook.id, { grace_seconds: 1 })
    await service.owner.query('update webhooks set previous_secret_until = created_at where id = $1', [
      webhook.id,
    ])
    expect((await customer.call('GET', `${WEBHOOKS}/${webhook.id}`)).body).not.toHaveProperty(
      'previous_secret_until',
    )
  })
})

test('in live mode, an endpoint must be public and encrypted', async () => {
  const live = await startTestService({
    BURSAR_MODE: 'live',
    BURSAR_MASTER_KEY: '8f1c3b5d7e9a0b2c4d6f8192a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6',
  })
  try {
    const own = await newCustomer(live)
    for (const url of [
      'http://hooks.example.com/',
      'https://127.0.0.1/',
      'https://10.0.0.8/',
      'https://[::1]/',
      'https://[::ffff:169.254.169.254]/',
      'https://2130706433/',
      'https://localhost/',
    ]) {
      const answer = await own.call<{ detail: string }>('POST', WEBHOOKS, bodyOf({ url }))
      expect(answer.status, url).toBe(400)
      expect(answer.body.detail).toMatch(/^url /)
    }
    const token_url = 'https://169.254.169.254/latest'
    const answer = await own.call('POST', WEBHOOKS, bodyOf({ auth: { ...OAUTH, token_url } }))
    expect(answer).toMatchObject({ status: 400 })
    expect((await own.call('POST', WEBHOOKS, bodyOf())).status).toBe(200)
  } finally {
    await live.close()
  }
})

test('where the horizon is unknown, no endpoint begins to get events, and nothing changes', async () => {
  const { webhook } = await created(customer, { status: 'DISABLED' })
  // A session that PostgreSQL does not track may be in a transaction that writes.
  const name = new URL(service.url).pathname.slice(1)
  await asAdmin(`alter database ${name} set track_activities = off`)
  const untracked = openDatabase(service.url, { max: 1, onError: () => undefined })
  try {
    await untracked.query('select')
    const refused = (refusal: string) => ({
      status: 503,
      body: {
        title: 'Service Unavailable',
        detail: expect.stringContaining(`${refusal}: track_activities is off in PostgreSQL`) as string,
      },
    })
    const beginning = refused('no webhook can begin to get events')
    expect(await customer.call('POST', WEBHOOKS, bodyOf({ name: 'New' }))).toMatchObject(beginning)
    expect(await customer.call('PUT', `${WEBHOOKS}/${webhook.id}`, { status: 'ACTIVE' })).toMatchObject(
      beginning,
    )
    expect(await customer.call('GET', `${WEBHOOKS}?order=ASC`)).toMatchObject(
      refused('lists in ascending order are not available'),
    )
    expect((await customer.call('GET', WEBHOOKS)).body).toEqual({ items: [webhook] })
    // These need no horizon.
    expect((await customer.call('PUT', `${WEBHOOKS}/${webhook.id}`, { rate_limit: 1 })).status).toBe(200)
  } finally {
    await untracked.end()
    await asAdmin(`alter database ${name} reset track_activities`)
    // The service may have opened a connection in between.
    await asAdmin(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}' and state = 'disabled'`,
    )
  }
  const put = () => customer.call('PUT', `${WEBHOOKS}/${webhook.id}`, { status: 'ACTIVE' })
  await expect.poll(async () => (await put()).status).toBe(200)
})

test('secrets are in no answer but that of their creation, in no log line and in no table', async () => {
  const { webhook, secret } = await created(customer, { auth: API_KEY })
  const path = `${WEBHOOKS}/${webhook.id}`
  const rotated = await customer.call<{ secret: string }>('POST', `${path}/rotate-secret`, {})
  const markers = [secret.slice(6), rotated.body.secret.slice(6), 'marker-of-the-key', 'marker-of-the-client']
  const answers = [
    await customer.call('GET', path),
    await customer.call('GET', WEBHOOKS),
    await customer.call('POST', WEBHOOKS, bodyOf({ auth: API_KEY })),
    await customer.call('POST', WEBHOOKS, bodyOf({ auth: { ...API_KEY, more: 1 } })),
    await customer.call('POST', WEBHOOKS, bodyOf({ name: 'New', auth: { ...API_KEY, header: 'host' } })),
    await customer.call('PUT', path, { auth: OAUTH }),
    await customer.call('PUT', path, { auth: { ...OAUTH, header: 'x' } }),
    await customer.call('POST', `${path}/test`, { type: 'webhook.disabled' }),
    await customer.call('GET', `${path}/deliveries`),
    await customer.call('DELETE', path),
  ]
  // A row that cannot be decrypted: the failure is logged.
  const { webhook: damaged } = await created(customer, { name: 'Damaged', auth: API_KEY })
  await service.owner.query("update webhooks set encrypted_secrets = 'damaged' where id = $1", [damaged.id])
  const failed = await customer.call('POST', `${WEBHOOKS}/${damaged.id}/rotate-secret`, {})
  expect(failed.status).toBe(500)
  expect(log).toContain('the secret of webhook')
  const tables = await transaction(service.db, async (tx) =>
    JSON.stringify([
      (await tx.query('select * from webhooks')).rows,
      (await tx.query('select * from events')).rows,
      (await tx.query('select * from webhook_deliveries')).rows,
    ]),
  )
  for (const marker of markers)
    for (const text of [JSON.stringify(answers), JSON.stringify(failed), log, tables])
      expect(text).not.toContain(marker)
})
