import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose'
import type { MasterKeys, Purpose } from './master-keys.ts'

/** Secrets in the database: a JWE (RFC 7516) with a key derived from a master key. Its header names the master key. */

const header = ({ current }: MasterKeys) => ({ alg: 'dir', enc: 'A256GCM', kid: current.id }) as const

/** Encrypts a record with the current master key's key for this purpose. */
export function encryptRecord(masterKeys: MasterKeys, purpose: Purpose, record: object): Promise<string> {
  return new CompactEncrypt(Buffer.from(JSON.stringify(record)))
    .setProtectedHeader(header(masterKeys))
    .encrypt(masterKeys.current.derive(purpose))
}

/** The beginning of every record that the current master key encrypts. */
export const prefixOfCurrent = (masterKeys: MasterKeys): string =>
  `${Buffer.from(JSON.stringify(header(masterKeys))).toString('base64url')}.`

/**
 * Decrypts a record. Throws when its master key is not configured, and when it is damaged or was changed. `what` names
 * the record in the message, which never holds a secret.
 */
export async function decryptRecord(
  masterKeys: MasterKeys,
  purpose: Purpose,
  encrypted: string,
  what: string,
): Promise<object> {
  const kid = masterKeyIdOf(encrypted)
  const masterKey = kid === null ? undefined : masterKeys.find(kid)
  if (masterKey === undefined) {
    throw new Error(
      `BURSAR_MASTER_KEY_FILE: ${what} is encrypted with master key ${kid}, which is not configured (configured: ${masterKeys.ids.join(', ')})`,
    )
  }
  const { plaintext } = await compactDecrypt(encrypted, masterKey.derive(purpose), {
    keyManagementAlgorithms: ['dir'],
    contentEncryptionAlgorithms: ['A256GCM'],
  }).catch((cause: unknown) => {
    throw new Error(`${what} cannot be decrypted: its record is damaged or was changed`, { cause })
  })
  return JSON.parse(Buffer.from(plaintext).toString()) as object
}

/** Returns the id of the master key that encrypted this JWE; null when it is not a JWE with a key id. */
export function masterKeyIdOf(encrypted: string): string | null {
  try {
    return decodeProtectedHeader(encrypted).kid ?? null
  } catch {
    return null
  }
}
