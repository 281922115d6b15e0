import { execFile } from 'node:child_process'
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect } from 'vitest'

const ROOT = fileURLToPath(new URL('..', import.meta.url))

/** Unpacks the client's tarball into a project, beside the packages that it declares and nothing else. */
export async function installClient(project: string): Promise<void> {
  const packed = await promisify(execFile)(
    'npm',
    ['pack', '-w', 'client', '--ignore-scripts', '--json', '--pack-destination', project],
    { cwd: ROOT },
  )
  const [{ filename, files }] = JSON.parse(packed.stdout) as [{ filename: string; files: { path: string }[] }]
  for (const { path } of files)
    expect(path).toMatch(
      /^(LICENSE|README\.md|package\.json|dist\/(commonjs\/)?[\w-]+\.(js|d\.ts|js\.map)|dist\/commonjs\/package\.json)$/,
    )
  const folder = join(project, 'node_modules/@bursar/client')
  await mkdir(folder, { recursive: true })
  await promisify(execFile)('tar', ['-xf', join(project, filename), '--strip-components=1', '-C', folder])
  const { dependencies } = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  expect(Object.keys(dependencies)).toEqual(['openapi-fetch'])
  for (const name of ['openapi-fetch', 'openapi-typescript-helpers'])
    await symlink(join(ROOT, 'node_modules', name), join(project, 'node_modules', name))
}
