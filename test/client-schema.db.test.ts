import { fileURLToPath } from 'node:url'
import openapiTS, { astToString, type OpenAPI3 } from 'openapi-typescript'
import { expect, test } from 'vitest'
import { formatted } from './formatted.ts'
import { sharedTestService } from './support.ts'

// The client's types, generated from the document that the service answers.
const FILE = fileURLToPath(new URL('../client/src/schema.ts', import.meta.url))

const HEADER = `/**
 * Requests and answers of the API, generated from its OpenAPI document by openapi-typescript. \`npm run client-schema\`
 * writes this file, and a test compares it with the service. The file has no refusals: the client throws them.
 */
`

const service = await sharedTestService()

interface Responses {
  200: { content: { 'application/json': { example?: unknown } } }
}
type Documented = OpenAPI3 & { paths: Record<string, Record<string, { responses: Responses }>> }

test('client/src/schema.ts matches the API document of the service', async () => {
  const document = (await service.app.inject('/openapi.json')).json<Documented>()
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    const { 200: success } = operation.responses
    delete success.content['application/json'].example
    operation.responses = { 200: success }
  }
  delete document.components?.responses
  const types = astToString(await openapiTS(document))
  const text = await formatted(FILE, HEADER + types)
  expect(text).toContain("'/v2/transfer/crypto-withdrawals'")
  await expect(text, 'the API has changed; `npm run client-schema` writes it down').toMatchFileSnapshot(FILE)
})
