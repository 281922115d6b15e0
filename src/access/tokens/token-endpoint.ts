import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Problem } from '../../contract/problems.ts'
import { isWithoutOperations } from '../../contract/scopes.ts'
import { Failures } from '../../http/failures.ts'
import type { RateLimit } from '../../http/rate-limit.ts'
import type { AccessTokens } from './access-tokens.ts'
import type { ApiClient, ApiClients } from './find-api-client.ts'

export const TOKEN_PATH = '/oauth2/token'
export const GRANT_TYPE = 'client_credentials'

const FORMS = ['application/x-www-form-urlencoded', 'multipart/form-data'] // some clients send the latter
/** Maximum size of a form. A form with every scope has 1 KiB. */
const FORM_BYTES_MAX = 8 * 1024
const NOT_STORED = { 'cache-control': 'no-store', pragma: 'no-cache' }

/**
 * POST /oauth2/token: the client credentials grant (RFC 6749, 4.4), with the client's id and secret in the
 * Authorization header or in the form (2.3.1). Its errors are those of OAuth (5.2).
 */
export async function tokenEndpoint(
  app: FastifyInstance,
  {
    clients,
    tokens,
    failuresPerMinute,
    requireRateOfToken,
  }: {
    clients: ApiClients
    tokens: AccessTokens
    failuresPerMinute: number
    requireRateOfToken: RateLimit['requireRateOfToken']
  },
): Promise<void> {
  const failures = new Failures(failuresPerMinute)
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser(FORMS, { parseAs: 'buffer' }, parseForm)
  app.setErrorHandler(refuse)

  const options = {
    config: { counts: 'token request' },
    bodyLimit: FORM_BYTES_MAX,
    schema: { hide: true },
  } as const
  app.post<{ Body: FormData | undefined }>(TOKEN_PATH, options, async (request, reply) => {
    const form = parametersOf(request.body)
    const { id, secret } = credentialsOf(request.headers.authorization, form)
    const client = await clients.find(id, secret)
    if (client === undefined) {
      const waitSeconds = failures.count(request.ip, id)
      if (waitSeconds > 0) throw new TooManyFailures(waitSeconds)
      throw new Refusal('invalid_client', 'there is no enabled client with this id and secret')
    }
    if (form.grant_type === undefined) throw new Refusal('invalid_request', 'grant_type is missing')
    if (form.grant_type !== GRANT_TYPE)
      throw new Refusal('unsupported_grant_type', `grant_type must be ${GRANT_TYPE}`)
    const scopes = grant(client, form.scope)
    const holder = { customerId: client.customer_id, clientId: client.id }
    requireRateOfToken(holder)
    const { token, ttlSeconds } = await tokens.issue({ ...holder, scopes })
    // Not awaited: a token does not wait for the lock of a row.
    clients
      .noteUse(client)
      .catch((err: unknown) => request.log.warn({ err }, 'the use of an API client was not noted'))
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
    config: { allowed: ['POST'] },
    onRequest: async (request, reply) => {
      reply.header('allow', 'POST')
      throw new Refusal('invalid_request', `the method must be POST, not ${request.method}`, 405)
    },
    handler: () => undefined,
  })
}

/** An error response of the token endpoint (RFC 6749, 5.2). */
class Refusal extends Error {
  readonly code:
    | 'invalid_request'
    | 'invalid_client'
    | 'unsupported_grant_type'
    | 'invalid_scope'
    | 'temporarily_unavailable'
  readonly status: number

  constructor(code: Refusal['code'], description: string, status = code === 'invalid_client' ? 401 : 400) {
    super(description)
    this.code = code
    this.status = status
  }
}

/** Too many requests with a wrong id or secret, for which RFC 6749 has no error code. */
class TooManyFailures extends Refusal {
  readonly waitSeconds: number

  constructor(waitSeconds: number) {
    super('temporarily_unavailable', 'too many requests with a wrong id or secret; try again later', 429)
    this.waitSeconds = waitSeconds
  }
}

