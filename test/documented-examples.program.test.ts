/**
 * Every example in the API document works unchanged on a newly started sandbox with its demo. Each answer, success or
 * problem, matches the document.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import ajvFormats from 'ajv-formats'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { OPERATIONS } from '../src/program/app.ts'
import { approve } from '../src/resources/approvals/approve.ts'
import { getApproval } from '../src/resources/approvals/get-approval.ts'
import { listApprovals } from '../src/resources/approvals/list-approvals.ts'
import { reject } from '../src/resources/approvals/reject.ts'
import { demoRecords } from '../src/program/demo/demo-records.ts'
import { credentialsFile, type SandboxCredentials } from '../src/program/demo/credentials.ts'
import { UUID } from '../src/db/ids.ts'
import { SCOPES } from '../src/contract/scopes.ts'
import { EXAMPLE } from '../src/contract/example-records.ts'
import { ONE_BY_ONE_BODY_LIMIT } from '../src/http/one-by-one.ts'
import { createCryptoWithdrawal } from '../src/resources/transfers/create-crypto-withdrawal.ts'
import { updateWebhook } from '../src/resources/webhooks/update-webhook.ts'
import { createCryptoWithdrawals } from '../src/resources/transfers/create-crypto-withdrawals.ts'
import type { Operation } from '../src/http/operation.ts'
import { resendEvent } from '../src/resources/events/resend-event.ts'
import { createWebhook } from '../src/resources/webhooks/create-webhook.ts'
import { deleteWebhook } from '../src/resources/webhooks/delete-webhook.ts'
import { rotateWebhookSecret } from '../src/resources/webhooks/rotate-webhook-secret.ts'
import { rotateCredentials } from '../src/resources/api-credentials/rotate-credentials.ts'
import { deactivateProfile } from '../src/resources/profiles/deactivate-profile.ts'
import { deleteFiatAccount } from '../src/resources/fiat-accounts/delete-fiat-account.ts'
import { cancelTransfer } from '../src/resources/transfers/cancel-transfer.ts'
import { putPolicy } from '../src/resources/policy/put-policy.ts'
import { createPaxosTransfer } from '../src/resources/transfers/create-paxos-transfer.ts'
import { getStablecoinConversion } from '../src/resources/conversions/get-stablecoin-conversion.ts'
import { formatted } from './formatted.ts'
import { writtenOut } from './written-out.ts'
import { createSandboxCustomer } from '../src/resources/sandbox/create-sandbox-customer.ts'
import { advanceSandboxClock } from '../src/resources/sandbox/advance-sandbox-clock.ts'
import { resetSandbox } from '../src/resources/sandbox/reset-sandbox.ts'
import { CLUSTER } from './cluster.ts'
import { partOf } from './seed.ts'
import { cloneDatabase, spawnBursar, type BursarProcess, type TestDatabase } from './support.ts'
import { BODY_LIMIT } from '../src/http/server.ts'

interface Media {
  schema: object
  examples?: Record<string, { value: { type?: string; title?: string } }>
}
interface Documented {
  security: [{ oauth2: [string] }]
  parameters?: { name: string; in: 'path' | 'query'; example?: unknown }[]
  requestBody?: { content: Record<string, Media> }
  responses: Record<string, { content: Record<string, Media> }>
}
interface Document {
  servers: [{ url: string }]
  paths: Record<string, Record<string, Documented>>
  components: { securitySchemes: { oauth2: { flows: { clientCredentials: { tokenUrl: string } } } } }
}

let database: TestDatabase
let dataDir: string
let bursar: BursarProcess
let source: string
let document: Document
let ajv: Ajv2020
let client: { client_id: string; client_secret: string }
let token: string
const receiver = createServer((_, response) => response.writeHead(204).end())

beforeAll(async () => {
  database = await cloneDatabase(2)
  dataDir = await mkdtemp(join(tmpdir(), 'bursar-examples-'))
  bursar = await spawnBursar({
    DATABASE_URL: database.url,
    // For the clock, which the owner of the tables moves.
    BURSAR_MIGRATIONS_DATABASE_URL: database.ownerUrl,
    BURSAR_DATA_DIR: dataDir,
    // For the examples of market history.
    BURSAR_SIMULATED_PRICE_DAYS: '1',
  })
  source = await (await fetch(`${bursar.address}/openapi.json`)).text()
  document = writtenOut(JSON.parse(source) as Document)
  ajv = new Ajv2020({ strict: false, allErrors: true })
  ajvFormats.default(ajv)
  ajv.addSchema(document, 'document')
  client = JSON.parse(await readFile(credentialsFile(dataDir), 'utf8')) as SandboxCredentials
  token = await tokenFor(undefined)
  await makeReachable()
})
afterAll(async () => {
  await bursar.end('SIGTERM')
  receiver.closeAllConnections()
  receiver.close()
  await database.drop()
  await rm(dataDir, { recursive: true, force: true })
})

async function tokenFor(scope: string | undefined): Promise<string> {
  const { tokenUrl } = document.components.securitySchemes.oauth2.flows.clientCredentials
  const { client_id, client_secret } = client
  const form = { grant_type: 'client_credentials', client_id, client_secret, ...(scope && { scope }) }
  const reply = await fetch(tokenUrl, { method: 'POST', body: new URLSearchParams(form) })
  return ((await reply.json()) as { access_token: string }).access_token
}

interface Call {
  path?: Record<string, string>
  query?: Record<string, string[]>
  body?: unknown
  headers?: Record<string, string>
}
interface Answer {
  status: number
  requestId: string
  body: { type?: string; title?: string; [member: string]: unknown }
}

interface Place {
  method: string
  path: string
}
const placeOf = ({ method, url }: { method: string; url: string }): Place => ({
  method: method.toLowerCase(),
  path: url.replaceAll(/:(\w+)/g, '{$1}'),
})
const documented = ({ method, path }: Place) => document.paths[path]![method]!

/** Returns the documented requests of an operation: the examples of its parameters with each example body. */
function examplesOf(place: Place): Call[] {
  const { parameters = [], requestBody } = documented(place)
  const shown = parameters.filter(({ example }) => example !== undefined)
  const texts = (where: string) =>
    shown
      .filter((parameter) => parameter.in === where)
      .map(({ name, example }) => [name, [example].flat().map(String)] as const)
  const call = {
    path: Object.fromEntries(texts('path').map(([name, [value]]) => [name, value!])),
    query: Object.fromEntries(texts('query')),
  }
  if (requestBody === undefined) return [call]
  const { examples = {} } = requestBody.content['application/json']!
  return Object.values(examples).map(({ value }) => ({ ...call, body: value }))
}

