import { Readable } from 'node:stream'
import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  onRequestHookHandler,
  preHandlerHookHandler,
  preValidationHookHandler,
  RouteHandlerMethod,
  RouteOptions,
} from 'fastify'
import { Type, type TArray, type TObject, type TSchema } from 'typebox'
import { comparableOf } from './differing-members.ts'
import { hookOf, type CallerStanding } from './authenticate.ts'
import { dropUnknown, isLenient, membersOf } from './body-members.ts'
import type { FailNext } from './fail-next.ts'
import { keyHooks } from './idempotency-key.ts'
import { problemResponses } from './openapi.ts'
import type { Caller, Operation, Request } from './operation.ts'
import { problem } from '../contract/problems.ts'
import { isReadScope } from '../contract/roles.ts'
import type { Scope } from '../contract/scopes.ts'
import { itemProblems } from './errors.ts'
import { ONE_BY_ONE_BODY_LIMIT, type OneByOneLimit } from './one-by-one.ts'
import { queryReader } from './query-spelling.ts'
import type { RateLimit } from './rate-limit.ts'
import type { Requests } from './requests.ts'
import type { Shares } from './shares.ts'
import { wholePages, type PagePart, type ReadPart, type WholePages } from './whole-page.ts'
import { NAMED_EXAMPLES, oneByOneMember } from './validation.ts'
import { Closed } from '../contract/fields.ts'

/** The header in the API document. `keyHooks` reads the header itself. */
const KEY_HEADER = Type.Object({
  'Idempotency-Key': Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 100,
      description: 'The `ref_id`, where the body has none. A repeat is a 409 with the existing record.',
    }),
  ),
})
const NO_PARAMETERS = Closed({})

/** The longest body in bytes: a withdrawal with all its members takes 8 KiB, in Chinese too. One with lists or parts takes more. */
export const bodyLimitOf = ({ properties = {} }: Partial<TObject>): number =>
  Object.entries(properties).some(([name, { type }]: [string, { type?: string }]) => {
    return name !== 'metadata' && (type === 'array' || type === 'object')
  })
    ? 64 * 1024
    : 16 * 1024

/** Runs an operation with its context. */
export type Perform = (operation: Operation, request: Request) => Promise<unknown>

/** The checks and limits in front of every operation. */
export interface Guards {
  rateLimit: RateLimit
  /** Limits the requests that are answered item by item. */
  oneByOne: OneByOneLimit
  /** Limits the requests of each address to public operations. */
  limitAddress: onRequestHookHandler
  requests: Requests
  /** Limits the lists of each customer until their answers are read, and those that keep a copy of a large page. */
  turns: { lists: Shares; copied: Shares }
  standing: CallerStanding
  /** The failures that tests of a sandbox ask for; undefined in live mode. */
  failNext: FailNext | undefined
}

