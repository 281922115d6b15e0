import { randomBytes, randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { masterKeysOf } from '../../keys/master-keys.ts'
import { newSigningSecret, WebhookSecrets } from './webhook-secrets.ts'

const newKey = () => randomBytes(32).toString('hex')
const keysOf = (...lines: string[]) => masterKeysOf(lines, 'BURSAR_MASTER_KEY')
const ownerOf = () => ({ customer_id: randomUUID(), id: randomUUID() })

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
