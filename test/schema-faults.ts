type Type = 'string' | 'integer' | 'boolean' | 'object' | 'array'
/** The keywords that the schemas of requests use. A new keyword needs its fault here first. */
interface Schema {
  type: Type | [Type, Type]
  enum?: unknown[]
  minLength?: number
  maxLength?: number
  pattern?: string
  /** The rule of `pattern`. */
  inWords?: string
  format?: 'uuid' | 'date-time' | 'date'
  /** The kind of text that it holds (src/contract/fields.ts). */
  textKind?: 'LINE' | 'LINES' | 'ID' | 'POSTAL'
  /** A date on which a person can have been born. */
  birth?: boolean
  minimum?: number
  maximum?: number
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  propertyNames?: Schema
  minProperties?: number
  maxProperties?: number
  maxBytes?: number
  items?: Schema
  minItems?: number
  maxItems?: number
  /** Each item has its own answer: a fault in an item does not refuse the request. */
  oneByOne?: boolean
  uniqueItems?: boolean
  examples?: unknown[]
}
const KNOWN = [
  ...[
    'type',
    'enum',
    'minLength',
    'maxLength',
    'pattern',
    'format',
    'birth',
    'textKind',
    'minimum',
    'maximum',
  ],
  ...['properties', 'required', 'additionalProperties', 'propertyNames'],
  ...[
    'minProperties',
    'maxProperties',
    'maxBytes',
    'items',
    'minItems',
    'maxItems',
    'uniqueItems',
    'oneByOne',
  ],
  // These keywords refuse no value.
  ...['description', 'examples', 'default', 'transform', 'commas', 'x-examples', 'inWords'],
]

/** A value that a schema forbids: the place of the fault in it, and the rule that the refusal must name. */
export interface Fault {
  at: string[]
  value: unknown
  rule: string
}

/**
 * A list accepts any text of at most this length as the id of an unknown record. Longer requests are refused for
 * their size.
 */
const LENGTH_TRIED_MAX = 10_000
const WRONG_TYPE = { string: 5, integer: 'abc', boolean: 'true', object: 'x', array: 'x' }
const WRONG_FORMAT: Record<NonNullable<Schema['format']>, [value: string, rule: string]> = {
  uuid: ['me', 'must be a UUID'],
  'date-time': ['yesterday', 'must be an RFC 3339 date-time'],
  date: ['10.12.1815', 'must be a date'],
}
const SAMPLES = {
  uuid: '0192f3a4-7b1c-7d3e-8f00-5a6b7c8d9e0f',
  'date-time': '2026-01-31T09:30:00Z',
  date: '1815-12-10',
}

/** Numbers in spellings that are not amounts. */
const NO_AMOUNTS = [
  ...['', '.', '1.', '1e5', '-1', '+1', ' 1', '1 ', '1\n', '1,5', '1.2.3', '..5', '1_000', '0x10'],
  ...['\u0661', 'NaN', 'Infinity'],
]

/** Returns, for each keyword of a schema, values that break this keyword's rule and no other. */
export function faultsOf(given: object): Fault[] {
  const schema = given as Schema
  // A value that is none of the alternatives.
  if ('anyOf' in schema) return [{ at: [], value: 5, rule: 'must be' }]
  const unknown = Object.keys(schema).filter((keyword) => !KNOWN.includes(keyword))
  if (unknown.length > 0) throw new Error(`no fault is known for ${unknown.join()}`)
  const here = (value: unknown, rule: string): Fault => ({ at: [], value, rule })
  const types = [schema.type].flat()
  const named = types.map((type) => `${/^[aeiou]/.test(type) ? 'an' : 'a'} ${type}`).join(' or ')
  const faults = [here(WRONG_TYPE[types[0]!], `must be ${named}`)]
  if (schema.enum)
    faults.push(
      here('NOPE', schema.enum.length > 25 ? 'is none of the' : `must be one of ${schema.enum.join(', ')}`),
    )
  else if (schema.type === 'string') faults.push(...ofText(schema, here))
  if (schema.minimum !== undefined)
    faults.push(here(schema.minimum - 1, `must be at least ${schema.minimum}`))
  if (schema.maximum !== undefined) faults.push(here(schema.maximum + 1, `must be at most ${schema.maximum}`))
  if (schema.type === 'array') faults.push(...ofArray(schema, here))
  if (types.includes('object')) faults.push(...ofObject(schema, here))
  return faults
}

type Here = (value: unknown, rule: string) => Fault

