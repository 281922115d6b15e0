import { isUtf8 } from 'node:buffer'
import { Ajv, type ErrorObject, type FormatDefinition, type Options, type ValidateFunction } from 'ajv'
import ajvFormats from 'ajv-formats'
import ajvKeywords from 'ajv-keywords'
import fastJson from 'fast-json-stringify'
import type { FastifyInstance, FastifySchemaCompiler, FastifySerializerCompiler } from 'fastify'
import { Temporal } from 'temporal-polyfill'
import { isFilledIn, UNREADABLE, UNSTORABLE, type TextKind } from '../contract/fields.ts'
import { dropNulls, membersOf } from './body-members.ts'
import { refusalOfJson } from './duplicate-member.ts'
import { problem, type Problem } from '../contract/problems.ts'
import { IS_EMPTY, schemaProblem } from './schema-errors.ts'

const options = {
  useDefaults: true,
  removeAdditional: false,
  // The error messages are built from the schema and the value.
  verbose: true,
  strict: true,
  strictTypes: false,
  validateFormats: true,
  // TypeBox writes the schemas. To compile the schema of schemas would take 40 ms of a start for each validator.
  validateSchema: false,
  meta: false,
} as const

// Bodies are JSON and must have the right types. Query strings and paths are text: scalars are converted to the type of
// the schema, and a single value to an array.
const STRICT = { ...options, coerceTypes: false } as const
const COERCING = { ...options, coerceTypes: 'array' } as const
/** Two validators: one stops at the first error, because hostile input could cause much work; one collects all errors. */
interface Ajvs {
  first: Ajv
  /** Made for the first invalid input. */
  all: () => Ajv
}
function ajvsOf(options: typeof STRICT | typeof COERCING): Ajvs {
  let collecting: Ajv | undefined
  return {
    first: ajvOf({ ...options, allErrors: false }),
    all: () => (collecting ??= ajvOf({ ...options, allErrors: true })),
  }
}
/** Keywords of our schemas that are not in JSON Schema. The API document leaves them out. */
export const OWN_KEYWORDS: readonly string[] = [
  'transform',
  'commas',
  'maxBytes',
  'oneByOne',
  'inWords',
  'birth',
  'textKind',
]
/** The keyword under which @fastify/swagger expects the named examples of a body. */
export const NAMED_EXAMPLES = 'x-examples'
/** The offset that ends a date-time, also without its colon, as some generators write it. The library accepts shorter ones, too. */
const OFFSET = /(?:Z|[+-]\d\d:?\d\d)$/i
function ajvOf(options: Options): Ajv {
  const ajv = new Ajv(options)
  ajvFormats.default(ajv, ['uuid', 'date-time', 'date', 'uri'])
  const iso8601 = (ajv.formats['date-time'] as FormatDefinition<string>).validate as (text: string) => boolean
  ajv.addFormat('date-time', (text) => OFFSET.test(text) && iso8601(text))
  ajvKeywords.default(ajv, 'transform')
  ajv.addKeyword({
    keyword: 'maxBytes',
    type: 'object',
    schemaType: 'number',
    validate: (limit: number, value: object) => Buffer.byteLength(JSON.stringify(value)) <= limit,
  })
  ajv.addKeyword({ keyword: 'birth', type: 'string', schemaType: 'boolean', validate: isBirth })
  ajv.addKeyword({
    keyword: 'textKind',
    type: 'string',
    schemaType: 'string',
    validate: (kind: TextKind, text: string) => isFilledIn(kind, text),
  })
  ajv.addVocabulary(['commas', 'oneByOne', 'inWords', NAMED_EXAMPLES])
  return ajv
}
/** Whether a person can have been born on this date: from 1800 to today in UTC+14, where each day begins first. */
const isBirth = (_: boolean, date: string) =>
  date >= '1800-01-01' && date <= Temporal.Now.plainDateISO('Etc/GMT-14').toString()
const strict = ajvsOf(STRICT)
const coercing = ajvsOf(COERCING)

/** Fastify's validator compiler. Requests are validated by the same schemas that the OpenAPI document publishes. */
export const validatorCompiler: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  if (httpPart === 'headers') return () => true
  if (httpPart !== 'body') return validatorOf(coercing, schema, httpPart ?? 'querystring', integersOf(schema))
  const member = oneByOneMember(schema)
  return member === undefined ? validatorOf(strict, schema, 'body') : validatorOneByOne(schema, member)
}

type Validator = (input: Record<string, unknown>) => { value: object } | { error: Problem }

/** A schema is compiled when it is first used: compiling those of all operations took 40 % of the CPU of a start. */
function validatorOf(ajv: Ajvs, schema: object, part: string, integers: string[] = []): Validator {
  let validate: ValidateFunction | undefined
  let collect: ValidateFunction | undefined
  /** Returns all errors of small input, or the first error of larger input. */
  const errorsOf = (input: unknown, found: ErrorObject[]): ErrorObject[] => {
    if (!isSmall(input)) return found
    collect ??= ajv.all().compile(schema)
    collect(input)
    return [...found, ...(collect.errors ?? [])]
  }
  const members = part === 'querystring' || part === 'params' ? undefined : membersOf(schema)
  const unreadable = members === undefined ? UNSTORABLE : UNREADABLE
  return (input) => {
    if (members !== undefined) dropNulls(input, members)
    const found = findUnreadable(input, unreadable)
    if (found !== undefined) {
      const field = found.path.join('.').slice(0, 200)
      const detail = `${field === '' ? `the ${part}` : field} ${found.rule}`
      return { error: problem.badRequest(detail, found.path) }
    }
    const invalid = integers.find((name) => typeof input[name] === 'string' && !INTEGER.test(input[name]))
    if (invalid !== undefined) {
      const detail = `${invalid} ${input[invalid] === '' ? IS_EMPTY : 'must be an integer'}`
      return { error: problem.badRequest(detail, [invalid]) }
    }
    validate ??= ajv.first.compile(schema)
    return validate(input)
      ? { value: input }
      : { error: schemaProblem(errorsOf(input, validate.errors!), part) }
  }
}

