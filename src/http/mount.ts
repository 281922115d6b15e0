import type { FastifyInstance, FastifyRequest, RouteOptions } from 'fastify'
import { Type, type TSchema } from 'typebox'
import type { authenticator } from './authenticate.ts'
import type { Context, Operation } from './operation.ts'
import { problemResponses } from './openapi.ts'

const NO_PARAMETERS = Type.Object({}, { additionalProperties: false })

/** Mounts an operation: bearer token, scope, schema, `run` (design section 2, "Data flows one way"). */
export function mount(
  app: FastifyInstance,
  context: Context,
  requireScope: ReturnType<typeof authenticator>,
  operation: Operation,
): void {
  const { method, url, scope, params, query, body, reply, run } = operation
  const commaParameters = Object.entries(query?.properties ?? {})
    .filter(([, schema]) => (schema as { commas?: boolean }).commas)
    .map(([name]) => name)

  const route: RouteOptions = {
    method,
    url,
    schema: {
      operationId: operationIdOf(operation),
      tags: [operation.tag],
      summary: operation.summary,
      ...(operation.description && { description: operation.description }),
      security: [{ oauth2: [scope] }],
      ...(params && { params: shared(app, params) }),
      querystring: shared(app, query ?? NO_PARAMETERS),
      ...(body && {
        body: shared(app, operation.example ? { ...body, examples: [operation.example] } : body),
      }),
      response: { 200: { description: 'Success', ...shared(app, reply) }, ...problemResponses(operation) },
    },
    onRequest: [requireScope(scope), ...(method === 'DELETE' && body === undefined ? [ignoreBody] : [])],
    ...(commaParameters.length > 0 && { preValidation: splitCommas(commaParameters) }),
    // Written out: spreading the context took 2 % of a request.
    handler: ({ params, query, body, caller }) =>
      run({
        params,
        query,
        body,
        customerId: caller.customerId,
        clientId: caller.clientId,
        db: context.db,
        ledger: context.ledger,
        networks: context.networks,
        settings: context.settings,
        baseUrl: context.baseUrl,
      } as never),
  }
  app.route(route)
}

const operationIdOf = ({ summary }: Operation) =>
  summary.replaceAll(' ', '').replace(/^./, (first) => first.toLowerCase())

/** What takes no body ignores one, as a GET does: some clients send a content type with every request. */
async function ignoreBody({ headers }: FastifyRequest): Promise<void> {
  for (const name of ['content-type', 'content-length', 'transfer-encoding']) delete headers[name]
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
      key === 'examples' ? value : shared(app, value as TSchema),
    ]),
  )
  if ($id === undefined) return inner
  if (!($id in app.getSchemas())) app.addSchema({ $id, ...inner })
  return { $ref: `${$id}#` }
}
