/**
 * Traces of requests and of what becomes of their payments, for OpenTelemetry (docs/guides/operating.md). Times are in
 * milliseconds: since the process began, as `performance.now()` tells them, or since 1970.
 */
export interface Tracing {
  /** Begins the span of a request with its header `traceparent`. Undefined where the request is not sampled. */
  request(traceparent: string | undefined): Span | undefined
  /** Begins a span for a part of the work that another span caused; `parent` is that span's traceparent. */
  part(parent: string, name: string, options?: { isClient?: boolean; startMs?: number }): Span
}

export interface Span {
  /** W3C Trace Context of this span, for the work that it causes. */
  readonly traceparent: string
  /** Ends the span, now by default. */
  end(how: {
    name?: string
    attributes?: Record<string, string | number>
    failed?: boolean
    endMs?: number
  }): void
}

/** The id of a trace in a traceparent, as 32 hexadecimal digits. */
export const traceIdOf = (traceparent: string): string => traceparent.slice(3, 35)
