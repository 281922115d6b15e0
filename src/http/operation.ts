import type { Static, TObject, TSchema } from 'typebox'
import type { Database } from '../db/database.ts'
import type { Ledger } from '../movements/ledger.ts'
import type { Networks } from '../networks/network.ts'
import type { Settings } from '../settings.ts'
import type { ProblemSlug } from '../contract/problems.ts'
import type { Scope } from '../contract/scopes.ts'
import type { Tag } from '../contract/tags.ts'

/** What every operation can reach. */
export interface Context {
  db: Database
  ledger: Ledger
  networks: Networks
  settings: Settings
  /** Where clients reach this service; also the token issuer. No slash at the end. */
  baseUrl: string
}

/** Who asks: taken from the token, never from the request. */
export interface Caller {
  customerId: string
  clientId: string
  scopes: readonly string[]
}

type Part<S> = S extends TSchema ? Static<S> : undefined

/** What `run` is given: the checked parts of the request, the caller's customer and the context. */
export interface Request<P, Q, B> extends Context {
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
export interface Example<P, Q, B> {
  params?: Part<P>
  query?: Partial<Part<Q>>
  /** One or more bodies, by what they show. */
  bodies?: Record<string, Part<B>>
}

interface Definition<P, Q, B, R> {
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
  run: (request: Request<P, Q, B>) => Promise<R extends TSchema ? Static<R> : never>
}

/** An operation as the app mounts it: data on the route, so that one test can walk them all. */
export type Operation = Omit<Definition<TObject, TObject, TObject, TSchema>, 'run' | 'example'> & {
  example?: { params?: object; query?: object; bodies?: Record<string, unknown> }
  run: (request: Request<never, never, never>) => Promise<unknown>
}

/**
 * Declares one operation: its route, scope, schemas and what it does. The schemas validate, serialise and
 * document; there is no second description of it anywhere.
 */
export function operation<
  P extends TObject | undefined = undefined,
  Q extends TObject | undefined = undefined,
  B extends TObject | undefined = undefined,
  R extends TSchema = TSchema,
>(definition: Definition<P, Q, B, R>): Operation {
  return definition
}
