import type { Agent, Dispatcher } from 'undici'

/** No answer came, or the target is not allowed. The message has no address and no secret. */
export class SendFailure extends Error {}

export interface HttpAnswer {
  statusCode: number
  headers: Record<string, string | string[] | undefined>
  /** The first bytes, as they came: a compressed body is not inflated. */
  body: Buffer
  /** Whether `body` is only the beginning. */
  isCut: boolean
}

export interface Post {
  url: string
  headers: Record<string, string>
  body: string
  /** Ends the request: it takes too long, or the process stops. */
  signal: AbortSignal
  /** How much of the body is read. After that, the connection is closed. */
  bytesMax: number
  /** The limits of the agent and of `signal`, for messages. */
  connectMsMax: number
  answerMsMax: number
}

/** Sends one POST request, and follows no redirect. Throws `SendFailure` when no answer comes. */
export async function sendPost(agent: Agent, request: Post): Promise<HttpAnswer> {
  const { url, headers, body, signal, bytesMax } = request
  const { origin, pathname, search } = new URL(url)
  try {
    const response = await agent.request({
      origin,
      path: `${pathname}${search}`,
      method: 'POST',
      headers,
      body,
      signal,
    })
    return {
      statusCode: response.statusCode,
      headers: response.headers,
      ...(await beginningOf(response.body, bytesMax)),
    }
  } catch (error) {
    throw new SendFailure(explain(error, request), { cause: error })
  }
}

/** Reads the beginning of a body. When the time is over or the connection breaks, returns the bytes that came until then. */
async function beginningOf(
  body: Dispatcher.ResponseData['body'],
  bytesMax: number,
): Promise<Pick<HttpAnswer, 'body' | 'isCut'>> {
  const chunks: Buffer[] = []
  let bytes = 0
  // Leaving the loop destroys the body, which reports that as an error.
  body.on('error', () => undefined)
  try {
    for await (const chunk of body) {
      chunks.push(chunk as Buffer)
      bytes += (chunk as Buffer).length
      if (bytes > bytesMax) break
    }
  } catch {
    return { body: Buffer.concat(chunks).subarray(0, bytesMax), isCut: true }
  }
  return { body: Buffer.concat(chunks).subarray(0, bytesMax), isCut: bytes > bytesMax }
}

const NO_CONNECTION = 'NO_CONNECTION'
const NO_ANSWER = 'NO_ANSWER'
const EXPLANATIONS: Record<string, string> = {
  UND_ERR_CONNECT_TIMEOUT: NO_CONNECTION,
  UND_ERR_ABORTED: NO_ANSWER,
  UND_ERR_HEADERS_TIMEOUT: NO_ANSWER,
  UND_ERR_BODY_TIMEOUT: NO_ANSWER,
  UND_ERR_SOCKET: 'the connection was closed before the answer',
  ECONNRESET: 'the connection was closed before the answer',
  EPIPE: 'the connection was closed before the answer',
  ECONNREFUSED: 'the connection was refused',
  ETIMEDOUT: NO_CONNECTION,
  EHOSTUNREACH: 'the host cannot be reached',
  ENETUNREACH: 'the host cannot be reached',
  ENOTFOUND: 'the name cannot be resolved',
  ENODATA: 'the name cannot be resolved',
  EAI_AGAIN: 'the name cannot be resolved',
  ESERVFAIL: 'the name cannot be resolved',
  EREFUSED: 'the name cannot be resolved',
  ETIMEOUT: 'the name cannot be resolved',
  ECANCELLED: 'the name cannot be resolved',
}

/** Explains a failure. The system's own messages name addresses, so only their code is shown. */
function explain(error: unknown, { connectMsMax, answerMsMax }: Post): string {
  const first: unknown = error instanceof AggregateError ? error.errors[0] : error
  if (first instanceof SendFailure) return first.message
  const { code = '', name } = first as { code?: string; name: string }
  const known = name === 'AbortError' || name === 'TimeoutError' ? NO_ANSWER : EXPLANATIONS[code]
  if (known === NO_CONNECTION) return `no connection within ${connectMsMax / 1000} s`
  if (known === NO_ANSWER) return `no answer within ${answerMsMax / 1000} s`
  return known ?? `the request failed (${code === '' ? name : code})`
}
