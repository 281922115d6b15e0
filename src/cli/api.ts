import { InvalidArgumentError, type Command } from 'commander'
import { overApi } from './call-api.ts'
import { group, oneOf } from './define.ts'
import { EXIT } from './exit.ts'
import { readScreen } from './output.ts'
import { ownProcess } from './own-process.ts'

const METHODS = ['GET', 'POST', 'PUT', 'DELETE']

export function apiCommand(program: Command): void {
  group(program, [], overApi, {
    '<method>': [METHODS.join(', '), oneOf(METHODS)],
    '<path>': ['path and query, such as /v2/profiles/{profile_id}/balances', path],
    '<body>': ['JSON', json],
  }).command('api <method> <path> [body]', {
    about: "call the API with the sandbox's credentials; exit code 1 when it refuses",
    help: `
Names in braces are replaced from the credentials file: {profile_id}, {customer_id}, {memo_id}, {account_id}, ...

Example:
  bursar api POST /v2/sandbox/fiat-deposits \\
    '{"amount":"250.00","asset":"USD","memo_id":"{memo_id}","fiat_network_instructions":{"wire":{}}}'`,
    async run({ credentials, send }, { method, path: to, body }) {
      const filled = (text: string) => fill(text, { ...credentials })
      const { ok, content } = await send(method, filled(to), body === undefined ? undefined : filled(body))
      if (!ok) ownProcess().exitCode = EXIT.failed
      return content
    },
    says: (content) => JSON.stringify(content, null, readScreen().width === undefined ? undefined : 2),
  })
}

/** Replaces names in braces by members, but not by the secret. Other braces stay, because JSON has them too. */
export function fill(text: string, { client_secret: _, ...members }: Record<string, unknown>): string {
  return text.replace(/\{(\w+)\}/g, (braces, name: string) =>
    Object.hasOwn(members, name) ? String(members[name]) : braces,
  )
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
