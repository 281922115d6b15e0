import { createLocalJWKSet, exportJWK, generateKeyPair, importJWK, type CryptoKey, type JWK } from 'jose'
import { transaction, type Database } from '../db/database.ts'

const ALGORITHM = 'RS256' // the one that every RFC 9068 party must know
const ADVISORY_LOCK = 7_311_002

/** The keys that sign access tokens; the newest signs, all verify. */
export interface SigningKeys {
  id: string
  privateKey: CryptoKey
  /** The public halves, as published at jwks_uri (RFC 7517). */
  jwks: { keys: JWK[] }
  keySet: ReturnType<typeof createLocalJWKSet>
}

/** Reads the signing keys; the first process on a database makes one. */
export async function loadSigningKeys(db: Database): Promise<SigningKeys> {
  const rows = await transaction(db, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [ADVISORY_LOCK])
    const select = 'select id, private_jwk from signing_keys order by created_at desc, id'
    const existing = await tx.query<{ id: string; private_jwk: JWK }>(select)
    if (existing.rows.length > 0) return existing.rows
    const { privateKey } = await generateKeyPair(ALGORITHM, { extractable: true })
    const id = crypto.randomUUID()
    await tx.query(
      'insert into signing_keys (id, private_jwk, created_at) values ($1, $2, clock_timestamp())',
      [id, await exportJWK(privateKey)],
    )
    return (await tx.query<{ id: string; private_jwk: JWK }>(select)).rows
  })
  const [newest] = rows
  const jwks = { keys: rows.map((row) => publicHalf(row.id, row.private_jwk)) }
  return {
    id: newest!.id,
    privateKey: (await importJWK(newest!.private_jwk, ALGORITHM)) as CryptoKey,
    jwks,
    keySet: createLocalJWKSet(jwks),
  }
}

const publicHalf = (kid: string, { kty, n, e }: JWK): JWK => ({ kty, n, e, kid, alg: ALGORITHM, use: 'sig' })
