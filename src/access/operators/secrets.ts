import { createHash, randomBytes } from 'node:crypto'

/**
 * The secrets of one-time links and of sessions. Each is shown once, and only its hash is stored. A secret has 256 random
 * bits, so a fast hash is safe. The prefix says what a secret is, for people and for programs that search for secrets.
 */
export type SecretKind = 'link' | 'session'

const PREFIXES: Record<SecretKind, string> = { link: 'bursar_link_', session: 'bursar_session_' }

export const newSecret = (kind: SecretKind): string =>
  `${PREFIXES[kind]}${randomBytes(32).toString('base64url')}`

export const hashOfSecret = (secret: string): Buffer => createHash('sha256').update(secret).digest()
