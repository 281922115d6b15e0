import type { Registry } from 'prom-client'
import type { Logger } from 'pino'
import type { Telemetry, TelemetryAsked } from './asked.ts'

export async function openTelemetry(
  asked: TelemetryAsked,
  to: { registry: Registry; log: Logger },
): Promise<Telemetry> {
  if (!asked.traces && !asked.metrics) return { tracing: undefined, close: () => Promise.resolve() }
  const { sendOverOtlp } = await import('./open-telemetry.ts')
  const { traces, metrics, share } = asked
  to.log.info({ traces, metrics, share }, 'telemetry is sent over OTLP')
  return sendOverOtlp(asked, to)
}
