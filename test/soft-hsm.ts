import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const MODULE = '/usr/lib/softhsm/libsofthsm2.so'
const isInPath = (program: string) =>
  process.env.PATH!.split(delimiter).some((folder) => existsSync(join(folder, program)))

export const HAS_SOFT_HSM = existsSync(MODULE) && isInPath('pkcs11-tool')

const GUIDE = readFileSync(new URL('../docs/guides/signer.md', import.meta.url), 'utf8')

/** The blocks of a section of the guide to the signer. */
export function guideBlocks(heading: string, language: 'sh' | 'json'): string[] {
  const [, section = ''] = GUIDE.split(`\n## ${heading}\n`)
  const [own = ''] = section.split('\n## ')
  return [...own.matchAll(new RegExp(`\`\`\`${language}\n([^]*?)\`\`\``, 'g'))].map(([, text]) => text!)
}

/** Makes a token of SoftHSM with a key in this folder, with the commands of the guide. */
export async function makeToken(folder: string, pin = '4711') {
  await mkdir(join(folder, 'tokens'), { recursive: true })
  const configuration = join(folder, 'softhsm2.conf')
  await writeFile(configuration, `directories.tokendir = ${join(folder, 'tokens')}\n`)
  const pinFile = join(folder, 'pin')
  await writeFile(pinFile, pin, { mode: 0o600 })
  const environment = { SOFTHSM2_CONF: configuration }
  const run = (commands: string) =>
    promisify(execFile)('bash', ['--norc', '-euc', commands], {
      env: { PATH: process.env.PATH, PIN: pin, SO_PIN: '12345678', ...environment },
    })
  const [making, loggingIn] = guideBlocks('A key in an HSM', 'sh') as [string, string]
  await run(making)
  const [block] = guideBlocks('A key in an HSM', 'json')
  const { pkcs11 } = JSON.parse(block!) as { pkcs11: { module: string; token: string; id: string } }
  const logIn = () => run(`module=${pkcs11.module}\n${loggingIn}`)
  return { section: { pkcs11: { ...pkcs11, pin: { file: pinFile }, environment } }, pinFile, logIn }
}
