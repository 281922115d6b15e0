import { Link } from './parts.tsx'

/** Amounts side by side. The bars are only a picture: each says its amount as text. */

export interface Bar {
  key: string
  /** Under the bar. */
  name: string
  /** The API's text. */
  amount: string
  /** What a pointer on it and a screen reader get. */
  label: string
  /** The page that it opens. */
  to?: string
  kind?: 'wait' | undefined
}

export function Bars({
  bars,
  label,
  small = false,
}: {
  bars: readonly Bar[]
  label: string
  small?: boolean
}) {
  const largest = Math.max(...bars.map(({ amount }) => Number(amount)), 0)
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={label}>
      <ol class={small ? 'bars small' : 'bars'}>
        {bars.map(({ key, name, amount, label, to, kind }) => {
          const height = largest === 0 ? 0 : Math.round((Number(amount) / largest) * 1_000) / 10
          const bar = (
            <>
              <span class="room">
                <span class={`bar ${kind ?? ''}`} style={{ height: `${height}%` }} />
              </span>
              <span class="name">{name}</span>
            </>
          )
          return (
            <li key={key} title={label}>
              {to === undefined ? (
                bar
              ) : (
                <Link to={to} label={`${name}: ${label}`}>
                  {bar}
                </Link>
              )}
            </li>
          )
        })}
      </ol>
    </div>
  )
}
