import { expect } from 'vitest'
import { countCpu } from './cpu-time.ts'
import { OPERATIONS, urlOf, type Change, type Request } from './good-requests.ts'
import { BASE_URL, type TestService } from './support.ts'
import { service } from './world.ts'

// The refusals that tests expect, and what every refusal must have (API behaviour, Errors).

export interface Refusal {
  status: number
  /** The slug of a typed problem. */
  slug?: string
  /** Texts that the detail must contain: the field and the rule. */
  detail: string[]
  meta?: unknown
  headers?: Record<string, unknown>
}
/** A fault, the change of the good request that makes it, and the refusal. */
export type Row = [fault: string, change: Change, refusal: Refusal | (() => Refusal)]

export const bad = (...detail: string[]): Refusal => ({ status: 400, detail })
export const notFound = (...detail: string[]): Refusal => ({ status: 404, detail: [...detail, 'not found'] })
export const typed = (status: number, slug: string, meta: unknown, ...detail: string[]): Refusal => {
  return { status, slug, detail, meta }
}
export const exists = (field: string, existing: unknown) =>
  typed(409, 'already-exists', { existing, differs: expect.any(Array) as unknown }, field)
export const disabled = (what: string, id: string, status: string) =>
  typed(403, 'disabled', { id, status }, `${what} ${id}`, status)
export const tooPrecise = (field: string, asset: string, decimals: number) =>
  typed(400, 'exceed-precision', { asset, decimals }, field, `more than ${decimals} decimals`)
export const notCarried = (asset: string, crypto_network: string, ...supported: string[]) =>
  typed(
    400,
    'unsupported-network',
    { asset, crypto_network, supported },
    `crypto_network ${crypto_network}`,
    asset,
  )
export const noAddress = (address: string, crypto_network: string) => {
  const reason = expect.stringMatching(/./) as unknown
  const meta = { destination_address: address, crypto_network, address, reason }
  return typed(400, 'unsupported-address', meta, 'destination_address', crypto_network)
}
/** Renames the field of a refusal, for an operation that shares the refusal with withdrawals. */
export const named = (field: string, { detail: [, ...rules], ...refusal }: Refusal): Refusal => {
  return { ...refusal, detail: [field, ...rules] }
}