/** Returns the validator of the document's schema for an answer. */
function validatorOf({ path, method }: Place, status: string, type: string) {
  const pointer = ['paths', path, method, 'responses', status, 'content', type]
  const escaped = pointer.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')
  return ajv.compile({ $ref: `document#/${encodeURI(escaped)}/schema` })
}

/** Sends a request, and checks the answer against the document for this operation and status. */
async function send(place: Place, call: Call): Promise<Answer> {
  const path = place.path.replaceAll(/{(\w+)}/g, (_, name: string) => encodeURIComponent(call.path![name]!))
  const url = new URL(document.servers[0].url + path)
  for (const [name, values] of Object.entries(call.query ?? {}))
    for (const value of values) url.searchParams.append(name, value)
  const reply = await fetch(url, {
    method: place.method.toUpperCase(),
    headers: {
      authorization: `Bearer ${token}`,
      ...(call.body !== undefined && { 'content-type': 'application/json' }),
      ...call.headers,
    },
    ...(call.body !== undefined && {
      body: typeof call.body === 'string' ? call.body : JSON.stringify(call.body),
    }),
  })
  const requestId = reply.headers.get('x-request-id')!
  const answer = { status: reply.status, requestId, body: (await reply.json()) as Answer['body'] }
  if (call.body !== undefined && typeof call.body !== 'string') addTexts(call.body)
  addSecrets(answer.body)
  const type = reply.headers.get('content-type')!.split(';')[0]!
  const said = documented(place).responses[String(answer.status)]?.content[type]
  expect(
    said,
    `${url.pathname} answers ${answer.status} ${type} ${JSON.stringify(answer.body)}`,
  ).toBeDefined()
  const validate = validatorOf(place, String(answer.status), type)
  validate(answer.body)
  expect(validate.errors ?? [], JSON.stringify(answer.body)).toEqual([])
  if (answer.status !== 200) {
    const kinds = Object.values(said!.examples!).map(({ value: { type, title } }) => ({ type, title }))
    expect(kinds).toContainEqual({ type: answer.body.type, title: answer.body.title })
  }
  return answer
}

