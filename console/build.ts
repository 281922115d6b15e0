/**
 * Builds the console into `dist/console`: one script and one style sheet, named by their content, compressed beforehand. The
 * service sends them (src/access/console/files.ts).
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'
import { build } from 'esbuild'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const OUT = fileURLToPath(new URL('../dist/console/', import.meta.url))
const ASSETS = join(OUT, 'assets')

rmSync(ASSETS, { recursive: true, force: true })
mkdirSync(ASSETS, { recursive: true })

const { outputFiles } = await build({
  entryPoints: { console: join(HERE, 'src/main.tsx'), style: join(HERE, 'src/style.css') },
  bundle: true,
  format: 'esm',
  target: 'es2022',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  minify: true,
  legalComments: 'none',
  entryNames: '[name]-[hash]',
  outdir: ASSETS,
  write: false,
})

const icon = readFileSync(join(HERE, '../docs-page/icon.svg'))
const files = new Map<string, Uint8Array>([
  ...outputFiles.map(({ path, contents }) => [basename(path), contents] as const),
  ['icon.svg', icon],
])
const named = (pattern: RegExp) => {
  const name = [...files.keys()].find((one) => pattern.test(one))
  if (name === undefined) throw new Error(`esbuild wrote no file like ${pattern}`)
  return name
}

for (const [name, content] of files) {
  writeFileSync(join(ASSETS, name), content)
  const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY }
  writeFileSync(join(ASSETS, `${name}.br`), brotliCompressSync(content, { params: quality }))
  writeFileSync(join(ASSETS, `${name}.gz`), gzipSync(content, { level: constants.Z_BEST_COMPRESSION }))
}

// index.html is written last: while it is absent, the console counts as not built.
const page = readFileSync(join(HERE, 'index.html'), 'utf8')
  .replace('{{script}}', named(/^console-.*\.js$/))
  .replace('{{style}}', named(/^style-.*\.css$/))
writeFileSync(join(OUT, 'index.html'), page)
