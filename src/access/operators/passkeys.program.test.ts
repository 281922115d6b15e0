/*
 * Passkeys (docs/reference/operators.md), made and used by a real browser with a virtual authenticator. An answer is worth
 * nothing a second time, from another page, for another purpose or with another passkey's signature.
 */
import { chromium, type Browser, type CDPSession, type Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CHROMIUM, CHROMIUM_ARGS, HAS_CHROMIUM, newAuthenticator } from '../../../test/browser.ts'
import { freePort } from '../../../test/free-port.ts'
import {
  ROW_MACS,
  TEST_ORIGIN,
  caller,
  newCustomer,
  startTestService,
  type TestService,
} from '../../../test/support.ts'
import { transaction } from '../../db/database.ts'
import { createOperator, disableOperator, enableOperator, makeLink } from './operators.ts'
import { removePasskey } from './passkeys.ts'

interface Credential {
  id: string
  response: { clientDataJSON: string; signature: string; userHandle?: string }
}
interface Opened {
  operator: { id: string }
  session: { method: string }
  session_secret: string
}

let service: TestService
let customerId: string
let origin: string
let post: <T = Record<string, unknown>>(path: string, body: object) => Promise<{ status: number; body: T }>

async function serviceAt(baseUrl: string): Promise<TestService> {
  const started = await startTestService({}, { baseUrl })
  post = async <T>(path: string, body: object) => {
    const reply = await started.app.inject({ method: 'POST', url: `/v2/operators${path}`, payload: body })
    return { status: reply.statusCode, body: reply.json<T>() }
  }
  return started
}

test('an address without a name has no passkeys', async () => {
  const bare = await serviceAt('http://127.0.0.1:8080')
  const { status, body } = await post('/sign-in/passkey/options', {})
  await bare.close()
  expect({ status, detail: body.detail }).toEqual({
    status: 400,
    detail:
      'passkeys need a host name: BURSAR_BASE_URL names the address 127.0.0.1; at this machine, http://localhost:<port> will do',
  })
})

