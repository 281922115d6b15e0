import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Database } from '../db/database.ts'
import type { AccessTokens } from './access-tokens.ts'
import { findApiClient, type ApiClient } from './api-clients.ts'

export const TOKEN_PATH = '/oauth2/token'
export const GRANT_TYPE = 'client_credentials'

const FORMS = ['application/x-www-form-urlencoded', 'multipart/form-data'] // the latter by some clients' habit
const NOT_STORED = { 'cache-control': 'no-store', pragma: 'no-cache' }

/**
 * POST /oauth2/token: the client credentials grant (RFC 6749, 4.4), with the client's id and secret in the
 * Authorization header or in the form (2.3.1). What it refuses, it refuses in OAuth's own words (5.2).
 */
export async function tokenEndpoint(
  app: FastifyInstance,
  { db, tokens }: { db: Database; tokens: AccessTokens },
): Promise<void> {
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser(FORMS, { parseAs: 'buffer' }, parseForm)
  app.setErrorHandler(refuse)

  app.post<{ Body: FormData | undefined }>(TOKEN_PATH, { schema: { hide: true } }, async (request, reply) => {
    const form = parametersOf(request.body)
    const client = await authenticate(db, request.headers.authorization, form)
    if (form.grant_type === undefined) throw new Refusal('invalid_request', 'grant_type is missing')
    if (form.grant_type !== GRANT_TYPE)
      throw new Refusal('unsupported_grant_type', `grant_type must be ${GRANT_TYPE}`)
    const scopes = grant(client, form.scope)
    const { token, ttlSeconds } = await tokens.issue({
      customerId: client.customer_id,
      clientId: client.id,
      scopes,
    })
    return reply.headers(NOT_STORED).send({
      access_token: token,
      token_type: 'Bearer',
      expires_in: ttlSeconds,
      scope: scopes.join(' '),
    })
  })

  app.route({
    method: app.supportedMethods.filter((method) => method !== 'POST'),
    url: TOKEN_PATH,
    schema: { hide: true },
    onRequest: async (request, reply) => {
      reply.header('allow', 'POST')
      throw new Refusal('invalid_request', `the method must be POST, not ${request.method}`, 405)
    },
    handler: () => undefined,
  })
}

/** A refusal on its way to the client (RFC 6749, 5.2). */
class Refusal extends Error {
  readonly code: 'invalid_request' | 'invalid_client' | 'unsupported_grant_type' | 'invalid_scope'
  readonly status: number

  constructor(code: Refusal['code'], description: string, status = code === 'invalid_client' ? 401 : 400) {
    super(description)
    this.code = code
    this.status = status
  }
}

function refuse(error: FastifyError | Refusal, _request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const { code, status, message } = error instanceof Refusal ? error : unreadable(error)
  if (status === 401) reply.header('www-authenticate', 'Basic realm="bursar"')
  return reply.status(status).headers(NOT_STORED).send({ error: code, error_description: message })
}

/** Why the form could not be read. What is no fault of the client's is left to the service's error handler. */
function unreadable(error: FastifyError): Refusal {
  const { statusCode = 500 } = error
  if (statusCode >= 500) throw error
  if (statusCode === 413) return new Refusal('invalid_request', 'the form is too large', 413)
  return new Refusal('invalid_request', 'the body must be a form: application/x-www-form-urlencoded')
}

/** The platform's own reader of forms; it knows both kinds. */
async function parseForm(request: FastifyRequest, body: Buffer): Promise<FormData> {
  const headers = { 'content-type': request.headers['content-type']! }
  return new Response(body, { headers }).formData().catch(() => {
    throw new Refusal('invalid_request', 'the form cannot be read')
  })
}

type Form = Partial<Record<string, string>>

/** The parameters, each given once; those without a value count as absent (RFC 6749, 3.2). */
function parametersOf(form: FormData | undefined): Form {
  const parameters: Form = {}
  for (const [name, value] of form ?? []) {
    if (typeof value !== 'string') throw new Refusal('invalid_request', 'a file is not a parameter')
    if (Object.hasOwn(parameters, name))
      throw new Refusal('invalid_request', 'a parameter is given more than once')
    if (value !== '') parameters[name] = value
  }
  return parameters
}

async function authenticate(db: Database, authorization: string | undefined, form: Form): Promise<ApiClient> {
  if (authorization !== undefined && form.client_secret !== undefined)
    throw new Refusal(
      'invalid_request',
      'the client must authenticate in one way: in the header or in the form',
    )
  const [id, secret] =
    authorization === undefined ? [form.client_id, form.client_secret] : readBasic(authorization)
  if (id === undefined || secret === undefined)
    throw new Refusal('invalid_client', 'the client must authenticate with its client_id and client_secret')
  const client = await findApiClient(db, id, secret)
  if (client === undefined)
    throw new Refusal('invalid_client', 'there is no enabled client with this id and secret')
  return client
}

/** The id and the secret of a Basic header, each of them form-encoded before (RFC 6749, 2.3.1). */
function readBasic(authorization: string): string[] {
  const [, encoded = ''] = /^Basic +(\S+)$/i.exec(authorization) ?? []
  const [, ...parts] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? []
  try {
    return parts.map((part) => decodeURIComponent(part.replaceAll('+', ' ')))
  } catch {
    return []
  }
}

/** The scopes asked for, or all that the client has. */
function grant({ scopes }: ApiClient, scope: string | undefined): string[] {
  if (scope === undefined) return scopes
  const asked = [...new Set(scope.split(' ').filter((name) => name !== ''))]
  if (asked.length === 0 || asked.some((name) => !scopes.includes(name)))
    throw new Refusal('invalid_scope', `the client may have, separated by spaces: ${scopes.join(' ')}`)
  return asked
}
