import { BursarSignatureError } from './errors.ts'
import type { Event } from './events.ts'

/** The six members that every webhook body has. */
export interface ThinEvent {
  /** The event's id: the same for every attempt and endpoint. Ignore an id that you have handled. */
  id: string
  /** Types are only ever added: ignore a type that you do not know. */
  type: Event['type'] | (string & {})
  source: string
  /** When the status changed. */
  time: string
  object: 'event'
  /** Whether `POST /v2/webhooks/{id}/test` made it: nothing happened. */
  is_test: boolean
}

/** The body of a webhook whose `payload` is FULL: also a CloudEvent 1.0. `object_type` says which `data` it has. */
export type FullEvent = ThinEvent & {
  specversion: '1.0'
  /** The record whose status changed. */
  subject: string
  datacontenttype: 'application/json'
  timestamp: string
} & FullData

/** `object_type` and `data`, for each kind of object. */
type FullData = Event extends infer E
  ? E extends { object_type: infer T; object: infer O }
    ? { object_type: T; data: O }
    : never
  : never

/** Whether the event has its object, which depends on the webhook's `payload`. */
export const isFull = (event: ThinEvent | FullEvent): event is FullEvent => 'specversion' in event

/** Options of `unwrap`. */
export interface Unwrapping {
  /** How far the attempt's time may be from this machine's clock (default: 300). Bounds how long a copy can be replayed. */
  toleranceSeconds?: number
}

/** Headers as `fetch`, Node and frameworks have them. */
export type HeadersLike = Headers | Readonly<Record<string, string | readonly string[] | undefined>>

const TOLERANCE_SECONDS = 300
/** The most signatures that are checked. During a rotation of the secret, a request has two. */
const SIGNATURES_MAX = 16
const SECRET_BYTES_MIN = 24
const SECRET_BYTES_MAX = 64

/**
 * Verifies the signature of a webhook's request (Standard Webhooks 1.0.0) and returns its event. `body` is the body exactly
 * as it arrived: text that was parsed and formatted again has another signature. With several secrets, one must match.
 * Throws `BursarSignatureError` for a request that is not from Bursar or too old, and `TypeError` for an invalid secret.
 */
export async function unwrap(
  body: string | Uint8Array,
  headers: HeadersLike,
  secrets: string | readonly string[],
  { toleranceSeconds = TOLERANCE_SECONDS }: Unwrapping = {},
): Promise<ThinEvent | FullEvent> {
  // A framework has parsed the body, or has not read it.
  if (typeof body !== 'string' && !ArrayBuffer.isView(body))
    throw new BursarSignatureError('BODY', 'unwrap needs the raw body of the request, as text or bytes')
  const keys = [secrets].flat().map(keyOf)
  if (keys.length === 0) throw new TypeError('unwrap needs a signing secret')
  const id = headerOf(headers, 'webhook-id')
  const timestamp = headerOf(headers, 'webhook-timestamp')
  const signatures = headerOf(headers, 'webhook-signature').split(' ')
  requireRecent(timestamp, toleranceSeconds)
  const content = bytesOf(`${id}.${timestamp}.`, body)
  if (!(await isSigned(content, signatures, keys)))
    throw new BursarSignatureError('SIGNATURE', 'no signature of the request matches a secret')
  return eventOf(body)
}

function requireRecent(timestamp: string, toleranceSeconds: number): void {
  if (!/^\d{1,12}$/.test(timestamp))
    throw new BursarSignatureError('TIMESTAMP', 'webhook-timestamp is not a number of seconds')
  const seconds = Math.round(Date.now() / 1000 - Number(timestamp))
  if (Math.abs(seconds) > toleranceSeconds)
    throw new BursarSignatureError(
      'TIMESTAMP',
      `the request is ${Math.abs(seconds)} s ${seconds > 0 ? 'old' : 'in the future'}, more than ${toleranceSeconds} s`,
    )
}

/** Whether a `v1` signature matches a key. `verify` compares in constant time. */
async function isSigned(
  content: Uint8Array<ArrayBuffer>,
  signatures: readonly string[],
  keys: readonly Uint8Array<ArrayBuffer>[],
): Promise<boolean> {
  const HMAC = { name: 'HMAC', hash: 'SHA-256' }
  const given = signatures.slice(0, SIGNATURES_MAX).flatMap((one) => {
    const [, base64] = /^v1,([A-Za-z0-9+/]{43}=)$/.exec(one) ?? []
    return base64 === undefined ? [] : [bytesOfBase64(base64)]
  })
  for (const key of keys) {
    const imported = await crypto.subtle.importKey('raw', key, HMAC, false, ['verify'])
    for (const signature of given)
      if (await crypto.subtle.verify('HMAC', imported, signature, content)) return true
  }
  return false
}

function eventOf(body: string | Uint8Array): ThinEvent | FullEvent {
  let event: unknown
  try {
    event = JSON.parse(
      typeof body === 'string' ? body : new TextDecoder('utf-8', { fatal: true }).decode(body),
    )
  } catch (cause) {
    throw new BursarSignatureError('BODY', 'the body is not JSON', cause)
  }
  const { id, type, object } = (event ?? {}) as Partial<ThinEvent>
  if (typeof id !== 'string' || typeof type !== 'string' || object !== 'event')
    throw new BursarSignatureError('BODY', 'the body is not an event')
  return event as ThinEvent | FullEvent
}

/** Reads the bytes of a secret: `whsec_` and base64 of 24 to 64 bytes. The error does not quote the secret. */
function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  const base64 = secret.replace(/^whsec_/, '')
  if (/^[A-Za-z0-9+/]+={0,2}$/.test(base64) && base64.length % 4 === 0) {
    const key = bytesOfBase64(base64)
    if (key.length >= SECRET_BYTES_MIN && key.length <= SECRET_BYTES_MAX) return key
  }
  throw new TypeError('a signing secret is whsec_ and the base64 of 24 to 64 bytes')
}

const bytesOfBase64 = (base64: string) => Uint8Array.from(atob(base64), (byte) => byte.charCodeAt(0))

function bytesOf(prefix: string, body: string | Uint8Array): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder()
  const [first, second] = [encoder.encode(prefix), typeof body === 'string' ? encoder.encode(body) : body]
  const all = new Uint8Array(first.length + second.length)
  all.set(first)
  all.set(second, first.length)
  return all
}

/** Reads a header, whatever the case of its name. Refuses a header that came more than once. */
function headerOf(headers: HeadersLike, name: string): string {
  const values = isHeaders(headers)
    ? [headers.get(name)]
    : Object.entries(headers).flatMap(([key, value]) => (key.toLowerCase() === name ? value : []))
  const [value] = values
  if (values.length !== 1 || !value)
    throw new BursarSignatureError('HEADERS', `the request has no header ${name}, or more than one`)
  return value
}

const isHeaders = (headers: HeadersLike): headers is Headers => typeof headers.get === 'function'
