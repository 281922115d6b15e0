import { createHmac } from 'node:crypto'

/** The prefix of a signing secret: the rest is base64 of 24 to 64 random bytes (Standard Webhooks 1.0.0). */
const PREFIX = 'whsec_'

export interface Signed {
  /** The event's id: the same for every attempt and endpoint. */
  id: string
  /** The moment of the attempt, in whole seconds since 1970. */
  timestampSeconds: number
  /** The body exactly as it is sent. */
  body: string
}

/**
 * Returns the three headers of Standard Webhooks 1.0.0. Each secret signs: during a rotation the new one and the previous
 * one, so that a receiver verifies with either.
 */
export function signatureHeaders(
  secrets: readonly string[],
  { id, timestampSeconds, body }: Signed,
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const content = `${id}.${timestampSeconds}.${body}`
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestampSeconds),
    'webhook-signature': secrets.map((secret) => `v1,${signatureOf(secret, content)}`).join(' '),
  }
}

const signatureOf = (secret: string, content: string): string =>
  createHmac('sha256', Buffer.from(secret.slice(PREFIX.length), 'base64'))
    .update(content)
    .digest('base64')
