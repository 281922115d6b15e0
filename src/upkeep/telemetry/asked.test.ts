import { describe, expect, test } from 'vitest'
import { telemetryAsked } from './asked.ts'

const ENDPOINT = 'http://collector:4318'

describe('what is sent over OTLP', () => {
  test.each<[Record<string, string>, { traces: boolean; metrics: boolean }]>([
    [{}, { traces: false, metrics: false }],
    [{ OTEL_SERVICE_NAME: 'bursar' }, { traces: false, metrics: false }],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }, { traces: false, metrics: false }],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT }, { traces: true, metrics: true }],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: ENDPOINT }, { traces: true, metrics: false }],
    [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: ENDPOINT }, { traces: false, metrics: true }],
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, { traces: true, metrics: false }],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT, OTEL_METRICS_EXPORTER: 'none' },
      { traces: true, metrics: false },
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT, OTEL_METRICS_EXPORTER: 'prometheus' },
      { traces: true, metrics: false },
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT, OTEL_SDK_DISABLED: 'true' },
      { traces: false, metrics: false },
    ],
  ])('%j', (environment, asked) => {
    expect(telemetryAsked(environment)).toMatchObject(asked)
  })

  test.each<[Record<string, string>, number]>([
    [{}, 0.01],
    [{ OTEL_TRACES_SAMPLER: '' }, 0.01],
    [{ OTEL_TRACES_SAMPLER_ARG: '0.5' }, 0.5],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio' }, 1],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_traceidratio', OTEL_TRACES_SAMPLER_ARG: '0' }, 0],
    [{ OTEL_TRACES_SAMPLER: ' always_on ' }, 1],
    [{ OTEL_TRACES_SAMPLER: 'parentbased_always_off' }, 0],
  ])('%j: the share of requests without a traceparent', (environment, share) => {
    expect(telemetryAsked(environment)).toMatchObject({ share, metricsEveryMs: 60_000 })
  })

  test.each<[Record<string, string>, string]>([
    [{ OTEL_TRACES_SAMPLER: 'traceidratio' }, 'OTEL_TRACES_SAMPLER: must be one of'],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317' },
      'OTEL_EXPORTER_OTLP_ENDPOINT: must be an address that begins with http:// or https://',
    ],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' },
      'OTEL_EXPORTER_OTLP_PROTOCOL: must be one of http/protobuf',
    ],
    [{ OTEL_TRACES_EXPORTER: 'jaeger' }, 'OTEL_TRACES_EXPORTER: must be one of otlp, none'],
    [{ OTEL_TRACES_EXPORTER: 'prometheus' }, 'OTEL_TRACES_EXPORTER: must be one of otlp, none'],
    [
      { OTEL_TRACES_SAMPLER: 'jaeger_remote' },
      'OTEL_TRACES_SAMPLER: must be one of always_on, always_off, parentbased_always_on, parentbased_always_off, parentbased_traceidratio',
    ],
    [{ OTEL_TRACES_SAMPLER_ARG: '2' }, 'OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1'],
    [
      { OTEL_METRIC_EXPORT_INTERVAL: '1m' },
      'OTEL_METRIC_EXPORT_INTERVAL: must be a whole number of milliseconds, at least 100',
    ],
  ])('%j is refused', (environment, message) => {
    expect(() => telemetryAsked(environment)).toThrow(message)
  })
})
