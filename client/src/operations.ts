import type { HeadersOptions, ParamsOption, RequestBodyOption } from 'openapi-fetch'
import type { paths } from './schema.ts'

/** The operations of the API as types, by path and method. */

export type Method = 'get' | 'post' | 'put' | 'delete'

/** The paths that have this method. */
export type PathOf<M extends Method> = {
  [P in keyof paths]: paths[P][M] extends object ? P : never
}[keyof paths]

type Operation<P extends keyof paths, M extends Method> = NonNullable<paths[P][M]>

/** The operation's answer. */
export type Reply<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { responses: { 200: { content: { 'application/json': infer R } } } } ? R : never

/** The parts of a request that the operation takes: `params` with `path` and `query`, `body`, `headers`, `signal`. */
export type Init<P extends keyof paths, M extends Method> = ParamsOption<Operation<P, M>> &
  RequestBodyOption<Operation<P, M>> & { headers?: HeadersOptions; signal?: AbortSignal | null }

/** The arguments after the path. They are optional when the operation requires no input. */
export type Rest<P extends keyof paths, M extends Method> =
  RequiredKeys<Init<P, M>> extends never ? [init?: Init<P, M>] : [init: Init<P, M>]

type RequiredKeys<T> = { [K in keyof T]-?: object extends Pick<T, K> ? never : K }[keyof T]

/** The lists, paged or not. */
export type ListPath = {
  [P in PathOf<'get'>]: RecordOf<Reply<P, 'get'>> extends never ? never : P
}[PathOf<'get'>]

/** A record of a list. */
export type Item<P extends ListPath> = RecordOf<Reply<P, 'get'>>

type RecordOf<R> = R extends { items: (infer T)[] } | { statements: (infer T)[] } | { markets: (infer T)[] }
  ? T
  : never