/** Mounts an operation: bearer token, scope, schema, `run` (ARCHITECTURE, "How a request flows"). */
export function mount(
  app: FastifyInstance,
  guards: Guards,
  perform: Perform,
  operation: Operation,
  baseUrl: string,
): void {
  const { rateLimit, limitAddress, oneByOne, requests, standing, failNext } = guards
  const { method, url, scope, alternativeScope, params, query, body, reply, example, problems } = operation
  const manyIn = body === undefined ? undefined : oneByOneMember(body)
  const scopes = [scope ?? [], alternativeScope ?? []].flat()
  const changing = scopes.filter((scope) => !isReadScope(scope))
  const keys = keyHooks(operation)
  const takesNoBody = (method === 'POST' || method === 'PUT') && body === undefined

  const route: RouteOptions = {
    method,
    url,
    schema: {
      hide: operation.forOperators,
      operationId: operationIdOf(operation),
      tags: [operation.tag],
      summary: operation.summary,
      ...(operation.description && { description: operation.description }),
      security: scopes.map((scope) => ({ oauth2: [scope] })),
      ...(params && { params: shared(app, withExample(params, example?.params)) }),
      querystring: shared(app, withExample(query ?? NO_PARAMETERS, example?.query)),
      ...(keys.preValidation && { headers: KEY_HEADER }),
      ...(body && { body: shared(app, { ...body, [NAMED_EXAMPLES]: namedExamples(example?.bodies) }) }),
      response: responsesOf(app, operation, baseUrl),
    },
    onRequest: hooks(
      requests.refuseWhenFull,
      scope === null ? limitAddress : hookOf(rateLimit.requireScope(scopes)),
      scope !== null && failNext?.onRequest,
      method !== 'GET' && changing.length < scopes.length && requireChangingScope(changing),
      operation.takesMoney && requireKnown(standing),
      method === 'DELETE' && body === undefined && ignoreBody,
      takesNoBody && ignoreTypeOfNothing,
      keys.onRequest,
      manyIn !== undefined && oneByOne.admit,
    ),
    preValidation: hooks(keys.preValidation, readRequest(query ?? NO_PARAMETERS, body)),
    bodyLimit:
      operation.bodyLimit ?? (manyIn === undefined ? bodyLimitOf(body ?? {}) : ONE_BY_ONE_BODY_LIMIT),
    ...(manyIn !== undefined && {
      preHandler: requireRateOfItems(manyIn, rateLimit),
    }),
    ...(takesNoBody && { preHandler: requireEmptyBody }),
    // A request without a token counts as a request for a page (requests.ts).
    config: {
      ...(scope === null ? { isPublic: true } : { counts: 'operation' as const }),
      ...(problems?.includes('already-exists') && { comparable: comparableOf(body, reply) }),
      ...(manyIn !== undefined && {
        comparable: comparableOf(itemsOf(body!, manyIn), itemsOf(reply as TObject, 'items')),
      }),
    },
    handler: handlerOf(app, guards, perform, operation, baseUrl),
  }
  app.route(route)
}

/** The answers of an operation, for the API document and the serialiser. */
const responsesOf = (app: FastifyInstance, operation: Operation, baseUrl: string): object => ({
  200: {
    description: 'Success',
    ...(operation.replyHeaders && { headers: operation.replyHeaders.properties }),
    ...shared(app, operation.reply),
  },
  ...problemResponses(operation, baseUrl),
})

/** Returns those of the hooks that the operation needs, in this order. */
const hooks = <T>(...given: unknown[]): T[] => given.filter((hook) => typeof hook === 'function') as T[]

function handlerOf(
  app: FastifyInstance,
  { requests, turns, standing }: Guards,
  perform: Perform,
  operation: Operation,
  baseUrl: string,
): RouteHandlerMethod {
  const { url, query: parameters, body: asked, reply: answered } = operation
  const isOneByOne = asked !== undefined && oneByOneMember(asked) !== undefined
  const late = () => problem.unavailable(lateDetail(operation))
  const pages =
    parameters !== undefined && 'page_cursor' in parameters.properties
      ? wholePages(app, answered as TObject, url, (schema) => shared(app, schema))
      : undefined
  const performFor = (
    request: FastifyRequest,
    reply: FastifyReply,
    query: unknown,
    performed = operation,
  ) => {
    // oxlint-disable-next-line typescript/no-useless-default-assignment -- a public operation has no caller
    const { params, body, caller = NOBODY } = request
    return perform(performed, {
      params,
      query,
      body,
      customerId: caller.customerId,
      clientId: caller.clientId,
      scopes: caller.scopes,
      origin: {
        actor: caller.actor,
        request_id: request.id,
        ip: request.ip,
        traceparent: request.span?.traceparent,
      },
      requireCaller: () => standing.requireEnabled(caller),
      answerWith: (headers: Record<string, string>) => void reply.headers(headers),
      problemOf: isOneByOne ? itemProblems(request, baseUrl) : undefined,
      asker: reply.raw,
    } as never)
  }
  const answerInForm = async (form: Form, request: FastifyRequest, reply: FastifyReply) => {
    const [type, run] = form
    const work = async () => {
      await turns.lists.takeUntilAnswered(request.caller.customerId, reply.raw)
      return performFor(request, reply, request.query, { ...operation, run })
    }
    const lines = (await requests.run(request, work, late)) as AsyncIterable<string>
    return reply.header('vary', 'accept').type(`${type}; charset=utf-8`).send(Readable.from(lines))
  }
  return (request, reply) => {
    const form = formOf(operation, request.headers.accept)
    if (form !== undefined) return answerInForm(form, request, reply)
    if (pages === undefined)
      return requests.run(request, () => performFor(request, reply, request.query), late)
    const run = (query: unknown, before?: () => Promise<void>) =>
      requests.run(
        request,
        async () => {
          await before?.()
          return performFor(request, reply, query)
        },
        late,
      )
    return answerPage(pages, { request, reply, turns, run })
  }
}

