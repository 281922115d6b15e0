/*
 * Clients that generators make from the OpenAPI 3.0 document run README's session (docs/guides/generated-clients.md). Each
 * language is skipped where its generator is not installed.
 */
import { execFile, spawnSync } from 'node:child_process'
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { runInNewContext } from 'node:vm'
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { expect, test } from 'vitest'
import { credentialsFile } from '../src/program/demo/credentials.ts'
import { ownDatabase, ownBursar } from './support.ts'
import { ownFolder } from './at-end.ts'

const has = (...command: string[]) => spawnSync(command[0]!, command.slice(1)).status === 0
const HAS_PYTHON = has('openapi-python-client', '--version')
const HAS_GO = has('oapi-codegen', '--version')
// Maven downloads its generator: it is asked for.
const HAS_JAVA = process.env.TEST_MAVEN === '1' && has('mvn', '--version')

const database = await ownDatabase(2)
const folder = await ownFolder()
const service = await ownBursar({ DATABASE_URL: database.url, BURSAR_DATA_DIR: folder })
const source = await (await fetch(`${service.address}/openapi-3.0.json`)).text()
await writeFile(join(folder, 'openapi.json'), source)

const sh = async (script: string) => {
  const environment = { ...process.env, CREDENTIALS: credentialsFile(folder) }
  const options = { cwd: folder, env: environment, maxBuffer: 16 * 1024 * 1024 }
  return (await promisify(execFile)('bash', ['-euc', script], options)).stdout
}
/** The command of the guide that generates a client of a language. */
const commandOf = async (language: string) => {
  const guide = await readFile('docs/guides/generated-clients.md', 'utf8')
  return new RegExp(`^\\| ${language} \\| \`(.*?)\``, 'm').exec(guide)![1]!
}
const PAID = /^25 USDP: COMPLETED; [1-9]\d* statements$/m

test('the document is OpenAPI 3.0, passes the linter, and has every operation and schema of the other', async () => {
  const config = await createConfig({
    extends: ['recommended'],
    // 3.0 has no webhooks, whose schemas stay.
    rules: { 'no-unused-components': 'off' },
  })
  const problems = await lintFromString({ source, absoluteRef: '/openapi.json', config })
  expect(problems.map(({ ruleId, message }) => `${ruleId}: ${message}`)).toEqual([])
  const of = (text: string) => {
    const { openapi, paths, components } = JSON.parse(text) as {
      openapi: string
      paths: object
      components: { schemas: object }
    }
    return { openapi, paths: Object.keys(paths), schemas: Object.keys(components.schemas) }
  }
  const newer = of(await (await fetch(`${service.address}/openapi.json`)).text())
  expect(of(source)).toEqual({ ...newer, openapi: '3.0.3' })
})

/** A request of a collection, as far as the test reads it. */
interface TokenRequest {
  url: string
  method: string
  header: Record<string, string>
  body: { urlencoded: { key: string; value: string }[] }
}
interface Collected {
  name: string
  request: {
    method: string
    url: {
      path: string[]
      query: { key: string; value: string; disabled: boolean }[]
      variable: { key: string; value: string }[]
    }
    body?: { raw: string }
  }
}

test('the collection for Postman and Bruno has every operation, and its requests run as they are', async () => {
  const answer = await fetch(`${service.address}/postman.json`)
  const collection = (await answer.json()) as {
    auth: { bearer: { key: string; value: string }[] }
    event: [{ script: { exec: string[] } }]
    variable: { key: string; value: string }[]
    item: { item: Collected[] }[]
  }
  const requests = collection.item.flatMap(({ item }) => item)
  const { paths } = JSON.parse(source) as { paths: Record<string, object> }
  expect(requests).toHaveLength(Object.values(paths).flatMap((methods) => Object.keys(methods)).length)
  const { client_id, client_secret } = JSON.parse(await readFile(credentialsFile(folder), 'utf8')) as Record<
    string,
    string
  >
  const values = new Map(collection.variable.map(({ key, value }) => [key, value]))
  const filled = (text: string) =>
    text.replaceAll(
      /\{\{(\w+)\}\}/g,
      (_, name: string) => ({ client_id, client_secret })[name] ?? values.get(name)!,
    )
  // As a runner of collections does before each request.
  const pm = {
    variables: { get: (name: string) => filled(`{{${name}}}`), replaceIn: filled },
    collectionVariables: values,
    async sendRequest({ url, method, header, body }: TokenRequest, done: (...args: unknown[]) => void) {
      const form = new URLSearchParams(
        Object.fromEntries(body.urlencoded.map(({ key, value }) => [key, value])),
      )
      const sent = await fetch(url, { method, headers: header, body: form })
      const text = await sent.text()
      done(null, { code: sent.status, text: () => text, json: () => JSON.parse(text) as unknown })
    },
  }
  const [{ script }] = collection.event
  runInNewContext(script.exec.join('\n'), { pm, console })
  await expect.poll(() => values.get('access_token')).toMatch(/./)
  const send = async (name: string) => {
    const { method, url, body } = requests.find((one) => one.name === name)!.request
    const path = url.path.map((part) =>
      part.startsWith(':') ? url.variable.find(({ key }) => key === part.slice(1))!.value : part,
    )
    const query = new URLSearchParams()
    for (const { key, value, disabled } of url.query) if (!disabled) query.append(key, value)
    const sent = await fetch(`${values.get('base_url')}/${path.join('/')}?${query.toString()}`, {
      method,
      headers: {
        authorization: `Bearer ${filled(collection.auth.bearer[0]!.value)}`,
        'content-type': 'application/json',
      },
      ...(body && { body: body.raw }),
    })
    return { status: sent.status, body: (await sent.json()) as object }
  }
  for (const name of [
    'Initiate Sandbox Fiat Deposit',
    'Get Profile Balance',
    'Create Crypto Withdrawal',
    'List Transfers',
    'List Statements',
  ])
    expect(await send(name), name).toMatchObject({ status: 200 })
})

test.skipIf(!HAS_PYTHON)('a Python client pays', async () => {
  await copyFile('examples/generated/session.py', join(folder, 'session.py'))
  // The generator's own Python has what the client needs.
  const python = `"$(dirname "$(realpath "$(command -v openapi-python-client)")")/python"`
  expect(await sh(`${await commandOf('Python')} >&2; ${python} session.py`)).toMatch(PAID)
})

test.skipIf(!HAS_GO)('a Go client pays', async () => {
  await mkdir(join(folder, 'bursar'), { recursive: true })
  await copyFile('examples/generated/session.go', join(folder, 'session.go'))
  await writeFile(join(folder, 'go.mod'), 'module session\n\ngo 1.24\n')
  expect(await sh(`${await commandOf('Go')}; go mod tidy >&2; go run .`)).toMatch(PAID)
})

test.skipIf(!HAS_JAVA)('a Java client pays', async () => {
  const sources = join(folder, 'src/main/java')
  await mkdir(sources, { recursive: true })
  await copyFile('examples/generated/pom.xml', join(folder, 'pom.xml'))
  await copyFile('examples/generated/Session.java', join(sources, 'Session.java'))
  const classpath = 'dependency:build-classpath -Dmdep.outputFile=classpath'
  expect(
    await sh(
      `${await commandOf('Java')} ${classpath} >&2; java -cp "target/classes:$(cat classpath)" Session`,
    ),
  ).toMatch(PAID)
})
