import { problem, type Problem } from '../contract/problems.ts'

const COLON = 0x3a
const COMMA = 0x2c
const QUOTE = 0x22
const BACKSLASH = 0x5c
/** Fewest bytes of a body for each of its values, on average: `[1,1,1]` costs ten times as much as text of its length. */
const VALUE_BYTES = 16
/** Deepest nesting of a value: more than any record needs, and far less than PostgreSQL's JSON parser supports. */
const DEPTH_MAX = 32

/**
 * Refuses a JSON text before it is parsed: one with too many values for this limit of the body, with too deep nesting, or
 * with a member name that occurs twice in one object. JSON.parse keeps the last value, another parser may keep the first
 * (RFC 8259, 4). Both must see the same amount in a body that moves money. Text that is no JSON is left to the parser.
 */
export function refusalOfJson(text: string, bodyLimit: number): Problem | undefined {
  const valuesMax = bodyLimit / VALUE_BYTES
  const names: (Set<string> | undefined)[] = []
  const path: string[] = []
  let [last, values] = ['""', 1]
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code === QUOTE) {
      const end = endOfString(text, index)
      last = text.slice(index, end)
      index = end - 1
    } else if (code === COLON) {
      const name = textOf(last)
      const seen = names.at(-1)
      // Arrays leave holes, which the filter skips.
      path.length = names.length
      path[names.length - 1] = name
      const places = path.filter(() => true)
      if (seen?.has(name))
        return problem.badRequest(`${places.join('.').slice(0, 200)} is given more than once`, places)
      seen?.add(name)
    } else if (text[index] === '}' || text[index] === ']') names.pop()
    else if (code === COMMA || text[index] === '{' || text[index] === '[') {
      values += 1
      if (code !== COMMA) names.push(text[index] === '{' ? new Set() : undefined)
    }
    if (names.length > DEPTH_MAX)
      return problem.badRequest(`the body must be nested at most ${DEPTH_MAX} deep`, [])
    if (values > valuesMax) return problem.badRequest(`the body has more than ${valuesMax} values`, [])
  }
  return undefined
}

/** The index after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let index = start + 1
  while (index < text.length && text.charCodeAt(index) !== QUOTE)
    index += text.charCodeAt(index) === BACKSLASH ? 2 : 1
  return index + 1
}

/** The text of a string; the string itself where it is none of JSON. */
function textOf(string: string): string {
  try {
    return string.includes('\\') ? (JSON.parse(string) as string) : string.slice(1, -1)
  } catch {
    return string
  }
}