/** Replaces the URL of the demo's webhook, where nobody receives, so that deliveries succeed. */
async function makeReachable(): Promise<void> {
  const [{ path }] = examplesOf(placeOf(updateWebhook)) as [Call]
  receiver.listen(0, '127.0.0.1')
  await once(receiver, 'listening')
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  expect(await send(placeOf(updateWebhook), { path: path!, body: { url } })).toMatchObject({ status: 200 })
}

/** Makes a withdrawal that waits for an approver: the demo has none. */
async function makeApproval(): Promise<void> {
  const rules = [{ id: 'four-eyes', action: 'APPROVE', approvals: 1 }]
  expect(await send(placeOf(putPolicy), { body: { rules } })).toMatchObject({ status: 200 })
  const [{ body }] = examplesOf(placeOf(createCryptoWithdrawal)) as [Call]
  const withdrawal = { ...(body as object), ref_id: 'waits for an approver' }
  expect(await send(placeOf(createCryptoWithdrawal), { body: withdrawal })).toMatchObject({
    body: { secondary_status: { name: 'PENDING_CUSTOMER_APPROVAL' } },
  })
}
const PREPARE = new Map<unknown, () => Promise<void>>([[listApprovals, makeApproval]])

/** A sandbox closes no day. */
const isList = ({ summary }: Operation) => /^(List|Search) /.test(summary) && summary !== 'List Closed Days'
const hasEmptyList = (answer: unknown) =>
  Object.values(answer as object).some((member) => Array.isArray(member) && member.length === 0)

/** Sends the request of an example. The records of some lists come a little later: prices, attempts. */
const sendExample = (operation: Operation, call: Call): Promise<Answer> =>
  isList(operation)
    ? vi.waitFor(
        async () => {
          const answer = await send(placeOf(operation), call)
          expect(hasEmptyList(answer.body), JSON.stringify(answer.body)).toBe(false)
          return answer
        },
        { timeout: 60_000, interval: 200 },
      )
    : send(placeOf(operation), call)

test('the examples name the records of the demo only', () => {
  for (const [name, stable] of Object.entries(EXAMPLE)) expect(source, name).not.toContain(stable)
  expect(document.servers).toEqual([{ url: bursar.address }])
})

const NO_REQUIRED_FIELD: Operation[] = [
  createSandboxCustomer,
  rotateCredentials,
  rotateWebhookSecret,
  resendEvent,
]

/** Operations whose example shows a refusal. */
const REFUSED = new Map<unknown, number>([
  // The demo's transfers have all ended, so none can be cancelled.
  [cancelTransfer, 409],
  // The demo's profile is the default profile.
  [deactivateProfile, 400],
  // The example of a rule, which runs earlier, pays to this account.
  [deleteFiatAccount, 400],
  // The sandbox has one customer.
  [createPaxosTransfer, 404],
  // The demo converts nothing alone.
  [getStablecoinConversion, 404],
  // Nothing of the demo needs approval.
  [getApproval, 404],
  [approve, 404],
  [reject, 404],
])

/**
 * The actions that the first example of each operation leaves in the audit log, sorted. An operation that is not here
 * changes nothing.
 */
