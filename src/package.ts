import { readFileSync } from 'node:fs'

/** The folder of package.json: both the sources and the built program lie in a folder of it. */
export const ROOT = new URL('../', import.meta.url)

export const { version, engines } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as {
  version: string
  engines: { node: string }
}
