import { isDeepStrictEqual } from 'node:util'
import { Type, type TObject, type TOptional, type TProperties } from 'typebox'
import { problem } from './problems.ts'

/** Members of a record that an update may repeat: clients send a record back as they have read it. */
export const repeated = <Members extends TProperties, Name extends keyof Members & string>(
  { properties }: TObject<Members>,
  names: readonly Name[],
): { [K in Name]: TOptional<Members[K]> } =>
  Object.fromEntries(names.map((name) => [name, Type.Optional(properties[name]!)])) as never

/**
 * Throws bad-request for a repeated member that differs from the stored record. `at` is the path of the member that holds
 * `asked`, with a dot at its end.
 */
export function requireUnchanged(asked: object, stored: object, prefix = ''): void {
  const known = stored as Record<string, unknown>
  for (const [name, value] of Object.entries(asked))
    if (value !== undefined && !isDeepStrictEqual(value, known[name]))
      throw problem.badRequest(
        `${prefix}${name} cannot be changed here, and is not what is stored`,
        `${prefix}${name}`,
      )
}
