import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { groupDigits } from './format.ts'
import type { Candle } from './records.ts'

/** Charts. Only the drawings convert amounts to numbers: the figures beside them are the API's text. */

/** A point of a balance: a timestamp of the API and an amount. */
export interface Point {
  at: string
  amount: string
}

const HEIGHT = 220
const PRICE_HEIGHT = 320

interface Drawing {
  colour: (name: string) => string
  time: uPlot.Axis
  amounts: uPlot.Axis
}

const DAY_SECONDS = 86_400
const MONTHS = 'Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec'.split(' ')

/** The time at a mark of the axis, in UTC, as precise as the distance between marks needs. */
function timeText(seconds: number, apart: number): string {
  const text = new Date(seconds * 1000).toISOString()
  const month = MONTHS[Number(text.slice(5, 7)) - 1]
  if (apart < 60) return text.slice(11, 19)
  if (apart < DAY_SECONDS && !text.includes('T00:00')) return text.slice(11, 16)
  return apart < 28 * DAY_SECONDS ? `${Number(text.slice(8, 10))} ${month}` : `${month} ${text.slice(0, 4)}`
}

/** Makes a chart as wide as its place, in the colours of the page. Draws it again when the colours or inputs change. */
function useChart(
  make: (drawing: Drawing) => { options: Omit<uPlot.Options, 'width'>; data: uPlot.AlignedData },
  inputs: readonly unknown[],
) {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = place.current!
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    let chart: uPlot | undefined
    const draw = () => {
      chart?.destroy()
      const style = getComputedStyle(element)
      const colour = (name: string) => style.getPropertyValue(name).trim()
      const axis: uPlot.Axis = {
        stroke: colour('--quiet'),
        grid: { stroke: colour('--line'), width: 1 },
        ticks: { show: false },
      }
      const time: uPlot.Axis = {
        ...axis,
        size: 34,
        space: 75,
        values: (_, marks, __, ___, apart) =>
          // Marks within a second would repeat their text.
          marks
            .map((mark) => timeText(mark, apart))
            .map((text, index, texts) => (text === texts[index - 1] ? '' : text)),
      }
      const amounts: uPlot.Axis = {
        ...axis,
        size: 80,
        values: (_, marks) => marks.map((mark) => groupDigits(String(Number(mark.toPrecision(10))))),
      }
      const { options, data } = make({ colour, time, amounts })
      const utc = (epochSeconds: number) => uPlot.tzDate(new Date(epochSeconds * 1000), 'Etc/UTC')
      chart = new uPlot({ ...options, tzDate: utc, width: element.clientWidth }, data, element)
    }
    draw()
    scheme.addEventListener('change', draw)
    const watching = new ResizeObserver(() =>
      chart?.setSize({ width: element.clientWidth, height: chart.height }),
    )
    watching.observe(element)
    return () => {
      scheme.removeEventListener('change', draw)
      watching.disconnect()
      chart?.destroy()
    }
  }, inputs)
  return place
}

const seconds = (timestamp: string) => Date.parse(timestamp) / 1000

/** An area of steps: a balance stays as it is until the next entry. The table beside it has the same figures as text. */
export function BalanceChart({ points, label }: { points: readonly Point[]; label: string }) {
  const place = useChart(
    ({ colour, time, amounts }) => ({
      options: {
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false },
        axes: [time, amounts],
        // An area is compared with zero.
        scales: { y: { range: (_, min, max) => [Math.min(0, min), max === 0 ? 1 : max * 1.05] } },
        series: [
          {},
          {
            stroke: colour('--accent'),
            fill: `${colour('--accent')}22`,
            width: 1.5,
            paths: uPlot.paths.stepped!({ align: 1 }),
            points: { show: points.length < 2 },
          },
        ],
      },
      data: [points.map(({ at }) => seconds(at)), points.map(({ amount }) => Number(amount))],
    }),
    [points],
  )
  return <div ref={place} class="chart" role="img" aria-label={label} />
}

