import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SignJWT, type JWK } from 'jose'
import { describe, expect, test } from 'vitest'
import { createCustomer } from '../src/money/records/customer.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { Ledger } from '../src/money/movements/queue.ts'
import { createApiClient } from '../src/access/tokens/api-clients.ts'
import type { SigningKeySummary } from '../src/access/tokens/signing-keys.ts'
import {
  ROW_MACS,
  asAdmin,
  credit,
  DESTINATION,
  MASTER_KEY,
  MASTER_KEYS,
  remoteCaller,
  runBursar,
  signerOf,
  spawnBursar,
  withoutOperators,
  ownDatabase,
  ownBursar,
} from './support.ts'
import { atEnd, ownFolder } from './at-end.ts'

// The keys that sign access tokens: an operator rotates and retires them while two processes use them.

const folder = await ownFolder()
const database = await ownDatabase()
const { customer_id } = await createCustomer(database.db, 'Test')
const client = await createApiClient(database.db, ROW_MACS, customer_id, ['funding:read_profile'])

const settings = () => ({ DATABASE_URL: database.url, BURSAR_DATA_DIR: folder, BURSAR_MODE: 'live' })

async function bursar(args: string[], environment: Record<string, string> = {}) {
  return runBursar(args, { ...settings(), PORT: '0', BURSAR_METRICS_PORT: '0', ...environment })
}

async function json<T>(args: string[]): Promise<T> {
  const { code, stdout, stderr } = await bursar([...args, '--json'])
  expect([code, withoutOperators(stderr)]).toEqual([0, ''])
  return JSON.parse(stdout) as T
}
const listed = async () => (await json<{ keys: SigningKeySummary[] }>(['keys', 'list'])).keys

const tokenFrom = async (address: string): Promise<string> => {
  const body = new URLSearchParams({ grant_type: 'client_credentials', ...client })
  const reply = await fetch(`${address}/oauth2/token`, { method: 'POST', body })
  return ((await reply.json()) as { access_token: string }).access_token
}
const keyIdOf = (token: string) =>
  (JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString()) as { kid: string }).kid
const statusOf = async (address: string, token: string) =>
  (await fetch(`${address}/v2/profiles`, { headers: { authorization: `Bearer ${token}` } })).status

/** Longer than a process takes to read the keys again. */
const READ_AGAIN = { timeout: 25_000, interval: 250 }

test('two processes follow the creation, use and retirement of a key', async () => {
  const BURSAR_BASE_URL = 'http://bursar.test'
  const services = await Promise.all(
    [1, 2].map(() => spawnBursar({ ...settings(), BURSAR_BASE_URL, BURSAR_WORKER: 'false' })),
  )
  atEnd(async () => void (await Promise.all(services.map((service) => service.end('SIGTERM')))))
  const [one, other] = services.map(({ address }) => address) as [string, string]
  const [first] = await listed()
  const old = await tokenFrom(one)
  expect([keyIdOf(old), await statusOf(one, old), await statusOf(other, old)]).toEqual([first!.id, 200, 200])

  // Both processes publish a key before it signs.
  const later = await json<SigningKeySummary>(['keys', 'rotate'])
  expect([later.status, later.master_key_id]).toEqual(['NEXT', MASTER_KEYS.current.id])
  const [, seconds] = [
    Date.parse(later.created_at),
    Date.parse(later.signs_from) - Date.parse(later.created_at),
  ]
  expect(seconds).toBe(60_000)
  const published = async (address: string) => {
    const jwks = (await (await fetch(`${address}/oauth2/jwks`)).json()) as { keys: JWK[] }
    expect(jwks.keys.every((key) => Object.keys(key).sort().join() === 'alg,e,kid,kty,n,use')).toBe(true)
    return jwks.keys.map(({ kid }) => kid)
  }
  for (const address of [one, other])
    await expect.poll(() => published(address), READ_AGAIN).toEqual([later.id, first!.id])
  expect(keyIdOf(await tokenFrom(one))).toBe(first!.id)
  const refused = await bursar(['keys', 'retire', first!.id])
  expect([refused.code, refused.stderr]).toEqual([
    1,
    expect.stringMatching(/is the only one that signs; its successor .* or bursar keys rotate --now\n$/),
  ])

  // A process reads a key that signs at once when it meets a token of this key, but not twice in a second.
  const now = await json<SigningKeySummary>(['keys', 'rotate', '--now'])
  expect(now.status).toBe('SIGNS')
  const { id: kid, privateKey } = await signerOf(database.db)
  expect(kid).toBe(now.id)
  const claims = JSON.parse(Buffer.from(old.split('.')[1]!, 'base64url').toString()) as Record<
    string,
    unknown
  >
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid })
    .sign(privateKey)
  for (const address of [one, other])
    await expect.poll(() => statusOf(address, token), { timeout: 5_000 }).toBe(200)
  await expect.poll(async () => keyIdOf(await tokenFrom(other)), READ_AGAIN).toBe(now.id)
  expect([await statusOf(one, old), await statusOf(other, old)]).toEqual([200, 200])

  // Both processes refuse the tokens of a retired key, although both have verified such a token before.
  expect(await json(['keys', 'retire', first!.id])).toEqual({ id: first!.id, retired: true })
  for (const address of [one, other]) await expect.poll(() => statusOf(address, old), READ_AGAIN).toBe(401)
  expect([await statusOf(one, token), await statusOf(other, token)]).toEqual([200, 200])
  expect((await listed()).map(({ id, status }) => [id, status])).toEqual([
    [later.id, 'NEXT'],
    [now.id, 'SIGNS'],
    [first!.id, 'RETIRED'],
  ])
  const { rows } = await database.db.query('select encrypted_jwk from signing_keys where id = $1', [
    first!.id,
  ])
  expect(rows).toEqual([{ encrypted_jwk: null }])
  expect(await json(['keys', 'retire', first!.id])).toEqual({ id: first!.id, retired: false })

  // A key that somebody else inserted is ignored, and does not stop an operator from retiring keys.
  await database.db.query(
    `insert into signing_keys (id, encrypted_jwk, created_at, signs_from)
     values ('forged', 'eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIiwia2lkIjoiMDAwMDAwMDAifQ....', now(), now())`,
  )
  await json(['keys', 'retire', later.id])
  for (const address of [one, other])
    await expect.poll(() => published(address), READ_AGAIN).toEqual([now.id])
  await database.owner.query(`delete from signing_keys where id = 'forged'`)
})

