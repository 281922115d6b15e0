import {
  createLocalJWKSet,
  errors,
  exportJWK,
  generateKeyPair,
  importJWK,
  type CryptoKey,
  type JWK,
  type JWTVerifyGetKey,
} from 'jose'
import { transaction, type Database, type Queryable, type Transaction } from '../../db/database.ts'
import { decryptRecord, encryptRecord, masterKeyIdOf } from '../../keys/encrypted-record.ts'
import type { MasterKeys } from '../../keys/master-keys.ts'
import { audited, recordNow } from '../../audit/audited.ts'
import { PLATFORM_ID } from '../../db/ids.ts'
import { originOfLoop, type Origin } from '../../contract/actor.ts'
import { Refreshed } from '../../db/refreshed.ts'
import { takeLock } from '../../db/locks.ts'

const ALGORITHM = 'RS256' // RFC 9068 requires every party to support it

/** How often a process reloads the keys. This is also the longest time for which tokens of a retired key are accepted. */
const RELOAD_EVERY_MS = 10_000
/** Least interval between reloads caused by tokens with an unknown key: anybody can forge such tokens. */
const RELOAD_INTERVAL_MS_MIN = 1_000
/** Delay before a new key signs: every process must have loaded it by then, also a slow process. */
const SIGNS_AFTER_SECONDS = 60

/** The keys that sign access tokens, as last read from the database. */
export interface SigningKeys {
  readonly signer: { id: string; privateKey: CryptoKey }
  /** The public keys that are not retired, as published at jwks_uri (RFC 7517). */
  readonly jwks: { keys: JWK[] }
  /** Finds the key of a token. For an unknown key, reloads the keys from the database, at most once a second. */
  readonly keyOf: JWTVerifyGetKey
  isTrusted(id: string): boolean
  close(): void
}

/** Called with the error when keys, or one key, could not be reloaded. The keys read before stay in use. */
type OnFailure = (error: unknown) => void

/**
 * Reads the signing keys, and reloads them every ten seconds until `close`. The first process on a database generates a
 * key. Throws when a key is encrypted with a master key that is not configured.
 */
export async function openSigningKeys(
  db: Database,
  masterKeys: MasterKeys,
  onFailure: OnFailure = () => undefined,
): Promise<SigningKeys> {
  await transaction(db, async (tx) => {
    await takeLock(tx, 'signingKeys')
    const { rowCount } = await tx.query('select 1 from signing_keys where retired_at is null limit 1')
    if (rowCount === 0) await insertSigningKey(tx, masterKeys, 0, originOfLoop('serve'))
  })
  const keys = new Refreshed(
    await readKeys(db, masterKeys),
    ({ decrypted }) => readKeys(db, masterKeys, { known: decrypted, onFailure }),
    onFailure,
  )
  keys.follow(RELOAD_EVERY_MS)
  return {
    get signer() {
      return keys.value.signer
    },
    get jwks() {
      return keys.value.jwks
    },
    async keyOf(header, token) {
      try {
        return await keys.value.keySet(header, token)
      } catch (error) {
        const mayBeNew = error instanceof errors.JWKSNoMatchingKey && header.kid !== undefined
        if (!mayBeNew || performance.now() - keys.triedAt < RELOAD_INTERVAL_MS_MIN) throw error
        await keys.again()
        return keys.value.keySet(header, token)
      }
    },
    isTrusted: (id) => keys.value.decrypted.has(id),
    close: () => void keys.stop(),
  }
}

interface DecryptedKey {
  jwk: JWK
  privateKey: CryptoKey
}

interface Read {
  signer: SigningKeys['signer']
  jwks: { keys: JWK[] }
  keySet: JWTVerifyGetKey
  decrypted: Map<string, DecryptedKey>
}

/**
 * The keys among these that the audit log says were retired. The service's database role could put a key back, but cannot
 * remove the record of its retirement.
 */
async function retiredAmong(db: Queryable, ids: readonly string[]): Promise<Set<string>> {
  const { rows } = await db.query<{ id: string }>(
    `select l.subject_id as id from audit_log l
     where l.customer_id = $1 and l.action = 'signing_key.retire' and l.subject_id = any ($2::text[])`,
    [PLATFORM_ID, ids],
  )
  return new Set(rows.map(({ id }) => id))
}

/**
 * Reads the keys that are not retired. The key of an id never changes, so known keys are not decrypted again. Throws for a
 * key that cannot be decrypted. With `onFailure`, such a key is reported and left out, so that it cannot keep a retired key
 * in use.
 */
async function readKeys(
  db: Queryable,
  masterKeys: MasterKeys,
  { known = new Map(), onFailure }: { known?: ReadonlyMap<string, DecryptedKey>; onFailure?: OnFailure } = {},
): Promise<Read> {
  const { rows } = await db.query<{ id: string; encrypted_jwk: string; signs: boolean }>(
    `select id, encrypted_jwk, signs_from <= clock_timestamp() as signs
     from signing_keys
     where retired_at is null
     order by signs_from desc, id`,
  )
  const decrypted = new Map<string, DecryptedKey>()
  const retired = await retiredAmong(
    db,
    rows.map(({ id }) => id),
  )
  for (const { id, encrypted_jwk } of rows) {
    if (retired.has(id)) {
      onFailure?.(
        new Error(`signing key ${id} was retired, and put back in the database: bursar keys retire ${id}`),
      )
      continue
    }
    try {
      decrypted.set(id, known.get(id) ?? (await decryptKey(id, encrypted_jwk, masterKeys)))
    } catch (error) {
      if (onFailure === undefined) throw error
      onFailure(error)
    }
  }
  const signing = rows.find(({ id, signs }) => signs && decrypted.has(id))
  if (signing === undefined) throw new Error('no signing key is in use: bursar keys rotate --now')
  const jwks = { keys: [...decrypted].map(([id, { jwk }]) => publicJwk(id, jwk)) }
  return {
    signer: { id: signing.id, privateKey: decrypted.get(signing.id)!.privateKey },
    jwks,
    keySet: createLocalJWKSet(jwks),
    decrypted,
  }
}