const RECORDS = new Map<string, string[]>([
  ['POST /v2/transfer/crypto-withdrawals', ['transfer.create']],
  ['POST /v2/sandbox/fiat-deposits', ['transfer.create']],
  ['POST /v2/sandbox/customers', ['api_client.create', 'customer.create']],
  ['POST /v2/sandbox/clock', ['deployment.advance_clock']],
  ['POST /v2/profiles', ['profile.create']],
  ['PUT /v2/profiles/:id', ['profile.update']],
  ['POST /v2/sandbox/profiles/:id/deposit', ['transfer.create']],
  ['POST /v2/identity/identities', ['identity.create']],
  ['PUT /v2/identity/identities/:id', ['identity.update']],
  ['POST /v2/identity/institution-members', ['identity.add_members']],
  ['DELETE /v2/identity/institution-members/:id', ['identity.remove_member']],
  ['PUT /v2/identity/identities/:id/sandbox-status', ['identity.set_status']],
  ['POST /v2/identity/accounts', ['account.create', 'profile.create']],
  ['PUT /v2/identity/accounts', ['account.update']],
  ['POST /v2/identity/account-members', ['account.add_members']],
  ['DELETE /v2/identity/account-members/:id', ['account.remove_member']],
  ['POST /v2/transfer/internal', ['transfer.create', 'transfer.create']],
  ['POST /v2/conversion/stablecoins', ['transfer.create', 'transfer.create']],
  ['POST /v2/transfer/deposit-addresses', ['deposit_address.create']],
  ['POST /v2/transfer/fiat-deposit-instructions', ['fiat_deposit_instructions.create']],
  ['POST /v2/transfer/fiat-accounts', ['fiat_account.create']],
  ['PUT /v2/transfer/fiat-accounts/:id', ['fiat_account.update']],
  ['POST /v2/transfer/fiat-withdrawals', ['transfer.create']],
  ['POST /v2/transfer/fees/crypto-withdrawal', ['fee_quote.create']],
  ['POST /v2/orchestration/rules', ['fiat_deposit_instructions.create', 'orchestration_rule.create']],
  ['DELETE /v2/orchestration/rules/:id', ['orchestration_rule.delete']],
  ['POST /v2/orchestration/orchestrations', ['orchestration.create', 'transfer.create', 'transfer.create']],
  ['POST /v2/transfer/crypto-withdrawals/bulk', ['transfer.create']],
  ['POST /v2/api-creds/credentials/:client_id/rotate', ['api_client.rotate']],
  ['DELETE /v2/api-creds/credentials/:client_id', ['api_client.delete']],
  ['PUT /v2/transfer/crypto-destination-address', ['destination_address.create']],
  ['POST /v2/webhooks', ['webhook.create']],
  ['PUT /v2/policy', ['policy.set']],
  ['PUT /v2/webhooks/:id', ['webhook.update']],
  ['DELETE /v2/webhooks/:id', ['webhook.delete']],
  ['POST /v2/webhooks/:id/rotate-secret', ['webhook.rotate_secret']],
  ['POST /v2/webhooks/:id/test', ['webhook.test']],
  ['POST /v2/webhooks/:id/recover', ['webhook.recover']],
  ['POST /v2/events/:id/resend', ['event.resend']],
])
const recorded = new Set<string>()

interface AuditRow {
  actor_type: string
  actor_id: string
  action: string
  ips: string[]
  outcome: string
}

/** Requires that the first request of an operation has left exactly its records, with who made it and from where. */
async function requireRecorded(
  { method, url }: Operation,
  succeeded: boolean,
  requestId: string,
): Promise<void> {
  const { rows } = await database.db.query<AuditRow>(
    `select actor_type, actor_id, action, ips, outcome
     from audit_log, unnest(coalesce(subject_ids::text[], array[subject_id])) with ordinality s (id, place)
     where coalesce(request_ids[place], request_ids[1]) = $1::uuid`,
    [requestId],
  )
  const name = `${method} ${url}`
  if (recorded.has(name)) return
  recorded.add(name)
  const expected = succeeded ? (RECORDS.get(name) ?? []) : []
  expect(rows.map(({ action }) => action).sort(), name).toEqual(expected)
  for (const row of rows)
    expect(row).toMatchObject({
      ...{ actor_type: 'API_CLIENT', actor_id: client.client_id },
      ...{ ips: ['127.0.0.1'], outcome: 'DONE' },
    })
}

/** The client's own texts, and the secrets of answers. The audit log and the program's log have none of them. */
const texts = new Set<string>()
const secrets = new Set<string>()
/** The members of bodies that are configuration, as the rules of a policy are, and those that name records, amounts and networks. */
const CONFIGURATION =
  /^(url|event_types|types?|status|payload|profile_ids|scopes?|roles?|fiat_network|network|crypto_network|address|destination_address|(source_|destination_|target_|balance_)?asset|.*_id|.*amount|total|fee|since|until|routing_number_type|conversion_target_asset)$/

function addTexts(value: unknown, member = ''): void {
  if (typeof value === 'string') {
    if (value.length >= 4 && !CONFIGURATION.test(member) && !UUID.test(value)) texts.add(value)
  } else if (Array.isArray(value)) for (const one of value) addTexts(one, member)
  else if (typeof value === 'object' && value !== null)
    for (const [name, one] of Object.entries(value)) if (name !== 'rules') addTexts(one, name)
}