describe('the database', () => {
  test('holds no key that can be decrypted without the master key', async () => {
    const { db } = await ownDatabase()
    await signerOf(db)
    const { rows } = await db.query<{ row: string }>('select k::text as row from signing_keys k')
    expect(rows).toHaveLength(1)
    for (const name of ['"d"', '"p"', '"n"', 'RSA']) expect(rows[0]!.row).not.toContain(name)
  })

  test('refuses a start with another master key and names the needed key', async () => {
    await signerOf(database.db)
    const other = randomBytes(32).toString('hex')
    for (const command of [['serve'], ['keys', 'rotate']]) {
      const { code, stderr } = await bursar(command, { BURSAR_MASTER_KEY: other })
      expect(code).toBe(1)
      expect(stderr).toMatch(
        new RegExp(
          `BURSAR_MASTER_KEY_FILE: signing key \\S+ is encrypted with master key ${MASTER_KEYS.current.id}, which is not configured`,
        ),
      )
    }
  })

  test('refuses a start in live mode without a master key and explains how to create one', async () => {
    const { code, stderr } = await bursar(['serve'], { BURSAR_MASTER_KEY: '' })
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/BURSAR_MASTER_KEY_FILE: live mode needs .*openssl/),
    ])
  })

  test('is encrypted with a new master key at the next start; the old key is no longer needed', async () => {
    const { url, db } = await ownDatabase()
    const before = await signerOf(db)
    const renewed = randomBytes(32).toString('hex')
    const file = join(folder, 'renewed')
    await writeFile(file, `${renewed}\n${MASTER_KEY}\n`, { mode: 0o600 })
    const environment = { DATABASE_URL: url, BURSAR_MASTER_KEY: '', BURSAR_MASTER_KEY_FILE: file }
    for (const content of [`${renewed}\n${MASTER_KEY}\n`, renewed]) {
      await writeFile(file, content)
      const service = await spawnBursar({ ...settings(), ...environment, BURSAR_WORKER: 'false' })
      await service.end('SIGTERM')
    }
    const { rows } = await db.query<{ id: string }>('select id from signing_keys')
    expect(rows).toEqual([{ id: before.id }])
    await expect(signerOf(db)).rejects.toThrow('which is not configured')
  })
})