function refuse(error: FastifyError | Refusal, _request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (error instanceof Problem) reply.headers(error.headers)
  const { code, status, message } = error instanceof Refusal ? error : describeUnreadable(error)
  if (error instanceof TooManyFailures) reply.header('retry-after', String(Math.ceil(error.waitSeconds)))
  if (status === 401) reply.header('www-authenticate', 'Basic realm="bursar"')
  return reply.status(status).headers(NOT_STORED).send({ error: code, error_description: message })
}

/** Describes why the form cannot be read. Rethrows a failure of the service, for its own error handler. */
function describeUnreadable(error: FastifyError): Refusal {
  if (error instanceof Problem && error.slug !== 'internal-error')
    return new Refusal('temporarily_unavailable', error.detail, error.status)
  const { statusCode = 500 } = error
  if (statusCode >= 500) throw error
  if (statusCode === 413) return new Refusal('invalid_request', 'the form is too large', 413)
  return new Refusal('invalid_request', 'the body must be a form: application/x-www-form-urlencoded')
}

/** Parses a form of either type with the parser of the platform. */
async function parseForm(request: FastifyRequest, body: Buffer): Promise<FormData> {
  const headers = { 'content-type': request.headers['content-type']! }
  return new Response(body, { headers }).formData().catch(() => {
    throw new Refusal('invalid_request', 'the form cannot be read')
  })
}

type Form = Partial<Record<string, string>>

/** Reads the parameters. Each may be given once; a parameter without a value counts as absent (RFC 6749, 3.2). */
function parametersOf(form: FormData | undefined): Form {
  const parameters: Form = {}
  const given = new Set<string>()
  for (const [name, value] of form ?? []) {
    if (typeof value !== 'string') throw new Refusal('invalid_request', 'a file is not a parameter')
    if (given.has(name)) throw new Refusal('invalid_request', 'a parameter is given more than once')
    given.add(name)
    if (value !== '') parameters[name] = value
  }
  return parameters
}

function credentialsOf(authorization: string | undefined, form: Form): { id: string; secret: string } {
  if (authorization !== undefined && form.client_secret !== undefined)
    throw new Refusal(
      'invalid_request',
      'the client must authenticate in one way: in the header or in the form',
    )
  const [id, secret] =
    authorization === undefined ? [form.client_id, form.client_secret] : readBasic(authorization)
  if (id === undefined || secret === undefined)
    throw new Refusal('invalid_client', 'the client must authenticate with its client_id and client_secret')
  if (form.client_id !== undefined && form.client_id !== id)
    throw new Refusal('invalid_request', 'the header and the form name different clients')
  return { id, secret }
}

/** Reads the id and the secret of a Basic header, both form-encoded (RFC 6749, 2.3.1). Empty when it is malformed. */
function readBasic(authorization: string): string[] {
  const [, encoded = ''] = /^Basic +(\S+)$/i.exec(authorization) ?? []
  const [, ...parts] = /^([^:]*):(.*)$/s.exec(Buffer.from(encoded, 'base64').toString()) ?? []
  try {
    return parts.map((part) => decodeURIComponent(part.replaceAll('+', ' ')))
  } catch {
    return []
  }
}

/**
 * Returns the requested scopes, or all scopes of the client when none are requested. A requested scope that no operation
 * needs is left out if the client lacks it: programs for other platforms ask for every scope that they know.
 */
function grant({ scopes }: ApiClient, scope: string | undefined): string[] {
  if (scope === undefined) return scopes
  const asked = [...new Set(scope.split(' ').filter((name) => name !== ''))]
  const granted = asked.filter((name) => scopes.includes(name))
  const missing = asked.filter((name) => !scopes.includes(name))
  if (granted.length === 0 || !missing.every(isWithoutOperations)) {
    const fault =
      missing.length === 0
        ? 'scope is empty'
        : `the client does not have ${missing.slice(0, SCOPES_NAMED_MAX).map(printable).join(' ')}`
    throw new Refusal('invalid_scope', `${fault}; it may have, separated by spaces: ${scopes.join(' ')}`)
  }
  return granted
}

const SCOPES_NAMED_MAX = 5
/** A scope that an error description may contain: no quotes, backslashes or other alphabets (RFC 6749, 5.2). */
const printable = (scope: string) => scope.slice(0, 100).replaceAll(/[^\x21\x23-\x5B\x5D-\x7E]/g, '?')
