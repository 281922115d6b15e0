import { InvalidArgumentError, type Command } from 'commander'
import type { SandboxCredentials } from '../demo/credentials.ts'
import { openApi } from './call-api.ts'
import { EXIT } from './exit.ts'
import { print, readScreen } from './output.ts'

const METHODS = ['GET', 'POST', 'PUT', 'DELETE']

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
      const { credentials, send } = await openApi(options.credentials)
      const filled = (text: string) => fill(text, credentials)
      const answer = await send(verb, filled(to), body === undefined ? undefined : filled(body))
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
