import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv'
import ajvFormats from 'ajv-formats'
import ajvKeywords from 'ajv-keywords'
import type { FastifySchemaCompiler } from 'fastify'

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
for (const ajv of [strict, coercing]) {
  ajvFormats.default(ajv, ['uuid', 'date-time', 'date', 'uri'])
  ajvKeywords.default(ajv, 'transform')
  ajv.addVocabulary(['commas'])
}

/** Fastify's schema compiler: the same schemas that make the OpenAPI document decide what comes in. */
export const validatorCompiler: FastifySchemaCompiler<object> = ({ schema, httpPart }) =>
  (httpPart === 'body' ? strict : coercing).compile(schema)

export type { ValidateFunction }

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
    case 'enum':
      return `${where} must be one of ${(params.allowedValues as unknown[]).join(', ')}`
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
      return `${where} must have at most ${Number(params.limit)} pairs`
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
