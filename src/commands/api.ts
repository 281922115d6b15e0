import { resolve } from 'node:path'
import { InvalidArgumentError, type Command } from 'commander'
import { credentialsFile, openCredentials, type SandboxCredentials } from '../demo/credentials.ts'
import { readSettings } from '../settings.ts'
import { EXIT } from './command-line.ts'
import { print, readScreen } from './output.ts'

const METHODS = ['GET', 'POST', 'PUT', 'DELETE']
/** Longest wait for an answer. The service itself answers within 30 s. */
const ANSWER_MS_MAX = 40_000

/** Defines `bursar api`. */
export function apiCommand(program: Command): void {
  program
    .command('api')
    .description("call the API with the sandbox's credentials; exit code 1 when it refuses")
    .argument('<method>', METHODS.join(', '), method)
    .argument('<path>', 'path and query, such as /v2/profiles/{profile_id}/balances', path)
    .argument('[body]', 'JSON', json)
    .option('--credentials <file>', 'credentials file (default: the one that the sandbox wrote)')
    .option('--json', 'print JSON on one line')
    .addHelpText(
      'after',
      `
Names in braces are replaced from the credentials file: {profile_id}, {customer_id}, {memo_id}, {account_id}, ...

Example:
  bursar api POST /v2/sandbox/fiat-deposits \\
    '{"amount":"250.00","asset":"USD","memo_id":"{memo_id}","fiat_network_instructions":{"wire":{}}}'`,
    )
    .action(async (verb: string, to: string, body: string | undefined, options: Options) => {
      const file = options.credentials ?? credentialsFile(readSettings(process.env).dataDir)
      const credentials = await openCredentials(resolve(file))
      const filled = (text: string) => fill(text, credentials)
      const token = await accessToken(credentials)
      const { base_url } = credentials
      const answer = await ask(base_url, new URL(`${base_url}${filled(to)}`), {
        method: verb,
        headers: {
          authorization: `Bearer ${token}`,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body: filled(body) }),
      })
      const pretty = options.json !== true && readScreen().width !== undefined
      print(JSON.stringify(answer.content, null, pretty ? 2 : undefined))
      if (!answer.ok) process.exitCode = EXIT.failed
    })
}

interface Options {
  credentials?: string
  json?: true
}

/** Replaces names in braces by members of the credentials. Other braces stay, because JSON has them too. */
function fill(text: string, credentials: SandboxCredentials): string {
  const { client_secret: _, ...members } = credentials
  return text.replace(/\{(\w+)\}/g, (braces, name: string) =>
    Object.hasOwn(members, name) ? members[name as keyof typeof members] : braces,
  )
}

async function accessToken(credentials: SandboxCredentials): Promise<string> {
  const { base_url, token_url, client_id, client_secret } = credentials
  const basic = Buffer.from(`${client_id}:${client_secret}`).toString('base64')
  const { ok, content } = await ask(base_url, new URL(token_url), {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
  })
  const { access_token, error_description } = content as { access_token?: string; error_description?: string }
  if (!ok || access_token === undefined)
    throw new Error(`${token_url} issued no token: ${error_description ?? JSON.stringify(content)}`)
  return access_token
}

/** Sends a request and reads its JSON answer. Throws when there is no answer, or when it is not JSON. */
async function ask(baseUrl: string, url: URL, init: RequestInit): Promise<{ ok: boolean; content: unknown }> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(ANSWER_MS_MAX) }).catch(
    (cause: Error) => {
      throw new Error(`${baseUrl} does not answer; start Bursar with: bursar serve`, { cause })
    },
  )
  const text = await response.text()
  try {
    return { ok: response.ok, content: JSON.parse(text) }
  } catch (cause) {
    throw new Error(`${url.origin} answered ${response.status} without JSON: it is not Bursar`, { cause })
  }
}

function method(text: string): string {
  const verb = text.toUpperCase()
  if (!METHODS.includes(verb)) throw new InvalidArgumentError(`must be one of ${METHODS.join(', ')}.`)
  return verb
}

function path(text: string): string {
  if (!/^\/(?!\/)/.test(text)) throw new InvalidArgumentError('must be a path that begins with one slash.')
  return text
}

function json(text: string): string {
  try {
    JSON.parse(text)
    return text
  } catch {
    throw new InvalidArgumentError('must be JSON.')
  }
}
