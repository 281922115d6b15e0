import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { BACK_END_MS_MAX, BackEndFailure, type BackEnd } from './back-end.ts'

/** Tells the tool its PIN. Other users of the machine can see a command line. */
const PIN = 'BURSAR_TOKEN_PIN'

/** Which key of which token. */
export interface Pkcs11Key {
  /** The library of the token's maker. */
  module: string
  /** The token's label. */
  token: string
  /** CKA_ID of the key, in hex. By its label, the tool takes any key for signing. */
  id: string
  environment?: Record<string, string>
}

/**
 * A key in a PKCS#11 token. Each call is a process of OpenSC's pkcs11-tool: the library of a maker, which may crash or hang,
 * stays out of the process that has the journal, and installing Bursar compiles nothing. Throws BackEndFailure where a wrong
 * PIN was given since the last right one: tokens lock themselves after a few, and a start may be repeated for ever.
 */
export async function openPkcs11(
  { module, token, id, environment }: Pkcs11Key,
  pin: string,
  msMax = BACK_END_MS_MAX,
): Promise<BackEnd> {
  const name = `token ${token}`
  let refusedPin: BackEndFailure | undefined
  const run = async (args: string[], input?: Uint8Array): Promise<Buffer> => {
    if (refusedPin !== undefined) throw refusedPin
    const called = promisify(execFile)('pkcs11-tool', ['--module', module, ...args], {
      encoding: 'buffer',
      timeout: msMax,
      killSignal: 'SIGKILL',
      // Nothing else of this process's environment, which may have other keys.
      env: { PATH: process.env.PATH, ...environment, [PIN]: pin },
    })
    // A tool that ends before it reads: its exit code tells why.
    called.child.stdin!.on('error', () => undefined).end(input)
    try {
      return (await called).stdout
    } catch (error) {
      const failure = failureOf(name, msMax, error as ToolError)
      if (/CKR_PIN_/.test(failure.message)) refusedPin = failure
      throw failure
    }
  }
  const ofKey = ['--token-label', token, '--login', '--pin', `env:${PIN}`, '--id', id]
  requireUntriedPin(name, token, (await run(['--list-token-slots'])).toString())
  return {
    name: `${name}, key ${id}`,
    format: 'compact',
    publicKey: () => run([...ofKey, '--read-object', '--type', 'pubkey']),
    sign: (digest) => run([...ofKey, '--sign', '--mechanism', 'ECDSA'], digest),
  }
}

interface ToolError extends Error {
  code?: number | string
  killed?: boolean
  stderr?: Buffer
}

function failureOf(
  name: string,
  msMax: number,
  { code, killed, stderr, message }: ToolError,
): BackEndFailure {
  if (code === 'ENOENT') return new BackEndFailure('pkcs11-tool is not installed: it is part of OpenSC')
  if (killed) return new BackEndFailure(`${name} does not answer within ${msMax / 1000} s`)
  const said = stderr
    ?.toString()
    .replaceAll(/^(Using .*|Aborting\.)$/gm, '')
    .trim()
    .replaceAll(/\n+/g, ', ')
  return new BackEndFailure(`${name}: ${said || message}`)
}

/** Throws BackEndFailure where a token that pkcs11-tool lists counts a wrong PIN. */
function requireUntriedPin(name: string, token: string, slots: string): void {
  const own = slots.split(/^Slot /m).find((slot) => /token label *: (.*)/.exec(slot)?.[1]?.trim() === token)
  const counted = /user PIN count low|final user PIN try|user PIN locked/.exec(own ?? '')
  if (counted !== null)
    throw new BackEndFailure(
      `${name} counts a wrong PIN (${counted[0]}), and locks itself after some: log in once with the right one, by 'pkcs11-tool --login'`,
    )
}
