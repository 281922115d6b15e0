/**
 * What clients send beside the contract: `null` for an optional member, which counts as absent, and with
 * `Prefer: handling=lenient` (RFC 7240) unknown members.
 */

interface Shape {
  type?: unknown
  properties?: Record<string, Shape>
  required?: string[]
  items?: Shape
  additionalProperties?: unknown
}

/** The members of a schema's objects, found once. A request then costs one look at each declared member. */
export interface Members {
  known: ReadonlyMap<string, Members | undefined>
  required: readonly string[]
  isClosed: boolean
}

/** Returns the members of an object, or of each object of an array; undefined for other schemas. */
export function membersOf({
  properties,
  required = [],
  items,
  additionalProperties,
}: Shape): Members | undefined {
  if (items !== undefined) return membersOf(items)
  if (properties === undefined) return undefined
  return {
    known: new Map(Object.entries(properties).map(([name, shape]) => [name, membersOf(shape)])),
    required,
    isClosed: additionalProperties === false,
  }
}

/** Whether a value is an object and no array. No schema has an array in an array, so arrays nested without end stop here. */
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Removes optional members that are null. */
export function dropNulls(value: unknown, members: Members): void {
  if (Array.isArray(value)) return value.filter(isObject).forEach((item) => dropNulls(item, members))
  if (!isObject(value)) return
  const object = value as Record<string, unknown>
  for (const name in object) {
    const member = object[name]
    if (typeof member !== 'object' || !members.known.has(name)) continue
    if (member === null) {
      if (!members.required.includes(name)) delete object[name]
    } else {
      const inner = members.known.get(name)
      if (inner !== undefined) dropNulls(member, inner)
    }
  }
}

export function dropUnknown(value: unknown, members: Members): void {
  if (Array.isArray(value)) return value.filter(isObject).forEach((item) => dropUnknown(item, members))
  if (!isObject(value)) return
  const object = value as Record<string, unknown>
  for (const name of Object.keys(object)) {
    const inner = members.known.get(name)
    if (inner !== undefined) dropUnknown(object[name], inner)
    else if (members.isClosed && !members.known.has(name)) delete object[name]
  }
}

export const isLenient = (prefer: string | string[] | undefined): boolean =>
  prefer !== undefined && LENIENT.test([prefer].flat().join(','))
const LENIENT = /(?:^|,)\s*handling\s*=\s*"?lenient"?\s*(?:$|[,;])/i
