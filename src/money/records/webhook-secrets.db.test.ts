import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { cloneDatabase, type TestDatabase } from '../../../test/support.ts'
import { masterKeysOf } from '../../keys/master-keys.ts'
import { newSigningSecret, reencryptWebhookSecrets, WebhookSecrets } from './webhook-secrets.ts'

const newKey = () => randomBytes(32).toString('hex')
const keysOf = (...lines: string[]) => masterKeysOf(lines, 'BURSAR_MASTER_KEY')
const ownerOf = () => ({ customer_id: randomUUID(), id: randomUUID() })

let database: TestDatabase
beforeAll(async () => void (database = await cloneDatabase()))
afterAll(() => database.drop())

test('secrets are read as they were written, and nothing of them is in the record', async () => {
  const secrets = new WebhookSecrets(keysOf(newKey()))
  const owner = ownerOf()
  const signing = newSigningSecret()
  const all = { signing, previous: newSigningSecret(), auth: 'top-secret' }
  const sealed = await secrets.seal(owner, all)
  expect(await secrets.open(owner, sealed)).toEqual(all)
  expect(await secrets.open(owner, await secrets.seal(owner, { signing }))).toEqual({ signing })
  for (const text of [sealed, Buffer.from(sealed, 'base64').toString()]) {
    expect(text).not.toContain('top-secret')
    expect(text).not.toContain(signing.slice(6))
  }
})

test('a signing secret is that of Standard Webhooks, with 32 random bytes', () => {
  const [one, other] = [newSigningSecret(), newSigningSecret()]
  expect(one).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  expect(Buffer.from(one.slice(6), 'base64')).toHaveLength(32)
  expect(one).not.toBe(other)
})

test('secrets of another endpoint, or of another customer, are not read', async () => {
  const secrets = new WebhookSecrets(keysOf(newKey()))
  const owner = ownerOf()
  const sealed = await secrets.seal(owner, { signing: newSigningSecret() })
  for (const other of [
    { ...owner, id: randomUUID() },
    { ...owner, customer_id: randomUUID() },
  ])
    await expect(secrets.open(other, sealed)).rejects.toThrow('belongs to another webhook')
})

test('a changed record and an unknown master key are refused, without a secret in the message', async () => {
  const owner = ownerOf()
  const keys = keysOf(newKey())
  const sealed = await new WebhookSecrets(keys).seal(owner, { signing: newSigningSecret() })
  const changed = sealed.slice(0, -6) + (sealed.endsWith('AAAAAA') ? 'BBBBBB' : 'AAAAAA')
  await expect(new WebhookSecrets(keys).open(owner, changed)).rejects.toThrow(
    `the secret of webhook ${owner.id} cannot be decrypted: its record is damaged or was changed`,
  )
  const others = keysOf(newKey())
  await expect(new WebhookSecrets(others).open(owner, sealed)).rejects.toThrow(
    `the secret of webhook ${owner.id} is encrypted with master key ${keys.current.id}, which is not configured`,
  )
})

/** Writes an endpoint with these encrypted secrets. */
const insertWebhook = ({ customer_id, id }: { customer_id: string; id: string }, sealed: string) =>
  database.owner.query(
    `insert into webhooks (customer_id, id, created_at, updated_at, name, url, event_types, payload, auth, rate_limit, status,
                           encrypted_secrets, cursor_id, next_at)
     select $1, $2, now, now, ($2::uuid)::text, 'https://hooks.example.com/', '{*}', 'THIN', '{"type": "NONE"}', 10, 'ACTIVE',
            $3, $2, now
     from clock_timestamp() now`,
    [customer_id, id, sealed],
  )

const sealedOf = async ({ id }: { id: string }) =>
  (
    await database.db.query<{ encrypted_secrets: string }>(
      'select encrypted_secrets from webhooks where id = $1',
      [id],
    )
  ).rows[0]!.encrypted_secrets

test('after a change of the master key, the start encrypts every record with the new one, once', async () => {
  const [older, newer] = [newKey(), newKey()]
  const owners = [ownerOf(), ownerOf(), ownerOf()]
  const before = new WebhookSecrets(keysOf(older))
  const signing = newSigningSecret()
  for (const owner of owners) await insertWebhook(owner, await before.seal(owner, { signing }))
  const damaged = ownerOf()
  await insertWebhook(damaged, 'not a JWE')

  const failures: unknown[] = []
  const reencrypt = () =>
    reencryptWebhookSecrets(database.db, keysOf(newer, older), (error) => void failures.push(error))
  expect(await reencrypt()).toBe(3)
  const after = new WebhookSecrets(keysOf(newer))
  for (const owner of owners) expect(await after.open(owner, await sealedOf(owner))).toEqual({ signing })
  expect(await sealedOf(damaged)).toBe('not a JWE')
  expect(failures).toHaveLength(1)

  const written = await sealedOf(owners[0]!)
  expect(await reencrypt()).toBe(0)
  expect(await sealedOf(owners[0]!)).toBe(written)
})
