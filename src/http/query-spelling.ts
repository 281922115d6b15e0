import type { TObject } from 'typebox'

/**
 * How clients of other platforms spell query parameters (API behaviour, Lists): lists with brackets, or in the other number,
 * members with brackets, and empty text for what they do not send.
 */

/** What a query may have: `status[]`, `status[0]`, `created_at[gte]`. */
const BRACKETS = /^([^[\]]+)\[([^[\]]*)\]$/
/** Parameters that an empty text does not set. An empty filter by values is refused, so that no other records are answered. */
const UNSET_WHEN_EMPTY = /^(?:page_cursor|order|order_by)$|\.(?:lt|lte|eq|gte|gt|begin|end)$/

/** Returns what rewrites a query to the contract's names; with `lenient`, it also drops parameters that resemble no known one. */
export function queryReader({
  properties,
}: TObject): (query: Record<string, unknown>, lenient: boolean) => void {
  const known = new Map(Object.entries(properties as Record<string, { type?: string; commas?: boolean }>))
  const looks = new Set([...known.keys()].map(look))
  const isList = (name: string) => known.get(name)?.type === 'array'
  const objects = [...known.keys()].filter((name) => known.get(name)!.type === 'object')
  const otherNumber = (name: string) =>
    [...known.keys()].find((list) => isList(list) && isNumberOf(list, name))

  /** The name and, for an object of free members, the key that a parameter sets. */
  const placeOf = (name: string): [name: string, key?: string] | undefined => {
    // A key may have any characters, brackets and dots, too.
    const [object = '', dotted] = name.split(/\.(.*)/s)
    if (dotted !== undefined && objects.includes(object)) return [object, dotted]
    const [, base = name, inner] = BRACKETS.exec(name) ?? []
    const list = isList(base) ? base : otherNumber(base)
    if (list !== undefined && (inner === undefined || /^\d*$/.test(inner))) return [list]
    if (inner !== undefined && known.has(`${base}.${inner}`)) return [`${base}.${inner}`]
    return inner !== undefined && objects.includes(base) ? [base, inner] : undefined
  }
  const looksKnown = (name: string) =>
    [name, name.replace(/\..*/s, '')].some((part) => looks.has(look(part))) ||
    objects.some((object) => look(name).startsWith(look(object)))

  return (query, lenient) => {
    for (const [name, value] of Object.entries(query)) {
      if (known.has(name)) {
        if (value === '' && UNSET_WHEN_EMPTY.test(name)) delete query[name]
        continue
      }
      const [to, key] = placeOf(name) ?? []
      if (to === undefined) {
        if (lenient && !looksKnown(name)) delete query[name]
        continue
      }
      delete query[name]
      if (key !== undefined) query[to] = withMember(query[to], key, value)
      else if (value !== '' || !UNSET_WHEN_EMPTY.test(to))
        query[to] = query[to] === undefined ? value : [query[to], value].flat()
    }
    for (const [name, { commas }] of known)
      if (commas === true && query[name] !== undefined)
        query[name] = [query[name]].flat().flatMap((part) => (part as string).split(','))
  }
}

/** Adds a member to an object. A member given twice gets both values, which are then refused; so is what is no object. */
function withMember(object: unknown = {}, key: string, value: unknown): unknown {
  if (typeof object !== 'object') return object
  const members = object as Record<string, unknown>
  return { ...members, [key]: Object.hasOwn(members, key) ? [members[key], value].flat() : value }
}

/** The letters of a name, without case, brackets and number: `status[eq]` and `Statuses` look like `status`. */
const look = (name: string) =>
  name
    .replace(/\[.*/s, '')
    .toLowerCase()
    .replaceAll(/[^a-z.]/g, '')
    .replace(/(?:e?s)+$/, '')

/** Whether two names differ in their number: `status` and `statuses`, `profile_ids` and `profile_id`. */
const isNumberOf = (a: string, b: string) => PLURALS.some((end) => a === b + end || a + end === b)
const PLURALS = ['s', 'es']
