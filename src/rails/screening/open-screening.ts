import { readFile } from 'node:fs/promises'
import type { Queryable } from '../../db/database.ts'
import { openMasterKeys, type MasterKeys } from '../../keys/master-keys.ts'
import { blame, SettingsError, type Settings } from '../../settings.ts'
import { isHere } from '../../http/transport-security.ts'
import { ScreeningEndpoint } from './endpoint.ts'
import { lacksSettings, screenedSince } from './requirement.ts'
import { Screening } from './screening.ts'

const HOW_TO_MAKE_ONE = '(umask 077; echo "whsec_$(openssl rand -base64 32)" > screening-secret)'

/** Standard Webhooks 1.0.0: the secret is base64 of 24 to 64 bytes. */
const SECRET = /^whsec_([A-Za-z0-9+/]+={0,2})$/
const SECRET_BYTES_MIN = 24
const SECRET_BYTES_MAX = 64
/** A new one, and during a rotation the one before. */
const SECRETS_MAX = 2

type ScreeningSettings = Pick<
  Settings,
  'mode' | 'screeningUrl' | 'screeningSecretFile' | 'screeningTimeoutMs'
>

interface GivenSettings {
  url: string
  secrets: string[]
  timeoutMs: number
}

/**
 * Opens the screening of the settings; undefined where BURSAR_SCREENING_URL is not set. Throws `SettingsError` as
 * `readScreeningSettings` does.
 */
export async function openScreening(
  settings: ScreeningSettings,
  masterKeys: () => Promise<MasterKeys>,
): Promise<Screening | undefined> {
  const given = await readScreeningSettings(settings)
  if (given === undefined) return undefined
  const { url, secrets, timeoutMs } = given
  return new Screening(new ScreeningEndpoint(url, secrets, timeoutMs), await masterKeys())
}

/**
 * Reads the screening of the settings; undefined where BURSAR_SCREENING_URL is not set. Throws `SettingsError` for an
 * endpoint without TLS on another machine or in live mode, and for a missing or invalid secret. No message holds a secret.
 */
export async function readScreeningSettings(settings: ScreeningSettings): Promise<GivenSettings | undefined> {
  const { mode, screeningUrl, screeningSecretFile, screeningTimeoutMs } = settings
  if (screeningUrl === undefined) {
    if (screeningSecretFile !== undefined)
      throw new SettingsError('BURSAR_SCREENING_SECRET_FILE: it needs BURSAR_SCREENING_URL')
    return undefined
  }
  const { protocol, hostname, username, password } = new URL(screeningUrl)
  if (username !== '' || password !== '')
    throw new SettingsError('BURSAR_SCREENING_URL: must have no user and no password')
  if (protocol !== 'https:' && (mode === 'live' || !isHere(hostname)))
    throw new SettingsError(
      'BURSAR_SCREENING_URL: must begin with https:// (a sandbox may use http:// on this machine)',
    )
  if (screeningSecretFile === undefined)
    throw new SettingsError(
      `BURSAR_SCREENING_SECRET_FILE: questions to the screening endpoint need a secret that signs them. Make one with ${HOW_TO_MAKE_ONE}`,
    )
  const secrets = await readSecrets(screeningSecretFile)
  return { url: screeningUrl, secrets, timeoutMs: screeningTimeoutMs }
}

/** Reads one secret per line, the current one first. Skips empty lines and lines that begin with #. */
async function readSecrets(path: string): Promise<string[]> {
  const content = await readFile(path, 'utf8').catch(blame('BURSAR_SCREENING_SECRET_FILE'))
  const lines = content.split('\n').map((line) => line.trim())
  const secrets = lines.filter((line) => line !== '' && !line.startsWith('#'))
  if (secrets.length === 0 || secrets.length > SECRETS_MAX)
    throw new SettingsError(
      `BURSAR_SCREENING_SECRET_FILE: ${path} must have one secret, or two during a rotation. Make one with ${HOW_TO_MAKE_ONE}`,
    )
  for (const secret of secrets) {
    const bytes = Buffer.from(SECRET.exec(secret)?.[1] ?? '', 'base64').length
    if (bytes < SECRET_BYTES_MIN || bytes > SECRET_BYTES_MAX)
      throw new SettingsError(
        `BURSAR_SCREENING_SECRET_FILE: ${path} has a line that is no secret of ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} bytes. Make one with ${HOW_TO_MAKE_ONE}`,
      )
  }
  return secrets
}

/**
 * Opens the screening for a command that pays or credits. Throws `SettingsError` where payments must be screened and
 * this command's settings have no endpoint: the command would pay what other processes hold.
 */
export async function openScreeningOfCommand(
  db: Queryable,
  settings: Settings,
): Promise<Screening | undefined> {
  const screening = await openScreening(settings, () => openMasterKeys(settings))
  await requireScreeningSettings(db, settings)
  return screening
}

/** Throws `SettingsError` where payments must be screened and these settings have no endpoint. */
export async function requireScreeningSettings(
  db: Queryable,
  { screeningUrl }: Pick<Settings, 'screeningUrl'>,
): Promise<void> {
  const since = screeningUrl === undefined ? await screenedSince(db) : undefined
  if (since !== undefined) throw new SettingsError(lacksSettings(since))
}
