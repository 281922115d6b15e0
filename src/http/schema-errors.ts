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
  const field = fieldName(error.instancePath)
  const where = field === '' ? `the ${part === 'querystring' ? 'query' : part}` : field
  const params = error.params as Record<string, unknown>
  if (part === 'querystring' && error.data === '') return `${where} ${IS_EMPTY}`
  switch (error.keyword) {
    case 'required':
      return `${fieldName(`${error.instancePath}/${String(params.missingProperty)}`)} is required${part === 'querystring' ? meaningOf(error) : ''}`
    case 'additionalProperties':
      return `${fieldName(`${error.instancePath}/${String(params.additionalProperty)}`) || '""'} is not a known ${
        part === 'querystring' ? 'query parameter' : 'field'
      }`
    case 'type':
      if (part === 'querystring' && Array.isArray(error.data)) return `${where} is given more than once`
      return `${where} must be ${[params.type].flat().map(String).map(article).join(' or ')}`
    case 'enum': {
      const values = params.allowedValues as unknown[]
      return values.length > LISTED_MAX
        ? `${where}: ${JSON.stringify(error.data).slice(0, 60)} is none of the ${values.length} values that the API reference lists, such as ${String(values[0])}`
        : `${where} must be one of ${values.join(', ')}`
    }
    case 'const':
      return `${where} must be ${JSON.stringify(params.allowedValue)}`
    case 'pattern':
      return `${where} ${ruleOf(error) ?? `must match the pattern ${String(params.pattern)}`}`
    case 'format': {
      const rule = `${where} must be ${FORMATS[String(params.format)] ?? String(params.format)}`
      const unescaped = part === 'querystring' && OFFSET_AFTER_SPACE.test(String(error.data))
      return unescaped ? `${rule}; write the + of its offset as %2B` : rule
    }
    case 'birth':
      return `${where} must be a date from 1800 on, and not in the future`
    case 'textKind':
      return `${where} must not be blank${error.schema === 'LINES' ? '' : ', and must be one line'}${
        error.schema === 'ID'
          ? ' without invisible characters'
          : error.schema === 'POSTAL'
            ? ' without emoji'
            : ''
      }`
    case 'uniqueItems':
      return `${where} must not name a value twice`
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
