import { InvalidArgumentError, type Command } from 'commander'
import { overApi } from './call-api.ts'
import { define, oneOf } from './define.ts'
import { EXIT } from './exit.ts'
import { readScreen } from './output.ts'
import { ownProcess } from './own-process.ts'

const METHODS = ['GET', 'POST', 'PUT', 'DELETE']

export function apiCommand(program: Command): void {
  define(program, 'api', "call the API with the sandbox's credentials; exit code 1 when it refuses")
    .argument('<method>', METHODS.join(', '), oneOf(METHODS))
    .argument('<path>', 'path and query, such as /v2/profiles/{profile_id}/balances', path)
    .argument('[body]', 'JSON', json)
    .addHelpText(
      'after',
      `
Names in braces are replaced from the credentials file: {profile_id}, {customer_id}, {memo_id}, {account_id}, ...

Example:
  bursar api POST /v2/sandbox/fiat-deposits \\
    '{"amount":"250.00","asset":"USD","memo_id":"{memo_id}","fiat_network_instructions":{"wire":{}}}'`,
    )
    .answer(overApi, async ({ credentials, send }, verb: string, to: string, body: string | undefined) => {
      const filled = (text: string) => fill(text, { ...credentials })
      const { ok, content } = await send(verb, filled(to), body === undefined ? undefined : filled(body))
      if (!ok) ownProcess().exitCode = EXIT.failed
      const isForPeople = readScreen().width !== undefined
      return [content, JSON.stringify(content, null, isForPeople ? 2 : undefined)]
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
