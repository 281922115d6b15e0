import { resolve } from 'node:path'
import { InvalidArgumentError, type Command } from 'commander'
import { credentialsFile, openCredentials, type SandboxCredentials } from '../demo/credentials.ts'
import { readSettings } from '../settings.ts'
import { EXIT } from './command-line.ts'
import { print, screen } from './output.ts'

const METHODS = ['GET', 'POST', 'PUT', 'DELETE']
/** Longest that the service may take: it ends its own requests after 30 s. */
const ANSWER_MS_MAX = 40_000

/** `bursar api`. */
export function apiCommand(program: Command): void {
  program
    .command('api')
    .description("call the API with the sandbox's credentials; exit code 1 when it refuses")
    .argument('<method>', METHODS.join(', '), method)
    .argument('<path>', 'path and query, such as /v2/profiles/{profile_id}/balances', path)
    .argument('[body]', 'JSON', json)
    .option('--credentials <file>', 'credentials; those that the sandbox has written, unless given')
    .option('--json', 'print JSON in one line')
    .addHelpText(
      'after',
      `
Names in braces are members of the credentials: {profile_id}, {customer_id}, {memo_id}, {account_id} and so on.

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
      const pretty = options.json !== true && screen().isTerminal
      print(JSON.stringify(answer.content, null, pretty ? 2 : undefined))
      if (!answer.ok) process.exitCode = EXIT.failed
    })
}

interface Options {
  credentials?: string
  json?: true
}

/** The text with names in braces replaced by members of the credentials. What is no member stays, as JSON has braces too. */
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
    throw new Error(`${token_url} gives no token: ${error_description ?? JSON.stringify(content)}`)
  return access_token
}

/** What the service answers. Throws when it does not answer, or with something that is no JSON. */
async function ask(baseUrl: string, url: URL, init: RequestInit): Promise<{ ok: boolean; content: unknown }> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(ANSWER_MS_MAX) }).catch(
    (cause: Error) => {
      throw new Error(`${baseUrl} does not answer: is Bursar running? bursar serve`, { cause })
    },
  )
  const text = await response.text()
  try {
    return { ok: response.ok, content: JSON.parse(text) }
  } catch (cause) {
    throw new Error(`${url.origin} answers ${response.status} and no JSON: it is not Bursar`, { cause })
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
