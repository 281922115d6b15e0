import { readFile, writeFile } from 'node:fs/promises'
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript'

/**
 * Writes the types of requests and answers, from the API documents: of the client, and of what only operators ask, for the
 * console. The types omit refusals, because both throw them, and examples.
 */
interface Responses {
  200: { content: { 'application/json': { example?: unknown } } }
}
type Documented = OpenAPI3 & { paths: Record<string, Record<string, { responses: Responses }>> }

async function writeTypes(from: string, to: string): Promise<void> {
  const document = JSON.parse(await readFile(new URL(from, import.meta.url), 'utf8')) as Documented
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    const { 200: success } = operation.responses
    delete success.content['application/json'].example
    operation.responses = { 200: success }
  }
  delete document.components?.responses
  const types = astToString(await openapiTS(document))
  await writeFile(
    new URL(to, import.meta.url),
    `/** Generated from an API document by the client's build. */\n${types}`,
  )
}

await writeTypes('../openapi.json', 'src/schema.ts')
await writeTypes('../console/openapi.json', '../console/src/operators-schema.ts')