/** Returns a validator of JSON that a command reads from a file: the same rules and words as for the body of a request. */
export const fileValidator = (schema: object): Validator => validatorOf(strict, schema, 'file')

interface BodySchema {
  properties?: Record<string, { oneByOne?: boolean; items?: object; maxItems?: number }>
}

/** The list of a body whose items are checked and answered one by one; undefined for most bodies. */
export const oneByOneMember = ({ properties = {} }: BodySchema): string | undefined =>
  Object.keys(properties).find((name) => properties[name]!.oneByOne)

/**
 * Validates a body, and the items of one list separately. A faulty item is replaced by its `Problem`, with the same
 * words as for a single request.
 */
function validatorOneByOne(schema: BodySchema, member: string): Validator {
  const { items, ...list } = schema.properties![member]!
  const { maxItems = Infinity } = list
  const around = validatorOf(
    strict,
    { ...schema, properties: { ...schema.properties, [member]: list } },
    'body',
  )
  const validateItem = validatorOf(strict, items!, 'item')
  const itemOf = (item: unknown) => {
    const checked = validateItem(item as Record<string, unknown>)
    return 'value' in checked ? item : checked.error
  }
  return (input) => {
    const given: unknown = (input as typeof input | null)?.[member]
    if (!Array.isArray(given)) return around(input)
    // The items are validated one by one below. Here only their number counts, and one item above the limit is enough
    // to refuse the list (measured: half a million took 0.5 s of CPU).
    const length = Math.min(given.length, maxItems + 1)
    const checked = around({ ...input, [member]: Array<number>(length).fill(0) })
    return 'error' in checked ? checked : { value: { ...checked.value, [member]: given.map(itemOf) } }
  }
}

/**
 * Fastify's serializer compiler: replies are serialized by their schemas, compiled when they are first used.
 * `http/errors.ts` serializes the problems, so their schemas are only for the API document.
 */
export const serializerCompiler =
  (app: FastifyInstance): FastifySerializerCompiler<object> =>
  ({ schema, httpStatus }) => {
    if (httpStatus !== '200') return JSON.stringify
    let serialize: ((reply: unknown) => string) | undefined
    return (reply) => {
      serialize ??= fastJson(schema, { schema: app.getSchemas() as never })
      return serialize(reply)
    }
  }

/** Matches an integer in a query string. Conversion alone would also accept 1e2 and 0x10. */
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
    const refusal = refusalOfJson(text, request.routeOptions.bodyLimit)
    if (refusal !== undefined) return done(refusal)
    void parse(request, text, (error, value: unknown) => done(error === null ? null : faultOf(text), value))
  })
}

/** Says why a body is refused: the engine names the place. A text that it reads has a key that would change a prototype. */
function faultOf(text: string): Problem {
  try {
    JSON.parse(text)
  } catch (error) {
    const cause =
      text === ''
        ? 'the body is empty; it must be a JSON object'
        : `the body is not valid JSON: ${(error as Error).message}`
    return problem.badRequest(cause)
  }
  return problem.badRequest('the body has a key __proto__ or constructor.prototype')
}

/** Matches nearly all text. Unreadable text has other characters, and the pattern for those is slower. */
const PLAIN = /^[ -~]*$/

/**
 * Finds text with forbidden characters, at any depth and also in objects with free keys. JSON can
 * spell half of a surrogate pair ("\ud800").
 */
function findUnreadable(value: unknown, unreadable: RegExp): { path: string[]; rule: string } | undefined {
  if (typeof value === 'string') {
    if (PLAIN.test(value)) return undefined
    const [character] = unreadable.exec(value) ?? []
    if (character === undefined) return undefined
    if (UNSTORABLE.test(character))
      return { path: [], rule: 'must not hold the NUL character or half of a surrogate pair' }
    const code = character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')
    return { path: [], rule: `must not hold the character U+${code}, which nobody sees` }
  }
  if (typeof value !== 'object' || value === null) return undefined
  // Parsed JSON inherits no members.
  for (const key in value) {
    const found = findUnreadable(key, unreadable) ?? findUnreadable(value[key as never], unreadable)
    if (found !== undefined) return { path: [key, ...found.path], rule: found.rule }
  }
  return undefined
}

/** Limits of input whose errors are all collected: the longest text, and the total of characters and values. */
const TEXT_LENGTH_MAX = 500
const CHARACTERS_MAX = 10_000
const VALUES_MAX = 500

/** Whether input is so small that collecting its errors is cheap: patterns backtrack on long text. */
function isSmall(input: unknown): boolean {
  let characters = 0
  let values = 0
  const fits = (value: unknown): boolean => {
    values += 1
    if (typeof value === 'string') {
      characters += value.length
      return value.length <= TEXT_LENGTH_MAX && characters <= CHARACTERS_MAX
    }
    if (typeof value !== 'object' || value === null) return values <= VALUES_MAX
    return values <= VALUES_MAX && Object.entries(value).every(([key, inner]) => fits(key) && fits(inner))
  }
  return fits(input)
}
