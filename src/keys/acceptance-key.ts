import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { SettingsError, type Settings } from '../settings.ts'

const SETTING = 'BURSAR_ACCEPTANCE_KEY_FILE'

/**
 * The key with which this process signs the withdrawals that it accepts; undefined where none is set. Throws SettingsError
 * for a file that is no private Ed25519 key.
 */
export async function openAcceptanceKey({
  acceptanceKeyFile,
}: Pick<Settings, 'acceptanceKeyFile'>): Promise<KeyObject | undefined> {
  if (acceptanceKeyFile === undefined) return undefined
  const refuse = (why: string) => new SettingsError(`${SETTING}: ${why}`)
  const text = await readFile(acceptanceKeyFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw refuse(`${acceptanceKeyFile} cannot be read (${error.code})`)
  })
  try {
    const key = createPrivateKey({ key: JSON.parse(text) as JsonWebKey, format: 'jwk' })
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // The message shows nothing of the key.
  }
  throw refuse(`${acceptanceKeyFile} is no private JWK of Ed25519, as 'bursar approvals key' makes it`)
}
