import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

/** A path of money as a picture: places, and arrows between them. The text beside it says the same. */

export interface Place {
  title: string
  /** Up to two lines below the title. */
  lines: readonly string[]
  kind?: 'good' | 'bad' | 'wait' | undefined
}

export interface Arrow {
  /** What moves. */
  label: string
  kind?: 'good' | 'bad' | 'wait' | undefined
}

const BOX = { width: 216, height: 78 }
/** The distance between two places: from left to right on a wide screen, downwards on a narrow one. */
const APART = { wide: 150, narrow: 52 }
/** The characters of a line that fit into a box. */
const LINE_MAX = 29
const NARROW = matchMedia('(max-width: 50rem)')

/** Draws places in their order, with `arrows[n]` from place n to place n + 1. */
export function Graph({
  places,
  arrows,
  label,
}: {
  places: readonly Place[]
  arrows: readonly Arrow[]
  label: string
}) {
  const narrow = useSignal(NARROW.matches)
  useEffect(() => {
    const look = () => (narrow.value = NARROW.matches)
    NARROW.addEventListener('change', look)
    return () => NARROW.removeEventListener('change', look)
  }, [])
  const down = narrow.value
  const step = down ? BOX.height + APART.narrow : BOX.width + APART.wide
  const length = step * (places.length - 1) + (down ? BOX.height : BOX.width)
  const [width, height] = down ? [BOX.width + 40, length] : [length, BOX.height]
  const placeAt = (index: number) => (down ? { x: 20, y: index * step } : { x: index * step, y: 0 })
  return (
    <svg
      class="graph"
      role="img"
      aria-label={label}
      viewBox={`-1 -1 ${width + 2} ${height + 2}`}
      width={width + 2}
      height={height + 2}
    >
      <defs>
        <marker
          id="arrowhead"
          viewBox="0 0 8 8"
          refX="7"
          refY="4"
          markerWidth="7"
          markerHeight="7"
          orient="auto"
        >
          <path d="M0 0 8 4 0 8z" />
        </marker>
      </defs>
      {arrows.map((arrow, index) => {
        const { x, y } = placeAt(index)
        const from = down
          ? { x: x + BOX.width / 2, y: y + BOX.height }
          : { x: x + BOX.width, y: y + BOX.height / 2 }
        const to = down ? { x: from.x, y: from.y + APART.narrow } : { x: from.x + APART.wide, y: from.y }
        const text = down
          ? { x: from.x + 10, y: (from.y + to.y) / 2 + 4 }
          : { x: (from.x + to.x) / 2, y: from.y - 8, 'text-anchor': 'middle' as const }
        return (
          <g key={index} class={arrow.kind ?? ''}>
            <path class="arrow" d={`M${from.x} ${from.y}L${to.x} ${to.y}`} marker-end="url(#arrowhead)" />
            <text {...text}>{arrow.label}</text>
          </g>
        )
      })}
      {places.map(({ title, lines, kind = '' }, index) => {
        const { x, y } = placeAt(index)
        return (
          <g key={index} class={kind}>
            <rect x={x} y={y} width={BOX.width} height={BOX.height} rx={6} />
            <text class="title" x={x + 14} y={y + 26}>
              {cut(title)}
            </text>
            {lines.slice(0, 2).map((line, row) => (
              <text key={row} x={x + 14} y={y + 46 + row * 18}>
                {cut(line)}
              </text>
            ))}
          </g>
        )
      })}
    </svg>
  )
}

const cut = (text: string) => (text.length <= LINE_MAX ? text : `${text.slice(0, LINE_MAX - 1)}…`)
