import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

interface Tarball {
  path: string
  files: string[]
}

/** Packs a package as it is published, into a folder: `bursar`, or the workspace. */
export async function pack(folder: string, workspace?: string): Promise<Tarball> {
  const packed = await promisify(execFile)(
    'npm',
    [
      ...['pack', '--ignore-scripts', '--json', '--pack-destination', folder],
      ...(workspace === undefined ? [] : ['-w', workspace]),
    ],
    { cwd: ROOT, maxBuffer: 16 * 1024 * 1024 },
  )
  const [{ filename, files }] = JSON.parse(packed.stdout) as [{ filename: string; files: { path: string }[] }]
  return { path: join(folder, filename), files: files.map(({ path }) => path) }
}

/** Unpacks the client's tarball into a project, beside the packages that it declares and nothing else. */
export async function installClient(project: string): Promise<void> {
  const { path: tarball, files } = await pack(project, 'client')
  for (const file of files)
    expect(file).toMatch(
      /^(LICENSE|README\.md|package\.json|dist\/(commonjs\/)?[\w-]+\.(js|d\.ts|js\.map)|dist\/commonjs\/package\.json)$/,
    )
  const folder = join(project, 'node_modules/@bursar/client')
  await mkdir(folder, { recursive: true })
  await promisify(execFile)('tar', ['-xf', tarball, '--strip-components=1', '-C', folder])
  const { dependencies } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  expect(Object.keys(dependencies)).toEqual(['openapi-fetch'])
  for (const name of ['openapi-fetch', 'openapi-typescript-helpers'])
    await symlink(join(ROOT, 'node_modules', name), join(project, 'node_modules', name))
}
