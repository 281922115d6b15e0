import { randomBytes } from 'node:crypto'
import { NIL_UUID } from '../../contract/fields.ts'
import type { Database } from '../../db/database.ts'
import { decryptRecord, encryptRecord, prefixOfCurrent } from '../../keys/encrypted-record.ts'
import type { MasterKeys } from '../../keys/master-keys.ts'

/** The secrets of an endpoint. Responses hold them only when they are made, and logs never. */
export interface SecretsOfWebhook {
  /** Signs deliveries: `whsec_` and the base64 of 32 random bytes (Standard Webhooks). */
  signing: string
  /** Signs, too, until `previous_secret_until`. */
  previous?: string
  /** The API key, or the OAuth 2 client's secret. */
  auth?: string
}

/** The endpoint that the secrets belong to: secrets moved to another row are detected. */
interface SecretOwner {
  customer_id: string
  id: string
}

export const newSigningSecret = (): string => `whsec_${randomBytes(32).toString('base64')}`

/** Encrypts and decrypts `webhooks.encrypted_secrets`, with a key derived from the master key. */
export class WebhookSecrets {
  #masterKeys: MasterKeys

  constructor(masterKeys: MasterKeys) {
    this.#masterKeys = masterKeys
  }

  seal({ customer_id, id }: SecretOwner, secrets: SecretsOfWebhook): Promise<string> {
    return encryptRecord(this.#masterKeys, 'webhooks', { ...secrets, customer_id, id })
  }

  /**
   * Throws when the master key is not configured, when the record is damaged or was changed, and when it belongs to
   * another endpoint. No message holds a secret.
   */
  async open({ customer_id, id }: SecretOwner, encrypted: string): Promise<SecretsOfWebhook> {
    const what = `the secret of webhook ${id}`
    const { signing, previous, auth, ...owner } = (await decryptRecord(
      this.#masterKeys,
      'webhooks',
      encrypted,
      what,
    )) as SecretsOfWebhook & SecretOwner
    if (owner.customer_id !== customer_id || owner.id !== id)
      throw new Error(`${what} belongs to another webhook, ${owner.id}`)
    return { signing, ...(previous !== undefined && { previous }), ...(auth !== undefined && { auth }) }
  }
}

const REENCRYPTED_AT_ONCE = 500

/**
 * Encrypts the secrets of endpoints with the current master key if an older one encrypted them. A record that cannot be
 * decrypted is reported and left as it is: an endpoint must not keep the service from starting. Returns their number.
 */
export async function reencryptWebhookSecrets(
  db: Database,
  masterKeys: MasterKeys,
  onFailure: (error: unknown) => void,
): Promise<number> {
  const secrets = new WebhookSecrets(masterKeys)
  let reencrypted = 0
  let after: SecretOwner = { customer_id: NIL_UUID, id: NIL_UUID }
  let rows: (SecretOwner & { encrypted_secrets: string })[]
  do {
    ;({ rows } = await db.query<SecretOwner & { encrypted_secrets: string }>(
      `
      select customer_id, id, encrypted_secrets
      from webhooks
      where (customer_id, id) > ($1, $2) and not starts_with(encrypted_secrets, $3)
      order by customer_id, id
      limit $4`,
      [after.customer_id, after.id, prefixOfCurrent(masterKeys), REENCRYPTED_AT_ONCE],
    ))
    for (const row of rows) {
      try {
        const sealed = await secrets.seal(row, await secrets.open(row, row.encrypted_secrets))
        // Compared: a rotation may have written new secrets meanwhile.
        const { rowCount } = await db.query(
          'update webhooks set encrypted_secrets = $4 where customer_id = $1 and id = $2 and encrypted_secrets = $3',
          [row.customer_id, row.id, row.encrypted_secrets, sealed],
        )
        reencrypted += rowCount!
      } catch (error) {
        onFailure(error)
      }
    }
    after = rows.at(-1) ?? after
  } while (rows.length === REENCRYPTED_AT_ONCE)
  return reencrypted
}
