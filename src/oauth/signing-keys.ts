import {
  CompactEncrypt,
  compactDecrypt,
  createLocalJWKSet,
  decodeProtectedHeader,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type CryptoKey,
  type JWK,
  type JWTVerifyGetKey,
} from 'jose'
import { transaction, type Database, type Queryable, type Transaction } from '../db/database.ts'
import type { MasterKeys } from '../keys/master-keys.ts'

const ALGORITHM = 'RS256' // the one that every RFC 9068 party must know
const ADVISORY_LOCK = 7_311_002

/** How often a process reads the keys again. A retired key's tokens are refused this much later, at the latest. */
const RELOAD_EVERY_MS = 10_000
/** Between two reloads that tokens of an unknown key ask for: anybody can make up such tokens. */
const RELOAD_PAUSE_MS = 1_000
/** A new key signs once every process has read it, with room for one that was slow. */
const SIGNS_AFTER_SECONDS = 60

/** The keys that sign access tokens, as they are in the database now. */
export interface SigningKeys {
  /** Signs new tokens. */
  readonly signer: { id: string; privateKey: CryptoKey }
  /** The public halves of all that are not retired, as published at jwks_uri (RFC 7517). */
  readonly jwks: { keys: JWK[] }
  /** Finds the key of a token. One that is not known is looked for in the database, at most once a second. */
  readonly keyOf: JWTVerifyGetKey
  /** Whether tokens that this key signed are still good. */
  isTrusted(id: string): boolean
  /** Ends the reading. */
  close(): void
}

/** Is told why keys, or one of them, could not be read again; those that were read before stay in use. */
type OnFailure = (error: unknown) => void

/**
 * Reads the signing keys, and from then on reads them again every ten seconds until `close`; the first process on a
 * database makes one. Throws where a key is encrypted with a master key that was not given.
 */
export async function openSigningKeys(
  db: Database,
  masterKeys: MasterKeys,
  onFailure: OnFailure = () => undefined,
): Promise<SigningKeys> {
  await transaction(db, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCK])
    const { rowCount } = await tx.query('select 1 from signing_keys where retired_at is null limit 1')
    if (rowCount === 0) await insertSigningKey(tx, masterKeys, 0)
  })
  let current = await readKeys(db, masterKeys)
  let reading: Promise<void> | undefined
  let readAt = performance.now()
  /** Reads them again, or waits for the reading under way. */
  const reload = () =>
    (reading ??= readKeys(db, masterKeys, { known: current.opened, onFailure })
      .then((read) => void (current = read), onFailure)
      .finally(() => {
        readAt = performance.now()
        reading = undefined
      }))
  const timer = setInterval(() => void reload(), RELOAD_EVERY_MS).unref()
  return {
    get signer() {
      return current.signer
    },
    get jwks() {
      return current.jwks
    },
    async keyOf(header, token) {
      try {
        return await current.keySet(header, token)
      } catch (error) {
        const mayBeNew = error instanceof errors.JWKSNoMatchingKey && header.kid !== undefined
        if (!mayBeNew || (reading === undefined && performance.now() - readAt < RELOAD_PAUSE_MS)) throw error
        await reload()
        return current.keySet(header, token)
      }
    },
    isTrusted: (id) => current.opened.has(id),
    close: () => clearInterval(timer),
  }
}

interface Opened {
  jwk: JWK
  privateKey: CryptoKey
}

interface Read {
  signer: SigningKeys['signer']
  jwks: { keys: JWK[] }
  keySet: JWTVerifyGetKey
  opened: Map<string, Opened>
}

/**
 * Reads the keys that are not retired. What an id stands for never changes, so a known key is not opened again. One that
 * cannot be opened is left out where `onFailure` is told of it: it must not keep a retired one in use.
 */