test('after the loss of a master key, what it sealed gets new MACs, and is paid again', async () => {
  const { url, db, owner, ownerUrl } = await ownDatabase()
  const { customer_id, profile_id } = await createCustomer(db, 'Test')
  await createApiClient(db, ROW_MACS, customer_id, SCOPES)
  await credit(new Ledger(db), { customer_id, profile_id }, 'USD', '10')
  const renewed = { DATABASE_URL: url, BURSAR_MASTER_KEY: randomBytes(32).toString('hex') }
  const refused = async () => (await bursar(['verify'], renewed)).code
  expect(await refused()).toBe(1)
  const asOwner = { ...renewed, BURSAR_MIGRATIONS_DATABASE_URL: ownerUrl }
  expect((await bursar(['keys', 'seal'], renewed)).stderr).toContain('BURSAR_MIGRATIONS_DATABASE_URL')
  // What was changed in the database stays refused.
  const setTo = (available: string) =>
    owner.query('update balances set available = $2 where customer_id = $1', [customer_id, available])
  await setTo('1000')
  const changed = await bursar(['keys', 'seal'], asOwner)
  expect([changed.code, changed.stderr]).toEqual([1, expect.stringContaining('disagreements')])
  await setTo('10')
  expect(await refused()).toBe(1)
  expect(await bursar(['keys', 'seal'], asOwner)).toMatchObject({ code: 0 })
  expect(await bursar(['verify'], renewed)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('Clean') as string,
  })
})

test('a running service signs accepted withdrawals, and none that an attacker inserts', async () => {
  const { url, db } = await ownDatabase()
  const owner = await createCustomer(db, 'Test')
  const { customer_id, profile_id } = owner
  await credit(new Ledger(db), owner, 'USDP', '100')
  const environment = { DATABASE_URL: url, BURSAR_DATA_DIR: await mkdtemp(join(folder, 'running-')) }
  const service = await ownBursar({ ...environment, BURSAR_SIMULATED_CONFIRMATION_MS: '0' })
  const call = await remoteCaller(service.address, await createApiClient(db, ROW_MACS, customer_id, SCOPES))
  const withdrawal = { profile_id, asset: 'USDP', crypto_network: 'ETHEREUM', amount: '10' }
  const made = await call<{ id: string }>('POST', '/v2/transfer/crypto-withdrawals', {
    ...withdrawal,
    destination_address: DESTINATION,
  })
  const invented = randomUUID()
  await asAdmin(
    `insert into transfers (customer_id, id, profile_id, type, direction, status, asset, amount, fee, total, created_at,
                            updated_at, destination_address, crypto_network)
     values ('${customer_id}', '${invented}', '${profile_id}', 'CRYPTO_WITHDRAWAL', 'DEBIT', 'PENDING', 'USDP', 50, 0, 50,
             now(), now(), '${DESTINATION}', 'ETHEREUM')`,
    url,
  )
  const statusOf = async (id: string) =>
    (await call<{ status: string }>('GET', `/v2/transfer/transfers/${id}`)).body.status
  await expect.poll(() => statusOf(made.body.id), READ_AGAIN).toBe('COMPLETED')
  const told = () =>
    service
      .log()
      .split('\n')
      .filter((line) => line.includes('not what was accepted'))
  await expect.poll(() => told().length, READ_AGAIN).toBe(1)
  expect(JSON.parse(told()[0]!)).toMatchObject({ level: 50, customer_id, transfer_id: invented })
  expect(await statusOf(invented)).toBe('PENDING')
  const { code, stdout } = await bursar(['verify'], { ...environment, BURSAR_MODE: 'sandbox' })
  expect([code, stdout]).toEqual([
    1,
    expect.stringContaining(`not every withdrawal matches its MAC: transfer ${invented}: it has no MAC`),
  ])
})

test('a sandbox keeps its own master key in the data folder and reuses it', async () => {
  const { url } = await ownDatabase()
  const own = await mkdtemp(join(folder, 'sandbox-'))
  const environment = {
    DATABASE_URL: url,
    BURSAR_DATA_DIR: own,
    BURSAR_MASTER_KEY: '',
    BURSAR_WORKER: 'false',
  }
  const service = await spawnBursar(environment)
  await service.end('SIGTERM')
  const file = join(own, 'master-key')
  const content = await readFile(file, 'utf8')
  expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(service.log()).not.toContain(content.trim())
  const { code, stderr } = await bursar(['keys', 'rotate'], { ...environment, BURSAR_MODE: 'sandbox' })
  expect([code, withoutOperators(stderr)]).toEqual([0, ''])
  expect(await readFile(file, 'utf8')).toBe(content)
})
