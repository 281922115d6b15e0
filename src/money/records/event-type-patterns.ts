import { Type } from 'typebox'
import { EVENT_TYPES } from '../../contract/event-types.ts'
import { problem } from '../../contract/problems.ts'

/** More patterns than there are types are never needed. */
const PATTERNS_MAX = 100

/** Types of events, as an endpoint or a list names them: `*`, the beginning of types such as `transfer.*`, or a type. */
export const EventTypePattern = Type.String({
  maxLength: 100,
  pattern: '^(\\*|[a-z_]+(\\.[a-z_]+)*(\\.\\*)?)$',
  inWords: 'must be *, the beginning of event types such as transfer.*, or an event type',
  examples: ['transfer.*'],
})

export const EventTypePatterns = Type.Array(EventTypePattern, {
  minItems: 1,
  maxItems: PATTERNS_MAX,
  description: 'Types of events: *, beginnings such as transfer.*, and names.',
  examples: [['transfer.*', 'orchestration.completed']],
})

/** Whether a type of event is one of the patterns' types. `typeMatches` says the same in SQL. */
export const matchesType = (type: string, patterns: readonly string[]): boolean =>
  patterns.some((pattern) =>
    pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern,
  )

/**
 * The SQL condition that a type of event is one of the patterns' types. Both are SQL expressions, text and text[]. A
 * pattern also matches types of later versions, of which this process knows nothing.
 */
export const typeMatches = (type: string, patterns: string): string =>
  `exists (select 1 from unnest(${patterns}) pattern
          where ${type} = pattern
             or right(pattern, 1) = '*' and starts_with(${type}, left(pattern, -1)))`

/** Throws bad-request for a pattern that matches no type of event: it is a typing error. */
export function requireKnownTypes(patterns: readonly string[], field: string): void {
  const types = Object.keys(EVENT_TYPES)
  const unknown = patterns.find((pattern) => !types.some((type) => matchesType(type, [pattern])))
  if (unknown !== undefined)
    throw problem.badRequest(
      `${field} has ${unknown}, which matches no event type (API behaviour, Events)`,
      field,
    )
}