function addSecrets(body: object): void {
  for (const [name, value] of Object.entries(body))
    if (/secret$/.test(name) && typeof value === 'string') secrets.add(value)
}

/** The answers to the first examples. */
const answers: Record<string, unknown> = {}
const nameOf = ({ method, path }: Place) => `${method.toUpperCase()} ${path}`

// In the order of the document: later examples meet the records of earlier ones.
/** A reset ends the records of the others; sandbox-reset.program.test.ts has it. */
// The clock of a distributed database is not moved.
const TRIED = OPERATIONS.filter(
  (operation) => operation !== resetSandbox && (CLUSTER.length === 0 || operation !== advanceSandboxClock),
)

/** The operations whose refusals one run asks for. bad-input.slow.test.ts has those that an operation has alone. */
const REFUSING = partOf(TRIED, 4)

describe.each(TRIED.map((operation) => [`${operation.method} ${operation.url}`, operation] as const))(
  '%s',
  (_, operation) => {
    const place = placeOf(operation)

    const works = REFUSED.get(operation) ?? 200

    test('every example works, and a repeat is refused only for its ref_id, name, nickname or members', async () => {
      await PREPARE.get(operation)?.()
      const calls = examplesOf(place)
      expect(calls.length).toBeGreaterThan(0)
      for (const call of calls) {
        const { status, requestId, body } = await sendExample(operation, call)
        expect(status).toBe(works)
        if (status === 200 && call === calls[0]) answers[nameOf(place)] = body
        await requireRecorded(operation, works === 200, requestId)
      }
      for (const call of calls) {
        const again = await send(place, call)
        const text = JSON.stringify(call.body ?? null)
        // This operation refuses its items one by one.
        if (operation === createCryptoWithdrawals) {
          expect(again.status).toBe(200)
          expect(again.body.items).toEqual([
            { problem: expect.objectContaining({ status: 409 }) as unknown },
            { problem: expect.objectContaining({ status: 400 }) as unknown },
          ])
          continue
        }
        if (operation === deleteWebhook) {
          expect(again.status).toBe(404)
          continue
        }
        const isNamed = operation === createWebhook
        const once = isNamed || (operation.method === 'POST' && /"(ref_id|nickname|members)":/.test(text))
        expect(again.status).toBe(once && works === 200 ? 409 : works)
      }
    })

    if (!REFUSING.includes(operation)) return
    test('every refusal of an invalid request is documented', async () => {
      const [good] = examplesOf(place) as [Call]
      const bearer = (value: string) => ({ headers: { authorization: `Bearer ${value}` } })
      const refused = async (changes: Call, status: number) =>
        expect(await send(place, { ...good, ...changes })).toMatchObject({ status })

      const { scope, alternativeScope } = operation
      const isPublic = scope === null
      await refused({ headers: { authorization: '' } }, isPublic ? 200 : 401)
      await refused(bearer(`${token}x`), isPublic ? 200 : 401)
      const other = SCOPES.find((one) => one !== scope && one !== alternativeScope)
      await refused(bearer(await tokenFor(other)), isPublic ? 200 : 403)
      await refused({ query: { ...good.query, nothing: ['1'] } }, 400)
      if ('id' in good.path!) {
        await refused({ path: { ...good.path, id: crypto.randomUUID() } }, 404)
        await refused({ path: { ...good.path, id: 'x' } }, 400)
      }
      if (good.body === undefined) return
      await refused({ body: {} }, NO_REQUIRED_FIELD.includes(operation) ? 200 : 400)
      await refused({ body: '{' }, 400)
      await refused({ headers: { 'content-type': 'text/plain' } }, 415)
      await refused(
        {
          body: {
            filler: 'x'.repeat(operation === createCryptoWithdrawals ? ONE_BY_ONE_BODY_LIMIT : BODY_LIMIT),
          },
        },
        413,
      )
    })
  },
)

