import { ValueType } from '@opentelemetry/api'
import { emptyResource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  DataPointType,
  type DataPoint,
  type Histogram,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'
import type { MetricObjectWithValues, MetricValue, Registry } from 'prom-client'
import { version } from '../../package.ts'

type Labels = Record<string, string | number>
type Values = MetricObjectWithValues<MetricValue<string> & { metricName?: string }>

/** Offers the metrics of Prometheus, with their names and labels, to an exporter of OpenTelemetry. */
export function otlpMetrics(registry: Registry): MetricProducer {
  const startTime = timeOf(performance.timeOrigin)
  return {
    async collect() {
      const times = { startTime, endTime: timeOf(Date.now()) }
      const metrics = (await registry.getMetricsAsJSON()) as Values[]
      const scope = { name: 'bursar', version }
      const scopeMetrics = [{ scope, metrics: metrics.map((metric) => metricOf(metric, times)) }]
      return { resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] }
    },
  }
}

const timeOf = (ms: number): [number, number] => [Math.floor(ms / 1000), Math.round((ms % 1000) * 1e6)]

type Times = Pick<DataPoint<number>, 'startTime' | 'endTime'>

function metricOf({ name, help, type, values }: Values, times: Times): MetricData {
  // In OpenMetrics, prom-client keeps a counter without the ending of its samples.
  const isCounter = String(type) === 'counter'
  const base = {
    descriptor: {
      name: isCounter && !name.endsWith('_total') ? `${name}_total` : name,
      description: help,
      unit: '',
      valueType: ValueType.DOUBLE,
    },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  }
  if (String(type) === 'histogram')
    return { ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints: histogramsOf(name, values, times) }
  const dataPoints = values.map(({ labels, value }) => ({ ...times, attributes: labels as Labels, value }))
  return isCounter
    ? { ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }
    : { ...base, dataPointType: DataPointType.GAUGE, dataPoints }
}

/** Prometheus counts in a bucket what is in the smaller ones, too. OpenTelemetry does not. */
function histogramsOf(name: string, values: Values['values'], times: Times): DataPoint<Histogram>[] {
  const children = new Map<
    string,
    { labels: Labels; bounds: number[]; upTo: number[]; sum: number; count: number }
  >()
  for (const { labels, value, metricName } of values) {
    const { le, ...own } = labels as Labels
    const key = JSON.stringify(own)
    const child = children.get(key) ?? { labels: own, bounds: [], upTo: [], sum: 0, count: 0 }
    children.set(key, child)
    if (metricName === `${name}_sum`) child.sum = value
    else if (metricName === `${name}_count`) child.count = value
    else if (le !== '+Inf') {
      child.bounds.push(Number(le))
      child.upTo.push(value)
    }
  }
  return [...children.values()].map(({ labels, bounds, upTo, sum, count }) => {
    const counts = [...upTo, count].map((total, index, { [index - 1]: before = 0 }) => total - before)
    return { ...times, attributes: labels, value: { buckets: { boundaries: bounds, counts }, sum, count } }
  })
}
