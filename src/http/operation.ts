import type { Static, TObject, TSchema } from 'typebox'
import type { Actor, Origin } from '../contract/actor.ts'
import type { ProblemBody } from '../contract/problem-body.ts'
import type { ProblemSlug } from '../contract/problems.ts'
import type { Scope } from '../contract/scopes.ts'
import type { Asker } from '../db/customer-pool.ts'
import type { Tag } from '../contract/tags.ts'

/** The authenticated client or operator: taken from the token, never from the request. */
export interface Caller {
  customerId: string
  clientId: string
  scopes: readonly string[]
  /** The actor that the audit log names for the caller's changes. */
  actor: Actor
  /** For an operator's token: the session that took the token, and the operator's generation at that time. */
  session?: { id: string; generation: number }
}

type Part<S> = S extends TSchema ? Static<S> : undefined

/** A request as `run` receives it: its validated parts and the caller. */
export interface Request<P = unknown, Q = unknown, B = unknown> {
  params: Part<P>
  query: Part<Q>
  body: Part<B>
  customerId: string
  clientId: string
  scopes: readonly string[]
  /** Who makes the request's changes, and through which request. */
  origin: Origin
  /** Throws the 401 problem once the caller is disabled. For operations that wait before they move money. */
  requireCaller: () => void
  /** The client that waits for the answer. Long work ends once the client has left. */
  asker: Asker
  /** Adds headers to the answer: those of `replyHeaders`. */
  answerWith: (headers: Record<string, string>) => void
  problemOf?: (error: unknown, item: unknown) => ProblemBody
}

/** The parts of an example request. Its ids come from `EXAMPLE`; a sandbox replaces them by the demo's ids. */
interface Example<P, Q, B> {
  params?: Part<P>
  query?: Partial<Part<Q>>
  /** One or more bodies, each under its summary. */
  bodies?: Record<string, Part<B>>
}

/** The declaration of an operation. `C` is the context that `run` gets in addition to the request. */
export interface Definition<C, P, Q, B, R> {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  url: string
  /** The scope that a token needs. Null for a public operation: it reads no token and shows nothing of a customer. */
  scope: Scope | null
  /** Another sufficient scope; `run` checks which of the two the record requires. */
  alternativeScope?: Scope
  tag: Tag
  summary: string
  description?: string
  params?: P
  query?: Q
  body?: B
  /** Longest body in bytes, where what the schema implies is too little (mount.ts). */
  bodyLimit?: number
  /** Example requests for the API reference, which work unchanged on the demo data. */
  example?: Example<P, Q, B>
  reply: R
  /** Other forms of the answer, by media type, streamed to whom `Accept`s it: `text/csv`. */
  forms?: Record<string, (request: Request<P, Q, B> & C) => Promise<AsyncIterable<string>>>
  /** The headers of the answer that the operation adds. */
  replyHeaders?: TObject
  /** Problems in addition to those that every operation can answer. */
  problems?: readonly ProblemSlug[]
  /** The operation withdraws money: refused (503) while the list of disabled clients is too old. */
  takesMoney?: boolean
  /**
   * For a POST without a `ref_id`. HARMLESS: a second request has no effect that matters. Any other text tells the client
   * what to do instead of sending an Idempotency-Key, which is then refused.
   */
  repeats?: 'HARMLESS' | (string & {})
  /** The operation is for operators: the API document leaves it out (docs/reference/operators.md). */
  forOperators?: true
  /** The operation exists only in sandbox mode. */
  sandboxOnly?: boolean
  run: (request: Request<P, Q, B> & C) => Promise<R extends TSchema ? Static<R> : never>
}

/** An operation as the app mounts it. It is data, so that a test can iterate over all operations. */
export type Operation = Omit<
  Definition<unknown, TObject, TObject, TObject, TSchema>,
  'run' | 'example' | 'forms'
> & {
  example?: { params?: object; query?: object; bodies?: Record<string, unknown> }
  forms?: Record<string, (request: never) => Promise<AsyncIterable<string>>>
  run: (request: never) => Promise<unknown>
}
