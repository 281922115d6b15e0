import { readFileSync } from 'node:fs'
import { ROOT } from '../package.ts'

/** The parts of the API document that a collection has. */
interface Described {
  servers: { url: string }[]
  tags: { name: string; description?: string }[]
  paths: Record<string, Record<string, DescribedOperation>>
  components: { securitySchemes: { oauth2: { flows: { clientCredentials: { tokenUrl: string } } } } }
}
interface DescribedOperation {
  summary: string
  description?: string
  tags: string[]
  security: object[]
  parameters?: {
    in: string
    name: string
    description?: string
    required?: boolean
    example?: string | number | string[]
  }[]
  requestBody?: {
    content: { 'application/json': { examples?: Record<string, { summary: string; value: unknown }> } }
  }
}

/** Fetches a token before the first request, and again before it expires. */
const TOKEN_SCRIPT = readFileSync(new URL('docs-page/postman-token.js', ROOT), 'utf8')

/**
 * Writes an API document as a collection of Postman (v2.1), which Bruno and others read, too: a folder for each tag, each
 * request with its first example, and a script before each that fetches a token with `client_id` and `client_secret`, also
 * in a runner.
 */
export function asPostman(text: string): string {
  const { servers, tags, paths, components } = JSON.parse(text) as Described
  const base = servers[0]!.url
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  )
  const { tokenUrl } = components.securitySchemes.oauth2.flows.clientCredentials
  const exec = TOKEN_SCRIPT.replace('TOKEN_URL', tokenUrl.replace(base, '{{base_url}}')).split('\n')
  return JSON.stringify({
    info: { name: 'Bursar', schema: 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json' },
    auth: { type: 'bearer', bearer: variablesOf({ token: '{{access_token}}' }) },
    event: [{ listen: 'prerequest', script: { type: 'text/javascript', exec } }],
    variable: variablesOf({ base_url: base, client_id: '', client_secret: '', access_token: '' }),
    item: tags.map(({ name, description }) => ({
      name,
      description,
      item: operations.filter(({ operation }) => operation.tags[0] === name).map(requestOf),
    })),
  })
}

const variablesOf = (values: Record<string, string>) =>
  Object.entries(values).map(([key, value]) => ({ key, value, type: 'string' }))

function requestOf({
  path,
  method,
  operation,
}: {
  path: string
  method: string
  operation: DescribedOperation
}) {
  const { summary, description, security, parameters = [], requestBody } = operation
  const parametersIn = (place: string) =>
    parameters
      .filter((parameter) => parameter.in === place)
      .map(({ name, description, example, required }) => ({
        key: name,
        value: [example].flat().join(','),
        description,
        // A parameter with an example is sent.
        ...(place === 'query' && { disabled: required !== true && example === undefined }),
      }))
  const [example] = Object.values(requestBody?.content['application/json'].examples ?? {})
  return {
    name: summary,
    request: {
      method: method.toUpperCase(),
      description,
      ...(security.length === 0 && { auth: { type: 'noauth' } }),
      header: requestBody === undefined ? [] : [{ key: 'Content-Type', value: 'application/json' }],
      url: {
        raw: `{{base_url}}${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
        host: ['{{base_url}}'],
        path: path
          .slice(1)
          .replaceAll(/\{(\w+)\}/g, ':$1')
          .split('/'),
        query: parametersIn('query'),
        variable: parametersIn('path'),
      },
      ...(requestBody !== undefined && {
        body: {
          mode: 'raw',
          raw: JSON.stringify(example?.value ?? {}, null, 2),
          options: { raw: { language: 'json' } },
        },
      }),
    },
  }
}
