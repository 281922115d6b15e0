import { hkdfSync, randomBytes } from 'node:crypto'
import { link, open, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeFolder } from './secret-file.ts'
import { blame, SettingsError, type Settings } from '../settings.ts'

/**
 * The master keys. Besides the secrets of the networks, they are the only secrets of Bursar, and never in the database.
 * Each purpose has its own key, derived by HKDF (RFC 5869) with the label of the purpose: no two purposes share a key, and
 * a new purpose needs no new secret.
 */

/** The labels from which keys are derived. A label never changes its meaning: a new scheme gets a new label. */
const LABELS = {
  /** Identifies the master key in the database, so that a message can name the missing key. Reveals nothing of the key. */
  id: 'bursar/master-key-id/v1',
  /** Encrypts the keys that sign access tokens (A256GCM). */
  signingKeys: 'bursar/signing-keys/v1',
  /** Authenticates withdrawals as they were accepted (HMAC-SHA-256). */
  withdrawals: 'bursar/withdrawals/v1',
  /** Encrypts the secrets of webhook endpoints (A256GCM). */
  webhooks: 'bursar/webhooks/v1',
  /** Authenticates the versions of customers' policies (HMAC-SHA-256). */
  policies: 'bursar/policies/v1',
  /** Authenticates the answers of the screening endpoint that allow a payment (HMAC-SHA-256). */
  screenings: 'bursar/screenings/v1',
  /** Authenticates the challenges of sign-ins (HMAC-SHA-256). */
  challenges: 'bursar/challenges/v1',
  /** Proves that a browser belongs to the person at the machine of a sandbox (http/own-machine.ts). */
  ownMachine: 'bursar/own-machine/v1',
  /** Each authenticates the rows of one kind of record (HMAC-SHA-256): src/audit/sealed-rows.ts. */
  apiClients: 'bursar/api-clients/v1',
  operators: 'bursar/operators/v1',
  operatorSessions: 'bursar/operator-sessions/v1',
  operatorLinks: 'bursar/operator-links/v1',
  operatorPasskeys: 'bursar/operator-passkeys/v1',
  orchestrations: 'bursar/orchestrations/v1',
  rewardRates: 'bursar/reward-rates/v1',
  bankStatements: 'bursar/bank-statements/v1',
  prices: 'bursar/prices/v1',
  feeQuotes: 'bursar/fee-quotes/v1',
  deployment: 'bursar/deployment/v1',
  destinationAddresses: 'bursar/destination-addresses/v1',
  depositAddresses: 'bursar/deposit-addresses/v1',
  orchestrationRules: 'bursar/orchestration-rules/v1',
  fiatDepositInstructions: 'bursar/fiat-deposit-instructions/v1',
  balances: 'bursar/balances/v1',
  /** Makes the salts of the proofs of what the platform owes (HMAC-SHA-256). */
  liabilities: 'bursar/liabilities/v1',
  incomingTransfers: 'bursar/incoming-transfers/v1',
  freezes: 'bursar/freezes/v1',
  customerFreezes: 'bursar/customer-freezes/v1',
} as const
export type Purpose = Exclude<keyof typeof LABELS, 'id'>

const KEY_BYTES = 32
const ID_BYTES = 4

interface MasterKey {
  /** Eight hex digits. */
  id: string
  derive: (purpose: Purpose) => Buffer
}

export interface MasterKeys {
  /** Encrypts and authenticates new records. */
  current: MasterKey
  /** Finds the key with this id, current or older; undefined when it is not configured. */
  find: (id: string) => MasterKey | undefined
  /** The ids of all configured keys, the current one first. */
  ids: string[]
}

/** The command that generates a master key, for messages. */
export const HOW_TO_MAKE_ONE = '(umask 077; openssl rand -hex 32 > master-key)'

/** The file of the master key that a sandbox generates, next to the demo's credentials. */
export const masterKeyFile = (dataDir: string) => join(dataDir, 'master-key')

/**
 * Opens the configured master keys. A sandbox without them generates one, readable only by its owner. Throws
 * `SettingsError` when live mode has none, and for an unreadable file or an invalid line. No message contains a key.
 */
