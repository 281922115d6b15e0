import { randomBytes, randomUUID } from 'node:crypto'
import { fill } from '../api.ts'
import type { Api } from '../call-api.ts'

/**
 * One call of the API. Names in braces are replaced from the credentials, from earlier steps, and by new values of `ref` and
 * `address`. `keep` names members of the answer for the steps that follow: `id` is the record of the recipe.
 */
export type RecipeStep = readonly [
  request: string,
  body: object | undefined,
  keep: Readonly<Record<string, string>>,
]

export async function run(
  { call, credentials }: Api,
  steps: readonly RecipeStep[],
  given: Record<string, string> = {},
): Promise<Record<string, string>> {
  const known: Record<string, string> = { ...given }
  for (const [request, body, keep] of steps) {
    const fresh = { ref: `trigger-${randomUUID()}`, address: `0x${randomBytes(20).toString('hex')}` }
    const filled = (text: string) => fill(text, { ...credentials, ...fresh, ...known })
    const [method, path] = filled(request).split(' ') as [string, string]
    const answer = await call(method, path, body && (JSON.parse(filled(JSON.stringify(body))) as object))
    for (const [name, member] of Object.entries(keep)) known[name] = memberOf(answer, member)
  }
  return known
}

const memberOf = (answer: unknown, path: string): string =>
  path.split('.').reduce((value, name) => (value as Record<string, unknown>)[name], answer) as string

export const PROFILE: RecipeStep = ['POST /v2/profiles', { nickname: '{ref}' }, { to: 'id' }]
