import { describe, expect, test } from 'vitest'
import { ROW_MACS, newCustomer, sharedTestService } from '../../../test/support.ts'
import type { ClientScope } from '../../contract/scopes.ts'
import { createApiClient, type ClientCredentials } from '../../access/tokens/api-clients.ts'
import { rotateCredentials } from './rotate-credentials.ts'
import { refusedWith } from '../../../test/matchers.ts'

const CREDENTIALS = '/v2/api-creds/credentials'

const service = await sharedTestService()
const customer = await newCustomer(service)

const newClient = (scopes: ClientScope[] = ['funding:read_profile']) =>
  createApiClient(service.db, ROW_MACS, customer.customer_id, scopes)

async function signIn({ client_id, client_secret }: ClientCredentials) {
  const form = new URLSearchParams({ grant_type: 'client_credentials', client_id, client_secret })
  const answer = await service.app.inject({
    method: 'POST',
    url: '/oauth2/token',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: form.toString(),
  })
  return { status: answer.statusCode, token: answer.json<{ access_token: string }>().access_token }
}
const status = async (client: ClientCredentials) => (await signIn(client)).status

type Rotated = ClientCredentials & { credentials: Record<string, unknown> }
async function rotate({ client_id }: ClientCredentials, body: object = {}): Promise<Rotated> {
  const answer = await customer.call<Rotated>('POST', `${CREDENTIALS}/${client_id}/rotate`, body)
  expect(answer.status).toBe(200)
  return answer.body
}
const callAs = async (token: string, method: 'GET' | 'POST' | 'DELETE', url: string, payload?: object) => {
  const headers = { authorization: `Bearer ${token}` }
  const answer = await service.app.inject({ method, url, headers, ...(payload && { payload }) })
  return { status: answer.statusCode, body: answer.json<Record<string, unknown>>() }
}

describe('List API Credentials', () => {
  test('has the clients of the customer alone, newest first, without secrets', async () => {
    const by = await newCustomer(service)
    const { client_id, client_secret } = await createApiClient(service.db, ROW_MACS, by.customer_id, [
      'funding:read_profile',
    ])
    const { body } = await by.call('GET', CREDENTIALS)
    expect(body.items).toMatchObject([
      { client_id, status: 'APPROVED', client_scopes: ['funding:read_profile'] },
      { client_id: by.client_id },
    ])
    expect(JSON.stringify(body)).not.toContain(client_secret)
    const { body: one } = await by.call('GET', `${CREDENTIALS}?client_ids=${client_id}`)
    expect(one.items).toMatchObject([{ client_id }])
  })
})

describe('Rotate API Credentials', () => {
  test('gives a new secret, which no other answer shows; both secrets are accepted for a day', async () => {
    const client = await newClient()
    const rotated = await rotate(client)
    expect(rotated.client_secret).not.toBe(client.client_secret)
    expect([await status(client), await status(rotated)]).toEqual([200, 200])
    const list = await customer.call('GET', CREDENTIALS)
    expect(JSON.stringify(list.body)).not.toContain(rotated.client_secret)
    const { created_at, updated_at, previous_secret_expires_at } = rotated.credentials as Record<
      string,
      string
    >
    expect(Date.parse(previous_secret_expires_at!) - Date.parse(updated_at!)).toBe(24 * 60 * 60 * 1000)
    expect(updated_at! > created_at!).toBe(true)
  })

  test('without grace ends the previous secret at once', async () => {
    const client = await newClient()
    const rotated = await rotate(client, { grace_seconds: 0 })
    expect([await status(client), await status(rotated)]).toEqual([401, 200])
  })

  test('ends the previous secret when the grace period is over', async () => {
    const client = await newClient()
    await rotate(client, { grace_seconds: 60 })
    expect(await status(client)).toBe(200)
    await service.db.query(
      "update api_clients set previous_secret_expires_at = (select clock_timestamp() - interval '1 second') where id = $1",
      [client.client_id],
    )
    expect(await status(client)).toBe(401)
  })

  test('of a rotated client ends the first secret: at most two secrets are accepted', async () => {
    const first = await newClient()
    const second = await rotate(first)
    const third = await rotate(first)
    expect([await status(first), await status(second), await status(third)]).toEqual([401, 200, 200])
  })

  test('repeated ten times at once leaves two accepted secrets', async () => {
    const client = await newClient()
    const all = await Promise.all(Array.from({ length: 10 }, () => rotate(client)))
    const good = await Promise.all([client, ...all].map(status))
    expect(good.filter((one) => one === 200)).toHaveLength(2)
  })

  test('does not give away scopes that the token lacks', async () => {
    const strong = await newClient(['funding:read_profile', 'transfer:write_crypto_withdrawal'])
    const weak = await newClient(['funding:read_profile', 'api_creds:rotate_credentials'])
    const { token } = await signIn(weak)
    const refused = await callAs(token, 'POST', `${CREDENTIALS}/${strong.client_id}/rotate`, {})
    expect(refused).toMatchObject(refusedWith(403, 'transfer:write_crypto_withdrawal'))
    expect(await status(strong)).toBe(200)
    const itself = await callAs(token, 'POST', `${CREDENTIALS}/${weak.client_id}/rotate`, {})
    expect(itself.status).toBe(200)
  })

  test('is refused with an external issuer', async () => {
    const client = await newClient()
    const request = {
      params: { client_id: client.client_id },
      query: {},
      body: {},
      customerId: customer.customer_id,
      scopes: ['funding:read_profile'],
      settings: { oauthIssuer: 'https://issuer.example' },
      db: service.db,
    }
    expect(() => rotateCredentials.run(request as never)).toThrow('rotate the secret there')
    expect(await status(client)).toBe(200)
  })
})

describe('Delete API Credentials', () => {
  test('refuses the secret and the tokens, lists the client as DELETED, and can be repeated', async () => {
    const client = await newClient()
    await rotate(client)
    const { token } = await signIn(client)
    const path = `${CREDENTIALS}/${client.client_id}`
    const { status: answered, body: deleted } = await customer.call('DELETE', path)
    expect(answered).toBe(200)
    expect(deleted).toMatchObject({ credentials: { status: 'DELETED' } })
    expect((await customer.call('DELETE', path)).body).toEqual(deleted)
    expect(await status(client)).toBe(401)
    await expect
      .poll(async () => (await callAs(token, 'GET', '/v2/profiles')).status, { timeout: 5_000 })
      .toBe(401)
    const ids = async (query: string) => {
      const { body } = await customer.call<{ items: { id: string }[] }>('GET', `${CREDENTIALS}${query}`)
      return body.items.map(({ id }) => id)
    }
    expect(await ids('')).not.toContain(client.client_id)
    expect(await ids('?statuses=DELETED')).toContain(client.client_id)
    const again = await customer.call('POST', `${path}/rotate`, {})
    expect(again.status).toBe(404)
  })

  test('its own credentials is allowed for a client', async () => {
    const client = await newClient(['api_creds:delete_credentials'])
    const { token } = await signIn(client)
    const deleted = await callAs(token, 'DELETE', `${CREDENTIALS}/${client.client_id}`)
    expect(deleted.status).toBe(200)
    expect(await status(client)).toBe(401)
  })
})