/** A small line of amounts, compared with zero and with the largest of `among`. The figure beside it is its text. */
export function Sparkline({
  values,
  among = values,
  label,
}: {
  values: readonly string[]
  among?: readonly string[]
  label: string
}) {
  const numbers = values.map(Number)
  const largest = Math.max(...among.map(Number)) || 1
  const points = numbers.map(
    (value, index) => `${(index / Math.max(1, numbers.length - 1)) * 100},${22 - (value / largest) * 20}`,
  )
  return (
    <svg class="sparkline" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label={label}>
      <polyline points={points.join(' ')} />
    </svg>
  )
}

/** The prices of a market as candles or as a line of closes. Where candles are missing, nothing is drawn. */
export function PriceChart({
  candles,
  seconds: length,
  asLine,
  label,
}: {
  candles: readonly Candle[]
  /** The length of a candle. */
  seconds: number
  asLine: boolean
  label: string
}) {
  const place = useChart(
    ({ colour, time, amounts }) => {
      const data = withGaps(candles, length)
      const line: uPlot.Series = { stroke: colour('--accent'), width: 1.5, points: { show: false } }
      // The candles are drawn by hand; the series only give the scale their lows and highs.
      const hidden: uPlot.Series = { paths: () => null, points: { show: false } }
      return {
        options: {
          height: PRICE_HEIGHT,
          legend: { show: false },
          cursor: { y: false },
          axes: [time, amounts],
          scales: { x: { range: (_, min, max) => [min - length / 2, max + length / 2] } },
          series: [{}, asLine ? line : hidden, ...(asLine ? [] : [hidden])],
          hooks: asLine ? {} : { draw: [drawCandles(data, length, colour)] },
        },
        data: asLine ? [data.at, data.close] : [data.at, data.low, data.high],
      }
    },
    [candles, length, asLine],
  )
  return <div ref={place} class="chart" role="img" aria-label={label} />
}

type Column = (number | null)[]
interface Columns {
  at: number[]
  open: Column
  high: Column
  low: Column
  close: Column
}

/** The candles as columns, with one empty candle in each gap. */
function withGaps(candles: readonly Candle[], length: number): Columns {
  const columns: Columns = { at: [], open: [], high: [], low: [], close: [] }
  for (const { timestamp, open, high, low, close } of candles) {
    const start = seconds(timestamp)
    const before = columns.at.at(-1)
    if (before !== undefined && start > before + length) {
      columns.at.push(before + length)
      for (const column of [columns.open, columns.high, columns.low, columns.close]) column.push(null)
    }
    columns.at.push(start)
    columns.open.push(Number(open))
    columns.high.push(Number(high))
    columns.low.push(Number(low))
    columns.close.push(Number(close))
  }
  return columns
}

/** Filled bodies for falls and hollow ones for rises, so that colour is not the only difference. */
const drawCandles =
  ({ at, open, high, low, close }: Columns, length: number, colour: (name: string) => string) =>
  (chart: uPlot) => {
    const { ctx } = chart
    const x = (value: number) => chart.valToPos(value, 'x', true)
    const y = (value: number) => chart.valToPos(value, 'y', true)
    const width = Math.max(1, Math.min(24 * devicePixelRatio, (x(length) - x(0)) * 0.65))
    ctx.save()
    ctx.lineWidth = Math.max(1, devicePixelRatio)
    for (const [index, moment] of at.entries()) {
      const [from, to, top, bottom] = [open[index], close[index], high[index], low[index]]
      if (from == null || to == null || top == null || bottom == null) continue
      const rises = to >= from
      ctx.strokeStyle = ctx.fillStyle = colour(rises ? '--good' : '--bad')
      const middle = x(moment)
      const [upper, lower] = [y(Math.max(from, to)), y(Math.min(from, to))]
      ctx.beginPath()
      ctx.moveTo(middle, y(top))
      ctx.lineTo(middle, upper)
      ctx.moveTo(middle, lower)
      ctx.lineTo(middle, y(bottom))
      ctx.stroke()
      const body = [middle - width / 2, upper, width, Math.max(1, lower - upper)] as const
      if (rises && width > 3) ctx.strokeRect(...body)
      else ctx.fillRect(...body)
    }
    ctx.restore()
  }
