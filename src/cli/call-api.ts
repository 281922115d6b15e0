import { resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { credentialsFile, openCredentials, type SandboxCredentials } from '../program/demo/credentials.ts'
import { readSettings } from '../settings.ts'
import type { OpenContext } from './define.ts'
import { ownProcess } from './own-process.ts'

/** Longest wait for an answer. The service itself answers within 30 s. */
const ANSWER_MS_MAX = 40_000

/** No answer from the service, or an answer that is not from Bursar. The outcome is unknown. */
export class NoAnswer extends Error {}

export class Refused extends Error {
  readonly status: number
  /** The last part of the problem's type, such as not-found; empty for an answer that is no problem. */
  readonly slug: string

  constructor(status: number, content: unknown) {
    const { type = '', title, detail } = content as { type?: string; title?: string; detail?: string }
    super(`${status} ${title ?? ''}: ${detail ?? JSON.stringify(content)}`)
    this.status = status
    this.slug = type.slice(type.lastIndexOf('/') + 1)
  }
}

interface ApiAnswer {
  status: number
  ok: boolean
  content: unknown
}

export interface ListPage<Item> {
  items: Item[]
  next_page_cursor?: string
}

export interface Api {
  credentials: SandboxCredentials
  /** Sends a request. Throws `NoAnswer`, and `Refused` where no token is issued. */
  send: (method: string, path: string, body?: string, signal?: AbortSignal) => Promise<ApiAnswer>
  /** Sends a request and returns the content of its answer. Throws `NoAnswer` and `Refused`. */
  call: <T>(method: string, path: string, body?: object, signal?: AbortSignal) => Promise<T>
}

/**
 * Opens the API with a credentials file, by default the one that the sandbox wrote. Fetches a token at the first request,
 * and another one when the service refuses the token. Throws when there are no credentials.
 */
async function openApi(file?: string): Promise<Api> {
  const credentials = await openCredentials(
    resolve(file ?? credentialsFile(readSettings(ownProcess().env).dataDir)),
  )
  const { base_url } = credentials
  let token: string | undefined
  const send: Api['send'] = async (method, path, body, signal) => {
    const isNew = token === undefined
    token ??= await accessToken(credentials, signal)
    const answer = await ask(base_url, new URL(`${base_url}${path}`), {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      ...(signal && { signal }),
    })
    if (answer.status !== 401 || isNew) return answer
    token = undefined
    return send(method, path, body, signal)
  }
  return {
    credentials,
    send,
    async call<T>(method: string, path: string, body?: object, signal?: AbortSignal) {
      const answer = await send(method, path, body && JSON.stringify(body), signal)
      if (!answer.ok) throw new Refused(answer.status, answer.content)
      return answer.content as T
    },
  }
}

export const overApi: OpenContext<Api> = async (work, { credentials }) => work(await openApi(credentials))
overApi.option = ['--credentials <file>', 'credentials file (default: the one that the sandbox wrote)']

const LOOK_EVERY_MS = 200

/** Calls `read` until it returns something. Returns undefined after `msMax` milliseconds. */
export async function until<T>(msMax: number, read: () => Promise<T | undefined>): Promise<T | undefined> {
  const deadline = performance.now() + msMax
  let found = await read()
  while (found === undefined && performance.now() <= deadline) {
    await pause(LOOK_EVERY_MS)
    found = await read()
  }
  return found
}

async function accessToken(credentials: SandboxCredentials, signal?: AbortSignal): Promise<string> {
  const { base_url, token_url, client_id, client_secret } = credentials
  const basic = Buffer.from(`${client_id}:${client_secret}`).toString('base64')
  const { ok, status, content } = await ask(base_url, new URL(token_url), {
    method: 'POST',
    headers: { authorization: `Basic ${basic}` },
    body: new URLSearchParams({ grant_type: 'client_credentials' }),
    ...(signal && { signal }),
  })
  const { access_token, error_description } = content as { access_token?: string; error_description?: string }
  if (ok && access_token !== undefined) return access_token
  const detail = `${token_url} issued no token: ${error_description ?? JSON.stringify(content)}`
  throw new Refused(status, { title: 'no token', detail })
}

/** Sends a request and reads its JSON answer. Throws `NoAnswer` when there is no answer, or when the answer is not JSON. */
async function ask(baseUrl: string, url: URL, init: RequestInit): Promise<ApiAnswer> {
  const tooLong = AbortSignal.timeout(ANSWER_MS_MAX)
  const within = init.signal ? AbortSignal.any([init.signal, tooLong]) : tooLong
  let response: Response
  let text: string
  try {
    response = await fetch(url, { ...init, signal: within })
    text = await response.text()
  } catch (cause) {
    init.signal?.throwIfAborted()
    throw new NoAnswer(`${baseUrl} does not answer; start Bursar with: bursar serve`, { cause })
  }
  try {
    return { ok: response.ok, status: response.status, content: JSON.parse(text) }
  } catch (cause) {
    throw new NoAnswer(`${url.origin} answered ${response.status} without JSON: it is not Bursar`, { cause })
  }
}
