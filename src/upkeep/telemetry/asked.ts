import type { Tracing } from '../../contract/tracing.ts'
import { SettingsError } from '../../settings.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** What is sent over OTLP, by the standard variables of OpenTelemetry. */
export interface TelemetryAsked {
  traces: boolean
  metrics: boolean
  /** The share of requests without a `traceparent` that may be sampled. */
  share: number
  /** Whether a `traceparent` says whether its request is sampled. */
  followsParents: boolean
  metricsEveryMs: number
}

/** What sends traces and metrics. Without the variables it sends nothing, and no library for it is loaded. */
export interface Telemetry {
  tracing: Tracing | undefined
  /** Sends what is left, for at most two seconds. */
  close(): Promise<void>
}

/** Not `traceidratio` by itself: the ids of clients would decide what is traced. */
const SAMPLERS = [
  'always_on',
  'always_off',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
]
/** The share of requests that are sampled where no sampler is set. */
const SAMPLED_SHARE = 0.01
const METRICS_EVERY_MS = 60_000

/**
 * Reads which signals are to be sent: those with an endpoint, or with `otlp` as their exporter. Throws `SettingsError` for
 * what Bursar does not support, such as gRPC: a process that silently sends nothing helps nobody.
 */
export function telemetryAsked(environment: Environment): TelemetryAsked {
  const given = (name: string) => environment[name]?.trim() || undefined
  const requireOneOf = (name: string, allowed: string[]) => {
    const value = given(name)
    if (value !== undefined && !allowed.includes(value))
      throw new SettingsError(`${name}: must be one of ${allowed.join(', ')}`)
    return value
  }
  for (const name of [
    'OTEL_EXPORTER_OTLP_ENDPOINT',
    'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT',
  ])
    if (given(name) !== undefined && !/^https?:\/\/[^/]/.test(given(name)!))
      throw new SettingsError(`${name}: must be an address that begins with http:// or https://`)
  const isAsked = (signal: 'TRACES' | 'METRICS', others: string[]): boolean => {
    const exporter = requireOneOf(`OTEL_${signal}_EXPORTER`, ['otlp', 'none', ...others])
    const endpoint = given(`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`) ?? given('OTEL_EXPORTER_OTLP_ENDPOINT')
    const asked = exporter === 'otlp' || (exporter === undefined && endpoint !== undefined)
    if (asked)
      for (const name of [`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`, 'OTEL_EXPORTER_OTLP_PROTOCOL'])
        requireOneOf(name, ['http/protobuf'])
    return asked
  }
  const sampler = requireOneOf('OTEL_TRACES_SAMPLER', SAMPLERS) ?? ''
  const ratio = given('OTEL_TRACES_SAMPLER_ARG')
  if (ratio !== undefined && !/^(0(\.\d+)?|1(\.0+)?)$/.test(ratio))
    throw new SettingsError('OTEL_TRACES_SAMPLER_ARG: must be a number from 0 to 1')
  const interval = given('OTEL_METRIC_EXPORT_INTERVAL')
  if (interval !== undefined && !/^[1-9]\d{2,8}$/.test(interval))
    throw new SettingsError(
      'OTEL_METRIC_EXPORT_INTERVAL: must be a whole number of milliseconds, at least 100',
    )
  const isDisabled = given('OTEL_SDK_DISABLED')?.toLowerCase() === 'true'
  const shareOfRatio = Number(ratio ?? (sampler === '' ? SAMPLED_SHARE : 1))
  return {
    traces: isAsked('TRACES', []) && !isDisabled && sampler !== 'always_off',
    // Prometheus reads the metrics at their own port in any case.
    metrics: isAsked('METRICS', ['prometheus']) && !isDisabled,
    share: sampler.endsWith('_on') ? 1 : sampler.endsWith('_off') ? 0 : shareOfRatio,
    followsParents: sampler !== 'always_on',
    metricsEveryMs: Number(interval ?? METRICS_EVERY_MS),
  }
}