const publicJwk = (kid: string, { kty, n, e }: JWK): JWK => ({ kty, n, e, kid, alg: ALGORITHM, use: 'sig' })

async function decryptKey(id: string, encrypted: string, masterKeys: MasterKeys): Promise<DecryptedKey> {
  const jwk = await decryptJwk(id, encrypted, masterKeys)
  return { jwk, privateKey: (await importJWK(jwk, ALGORITHM)) as CryptoKey }
}

// ---------------------------------------------------------------------------------------------- encryption

/**
 * Encrypts a private key as a JWE whose header names the master key. The key's id is inside, so that a key moved to
 * another row is detected.
 */
const encryptJwk = (id: string, jwk: JWK, masterKeys: MasterKeys): Promise<string> =>
  encryptRecord(masterKeys, 'signingKeys', { ...jwk, kid: id })

async function decryptJwk(id: string, encrypted: string, masterKeys: MasterKeys): Promise<JWK> {
  const jwk: JWK = await decryptRecord(masterKeys, 'signingKeys', encrypted, `signing key ${id}`)
  if (jwk.kid !== id) throw new Error(`the record of signing key ${id} holds another key, ${jwk.kid}`)
  return jwk
}

/** Encrypts keys with the current master key if an older master key encrypted them. Returns their number. */
export async function reencryptSigningKeys(db: Database, masterKeys: MasterKeys): Promise<number> {
  return transaction(db, async (tx) => {
    await takeLock(tx, 'signingKeys')
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

export interface SigningKeySummary {
  id: string
  /** NEXT: does not sign yet. SIGNS: signs new tokens. VERIFIES: its tokens are accepted, but it signs no new ones. */
  status: 'NEXT' | 'SIGNS' | 'VERIFIES' | 'RETIRED'
  /** The id of the master key that encrypts it; null when it is retired or its record is damaged. */
  master_key_id: string | null
  created_at: string
  signs_from: string
  retired_at: string | null
}

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
 * Generates a key that signs new tokens after a minute, when every process has loaded it. With `now` the key signs at once,
 * and a process that does not know the key loads it at the first such token. Older keys verify until they are retired.
 */
export async function rotateSigningKeys(
  db: Database,
  masterKeys: MasterKeys,
  { now = false, origin }: { now?: boolean; origin: Origin },
): Promise<SigningKeySummary> {
  const id = await transaction(db, async (tx) => {
    await takeLock(tx, 'signingKeys')
    // A master key that cannot decrypt the existing keys is the wrong one: no process could read the new key.
    await readKeys(tx, masterKeys)
    return insertSigningKey(tx, masterKeys, now ? 0 : SIGNS_AFTER_SECONDS, origin)
  })
  return (await listSigningKeys(db)).find((key) => key.id === id)!
}

/**
 * Retires a key for good: its private key is deleted, and every process refuses its tokens within ten seconds. Throws for
 * an unknown key and for the only key that signs. Returns whether the key was in use until now.
 */
export async function retireSigningKey(db: Database, id: string, origin: Origin): Promise<boolean> {
  return transaction(db, async (tx) => {
    await takeLock(tx, 'signingKeys')
    const keys = await listSigningKeys(tx)
    const key = keys.find((candidate) => candidate.id === id)
    if (key === undefined) throw new Error(`there is no signing key ${id}: bursar keys list`)
    if (key.status === 'RETIRED') return false
    const next = keys.find(({ status }) => status === 'NEXT')
    if (key.status === 'SIGNS' && !keys.some(({ status }) => status === 'VERIFIES')) {
      const advice =
        next === undefined
          ? 'create its successor first: bursar keys rotate'
          : `its successor ${next.id} signs from ${next.signs_from}: wait until then, or bursar keys rotate --now`
      throw new Error(`signing key ${id} is the only one that signs; ${advice}`)
    }
    await tx.query(
      'update signing_keys set encrypted_jwk = null, retired_at = clock_timestamp() where id = $1',
      [id],
    )
    await recordNow(tx, PLATFORM_ID, audited(origin, 'signing_key.retire', id))
    return true
  })
}

/** Generates a key that signs after this many seconds. Returns its id. */
async function insertSigningKey(
  tx: Transaction,
  masterKeys: MasterKeys,
  signsAfterSeconds: number,
  origin: Origin,
): Promise<string> {
  const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true })
  const id = crypto.randomUUID()
  await tx.query(
    `insert into signing_keys (id, encrypted_jwk, created_at, signs_from)
     select $1, $2, now, now + make_interval(secs => $3) from clock_timestamp() now`,
    [id, await encryptJwk(id, await exportJWK(privateKey), masterKeys), signsAfterSeconds],
  )
  await recordNow(tx, PLATFORM_ID, audited(origin, 'signing_key.create', id))
  return id
}
