import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** `bursar/client` is what was built. Throws when the sources are newer, so that no test passes for what was. */
export function requireBuiltClient(): void {
  for (const name of readdirSync(join(ROOT, 'src/client'))) {
    const built = statSync(join(ROOT, 'dist/client', name.replace(/\.ts$/, '.js')), { throwIfNoEntry: false })
    if (built === undefined || built.mtimeMs < statSync(join(ROOT, 'src/client', name)).mtimeMs)
      throw new Error(`src/client/${name} is newer than dist/client: npm run build`)
  }
}
