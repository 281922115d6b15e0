import type { FastifyRequest, onRequestHookHandler, preValidationHookHandler } from 'fastify'
import { problem } from '../contract/problems.ts'
import { memberWithRefId } from './differing-members.ts'
import type { Operation } from './operation.ts'

/**
 * The header `Idempotency-Key` (API behaviour, Retries and ref_id): the `ref_id` of a request whose body has none.
 * `X-Idempotency-Key` means the same. No operation that changes a record ignores the header.
 */
export interface KeyHooks {
  /** Refuses the header where a second request would do its work again. */
  onRequest?: onRequestHookHandler
  preValidation?: preValidationHookHandler
}

/** Returns the hooks of an operation; none where a second request changes nothing. */
export function keyHooks({
  method,
  body,
  repeats,
}: Pick<Operation, 'method' | 'body' | 'repeats'>): KeyHooks {
  if (method !== 'POST') return {}
  const properties = body?.properties ?? {}
  if ('ref_id' in properties) return { preValidation: fillRefId(undefined) }
  const inMember = memberWithRefId(properties)
  if (inMember !== undefined) return { preValidation: fillRefId(inMember) }
  return repeats === undefined || repeats === 'HARMLESS' ? {} : { onRequest: refuseKey(repeats) }
}

const refuseKey =
  (instead: string): onRequestHookHandler =>
  (request, _reply, done) =>
    done(
      keyOf(request) === undefined
        ? undefined
        : problem.badRequest(`this operation takes no Idempotency-Key: ${instead}`),
    )

const fillRefId =
  (inMember: string | undefined): preValidationHookHandler =>
  (request, _reply, done) => {
    const key = keyOf(request)
    if (key === undefined) return done()
    const record = inMember === undefined ? request.body : memberOf(request.body, inMember)
    // The schema refuses a body that is no object.
    if (typeof record !== 'object' || record === null) return done()
    const { ref_id } = record as { ref_id?: unknown }
    if (ref_id === undefined || ref_id === null) Object.assign(record, { ref_id: key })
    else if (ref_id !== key)
      return done(
        problem.badRequest(
          'Idempotency-Key and ref_id differ: send one of them, or the same in both',
          [inMember ?? [], 'ref_id'].flat(),
        ),
      )
    done()
  }

const memberOf = (body: unknown, name: string): unknown =>
  typeof body === 'object' && body !== null ? (body as Record<string, unknown>)[name] : undefined

/** Matches a string of a structured field (RFC 9651, 3.3.3), as the header's draft asks for. Most clients send no quotes. */
const QUOTED = /^"((?:[^"\\]|\\["\\])*)"$/
const PRINTABLE = /^[\x20-\x7e]*$/

const NAMES = ['idempotency-key', 'x-idempotency-key']
type Lines = FastifyRequest['raw']['headersDistinct']

/** Reads the key; undefined without one. Throws bad-request for text that is not printable ASCII, and for more than one key. */
function keyOf({ headers, raw }: FastifyRequest): string | undefined {
  const { 'idempotency-key': key, 'x-idempotency-key': other } = headers
  if (key === undefined && other === undefined) return undefined
  if (key !== undefined && other !== undefined && key !== other)
    throw problem.badRequest('Idempotency-Key and X-Idempotency-Key differ')
  const text = String(key ?? other)
  // Node joins repeated lines.
  if (NAMES.some((name) => (raw.headersDistinct as Lines | undefined)?.[name]?.[1] !== undefined))
    throw problem.badRequest('Idempotency-Key is given more than once')
  if (!PRINTABLE.test(text))
    throw problem.badRequest('Idempotency-Key must have printable ASCII characters only')
  return QUOTED.exec(text)?.[1]?.replaceAll(/\\(["\\])/g, '$1') ?? text
}
