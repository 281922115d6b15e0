import type { ErrorObject } from 'ajv'
import { pointerTo, problem, type Problem } from '../contract/problems.ts'

const ERRORS_MAX = 20

/**
 * Returns the bad-request problem for a validator's errors. `detail` is the first error; `errors` lists the first of
 * each field, at most 20 (RFC 9457, 3).
 */
export function schemaProblem(errors: ErrorObject[], part: string): Problem {
  // `propertyNames` says that the error is in a key; the errors before it do not.
  const [first] = [...errors.filter(({ keyword }) => keyword === 'propertyNames'), ...errors]
  const told = new Map<string, string>()
  for (const error of [first!, ...errors]) {
    const pointer = pointerOf(error)
    if (told.size < ERRORS_MAX && !told.has(pointer)) told.set(pointer, describe(error, part))
  }
  const list = [...told].map(([pointer, detail]) => ({ pointer, detail }))
  return Object.assign(problem.badRequest(list[0]!.detail), { errors: list })
}

/** The pointer of the wrong field. For a missing or unknown field, it points to that field itself. */
function pointerOf({ instancePath, params }: ErrorObject): string {
  const { missingProperty, additionalProperty } = params as Record<string, string | undefined>
  const member = missingProperty ?? additionalProperty
  return `#${instancePath}`.slice(0, 200) + (member === undefined ? '' : pointerTo([member]).slice(1))
}

/** The rule of a parameter without a value. */
export const IS_EMPTY = 'is empty: leave it out, or give it a value'

const LISTED_MAX = 25

/** Describes a validation error: the field and the rule, in the words of the contract. */
function describe(error: ErrorObject, part: string): string {
  const { missingProperty, additionalProperty } = error.params as Record<string, string | undefined>
  const inQuery = part === 'querystring'
  const field = (member?: string) =>
    fieldName(member === undefined ? error.instancePath : `${error.instancePath}/${member}`)
  const where = field() || `the ${inQuery ? 'query' : part}`
  if (inQuery && error.data === '') return `${where} ${IS_EMPTY}`
  if (missingProperty !== undefined)
    return `${field(missingProperty)} is required${inQuery ? meaningOf(error) : ''}`
  if (additionalProperty !== undefined)
    return `${field(additionalProperty) || '""'} is not a known ${inQuery ? 'query parameter' : 'field'}`
  if (inQuery && error.keyword === 'type' && Array.isArray(error.data))
    return `${where} is given more than once`
  const rule = RULES[error.keyword]?.(error, error.params) ?? ` ${error.message ?? 'is invalid'}`
  const unescaped = inQuery && error.keyword === 'format' && OFFSET_AFTER_SPACE.test(String(error.data))
  return `${where}${rule}${unescaped ? '; write the + of its offset as %2B' : ''}`
}

type Params = Record<string, unknown>
/** What follows the name of the field, by the keyword of the schema. */
const RULES: Record<string, (error: ErrorObject, params: Params) => string> = {
  type: (_, { type }) => ` must be ${[type].flat().map(String).map(article).join(' or ')}`,
  enum: ({ data }, { allowedValues }) => {
    const values = allowedValues as unknown[]
    return values.length > LISTED_MAX
      ? `: ${JSON.stringify(data).slice(0, 60)} is none of the ${values.length} values that the API reference lists, such as ${String(values[0])}`
      : ` must be one of ${values.join(', ')}`
  },
  const: (_, { allowedValue }) => ` must be ${JSON.stringify(allowedValue)}`,
  pattern: (error, { pattern }) => ` ${ruleOf(error) ?? `must match the pattern ${String(pattern)}`}`,
  format: (_, { format }) => ` must be ${FORMATS[String(format)] ?? String(format)}`,
  birth: () => ' must be a date from 1800 on, and not in the future',
  textKind: ({ schema }) => ` must not be blank${TEXT_KINDS[String(schema)] ?? ', and must be one line'}`,
  uniqueItems: () => ' must not name a value twice',
  maxLength: (_, { limit }) => ` must have at most ${Number(limit)} characters`,
  minLength: (_, { limit }) => ` must have at least ${Number(limit)} characters`,
  minItems: (_, { limit }) =>
    ` must have at least ${Number(limit)} ${Number(limit) === 1 ? 'value' : 'values'}`,
  maxItems: (_, { limit }) => ` must have at most ${Number(limit)} values`,
  maxProperties: (error, { limit }) => ` must have at most ${Number(limit)} ${membersOf(error)}`,
  minProperties: (error, { limit }) => ` must have at least ${Number(limit)} ${membersOf(error)}`,
  maxBytes: ({ schema }) => ` must have at most ${Number(schema)} bytes as JSON`,
  propertyNames: () => ': a key must have at most 100 characters',
  minimum: (_, { limit }) => ` must be at least ${Number(limit)}`,
  maximum: (_, { limit }) => ` must be at most ${Number(limit)}`,
}

const TEXT_KINDS: Record<string, string> = {
  LINES: '',
  ID: ', and must be one line without invisible characters',
  POSTAL: ', and must be one line without emoji',
}

/** Matches a date-time in a query whose + was decoded as a space, as in a form. */
const OFFSET_AFTER_SPACE = /T[\d:.]{1,30} \d\d:?\d\d$/

/** What a missing parameter is, by its description. */
const meaningOf = ({ parentSchema, params }: ErrorObject) =>
  `: ${(parentSchema as QuerySchema).properties[String(params.missingProperty)]!.description}`
interface QuerySchema {
  properties: Record<string, { description: string }>
}

/** The rule of a pattern in words: the keyword `inWords` of the same schema. */
const ruleOf = ({ parentSchema }: ErrorObject) => (parentSchema as { inWords?: string }).inWords

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