const challenge = (error?: string) => ({
  'www-authenticate': expect.stringMatching(
    error === undefined ? /^Bearer realm="[^"]+"$/ : new RegExp(`^Bearer realm="[^"]+", error="${error}"`),
  ) as unknown,
})
export const unauthorized = (detail: string, error?: string): Refusal => {
  return { status: 401, detail: [detail], headers: challenge(error) }
}
export const forbidden = (scope: string, found: string[]): Refusal => ({
  status: 403,
  detail: [`required ${scope}`, `found ${found.length === 0 ? 'none' : found.join(' ')}`],
  meta: { required_scope: scope, found_scopes: found },
  headers: challenge('insufficient_scope'),
})

// ---------------------------------------------------------------------------------------------------------------
// Rows.

/** A value as the name of a row shows it. */
export const show = (value: unknown): string =>
  (typeof value === 'function'
    ? String(value).replace(/^\(\) => /, '')
    : JSON.stringify(value, (_, inner: unknown) => (inner === undefined ? null : inner))
  ).slice(0, 60)

/** A row whose fault is in the body. */
export const given = (body: object | (() => object), refusal: Row[2], fault = show(body)): Row => [
  fault,
  typeof body === 'function' ? () => ({ body: (body as () => object)() }) : { body },
  refusal,
]
/** A row whose fault is in the path. */
export const at = (path: () => string, refusal: Row[2], fault = show(path)): Row => [
  fault,
  () => ({ path: path() }),
  refusal,
]
/** `{ wire: { account_number: value } }` for 'wire.account_number'. */
const nest = (field: string, value: unknown) =>
  field.split('.').reduceRight((inner: unknown, name) => ({ [name]: inner }), value) as object
/** Each of these values in a member of the body must be refused, with the member and the rule. */
export const inBody = (field: string, rule: string, ...values: unknown[]) =>
  values.map((value) => given(nest(field, value), bad(field, rule)))
/** As `inBody`, for a query parameter. An empty one is named as such; cursors and bounds may be empty (spellings.test.ts). */
export const inQuery = (field: string, rule: string, ...values: string[]) =>
  values
    .filter((value) => value !== '' || !/page_cursor|\./.test(field))
    .map((value): Row => {
      const query = `${field}=${value}`
      const told = value === '' && !rule.includes('unknown') ? 'is empty' : rule
      return [`?${query.slice(0, 50)}`, { query }, bad(field, told)]
    })
/** A body that is sent as it is. */
export const raw = (
  payload: string,
  headers: Record<string, string> = { 'content-type': 'application/json' },
) => {
  return { payload, headers }
}
export const eachRaw = (payloads: string[], refusal: Refusal) =>
  payloads.map((payload): Row => [`the body ${payload}`, raw(payload), refusal])

// ---------------------------------------------------------------------------------------------------------------
// Requests and expectations.

export interface Call extends Request {
  method: string
  /** The whole header; absent for a request without one. */
  authorization?: string | undefined
}

export async function ask({ method, body, payload, headers, authorization, ...where }: Call, on = service) {
  const reply = await on.app.inject({
    method: method as 'GET',
    url: urlOf(where),
    ...(payload === undefined ? body !== undefined && { payload: body } : payload !== '' && { payload }),
    headers: { ...headers, ...(authorization !== undefined && { authorization }) },
  })
  const answered = reply.body === '' ? undefined : reply.json<unknown>()
  return { status: reply.statusCode, headers: reply.headers, body: answered }
}

/** A refusal that costs more than this lets one client stop the others. */
const REFUSAL_CPU_MS_MAX = 1_000

export async function expectRefusal(
  call: Call,
  refusal: Refusal,
  fault?: string,
  on?: TestService,
): Promise<void> {
  const cpuMs = countCpu()
  const answer = await ask(call, on)
  expect(cpuMs(), 'milliseconds of CPU').toBeLessThan(REFUSAL_CPU_MS_MAX)
  const { status, slug, detail, meta, headers = {} } = refusal
  expect(answer.body, fault).toEqual({
    type: slug === undefined ? 'about:blank' : `${BASE_URL}/problems/${slug}`,
    title: expect.stringMatching(/./) as unknown,
    status,
    detail: expect.any(String) as unknown,
    ...(meta !== undefined && { meta }),
    ...('errors' in (answer.body as object) && { errors: expect.any(Array) as unknown }),
  })
  for (const part of detail) expect((answer.body as { detail: string }).detail, fault).toContain(part)
  expect(answer.status).toBe(status)
  expect(answer.headers['content-type']).toMatch(/^application\/problem\+json\b/)
  expect(answer.headers).toMatchObject(headers)
  if (status === 400) requirePointers(call, answer.body as Told)
  if (status === 404) requirePlaces(call, answer.body as Told)
}

interface Told {
  detail: string
  errors?: { pointer: string; detail: string }[]
}
/** The details of a 400 that are about no field: about a record, a header, or text that is no JSON. */
const OF_NO_FIELD =
  /^(the customer has|profile \S+ (is|cannot)|fiat account \S+ is paid|webhook \S+ is|the (body|path|query) is (not|empty)|the body has a key|this operation takes no|Idempotency-Key)/

/** Requires that the refusal of a field says where it is: the first of `errors` has its detail, and each names a field that exists. */
function requirePointers({ method, path }: Call, { detail, errors = [] }: Told): void {
  const parts = path.split('?')[0]!.split('/')
  const operation = OPERATIONS.find(
    ({ method: its, url }) =>
      its === method &&
      url.split('/').length === parts.length &&
      url.split('/').every((part, index) => part.startsWith(':') || part === parts[index]),
  )
  if (operation === undefined || OF_NO_FIELD.test(detail)) return
  expect(errors[0]?.detail, detail).toBe(detail)
  const { body, query, params } = operation
  const known = { ...body?.properties, ...query?.properties, ...params?.properties }
  for (const { pointer, detail: told } of errors) {
    const names = pointer.split('/').map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    expect(names[0], pointer).toBe('#')
    // A field that no schema has, and the one of a body that is no object.
    if (!/is not a known|given more than once|nested at most/.test(told))
      expect(hasField({ properties: known }, names.slice(1)), `${pointer}: ${told}`).toBe(true)
  }
}

/** Requires that the 404 of a record which the body names says where. */
function requirePlaces({ body }: Call, { detail, errors = [] }: Told): void {
  const id = / (\S+) not found$/.exec(detail)?.[1]
  const names = (value: unknown): boolean =>
    typeof value === 'object' && value !== null ? Object.values(value).some(names) : value === id
  if (!names(body)) return
  expect(errors[0]?.detail, detail).toBe(detail)
  for (const { pointer } of errors) {
    const members = pointer.split('/').slice(1)
    expect(members.reduce((value: unknown, name) => (value as Record<string, unknown>)[name], body)).toBe(id)
  }
}

/** Whether a schema declares a field, or lets it be. */
function hasField(schema: object, [name, ...inner]: string[]): boolean {
  const { properties, items, additionalProperties } = schema as {
    properties?: Record<string, object>
    items?: object
    additionalProperties?: unknown
  }
  if (name === undefined || (properties === undefined && items === undefined)) return true
  const member = items !== undefined && /^\d+$/.test(name) ? items : properties?.[name]
  return member === undefined ? additionalProperties === true : hasField(member, inner)
}