export async function openMasterKeys(settings: Settings): Promise<MasterKeys> {
  const given = await findMasterKeys(settings)
  if (given !== undefined) return given
  if (settings.mode === 'live')
    throw new SettingsError(
      `BURSAR_MASTER_KEY_FILE: live mode needs a master key of ${KEY_BYTES} bytes. Make one with ${HOW_TO_MAKE_ONE}, ` +
        'and keep a copy of it apart from the backups of the database (docs/guides/backup.md)',
    )
  const path = masterKeyFile(settings.dataDir)
  await generate(path).catch(blame('BURSAR_DATA_DIR'))
  return readKeyFile(path, 'BURSAR_DATA_DIR')
}

/** Like `openMasterKeys`, for commands that work without a key: generates none, and returns undefined when there is none. */
export async function findMasterKeys(settings: Settings): Promise<MasterKeys | undefined> {
  const { masterKey, masterKeyFile: path, mode, dataDir } = settings
  if (masterKey !== undefined && path !== undefined)
    throw new SettingsError('BURSAR_MASTER_KEY: give either this or BURSAR_MASTER_KEY_FILE, not both')
  if (masterKey !== undefined) return masterKeysOf(masterKey.split(/[\s,]+/), 'BURSAR_MASTER_KEY')
  if (path !== undefined) return readKeyFile(path, 'BURSAR_MASTER_KEY_FILE')
  if (mode === 'live') return undefined
  const generated = masterKeyFile(dataDir)
  return readKeyFile(generated, 'BURSAR_DATA_DIR').catch((error: Error) => {
    if ((error.cause as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') return undefined
    throw error
  })
}

type KeySetting = 'BURSAR_MASTER_KEY' | 'BURSAR_MASTER_KEY_FILE' | 'BURSAR_DATA_DIR'

async function readKeyFile(path: string, setting: KeySetting): Promise<MasterKeys> {
  const content = await readFile(path, 'utf8').catch(blame(setting))
  return masterKeysOf(content.split('\n'), setting, ` of ${path}`)
}

/**
 * Reads one key per line, the current one first. Skips empty lines and lines that begin with #. Throws `SettingsError`
 * for an invalid line.
 */
export function masterKeysOf(lines: string[], setting: KeySetting, where = ''): MasterKeys {
  const keys = lines.flatMap((line, index) => {
    const text = line.trim()
    if (text === '' || text.startsWith('#')) return []
    const bytes = readKey(text)
    if (bytes !== undefined) return masterKeyOf(bytes)
    throw new SettingsError(
      `${setting}: line ${index + 1}${where} is not a key of ${KEY_BYTES} random bytes in hex or base64. Make one with ${HOW_TO_MAKE_ONE}`,
    )
  })
  const [current] = keys
  if (current === undefined) {
    throw new SettingsError(`${setting}: there is no key${where && ` in it${where.replace(' of', ':')}`}`)
  }
  return {
    current,
    find: (id) => keys.find((key) => key.id === id),
    ids: keys.map(({ id }) => id),
  }
}

/** A key with fewer different bytes is a pattern: 32 random bytes have so few with a probability below 1 in 10^15. */
const DIFFERENT_BYTES_MIN = 16

function readKey(text: string): Buffer | undefined {
  const isHex = /^[0-9a-f]{64}$/i.test(text)
  if (!isHex && !/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined
  const bytes = Buffer.from(text, isHex ? 'hex' : 'base64')
  return bytes.length === KEY_BYTES && new Set(bytes).size >= DIFFERENT_BYTES_MIN ? bytes : undefined
}

function masterKeyOf(bytes: Buffer): MasterKey {
  const expand = (label: string, length: number) => Buffer.from(hkdfSync('sha256', bytes, '', label, length))
  const derived = new Map<Purpose, Buffer>()
  return {
    id: expand(LABELS.id, ID_BYTES).toString('hex'),
    derive(purpose) {
      const known = derived.get(purpose) ?? expand(LABELS[purpose], KEY_BYTES)
      derived.set(purpose, known)
      return known
    },
  }
}

/** Creates the file unless it exists. When processes start together, the first creates it and the others read its key. */
async function generate(path: string): Promise<void> {
  await makeFolder(dirname(path), 0o700)
  const temporary = `${path}.${randomBytes(8).toString('hex')}`
  const file = await open(temporary, 'wx', 0o600)
  try {
    await file.writeFile(`${randomBytes(KEY_BYTES).toString('hex')}\n`)
    await file.sync()
    await link(temporary, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await file.close()
    await rm(temporary, { force: true })
  }
}