test('neither the audit log nor the log of the program has a secret or a text of a client', async () => {
  const { rows } = await database.db.query<{ row: string }>('select a::text as row from audit_log a')
  const shown: unknown[] = []
  for (let cursor: string | undefined = ''; cursor !== undefined;) {
    const { body } = await send(
      { method: 'get', path: '/v2/audit-log' },
      { query: { limit: ['100'], ...(cursor !== '' && { page_cursor: [cursor] }) } },
    )
    shown.push(...(body.items as unknown[]))
    cursor = body.next_page_cursor as string | undefined
  }
  expect(shown.length).toBeGreaterThan(RECORDS.size)
  expect(secrets.size).toBeGreaterThan(1)
  expect(texts.size).toBeGreaterThan(20)
  // A short text can be in an id, a hash or the microseconds of a time by chance.
  const audit = `${rows.map(({ row }) => row).join('\n')}\n${JSON.stringify(shown)}`.replaceAll(
    /[0-9a-f]{8}[0-9a-f-]{24,}|\.\d{1,6}(?!\d)/g,
    '',
  )
  const found = (among: string, marks: Iterable<string>) => [...marks].filter((mark) => among.includes(mark))
  const context = (mark: string) => audit.slice(audit.indexOf(mark) - 60, audit.indexOf(mark) + 60)
  const told = found(audit, [...secrets, ...texts, token, client.client_secret])
  expect(told.map(context)).toEqual([])
  expect(found(bursar.log(), [...secrets, token, client.client_secret])).toEqual([])
})

const ANSWERS = fileURLToPath(new URL('../src/contract/answer-examples.json', import.meta.url))
const ELEMENTS_MAX = 2

/** Returns an answer as an example: the ids of the demo by their fixed ones, no secret, and short arrays. */
async function exampleOf(answer: unknown): Promise<unknown> {
  const demo = Object.entries((await demoRecords(database.db))!)
  const fixed = new Map(demo.map(([name, id]) => [id, EXAMPLE[name as keyof typeof EXAMPLE]]))
  const idOf = (id: string) => {
    if (!fixed.has(id)) fixed.set(id, `0192f3a4-0000-7000-8000-${String(fixed.size + 900).padStart(12, '0')}`)
    return fixed.get(id)!
  }
  const convert = (value: unknown, member = ''): unknown => {
    if (Array.isArray(value)) return value.slice(0, ELEMENTS_MAX).map((one) => convert(one, member))
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, convert(one, name)]))
    if (typeof value !== 'string') return value
    if (/secret$/.test(member))
      return value.startsWith('whsec_') ? 'whsec_dGhlIHNlY3JldCBvZiBhbiBlbmRwb2ludA==' : 'a-secret'
    if (fixed.has(value)) return fixed.get(value)
    return value
      .replaceAll(bursar.address, 'http://127.0.0.1:8080')
      .replaceAll(new RegExp(UUID.source.replaceAll(/[$^]/g, ''), 'g'), idOf)
  }
  return convert(answer)
}

test('the answer of each operation has an example, which fits its schema', async () => {
  const { snapshotState } = expect.getState() as unknown as { snapshotState: { _updateSnapshot: string } }
  const examples = JSON.parse(await readFile(ANSWERS, 'utf8')) as Record<string, unknown>
  const errorsOf = (name: string) => {
    const [method, path] = name.split(' ') as [string, string]
    const validate = validatorOf({ method: method.toLowerCase(), path }, '200', 'application/json')
    validate(examples[name])
    return validate.errors ?? []
  }
  const lists = new Set(OPERATIONS.filter(isList).map((operation) => nameOf(placeOf(operation))))
  const fits = (name: string) =>
    name in examples && errorsOf(name).length === 0 && !(lists.has(name) && hasEmptyList(examples[name]))
  if (snapshotState._updateSnapshot === 'all') {
    // An example that still fits stays, so that the file changes only with the API.
    for (const [name, answer] of Object.entries(answers))
      if (!fits(name)) examples[name] = await exampleOf(answer)
    const known = OPERATIONS.map((operation) => nameOf(placeOf(operation))).filter((name) => name in examples)
    const ordered = Object.fromEntries(known.map((name) => [name, examples[name]]))
    await writeFile(ANSWERS, await formatted(ANSWERS, JSON.stringify(ordered)))
  }
  for (const operation of OPERATIONS) {
    const name = nameOf(placeOf(operation))
    expect(Object.keys(examples), 'answer-examples.json').toContain(name)
    expect(errorsOf(name), name).toEqual([])
  }
  expect(Object.keys(examples)).toHaveLength(OPERATIONS.length)
})
