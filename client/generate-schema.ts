import { readFile, writeFile } from 'node:fs/promises'
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript'

/**
 * Writes `src/schema.ts`: the types of requests and answers, from the API document. The types omit refusals, because the
 * client throws them, and examples.
 */
interface Responses {
  200: { content: { 'application/json': { example?: unknown } } }
}
type Documented = OpenAPI3 & { paths: Record<string, Record<string, { responses: Responses }>> }

const document = JSON.parse(await readFile(new URL('../openapi.json', import.meta.url), 'utf8')) as Documented
for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
  const { 200: success } = operation.responses
  delete success.content['application/json'].example
  operation.responses = { 200: success }
}
delete document.components?.responses
const types = astToString(await openapiTS(document))
await writeFile(
  new URL('src/schema.ts', import.meta.url),
  `/** Generated from openapi.json by the client's build. */\n${types}`,
)
