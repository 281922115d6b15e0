import type { FastifyInstance, FastifyRequest, onRequestHookHandler, RouteOptions } from 'fastify'
import { Type, type TObject, type TSchema } from 'typebox'
import { hookOf, type Authenticate, type Standing } from './authenticate.ts'
import type { Scope } from '../contract/scopes.ts'
import { problemResponses } from './openapi.ts'
import type { Operation, Request } from './operation.ts'
import { problem } from '../contract/problems.ts'
import type { Requests } from './requests.ts'
import type { Turns } from './turns.ts'
import { NAMED_EXAMPLES } from './validation.ts'

const NO_PARAMETERS = Type.Object({}, { additionalProperties: false })

/** Runs an operation with all that it can reach. */
export type Perform = (operation: Operation, request: Request) => Promise<unknown>

/** What stands before an operation. */
export interface Guards {
  requireScope: (scopes: readonly Scope[]) => Authenticate
  requests: Requests
  /** Of each client. */
  lists: Turns
  standing: Standing
}

/** Mounts an operation: bearer token, scope, schema, `run` (ARCHITECTURE, "How a request flows"). */
export function mount(
  app: FastifyInstance,
  { requireScope, requests, lists, standing }: Guards,
  perform: Perform,
  operation: Operation,
  baseUrl: string,
): void {
  const { method, url, scope, alternativeScope, params, query, body, reply, example } = operation
  const commaParameters = Object.entries(query?.properties ?? {})
    .filter(([, schema]) => (schema as { commas?: boolean }).commas)
    .map(([name]) => name)

  const isList = query !== undefined && 'page_cursor' in query.properties
  const scopes = alternativeScope === undefined ? [scope] : [scope, alternativeScope]
  const takesNoBody = method === 'POST' && body === undefined
  const late = () => problem.unavailable(lateDetail(operation))

  const route: RouteOptions = {
    method,
    url,
    schema: {
      operationId: operationIdOf(operation),
      tags: [operation.tag],
      summary: operation.summary,
      ...(operation.description && { description: operation.description }),
      security: scopes.map((one) => ({ oauth2: [one] })),
      ...(params && { params: shared(app, withExample(params, example?.params)) }),
      querystring: shared(app, withExample(query ?? NO_PARAMETERS, example?.query)),
      ...(body && { body: shared(app, { ...body, [NAMED_EXAMPLES]: namedExamples(example?.bodies) }) }),
      response: {
        200: { description: 'Success', ...shared(app, reply) },
        ...problemResponses(operation, baseUrl),
      },
    },
    onRequest: [
      requests.refuseWhenFull,
      hookOf(requireScope(scopes)),
      ...(operation.takesMoney ? [requireKnown(standing)] : []),
      ...(method === 'DELETE' && body === undefined ? [ignoreBody] : []),
      ...(takesNoBody ? [ignoreTypeOfNothing] : []),
    ],
    ...(takesNoBody && { preHandler: requireEmptyBody }),
    ...(commaParameters.length > 0 && { preValidation: splitCommas(commaParameters) }),
    ...(method === 'POST' && requests.noteRecord && { preSerialization: requests.noteRecord }),
    config: { counts: 'operation' },
    handler: ({ params, query, body, caller }, reply) => {
      const work = () =>
        perform(operation, {
          params,
          query,
          body,
          customerId: caller.customerId,
          clientId: caller.clientId,
          scopes: caller.scopes,
          requireCaller: () => standing.requireEnabled(caller),
        } as never)
      if (!isList) return requests.run(work, late)
      const turn = () => lists.take(`${caller.customerId} ${caller.clientId}`, reply)
      return requests.run(() => turn().then(work), late)
    },
  }
  app.route(route)
}

/** Refuses a request while it is not known which clients are disabled. */
const requireKnown =
  (standing: Standing): onRequestHookHandler =>
  (_request, _reply, done) => {
    standing.requireKnown()
    done()
  }

/** What a client can do whose request took too long. */
function lateDetail({ method, body }: Operation): string {
  if (method === 'GET') return 'it took too long; try again'
  return body !== undefined && 'ref_id' in body.properties
    ? 'it took too long; whether it was done is not known: repeat it with the same ref_id, which tells'
    : 'it took too long; whether it was done is not known'
}

const operationIdOf = ({ summary }: Operation) =>
  summary.replaceAll(' ', '').replace(/^./, (first) => first.toLowerCase())

/**
 * Parameters with the operation's example values, and no others: what a parameter has for an example is what the API
 * reference sends.
 */
function withExample(schema: TObject, values: object = {}): TObject {
  const example = new Map<string, unknown>(Object.entries(values))
  const properties = Object.entries(schema.properties).map(([name, property]) => [
    name,
    { ...property, examples: example.has(name) ? [example.get(name)] : undefined },
  ])
  return { ...schema, properties: Object.fromEntries(properties) as TObject['properties'] }
}

/** The bodies of an example as OpenAPI names them: the key in the document's own spelling, the summary for people. */
const namedExamples = (bodies: Record<string, unknown> = {}) =>
  Object.fromEntries(
    Object.entries(bodies).map(([summary, value]) => [
      summary.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-'),
      { summary, value },
    ]),
  )

/** What takes no body ignores one, as a GET does: some clients send a content type with every request. */
async function ignoreBody({ headers }: FastifyRequest): Promise<void> {
  for (const name of ['content-type', 'content-length', 'transfer-encoding']) delete headers[name]
}

/** Some clients send a content type with every POST: without a body, it says nothing. */
async function ignoreTypeOfNothing({ headers }: FastifyRequest): Promise<void> {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  if (length === '0' && encoding === undefined) delete headers['content-type']
}

/** A POST that takes no body may have an empty object, and nothing that would be ignored. */
async function requireEmptyBody({ body }: FastifyRequest): Promise<void> {
  if (body === undefined) return
  if (typeof body === 'object' && body !== null && !Array.isArray(body) && Object.keys(body).length === 0)
    return
  throw problem.badRequest('the body must be empty, or an empty JSON object')
}

/** `status=A,B` is `status=A&status=B` where values cannot hold a comma. */
function splitCommas(names: string[]) {
  return async (request: FastifyRequest) => {
    const query = request.query as Record<string, string | string[] | undefined>
    for (const name of names) {
      const value = query[name]
      if (value !== undefined) query[name] = [value].flat().flatMap((part) => part.split(','))
    }
  }
}

/** The schema with every named one inside it (`$id`) registered once and referred to, as OpenAPI shows it. */
function shared(app: FastifyInstance, schema: TSchema): object {
  if (Array.isArray(schema)) return schema.map((item) => shared(app, item as TSchema))
  if (typeof schema !== 'object' || schema === null) return schema
  const { $id, ...rest } = schema as { $id?: string }
  const inner = Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [
      key,
      key === 'examples' || key === NAMED_EXAMPLES ? value : shared(app, value as TSchema),
    ]),
  )
  if ($id === undefined) return inner
  if (!($id in app.getSchemas())) app.addSchema({ $id, ...inner })
  return { $ref: `${$id}#` }
}
