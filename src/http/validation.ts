import { isUtf8 } from 'node:buffer'
import { Ajv, type ErrorObject, type FormatDefinition } from 'ajv'
import ajvFormats from 'ajv-formats'
import ajvKeywords from 'ajv-keywords'
import fastJson from 'fast-json-stringify'
import type { FastifyInstance, FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'
import { duplicateMember } from './duplicate-member.ts'
import { Problem, problem } from '../contract/problems.ts'

const options = {
  // Stop at the first error: collecting all of them would let hostile input cause more work.
  allErrors: false,
  useDefaults: true,
  removeAdditional: false,
  // Error messages need the schema and the value.
  verbose: true,
  strict: true,
  strictTypes: false,
  validateFormats: true,
} as const

// Bodies are JSON and must have the right types. Query strings and paths are text: scalars are converted to the type of
// the schema, and a single value to an array.
const strict = new Ajv({ ...options, coerceTypes: false })
const coercing = new Ajv({ ...options, coerceTypes: 'array' })
/** Keywords of our schemas that are not in JSON Schema. The API document leaves them out. */
export const OWN_KEYWORDS: readonly string[] = ['transform', 'commas', 'maxBytes', 'oneByOne']
/** The keyword under which @fastify/swagger expects the named examples of a body. */
export const NAMED_EXAMPLES = 'x-examples'
/** The offset that ends an RFC 3339 date-time. The library also accepts ISO 8601, whose offsets may be shorter. */
const RFC3339_OFFSET = /(?:Z|[+-]\d\d:\d\d)$/i
for (const ajv of [strict, coercing]) {
  ajvFormats.default(ajv, ['uuid', 'date-time', 'date', 'uri'])
  const iso8601 = (ajv.formats['date-time'] as FormatDefinition<string>).validate as (text: string) => boolean
  ajv.addFormat('date-time', (text) => RFC3339_OFFSET.test(text) && iso8601(text))
  ajvKeywords.default(ajv, 'transform')
  ajv.addKeyword({
    keyword: 'maxBytes',
    type: 'object',
    schemaType: 'number',
    validate: (limit: number, value: object) => Buffer.byteLength(JSON.stringify(value)) <= limit,
  })
  ajv.addVocabulary(['commas', 'oneByOne', NAMED_EXAMPLES])
}

/** Fastify's validator compiler. Requests are validated by the same schemas that the OpenAPI document publishes. */
export const validatorCompiler: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  if (httpPart !== 'body') return validatorOf(coercing, schema, integersOf(schema))
  const member = oneByOneMember(schema)
  return member === undefined ? validatorOf(strict, schema) : validatorOneByOne(schema, member)
}

type Validator = (input: Record<string, unknown>) => { value: object } | { error: Error }

function validatorOf(ajv: Ajv, schema: object, integers: string[] = []): Validator {
  const validate = ajv.compile(schema)
  return (input) => {
    const found = findUnstorable(input, 0)
    if (found !== undefined) {
      const field = found.path.join('.').slice(0, 200)
      return { error: problem.badRequest(`${field === '' ? 'the body' : field} ${found.rule}`) }
    }
    const invalid = integers.find((name) => typeof input[name] === 'string' && !INTEGER.test(input[name]))
    if (invalid !== undefined) return { error: problem.badRequest(`${invalid} must be an integer`) }
    return validate(input) ? { value: input } : { error: validate.errors as never }
  }
}

interface BodySchema {
  properties?: Record<string, { oneByOne?: boolean; items?: object }>
}

/** The list of a body whose items are checked and answered one by one; undefined for most bodies. */
export const oneByOneMember = ({ properties = {} }: BodySchema): string | undefined =>
  Object.keys(properties).find((name) => properties[name]!.oneByOne)

/**
 * Validates a body, and the items of one list on their own: a faulty item is replaced by its `Problem`, with the words
 * that a request of this item alone would get.
 */
function validatorOneByOne(schema: BodySchema, member: string): Validator {
  const { items, ...list } = schema.properties![member]!
  const around = validatorOf(strict, { ...schema, properties: { ...schema.properties, [member]: list } })
  const validateItem = validatorOf(strict, items!)
  const itemOf = (item: unknown) => {
    const checked = validateItem(item as Record<string, unknown>)
    if ('value' in checked) return item
    const { error } = checked
    return error instanceof Problem ? error : schemaProblem(error as never, 'item')
  }
  return (input) => {
    const given: unknown = (input as typeof input | null)?.[member]
    if (!Array.isArray(given)) return around(input)
    // The items are looked at one by one below: here only their number counts.
    const checked = around({ ...input, [member]: Array<number>(given.length).fill(0) })
    return 'error' in checked ? checked : { value: { ...checked.value, [member]: given.map(itemOf) } }
  }
}

/**
 * Fastify's serializer compiler: replies are serialized by their schemas. `http/errors.ts` serializes the problems, so
 * their schemas are only for the API document. Compiling those, ten per operation, took half of the start-up time.
 */
export const serializerCompiler =
  (app: FastifyInstance): FastifySerializerCompiler<object> =>
  ({ schema, httpStatus }) =>
    httpStatus === '200' ? fastJson(schema, { schema: app.getSchemas() as never }) : JSON.stringify

/** An integer in a query string. Conversion alone would also accept 1e2 and 0x10. */
const INTEGER = /^-?\d+$/

