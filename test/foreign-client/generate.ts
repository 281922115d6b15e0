import { writeFile } from 'node:fs/promises'
import openapiTS, { astToString } from 'openapi-typescript'

// Writes the types of the client that foreign-client.db.test.ts runs. The build does this.

const types = astToString(await openapiTS(new URL('openapi.yaml', import.meta.url)))
await writeFile(
  new URL('schema.ts', import.meta.url),
  `/** Generated from openapi.yaml by the build. */\n${types}`,
)
