import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import {
  diag,
  DiagLogLevel,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Span as OpenSpan,
  type SpanContext,
} from '@opentelemetry/api'
import { parseTraceParent } from '@opentelemetry/core'
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources'
import { MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'
import {
  AlwaysOnSampler,
  BasicTracerProvider,
  BatchSpanProcessor,
  ParentBasedSampler,
} from '@opentelemetry/sdk-trace-base'
import type { Registry } from 'prom-client'
import type { Logger } from 'pino'
import type { Span, Tracing } from '../../contract/tracing.ts'
import { version } from '../../package.ts'
import { otlpMetrics } from './otlp-metrics.ts'
import type { Telemetry, TelemetryAsked } from './asked.ts'

/** Most traces a second that clients may ask for with `traceparent`: anybody with a token could have everything traced. */
const ASKED_PER_SECOND = 100
const CLOSE_MS_MAX = 2_000
/** A collector that is down is reported this often. */
const REPORT_EVERY_MS = 60_000
const REPORTED_MAX = 500

/** Sends traces and metrics over OTLP. The libraries read their own variables: endpoint, headers, limits. */
export function sendOverOtlp(
  asked: TelemetryAsked,
  { registry, log }: { registry: Registry; log: Logger },
): Telemetry {
  reportFailures(log)
  const resource = resourceFromAttributes({
    'service.name': 'bursar',
    'service.version': version,
    'service.instance.id': randomUUID(),
  }).merge(detectResources({ detectors: [envDetector] }))
  const traces = asked.traces
    ? new BasicTracerProvider({
        resource,
        spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())],
        sampler: asked.followsParents
          ? new ParentBasedSampler({ root: new AlwaysOnSampler() })
          : new AlwaysOnSampler(),
      })
    : undefined
  const metrics = asked.metrics
    ? new MeterProvider({
        resource,
        readers: [
          new PeriodicExportingMetricReader({
            exporter: new OTLPMetricExporter(),
            metricProducers: [otlpMetrics(registry)],
            exportIntervalMillis: asked.metricsEveryMs,
          }),
        ],
      })
    : undefined
  return {
    tracing: traces && tracingWith(traces, asked.share),
    async close() {
      const closed = Promise.all([traces?.shutdown(), metrics?.shutdown()]).catch((err: unknown) =>
        log.warn({ err }, 'the last telemetry was not sent'),
      )
      await Promise.race([closed, pause(CLOSE_MS_MAX, undefined, { ref: false })])
    },
  }
}

function reportFailures(log: Logger): void {
  let silentUntil = 0
  const report = (message: string, ...details: unknown[]) => {
    if (performance.now() < silentUntil) return
    silentUntil = performance.now() + REPORT_EVERY_MS
    // A collector's answer may be in it.
    const cut = (text: string) => text.slice(0, REPORTED_MAX)
    log.warn({ details: details.map((detail) => cut(String(detail))) }, cut(`OpenTelemetry: ${message}`))
  }
  const ignored = () => undefined
  diag.setLogger(
    { error: report, warn: report, info: ignored, debug: ignored, verbose: ignored },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
}

/** `share` of the requests without a parent reach the sampler: a span that is not sampled takes a microsecond, too. */
function tracingWith(provider: BasicTracerProvider, share: number): Tracing {
  const tracer = provider.getTracer('bursar', version)
  const below = (parent: SpanContext) => trace.setSpanContext(ROOT_CONTEXT, { ...parent, isRemote: true })
  let second = 0
  let askedInSecond = 0
  const mayAsk = () => {
    const now = Math.floor(performance.now() / 1000)
    if (now !== second) [second, askedInSecond] = [now, 0]
    askedInSecond += 1
    return askedInSecond <= ASKED_PER_SECOND
  }
  const contextOf = (parent: SpanContext | null) => {
    if (parent === null) return ROOT_CONTEXT
    const isAsked = (parent.traceFlags & TraceFlags.SAMPLED) !== 0
    return below(isAsked && !mayAsk() ? { ...parent, traceFlags: TraceFlags.NONE } : parent)
  }
  return {
    request(traceparent) {
      // A malformed one counts as none.
      const parent = traceparent === undefined ? null : parseTraceParent(traceparent)
      if (parent === null && share < 1 && Math.random() >= share) return undefined
      const span = tracer.startSpan('request', { kind: SpanKind.SERVER }, contextOf(parent))
      return span.isRecording() ? spanOf(span) : undefined
    },
    part(parent, name, { isClient = false, startMs } = {}) {
      const context = parseTraceParent(parent)
      return spanOf(
        tracer.startSpan(
          name,
          {
            kind: isClient ? SpanKind.CLIENT : SpanKind.INTERNAL,
            ...(startMs !== undefined && { startTime: startMs }),
          },
          context === null ? ROOT_CONTEXT : below(context),
        ),
      )
    },
  }
}

function spanOf(span: OpenSpan): Span {
  const { traceId, spanId, traceFlags } = span.spanContext()
  return {
    traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
    end({ name, attributes, failed = false, endMs }) {
      if (name !== undefined) span.updateName(name)
      if (attributes !== undefined) span.setAttributes(attributes)
      if (failed) span.setStatus({ code: SpanStatusCode.ERROR })
      span.end(endMs)
    },
  }
}
