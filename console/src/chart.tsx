import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'

/** A point of a chart: a timestamp of the API and an amount. Only the picture is made of numbers; figures stay text. */
export interface Point {
  at: string
  amount: string
}

const HEIGHT = 220

/** An area of steps: a balance stays as it is until the next entry. The table beside it has the same figures as text. */
export function BalanceChart({ points, label }: { points: readonly Point[]; label: string }) {
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = place.current!
    const style = getComputedStyle(element)
    const colour = (name: string) => style.getPropertyValue(name).trim()
    const axis = {
      stroke: colour('--quiet'),
      grid: { stroke: colour('--line'), width: 1 },
      ticks: { show: false },
    }
    const chart = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false },
        axes: [axis, { ...axis, size: 80 }],
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
      [points.map(({ at }) => Date.parse(at) / 1000), points.map(({ amount }) => Number(amount))],
      element,
    )
    const watching = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT }))
    watching.observe(element)
    return () => {
      watching.disconnect()
      chart.destroy()
    }
  }, [points])
  return <div ref={place} class="chart" role="img" aria-label={label} />
}
