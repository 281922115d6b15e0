import { randomUUID } from 'node:crypto'
import { open, readFile, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { ClientCredentials } from '../../access/tokens/api-clients.ts'
import { makeFolder } from '../../keys/secret-file.ts'
import { blame, SettingsError } from '../../settings.ts'

/** The data that an integrator needs to begin: the content of sandbox-credentials.json. */
export interface SandboxCredentials extends ClientCredentials {
  base_url: string
  token_url: string
  customer_id: string
  profile_id: string
  memo_id: string
  /** An account of a person, with a profile of its own. */
  identity_id: string
  account_id: string
  /** A rule on that profile, and its memo: a wire with the memo becomes USDP on Ethereum. */
  orchestration_rule_id: string
  orchestration_memo_id: string
}

export const credentialsFile = (dataDir: string) => join(dataDir, 'sandbox-credentials.json')

export const addresses = (baseUrl: string) => ({ base_url: baseUrl, token_url: `${baseUrl}/oauth2/token` })

/**
 * Updates an existing credentials file when the service starts at another address, unless a service still answers at the one
 * in the file: that one would be lost, and this one may end first.
 */
export async function followBaseUrl(path: string, baseUrl: string): Promise<void> {
  const content = await readFile(path, 'utf8').catch(() => undefined)
  if (content === undefined) return
  const credentials = readCredentials(path, content)
  if (credentials.base_url === baseUrl) return
  const asked = { signal: AbortSignal.timeout(2_000) }
  if (
    await fetch(`${credentials.base_url}/health/live`, asked).then(
      () => true,
      () => false,
    )
  )
    return
  await writeCredentials(path, { ...credentials, ...addresses(baseUrl) })
}

/** Returns the API client of an earlier demo; undefined where there was none. */
export async function knownClient(path: string): Promise<ClientCredentials | undefined> {
  const content = await readFile(path, 'utf8').catch(() => undefined)
  if (content === undefined) return undefined
  const { client_id, client_secret } = readCredentials(path, content)
  return { client_id, client_secret }
}

/** Reads the credentials that a sandbox has written. Throws when the file has none. */
export async function openCredentials(path: string): Promise<SandboxCredentials> {
  const content = await readFile(path, 'utf8').catch((cause: Error) => {
    throw new Error(`no credentials in ${path}: a sandbox writes them when it starts (bursar serve)`, {
      cause,
    })
  })
  return readCredentials(path, content)
}

function readCredentials(path: string, content: string): SandboxCredentials {
  try {
    return JSON.parse(content) as SandboxCredentials
  } catch (error) {
    throw new SettingsError(`BURSAR_DATA_DIR: ${path} is not JSON: repair or remove it`, { cause: error })
  }
}

/**
 * Written to a temporary file and renamed, so that a reader sees either the old or the complete new file. Readable by
 * its owner only.
 */
export async function writeCredentials(path: string, credentials: SandboxCredentials): Promise<void> {
  const content = `${JSON.stringify(credentials, null, 2)}\n`
  await writeSecretFile(path, content).catch(blame('BURSAR_DATA_DIR'))
}

async function writeSecretFile(path: string, content: string): Promise<void> {
  await makeFolder(dirname(path))
  const temporary = `${path}.${randomUUID()}`
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(content)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(temporary, path)
}