function integersOf({ properties = {} }: { properties?: Record<string, { type?: unknown }> }): string[] {
  return Object.keys(properties).filter((name) => properties[name]!.type === 'integer')
}

/** Parses JSON bodies. Refuses a body that is not UTF-8 (RFC 8259): decoding it would silently change its characters. */
export function parseJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const { 'content-encoding': encoding = 'identity' } = request.headers
    if (encoding.toLowerCase() !== 'identity') return done(problem.encodedBody())
    if (!isUtf8(body)) return done(problem.badRequest('the body is not UTF-8'))
    const text = body.toString('utf8')
    void parse(request, text, (error, value: unknown) => {
      const duplicate = error === null ? duplicateMember(text, value) : undefined
      if (duplicate === undefined) done(error, value)
      else done(problem.badRequest(`${duplicate.slice(0, 200)} is given more than once`))
    })
  })
}

/** Deepest nesting of a value: more than any record needs, and far less than PostgreSQL's JSON parser supports. */
const DEPTH_MAX = 32
const UNSTORABLE = /[\0\p{Surrogate}]/u

/**
 * Finds a value that PostgreSQL cannot store, at any depth and also in objects with free keys: the NUL character, half of
 * a surrogate pair (JSON can spell it, "\ud800"), and too deep nesting.
 */
function findUnstorable(value: unknown, depth: number): { path: string[]; rule: string } | undefined {
  if (typeof value === 'string') {
    if (!UNSTORABLE.test(value)) return undefined
    return { path: [], rule: 'must not hold the NUL character or half of a surrogate pair' }
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === DEPTH_MAX) return { path: [], rule: `must be nested at most ${DEPTH_MAX} deep` }
  for (const [key, inner] of Object.entries(value)) {
    const found = findUnstorable(key, depth) ?? findUnstorable(inner, depth + 1)
    if (found !== undefined) return { path: [key, ...found.path], rule: found.rule }
  }
  return undefined
}

/** Most values that a message lists. */
const LISTED_MAX = 25

/** The bad-request problem for what a validator found. */
export function schemaProblem(errors: ErrorObject[], part: string): Problem {
  // `propertyNames` says that the fault is in a key; the errors before it do not.
  const told = errors.find(({ keyword }) => keyword === 'propertyNames') ?? errors[0]!
  return problem.badRequest(describeSchemaError(told, part))
}

/** Describes a validation error: the field and the rule, in the words of the contract. */
function describeSchemaError(error: ErrorObject, part: string): string {
  const field = fieldName(error.instancePath)
  const where = field === '' ? `the ${part === 'querystring' ? 'query' : part}` : field
  const params = error.params as Record<string, unknown>
  switch (error.keyword) {
    case 'required':
      return `${fieldName(`${error.instancePath}/${String(params.missingProperty)}`)} is required`
    case 'additionalProperties':
      return `${fieldName(`${error.instancePath}/${String(params.additionalProperty)}`)} is not a known ${
        part === 'querystring' ? 'query parameter' : 'field'
      }`
    case 'type':
      return `${where} must be ${article(String(params.type))}`
    case 'enum': {
      const values = params.allowedValues as unknown[]
      return values.length > LISTED_MAX
        ? `${where} is none of the ${values.length} values that the API reference lists`
        : `${where} must be one of ${values.join(', ')}`
    }
    case 'const':
      return `${where} must be ${JSON.stringify(params.allowedValue)}`
    case 'pattern':
      return `${where} must match the pattern ${String(params.pattern)}`
    case 'format':
      return `${where} must be ${FORMATS[String(params.format)] ?? String(params.format)}`
    case 'maxLength':
      return `${where} must have at most ${Number(params.limit)} characters`
    case 'minLength':
      return `${where} must have at least ${Number(params.limit)} characters`
    case 'minItems':
      return `${where} must have at least ${Number(params.limit)} ${Number(params.limit) === 1 ? 'value' : 'values'}`
    case 'maxItems':
      return `${where} must have at most ${Number(params.limit)} values`
    case 'maxProperties':
      return `${where} must have at most ${Number(params.limit)} ${membersOf(error)}`
    case 'maxBytes':
      return `${where} must have at most ${Number(error.schema)} bytes as JSON`
    case 'minProperties':
      return `${where} must have at least ${Number(params.limit)} ${membersOf(error)}`
    case 'propertyNames':
      return `${where}: a key must have at most 100 characters`
    case 'minimum':
      return `${where} must be at least ${Number(params.limit)}`
    case 'maximum':
      return `${where} must be at most ${Number(params.limit)}`
    default:
      return `${where} ${error.message ?? 'is invalid'}`
  }
}

/** The noun for an object's members in a message: pairs when its keys are free, otherwise the names it may have. */
function membersOf(error: ErrorObject): string {
  const { properties } = error.parentSchema as { properties?: object }
  return properties === undefined ? 'pairs' : `of ${Object.keys(properties).join(', ')}`
}

const FORMATS: Record<string, string> = {
  uuid: 'a UUID',
  'date-time': 'an RFC 3339 date-time',
  date: 'a date',
}

const article = (type: string) => (/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`)

/** Converts `/fiat_network_instructions/wire` to `fiat_network_instructions.wire`. */
function fieldName(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join('.')
    .slice(0, 200)
}