type Form = [type: string, run: Operation['run']]

/** The form that a client accepts before JSON; undefined: JSON. */
function formOf({ forms = {} }: Operation, accept = ''): Form | undefined {
  const types = accept.split(',').map((range) => range.split(';')[0]!.trim().toLowerCase())
  const type = types.find((type) => type === 'application/json' || Object.hasOwn(forms, type))
  return type === undefined || !Object.hasOwn(forms, type) ? undefined : [type, forms[type]!]
}

/** Answers the page of a list: in one part, or as a stream of its parts. */
async function answerPage(
  pages: WholePages,
  {
    // oxlint-disable-next-line typescript/no-useless-default-assignment -- a public operation has no caller
    request: { query, caller = NOBODY },
    reply,
    turns,
    run,
  }: {
    request: FastifyRequest
    reply: FastifyReply
    turns: Guards['turns']
    run: (query: unknown, before?: () => Promise<void>) => Promise<unknown>
  },
): Promise<unknown> {
  const turn = () => turns.lists.takeUntilAnswered(caller.customerId, reply.raw)
  const first = (await run(query, turn)) as PagePart
  if (first.left === undefined) return first
  if (pages.copied) await turns.copied.takeUntilAnswered(caller.customerId, reply.raw)
  const readOn: ReadPart = (limit, page_cursor) =>
    run({ ...(query as object), limit, page_cursor }) as Promise<PagePart>
  return reply.type('application/json; charset=utf-8').send(pages.write(first, readOn))
}

/** The schema of the items of a list in a body or reply. */
const itemsOf = ({ properties }: TObject, member: string) => (properties[member] as TArray<TObject>).items

const NOBODY: Caller = { customerId: '', clientId: '', scopes: [], actor: { type: 'API_CLIENT', id: '' } }

/**
 * Refuses an operator whose token has only a read scope. An API client may change records of a sandbox with one, as on
 * other platforms; a VIEWER changes nothing.
 */
const requireChangingScope =
  (scopes: readonly Scope[]): onRequestHookHandler =>
  ({ caller }, _reply, done) => {
    if (caller.actor.type === 'OPERATOR' && !scopes.some((scope) => caller.scopes.includes(scope)))
      throw problem.missingScope(scopes, caller.scopes)
    done()
  }

/** Refuses a request while the list of disabled clients is too old and cannot be read. */
const requireKnown =
  (standing: CallerStanding): onRequestHookHandler =>
  ({ caller }, _reply, done) => {
    const reading = standing.requireKnown(caller)
    if (reading === undefined) done()
    else reading.then(() => done(), done)
  }

/** Counts the items of a request against the rate of its client. */
const requireRateOfItems =
  (member: string, { requireRateOf }: RateLimit): preHandlerHookHandler =>
  (request, _reply, done) => {
    requireRateOf(request, (request.body as Record<string, unknown[]>)[member]!.length)
    done()
  }

