import { Agent } from 'undici'
import { sendPost, SendFailure, type HttpAnswer } from '../../http/outbound/post.ts'
import { signatureHeaders } from '../../http/outbound/signature.ts'

/** How much of an answer is read. An ALLOW has 20 bytes. */
const ANSWER_BYTES_MAX = 1024
/** Idle connections are kept this long. */
const KEEP_ALIVE_MS = 4_000

/** What the endpoint is asked about a payment. `details` are sent as they are, and the MAC of an ALLOW covers them. */
export interface Question {
  /** A UUID, the same each time that the question is asked: the header webhook-id. */
  id: string
  kind: 'WITHDRAWAL' | 'DEPOSIT'
  customer_id: string
  details: object
}

/**
 * ALLOW: the payment may go on. REJECT: it waits until an operator decides. HOLD: it waits, and the endpoint is asked
 * again. Any other answer counts as HOLD, and so does no answer. `detail` is for operators.
 */
export type ScreeningVerdict = { outcome: 'ALLOW' } | { outcome: 'REJECT' | 'HOLD'; detail: string }

/** Observes each question, with the time until its answer. */
export type ScreeningMeter = (outcome: ScreeningVerdict['outcome'], seconds: number) => void

/** The operator's screening endpoint (docs/guides/screening.md). */
export class ScreeningEndpoint {
  readonly #url: string
  readonly #secrets: readonly string[]
  readonly timeoutMs: number
  readonly #agent: Agent
  #meter: ScreeningMeter | undefined

  /** `secrets` all sign: one, or during a rotation two. */
  constructor(url: string, secrets: readonly string[], timeoutMs: number) {
    this.#url = url
    this.#secrets = secrets
    this.timeoutMs = timeoutMs
    this.#agent = new Agent({
      connections: null,
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      connect: { timeout: timeoutMs },
    })
  }

  set meter(meter: ScreeningMeter) {
    this.#meter = meter
  }

  /** Asks once, with the time limit of the settings. Never throws for anything that the endpoint does. */
  async ask({ id, ...question }: Question, stopping?: AbortSignal): Promise<ScreeningVerdict> {
    const start = performance.now()
    const verdict = await this.#ask(id, JSON.stringify({ id, ...question }), stopping)
    this.#meter?.(verdict.outcome, (performance.now() - start) / 1000)
    return verdict
  }

  async #ask(id: string, body: string, stopping: AbortSignal | undefined): Promise<ScreeningVerdict> {
    const ending = new AbortController()
    const end = () => ending.abort()
    const limit = setTimeout(end, this.timeoutMs)
    stopping?.addEventListener('abort', end)
    try {
      const answer = await sendPost(this.#agent, {
        url: this.#url,
        headers: {
          'content-type': 'application/json',
          accept: 'application/json',
          ...signatureHeaders(this.#secrets, { id, timestampSeconds: Math.floor(Date.now() / 1000), body }),
        },
        body,
        signal: ending.signal,
        bytesMax: ANSWER_BYTES_MAX,
        connectMsMax: this.timeoutMs,
        answerMsMax: this.timeoutMs,
      })
      return verdictOf(answer)
    } catch (error) {
      if (!(error instanceof SendFailure)) throw error
      return { outcome: 'HOLD', detail: `the screening endpoint: ${error.message}` }
    } finally {
      clearTimeout(limit)
      stopping?.removeEventListener('abort', end)
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

/**
 * The only two answers that decide, to the letter. A JSON parser would take the last of two fields `decision`, and a
 * text that merely contains ALLOW must not pay.
 */
const DECIDED = /^\s*\{\s*"decision"\s*:\s*"(ALLOW|REJECT)"\s*\}\s*$/

/** Reads an answer (docs/guides/screening.md, "Answers"). */
function verdictOf({ statusCode, headers, body, isCut }: HttpAnswer): ScreeningVerdict {
  const hold = (what: string): ScreeningVerdict => ({
    outcome: 'HOLD',
    detail: `the screening endpoint ${what}`,
  })
  if (statusCode < 200 || statusCode > 299) return hold(`answered ${statusCode}`)
  if (isCut) return hold('gave an answer that is too long or has no end')
  if ((headers['content-encoding'] ?? 'identity') !== 'identity') return hold('gave a compressed answer')
  const decision = DECIDED.exec(body.toString('utf8'))?.[1]
  if (decision === undefined) return hold('answered neither ALLOW nor REJECT')
  return decision === 'ALLOW'
    ? { outcome: 'ALLOW' }
    : { outcome: 'REJECT', detail: 'the screening endpoint answered REJECT' }
}