function ofText(
  { minLength = 0, maxLength, pattern, inWords, format, birth, textKind }: Schema,
  here: Here,
): Fault[] {
  const faults = [here('a\0b', 'must not hold the NUL character')]
  if (minLength > 0) faults.push(here('', `must have at least ${minLength} characters`))
  if (maxLength !== undefined && maxLength <= LENGTH_TRIED_MAX)
    faults.push(here('x'.repeat(maxLength + 1), `must have at most ${maxLength} characters`))
  if (pattern !== undefined) {
    if (inWords === undefined) throw new Error(`the pattern ${pattern} needs its rule in words`)
    faults.push(here('~\t', inWords))
    if (inWords.startsWith('must be a decimal number'))
      faults.push(...NO_AMOUNTS.map((text) => here(text, 'must be a decimal number')))
  }
  if (format !== undefined) faults.push(here(...WRONG_FORMAT[format]))
  if (textKind !== undefined)
    faults.push(...[' ', '\u3000', '\u2800'].map((blank) => here(blank, 'must not be blank')))
  if (textKind !== undefined && textKind !== 'LINES') faults.push(here('a\nb', 'must be one line'))
  if (textKind === 'ID') faults.push(here('a\u200db', 'invisible'))
  if (textKind === 'POSTAL')
    for (const text of ['Main Street \u{1F600}', '\u{1F1E9}\u{1F1EA}', 'a\u2764\ufe0f'])
      faults.push(here(text, 'without emoji'))
  if (birth)
    for (const date of ['0000-01-01', '1799-12-31', '9999-12-31']) faults.push(here(date, 'from 1800 on'))
  return faults
}

function ofArray({ items, minItems = 0, maxItems, uniqueItems, oneByOne }: Schema, here: Here): Fault[] {
  const sample = sampleOf(items!)
  const faults = (oneByOne ? [] : faultsOf(items!)).map(({ at, value, rule }): Fault => ({
    at: ['0', ...at],
    value: [value],
    rule,
  }))
  if (minItems > 0) faults.push(here([], `must have at least ${minItems} value`))
  if (maxItems !== undefined)
    faults.push(here(Array(maxItems + 1).fill(sample), `must have at most ${maxItems} values`))
  if (uniqueItems) faults.push(here([sample, sample], 'must not name a value twice'))
  return faults
}

function ofObject(schema: Schema, here: Here): Fault[] {
  const { properties = {}, required = [], additionalProperties } = schema
  const good = requiredOf(schema)
  const faults = Object.entries(properties).flatMap(([name, property]) =>
    faultsOf(property).map(({ at, value, rule }): Fault => ({
      at: [name, ...at],
      value: { ...good, [name]: value },
      rule,
    })),
  )
  for (const name of required)
    faults.push({ at: [name], value: { ...good, [name]: undefined }, rule: 'is required' })
  if (additionalProperties === false)
    for (const name of ['nothing', 'constructor', ''])
      faults.push({ at: [name], value: { ...good, [name]: 'x' }, rule: 'is not a known field' })
  if (typeof additionalProperties === 'object')
    for (const { at, value, rule } of faultsOf(additionalProperties))
      faults.push({ at: ['key', ...at], value: { ...good, key: value }, rule })
  const { minProperties, maxProperties, propertyNames, maxBytes } = schema
  if (minProperties !== undefined) faults.push(here({}, `must have at least ${minProperties}`))
  if (maxProperties !== undefined)
    faults.push(here(membersOf(schema, maxProperties + 1), `must have at most ${maxProperties}`))
  if (propertyNames?.maxLength !== undefined)
    faults.push(here({ ['k'.repeat(propertyNames.maxLength + 1)]: '' }, 'a key must have at most'))
  if (maxBytes !== undefined)
    faults.push(here({ ...good, free: 'x'.repeat(maxBytes) }, `must have at most ${maxBytes} bytes`))
  return faults
}

/** Returns an object with this many members: the declared ones first, then free keys where the schema allows them. */
function membersOf({ properties = {} }: Schema, count: number): object {
  const named = Object.entries(properties).map(([name, property]) => [name, sampleOf(property)] as const)
  const free = Array.from({ length: count }, (_, index) => [`key${index}`, ''] as const)
  return Object.fromEntries([...named, ...free].slice(0, count))
}

/** Returns the smallest value that a schema allows. */
export function sampleOf(schema: object): unknown {
  const {
    type,
    enum: values,
    format,
    minLength = 0,
    minimum = 0,
    examples,
    properties = {},
    minProperties = 0,
    minItems = 0,
    items,
  } = schema as Schema
  if (values) return values[0]
  switch ([type].flat()[0]) {
    case 'string':
      return format ? SAMPLES[format] : (examples?.[0] ?? 'x'.repeat(minLength))
    case 'integer':
      return minimum
    case 'boolean':
      return true
    case 'array':
      return Array.from({ length: minItems }, () => sampleOf(items!))
    case 'object':
      return Object.entries(properties)
        .slice(0, minProperties)
        .reduce(
          (made, [name, property]) => ({ ...made, [name]: sampleOf(property) }),
          requiredOf(schema as Schema),
        )
    default:
      throw new Error(`no sample is known for ${String(type)}`)
  }
}

const requiredOf = ({ properties = {}, required = [] }: Schema): object =>
  Object.fromEntries(required.map((name) => [name, sampleOf(properties[name]!)]))

/** Returns every field that a schema declares, also within objects and lists: `account`, `account.ref_id`. */
export const declaredBy = (schema: object): string[] =>
  Object.entries((schema as Schema).properties ?? {}).flatMap(([name, field]) => [
    name,
    ...(field.oneByOne ? [] : declaredBy(field.items ?? field)).map((inner) => `${name}.${inner}`),
  ])
