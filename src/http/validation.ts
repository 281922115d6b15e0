import { isUtf8 } from 'node:buffer'
import { Ajv, type ErrorObject, type FormatDefinition } from 'ajv'
import ajvFormats from 'ajv-formats'
import ajvKeywords from 'ajv-keywords'
import fastJson from 'fast-json-stringify'
import type { FastifyInstance, FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'
import { duplicateMember } from './duplicate-member.ts'
import { problem } from '../contract/problems.ts'

const options = {
  // The first error ends the check: with more, hostile input buys more work.
  allErrors: false,
  useDefaults: true,
  removeAdditional: false,
  // A message that names what was found needs the schema and the value.
  verbose: true,
  strict: true,
  strictTypes: false,
  validateFormats: true,
} as const

// Bodies are JSON and must have the right types. Query strings and paths are text: scalars are read as their
// type, a single value as an array of one.
const strict = new Ajv({ ...options, coerceTypes: false })
const coercing = new Ajv({ ...options, coerceTypes: 'array' })
/** What our schemas say beyond JSON Schema, for this validator alone. */
export const OWN_KEYWORDS: readonly string[] = ['transform', 'commas', 'maxBytes']
/** Named examples of a body, which @fastify/swagger knows by this keyword. */
export const NAMED_EXAMPLES = 'x-examples'
/** How an RFC 3339 date-time ends. ISO 8601, which the library reads too, has shorter offsets. */
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
  ajv.addVocabulary(['commas', NAMED_EXAMPLES])
}

/** Fastify's schema compiler: the same schemas that make the OpenAPI document decide what comes in. */
export const validatorCompiler: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  const validate = (httpPart === 'body' ? strict : coercing).compile(schema)
  const integers = httpPart === 'body' ? [] : integersOf(schema)
  return (input: Record<string, unknown>) => {
    const found = unstorable(input, 0)
    if (found !== undefined) {
      const field = found.path.join('.').slice(0, 200)
      return { error: problem.badRequest(`${field === '' ? 'the body' : field} ${found.rule}`) }
    }
    const odd = integers.find((name) => typeof input[name] === 'string' && !INTEGER.test(input[name]))
    if (odd !== undefined) return { error: problem.badRequest(`${odd} must be an integer`) }
    return validate(input) ? { value: input } : { error: validate.errors as never }
  }
}

/**
 * Fastify's serializer compiler: replies are written by their schemas. Problems are written by `http/errors.ts`, so their
 * schemas, of which each operation has ten, are for the API document alone: to compile them took half of a start.
 */
export const serializerCompiler =
  (app: FastifyInstance): FastifySerializerCompiler<object> =>
  ({ schema, httpStatus }) =>
    httpStatus === '200' ? fastJson(schema, { schema: app.getSchemas() as never }) : JSON.stringify

/** Of text, where a number's other spellings (1e2, 0x10) would be read as one too. */
const INTEGER = /^-?\d+$/

function integersOf({ properties = {} }: { properties?: Record<string, { type?: unknown }> }): string[] {
  return Object.keys(properties).filter((name) => properties[name]!.type === 'integer')
}

/** Reads bodies of JSON. What is not UTF-8 is no JSON (RFC 8259): it would be read as other characters. */
export function parseJson(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const { 'content-encoding': encoding = 'identity' } = request.headers
    if (encoding.toLowerCase() !== 'identity') return done(problem.encodedBody())
    if (!isUtf8(body)) return done(problem.badRequest('the body is not UTF-8'))
    const text = body.toString('utf8')
    void parse(request, text, (error, value: unknown) => {
      const twice = error === null ? duplicateMember(text, value) : undefined
      if (twice === undefined) done(error, value)
      else done(problem.badRequest(`${twice.slice(0, 200)} is given more than once`))
    })
  })
}

/** Objects in objects: more than any record here has, and far less than PostgreSQL's JSON parser bears. */
const DEPTH_MAX = 32
const UNSTORABLE = /[\0\p{Surrogate}]/u

/**
 * What PostgreSQL could not hold, wherever it stands, also in objects whose members are free: the NUL character
 * and half of a surrogate pair, which JSON can spell ("\ud800"), and endless nesting.
 */
function unstorable(value: unknown, depth: number): { path: string[]; rule: string } | undefined {
  if (typeof value === 'string') {
    if (!UNSTORABLE.test(value)) return undefined
    return { path: [], rule: 'must not hold the NUL character or half of a surrogate pair' }
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === DEPTH_MAX) return { path: [], rule: `must be nested at most ${DEPTH_MAX} deep` }
  for (const [key, inner] of Object.entries(value)) {
    const found = unstorable(key, depth) ?? unstorable(inner, depth + 1)
    if (found !== undefined) return { path: [key, ...found.path], rule: found.rule }
  }
  return undefined
}

/** More values than these are not repeated in a message. */
const LISTED_MAX = 25

/** Says what is wrong with which field, in the words of the contract. */
export function describeSchemaError(error: ErrorObject, part: string): string {
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

/** What an object holds: pairs, where its keys are free, else one of the members that it may have. */
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

/** `/fiat_network_instructions/wire` as `fiat_network_instructions.wire`. */
function fieldName(pointer: string): string {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .join('.')
    .slice(0, 200)
}
