import type { Static, TObject, TSchema } from 'typebox'
import type { ProblemSlug } from '../contract/problems.ts'
import type { Scope } from '../contract/scopes.ts'
import type { Tag } from '../contract/tags.ts'

/** Who asks: taken from the token, never from the request. */
export interface Caller {
  customerId: string
  clientId: string
  scopes: readonly string[]
}

type Part<S> = S extends TSchema ? Static<S> : undefined

/** What `run` is given of a request: its checked parts and who asks. */
export interface Request<P = unknown, Q = unknown, B = unknown> {
  params: Part<P>
  query: Part<Q>
  body: Part<B>
  customerId: string
  clientId: string
  scopes: readonly string[]
  /** Throws the 401 problem once the caller is disabled. For what waits before it moves money. */
  requireCaller: () => void
}

/** The parts of an example request. Ids are those of `EXAMPLE`, which the demo's own take the place of. */
interface Example<P, Q, B> {
  params?: Part<P>
  query?: Partial<Part<Q>>
  /** One or more bodies, by what they show. */
  bodies?: Record<string, Part<B>>
}

/** What an operation is declared with. `C` is what its `run` can reach beside the request. */
export interface Definition<C, P, Q, B, R> {
  method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  url: string
  scope: Scope
  /** Another scope that is as good; `run` checks which of the two the record takes. */
  alternativeScope?: Scope
  tag: Tag
  summary: string
  description?: string
  params?: P
  query?: Q
  body?: B
  /** Requests that work as they are against the demo data, for the API reference. */
  example?: Example<P, Q, B>
  reply: R
  /** Problems beyond those that every operation can answer. */
  problems?: readonly ProblemSlug[]
  /** It takes money out of a profile: refused (503) while this process cannot tell which clients are disabled. */
  takesMoney?: boolean
  /** Where the operation exists only in sandbox mode. */
  sandboxOnly?: boolean
  run: (request: Request<P, Q, B> & C) => Promise<R extends TSchema ? Static<R> : never>
}

/** An operation as the app mounts it: data on the route, so that one test can walk them all. */
export type Operation = Omit<Definition<unknown, TObject, TObject, TObject, TSchema>, 'run' | 'example'> & {
  example?: { params?: object; query?: object; bodies?: Record<string, unknown> }
  run: (request: never) => Promise<unknown>
}
