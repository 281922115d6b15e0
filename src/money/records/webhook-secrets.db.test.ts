import { randomBytes, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { ownDatabase } from '../../../test/support.ts'
import { masterKeysOf } from '../../keys/master-keys.ts'
import { newSigningSecret, reencryptWebhookSecrets, WebhookSecrets } from './webhook-secrets.ts'

const newKey = () => randomBytes(32).toString('hex')
const keysOf = (...lines: string[]) => masterKeysOf(lines, 'BURSAR_MASTER_KEY')
const ownerOf = () => ({ customer_id: randomUUID(), id: randomUUID() })

const database = await ownDatabase()

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
