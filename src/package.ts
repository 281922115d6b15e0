import { readFileSync } from 'node:fs'

/** What package.json says of this program. */
export const { version, engines } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string; engines: { node: string } }
