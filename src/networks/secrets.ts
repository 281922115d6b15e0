import { readFile } from 'node:fs/promises'
import { Type, type Static } from 'typebox'
import { Closed } from '../contract/fields.ts'

/** Where a secret of a configuration file is: in the environment, or in a file of its own. */
export const Secret = Type.Union([
  Closed({ env: Type.String({ minLength: 1 }) }),
  Closed({ file: Type.String({ minLength: 1 }) }),
])
export type Secret = Static<typeof Secret>

/** Reads a secret. Throws an Error that names the field, and never shows the secret. */
export async function readSecret(
  field: string,
  where: Secret,
  environment: Record<string, string | undefined>,
): Promise<string> {
  const isFile = 'file' in where
  const name = isFile ? where.file : where.env
  const value = isFile ? await readSecretFile(field, name) : environment[name]
  if (value === undefined) throw new Error(`${field}: ${name} is not in the environment`)
  if (value.trim() === '') throw new Error(`${field}: ${name} is empty`)
  return value.trim()
}

const readSecretFile = (field: string, path: string): Promise<string> =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${field}: ${path} cannot be read (${error.code})`)
  })
