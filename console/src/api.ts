import { API, ROOT } from './address.ts'
import { ask } from './connection.ts'
import { forgetSession, headersOf, readSession } from './session.ts'

/** Requests to the API. The service adds the access token; the page never has it. */

interface Problem {
  detail?: string
  title?: string
  meta?: Record<string, unknown>
}

class Refused extends Error {
  readonly meta: Record<string, unknown> | undefined

  constructor(status: number, { detail, title, meta }: Problem) {
    super(detail ?? title ?? `the service answered ${status}`)
    this.meta = meta
  }
}

type Value = string | number | boolean | undefined
type Query = Record<string, Value | readonly string[]>
type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** One call of the API, as the page makes it and shows it as curl. */
export interface Call {
  method: Method
  /** The path of the operation, such as `/v2/transfer/transfers`. */
  path: string
  query?: Query
  body?: unknown
}

export const get = (path: string, query: Query = {}): Call => ({ method: 'GET', path, query })
export const post = (path: string, body?: unknown): Call => ({ method: 'POST', path, body })
export const put = (path: string, body: unknown): Call => ({ method: 'PUT', path, body })
export const remove = (path: string): Call => ({ method: 'DELETE', path })

/** The path of a call with its query. Empty values are left out. */
function pathOf({ path, query = {} }: Call): string {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    for (const part of Array.isArray(value) ? (value as string[]) : [value as Value])
      if (part !== undefined && part !== '') parameters.append(name, String(part))
  const text = parameters.toString()
  return path + (text === '' ? '' : `?${text}`)
}

/** The call as a command that does the same with an access token of an API client or operator. */
export function curlOf(call: Call): string {
  const origin = location.origin + ROOT.slice(0, -'/console/'.length)
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const lines = [`curl ${quoted(origin + pathOf(call))}`, `-H "Authorization: Bearer $ACCESS_TOKEN"`]
  if (call.method !== 'GET') lines[0] = `curl -X ${call.method} ${quoted(origin + pathOf(call))}`
  if (call.body !== undefined)
    lines.push(`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(call.body))}`)
  return lines.join(' \\\n  ')
}

/** Makes a call and returns its answer. Throws `Refused`; a session that has ended leads to the sign-in. */
export const send = async <T>(call: Call, options?: SendOptions): Promise<T> =>
  bodyOf<T>(await answerTo(call, options))

/** Makes a call and returns its answer as a file of this media type. Throws `Refused`. */
export async function sendForFile(call: Call, accept: string): Promise<Blob> {
  const answer = await answerTo(call, { accept })
  return answer.ok ? answer.blob() : bodyOf(answer)
}

async function answerTo(
  call: Call,
  { background = false, accept, signal }: SendOptions = {},
): Promise<Response> {
  const attempt = () =>
    ask(API + pathOf(call), {
      method: call.method,
      headers: {
        ...headersOf(background),
        ...(accept !== undefined && { accept }),
        ...(call.body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
      ...(signal !== undefined && { signal }),
    })
  let answer = await attempt()
  // The operator's role may have changed. When the page reads its session, the service takes another access token.
  if (answer.status === 401 && (await readSession()) !== undefined) answer = await attempt()
  if (answer.status === 401) forgetSession()
  return answer
}

interface SendOptions {
  background?: boolean
  accept?: string
  signal?: AbortSignal
}

/** The body of an answer; throws `Refused` for a refusal. */
export async function bodyOf<T>(answer: Response): Promise<T> {
  const body = (await answer.json().catch(() => ({}))) as Problem
  if (!answer.ok) throw new Refused(answer.status, body)
  return body as T
}
