import type { Registry } from 'prom-client'
import type { Logger } from 'pino'
import type { Environment, Telemetry, TelemetryAsked } from './asked.ts'

/** Begins to send what is asked for. */
export async function openTelemetry(
  asked: TelemetryAsked,
  { registry, environment, log }: { registry: Registry; environment: Environment; log: Logger },
): Promise<Telemetry> {
  if (!asked.traces && !asked.metrics) return { tracing: undefined, close: () => Promise.resolve() }
  const { sendOverOtlp } = await import('./open-telemetry.ts')
  log.info(asked, 'telemetry is sent over OTLP')
  return sendOverOtlp(asked, { registry, environment, log })
}
