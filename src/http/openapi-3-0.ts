type Json = string | number | boolean | null | Json[] | { [member: string]: Json }

/** Members of 3.1 that 3.0 lacks and that only say more: `webhooks` and the schema of an object's names. */
const LEFT_OUT: ReadonlySet<string> = new Set(['webhooks', 'propertyNames'])

/**
 * Writes an OpenAPI 3.1 document as 3.0, which more generators of clients read. Of the differences, the document uses few: a
 * list of types becomes text, and the list of a schema's examples becomes its first.
 */
export const asOpenApi30 = (text: string): string =>
  JSON.stringify({ ...(rewritten(JSON.parse(text) as Json) as object), openapi: '3.0.3' })

function rewritten(value: Json): Json {
  if (Array.isArray(value)) return value.map(rewritten)
  if (typeof value !== 'object' || value === null) return value
  const { type, examples, ...rest } = withoutListChoice(value)
  const members = Object.entries(rest)
    .filter(([name]) => !LEFT_OUT.has(name))
    .map(([name, inner]): [string, Json] => [name, name === 'example' ? inner : rewritten(inner)])
  const kept = Object.fromEntries(members)
  if (Array.isArray(examples)) {
    if (examples[0] !== undefined) kept.example = examples[0]
  } else if (examples !== undefined) kept.examples = examples
  // Of the two lists of types, both are of a query, where numbers are text.
  if (Array.isArray(type)) return { ...kept, type: 'string' }
  return type === undefined ? kept : { ...kept, type: rewritten(type) }
}

/** A choice between a text and a list is any value in 3.0: the Java generator makes a class of it that does not compile. */
function withoutListChoice(schema: { [member: string]: Json }): { [member: string]: Json } {
  const { anyOf, ...rest } = schema
  const isListChoice =
    Array.isArray(anyOf) && anyOf.some((form) => (form as { type?: Json }).type === 'array')
  return isListChoice ? rest : schema
}