async function readKeys(
  db: Queryable,
  masterKeys: MasterKeys,
  { known = new Map(), onFailure }: { known?: ReadonlyMap<string, Opened>; onFailure?: OnFailure } = {},
): Promise<Read> {
  const { rows } = await db.query<{ id: string; encrypted_jwk: string; signs: boolean }>(
    `select id, encrypted_jwk, signs_from <= clock_timestamp() as signs
     from signing_keys
     where retired_at is null
     order by signs_from desc, id`,
  )
  const opened = new Map<string, Opened>()
  for (const { id, encrypted_jwk } of rows) {
    try {
      opened.set(id, known.get(id) ?? (await openKey(id, encrypted_jwk, masterKeys)))
    } catch (error) {
      if (onFailure === undefined) throw error
      onFailure(error)
    }
  }
  const signing = rows.find(({ id, signs }) => signs && opened.has(id))
  if (signing === undefined) throw new Error('no signing key is in use: bursar keys rotate --now')
  const jwks = { keys: [...opened].map(([id, { jwk }]) => publicHalf(id, jwk)) }
  return {
    signer: { id: signing.id, privateKey: opened.get(signing.id)!.privateKey },
    jwks,
    keySet: createLocalJWKSet(jwks),
    opened,
  }
}

const publicHalf = (kid: string, { kty, n, e }: JWK): JWK => ({ kty, n, e, kid, alg: ALGORITHM, use: 'sig' })

async function openKey(id: string, encrypted: string, masterKeys: MasterKeys): Promise<Opened> {
  const jwk = await decryptJwk(id, encrypted, masterKeys)
  return { jwk, privateKey: (await importJWK(jwk, ALGORITHM)) as CryptoKey }
}

// ---------------------------------------------------------------------------------------------- encryption

/** The private key as a JWE that names the master key. The id is inside, so that no key can be put in another's row. */
function encryptJwk(id: string, jwk: JWK, { current }: MasterKeys): Promise<string> {
  return new CompactEncrypt(Buffer.from(JSON.stringify({ ...jwk, kid: id })))
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM', kid: current.id })
    .encrypt(current.derive('signingKeys'))
}

/** The id of the master key that it is encrypted with; null for what is no JWE of ours. */
function masterKeyIdOf(encrypted: string): string | null {
  try {
    return decodeProtectedHeader(encrypted).kid ?? null
  } catch {
    return null
  }
}

async function decryptJwk(id: string, encrypted: string, masterKeys: MasterKeys): Promise<JWK> {
  const kid = masterKeyIdOf(encrypted)
  const masterKey = kid === null ? undefined : masterKeys.find(kid)
  if (masterKey === undefined) {
    throw new Error(
      `BURSAR_MASTER_KEY_FILE: signing key ${id} is encrypted with master key ${kid}, and that is not among those given (${masterKeys.ids.join(', ')})`,
    )
  }
  const { plaintext } = await compactDecrypt(encrypted, masterKey.derive('signingKeys'), {
    keyManagementAlgorithms: ['dir'],
    contentEncryptionAlgorithms: ['A256GCM'],
  }).catch((cause: unknown) => {
    throw new Error(`signing key ${id} cannot be decrypted: it is damaged, or was changed`, { cause })
  })
  const jwk = JSON.parse(Buffer.from(plaintext).toString()) as JWK
  if (jwk.kid !== id) throw new Error(`signing key ${id} is not its own: its row has the key ${jwk.kid}`)
  return jwk
}

/** The step of migration 017: encrypts what older versions kept in plain text. Asks for the master keys if there is any. */
export async function encryptPlainKeys(
  tx: Transaction,
  openMasterKeys: () => Promise<MasterKeys>,
): Promise<void> {
  const { rows } = await tx.query<{ id: string; private_jwk: JWK }>(
    'select id, private_jwk from signing_keys where private_jwk is not null',
  )
  if (rows.length === 0) return
  const masterKeys = await openMasterKeys()
  for (const { id, private_jwk } of rows) {
    await tx.query('update signing_keys set encrypted_jwk = $2, private_jwk = null where id = $1', [
      id,
      await encryptJwk(id, private_jwk, masterKeys),
    ])
  }
}

/** Encrypts keys with the current master key that were encrypted with an older one. Gives how many. */
export async function reencryptSigningKeys(db: Database, masterKeys: MasterKeys): Promise<number> {
  return transaction(db, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCK])
    const { rows } = await tx.query<{ id: string; encrypted_jwk: string }>(
      'select id, encrypted_jwk from signing_keys where retired_at is null order by id',
    )
    const older = rows.filter(({ encrypted_jwk }) => masterKeyIdOf(encrypted_jwk) !== masterKeys.current.id)
    for (const { id, encrypted_jwk } of older) {
      const jwk = await decryptJwk(id, encrypted_jwk, masterKeys)
      await tx.query('update signing_keys set encrypted_jwk = $2 where id = $1', [
        id,
        await encryptJwk(id, jwk, masterKeys),
      ])
    }
    return older.length
  })
}