describe.skipIf(!HAS_CHROMIUM)("in a browser, which needs Debian's chromium", () => {
  let browser: Browser
  let page: Page
  let devices: CDPSession
  let authenticatorId: string

  beforeAll(async () => {
    origin = `http://localhost:${await freePort()}`
    service = await serviceAt(origin)
    customerId = (await newCustomer(service)).customer_id
    browser = await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_ARGS, chromiumSandbox: false })
    page = await browser.newPage()
    await page.route('**/*', (route) =>
      route.fulfill({ contentType: 'text/html', body: '<title>sign-in</title>' }),
    )
    await page.goto(origin)
    devices = await page.context().newCDPSession(page)
    await devices.send('WebAuthn.enable')
    authenticatorId = await newAuthenticator(devices)
  })
  afterAll(async () => {
    await browser.close()
    await service.close()
  })

  const clear = () => devices.send('WebAuthn.clearCredentials', { authenticatorId })

  /** What the page of a console does with options. */
  const create = (options: object) =>
    page.evaluate(async (json) => {
      const { PublicKeyCredential: Web, navigator: at } = globalThis as never as {
        PublicKeyCredential: { parseCreationOptionsFromJSON: (json: object) => object }
        navigator: { credentials: { create: (options: object) => Promise<{ toJSON: () => object }> } }
      }
      const publicKey = Web.parseCreationOptionsFromJSON(json)
      return (await at.credentials.create({ publicKey })).toJSON() as never
    }, options) as Promise<Credential>
  const get = (options: object) =>
    page.evaluate(async (json) => {
      const { PublicKeyCredential: Web, navigator: at } = globalThis as never as {
        PublicKeyCredential: { parseRequestOptionsFromJSON: (json: object) => object }
        navigator: { credentials: { get: (options: object) => Promise<{ toJSON: () => object }> } }
      }
      const publicKey = Web.parseRequestOptionsFromJSON(json)
      return (await at.credentials.get({ publicKey })).toJSON() as never
    }, options) as Promise<Credential>

  async function signedIn() {
    const operator = await createOperator(service.db, ROW_MACS, { name: 'Ada', role: 'ADMIN', customerId })
    const { secret } = await transaction(service.db, (tx) => makeLink(tx, ROW_MACS, operator.id))
    const { body } = await post<Opened>('/sign-in/link', { link: secret })
    return { operator, session_secret: body.session_secret }
  }

  const optionsFor = async (session_secret: string) =>
    (await post('/passkeys/options', { session_secret })).body

  /** An operator with a passkey, the only one in the authenticator. */
  async function withPasskey() {
    await clear()
    const { operator, session_secret } = await signedIn()
    const response = await create(await optionsFor(session_secret))
    const added = await post<{ passkey: { id: string } }>('/passkeys', {
      session_secret,
      name: 'Laptop',
      response,
    })
    expect(added).toMatchObject({
      status: 200,
      body: { passkey: { name: 'Laptop', operator_id: operator.id } },
    })
    return { operator, session_secret, response, passkeyId: added.body.passkey.id }
  }

  const answer = async () => get((await post('/sign-in/passkey/options', {})).body)
  const signInWith = (response: Credential) => post<Opened>('/sign-in/passkey', { response })

  test('an operator adds a passkey and signs in with it, as often as it likes', async () => {
    const { operator } = await withPasskey()
    for (let time = 0; time < 2; time++) {
      const { status, body } = await signInWith(await answer())
      expect(status).toBe(200)
      expect(body).toMatchObject({ operator: { id: operator.id }, session: { method: 'PASSKEY' } })
      const { session_secret } = body
      expect((await post('/access-tokens', { session_secret })).status).toBe(200)
    }
  })

  test('an answer is used once, also in parallel', async () => {
    const { operator } = await withPasskey()
    const response = await answer()
    const answers = await Promise.all(Array.from({ length: 5 }, () => signInWith(response)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401, 401, 401])
    const { rows } = await service.db.query<{ outcome: string }>(
      `select outcome from audit_log where customer_id = $1 and actor_id = $2 and action = 'operator.sign_in'`,
      [customerId, operator.id],
    )
    // The first is the sign-in with the link.
    expect(rows.map(({ outcome }) => outcome).sort()).toEqual([
      ...['DONE', 'DONE'],
      ...['REFUSED', 'REFUSED', 'REFUSED', 'REFUSED'],
    ])
  })

  test('answers made on another page, or for another purpose, open nothing', async () => {
    const { session_secret, response: adding } = await withPasskey()
    await page.goto(`http://localhost:${await freePort()}/`)
    const elsewhere = await answer()
    await page.goto(origin)
    expect((await signInWith(elsewhere)).status).toBe(401)

    const forAdding = await optionsFor(session_secret)
    const wrongPurpose = await get({
      ...(await post('/sign-in/passkey/options', {})).body,
      challenge: forAdding.challenge,
    })
    expect((await signInWith(wrongPurpose)).status).toBe(401)
    const ownChallenge = await get({
      challenge: 'AAAAAAAAAAAAAAAAAAAAAA',
      rpId: 'localhost',
      userVerification: 'required',
    })
    expect((await signInWith(ownChallenge)).status).toBe(401)

    // The challenge of one session adds no passkey in another, nor twice.
    expect((await post('/passkeys', { session_secret, name: 'again', response: adding })).status).toBe(400)
    await clear()
    const other = await signedIn()
    const response = await create(await optionsFor(session_secret))
    expect(
      (await post('/passkeys', { session_secret: other.session_secret, name: 'x', response })).status,
    ).toBe(400)
  })

  test('an edited answer, or one without verification of the person, opens nothing', async () => {
    await withPasskey()
    const good = await answer()
    const with_ = (change: object): Credential => ({ ...good, response: { ...good.response, ...change } })
    const other = Buffer.from(crypto.randomUUID()).toString('base64url')
    const flipped = Buffer.from(good.response.signature, 'base64url')
    flipped[flipped.length - 1]! ^= 1
    for (const response of [
      with_({ signature: flipped.toString('base64url') }),
      with_({ userHandle: other }),
      with_({ clientDataJSON: 'bm90IEpTT04' }),
      with_({ authenticatorData: undefined }),
      { ...good, id: other },
    ])
      expect((await signInWith(response)).status).toBe(401)
    expect((await signInWith(good)).status).toBe(200)

    await devices.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
    const unverified = await get({
      ...(await post('/sign-in/passkey/options', {})).body,
      userVerification: 'discouraged',
    })
    await devices.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true })
    expect((await signInWith(unverified)).status).toBe(401)
  })

  test('a copied passkey is seen by its counter', async () => {
    const { passkeyId } = await withPasskey()
    await service.owner.query('update operator_passkeys set signatures = 1000 where id = $1', [passkeyId])
    expect((await signInWith(await answer())).status).toBe(401)
  })

  test('a removed passkey opens nothing, and its sessions end within a second', async () => {
    const { operator, passkeyId } = await withPasskey()
    const { body } = await signInWith(await answer())
    const { access_token } = (
      await post<{ access_token: string }>('/access-tokens', { session_secret: body.session_secret })
    ).body
    const call = caller(service.app, access_token)
    expect((await call('GET', '/v2/profiles')).status).toBe(200)
    const response = await answer()
    expect(await transaction(service.db, (tx) => removePasskey(tx, operator, passkeyId, TEST_ORIGIN))).toBe(
      true,
    )
    const soon = { timeout: 5_000, interval: 50 }
    await expect.poll(async () => (await call('GET', '/v2/profiles')).status, soon).toBe(401)
    expect((await signInWith(response)).status).toBe(401)
    expect((await post('/access-tokens', { session_secret: body.session_secret })).status).toBe(401)
  })

  test('a disabled operator does not sign in with its passkey; its passkeys stay', async () => {
    const { operator } = await withPasskey()
    await transaction(service.db, (tx) => disableOperator(tx, operator, TEST_ORIGIN))
    expect((await signInWith(await answer())).status).toBe(401)
    await transaction(service.db, (tx) => enableOperator(tx, ROW_MACS, operator))
    expect((await signInWith(await answer())).status).toBe(200)
  })

  test('passkeys are added only with an open session, and are limited', async () => {
    expect((await post('/passkeys/options', { session_secret: 'bursar_session_guess' })).status).toBe(401)
    const { operator, session_secret } = await withPasskey()
    await service.owner.query(
      `insert into operator_passkeys (id, operator_id, created_at, name, credential_id, public_key, signatures, transports)
       select gen_random_uuid(), $1, clock_timestamp(), 'more', gen_random_uuid(), '', 0, '{}'
       from generate_series(1, 9)`,
      [operator.id],
    )
    await clear()
    const response = await create(await optionsFor(session_secret))
    expect(await post('/passkeys', { session_secret, name: 'eleventh', response })).toMatchObject({
      status: 400,
      body: { detail: 'an operator has at most 10 passkeys; remove one first' },
    })
  })
})