/** The detail for a request that timed out: what the client can do. */
function lateDetail({ method, body }: Operation): string {
  if (method === 'GET') return 'timed out; try again'
  if (body !== undefined && oneByOneMember(body) !== undefined)
    return 'timed out, outcome unknown; retry with the same ref_ids to find out'
  return body !== undefined && 'ref_id' in body.properties
    ? 'timed out, outcome unknown; retry with the same ref_id to find out'
    : 'timed out, outcome unknown'
}

/** `List API Credentials` is listApiCredentials: generators would make `list_a_p_i_credentials` of capitals. */
const operationIdOf = ({ summary }: Operation) =>
  summary.toLowerCase().replaceAll(/ (.)/g, (_, letter: string) => letter.toUpperCase())

/**
 * Adds the operation's example values to its parameters and removes all other examples, because the API reference sends
 * every parameter that has an example.
 */
function withExample(schema: TObject, values: object = {}): TObject {
  const example = new Map<string, unknown>(Object.entries(values))
  const properties = Object.entries(schema.properties).map(([name, property]) => [
    name,
    { ...property, examples: example.has(name) ? [example.get(name)] : undefined },
  ])
  return { ...schema, properties: Object.fromEntries(properties) as TObject['properties'] }
}

/** Converts example bodies to OpenAPI's named examples: the key is made from the summary. */
const namedExamples = (bodies: Record<string, unknown> = {}) =>
  Object.fromEntries(
    Object.entries(bodies).map(([summary, value]) => [
      summary.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-'),
      { summary, value },
    ]),
  )

/** A DELETE without a body schema ignores the body, as a GET does: some clients send a content type with every request. */
async function ignoreBody({ headers }: FastifyRequest): Promise<void> {
  for (const name of ['content-type', 'content-length', 'transfer-encoding']) delete headers[name]
}

/** Some clients send a content type with every POST and PUT; without a body it is ignored. */
async function ignoreTypeOfNothing({ headers }: FastifyRequest): Promise<void> {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers
  if (length === '0' && encoding === undefined) delete headers['content-type']
}

/** A POST or PUT without a body schema accepts no body or an empty object; it never ignores content. */
async function requireEmptyBody({ body }: FastifyRequest): Promise<void> {
  if (body === undefined) return
  if (typeof body === 'object' && body !== null && !Array.isArray(body) && Object.keys(body).length === 0)
    return
  throw problem.badRequest('the body must be empty, or an empty JSON object', [])
}

/** Reads the query as clients spell it. `Prefer: handling=lenient` (RFC 7240) allows unknown members and parameters. */
function readRequest(query: TObject, body: TObject | undefined): preValidationHookHandler {
  const readQuery = queryReader(query)
  const members = body && membersOf(body)
  return (request, reply, done) => {
    const lenient = isLenient(request.headers.prefer)
    readQuery(request.query as Record<string, unknown>, lenient)
    if (lenient) {
      if (members !== undefined) dropUnknown(request.body, members)
      reply.header('preference-applied', 'handling=lenient')
    }
    done()
  }
}

/** Registers every named schema (`$id`) inside a schema once and replaces it by a reference, as OpenAPI does. */
function shared(app: FastifyInstance, schema: TSchema): object {
  if (Array.isArray(schema)) return schema.map((item) => shared(app, item as TSchema))
  if (typeof schema !== 'object' || schema === null) return schema
  const { $id, ...rest } = schema as { $id?: string }
  if ($id !== undefined && app.getSchema($id) !== undefined) return { $ref: `${$id}#` }
  const inner = Object.fromEntries(
    Object.entries(rest).map(([key, value]) => [
      key,
      key === 'examples' || key === NAMED_EXAMPLES ? value : shared(app, value as TSchema),
    ]),
  )
  if ($id === undefined) return inner
  app.addSchema({ $id, ...inner })
  return { $ref: `${$id}#` }
}