// ---------------------------------------------------------------------------------------------- rotation

/** A signing key as `bursar keys` shows it. */
export interface SigningKeySummary {
  id: string
  /** NEXT: does not sign yet. SIGNS: signs new tokens. VERIFIES: its tokens are good, and it makes no more. */
  status: 'NEXT' | 'SIGNS' | 'VERIFIES' | 'RETIRED'
  /** The id of the master key that it is encrypted with; null once it is retired, and where it is damaged. */
  master_key_id: string | null
  created_at: string
  signs_from: string
  retired_at: string | null
}

/** Every signing key, newest first. */
export async function listSigningKeys(db: Queryable): Promise<SigningKeySummary[]> {
  const { rows } = await db.query<
    Omit<SigningKeySummary, 'status' | 'master_key_id'> & { encrypted_jwk: string | null; signs: boolean }
  >(
    `select id, encrypted_jwk, created_at, signs_from, retired_at, signs_from <= clock_timestamp() as signs
     from signing_keys
     order by signs_from desc, id`,
  )
  const signer = rows.find(({ signs, retired_at }) => signs && retired_at === null)
  return rows.map(({ encrypted_jwk, signs, ...row }) => ({
    id: row.id,
    status:
      row.retired_at !== null ? 'RETIRED' : row.id === signer?.id ? 'SIGNS' : signs ? 'VERIFIES' : 'NEXT',
    master_key_id: encrypted_jwk === null ? null : masterKeyIdOf(encrypted_jwk),
    created_at: row.created_at,
    signs_from: row.signs_from,
    retired_at: row.retired_at,
  }))
}

/**
 * Makes a key that signs new tokens a minute from now, when every process has read it, or with `now` at once: then a
 * process that meets its tokens first reads it at that moment. Older keys verify until they are retired.
 */
export async function rotateSigningKeys(
  db: Database,
  masterKeys: MasterKeys,
  { now = false }: { now?: boolean } = {},
): Promise<SigningKeySummary> {
  const id = await transaction(db, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCK])
    // A master key that does not open the others is the wrong one: no process could read the new key.
    await readKeys(tx, masterKeys)
    return insertSigningKey(tx, masterKeys, now ? 0 : SIGNS_AFTER_SECONDS)
  })
  return (await listSigningKeys(db)).find((key) => key.id === id)!
}

/**
 * Ends a key for good: its private half is removed, and every process refuses its tokens within ten seconds. Throws for
 * a key that there is not, or that is the only one which signs. True unless it was retired before.
 */
export async function retireSigningKey(db: Database, id: string): Promise<boolean> {
  return transaction(db, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCK])
    const keys = await listSigningKeys(tx)
    const key = keys.find((one) => one.id === id)
    if (key === undefined) throw new Error(`there is no signing key ${id}: bursar keys list`)
    if (key.status === 'RETIRED') return false
    const next = keys.find(({ status }) => status === 'NEXT')
    if (key.status === 'SIGNS' && !keys.some(({ status }) => status === 'VERIFIES')) {
      const advice =
        next === undefined
          ? 'make its successor first: bursar keys rotate'
          : `its successor ${next.id} signs from ${next.signs_from}: wait until then, or bursar keys rotate --now`
      throw new Error(`signing key ${id} is the only one that signs; ${advice}`)
    }
    await tx.query(
      'update signing_keys set encrypted_jwk = null, retired_at = clock_timestamp() where id = $1',
      [id],
    )
    return true
  })
}

/** Makes a key that signs in so many seconds. Gives its id. */
async function insertSigningKey(
  tx: Transaction,
  masterKeys: MasterKeys,
  signsAfterSeconds: number,
): Promise<string> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true })
  const id = crypto.randomUUID()
  await tx.query(
    `insert into signing_keys (id, encrypted_jwk, created_at, signs_from)
     select $1, $2, now, now + make_interval(secs => $3) from clock_timestamp() now`,
    [id, await encryptJwk(id, await exportJWK(privateKey), masterKeys), signsAfterSeconds],
  )
  return id
}
